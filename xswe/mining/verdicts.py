"""Verdicts on the pairs of a bitext: the settings, and the rules and scores, block by block.

Untranslated copies are pairs whose sides are the same letters, or hold mostly the same words. Compiled code looks at the
bytes of all pairs and rules out what is surely none; what is left is looked at letter by letter.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numba import njit

from xswe.bitext.kernels import blank_after
from xswe.bitext.records import RecordBlock
from xswe.bitext.rows import Rows
from xswe.bitext.seen import pair_hashes, text_hashes
from xswe.bitext.source import Source
from xswe.corpus.bitext import CorpusConfig, make_admission, make_cleaner, reasons_of
from xswe.corpus.cleaning import REASONS, CleanConfig, Cleaned, Detector
from xswe.errors import ConfigError
from xswe.io.compiler import INNER, LEAN
from xswe.io.lines import OnError
from xswe.io.products import row_products
from xswe.io.ragged import Texts, bounds_of
from xswe.io.settings import check_choice, for_all
from xswe.mining.features import NAMES, Features
from xswe.mining.threshold import check_found
from xswe.mining.wrong import KINDS
from xswe.model.ensemble import AnyModel, load_any, share_model
from xswe.text.languages import check_languages
from xswe.text.numbers import check_numbers_in_words, have_same_numbers
from xswe.work.plan import TextPlan
from xswe.work.steps import Arrays, Fold, TwoSteps

_OWN = ("numbers", "copy", "damaged", "low similarity")
KEPT, *DROPPED = ("kept", *REASONS, *_OWN, *KINDS)
NUMBERS, COPY, DAMAGED, LOW = range(len(REASONS) + 1, len(REASONS) + 5)
_ALIKE = 0.85  # an untranslated copy has this cosine at least, so that only such pairs are looked at letter by letter
_MOST = 256  # a side of a copy with more different words is looked at letter by letter
_COPIED = 0.8  # share of the words of the shorter side that the other side has, too
_NO_ROWS = Rows(Texts.of([]), Texts.of([]))
BLOCK, WINDOW = 1 << 14, 1 << 21
Method = Literal["auto", "learned", "cosine"]
_LEARNS = for_all(Method, {"auto": None, "learned": True, "cosine": False})
_LEARNT = ("en", "de", "zh", "ja")  # languages that examples to learn from are in
_BETTER = (
    {"en", "de"},
    {"en", "zh"},
    {"en", "ja"},
)  # where what is learnt has the better F1 (eval/experiments/filter_mixtures.py)
_WORD, _LETTERS = np.uint64(0x9E3779B97F4A7C15), np.uint64(0x94D049BB133111EB)  # hashes of nothing
_FACTOR = np.uint64(0x100000001B3)  # of FNV-1a


@dataclass(frozen=True)
class BitextFilter:
    """Which pairs stay.

    Attributes:
        method: what decides on pairs. ``cosine``: the cosine of both sides. ``learned``: how likely a pair is right,
            by some three dozen features; what tells right from wrong is learnt from the file itself
            (:mod:`xswe.mining.learning`), of which it needs 500 pairs. ``auto``: ``learned`` between English and
            another of the four languages where the threshold is to be found, else ``cosine``.
        threshold: least score: ``auto`` (from the file itself), a number, or null for none.
        precision: with ``auto``: the lowest threshold of at least this expected precision, instead of the best F1.
        gold: file of ``source<TAB>target`` pairs that are right: what share of the kept pairs with a side in it are right,
            and how many of those that the bitext holds are kept, is measured; it reads a file once more.
        duplicates: drop pairs that were there before.
        near_duplicates: drop pairs most of whose shingles an earlier pair had; digits are all alike, as in templates.
        copies: drop pairs whose sides are the same text, or hold mostly the same words.
        numbers: drop pairs that do not hold the same numbers: in digits (separators of thousands ignored), or in digits on
            one side and in words, as a month or by the other clock on the other ("7 p.m.", "19 Uhr").
        ratio: most that one side's UTF-8 bytes may exceed the other's, as a factor; 0 for any. In bytes a sentence is about
            as long in all four languages.
        letters: least share of letters among the characters of a side that are not blank.
        script: least share of the side's script among its letters, where the languages are known; on Chinese and Japanese
            sides a letter of Han or Kana counts as three others.
        min_characters: pairs with a shorter side are dropped.
        max_characters: pairs with a longer side are dropped.
        hubs: most pairs that one text may be a side of; 0 for any.
        columns: of source and target in separated text, counted from 0; names of columns, or of fields of JSON. Where they
            are not set, those of a ``.csv`` that are called as the languages.
        languages: of source and target; a model of two languages knows them.
        language: ``lingua`` drops pairs with a side in another language, by the library of that name: slow.
        on_error: what a damaged record does: ``raise``, or ``skip`` (it is dropped as damaged).
        explain: say in ``rejects=`` what is unusual about each pair that is not kept by what was learnt.
        evidence: keep what a report shows of how pairs were decided on, which reads a file once more.
        rerank_share: share of the texts that the reranker (``rerank=``) encodes at most; it reads a file once more.
    """

    method: Method = "auto"
    threshold: Any = "auto"
    precision: float | None = None
    gold: str | None = None
    duplicates: bool = True
    near_duplicates: bool = False
    copies: bool = True
    numbers: bool = False
    ratio: float = 3.0
    letters: float = 0.4
    script: float = 0.5
    min_characters: int = 0
    max_characters: int = 2000
    hubs: int = 0
    columns: tuple[int | str, ...] = (0, 1)
    languages: tuple[str, ...] = ()
    language: Detector = ""
    on_error: OnError = "raise"
    explain: bool = False
    evidence: bool = False
    rerank_share: float = 0.05

    def __post_init__(self) -> None:
        check_choice("method", self.method, Method)
        check_found(self)

    def resolved(self, reranked: bool = False) -> BitextFilter:
        """Return the same with the method that ``auto`` stands for; ``reranked`` if there is a reranker.

        Raises:
            ConfigError: the method cannot be had.
        """
        known = len(set(self.languages)) == 2 and set(self.languages) <= set(_LEARNT)
        if self.method == "learned" and (not known or reranked):
            named = f"name two languages of {', '.join(_LEARNT)}, as in languages=[en,de]"
            hint = "leave rerank= out" if reranked else named
            raise ConfigError(f"method=learned: {hint}; or use method=cosine")
        better = set(self.languages) in _BETTER and not reranked and self.threshold == "auto"
        learns = better if _LEARNS[self.method] is None else _LEARNS[self.method]
        return replace(self, method="learned" if learns else "cosine")

    def cleaning(self, languages: tuple[str, ...]) -> CorpusConfig:
        """Return the same filters as those of a corpus to train on; scripts need the languages."""
        clean = CleanConfig(
            min_characters=self.min_characters,
            letters=self.letters,
            script=self.script if languages else 0.0,
            ratio=self.ratio,
            near_duplicates=self.near_duplicates,
            hubs=self.hubs,
            language=self.language,
        )
        return CorpusConfig(max_characters=self.max_characters, clean=clean)


class PairFilter:
    """Finds, block by block, why pairs are dropped, and the cosines of those that stay so far."""

    def __init__(self, model: AnyModel, config: BitextFilter, threads: int) -> None:
        self.model, self._config, languages = model, config, config.languages
        corpus = config.cleaning(languages)
        check_languages(dict.fromkeys(languages or ("en",)))
        pair = (languages[0], languages[1]) if languages else ("en", "en")
        self._cleaner = make_cleaner(pair, corpus, threads)
        self._admission = make_admission(corpus)
        self._features = Features(model, languages) if config.method == "learned" else None
        if config.numbers:
            check_numbers_in_words(tuple(languages))

    def cleaned(self, block: RecordBlock) -> Cleaned:
        """Return the verdict on each pair by itself, and the keys for duplicates; any thread may call it."""
        return self._cleaner(block.rows)

    def first_reasons(self, cleaned: Cleaned, damaged: np.ndarray) -> np.ndarray:
        """Return the reasons to drop pairs, given the result of :meth:`cleaned`, block after block, in order."""
        found = reasons_of(cleaned, self._admission) if self._config.duplicates else cleaned.reason
        found[damaged] = DAMAGED
        return found

    def compared(self, block: RecordBlock, reasons: np.ndarray) -> Arrays:
        """Return ``reasons``, ``scores`` (cosines; NaN where there is a reason), and ``decoys``, one a pair compared.

        Of pairs that are learnt from also their ``features``, and ``keys`` by which they are drawn; zero of the others.
        """
        reasons = reasons.copy()
        alive = np.flatnonzero(reasons == 0)
        rows = block.take(alive)
        if self._config.numbers:
            digits = np.flatnonzero(_has_digit(rows.source) | _has_digit(rows.target))
            other = ~have_same_numbers(rows.source.take(digits), rows.target.take(digits))
            reasons[alive[digits[other]]] = NUMBERS
            alive = np.flatnonzero(reasons == 0)
            rows = block.take(alive)
        (left, *here), (right, *there) = map(self._read, (rows.source, rows.target))
        cosines = row_products(left, right)
        # A pair that is alone in its block is no decoy to itself.
        decoys = np.full_like(cosines, np.nan)
        if len(alive) > 1:
            decoys[:-1] = row_products(left[:-1], right[1:])
            decoys[-1:] = row_products(left[-1:], right[:1])
        if self._config.copies:
            reasons[alive[find_copies(rows.source, rows.target, np.flatnonzero(cosines >= _ALIKE))]] = COPY
        scores = np.full(len(block), np.nan, np.float32)
        scores[alive] = cosines
        scores[reasons > 0] = np.nan
        found = {"reasons": reasons, "scores": scores, "decoys": decoys}
        if self._features is None:
            return found
        features, keys = np.zeros((len(block), len(NAMES)), np.uint8), np.zeros(len(block), np.uint64)
        features[alive] = self._features.of(rows.source, rows.target, (*here, *there), cosines)
        keys[alive] = pair_hashes(text_hashes(rows.source), text_hashes(rows.target))
        return {**found, "features": features, "keys": keys}

    def _read(self, side: Texts) -> tuple[Any, ...]:
        """Return the vectors of a side and, where features are found, its units."""
        return self._features.read(side) if self._features else (self.model.encode(side, threads=1),)


def _has_digit(texts: Texts) -> np.ndarray:
    """Return which texts may contain a digit: an ASCII one, or a character beyond Latin-1, such as full-width digits."""
    data = np.asarray(texts.data)
    found = bounds_of(((data >= 0x30) & (data <= 0x39)) | (data == 0xEF))
    return np.diff(found[np.asarray(texts.offsets)]) > 0


def find_copies(source: Texts, target: Texts, rows: np.ndarray) -> list[int]:
    """Return those of some pairs whose sides are copies."""
    found = np.zeros(len(rows), bool)
    sides = source.take(rows), target.take(rows)
    may_be_copies(*sides[0].frozen, *sides[1].frozen, _COPIED, np.empty((2, _MOST), np.uint64), found)
    return [row for row in rows[found].tolist() if is_copy(source[row], target[row])]


def is_copy(source: str, target: str) -> bool:
    """Return True if two texts are the same letters, or hold mostly the same words of three letters and more."""
    a, b = source.casefold(), target.casefold()
    words = [{word for word in text.split() if len(word) > 2} for text in (a, b)]
    least = min(map(len, words))
    if least > 1 and len(words[0] & words[1]) >= _COPIED * least:
        return True
    if 4 * min(len(a), len(b)) < 3 * max(len(a), len(b)):
        return False
    letters = ["".join(filter(str.isalnum, unicodedata.normalize("NFKC", text))) for text in (a, b)]
    return letters[0] == letters[1]


@njit(**INNER)
def _is_odd(a: int, b: int, c: int) -> bool:
    """Return True if case folding or normalisation may turn a character, by its first bytes, into other letters or digits.

    Latin-1 aside, whose letters :func:`may_be_copies` folds itself: other alphabets with cases, combining marks, and
    what stands for letters and digits (full-width, circled, squared, superscript, subscript, ligatures).
    """
    if a == 0xC2:
        return b == 0xAA or b == 0xB2 or b == 0xB3 or b == 0xB5 or b == 0xB9 or b == 0xBA or 0xBC <= b <= 0xBE
    if a == 0xE2:
        small = (b == 0x81 and c >= 0xB0) or (b == 0x82 and c <= 0x9C)
        return small or b == 0x84 or b == 0x85 or 0x91 <= b <= 0x93 or b >= 0xB0
    if a == 0xE3:
        return 0x86 <= b <= 0x8F or (b == 0x80 and 0xB6 <= c <= 0xBA)
    if a == 0xEF:
        wide = (b == 0xBC and c >= 0x90) or (b == 0xBD and c <= 0x9A)
        return 0xA4 <= b <= 0xAC or wide
    return 0xC4 <= a <= 0xE1 or a >= 0xF0 or a == 0xEA


@njit(**LEAN)
def _read_words(  # noqa: C901 (one pass over the bytes)
    data: np.ndarray, low: int, high: int, words: np.ndarray
) -> tuple[int, np.uint64, bool]:
    """Hash the different words of a text of at least three characters, and all its letters and digits, case ignored.

    Returns the number of words, put into ``words``; a hash of the letters and digits in their order; whether there is more
    to the text than these tell.
    """
    count, letters = 0, _LETTERS
    word, size = _WORD, 0
    place = low
    while place <= high:
        width = 1 if place == high else blank_after(data, place, high)
        if width:
            if size > 2:
                known = False
                for k in range(count):
                    known |= words[k] == word
                if not known:
                    if count == len(words):
                        return count, letters, True
                    words[count] = word
                    count += 1
            word, size = _WORD, 0
            place += width
            continue
        a = data[place]
        if a < 0x80:
            value = np.uint64(a + 0x20 if 0x41 <= a <= 0x5A else a)
            word, size = (word ^ value) * _FACTOR, size + 1
            if 0x30 <= a <= 0x39 or 0x61 <= value <= 0x7A:
                letters = (letters ^ value) * _FACTOR
            place += 1
            continue
        b = data[place + 1]
        wide = 1 if a < 0xE0 else 2 if a < 0xF0 else 3
        if _is_odd(a, b, data[place + min(2, wide)]):
            return count, letters, True
        if a == 0xC3 and b == 0x9F:  # the sharp s
            value = np.uint64(0x73)
            word, size = ((word ^ value) * _FACTOR ^ value) * _FACTOR, size + 2
            letters = ((letters ^ value) * _FACTOR ^ value) * _FACTOR
            place += 2
            continue
        value = np.uint64(a)
        for k in range(1, wide + 1):
            value = value << np.uint64(8) | np.uint64(data[place + k])
        if a == 0xC3 and 0x80 <= b <= 0x9E and b != 0x97:
            value += np.uint64(0x20)
        word, size = (word ^ value) * _FACTOR, size + 1
        if 0xE4 <= a <= 0xE9:  # ideographs
            letters = (letters ^ value) * _FACTOR
        place += wide + 1
    return count, letters, False


@njit(**LEAN)
def may_be_copies(
    source: np.ndarray,
    source_offsets: np.ndarray,
    target: np.ndarray,
    target_offsets: np.ndarray,
    share: float,
    words: np.ndarray,
    found: np.ndarray,
) -> None:
    """Return which pairs may have mostly the same words, or the same letters, bool (n,); only False is certain.

    Both must have a ``share`` of the different words of three characters and more of the side that has fewer. ``words``,
    uint64 (2, most), is room for the words of a text; what has more may be a copy.
    """
    for row in range(len(found)):
        count, letters, odd = _read_words(source, source_offsets[row], source_offsets[row + 1], words[0])
        if not odd:
            number, same, odd = _read_words(target, target_offsets[row], target_offsets[row + 1], words[1])
        if odd or letters == same:
            found[row] = True
            continue
        shared, least = 0, min(count, number)
        for k in range(count):
            for j in range(number):
                shared += words[0, k] == words[1, j]
        found[row] = least > 1 and shared >= share * least


@dataclass(frozen=True)
class FilterSteps(TwoSteps):
    """Clean the pairs of a bitext, tell which were there before, and compare the sides of the others."""

    given: Source | list[tuple[str, str]]  # the bitext
    config: BitextFilter  # which pairs stay
    plan: TextPlan | None = None  # how a file is cut
    model: Path | None = None  # folder for the model, which others open
    block: int = field(default_factory=lambda: BLOCK)  # records a block, at most
    window: int = field(default_factory=lambda: WINDOW)  # bytes of text at whose multiples a block ends
    names = ("clean", "compare", "filter")
    unit = "pair"

    def open(self) -> PairFilter:
        """Load the model."""
        assert self.model
        return PairFilter(load_any(self.model), self.config, 1)

    def share(self, opened: PairFilter) -> None:
        """Write the model for others to open."""
        assert self.model
        share_model(opened.model, self.model)

    @property
    def _is_cut(self) -> bool:
        return self.plan is not None and self.plan.sizes[0] is not None

    def blocks(self, shard: int | None) -> Iterator[RecordBlock]:
        """Iterate over the blocks of a shard, or of the whole bitext."""
        if isinstance(self.given, list):
            return (
                RecordBlock.of(self.given[start : start + self.block]) for start in range(0, len(self.given), self.block)
            )
        span = self.plan.shard(shard)[1] if shard is not None and self.plan and self._is_cut else None
        return replace(self.given, span=span).blocks(self.block, self.window)

    def again(self, shard: int, found: Arrays) -> Iterator[RecordBlock]:
        """Iterate over the blocks once more: by where their texts were found, if these are in a part of a file."""
        if isinstance(self.given, list) or not self._is_cut:
            return self.blocks(shard)
        return self.given.blocks_at(found["places"], found["spans"]) if found else iter(())

    def first(self, opened: PairFilter, block: RecordBlock) -> Arrays:
        """Return the verdict on each pair by itself, the keys for duplicates, and the offsets of the texts."""
        one = opened.cleaned(block)
        found = {"reasons": one.reason, "keys": one.keys, "near": one.near, "sides": one.sides, "damaged": block.damaged}
        return found | ({"places": block.places, "spans": block.spans.astype(np.int32)} if self._is_cut else {})

    def fold(self, opened: PairFilter) -> Fold:
        """Return the step that finds why pairs are dropped, before any look at their vectors."""

        def reasons(found: Arrays) -> np.ndarray:
            cleaned = Cleaned(_NO_ROWS, *(found[name] for name in ("reasons", "keys", "near", "sides")))
            return opened.first_reasons(cleaned, found["damaged"])

        return reasons

    def second(self, opened: PairFilter, block: RecordBlock, folded: np.ndarray) -> Arrays:
        """Return the result of :meth:`PairFilter.compared`."""
        return opened.compared(block, folded)
