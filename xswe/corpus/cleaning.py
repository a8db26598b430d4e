"""The filters that clean a corpus, each optional, with its reason and count.

A pair is dropped for the first reason that applies, in the order of :data:`REASONS`. No filter depends on a pair's position
in its file: corpora are sorted by score or by document.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, Literal

import numpy as np

from xswe.bitext.kernels import characters, count_classes
from xswe.bitext.rows import Negatives, Rows, stripped
from xswe.bitext.seen import pair_hashes, text_hashes
from xswe.corpus.decontamination import EvaluationTexts
from xswe.corpus.near_duplicates import sketches
from xswe.errors import ConfigError
from xswe.io.ragged import Texts
from xswe.io.settings import check_choice, check_least, for_all, full_name
from xswe.text.detection import in_other_language
from xswe.text.languages import LANGUAGES
from xswe.text.scripts import cjk_runs, has_kana

REASONS = {
    "blank": "a side without text",
    "too long": "a side of more characters than corpus.max_characters",
    "too short": "a side of fewer characters than corpus.clean.min_characters",
    "few letters": "a side with a smaller share of letters than corpus.clean.letters: numbers, menus, addresses",
    "other script": "a side with a smaller share of letters in its language's script than corpus.clean.script",
    "length ratio": "one side has more than corpus.clean.ratio times the UTF-8 bytes of the other",
    "identical": "both sides are the same text",
    "low score": "the corpus's own score is below corpus.min_score",
    "evaluation text": "a side is a text of corpus.decontaminate",
    "evaluation text, normalised": "a side is such a text except for case, width, blanks and punctuation",
    "other language": "a side is in the wrong language, according to corpus.clean.language",
    "duplicate": "a repetition of an earlier pair",
    "near duplicate": "a pair that shares most of its character shingles with an earlier one",
    "hub": "a side that already occurs in corpus.clean.hubs pairs: boilerplate",
}
_BLANK, _LONG, _SHORT, _LETTERS, _SCRIPT, _RATIO, _SAME, _SCORE, _EXACT, _NORMALISED, _LANGUAGE, DUPLICATE, NEAR, HUB = (
    range(1, len(REASONS) + 1)
)
_OTHER, _LATIN, _HAN, _KANA, _LETTER, _SPACE = range(6)
_CJK_WEIGHT = 3  # a Han or Kana letter counts as three others; it also has three bytes
_CONTROL = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u00ad\u200b\u200e\u200f\u2028-\u202e\u2060-\u2064\u2066-\u206f\ufeff\ufffc\ufffd]+"
)
_WIDE = re.compile("[\uff01-\uff5e\u3000\uff61-\uff9f]+")
_BLANKS = re.compile(" {2,}")
Normal = Literal["", "NFC", "NFKC"]
Detector = Literal["", "lingua"]
DETECTS = for_all(Detector, {"": False, "lingua": True})


@dataclass(frozen=True)
class CleanConfig:
    """Filters in addition to blank, over-long and repeated pairs; all are off by default.

    Attributes:
        normalise: ``NFC`` or ``NFKC``, or "" to leave texts as they are.
        control: turn control and invisible formatting characters into a blank.
        width: convert full-width ASCII and half-width Kana to their usual forms (NFKC does this too, and more).
        simplify: convert traditional Chinese characters to simplified ones, on Chinese sides.
        min_characters: pairs with a shorter side are dropped.
        letters: least share of letters among the non-blank characters of a side.
        script: least share of the side's script among its letters (Latin; Han; Han and Kana for Japanese). On Chinese and
            Japanese sides, a Han or Kana letter counts as three, as words in Latin letters are so much longer.
        ratio: largest ratio of the two sides' sizes in UTF-8 bytes; 0 for any. In bytes, a sentence is about as long in
            Chinese and Japanese as in English.
        identical: drop pairs with identical sides.
        near_duplicates: drop pairs that share most shingles with an earlier one; all digits count as equal, for templates.
        hubs: most pairs in which a text may occur as a side; 0 for any number.
        language: ``lingua`` drops pairs with a side in another language, detected by the library of that name; "" for
            none. It sees only pairs that every other filter keeps, and is by far the slowest: about a thousand English or
            German sentences a second and core, ten thousand Chinese or Japanese ones.
    """

    normalise: Normal = ""
    control: bool = False
    width: bool = False
    simplify: bool = False
    min_characters: int = 0
    letters: float = 0.0
    script: float = 0.0
    ratio: float = 0.0
    identical: bool = False
    near_duplicates: bool = False
    hubs: int = 0
    language: Detector = ""

    def __post_init__(self) -> None:
        check_choice("corpus.clean.normalise", self.normalise, Normal)
        check_choice("corpus.clean.language", self.language, Detector)
        check_rules(self, "corpus.clean")


def check_rules(rules: Any, section: str = "") -> None:
    """Raise ConfigError if a number of the filters of pairs is impossible; ``section`` is theirs in a verb."""
    for name in ("letters", "script"):
        if not 0 <= (share := getattr(rules, name)) <= 1:
            raise ConfigError(f"{full_name(section, name)}={share}: give a share between 0 and 1")
    if rules.ratio and not rules.ratio >= 1:
        raise ConfigError(f"{full_name(section, 'ratio')}={rules.ratio}: give a factor of at least 1, or 0 for none")
    if not 0 <= rules.hubs < 255:
        raise ConfigError(f"{full_name(section, 'hubs')}={rules.hubs}: give a number between 0 and 254")
    check_least(rules, section, min_characters=0)


@dataclass(frozen=True, eq=False)
class Cleaned:
    """A block after the filters that judge each pair by itself."""

    rows: Rows  # the pairs, with normalised texts
    reason: np.ndarray  # uint8 (n,), 0 or the number of the reason to drop (from 1, in the order of ``REASONS``)
    keys: np.ndarray  # uint64 (n,), equal for equal pairs
    near: np.ndarray  # uint64 (n, bands), sketches; (n, 0) to keep near-duplicates
    sides: np.ndarray  # uint64 (n, 2), hashes of both sides; (n, 0) to keep hubs


class Cleaner:
    """Normalises a block of pairs and finds reasons to drop them; any thread may call it.

    ``evaluation`` has texts that must not be trained on. If ``threads`` is 1, languages are detected in the calling
    thread, else in all threads of the detector's library.
    """

    def __init__(
        self,
        languages: tuple[str, str],
        config: CleanConfig,
        max_characters: int,
        evaluation: EvaluationTexts | None = None,
        threads: int = 1,
    ) -> None:
        self._languages, self._config, self._evaluation = languages, config, evaluation
        self._max_characters, self._threads = max_characters, threads
        self._steps = [_steps(config, language) for language in languages]

    def __call__(self, rows: Rows, min_score: float | None = None) -> Cleaned:
        """Clean one block; pairs with a score below ``min_score`` are dropped."""
        sides = [_changed(side, step) for side, step in zip((rows.source, rows.target), self._steps, strict=True)]
        rows = Rows(sides[0], sides[1], rows.score, rows.skipped, self._fit(rows.negatives))
        reason = np.zeros(len(rows), np.uint8)
        for number, bad in self._checks(rows, min_score):
            reason[bad & (reason == 0)] = number
        if DETECTS[self._config.language]:
            for side, language in zip((rows.source, rows.target), self._languages, strict=True):
                left = np.flatnonzero(reason == 0)
                reason[left[in_other_language(list(side.take(left)), language, self._threads)]] = _LANGUAGE
        return self._keyed(rows, reason)

    def _fit(self, negatives: Negatives | None) -> Negatives | None:
        """Normalise negatives like targets, and leave out blank, over-long and evaluation texts."""
        if negatives is None:
            return None
        texts = _changed(negatives.texts[:], self._steps[1])
        kept = (texts.sizes > 0) & (_characters(texts) <= self._max_characters)
        if self._evaluation is not None:
            kept &= ~np.logical_or(*self._evaluation.known(texts))
        return Negatives(texts, negatives.bounds).where(kept)

    def hashed(self, rows: Rows) -> Cleaned:
        """Return pairs that were cleaned before with their keys."""
        return self._keyed(rows, np.zeros(len(rows), np.uint8))

    def _keyed(self, rows: Rows, reason: np.ndarray) -> Cleaned:
        hashes = [text_hashes(side) for side in (rows.source, rows.target)]
        none = np.empty((len(rows), 0), np.uint64)
        near = sketches(rows.source, rows.target) if self._config.near_duplicates else none
        return Cleaned(rows, reason, pair_hashes(*hashes), near, np.stack(hashes, 1) if self._config.hubs else none)

    def _checks(self, rows: Rows, min_score: float | None) -> list[tuple[int, np.ndarray]]:
        """Return each reason's number and a mask of the pairs it applies to."""
        config, sides = self._config, (rows.source, rows.target)
        sizes = [side.sizes for side in sides]
        counts = [_characters(side) for side in sides]
        out = [
            (_BLANK, np.minimum(*sizes) == 0),
            (_LONG, np.maximum(*counts) > self._max_characters),
            (_SHORT, np.minimum(*counts) < config.min_characters),
        ]
        if config.letters or config.script:
            classes = [_classes(side) for side in sides]
            if config.letters:
                letters = [one[:, _LATIN : _LETTER + 1].sum(1) for one in classes]
                written = [n - one[:, _SPACE] for n, one in zip(counts, classes, strict=True)]
                out.append((_LETTERS, _either(a < config.letters * b for a, b in zip(letters, written, strict=True))))
            if config.script:
                shares = (_of_script(one, language) for one, language in zip(classes, self._languages, strict=True))
                out.append((_SCRIPT, _either(own < config.script * letters for own, letters in shares)))
        if config.ratio:
            out.append((_RATIO, np.maximum(*sizes) > config.ratio * np.minimum(*sizes)))
        if config.identical:
            out.append((_SAME, text_hashes(sides[0]) == text_hashes(sides[1])))
        if min_score is not None:
            if rows.score is None:
                raise ConfigError("corpus.min_score: these files have no scores; name their column, {path: ..., score: 2}")
            out.append((_SCORE, ~(rows.score >= min_score)))
        if self._evaluation is not None:
            exact, normalised = zip(*(self._evaluation.known(side) for side in sides), strict=True)
            out += [(_EXACT, exact[0] | exact[1]), (_NORMALISED, normalised[0] | normalised[1])]
        return out


def _either(sides: Iterable[np.ndarray]) -> np.ndarray:
    return np.logical_or.reduce(list(sides))


def _characters(texts: Texts) -> np.ndarray:
    out = np.empty(len(texts), np.int64)
    characters(*texts.frozen, out)
    return out


def _classes(texts: Texts) -> np.ndarray:
    out = np.zeros((len(texts), 6), np.int64)
    count_classes(*texts.frozen, _class_table(), out)
    return out


def _of_script(classes: np.ndarray, language: str) -> tuple[np.ndarray, np.ndarray]:
    """Count the letters of a language's own script, and all letters."""
    script, (latin, han, kana, others) = LANGUAGES[language].script, classes[:, _LATIN : _LETTER + 1].T
    if LANGUAGES[language].spaced:
        return latin if script == "latin" else others, latin + han + kana + others
    han, kana = _CJK_WEIGHT * han, _CJK_WEIGHT * kana
    return han if script == "han" else han + kana, latin + han + kana + others


@lru_cache(maxsize=1)
def _class_table() -> np.ndarray:
    """Return the class of each character of the first four planes."""
    table = np.zeros(0x40000, np.uint8)
    for code in range(len(table)):
        character = chr(code)
        if cjk_runs(character):
            table[code] = _KANA if has_kana(character) else _HAN
        elif character.isspace():
            table[code] = _SPACE
        elif unicodedata.category(character)[0] in "LM":
            table[code] = _LATIN if _is_latin(character) else _LETTER
    return table


def _is_latin(character: str) -> bool:
    return character.isascii() or unicodedata.name(character, "").startswith(("LATIN ", "FULLWIDTH LATIN ", "COMBINING "))


Step = Callable[[str], str]


_FORMS: dict[str, Step | None] = for_all(
    Normal, {"": None, **{form: partial(unicodedata.normalize, form) for form in ("NFC", "NFKC")}}
)


def _steps(config: CleanConfig, language: str) -> list[Step]:
    """Return the changes to one side's text, in order."""
    steps: list[Step] = []
    if config.control:
        steps.append(lambda text: _BLANKS.sub(" ", _CONTROL.sub(" ", text)))
    if config.width:
        steps.append(lambda text: _WIDE.sub(lambda found: unicodedata.normalize("NFKC", found[0]), text))
    if step := _FORMS[config.normalise]:
        steps.append(step)
    if config.simplify and language == "zh":
        from xswe.text.folding import simplified_characters

        table = str.maketrans(simplified_characters())
        steps.append(lambda text: text.translate(table))
    return steps


def _changed(texts: Texts, steps: list[Step]) -> Texts:
    """Apply changes to all texts at once, joined by line feeds, which no change may touch."""
    if not steps or not len(texts):
        return texts
    joined = "\n".join(texts)
    for step in steps:
        joined = step(joined)
    return stripped(Texts.of(joined.split("\n")))
