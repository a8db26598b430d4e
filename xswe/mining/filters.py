"""What is left out before anything is scored: lines that cannot be sentences, and pairs that cannot be translations."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from dataclasses import dataclass

import numpy as np

from xswe.errors import ConfigError
from xswe.language.codes import LANGUAGES, check_languages
from xswe.language.scripts import CJK_CHARACTERS, has_kana
from xswe.mining.margin import Candidates

_CJK = re.compile(f"[{CJK_CHARACTERS}]")
_NUMBER = re.compile(r"\d+(?:[.,'’٬ ](?=\d{3}(?!\d))\d{3})*")
_SEPARATOR = re.compile(r"\D")


@dataclass(frozen=True)
class FilterConfig:
    """Which lines and which candidate pairs are left out.

    Attributes:
        duplicates: a line that occurred before in the same file.
        min_characters: lines shorter than this (blank lines always go).
        script: a line less than half of whose letters are in its language's script (Chinese: any Kana is wrong too).
        identical: candidate pairs whose sides are the same but for case and blanks.
        length_ratio: candidate pairs one of whose sides has more than this many times the other's UTF-8 bytes, in which
            translations among the four languages are about equally long; 0 for no limit.
        numbers: candidate pairs whose sides do not hold the same numbers in digits (separators of thousands ignored).
    """

    duplicates: bool = True
    min_characters: int = 0
    script: bool = False
    identical: bool = True
    length_ratio: float = 0.0
    numbers: bool = False

    def __post_init__(self) -> None:
        if self.min_characters < 0:
            raise ConfigError(f"filters.min_characters={self.min_characters}: give a number, 0 for no limit")
        if self.length_ratio and not self.length_ratio >= 1:
            raise ConfigError(f"filters.length_ratio={self.length_ratio}: must be at least 1, or 0 for no limit")

    def language(self, code: str | None, side: str) -> str | None:
        """Return the language that a side's script is checked against, None for no check.

        Raises:
            ConfigError: the check is wanted but the language is not known.
        """
        if not self.script:
            return None
        if code is None:
            raise ConfigError(
                f"filters.script=true needs the languages of the files: set languages=[en,ja] ({side} missing)"
            )
        return check_languages([code])[0]


def in_script(text: str, language: str) -> bool:
    """Tell whether at least half of a text's letters are in the script of its language."""
    cjk = len(_CJK.findall(text))
    if LANGUAGES[language].script == "latin":
        letters = sum(map(str.isalpha, text))
        latin = sum(c.isalpha() and (c.isascii() or unicodedata.name(c, "").startswith("LATIN")) for c in text)
        return letters > 0 and 2 * latin >= letters
    if language == "zh" and has_kana(text):
        return False
    return cjk > 0 and 2 * cjk >= sum(map(str.isalpha, text))


def reason_to_drop(text: str, config: FilterConfig, language: str | None) -> str | None:
    """Return why a line (stripped of blanks at both ends) is left out, None if it stays; duplicates aside."""
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
    """Return a 64-bit key that two texts share if they differ in case and blanks only."""
    return _hash("".join(unicodedata.normalize("NFKC", text).casefold().split()))


def _plain_digits(number: str) -> str:
    """Return a number's digits as ASCII, without separators and zeros in front."""
    return "".join(str(unicodedata.decimal(digit)) for digit in _SEPARATOR.sub("", number)).lstrip("0")


def number_key(text: str) -> int:
    """Return a 64-bit key that two texts share if they hold the same numbers, in any order; 0 for no numbers."""
    if text.isascii() and not any(map(str.isdigit, text)):
        return 0
    found = _NUMBER.findall(unicodedata.normalize("NFKC", text))
    numbers = sorted(_plain_digits(number) for number in found)
    return _hash(" ".join(numbers)) or 1 if numbers else 0


@dataclass(frozen=True, eq=False)
class Traits:
    """What the pair filters need to know of every line of a side.

    Attributes:
        sizes: UTF-8 bytes, int64 (n,).
        identities: uint64 (n,), see :func:`identity_key`; empty where the filter is off.
        numbers: uint64 (n,), see :func:`number_key`; empty where the filter is off.
    """

    sizes: np.ndarray
    identities: np.ndarray
    numbers: np.ndarray


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
        out["numbers"] = source.numbers[rows] == target.numbers[columns]
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
    """Rule candidate pairs out, so that the next best may take their place.

    Returns:
        The candidates, those ruled out with a score of -inf, and how many candidates of sources and of targets each
        filter was the first to rule out.
    """
    dropped: dict[str, int] = {}
    forward = _filter(candidates.forward, candidates.forward_ids, config, source, target, dropped)
    backward = _filter(candidates.backward, candidates.backward_ids, config, target, source, dropped)
    return Candidates(forward, candidates.forward_ids, backward, candidates.backward_ids), dropped
