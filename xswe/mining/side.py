"""One side of a search: a text file of any size read once into flat files, its lines filtered and encoded on the way.

Left out, before anything is scored, are lines that cannot be sentences, and pairs that cannot be translations. Of what
is left out, and of the pairs found, samples are drawn with a fixed seed: the same run shows the same ones. Bands of
about equally many pairs, a border of which is the threshold, make the precision that somebody finds in each of them one
for all.
"""

from __future__ import annotations

import hashlib
import random
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from xswe.bitext.seen import KeySet, text_hashes
from xswe.corpus.cleaning import sketches
from xswe.errors import ConfigError, InputError
from xswe.io.files import file_stamp, fingerprint, read_json, write_json
from xswe.io.lines import RAISES, OnError, Skipped, read_lines
from xswe.io.ragged import GrowingArray, Texts, append_texts, text_writer
from xswe.mining.margin import Candidates
from xswe.progress import bar
from xswe.search.vectors import Storage, Vectors, VectorWriter
from xswe.text.languages import check_languages, in_script
from xswe.text.numbers import same_numbers, written_numbers
from xswe.work.kept import unrepeatable
from xswe.work.once import once

EACH = 20  # pairs of a group
_KEPT_BANDS, _OTHER_BANDS = 5, 3
_EXAMPLES = 8  # of each reason


class Shown(NamedTuple):
    """A pair that is shown."""

    row: int  # which of all pairs it is
    score: float  # its score; NaN where it has none
    source: str  # text
    target: str  # text
    source_line: str = ""  # what its line is called, "" where lines have no names
    target_line: str = ""  # likewise


@dataclass(frozen=True)
class Group:
    """Pairs that stand for others."""

    name: str  # ``above`` and ``below`` the cut, ``top``, ``random`` (among those kept), ``band``
    low: float  # the least score of those that it stands for
    high: float  # the highest
    size: int  # how many it stands for
    rows: tuple[int, ...]  # places among all pairs, in the order in which they are shown
    pairs: tuple[Shown, ...] = ()  # the same with their texts; empty until they are read


def draw_groups(scores: np.ndarray, threshold: float, seed: int = 0) -> tuple[Group, ...]:
    """Draw pairs at the cut, at the top, at random and from every band; those whose score is NaN are in no group."""
    known = np.flatnonzero(scores == scores)
    falling = known[np.argsort(-scores[known].astype(np.float64), kind="stable")]
    kept = int((scores[falling] >= threshold).sum())
    draw = np.random.default_rng(seed)
    out: list[Group] = []

    def add(name: str, rows: np.ndarray, drawn: np.ndarray | None = None) -> None:
        if len(rows):
            shown = rows if drawn is None else drawn
            out.append(Group(name, float(scores[rows[-1]]), float(scores[rows[0]]), len(rows), tuple(shown.tolist())))

    def some(rows: np.ndarray) -> np.ndarray:
        return rows[np.sort(draw.choice(len(rows), min(EACH, len(rows)), replace=False))]

    if 0 < kept < len(falling):
        add("above", falling[max(0, kept - EACH) : kept])
        add("below", falling[kept : kept + EACH])
    add("top", falling[: min(EACH, kept)])
    add("random", falling[:kept], some(falling[:kept]))
    for part, bands in ((falling[:kept], _KEPT_BANDS), (falling[kept:], _OTHER_BANDS)):
        if len(part) >= bands:
            for band in np.array_split(part, bands):
                add("band", band, some(band))
    return tuple(out)


def with_texts(groups: Iterable[Group], texts: dict[int, Shown]) -> tuple[Group, ...]:
    """Return the groups with the texts of their pairs, given by row; pairs whose texts are not there are left out."""
    return tuple(replace(group, pairs=tuple(texts[row] for row in group.rows if row in texts)) for group in groups)


@dataclass
class Reservoir:
    """Examples of each reason, each as likely as any other."""

    counts: dict[str, int] = field(default_factory=dict)  # how many were offered, by reason
    kept: dict[str, list[Any]] = field(default_factory=dict)  # those that are kept
    _draw: random.Random = field(default_factory=lambda: random.Random(0))

    def offer(self, reason: str, value: Any = None) -> None:
        """Count, and take an example up, perhaps in the place of another (Vitter's algorithm R); None is none."""
        seen = self.counts[reason] = self.counts.get(reason, 0) + 1
        if value is None:
            return
        held = self.kept.setdefault(reason, [])
        if len(held) < _EXAMPLES:
            held.append(value)
        elif (place := self._draw.randrange(seen)) < _EXAMPLES:
            held[place] = value


def shown_rows(groups: Sequence[Group]) -> set[int]:
    """Return the rows whose texts are to be read."""
    return {row for group in groups for row in group.rows}


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
        numbers: candidate pairs whose sides do not hold the same numbers: in digits (separators of thousands ignored), or
            in digits on one side and in another way on the other (see :mod:`xswe.text.languages`).
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
        """Return the language that a side's script is checked against, None for no check.

        Raises:
            ConfigError: the check is wanted but the language is not known.
        """
        if not self.script:
            return None
        if code is None:
            raise ConfigError(f"script=true needs the languages of the files: set languages=[en,ja] ({side} missing)")
        return check_languages([code])[0]


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


def number_key(text: str, in_order: bool = False) -> int:
    """Return a 64-bit key that two texts share if they hold the same numbers in digits; 0 for no numbers.

    ``in_order``: also in the same order, but for repetitions.
    """
    if text.isascii() and not any(map(str.isdigit, text)):
        return 0
    numbers = list(written_numbers(text).elements())
    if not in_order:
        numbers.sort()
    return _hash(" ".join(numbers)) or 1 if numbers else 0


@dataclass(frozen=True, eq=False)
class Traits:
    """What the pair filters need to know of every line of a side."""

    sizes: np.ndarray  # UTF-8 bytes, int64 (n,)
    identities: np.ndarray  # uint64 (n,), see :func:`identity_key`; empty where the filter is off
    numbers: np.ndarray  # uint64 (n,), see :func:`number_key`; empty where the filter is off
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
        for place in np.flatnonzero(~same).tolist():  # few lines have numbers
            same[place] = same_numbers(source.texts[int(rows[place])], target.texts[int(columns[place])])
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
    """Rule candidate pairs out, so that the next best may take their place.

    Returns the candidates, those ruled out with a score of -inf, and how many candidates of sources and of targets each
    filter was the first to rule out.
    """
    dropped: dict[str, int] = {}
    forward = _filter(candidates.forward, candidates.forward_ids, config, source, target, dropped)
    backward = _filter(candidates.backward, candidates.backward_ids, config, target, source, dropped)
    return Candidates(forward, candidates.forward_ids, backward, candidates.backward_ids), dropped


Encode = Callable[[Sequence[str]], np.ndarray]
_BLOCK = 16_384
_SHOWN = 500  # characters of a line that was left out
_FORMAT = 3
_SKETCHED = 100_000  # lines, the first that stay, among which near-duplicates are counted
# What a line is told by, beside its text: its number in the file, what it says without case and blanks, its numbers.
_COLUMNS = {"numbers": np.int64, "identities": np.uint64, "figures": np.uint64}


@dataclass(frozen=True, eq=False)
class Side:
    """The lines of one side that are searched, memory-mapped."""

    texts: Texts  # their texts
    numbers: np.ndarray  # their line numbers in the file from 1, int64 (n,)
    ids: Texts | None  # their ids, None if the file has none
    vectors: Vectors  # their unit vectors
    traits: Traits  # what the pair filters need
    read: int  # lines of the file
    dropped: dict[str, int]  # how many lines were left out, by reason
    examples: dict[str, list[str]] = field(default_factory=dict)  # some of those, drawn at random
    near: float = 0.0  # share of near-duplicates of earlier lines among the first that stay

    def __len__(self) -> int:
        return len(self.texts)

    def names(self, rows: np.ndarray) -> Iterable[str]:
        """Return the ids of lines: the file's own, or else the line numbers."""
        return self.ids.take(rows) if self.ids is not None else map(str, self.numbers[rows].tolist())


@dataclass(frozen=True)
class SideConfig:
    """How a side is read.

    Attributes:
        path: text file, plain or compressed; ``-`` for standard input.
        ids: lines are ``id<TAB>text`` (as in BUCC) instead of text.
        language: its language's code, where the script is checked.
        filters: which lines are left out.
        storage: of the vectors.
        on_error: what a line that is not UTF-8 does: ``raise``, or ``skip`` (and count).
    """

    path: str
    ids: bool = False
    language: str | None = None
    filters: FilterConfig = field(default_factory=FilterConfig)
    storage: Storage = "float32"
    on_error: OnError = "raise"

    def identity(self, model: str) -> str:
        """Return what decides the content of the folder; the file is known by its stamp, the model by its identity."""
        if self.path == "-":
            return fingerprint(unrepeatable())
        return fingerprint(_FORMAT, {**asdict(self), "path": file_stamp(self.path)}, model)


@dataclass
class NearDuplicates:
    """Counts, of the first ``most`` lines or pairs, those that share most shingles with an earlier one, digits ignored."""

    most: int = _SKETCHED
    lines: int = 0
    repeated: int = 0
    _seen: KeySet = field(default_factory=KeySet)

    def add(self, *sides: Texts) -> None:
        """Look at some more, unless enough were."""
        if rows := min(len(sides[0]), self.most - self.lines):
            bands = sketches(*(texts.take(np.arange(rows)) for texts in sides))
            new = self._seen.add(bands.ravel()).reshape(bands.shape)  # the keys of a band are of no other
            self.repeated += int((~new).any(axis=1).sum())
            self.lines += rows

    @property
    def share(self) -> float:
        """The share of these; 0 without any."""
        return self.repeated / max(1, self.lines)


def _lines(
    config: SideConfig, given: Sequence[str] | None, dropped: Reservoir, read: list[int]
) -> Iterator[tuple[int, str, str]]:
    """Iterate over (number, id, text) of the lines that pass the filters on single lines."""
    language = config.filters.language(config.language, config.path)
    skipped = Skipped()
    lines = enumerate(given, 1) if given is not None else read_lines(config.path, on_error=config.on_error, skipped=skipped)
    for number, line in lines:
        read[0] = number
        if line is None:
            continue
        name = ""
        if config.ids:
            name, tab, line = line.partition("\t")
            if not tab or not name:
                if RAISES[config.on_error]:
                    cure = "mend the line, or set ids=false if the lines have no ids"
                    raise InputError(config.path, "no id<TAB>text", cure, number)
                skipped.add("no id")
                continue
        text = line.strip()
        if reason := reason_to_drop(text, config.filters, language):
            dropped.offer(reason, text[:_SHOWN] or None)
            continue
        yield number, name, text
    for reason, count in skipped.counts.items():
        dropped.counts[reason] = dropped.counts.get(reason, 0) + count
    if read[0] and dropped.counts.get("no id") == read[0]:
        raise InputError(config.path, "not one line is id<TAB>text", "set ids=false; the output then has line numbers")


def _write(
    folder: Path, config: SideConfig, given: Sequence[str] | None, encode: Encode, dim: int, description: str
) -> dict[str, Any]:
    """Read, filter and encode the file into ``folder``; returns the report."""
    dropped, read, seen, near = Reservoir(), [0], KeySet(), NearDuplicates()
    with ExitStack() as stack:
        texts = stack.enter_context(text_writer(folder, "texts"))
        ids = stack.enter_context(text_writer(folder, "ids")) if config.ids else None
        numbers, identities, figures = (
            stack.enter_context(closing(GrowingArray(folder / f"{name}.npy", kind))) for name, kind in _COLUMNS.items()
        )
        vectors = stack.enter_context(closing(VectorWriter(folder / "vectors.npy", dim, config.storage)))
        progress = stack.enter_context(bar(f"encode {description}", unit="line"))
        lines = _lines(config, given, dropped, read)
        while block := list(islice(lines, _BLOCK)):
            begun = Texts.of([text for _, _, text in block])
            new = np.ones(len(block), bool)
            if config.filters.duplicates:
                new = seen.add(text_hashes(begun))
                for place in np.flatnonzero(~new).tolist():
                    dropped.offer("duplicate", block[place][2][:_SHOWN])
            kept = [line for line, fresh in zip(block, new, strict=True) if fresh]
            strings = [text for _, _, text in kept]
            stay = begun.take(np.flatnonzero(new))
            near.add(stay)
            append_texts(texts, stay)
            numbers.append(np.array([number for number, _, _ in kept], np.int64))
            if ids is not None:
                append_texts(ids, Texts.of([name for _, name, _ in kept]))
            if config.filters.identical:
                identities.append(np.array([identity_key(text) for text in strings], np.uint64))
            if config.filters.numbers:
                figures.append(np.array([number_key(text) for text in strings], np.uint64))
            vectors.append(encode(strings) if strings else np.zeros((0, dim), np.float32))
            progress.update(len(block))
    return {"read": read[0], "dropped": dropped.counts, "examples": dropped.kept, "near": near.share}


def prepare_side(
    folder: Path,
    config: SideConfig,
    encode: Encode,
    dim: int,
    model: str,
    description: str,
    given: Sequence[str] | None = None,
) -> Side:
    """Read and encode a file into a folder, unless the folder already holds just that, undamaged; open it.

    ``encode`` turns texts into float32 (n, dim) unit vectors; ``given`` are the lines themselves, in the place of a file's,
    and ``config.path`` is then ``-``. InputError: the file is missing, or (unless skipping) a line is damaged.
    """
    identity = config.identity(model)

    def write(place: Path) -> None:
        """Write the side, and what is told of it."""
        write_json(place / "side.json", {"identity": identity, **_write(place, config, given, encode, dim, description)})

    once(folder, identity, write)
    report = read_json(folder / "side.json")
    texts = Texts.open(folder, "texts")
    numbers, identities, figures = (np.load(folder / f"{name}.npy", mmap_mode="r") for name in _COLUMNS)
    return Side(
        texts,
        numbers,
        Texts.open(folder, "ids") if config.ids else None,
        Vectors.open(folder / "vectors.npy"),
        Traits(texts.sizes, identities, figures, texts),
        report["read"],
        report["dropped"],
        report.get("examples", {}),
        report["near"],
    )
