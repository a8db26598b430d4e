"""Verdicts on the pairs of a bitext: the settings, and the rules and scores, block by block.

A pair is an untranslated copy if its sides are the same letters, or hold mostly the same words. Compiled code scans the
bytes of all pairs and rules out sure non-copies; the rest is compared letter by letter.
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
from xswe.corpus.cleaning import REASONS, CleanConfig, Cleaned, Detector, check_rules
from xswe.errors import ConfigError
from xswe.io.compiler import INNER, LEAN
from xswe.io.lines import OnError
from xswe.io.products import row_products
from xswe.io.ragged import Texts, bounds_of
from xswe.io.settings import check_choice, check_least, for_all
from xswe.mining.features import NAMES, Features
from xswe.mining.threshold import check_found
from xswe.mining.wrong import KINDS
from xswe.model.ensemble import AnyModel, load_any, share_model
from xswe.text.languages import check_languages
from xswe.text.numbers import check_numbers_in_words, have_same_numbers
from xswe.work.plan import TextPlan
from xswe.work.steps import Arrays, Fold, TwoSteps

_FILTER_REASONS = ("numbers", "copy", "damaged", "low similarity")
KEPT, *DROPPED = ("kept", *REASONS, *_FILTER_REASONS, *KINDS)
NUMBERS, COPY, DAMAGED, LOW = range(len(REASONS) + 1, len(REASONS) + 5)
_MIN_COPY_COSINE = 0.85  # pairs below this are not checked for copies
_MAX_WORDS = 256  # pairs with more distinct words on a side are compared letter by letter
_MIN_SHARED_WORDS = 0.8  # of the words of the side with fewer
_NO_ROWS = Rows(Texts.of([]), Texts.of([]))
BLOCK, WINDOW = 1 << 14, 1 << 21
Method = Literal["auto", "learned", "cosine"]
_USES_CLASSIFIER = for_all(Method, {"auto": None, "learned": True, "cosine": False})
_EXAMPLE_LANGUAGES = ("en", "de", "zh", "ja")
_BETTER_LEARNED = (
    {"en", "de"},
    {"en", "zh"},
    {"en", "ja"},
)  # for which method=learned has the better F1 (eval/experiments/filter_mixtures.py)
_WORD_SEED, _LETTERS_SEED = np.uint64(0x9E3779B97F4A7C15), np.uint64(0x94D049BB133111EB)  # initial hash values
_FNV_PRIME = np.uint64(0x100000001B3)


@dataclass(frozen=True)
class BitextFilter:
    """Which pairs to keep.

    Attributes:
        method: how pairs are judged. ``cosine``: by the cosine of both sides. ``learned``: by the probability that a pair
            is right, from some three dozen features and a classifier trained on the file itself
            (:mod:`xswe.mining.learning`), which needs 500 pairs. ``auto``: ``learned`` between English and German,
            Chinese or Japanese with an automatic threshold, else ``cosine``.
        threshold: minimum score: ``auto`` (from the file itself), a number, or null for none.
        precision: with ``auto``: the lowest threshold with at least this expected precision, instead of the best F1.
        gold: file of ``source<TAB>target`` pairs known to be right, to measure how many of the kept pairs with a side in it
            are right, and how many of its pairs in the bitext are kept; reads a file once more.
        duplicates: drop repeated pairs.
        near_duplicates: drop pairs that share most of their shingles with an earlier pair; all digits count as equal, as in
            templates.
        copies: drop pairs whose sides are the same text, or hold mostly the same words.
        numbers: drop pairs whose sides hold different numbers. Digits match digits (thousands separators ignored), words,
            names of months, and times by the other clock ("7 p.m.", "19 Uhr").
        ratio: highest ratio of the two sides' UTF-8 bytes; 0 for any. In bytes, a sentence is about as long in Chinese and
            Japanese as in English.
        letters: minimum share of letters among a side's non-blank characters.
        script: minimum share of the side's own script among its letters, where the languages are known; on Chinese and
            Japanese sides a Han or Kana letter counts three times.
        min_characters: drop pairs with a shorter side.
        max_characters: drop pairs with a longer side.
        hubs: maximum number of pairs with the same text as a side; 0 for any.
        columns: of source and target in separated text, counted from 0; or names of columns or JSON fields. If not set, the
            columns of a ``.csv`` that are named after the languages.
        languages: of source and target; by default those of a bilingual model.
        language: ``lingua`` drops pairs with a side in another language, using the library of that name: slow.
        on_error: what to do with a damaged record: ``raise``, or ``skip`` (drop it as damaged).
        explain: say in ``rejects=`` what is unusual about each pair that the classifier dropped.
        evidence: keep what a report shows of how pairs were judged; reads a file once more.
        rerank_share: largest share of the texts that the reranker (``rerank=``) encodes; reads a file once more.
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
        check_rules(self)
        check_least(self, max_characters=1)

    def resolved(self, reranked: bool = False) -> BitextFilter:
        """Return a copy with ``auto`` replaced by a method; ``reranked`` if there is a reranker.

        Raises:
            ConfigError: ``method=learned`` is impossible.
        """
        known = len(set(self.languages)) == 2 and set(self.languages) <= set(_EXAMPLE_LANGUAGES)
        if self.method == "learned" and (not known or reranked):
            named = f"name two languages of {', '.join(_EXAMPLE_LANGUAGES)}, as in languages=[en,de]"
            hint = "leave rerank= out" if reranked else named
            raise ConfigError(f"method=learned: {hint}; or use method=cosine")
        better = set(self.languages) in _BETTER_LEARNED and not reranked and self.threshold == "auto"
        learns = better if _USES_CLASSIFIER[self.method] is None else _USES_CLASSIFIER[self.method]
        return replace(self, method="learned" if learns else "cosine")

    def cleaning(self, languages: tuple[str, ...]) -> CorpusConfig:
        """Return the same filters as settings of a training corpus; that of scripts needs the languages."""
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
    """Finds reasons to drop pairs, block by block, and the cosines of the rest."""

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
        """Return the verdict on each pair by itself, and the keys for finding duplicates; thread-safe."""
        return self._cleaner(block.rows)

    def first_reasons(self, cleaned: Cleaned, damaged: np.ndarray) -> np.ndarray:
        """Return the reasons to drop pairs, given the result of :meth:`cleaned`; blocks must come in order."""
        found = reasons_of(cleaned, self._admission) if self._config.duplicates else cleaned.reason
        found[damaged] = DAMAGED
        return found

    def compared(self, block: RecordBlock, reasons: np.ndarray) -> Arrays:
        """Return ``reasons``, ``scores`` (cosines; NaN where there is a reason), and ``decoys``, one per compared pair.

        For ``method=learned``, also ``features``, and ``keys`` for sampling; both are zero for pairs that are not compared.
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
        # A pair alone in its block has no decoy.
        decoys = np.full_like(cosines, np.nan)
        if len(alive) > 1:
            decoys[:-1] = row_products(left[:-1], right[1:])
            decoys[-1:] = row_products(left[-1:], right[:1])
        if self._config.copies:
            reasons[alive[find_copies(rows.source, rows.target, np.flatnonzero(cosines >= _MIN_COPY_COSINE))]] = COPY
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
        """Return the vectors of a side and, if features are extracted, its units."""
        return self._features.read(side) if self._features else (self.model.encode(side, threads=1),)


def _has_digit(texts: Texts) -> np.ndarray:
    """Return which texts may contain a digit: an ASCII one, or a character from U+F000, as full-width digits are."""
    data = np.asarray(texts.data)
    found = bounds_of(((data >= 0x30) & (data <= 0x39)) | (data == 0xEF))
    return np.diff(found[np.asarray(texts.offsets)]) > 0


def find_copies(source: Texts, target: Texts, rows: np.ndarray) -> list[int]:
    """Return the ``rows`` whose sides are copies of each other."""
    found = np.zeros(len(rows), bool)
    sides = source.take(rows), target.take(rows)
    may_be_copies(*sides[0].frozen, *sides[1].frozen, _MIN_SHARED_WORDS, np.empty((2, _MAX_WORDS), np.uint64), found)
    return [row for row in rows[found].tolist() if is_copy(source[row], target[row])]


def is_copy(source: str, target: str) -> bool:
    """Return True if two texts are the same letters, or hold mostly the same words of three or more letters."""
    a, b = source.casefold(), target.casefold()
    words = [{word for word in text.split() if len(word) > 2} for text in (a, b)]
    least = min(map(len, words))
    if least > 1 and len(words[0] & words[1]) >= _MIN_SHARED_WORDS * least:
        return True
    if 4 * min(len(a), len(b)) < 3 * max(len(a), len(b)):
        return False
    letters = ["".join(filter(str.isalnum, unicodedata.normalize("NFKC", text))) for text in (a, b)]
    return letters[0] == letters[1]


@njit(**INNER)
def _may_fold(a: int, b: int, c: int) -> bool:
    """Return True if case folding or normalisation may turn a character, by its first bytes, into other letters or digits.

    These are alphabets with cases other than Latin-1, which :func:`may_be_copies` folds itself; combining marks; and
    variants of letters and digits (full-width, circled, squared, superscript, subscript, ligatures).
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
    """Hash the distinct words of a text, of three or more characters, and all its letters and digits, ignoring case.

    Returns the number of hashes written to ``words``; a hash of the letters and digits in order; and whether these do not
    tell the whole text.
    """
    count, letters = 0, _LETTERS_SEED
    word, size = _WORD_SEED, 0
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
            word, size = _WORD_SEED, 0
            place += width
            continue
        a = data[place]
        if a < 0x80:
            value = np.uint64(a + 0x20 if 0x41 <= a <= 0x5A else a)
            word, size = (word ^ value) * _FNV_PRIME, size + 1
            if 0x30 <= a <= 0x39 or 0x61 <= value <= 0x7A:
                letters = (letters ^ value) * _FNV_PRIME
            place += 1
            continue
        b = data[place + 1]
        wide = 1 if a < 0xE0 else 2 if a < 0xF0 else 3
        if _may_fold(a, b, data[place + min(2, wide)]):
            return count, letters, True
        if a == 0xC3 and b == 0x9F:  # the sharp s
            value = np.uint64(0x73)
            word, size = ((word ^ value) * _FNV_PRIME ^ value) * _FNV_PRIME, size + 2
            letters = ((letters ^ value) * _FNV_PRIME ^ value) * _FNV_PRIME
            place += 2
            continue
        value = np.uint64(a)
        for k in range(1, wide + 1):
            value = value << np.uint64(8) | np.uint64(data[place + k])
        if a == 0xC3 and 0x80 <= b <= 0x9E and b != 0x97:
            value += np.uint64(0x20)
        word, size = (word ^ value) * _FNV_PRIME, size + 1
        if 0xE4 <= a <= 0xE9:  # ideographs
            letters = (letters ^ value) * _FNV_PRIME
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
    """Mark the pairs that may have mostly the same words, or the same letters, in ``found``, bool (n,); False is certain.

    Both sides must have at least ``share`` of the distinct words, of three or more characters, of the side with fewer.
    ``words``, uint64 (2, most), is workspace for the words of both sides; a pair with more on a side may be a copy.
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
    """Clean the pairs of a bitext, find repeated ones, and compare the sides of the rest."""

    given: Source | list[tuple[str, str]]  # the bitext
    config: BitextFilter  # which pairs to keep
    plan: TextPlan | None = None  # how a file is cut into shards
    model: Path | None = None  # folder from which other processes open the model
    block: int = field(default_factory=lambda: BLOCK)  # records per block, at most
    window: int = field(default_factory=lambda: WINDOW)  # bytes of text; blocks end at multiples of it
    names = ("clean", "compare", "filter")
    unit = "pair"

    def open(self) -> PairFilter:
        """Load the model."""
        assert self.model
        return PairFilter(load_any(self.model), self.config, 1)

    def share(self, opened: PairFilter) -> None:
        """Write the model for other processes to open."""
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
        """Iterate over the blocks once more; in a shard of a file, by the offsets found the first time."""
        if isinstance(self.given, list) or not self._is_cut:
            return self.blocks(shard)
        return self.given.blocks_at(found["places"], found["spans"]) if found else iter(())

    def first(self, opened: PairFilter, block: RecordBlock) -> Arrays:
        """Return the verdict on each pair by itself, the keys for finding duplicates, and the offsets of the texts."""
        one = opened.cleaned(block)
        found = {"reasons": one.reason, "keys": one.keys, "near": one.near, "sides": one.sides, "damaged": block.damaged}
        return found | ({"places": block.places, "spans": block.spans.astype(np.int32)} if self._is_cut else {})

    def fold(self, opened: PairFilter) -> Fold:
        """Return the step that finds reasons to drop pairs before they are encoded."""

        def reasons(found: Arrays) -> np.ndarray:
            cleaned = Cleaned(_NO_ROWS, *(found[name] for name in ("reasons", "keys", "near", "sides")))
            return opened.first_reasons(cleaned, found["damaged"])

        return reasons

    def second(self, opened: PairFilter, block: RecordBlock, folded: np.ndarray) -> Arrays:
        """Return the result of :meth:`PairFilter.compared`."""
        return opened.compared(block, folded)
