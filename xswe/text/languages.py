"""Languages, their scripts, folding of traditional Chinese, boundary stopwords, numbers, language detection.

The library ``lingua`` distinguishes eleven languages: the four of this library, and seven similar ones that are frequent
on the web. A text counts as another language's where one of these is clearly likelier, and otherwise as its own. Chinese
sentences and Japanese titles in Han alone look alike: where Japanese is expected, what is short and has no mark of a
sentence counts as Japanese.
"""

from __future__ import annotations

import io
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import normalizers

from xswe.errors import ConfigError, needs
from xswe.io.files import scratch


@dataclass(frozen=True)
class Language:
    """One language."""

    code: str  # ISO 639-1 code, the name used everywhere in the library
    name: str  # English name
    # as Unicode names its letters (``latin``, ``hangul``, ``cyrillic``) where words stand between blanks; runs of
    # ``han`` and ``kana`` need a segmenter
    script: str
    iso3: str  # ISO 639-3 code, as Tatoeba's files name it (Mandarin is ``cmn`` there)
    bcp: str  # the code that mteb uses

    @property
    def spaced(self) -> bool:
        """True if its words are separated by blanks."""
        return self.script not in ("han", "kana")


LANGUAGES = {
    language.code: language
    for language in (
        Language("en", "English", "latin", "eng", "eng-Latn"),
        Language("de", "German", "latin", "deu", "deu-Latn"),
        Language("zh", "Chinese", "han", "cmn", "zho-Hans"),
        Language("ja", "Japanese", "kana", "jpn", "jpn-Jpan"),
    )
}


def check_languages(codes: Iterable[str]) -> tuple[str, ...]:
    """Return the codes as a tuple; raise ConfigError for none, an unknown or a repeated one."""
    codes = tuple(codes)
    known = ", ".join(f"{language.code} ({language.name})" for language in LANGUAGES.values())
    if unknown := [code for code in codes if code not in LANGUAGES]:
        raise ConfigError(f"unknown language {', '.join(map(repr, unknown))}: the known ones are {known}")
    if not codes or len(set(codes)) != len(codes):
        raise ConfigError(f"languages={list(codes)}: name at least one language, each once, of {known}")
    return codes


def base_language(code: str) -> str:
    """Return the language of a code with a script or a country: ``en`` of ``en-GB``, ``zh`` of ``zh-Hant``."""
    return code.replace("_", "-").split("-")[0].strip().lower()


# Runs of script: the only thing that decides which adapter sees which characters.
#
# Latin (and any other spaced) script goes to the word adapter, runs of Han and Kana go to a segmenter. Kana anywhere in
# a sentence makes its Han runs Japanese where a model has both languages. No statistical detector takes part: the
# decision is the same for a sentence alone and in a batch.


# Han: ideographs, their extensions, iteration and zero marks. Kana: both syllabaries, the length mark, half-width forms.
# The compatibility ideographs are escaped: an editor that normalises would turn them into others.
_HAN = "々〇〻㐀-䶿一-鿿\uf900-\ufaff\U00020000-\U0003ffff"
_KANA = "ぁ-ゖゝ-ゟァ-ヺー-ヿㇰ-ㇿｦ-ﾟ\U0001aff0-\U0001b16f"
CJK_CHARACTERS = _HAN + _KANA  # the inside of a character class, for any regular-expression engine
_CJK_RUN = re.compile(f"[{CJK_CHARACTERS}]+")
_AROUND_RUNS = re.compile(f"([{CJK_CHARACTERS}]+)")
_KANA_CHARACTER = re.compile(f"[{_KANA}]")
# ASCII characters that Unicode calls symbols but every word tokeniser of the field treats as punctuation.
_ASCII_PUNCTUATION = frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")


def cjk_runs(text: str) -> list[tuple[int, int]]:
    """Return (start, end) of each maximal run of Han and Kana characters."""
    return [match.span() for match in _CJK_RUN.finditer(text)]


def around_runs(text: str) -> list[str]:
    """Split a text at the borders of its runs of Han and Kana."""
    return [part for part in _AROUND_RUNS.split(text) if part]


def has_cjk(text: str) -> bool:
    """Return True if any Han or Kana occurs."""
    return _CJK_RUN.search(text) is not None


def has_kana(text: str) -> bool:
    """Return True if any Kana occurs."""
    return _KANA_CHARACTER.search(text) is not None


def in_script(text: str, language: str) -> bool:
    """Return True if at least half of a text's letters are in the script of its language."""
    cjk = sum(stop - start for start, stop in cjk_runs(text))
    if LANGUAGES[language].spaced:
        letters, script = sum(map(str.isalpha, text)), LANGUAGES[language].script.upper()
        own = sum(c.isalpha() and unicodedata.name(c, "").startswith(script) for c in text)
        return letters > 0 and 2 * own >= letters
    if language == "zh" and has_kana(text):
        return False
    return cjk > 0 and 2 * cjk >= sum(map(str.isalpha, text))


@lru_cache(maxsize=1)
def kana_codes() -> np.ndarray:
    """Return for each character code whether it is Kana, bool (0x110000,)."""
    return _codes_of_script(_KANA_CHARACTER)


@lru_cache(maxsize=1)
def cjk_codes() -> np.ndarray:
    """Return for each character code whether it is Han or Kana, bool (0x110000,)."""
    return _codes_of_script(_CJK_RUN)


def _codes_of_script(wanted: re.Pattern[str]) -> np.ndarray:
    characters = "".join(" " if 0xD800 <= code < 0xE000 else chr(code) for code in range(0x40000))  # none beyond
    out = np.zeros(0x110000, bool)
    for match in wanted.finditer(characters):
        out[slice(*match.span())] = True
    return out


@lru_cache(maxsize=65536)
def is_punctuation(character: str) -> bool:
    """Return True if a character is punctuation: Unicode category P, or an ASCII symbol."""
    return character in _ASCII_PUNCTUATION or unicodedata.category(character).startswith("P")


# Folding traditional Chinese characters into simplified ones, as a table that a tokenizer can carry.
#
# OpenCC's conversion is taken character by character, so that the very same table works inside ``tokenizer.json`` (as a
# ``Precompiled`` normaliser) in every library that reads it. Phrase rules, which a table cannot hold, are left out: of
# two traditional characters that share a simplified one nothing is lost, and the few that depend on their neighbours (乾
# in 乾坤) are folded alike in training and at inference.


_HAN_BLOCKS = ((0x3400, 0x4DC0), (0x4E00, 0xA000), (0xF900, 0xFB00), (0x20000, 0x30000))


@lru_cache(maxsize=1)
def simplified_characters() -> dict[str, str]:
    """Map each traditional character to its simplified one, for all that differ (about 5,000, from OpenCC)."""
    with needs("opencc", "train", "folding Chinese characters"):
        from opencc import OpenCC
    convert = OpenCC("t2s").convert
    characters = (chr(code) for low, high in _HAN_BLOCKS for code in range(low, high))
    return {c: s for c in characters if (s := convert(c)) != c and len(s) == 1}


# Of Japanese characters that fold alike the commonest, where the standard does not name it first.
_COMMONEST = "鬱雲個蠣鉤葉機喫御凶卷幸合谷準昇鐘鎚折託淀檮濤邇汎檜並藪癒欲憐亘憑彙廣槨氣鹵燻瑤甕籤諡"


def japanese_characters(fold: Callable[[str], str]) -> dict[str, str]:
    """Map characters to which ``fold``, the normalisation of a look-up, turns Japanese ones back to these, one to one.

    Of several that fold alike (復 and 複 to 复) the first in JIS X 0208 is taken, whose level 1 has the characters in daily
    use, then in JIS X 0213; or a much more frequent one. ``fold`` leaves blanks as they are.
    """
    common = _decoded("euc_jp", b"", range(0xB0, 0xF5))
    further = _decoded("euc_jis_2004", b"", range(0xA1, 0xFF)) + _decoded("euc_jis_2004", b"\x8f", range(0xA1, 0xFF))
    characters = [*_COMMONEST, *dict.fromkeys(re.findall(f"[{_HAN}]", common + further))]
    out: dict[str, str] = {}
    for character, folded in zip(characters, fold(" ".join(characters)).split(), strict=True):
        out.setdefault(folded, character)
    return out


def _decoded(encoding: str, lead: bytes, rows: range) -> str:
    """Return the characters of some rows of a character set, 94 a row at most."""
    return "".join((lead + bytes((row, cell))).decode(encoding, "ignore") for row in rows for cell in range(0xA1, 0xFF))


def folding_step() -> normalizers.Normalizer:
    """Return the normaliser that folds traditional characters into simplified ones."""
    return normalizers.Precompiled(compiled_charsmap(simplified_characters()))


def compiled_charsmap(table: dict[str, str]) -> bytes:
    """Compile a character table to sentencepiece's form, which ``tokenizers.normalizers.Precompiled`` reads.

    The table says what each character (or short text) becomes; an empty text removes it. The map is as sentencepiece
    serialises it: a double-array trie and its strings.
    """
    with needs("sentencepiece (with protobuf)", "train", "compiling a character table"):
        import sentencepiece
        from sentencepiece import sentencepiece_model_pb2
    model = io.BytesIO()
    with scratch() as folder:
        rules = Path(folder) / "rules.tsv"
        # Only the normaliser of this throw-away model is wanted; the two lines it is trained on do not matter.
        rules.write_text("".join(f"{_codes(a)}\t{_codes(b)}\n" for a, b in sorted(table.items())), encoding="ascii")
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(["a b c d e f g", "h i j k l m n"]),
            model_writer=model,
            vocab_size=24,
            hard_vocab_limit=False,
            normalization_rule_tsv=str(rules),
            minloglevel=2,
        )
    proto = sentencepiece_model_pb2.ModelProto()
    proto.ParseFromString(model.getvalue())
    return proto.normalizer_spec.precompiled_charsmap


def _codes(text: str) -> str:
    """Write a text in the format of the rules' file: hexadecimal code points separated by blanks."""
    return " ".join(f"{ord(character):X}" for character in text)


# Words that begin and end no term: what stands at the rim of a term's span in running text, nothing that itself is one.
# A rim word is one of these as a whole. Chinese and Japanese units may hold a particle and a part of the term (``の値``):
# ``ATTACHED_PARTICLES`` has what is cut off such a unit, before and after it, where Han, Katakana or Latin letters remain.
RIM_WORDS: dict[str, str] = {
    "en": """
        a about after all also an and another any are as at be because been before between both but by can could did
        do does during each either for from had has have how however if in into is it its may might more most must no
        nor not of on only or other our over per should so some such than that the their them then there these they
        this those through to under until up us use used using via was we were what when where whether which while who
        will with within without would you your""",
    "de": """
        ab aber alle allem allen aller alles als also am an andere anderen auch auf aus bei beim bis da damit dann das
        dass dem den denen der deren des dessen die dies diese diesem diesen dieser dieses doch durch ein eine einem
        einen einer eines er es für gegen haben hat hier ihr ihre ihrem ihren ihrer ihres im in indem ins ist jede
        jedem jeden jeder jedes kann keine keinen können man mehr mehrere mit müssen muss nach nicht noch nur ob oder
        ohne pro sein seine sich sie sind so sodass sollte sollten über um und unter vom von vor war was wenn werden
        wie wird wo wurde wurden zu zum zur zwischen""",
    "zh": """
        的 了 和 与 或 及 以及 或者 并且 而 是 为 在 于 从 到 由 被 将 把 对 对于 以 其 此 该 这 这个 这些 那 那个 您
        你 我们 他们 它 它们 一个 一种 一些 某个 每个 各个 所有 任何 中的 上的 下的 可以 能够 应该 需要 必须 也 还 都
        就 则 若 若要 如果 请 让 向 通过 之间 等 用于 使用 进行 具有 包含 包括 提供 有关 关于 根据 按照 例如 但 但是
        因此 因为 由于 然后 同时 另外""",
    "ja": """
        の は を が に へ と で も や から まで より には では とは にも でも との への での からの までの として
        について による により によって に対して に対する に関する という といった など または および かつ この その
        あの これ それ こと もの ため 場合 とき です ます ました ません でした だ である であり する します した して
        され される されます された されて されている している しています できます できる いる います ある あります
        ない なる なります を使用 ください すべて すべての 各 さらに また ただし たとえば 例えば 次の 次に 以下の""",
}
# What is cut off before, and after, the rest of a unit.
ATTACHED_PARTICLES: dict[str, tuple[str, str]] = {
    "zh": (
        """的 了 和 与 或 及 是 被 将 该 此 一个 每个 这个 这些 所有 任何 如果 若要 以及 或者""",
        """的 了 和 与 或 及 是 在 将 等 中的 上的""",
    ),
    "ja": (
        """の は を が に へ と で も や から まで より には では との への での からの として この その これらの
        すべての 各 次の""",
        """の は を が に へ と で も や から まで より には では とは との への での からの として について による
        により という など または および です ます する します した して され される されます された されて している
        しています しました できます を使用して である であり な""",
    ),
}


def _word_set(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Words of all texts that are no term by themselves: numbers, and what says when, how much, whether, how surely.
GENERAL_WORDS = _word_set(
    """one two three four five six seven eight nine ten eleven twelve hundred thousand million billion first second third
    fourth fifth last next many much few several various another every everything everyone something someone anything
    anyone nothing nobody himself herself itself themselves myself yourself never always often sometimes usually
    already still again once twice soon later earlier now today yesterday tomorrow here away back together almost
    nearly just even quite rather very too enough less least yet ever else instead perhaps maybe although though
    unless since therefore thus hence moreover furthermore additionally alternatively otherwise meanwhile finally
    especially particularly generally currently recently previously well good better best new old long short big great
    little small large high low same different own whole able want like know think say said says make makes made take
    takes taken took get gets got go goes going went come comes came see seen saw give gives given gave put keep let
    seem seems become became means mean don't doesn't can't won't isn't aren't wasn't didn't you're it's that's
    there's let's please yes okay according regarding including due lot lots kind thing things way ways ein eins zwei
    drei vier fünf sechs sieben acht neun zehn elf zwölf hundert tausend millionen milliarden erste ersten erster
    erstes zweite zweiten zweiter dritte dritten letzte letzten letzter letztes nächste nächsten nächster viele vielen
    vieler viel wenig wenige einige einigen einiger etwas nichts niemand jemand selbst nie niemals immer oft manchmal
    bereits schon wieder einmal bald später früher jetzt heute gestern morgen zurück zusammen fast sogar ganz sehr
    genug weniger jemals sonst stattdessen vielleicht obwohl daher deshalb somit außerdem zudem darüber alternativ
    andernfalls inzwischen schließlich insbesondere besonders allgemein derzeit kürzlich zuvor gut gute guten besser
    neu neue neuen neuer neues alt alte alten lang lange langen kurz groß große großen klein kleine kleinen hoch hohe
    hohen gleich gleiche gleichen verschiedene verschiedenen eigene eigenen möchten wollen weiß wissen denken sagen
    sagt sagte machen macht gemacht nehmen gehen geht ging kommen kommt kam sehen geben gibt gab bekommen scheint
    bedeutet gemäß einschließlich aufgrund bitte ja nein"""
)

# Adjectives that point to something in the text, and verbs of speech: no term of several words begins with one.
LEADING_WORDS = _word_set(
    """said says sagte sagt following same different next last several many much few various other others such certain
    respective above below previous current existing specific additional entire own new particular similar
    corresponding folgende folgenden folgender folgendes folgendem gleiche gleichen gleicher gleiches verschiedene
    verschiedenen verschiedener nächste nächsten nächster nächstes letzte letzten letzter letztes viele vielen vieler
    mehrere mehreren weitere weiteren weiterer weiteres bestimmte bestimmten bestimmter bestimmtes jeweilige
    jeweiligen jeweiliger obige obigen vorherige vorherigen aktuelle aktuellen vorhandene vorhandenen zusätzliche
    zusätzlichen gesamte gesamten eigene eigenen neue neuen neuer neues ähnliche ähnlichen entsprechende
    entsprechenden spezifische spezifischen multiple"""
)


@lru_cache(maxsize=2)
def rim_words(japanese: bool) -> frozenset[str]:
    """Return the boundary stopwords of Japanese, or those of the other languages."""
    return frozenset(" ".join(words for code, words in RIM_WORDS.items() if code != ("zh" if japanese else "ja")).split())


@lru_cache(maxsize=2)
def fused_rims(japanese: bool) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return patterns of the particles at the beginning and the end of a run of Han and Kana, the longest first.

    In Japanese a particle matches only beside other characters than Hiragana, to which it may belong.
    """
    before, after = (
        "|".join(sorted(words.split(), key=lambda word: (-len(word), word)))
        for words in ATTACHED_PARTICLES["ja" if japanese else "zh"]
    )
    if japanese:
        return re.compile(rf"(?:{before})(?=[^ぁ-ゖ])"), re.compile(rf"(?<=[^ぁ-ゖ])(?:{after})$")
    return re.compile(f"(?:{before})(?=.)"), re.compile(f"(?<=.)(?:{after})$")


# Words that only look as if a particle stood before or after them.
_WHOLE = {
    *(
        "特に",
        "最も",
        "既に",
        "主に",
        "更に",
        "単に",
        "遂に",
        "常に",
        "次に",
        "共に",
        "実に",
        "誠に",
        "故に",
        "主な",
        "大した",
    ),
    *(
        "決して",
        "概して",
        "この頃",
        "各地",
        "各国",
        "各種",
        "各自",
        "各位",
        "対する",
        "関する",
        "称する",
        "達する",
        "愛する",
        "我が",
    ),
}


def has_particle(text: str) -> bool:
    """Return True if a run of Japanese is a word with particles before or after it."""
    before, after = fused_rims(True)
    return text not in _WHOLE and (before.match(text) or after.search(text)) is not None


# Words that most sentences of a language have one of, and few of another one do.
_FREQUENT = {
    "en": _word_set("the of and to is that for with are it this be as not have from by you he at which"),
    "de": _word_set("der das und ist nicht den mit von zu ein eine auf für sich des dem im auch wird sind es als bei"),
}


def likely_language(text: str) -> str:
    """Return which of the languages a text is likely in, by its script and its most frequent words; "" if unknown.

    What is not in Latin letters, Han or Kana is named by the Unicode name of its script, as in ``cyrillic``. The first 400
    characters are looked at.
    """
    text = text[:400]
    letters = [character for character in text if character.isalpha()]
    cjk = sum(stop - start for start, stop in cjk_runs(text))
    if letters and 2 * cjk >= len(letters):
        if has_kana(text):
            return "ja"
        return "zh" if len(text) > _HAN_ALONE or not set(text).isdisjoint(_SENTENCE_MARKS) else ""
    words = text.lower().split()
    counts = {code: sum(word in frequent for word in words) for code, frequent in _FREQUENT.items()}
    best = max(counts, key=counts.__getitem__)
    if counts[best] > sum(counts.values()) - counts[best]:
        return best
    if letters and not any(character < "\u0250" for character in letters) and not cjk:
        return unicodedata.name(letters[0], "").partition(" ")[0].lower()
    return ""


_OTHER_DETECTED = ("fr", "es", "it", "pt", "nl", "ru", "ko")
_DISTANCE = 0.1  # by which another language's probability must exceed the own one's
_HAN_ALONE = 12  # characters; a longer Japanese text has Kana
_SENTENCE_MARKS = "。，、！？；：“”"


@lru_cache(maxsize=1)
def _lingua() -> tuple[Any, dict[str, Any]]:
    """Return the detector, which loads its models when first used, and its name of each of our languages."""
    with needs("lingua-language-detector", "languages", "language detection"):
        import lingua
    codes = {code: getattr(lingua.IsoCode639_1, code.upper()) for code in (*LANGUAGES, *_OTHER_DETECTED)}
    names = {code: lingua.Language.from_iso_code_639_1(codes[code]) for code in LANGUAGES}
    return lingua.LanguageDetectorBuilder.from_iso_codes_639_1(*codes.values()).build(), names


def detector() -> str:
    """Return a fingerprint of language detection: the library, its version, and the languages."""
    _lingua()
    return f"lingua {version('lingua-language-detector')} {' '.join((*LANGUAGES, *_OTHER_DETECTED))} {_DISTANCE}"


def in_other_language(texts: Sequence[str], language: str, threads: int = 1) -> np.ndarray:
    """Return bool (n,), True for texts in another language than ``language``; the answer depends on the text alone.

    With one thread the calling thread does all; with more, the library's own threads do, of which there are as many as
    processors (or ``RAYON_NUM_THREADS``). DependencyError: ``lingua-language-detector`` is not installed.
    """
    found, names = _lingua()
    if threads > 1:
        values = found.compute_language_confidence_values_in_parallel(list(texts))
    else:
        values = [found.compute_language_confidence_values(text) for text in texts]
    out = np.zeros(len(texts), bool)
    for row, (text, confidences) in enumerate(zip(texts, values, strict=True)):
        own = next(one.value for one in confidences if one.language == names[language])
        out[row] = confidences[0].value - own >= _DISTANCE
        if out[row] and language == "ja" and confidences[0].language == names["zh"]:
            out[row] = len(text) > _HAN_ALONE or has_kana(text) or not set(text).isdisjoint(_SENTENCE_MARKS)
    return out


_NUMBER = re.compile(r"\d+(?:[.,'’٬ ](?=\d{3}(?!\d))\d{3})*")
_SEPARATOR = re.compile(r"\D")
_WORD = re.compile(r"[^\W\d_]+")

_ENGLISH, _GERMAN, _ENGLISH_TENS, _GERMAN_TENS = map(
    str.split,
    (
        "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
        "eighteen nineteen",
        "null eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn sechzehn siebzehn "
        "achtzehn neunzehn",
        "twenty thirty forty fifty sixty seventy eighty ninety",
        "zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig",
    ),
)
_ENGLISH_ORDINALS = {"first": 1, "second": 2, "third": 3, "fifth": 5, "eighth": 8, "ninth": 9, "twelfth": 12}
_GERMAN_ORDINALS = {"erst": 1, "dritt": 3, "siebt": 7, "acht": 8}
_MONTHS = (
    ("january", "januar", "jänner"),
    ("february", "februar"),
    ("march", "märz"),
    ("april",),
    ("may", "mai"),
    ("june", "juni"),
    ("july", "juli"),
    ("august",),
    ("september",),
    ("october", "oktober"),
    ("november",),
    ("december", "dezember"),
)
# What a German number is followed by within a word: an ordinal's ending, or a noun counted by it.
_GERMAN_ENDING = r"(?:s?t?e[nmrs]?|fach\w*|mal\w*|jährig\w*|tägig\w*|köpfig\w*|stellig\w*|teilig\w*|monatig\w*|stündig\w*)"
_SIZES = {
    **{"hundred": 100, "hundert": 100, "百": 100, "thousand": 1000, "tausend": 1000, "千": 1000, "万": 10**4, "萬": 10**4},
    **{"million": 10**6, "millions": 10**6, "millionen": 10**6, "mio": 10**6, "亿": 10**8, "億": 10**8},
    **{"billion": 10**9, "billions": 10**9, "milliarde": 10**9, "milliarden": 10**9, "mrd": 10**9},
}
_SIZED = re.compile(  # not from within a number, from which it could only match what it does from its first digit
    r"(?<!\d)(\d+(?:[.,]\d{3}(?!\d))*)(?:[.,](\d+))?[ -]?("
    + "|".join(sorted(_SIZES, key=len, reverse=True))
    + r")(?![a-zäöüß])",
    re.IGNORECASE,
)
_HAN_DIGITS = {digit: value for value, digit in enumerate("〇一二三四五六七八九")} | {"零": 0, "两": 2, "兩": 2}
_HAN_UNITS = {"十": 10, "百": 100, "千": 1000, "万": 10**4, "萬": 10**4, "亿": 10**8, "億": 10**8}
_HAN_NUMBER = re.compile(f"[{''.join(_HAN_DIGITS)}{''.join(_HAN_UNITS)}]+")
_CLOCK = re.compile(r"\b[ap]\.? ?m\b|\d:\d\d|uhr|o.clock|noon|midnight|[时時点點]|午[前后後]|上午|下午", re.IGNORECASE)


@lru_cache(maxsize=1)
def _words() -> dict[str, int]:
    """The English and German words for numbers up to a hundred, ordinals, and months."""
    found = {word: value for words in (_ENGLISH, _GERMAN) for value, word in enumerate(words)}
    found |= dict.fromkeys(("ein", "eine", "einen", "einem", "einer", "eines", "once", "einmal", "single"), 1)
    found |= {"twice": 2, "zwo": 2, "both": 2, "beide": 2, "half": 30, "halb": 30, "hundred": 100, "hundert": 100}
    found |= {"noon": 12, "midnight": 12, "mittag": 12, "mitternacht": 12, "dozen": 12, "dutzend": 12}
    for tens, (english, german) in enumerate(zip(_ENGLISH_TENS, _GERMAN_TENS, strict=True), 2):
        found[english] = found[german] = found[english[:-1] + "ieth"] = 10 * tens
        for one in range(1, 10):
            german_one = "ein" if one == 1 else _GERMAN[one]
            found[f"{german_one}und{german}"] = found[english + _ENGLISH[one]] = 10 * tens + one
    found |= {f"{word}th": value for value, word in enumerate(_ENGLISH) if value > 3}
    found |= {name: month for month, names in enumerate(_MONTHS, 1) for name in names}
    return found | _ENGLISH_ORDINALS


@lru_cache(maxsize=1)
def _german_start() -> re.Pattern[str]:
    """A German number inside a longer word: siebten, siebenjährig."""
    stems = {word: value for word, value in _words().items() if word in _GERMAN[2:] or word.endswith("zig")}
    stems |= _GERMAN_ORDINALS
    return re.compile(f"({'|'.join(sorted(stems, key=len, reverse=True))}){_GERMAN_ENDING}")


def _han_value(text: str) -> int:
    """Return the value of a number in Han: positional (二〇二四), or with units (三百二十)."""
    if not any(character in _HAN_UNITS for character in text):
        return int("".join(str(_HAN_DIGITS[character]) for character in text))
    total, section, digit = 0, 0, 0
    for character in text:
        unit = _HAN_UNITS.get(character, 0)
        if not unit:
            digit = _HAN_DIGITS[character]
        elif unit < 10**4:
            section, digit = section + (digit or 1) * unit, 0
        else:
            total, section, digit = total + (section + digit or 1) * unit, 0, 0
    return total + section + digit


def numbers_in_words(text: str) -> set[int]:
    """Return the numbers in words in a text: cardinals and ordinals to a hundred, months, Han numerals."""
    plain, found = unicodedata.normalize("NFKC", text).lower(), set()
    words = _WORD.findall(plain)
    pairs = [a + b for a, b in pairwise(words)]  # twenty-one
    for word in (*words, *pairs):
        if (value := _words().get(word)) is not None:
            found.add(value)
        elif match := _german_start().fullmatch(word):
            found.add({**_words(), **_GERMAN_ORDINALS}[match[1]])
    return found | {_han_value(match) for match in _HAN_NUMBER.findall(plain) if len(match) <= 20}


def _plain(digits: str) -> str:
    bare = _SEPARATOR.sub("", digits)
    return (bare if bare.isascii() else "".join(str(unicodedata.decimal(digit)) for digit in bare)).lstrip("0") or "0"


def _written(text: str) -> Counter[str]:
    return Counter(map(_plain, _NUMBER.findall(text)))


def written_numbers(text: str) -> Counter[str]:
    """Count the numbers in digits in a text: as ASCII, without separators of thousands and leading zeros."""
    return _written(unicodedata.normalize("NFKC", text))


def _at_full_length(match: re.Match[str]) -> str:
    """Write a number with a word for its magnitude in digits alone, if it is a whole one: 1.5 million is 1500000."""
    whole, fraction, size = _plain(match[1]), match[2] or "", _SIZES[match[3].lower()]
    zeros = len(str(size)) - 1
    if len(fraction) > zeros:
        return match[0]
    return (whole + fraction.ljust(zeros, "0")) + " "


def _same_hours(left: Counter[str], right: Counter[str]) -> bool:
    """Match the numbers left on both sides as hours of the clock: 7 and 19, 12 and 0."""
    hours = [[hour for hour in side.elements() if hour != "0"] for side in (left, right)]  # 7 p.m. is 19:00
    if len(hours[0]) != len(hours[1]) or any(len(hour) > 2 for side in hours for hour in side):
        return False
    rests = [sorted(int(hour) % 12 for hour in side) for side in hours]
    return rests[0] == rests[1] and all(int(hour) <= 24 for side in hours for hour in side)


def same_numbers(source: str, target: str) -> bool:
    """Return True if two texts, in any two of the four languages, have the same numbers, in any order.

    Example:
        >>> same_numbers("We open at 7 a.m.", "Wir öffnen um sieben."), same_numbers("page 12", "Seite 14")
        (True, False)
    """
    texts = [unicodedata.normalize("NFKC", text) for text in (source, target)]
    digits = [_written(text) for text in texts]
    if digits[0] == digits[1]:
        return True
    at_length = [_written(_SIZED.sub(_at_full_length, text)) for text in texts]
    if at_length[0] == at_length[1]:
        return True
    in_words = cache(lambda side: numbers_in_words(texts[side]))  # which takes longest, and is seldom asked of both
    for source_digits, target_digits in (digits, at_length):
        left, right = source_digits - target_digits, target_digits - source_digits
        if left and right and _same_hours(left, right) and all(map(_CLOCK.search, texts)):
            return True
        # What one side lacks in digits it has in words; no words say a number of 20 digits.
        if all(
            len(number) < 20 and int(number) in in_words(side) for side, own in ((1, left), (0, right)) for number in own
        ):
            return True
    return False
