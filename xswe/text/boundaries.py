"""Sentence boundaries in running text.

The library ``sentencex`` finds the boundaries (rules and abbreviations for some 30 languages, compiled). In spaced
languages quotation marks are hidden from it: they do not show where a sentence ends, and many are never closed. Some of
its errors are corrected here. Sentences are rejoined around quoted speech within a longer sentence; around brackets and
quotes with several sentences inside in Chinese and Japanese; and after abbreviations, German ordinals, and the numbers of
lists, figures and sections. Further cuts are made in Chinese and Japanese before a sentence that begins with a digit or a
Latin letter, and in spaced languages after words mistaken for abbreviations and after abbreviations that end a sentence.
Brackets without a partner nearby are hidden from the library, which would take everything up to the next bracket for an
aside.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
from collections.abc import Iterator
from dataclasses import fields
from functools import cache, lru_cache
from importlib.metadata import version
from typing import Any

from xswe.errors import needs
from xswe.text.languages import LANGUAGES, check_languages
from xswe.text.languages.language import Abbreviations, word_set
from xswe.text.scripts import has_kana

logger = logging.getLogger(__name__)

Span = tuple[int, int]

_RULES_VERSION = 6  # of the rules in this file; raise it with every change of their results
# Languages with rules in the library (Chinese has those of English); for others it would fall back on English.
_LIBRARY = frozenset(("am", "ar", "bg", "bn", "ca", "da", "de", "el", "en", "es", "fi", "fr", "gu", "hi", "hy", "it", "ja"))
_LIBRARY |= frozenset(("kk", "kn", "ml", "mr", "my", "nl", "pa", "pl", "pt", "ru", "sk", "ta", "te", "uk", "zh"))
_GENERAL = "ja"  # its rules in the library are only the marks that end sentences in all scripts
# Marks that end sentences in further scripts, added to Unicode after the library's list was made.
_NEWER = re.compile(
    "[\u17d4\u17d5\u1b4e\u1b4f\u1b7f\u2cf9-\u2cfb\u2e60\u2e61\ufe12\ufe15\ufe16\U000113d4\U000113d5\U00016d6e\U00016d6f]+"
)
_OPEN, _CLOSE = "「『（【〈《〔“‘(", "」』）】〉》〕”’)"
_PARTNER = dict(zip(_CLOSE, _OPEN, strict=True)) | dict.fromkeys("）)", "（(")
# Brackets that the library takes for asides; in Chinese and Japanese, half-width and full-width ones may be paired.
_KIND = {mark: kind for kind, marks in enumerate(("()（）", "[]［］", "{}", "「」", "『』", "“”", "‘’")) for mark in marks}
_ASIDES = re.compile(rf"<(?![A-Za-z/][^<>]*>)|[{re.escape(''.join(_KIND))}]|\n\s*\n")
_ASIDE_CLOSES = frozenset(")）]］}」』”’")
_ENDED_WITHIN = re.compile(r"[。！？?!][^。！？?!…」』”’~]")
_MAX_DEPTH = 8  # of nested brackets
_LONGEST_QUOTE = 200  # characters; longer or unclosed quotes are cut like other text
_LONGEST_TEXT = 8192  # characters passed to the library at a time: its time is quadratic for unclosed brackets
_TAIL = 60  # characters at a sentence's end that decide whether it continues
_LETTER_OR_DIGIT = re.compile(r"[^\W_]")
_LIST_NUMBER = re.compile(r"[(（]?(?:\d{1,3}|[ivxIVX]{1,5}|[a-zA-Z])[.)）、．]")
_REFERENCE = re.compile(
    r"(?:^|[\s(\[„“\"])(?:Abb|Abs|Art|Bd|Ch|Chap|Eq|Fig|Figs|Kap|No|Nos|Nr|Pos|Sec|Sect|Tab|Teil|Vol|Ziff|pp?|S)\.$"
)
# A number with a period after one of these words is an ordinal, followed by its noun: "das 19. | Jahrhundert".
_ORDINAL = re.compile(
    r"(?:^|[\s(„“\"»])(?:a[mn]|im|ins?|vom|zu[mr]|beim|bis|seit|ab|der|die|das|de[mns]|ein(?:e[mnrs]?)?|ihre?[mnrs]?|"
    r"seine?[mnrs]?|unsere?[mnrs]?|jede[mnrs]?|diese[mnrs]?)\s(?:\d{1,3}\.\s?(?:und|bis|/|-)\s?)?(?:\d{1,3}|[IVX]{1,5})\.$",
    re.IGNORECASE,
)
_BEFORE_A_QUESTION = "¿¡"  # opening marks, which show no more of where a sentence ends than quotation marks
_MARKS = '"`´“”„‟‘‚‛«»‹›' + _BEFORE_A_QUESTION  # unambiguous marks around and before words
_QUOTES = _MARKS + "'’"
_BEFORE_A_MARK, _AFTER_A_MARK = " \n([.!?…", " \n)].,;:!?"
_OPENING = re.compile(r"([ \n(\[.!?…])['’](?!(?:[stmd]|re|ve|ll)\b)")  # not in "isn 't"
_CAPITALS = "".join(filter(str.isupper, map(chr, range(0x530))))  # Latin, Greek and Cyrillic
_NEXT = re.compile(rf"([.!?])([~ ]?[)\]~])?\s+(?=[{_CAPITALS}0-9]|[a-z]{{1,3}}[A-Z])")  # jQuery, eBay, iOS
_FILE = re.compile(r"(?:\w{2,}|\d)\.[a-z]$")  # math.h, 1.x
_LOWER = re.compile(rf"[^\W\d{_CAPITALS}_]{{2,}}")
_CAPITALISED = re.compile(rf"[{_CAPITALS}][^\W\d{_CAPITALS}_]*[,\s]")
_LATIN = re.compile("[A-Za-z0-9０-９]")
_MONTH = re.compile("(?:Jan|Feb|März|Apr|Mai|Jun|Jul|Aug|Sep|Okt|Nov|Dez)")
_BEFORE_LATIN = re.compile(
    r"(?:(?<![。！？])[。！？]++|(?<=[\u3040-\u30ff\u4e00-\u9fff])[?!]++)[」』）”’]*+\s*+(?=[「『“‘《]*+[.a-z0-9０-９])"
)
_WITHIN = word_set("Dr Prof Mr Mrs Ms St Hr Fr Sra Srta Mme Mlle vs cf Nr No Vol pp e.g i.e")  # for languages without rules
# Continuations of a time of day: "at 5 p.m. Monday".
_ZONES = """
    ET EST EDT CT CST CDT MT MST MDT PT PST PDT GMT UTC BST CET CEST JST IST HKT Mon Tue Wed Thu Fri Sat Sun
    Monday Tuesday Wednesday Thursday Friday Saturday Sunday
"""
_ZONE = re.compile(
    rf"(?:{'|'.join(sorted(word_set(_ZONES)))})\b|"
    r"(?:Eastern|Central|Mountain|Pacific)(?:\s(?:[Tt]ime|Standard|Daylight|on|to|and|but|in|for|until|or)\b|[.,;:)])"
)
_HOURS = frozenset(("a.m", "p.m", "A.M", "P.M"))
_DASHES = "-–— "
# Speakers after quoted questions and exclamations: "Peter asked", "Mr. Smith shouted".
_SPEAKER = re.compile(
    r"(?:(?:Mr|Mrs|Ms|Dr)\.\s)?[A-Z][\w'’-]+(?:\s[A-Z][\w'’-]+)?\s"
    r"(?:said|says|ask(?:s|ed)|repl(?:ies|ied)|answer(?:s|ed)|cri(?:es|ed)|shout(?:s|ed)|wonder(?:s|ed)|demand(?:s|ed)|exclaim(?:s|ed))\b"
)
_NEVER_FIRST, _QUOTE_CLOSERS = _CLOSE + "、，", "」』”’"
# Names of groups with a full stop, also before a year: モーニング娘。'16.
_NAMES = tuple(
    f"{name}。{mark}"
    for name in ("モーニング娘", "カントリー娘", "ココナッツ娘", "ゲスの極み乙女")
    for mark in ("", "'", "’")
)
_AFTER_A_NAME = re.compile(r"[はがをにのともやへで、・’'”」』）0-9０-９]|から|まで|より|さん|など|として|という")
# Characters of foreign names in Chinese; a question mark within a name was once a dot between its parts.
_IN_NAMES = (
    "阿埃艾安奥巴贝比彼博布查达戴丹德迪蒂杜多恩尔菲费弗夫福戈格哈赫霍基吉加杰卡凯科克拉莱兰朗劳勒雷里利林琳鲁卢路伦罗洛马麦曼"
    "迈梅米莫姆纳奈尼诺帕佩皮普奇乔切琼萨塞桑沙莎圣史斯苏索塔泰坦特汤托瓦威维韦温沃伍西希夏歇雅亚扬耶伊因约泽扎詹朱茨娜妮丽莉丝蕾薇玛黛"
)
_LOST_DOT = re.compile(rf"(?<=[{_IN_NAMES}]{{2}})\?(?=[{_IN_NAMES}]{{2}})")
# Continuations of the surrounding sentence after quoted speech.
_GOES_ON = {
    "ja": re.compile(
        r"[、，をはがもへ]|と(?!ころ|ても|にかく|もかく|きどき|きに|うとう|つぜん|りあえず)|って|なんて|など|という|の(?!ち)|に(?!は)|"
        r"だと|です|で(?!も|は|す)|から[、と]"
    ),
    "zh": re.compile(
        r"[，、]|[^，。！？：；“”「」‘’、\s]{0,6}(?:(?<![来來据據听聽虽雖者以如])(?:说|說)|问|問|道|答|喊|叫|嚷|回答|心想)(?:道|着|著|了)?(?:[。！；]|[，,](?=[“「『]|然后|然後|便|就|一边|一邊|又|接着|接著|随即|隨即|转|轉)|[：:](?![“「『\"]))|的(?!确|確)"
    ),
}


@lru_cache(maxsize=1)
def _library() -> Any:
    with needs("sentencex", "sentences", "cutting running text into sentences"):
        import sentencex
    return sentencex


def splitter(language: str) -> str:
    """Return a fingerprint of how a language is split: the library, the version of the rules, and the language's words."""
    _library()
    own = LANGUAGES[language].abbreviations
    words = [sorted(getattr(own, one.name)) for one in fields(own)] if own else []
    digest = hashlib.sha256(json.dumps(words).encode()).hexdigest()[:16]
    return f"sentencex {version('sentencex')}, rules {_RULES_VERSION}, words {digest}"


def has_rules(language: str) -> bool:
    """Return True if a language has its own rules for sentence boundaries; others use general ones."""
    return language in _LIBRARY


@cache
def _rules_of(language: str) -> str:
    """Return the language whose rules the library applies; warn once if they are the general ones."""
    if has_rules(language):
        return language
    name = LANGUAGES[language].name
    logger.warning("no rules for sentence boundaries in %s: using general ones, the marks of all scripts", name)
    return _GENERAL


def split_sentences(text: str, language: str) -> list[Span]:
    """Return the span of each sentence of running text, a paragraph or several, in order: ``text[start:end]``.

    Whitespace around a sentence belongs to none; every other character belongs to exactly one. A blank line ends a
    sentence. A quotation mark belongs to the sentence that it opens or closes. The same text always gives the same
    sentences. An unknown language raises ConfigError, a missing ``sentencex`` DependencyError.
    """
    check_languages([language])
    if not LANGUAGES[language].spaced:
        return _split_unspaced(text, language)
    masked = _without_asides(_without_quotes(text), language)
    found: list[Span] = []
    start, whole = _next(text, 0), True  # ``whole``: at the start of the text, or after a blank line
    paragraph = start
    for cut, is_break in _cuts(masked, language):
        paragraph = cut if is_break else paragraph
        if cut <= start:
            whole = whole or is_break
            continue
        if is_break:
            end, after = start + len(text[start:cut].rstrip()), _next(text, cut)
        else:
            end, after, left, right = _edges(text, cut, start, paragraph)
            if end <= start or _goes_on(text, (start, end), left, right, language):
                continue
        _add(found, text, (start, end), whole)
        start, whole = after, is_break
    if start < len(text):
        _add(found, text, (start, len(text.rstrip())), whole)
    return found


def _next(text: str, start: int) -> int:
    """Return the first place from ``start`` that is not whitespace."""
    while start < len(text) and text[start].isspace():
        start += 1
    return start


def _add(found: list[Span], text: str, span: Span, whole: bool) -> None:
    """Append a sentence; marks alone join the sentence before, unless they begin a paragraph."""
    if found and not whole and not _LETTER_OR_DIGIT.search(text, *span):
        found[-1] = (found[-1][0], span[1])
    else:
        found.append(span)


def _without_quotes(text: str) -> str:
    """Mask the quotation marks of a text, keeping its length; apostrophes within words stay.

    Opening marks, and those after a mark that ends a sentence, become spaces. Marks that close after a word become a
    neutral mark, so that a quoted word is not taken for an abbreviation: he said "no".
    """
    if text and text[0] in _QUOTES:
        text = " " + text[1:]
    for mark in _MARKS:
        if mark in text:
            for before in _BEFORE_A_MARK:
                text = text.replace(before + mark, before + " ")
            text = text.replace(mark, "~")
    for mark in "'’":
        if mark in text:
            text = _OPENING.sub(r"\1 ", text)
            for after in _AFTER_A_MARK:
                text = text.replace(mark + after, "~" + after)
    return text


def _without_asides(text: str, language: str) -> str:
    """Mask brackets and quotes that must not prevent a boundary, keeping the text's length.

    They are those without a partner nearby, and in Chinese and Japanese quoted speech of several sentences after which the
    surrounding sentence does not continue.
    """
    hidden: list[int] = []
    stack: list[tuple[int, int]] = []  # place and kind of each open bracket
    for found in _ASIDES.finditer(text):
        place, mark = found.start(), found[0]
        if mark[0] == "\n":  # a blank line
            hidden.extend(start for start, _ in stack)
            stack = []
        elif mark == "<":  # not part of a tag
            hidden.append(place)
        elif mark not in _ASIDE_CLOSES:
            stack.append((place, _KIND[mark]))
        elif at := next((k for k in range(1, min(len(stack), _MAX_DEPTH) + 1) if stack[-k][1] == _KIND[mark]), 0):
            start = stack[-at][0]
            hidden.extend(open_ for open_, _ in stack[len(stack) - at + 1 :])
            del stack[len(stack) - at :]
            if _is_no_aside(text, start, place, language):
                hidden += start, place
        else:
            hidden.append(place)
    hidden.extend(start for start, _ in stack)
    if not hidden:
        return text
    characters = list(text)
    for place in hidden:
        characters[place] = "~"
    return "".join(characters)


def _is_no_aside(text: str, start: int, end: int, language: str) -> bool:
    """Return True if brackets or quotes must be masked: long ones, braces, ``(CD)``, and quoted speech."""
    if end - start > _LONGEST_QUOTE or text[end] == "}":
        return True
    if text[end] in ")）":
        return end - start < 6 and text[start + 1 : end].isalnum()
    goes_on = _GOES_ON.get(language)
    if goes_on is None or text[end] not in _QUOTE_CLOSERS:
        return False
    return bool(_ENDED_WITHIN.search(text, start, end)) and not goes_on.match(text, end + 1)


def _cuts(text: str, language: str) -> Iterator[tuple[int, bool]]:
    """Yield the places where sentences may end, and whether a blank line is there.

    A place is before the next sentence, or before the whitespace and marks between them. ``text`` is masked.
    """
    start, rules = 0, _rules_of(language)
    while start < len(text):
        part = text[start : start + _LONGEST_TEXT]
        last = start + len(part) == len(text)
        pieces = _library().segment(rules, part.encode("utf-8", "replace").decode())  # it rejects lone surrogates
        if not last and len(pieces) > 1:
            pieces.pop()  # it may continue; the next part begins with it
        cuts = {}
        for piece in pieces:
            start += len(piece)
            cuts[start] = piece[0] == "\n" and not piece.strip("\r\n")
        if further := _further(text, start - sum(map(len, pieces)), cuts, language):
            yield from sorted((cuts | further).items())
        else:
            yield from cuts.items()


def _further(text: str, start: int, cuts: dict[int, bool], language: str) -> dict[int, bool]:
    """Return the sentence ends missed by the library, from ``start`` to its last cut."""
    end = max(cuts, default=start)
    if not LANGUAGES[language].spaced:
        places = [found.end() for found in _BEFORE_LATIN.finditer(text, start, end)]
    elif not has_rules(language):
        places = [found.end() for found in _NEWER.finditer(text, start, end)]
    elif own := LANGUAGES[language].abbreviations:
        all_found = (found for found in _NEXT.finditer(text, start, end) if found.end() not in cuts)
        places = [found.end() for found in all_found if _ends(text, start, found, language, own)]
    else:
        return {}
    return dict.fromkeys(set(places) - cuts.keys(), False)


def _ends(text: str, start: int, found: re.Match[str], language: str, own: Abbreviations) -> bool:
    """Return True if a sentence ends at a mark, or one with a bracket, before a capital letter or a digit."""
    word, following = _word(text, start, found.start()), text[found.end()]
    plain = len(word) > 3 and word.isalpha() and word not in own.before_numbers
    starts = bool(own.starter.match(text, found.end()))
    if following.islower():
        return plain
    if found[2]:  # a bracket
        return not following.isdigit() and (plain or starts or word[-1:].isdigit())
    if following.isdigit():
        return plain or found[1] != "."
    if found[1] != ".":  # the library takes "Excellent!! I" for a pause
        return text[found.start() - 1] in "!?"
    if word in own.ordinary or word in own.at_the_end:
        return True
    initial = len(word) == 1 and word.isalpha() and text[start : found.start() - 1].rstrip()[-1:] != "."
    if _FILE.search(word) or (language == "en" and initial and word.islower() and word != "v"):
        return starts or bool(_CAPITALISED.match(text, found.end()))
    return starts and (initial or word in own.either)


def _word(text: str, start: int, end: int) -> str:
    """Return the word that ends at a place, without marks before it."""
    words = text[max(start, end - _TAIL) : end].split()
    return words[-1].lstrip("([{/" + _QUOTES) if words else ""


def _edges(text: str, cut: int, first: int, paragraph: int) -> tuple[int, int, int, int]:
    """Return the end of the sentence cut at ``cut`` and the start of the next, with and then without quotation marks.

    The first two places include closing and opening marks. ``first`` is the start of the sentence, ``paragraph`` the start
    of its paragraph.
    """
    left = right = cut
    while left > first and (text[left - 1].isspace() or text[left - 1] in _QUOTES):
        left -= 1
    while right < len(text) and (text[right].isspace() or text[right] in _QUOTES):
        right += 1
    end, start = left, right
    while end < right and text[end] in _QUOTES:
        end += 1
    while start > end and text[start - 1] in _QUOTES:
        start -= 1
    if end == right:  # no space between: only unambiguous opening marks open
        while end > left and text[end - 1] in "„‚“‘" + _BEFORE_A_QUESTION:
            end -= 1
        return end, end, left, right
    for place in range(end, start):  # marks with spaces on both sides
        mark = text[place]
        if not mark.isspace():
            if mark in "„‚‛‟“‘" + _BEFORE_A_QUESTION or (mark in "\"'`´«»" and _opens(text, place, paragraph)):
                return end, place, left, right
            end = place + 1
    return end, start, left, right


def _opens(text: str, place: int, paragraph: int) -> bool:
    """Return True if an ambiguous quotation mark is the first of a pair in its paragraph."""
    if text[place] in "«»":
        return text.count("«", paragraph, place) == text.count("»", paragraph, place)
    marks = text[place : place + 2] if text[place + 1 : place + 2] == text[place] else text[place]
    return text.count(marks, paragraph, place) % 2 == 0


def _goes_on(text: str, before: Span, left: int, right: int, language: str) -> bool:
    """Return True if the sentence ``before``, whose words end at ``left``, continues with the words at ``right``."""
    following, mark = text[right : right + 1], text[left - 1 : left]
    if following and following in ",;:)]}":
        return True
    if left == right and mark == ".":
        return not _is_run_on(text, before[0], left, language)
    if left < right and not text[left:right].isspace() and _is_said(text, left, right, language):
        return True
    if before[1] - before[0] < 8 and _LIST_NUMBER.fullmatch(text, *before):
        return True
    return mark == "." and _is_shortened(text, before[0], left, right, language)


def _is_said(text: str, left: int, right: int, language: str) -> bool:
    """Return True if a sentence continues after a quotation mark."""
    if text[right : right + 5].lstrip(_DASHES)[:1].islower():
        return True
    following = text[right : right + 1]
    if following.isalpha() and not following.isupper() and len(text[left:right].split()[0]) == right - left:  # no space
        return True  # in a script without capitals: "가자."라고
    return language == "en" and text[left - 1] in "?!" and bool(_SPEAKER.match(text, right))


def _is_shortened(text: str, first: int, left: int, right: int, language: str) -> bool:
    """Return True if a period belongs to an abbreviation or an ordinal within a sentence."""
    following = text[right : right + 1]
    word = _word(text, first, left - 1) if not text[left - 2].isspace() else ""
    if not has_rules(language):
        return word in _WITHIN or (following.isdigit() and len(word) < 5 and word.isascii() and word.isalpha())
    own = LANGUAGES[language].abbreviations
    if (own and word in own.within) or (word in _HOURS and _ZONE.match(text, right)):
        return True
    if own and word in own.either:
        return not own.starter.match(text, right)
    tail = text[max(first, left - _TAIL) : left]
    if following.isdigit() and ((own and word in own.before_numbers) or _REFERENCE.search(tail)):
        return True
    if language != "de":
        return False
    return bool(_ORDINAL.search(tail)) or (word.isdigit() and bool(_MONTH.match(text, right)))


def _is_run_on(text: str, first: int, end: int, language: str) -> bool:
    """Return True if a space is missing after a period, unless the period is part of a name like ``System.Text``."""
    own = LANGUAGES[language].abbreviations
    if own and own.starter.match(text, end):
        return True
    return bool(_CAPITALISED.match(text, end) and _LOWER.fullmatch(_word(text, first, end - 1)))


# Chinese and Japanese.


def _split_unspaced(text: str, language: str) -> list[Span]:
    masked = _without_asides(text, language)
    found: list[Span] = []
    start, whole = _next(text, 0), True
    for cut, is_break in [*_cuts(masked, language), (len(text), True)]:
        if cut <= start:
            whole = whole or is_break
            continue
        end = start + len(text[start:cut].rstrip())
        after = cut
        while not is_break and end > start + 1 and text[end - 1] in _OPEN:  # opening marks belong to the next sentence
            after = end - 1
            end = start + len(text[start:after].rstrip())
        after = _next(text, after)
        while not is_break and after < len(text) and _closes_here(text, (start, end), after):
            end, after = after + 1, _next(text, after + 1)
        if after < len(text) and not is_break and (text[after] in _NEVER_FIRST or _in_a_name(text, end, after)):
            continue
        if found and not whole and _is_one(text, found[-1], (start, end), language):
            found[-1] = (found[-1][0], end)
        else:
            found.append((start, end))
        start, whole = after, is_break
    return [part for span in _quotes_closed(masked, found) for part in _brackets_alone(text, span, language)]


def _closes_here(text: str, span: Span, place: int) -> bool:
    """Return True if the mark after a sentence closes a quote, or a bracket that is not open in the sentence."""
    if text[place] in "）)":
        return not any(mark in "（(" for mark in _open_in(text, span))
    return text[place] in _QUOTE_CLOSERS


def _in_a_name(text: str, end: int, after: int) -> bool:
    """Return True if a period is within a name, as in ``.NET``, ``System.Text``, ``Table.(Id)``, ``F.C.が``, ``1.の``.

    In tokenised text it may have spaces on both sides: ``index . html``, ``3 . 5``.
    """
    if text[end - 1] != ".":
        return False
    before, following = text[end - 2 : end - 1], text[after]
    if end != after:
        return before.isspace() and bool(_LATIN.match(text, end - 3)) and (following.isdigit() or following.islower())
    if not _LATIN.match(text, max(0, end - 2)):
        starts = not before.isalpha() or following.islower() or text.startswith("NET", after)
        return starts and bool(_LATIN.match(text, after))
    alone = text[end - 2].isdigit() or not _LATIN.match(text, max(0, end - 3))
    return bool(_LATIN.match(text, after)) or text[after] in "([" or (alone and has_kana(text[after]))


def _is_one(text: str, before: Span, after: Span, language: str) -> bool:
    """Return True if two sentences must be rejoined."""
    if not _LETTER_OR_DIGIT.search(text, *after):
        return True  # only marks
    if language == "zh" and before[1] == after[0] and _LOST_DOT.match(text, before[1] - 1):
        return True
    if text.endswith(_NAMES, before[0], before[1]):
        return bool(_AFTER_A_NAME.match(text, *after))
    return text[before[1] - 1] in _CLOSE and bool(_GOES_ON[language].match(text, *after))


def _quotes_closed(text: str, found: list[Span]) -> list[Span]:
    """Rejoin sentences that were cut within brackets or quotes."""
    out: list[Span] = []
    for span in found:
        if out and span[1] - out[-1][0] <= _LONGEST_QUOTE and _open_in(text, out[-1]):
            closed = _closes(text, out[-1], span[0])
            if closed and closed - out[-1][0] <= _LONGEST_QUOTE:
                out[-1] = (out[-1][0], span[1])
                continue
        out.append(span)
    return out


def _brackets_alone(text: str, span: Span, language: str) -> Iterator[Span]:
    """Cut after brackets at the start of a sentence, if they contain a whole sentence and another one follows."""
    while text[span[0]] in "（(":
        end = _closes(text, (span[0], span[0] + 1), span[0] + 1)
        if not 0 < end < span[1] or text[end - 2] not in "。！？" or not _LETTER_OR_DIGIT.search(text, end, span[1]):
            break
        after = _next(text, end), span[1]
        if _GOES_ON["ja"].match(text, *after) if language == "ja" else text[after[0]] in "，、的":
            break
        yield span[0], end
        span = after
    yield span


def _open_in(text: str, span: Span) -> list[str]:
    """Return the brackets opened but not closed in a span."""
    stack: list[str] = []
    for character in text[span[0] : span[1]]:
        if character in _OPEN:
            stack.append(character)
        elif stack and stack[-1] in _PARTNER.get(character, ""):
            stack.pop()
    return stack


def _closes(text: str, span: Span, start: int) -> int:
    """Return the end of the text that closes a bracket or quote left open by a span, 0 if none nearby does."""
    stack = _open_in(text, span)
    for place in range(start, min(len(text), span[0] + _LONGEST_QUOTE)):
        character = text[place]
        if character in _OPEN:
            stack.append(character)
        elif stack[-1] in _PARTNER.get(character, ""):
            stack.pop()
            if not stack:
                return place + 1
        elif character == "\n":
            return 0
    return 0
