"""Hard rules, applied before scoring: lines that cannot be sentences, and pairs that cannot be translations."""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from xswe.errors import ConfigError
from xswe.io.ragged import Texts
from xswe.mining.margin import Candidates
from xswe.text.languages import check_languages
from xswe.text.numbers import have_same_numbers, written_numbers
from xswe.text.scripts import in_script


@dataclass(frozen=True)
class FilterConfig:
    """Which lines and candidate pairs are left out.

    Attributes:
        duplicates: lines that occurred before in the same file.
        min_characters: lines shorter than this (blank lines always go).
        script: lines with less than half of their letters in their language's script (in Chinese, any Kana is wrong, too).
        identical: candidate pairs whose sides differ only in case and blanks.
        length_ratio: candidate pairs with one side more than this many times as long as the other in UTF-8 bytes, in which
            a sentence is about as long in Chinese and Japanese as in English; 0 for no limit.
        numbers: candidate pairs whose sides do not hold the same numbers, in digits (ignoring thousands separators), or in
            digits on one side and written otherwise on the other (see :mod:`xswe.text.numbers`).
    """

    duplicates: bool = True
    min_characters: int = 0
    script: bool = False
    identical: bool = True
    length_ratio: float = 0.0
    numbers: bool = False

    def __post_init__(self) -> None:
        if self.min_characters < 0:
            raise ConfigError(f"min_characters={self.min_characters}: give a number, 0 for no limit")
        if self.length_ratio and not self.length_ratio >= 1:
            raise ConfigError(f"length_ratio={self.length_ratio}: must be at least 1, or 0 for no limit")

    def language(self, code: str | None, side: str) -> str | None:
        """Return the language whose script a side is checked against, None for no check.

        Raises:
            ConfigError: the check is on but the language is unknown.
        """
        if not self.script:
            return None
        if code is None:
            raise ConfigError(f"script=true needs the languages of the files: set languages=[en,ja] ({side} missing)")
        return check_languages([code])[0]


def reason_to_drop(text: str, config: FilterConfig, language: str | None) -> str | None:
    """Return why a stripped line is left out, None if it stays; duplicates are not checked."""
    if not text:
        return "blank"
    if len(text) < config.min_characters:
        return "too short"
    if language is not None and not in_script(text, language):
        return "wrong script"
    return None


def _hash(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=8).digest(), "little")


def identity_key(text: str) -> int:
    """Return a 64-bit key that two texts share if they differ only in case and blanks."""
    return _hash("".join(unicodedata.normalize("NFKC", text).casefold().split()))


def number_key(text: str, in_order: bool = False) -> int:
    """Return a 64-bit key that two texts share if they hold the same numbers in digits; 0 for no numbers.

    ``in_order``: also in the same order, apart from repetitions.
    """
    if text.isascii() and not any(map(str.isdigit, text)):
        return 0
    numbers = list(written_numbers(text).elements())
    if not in_order:
        numbers.sort()
    return _hash(" ".join(numbers)) or 1 if numbers else 0


@dataclass(frozen=True, eq=False)
class Traits:
    """What the pair filters need to know about every line of a side."""

    sizes: np.ndarray  # UTF-8 bytes, int64 (n,)
    identities: np.ndarray  # uint64 (n,), see :func:`identity_key`; empty if the filter is off
    numbers: np.ndarray  # uint64 (n,), see :func:`number_key`; empty if the filter is off
    texts: Sequence[str]  # the lines


def allowed(
    config: FilterConfig, source: Traits, target: Traits, rows: np.ndarray, columns: np.ndarray
) -> dict[str, np.ndarray]:
    """Return, for each active filter, which pairs (rows[i], columns[i]) it lets through."""
    out = {}
    if config.identical:
        out["identical sides"] = source.identities[rows] != target.identities[columns]
    if config.length_ratio:
        a, b = source.sizes[rows], target.sizes[columns]
        out["length ratio"] = np.maximum(a, b) <= config.length_ratio * np.minimum(a, b)
    if config.numbers:
        same = source.numbers[rows] == target.numbers[columns]
        places = np.flatnonzero(~same)  # few lines have numbers
        sides = zip((source.texts, target.texts), (rows[places], columns[places]), strict=True)
        same[places] = have_same_numbers(*(Texts.of([texts[line] for line in lines.tolist()]) for texts, lines in sides))
        out["numbers"] = same
    return out


_ROWS = 1 << 18


def _filter(
    scores: np.ndarray, ids: np.ndarray, config: FilterConfig, here: Traits, there: Traits, dropped: dict[str, int]
) -> np.ndarray:
    out = scores.copy()
    for start in range(0, len(ids), _ROWS):
        part = ids[start : start + _ROWS]
        row, place = np.nonzero(part >= 0)
        alive = np.ones(len(row), bool)
        for name, passes in allowed(config, here, there, row + start, part[row, place]).items():
            dropped[name] = dropped.get(name, 0) + int((alive & ~passes).sum())
            alive &= passes
        out[row[~alive] + start, place[~alive]] = -np.inf
    return out


def filter_candidates(
    candidates: Candidates, config: FilterConfig, source: Traits, target: Traits
) -> tuple[Candidates, dict[str, int]]:
    """Rule out candidate pairs, which leaves their place to the next best.

    Return the candidates, with a score of -inf for those ruled out, and how many candidates, of sources and targets
    together, each filter was the first to rule out.
    """
    dropped: dict[str, int] = {}
    forward = _filter(candidates.forward, candidates.forward_ids, config, source, target, dropped)
    backward = _filter(candidates.backward, candidates.backward_ids, config, target, source, dropped)
    return Candidates(forward, candidates.forward_ids, backward, candidates.backward_ids), dropped
