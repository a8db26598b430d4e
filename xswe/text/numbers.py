"""Numbers of a text, in digits or in words, and whether two texts have the same."""

from __future__ import annotations

import logging
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable
from functools import cache, lru_cache
from itertools import chain, pairwise, product

import numpy as np

from xswe.io.ragged import Texts, concatenate
from xswe.text.compiled.numbers import (
    DECADE,
    ENDINGS,
    ENDS,
    GOES_ON,
    HAN,
    LATIN,
    LETTER,
    MANY,
    MORE,
    MOST,
    ODD,
    OTHER,
    REWRITTEN,
    SAME,
    SIZES,
    UNDECIDED,
    WORDS,
    ZEROS,
    compare_numbers,
)
from xswe.text.languages import LANGUAGES

logger = logging.getLogger(__name__)
IN_WORDS = frozenset(("en", "de", "zh", "ja"))  # languages with known number words
_NUMBER = re.compile(r"\d+(?:[.,'’٬ ](?=\d{3}(?!\d))\d{3})*")
_SEPARATOR = re.compile(r"\D")
_WORD = re.compile(r"[^\W\d_]+")
_MAX_FIRST_LETTER = "ü"  # English and German words begin with this letter or an earlier one
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
    ("january", "januar", "jänner", "jan"),
    ("february", "februar", "feb"),
    ("march", "märz", "mar", "mrz"),
    ("april", "apr"),
    ("may", "mai"),
    ("june", "juni", "jun"),
    ("july", "juli", "jul"),
    ("august", "aug"),
    ("september", "sep", "sept"),
    ("october", "oktober", "oct", "okt"),
    ("november", "nov"),
    ("december", "dezember", "dec", "dez"),
)
# What may follow a German number within a word: the ending of an ordinal, or a counted noun.
_COUNTED = ("fach", "mal", "jährig", "tägig", "köpfig", "stellig", "teilig", "monatig", "stündig")
_GERMAN_ENDING = rf"(?:s?t?e[nmrs]?|(?:{'|'.join(_COUNTED)})\w*)"
_SIZES = {
    **{"hundred": 100, "hundert": 100, "百": 100, "thousand": 1000, "tausend": 1000, "千": 1000, "万": 10**4, "萬": 10**4},
    **{"million": 10**6, "millions": 10**6, "millionen": 10**6, "mio": 10**6, "亿": 10**8, "億": 10**8},
    **{"billion": 10**9, "billions": 10**9, "milliarde": 10**9, "milliarden": 10**9, "mrd": 10**9, "bn": 10**9},
    **{"trillion": 10**12, "trillions": 10**12, "tn": 10**12, "兆": 10**12, "k": 1000, "m": 10**6},
}
_COUNTED_SIZES = ("hundred", "thousand", "million", "hundert", "tausend", "millionen")  # two hundred, zweihundert
_SIZED = re.compile(  # only from the first digit of a number
    r"(?<!\d)(\d+(?:[.,]\d{3}(?!\d))*)(?:[.,](\d+))?[ -]?("
    + "|".join(sorted(_SIZES, key=len, reverse=True))
    + r")(?![a-zäöüß])",
    re.IGNORECASE,
)
_HAN_DIGITS = {digit: value for value, digit in enumerate("〇一二三四五六七八九")} | {"零": 0, "两": 2, "兩": 2}
_HAN_UNITS = {"十": 10, "百": 100, "千": 1000, "万": 10**4, "萬": 10**4, "亿": 10**8, "億": 10**8}
_HAN_NUMBER = re.compile(f"[{''.join(_HAN_DIGITS)}{''.join(_HAN_UNITS)}]+")
_PART = re.compile(r"[\d,]+|[^\d ]")
_PLACED = "[百千万萬亿億兆]"
_PLACES = rf"\d{{1,15}}(?:,\d{{3}}){{0,5}} ?{_PLACED}"
_ONES = r"\d{1,4}(?![\d年月日時时点分秒])"
# 1万7千631, 5億4千万, 4 億 7,900 万
_MIXED = re.compile(rf"(?<![\d.,]){_PLACES}(?:(?: ?{_PLACES}| ?{_PLACED})+(?:{_ONES})?|{_ONES})")
_TENTHS = re.compile(f"([{''.join(_HAN_DIGITS)}])[成割]")  # 八成: eight tenths
_DECADES = ("decade", "decades", "jahrzehnt", "jahrzehnte", "jahrzehnten")
_ERAS = {"明治": 1867, "大正": 1911, "昭和": 1925, "平成": 1988, "令和": 2018}  # the year before each begins
_DATE = r"(?:\d{1,2}月)?(?:\d{1,2}日)?"
_ERA_YEAR = r"(?P<era>[㐀-鿿]{2,4})(?P<year>\d{1,2}|元)年?" + _DATE


def _summed(parts: Iterable[tuple[int, int]]) -> int:
    """Return the value of a number with units, given (unit, 0) for each unit and (0, number) for each number."""
    total, section, digit = 0, 0, 0
    for unit, value in parts:
        if not unit:
            digit = value
        elif unit < 10**4:
            section, digit = section + (digit or 1) * unit, 0
        else:
            total, section, digit = total + (section + digit or 1) * unit, 0, 0
    return total + section + digit


def _in_digits(match: re.Match[str]) -> str:
    """Convert a number of digits and Han units to digits: 1万7千631 is 17631."""
    parts = _PART.findall(match[0])
    return str(_summed((0, int(part.replace(",", ""))) if part[0].isdecimal() else (_SIZES[part], 0) for part in parts))


def _one_year(match: re.Match[str]) -> str:
    """Remove the year of an era next to that of the calendar, unless the two are known to differ."""
    before = _ERAS.get(match["era"][-2:])
    year = 1 if match["year"] == "元" else int(match["year"])
    return match["date"] if before is None or abs(before + year - int(match["common"])) <= 1 else match[0]


# Rewritings of years and shares to how other languages write them; each first names a substring that it requires.
_REWRITTEN: list[tuple[str, re.Pattern[str], str | Callable[[re.Match[str]], str]]] = [
    ("(", re.compile(rf"{_ERA_YEAR} ?\((?P<date>(?P<common>\d{{3,4}})年)"), _one_year),  # 明治44年(1911年)
    ("(", re.compile(rf"(?P<date>(?P<common>\d{{3,4}})年{_DATE}) ?\({_ERA_YEAR}"), _one_year),  # 1994年(平成6年)
    ("年", re.compile(f"({'|'.join(_ERAS)})(\\d{{1,2}})年"), lambda match: f"{_ERAS[match[1]] + int(match[2])}年"),
    (
        "世",
        re.compile(r"(\d\d) ?世[纪紀] ?([2-9]0) ?年代"),
        lambda match: f"{int(match[1]) - 1}{match[2]}年代",  # 20世纪70年代
    ),
    ("年代", re.compile(r"(?<!\d)([2-9]0)(?= ?年代)"), r"19\1"),
    ("00", re.compile(r"(?<!\d)(1\d)00(?=s\b| ?年代|er Jahre)"), lambda match: str(int(match[1]) + 1)),  # the 1800s
    ("0er Jahre", re.compile(r"(?<!\d)([2-9]0)(?=er Jahre)"), r"19\1"),
    ("半", re.compile(r"(\d) ?[時点] ?半"), r"\1:30"),
    *((unit, _MIXED, _in_digits) for unit in "百千万萬億亿兆"),
    ("成", re.compile(r"(?<![\d.,])(\d) ?成(?!引)"), r"\g<1>0%"),
    ("割", re.compile(r"(?<![\d.,])(\d) ?割(?!引)"), r"\g<1>0%"),
]
_CLOCK = re.compile(
    r"(?<![a-z])[ap]\.? ?m\b|\d:\d\d|uhr|o.clock|noon|midnight|[时時点點]|午[前后後]|上午|下午", re.IGNORECASE
)


@lru_cache(maxsize=1)
def _words() -> dict[str, int]:
    """Values of English and German words: numbers up to a hundred, ordinals, and months."""
    found = {word: value for words in (_ENGLISH, _GERMAN) for value, word in enumerate(words)}
    found |= dict.fromkeys(("ein", "eine", "einen", "einem", "einer", "eines", "once", "einmal", "single"), 1)
    found |= {"twice": 2, "zwo": 2, "both": 2, "beide": 2, "half": 30, "halb": 30, "hundred": 100, "hundert": 100}
    found |= dict.fromkeys(_DECADES, 10) | dict.fromkeys(("century", "centuries", "jahrhundert", "jahrhunderte"), 100)
    found |= dict.fromkeys(("a", "an", "another", "each", "every", "per"), 1)  # in Japanese often counted: 1日2回
    found |= {"couple": 2, "pair": 2, "secondly": 2, "thirdly": 3, "quarter": 4}
    found |= dict.fromkeys(("teen", "teens", "teenage", "teenager", "teenagers"), 10)  # 10代
    found |= {"ii": 2, "iii": 3, "iv": 4, "vi": 6, "vii": 7, "viii": 8, "ix": 9}
    found |= {"noon": 12, "midnight": 12, "mittag": 12, "mitternacht": 12, "dozen": 12, "dutzend": 12}
    for tens, (english, german) in enumerate(zip(_ENGLISH_TENS, _GERMAN_TENS, strict=True), 2):
        found[english] = found[german] = found[english[:-1] + "ieth"] = found[english[:-1] + "ies"] = 10 * tens
        for one in range(1, 10):
            german_one = "ein" if one == 1 else _GERMAN[one]
            found[f"{german_one}und{german}"] = found[english + _ENGLISH[one]] = 10 * tens + one
    found |= {f"halb{hour}": (value - 1) or 12 for value, hour in enumerate(_GERMAN[1:13], 1)}  # halb drei: 2:30
    counted = ("a", "ein", *_ENGLISH[1:], *_GERMAN[1:], *_ENGLISH_TENS, *_GERMAN_TENS)
    found |= {word + size: found[word] * _SIZES[size] for word in counted for size in _COUNTED_SIZES}
    found |= {f"{word}{end}": value for value, word in enumerate(_ENGLISH) if value > 3 for end in ("th", "ths")}
    found |= {"halves": 2, "squared": 2, "cubed": 3, "quarters": 4}
    found |= {f"{word}s": value for word, value in _ENGLISH_ORDINALS.items() if value > 2}  # fractions: two thirds
    found |= {f"{stem}el": value for stem, value in _GERMAN_ORDINALS.items() if value > 2}  # drittel
    found |= {f"{_GERMAN[value]}tel": value for value in (4, 5, 6, 9, 10)}
    found |= dict.fromkeys(("onehalf", "ahalf", "halfa", "halfof", "halfthe", "hälfte"), 2)  # 2分の1; "half" alone is 30
    found |= {name: month for month, names in enumerate(_MONTHS, 1) for name in names}
    return found | _ENGLISH_ORDINALS


def _german_stems() -> dict[str, int]:
    """Values of stems of German words that contain a number: siebten, siebenjährig."""
    stems = {word: value for word, value in _words().items() if word in _GERMAN[2:] or word.endswith(("zig", "ßig"))}
    return stems | _GERMAN_ORDINALS


@lru_cache(maxsize=1)
def _german_start() -> re.Pattern[str]:
    """The pattern of a German number within a longer word."""
    return re.compile(f"({'|'.join(sorted(_german_stems(), key=len, reverse=True))}){_GERMAN_ENDING}")


def _han_value(text: str) -> int:
    """Return the value of a number in Han numerals: positional (二〇二四), or with units (三百二十)."""
    if not any(character in _HAN_UNITS for character in text):
        return int("".join(str(_HAN_DIGITS[character]) for character in text))
    return _summed((_HAN_UNITS.get(character, 0), _HAN_DIGITS.get(character, 0)) for character in text)


def numbers_in_words(text: str) -> set[int]:
    """Return the numbers in words in a text: cardinals and ordinals to a hundred, months, Han numerals."""
    plain, found, known, german = _normalised(text).lower(), set(), _words(), _german_start()
    words = _WORD.findall(plain)
    pairs = [a + b for a, b in pairwise(words) if a[0] <= _MAX_FIRST_LETTER >= b[0]]  # twenty-one
    for word in (*words, *pairs):
        if word[0] > _MAX_FIRST_LETTER:
            continue
        if (value := known.get(word)) is not None:
            found.add(value)
        elif match := german.fullmatch(word):
            found.add({**known, **_GERMAN_ORDINALS}[match[1]])
    found |= {10 * known[a] for a, b in pairwise(words) if b in _DECADES and a in known}
    found |= {10 * _HAN_DIGITS[digit] for digit in _TENTHS.findall(plain)}
    return found | {_han_value(match) for match in _HAN_NUMBER.findall(plain) if len(match) <= 20}


@cache
def check_numbers_in_words(languages: tuple[str, ...]) -> None:
    """Log, once, the languages whose number words are unknown."""
    if unknown := [LANGUAGES[code].name for code in languages if code not in IN_WORDS]:
        logger.warning("in %s, only numbers in digits are recognised, not in words", " and ".join(unknown))


def _plain(digits: str) -> str:
    bare = _SEPARATOR.sub("", digits)
    return (bare if bare.isascii() else "".join(str(unicodedata.decimal(digit)) for digit in bare)).lstrip("0") or "0"


def _written(text: str) -> Counter[str]:
    return Counter(map(_plain, _NUMBER.findall(text)))


def _normalised(text: str) -> str:
    return unicodedata.normalize("NFKC", text)


def written_numbers(text: str) -> Counter[str]:
    """Count a text's numbers in digits: as ASCII, without thousands separators and leading zeros."""
    return _written(_normalised(text))


def _rewritten(plain: str) -> str:
    """Rewrite years and shares in a normalised text as other languages write them."""
    for needed, number, other in _REWRITTEN:
        if needed in plain:
            plain = number.sub(other, plain)
    return plain


def _at_full_length(match: re.Match[str]) -> str:
    """Convert a number with a word for its magnitude to digits if it is an integer: 1.5 million is 1500000."""
    whole, fraction, size = _plain(match[1]), match[2] or "", _SIZES[match[3].lower()]
    zeros = len(str(size)) - 1
    if len(fraction) > zeros:
        return match[0]
    return (whole + fraction.ljust(zeros, "0")) + " "


def _same_hours(left: Counter[str], right: Counter[str]) -> bool:
    """Return True if the remaining numbers of both sides match as hours of the clock: 7 and 19, 12 and 0."""
    hours = [[hour for hour in side.elements() if hour != "0"] for side in (left, right)]  # 7 p.m. is 19:00
    if len(hours[0]) != len(hours[1]) or any(len(hour) > 2 for side in hours for hour in side):
        return False
    rests = [sorted(int(hour) % 12 for hour in side) for side in hours]
    return rests[0] == rests[1] and all(int(hour) <= 24 for side in hours for hour in side)


def _comparison(source: str, target: str) -> int:
    """Compare the numbers of two texts like :func:`compare_numbers`, in any order."""
    texts = [_normalised(source), _normalised(target)]
    digits = [_written(text) for text in texts]
    if digits[0] == digits[1]:
        return SAME
    texts = list(map(_rewritten, texts))
    at_length = [_written(_SIZED.sub(_at_full_length, text)) for text in texts]
    if at_length[0] == at_length[1]:
        return SAME
    in_words = [numbers_in_words(text) for text in texts]
    for source_digits, target_digits in (digits, at_length):
        left, right = source_digits - target_digits, target_digits - source_digits
        if left and right and _same_hours(left, right) and all(map(_CLOCK.search, texts)):
            return SAME
        # Numbers that a side lacks in digits may be there in words.
        found = _values(left) <= in_words[1], _values(right) <= in_words[0]
        if all(found):
            return SAME
    if not any(found):
        return OTHER
    side = found.index(True)  # in digits it has no others; in words it may
    known = in_words[1 - side] | _values(digits[1 - side]) | _values(at_length[1 - side])
    return MORE if in_words[side] <= known else OTHER


def _values(numbers: Iterable[str]) -> set[int]:
    """Return the values of numbers in digits; -1 stands for those of 20 digits and more, which no words have."""
    return {int(number) if len(number) < 20 else -1 for number in numbers}


def same_numbers(source: str, target: str) -> bool:
    """Return True if two texts, in any two languages, have the same numbers, in any order.

    Example:
        >>> same_numbers("We open at 7 a.m.", "Wir öffnen um sieben."), same_numbers("page 12", "Seite 14")
        (True, False)
    """
    return _comparison(source, target) == SAME


def have_same_numbers(source: Texts, target: Texts) -> np.ndarray:
    """Return which pairs of texts have the same numbers, bool (n,): :func:`same_numbers` of each, in compiled code."""
    return compared_numbers(source, target) == SAME


def compared_numbers(source: Texts, target: Texts) -> np.ndarray:
    """Return uint8 (n,): whether both texts of a pair have the SAME numbers, one has MORE, or each has OTHER ones."""
    found = _compared(source, target)
    if len(rows := np.flatnonzero(found == REWRITTEN)):
        pairs = source.take(rows), target.take(rows)
        found[rows] = _compared(*pairs, *(Texts.of([_rewritten(_normalised(text)) for text in side]) for side in pairs))
    for row in np.flatnonzero(found == UNDECIDED).tolist():
        found[row] = _comparison(source[row], target[row])
    return found


def _compared(*sides: Texts) -> np.ndarray:
    """Return the result of :func:`compare_numbers` for both sides, optionally followed by both sides rewritten."""
    room = np.empty((4, MOST), np.int32), np.empty(MOST, np.uint8), np.empty((8, MANY), np.int64), np.empty(8, np.int64)
    out = np.empty(len(sides[0]), np.uint8)
    compare_numbers(*concatenate(sides).frozen, *_tables(), *room, out)
    return out


@lru_cache(maxsize=1)
def _tables() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the tables of :func:`compare_numbers`: characters, tries of words, and values of their nodes."""
    endings = {"".join(parts): ENDS for parts in product(("", "s"), ("", "t"), "e", ("", *"nmrs"))}
    endings |= dict.fromkeys(_COUNTED, GOES_ON)
    sizes = {word: len(str(value)) - 1 for word, value in _SIZES.items()}
    latin = {word: zeros for word, zeros in sizes.items() if word[0] <= _MAX_FIRST_LETTER}
    letters = sorted({*"abcdefghijklmnopqrstuvwxyzäöüß"})
    places = {letter: place for place, letter in enumerate(letters, 1)}
    nodes: list[dict[str, int]] = [{}, {}, {}, {}]
    values: list[list[int]] = [[-1] * 3 for _ in nodes]
    given = (WORDS, 0, _words()), (WORDS, 1, _german_stems()), (WORDS, 2, dict.fromkeys(_DECADES, DECADE))
    for root, kind, words in (*given, (ENDINGS, 2, endings), (SIZES, 0, latin)):
        for word, value in words.items():
            node = root
            for letter in word:
                node = nodes[node].setdefault(letter, len(nodes))
                if node == len(nodes):
                    nodes.append({})
                    values.append([-1] * 3)
            values[node][kind] = value
    children = np.zeros((len(nodes), len(letters) + 1), np.uint16)
    for node, below in enumerate(nodes):
        for letter, child in below.items():
            children[node, places[letter]] = child
    known = np.arange(1 << 16, dtype=np.int32) | LETTER  # the default, right for Han and Hangul, which are the most
    zeros = {unit: len(str(value)) - 1 for unit, value in (_SIZES | _HAN_UNITS).items() if unit > _MAX_FIRST_LETTER}
    others = range(0x4E00), range(0x9FA6, 0xAC00), range(0xD7A4, 1 << 16), map(ord, _HAN_DIGITS), map(ord, zeros)
    for code in chain(*others):
        known[code] = _known(chr(code), places, zeros)
    return known, children, np.ascontiguousarray(np.array(values, np.int32).T)


def _known(character: str, places: dict[str, int], zeros: dict[str, int]) -> int:
    """Return a character's entry in the table for compiled code."""
    plain = _normalised(character)
    lower = plain.lower()
    if len(plain) != 1 or len(lower) != 1 or ord(plain) >> 16:
        return ODD
    # Combining characters, decimals of other scripts, and a letter that a case-insensitive pattern takes for an i.
    if unicodedata.category(plain)[0] == "M" or "\u1100" <= plain <= "\u11ff" or plain == "ı":
        return ODD
    if plain.isdecimal():
        return ord(plain) if plain.isascii() else ODD
    here = LETTER if plain.isalnum() else 0
    here |= places.get(lower, 0) << LATIN | zeros.get(plain, 0) << ZEROS if plain > "9" else 0
    return ord(plain) | here | (_HAN_DIGITS[plain] + 1 << HAN if plain in _HAN_DIGITS else 0)
