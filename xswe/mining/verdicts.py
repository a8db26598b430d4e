"""Why a pair of a bitext is dropped: what decides it, and who finds it, block by block."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from xswe.corpus.bitext import CorpusConfig, make_admission, make_cleaner, reasons_of
from xswe.corpus.cleaning import REASONS, CleanConfig, Cleaned
from xswe.corpus.records import RecordBlock
from xswe.errors import ConfigError
from xswe.io.lines import OnError
from xswe.io.ragged import Texts
from xswe.mining.cascade import check_share
from xswe.mining.copies import find_copies
from xswe.mining.score import row_cosines
from xswe.mining.threshold import check_threshold
from xswe.model.ensemble import AnyModel
from xswe.text.numbers import same_numbers

_OWN = ("numbers", "copy", "damaged", "low similarity")
KEPT, *DROPPED = ("kept", *REASONS, *_OWN)
NUMBERS, COPY, DAMAGED, LOW = range(len(REASONS) + 1, len(REASONS) + 5)
_ALIKE = 0.85  # an untranslated copy has this cosine at least, so that only such pairs are looked at letter by letter


@dataclass(frozen=True)
class BitextFilter:
    """Which pairs stay.

    Attributes:
        threshold: least cosine: ``auto`` (from the file itself), a number, or null for none.
        precision: with ``auto``: the lowest threshold of at least this expected precision, instead of the best F1.
        duplicates: drop pairs that were there before.
        near_duplicates: drop pairs most of whose shingles an earlier pair had.
        copies: drop pairs whose sides are the same text, or hold mostly the same words.
        numbers: drop pairs that do not hold the same numbers: in digits (separators of thousands ignored), or in digits on
            one side and in words, as a month or by the other clock on the other ("7 p.m.", "19 Uhr").
        ratio: most that one side's UTF-8 bytes may exceed the other's, as a factor; 0 for any. In bytes a sentence is about
            as long in all four languages.
        letters: least share of letters among the characters of a side that are not blank.
        script: least share of the side's script among its letters, where the languages are known.
        min_characters: pairs with a shorter side are dropped.
        max_characters: pairs with a longer side are dropped.
        hubs: most pairs that one text may be a side of; 0 for any.
        language: ``lingua`` drops pairs with a side in another language, by the library of that name: slow.
        on_error: what a damaged record does: ``raise``, or ``skip`` (it is dropped as damaged).
        evidence: keep what a report shows of how the pairs were judged, which reads a file once more.
        rerank_share: share of the texts that a judge (``rerank=``) encodes at most; it reads a file once more.
    """

    threshold: Any = "auto"
    precision: float | None = None
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
    language: str = ""
    on_error: OnError = "raise"
    evidence: bool = False
    rerank_share: float = 0.05

    def __post_init__(self) -> None:
        check_threshold(self.threshold, self.precision)
        check_share(self.rerank_share)
        if self.precision is not None and self.threshold != "auto":
            raise ConfigError("precision= is for threshold=auto")

    def cleaning(self, languages: tuple[str, ...]) -> CorpusConfig:
        """Return the same filters as those of a corpus to train on; scripts need the languages."""
        clean = CleanConfig(
            min_characters=self.min_characters,
            letters=self.letters,
            script=self.script if languages else 0.0,
            ratio=self.ratio,
            near_duplicates=self.near_duplicates,
            hubs=self.hubs,
            language=self.language,  # type: ignore[arg-type]
        )
        return CorpusConfig(max_characters=self.max_characters, clean=clean)


class Judge:
    """Finds, block by block, why pairs are dropped, and the cosines of those that stay so far."""

    def __init__(self, model: AnyModel, config: BitextFilter, languages: tuple[str, ...], threads: int) -> None:
        self._model, self._config, self.threads = model, config, threads
        corpus = config.cleaning(languages)
        pair = (languages[0], languages[1]) if languages else ("en", "en")
        self._cleaner = make_cleaner(pair, corpus, threads)
        self._admission = make_admission(corpus)

    def reasons(self, block: RecordBlock) -> np.ndarray:
        """Return why pairs are dropped without a look at their vectors, uint8 (n,); block after block, in order."""
        cleaned = self.cleaned(block)
        return self.first_reasons(cleaned, block.damaged)

    def cleaned(self, block: RecordBlock) -> Cleaned:
        """Return what can be said of each pair by itself, and what repetitions are told by; any thread may ask."""
        return self._cleaner(block.rows)

    def first_reasons(self, cleaned: Cleaned, damaged: np.ndarray) -> np.ndarray:
        """Return why pairs are dropped, given what :meth:`cleaned` told; block after block, in order."""
        found = reasons_of(cleaned, self._admission) if self._config.duplicates else cleaned.reason
        found[damaged] = DAMAGED
        return found

    def compared(self, block: RecordBlock, reasons: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return reasons, cosines (NaN where there is a reason) and those of decoys, one a pair that was encoded."""
        rows, reasons = block.rows, reasons.copy()
        if self._config.numbers:
            digits = np.flatnonzero((reasons == 0) & (_has_digit(rows.source) | _has_digit(rows.target)))
            other = [i for i in digits.tolist() if not same_numbers(rows.source[i], rows.target[i])]
            reasons[other] = NUMBERS
        alive = np.flatnonzero(reasons == 0)
        sides = [side.take(alive) for side in (rows.source, rows.target)]
        left, right = (self._model.encode(side, threads=1) for side in sides)
        cosines = row_cosines(left, right)
        # A pair that is alone in its block is no decoy to itself.
        decoys = row_cosines(left, np.roll(right, -1, 0)) if len(alive) > 1 else np.full_like(cosines, np.nan)
        if self._config.copies:
            reasons[alive[find_copies(sides[0], sides[1], np.flatnonzero(cosines >= _ALIKE))]] = COPY
        scores = np.full(len(block), np.nan, np.float32)
        scores[alive] = cosines
        scores[reasons > 0] = np.nan
        return reasons, scores, decoys


def _has_digit(texts: Texts) -> np.ndarray:
    """Tell which texts may hold a digit: an ASCII one, or a character beyond Latin-1, as full-width digits are."""
    data = np.asarray(texts.data)
    found = np.concatenate([np.zeros(1, np.int64), np.cumsum(((data >= 0x30) & (data <= 0x39)) | (data == 0xEF))])
    return np.diff(found[np.asarray(texts.offsets)]) > 0
