"""Duplicates among the lines of one file: exact, near and semantic.

A line is dropped if an earlier line says the same: in the same characters (exact), with the same letters or mostly the same
shingles (near), or with a cosine of at least the threshold (semantic: Abbas et al., 2023, SemDeDup). So the first line of
every cluster stays, and each decision is one pair with one score. As the nearest earlier line of every line is known,
another threshold needs no second search.

Shingles and cosines hardly tell numbers apart ("gate 12", "gate 14"), or names: unless digits are ignored, a line is
compared only with lines that hold the same numbers, and stays if it differs from its nearest line in names alone.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Unpack

import numpy as np

from xswe.bitext.formats import FORMATS, format_by_name
from xswe.bitext.output import format_of, one_line, output_format
from xswe.bitext.records import Record
from xswe.bitext.seen import pair_hashes, text_hashes
from xswe.bitext.source import Source
from xswe.corpus.near_duplicates import sketches
from xswe.errors import ConfigError
from xswe.io.arguments import texts_of
from xswe.io.files import (
    check_apart,
    check_output,
    file_stamp,
    fingerprint,
    is_special,
    open_output,
    scratch,
)
from xswe.io.lines import OnError
from xswe.io.parallel import single_threaded_blas
from xswe.io.ragged import Texts, append_texts, text_writer
from xswe.io.results import Result
from xswe.io.settings import changed, check_choice, for_all, refuse_unused
from xswe.io.sources import suffix_of
from xswe.mining.hard_rules import identity_key, number_key
from xswe.model.ensemble import AnyModel, open_model
from xswe.progress import bar
from xswe.search.lists import SearchConfig
from xswe.search.neighbours import neighbours_within
from xswe.search.vectors import Storage, check_storage, encoded_to
from xswe.version import __version__
from xswe.work.config import LOCAL, ExecutionConfig
from xswe.work.folder import discard, work_folder
from xswe.work.kept import unrepeatable
from xswe.work.once import is_made, once

if TYPE_CHECKING:
    from xswe.settings import DedupSettings

REASONS = ("kept", "exact", "near", "semantic", "damaged")
_EXACT, _NEAR, _SEMANTIC, _DAMAGED = range(1, 5)
_BLOCK = 16_384
_SHINGLE = 4  # bytes, as in the sketches
_BANDS, _BAND_ROWS = 8, 5  # of the sketches: 96 % of lines with .8 of their shingles in common are compared, 22 % with .5
_MAX_PRODUCT_LINES = 1024  # lines with the same numbers that are compared in one matrix product
Digits = Literal["compare", "ignore"]
_WORD = re.compile(r"[ァ-ヴー]{2,}|[A-Za-zÀ-ɏ]+|[^\W\d_A-Za-zÀ-ɏァ-ヴー]+")
_DIGIT = re.compile(r"\d")
_COMPARES_DIGITS = for_all(Digits, {"compare": True, "ignore": False})


@dataclass(frozen=True)
class DedupConfig:
    """What counts as a duplicate, and how duplicates are found.

    Attributes:
        threshold: minimum cosine with an earlier line; None for no semantic duplicates.
        near: minimum share of four-byte shingles in common (Jaccard), found by sketches; None for no near-duplicates.
        digits: ``compare``: lines with different numbers in digits, or that differ only in names (capitalised words not at
            the start of the line, words in Katakana), are not near or semantic duplicates of each other; ``ignore``: they
            are if all else is alike, as in lines made from a template.
        column: column of the text in tab-separated lines (a line without tabs is one column), from 0; for ``.csv`` a name
            as well; for ``.jsonl`` the name of a field, ``text`` if a number is given.
        on_error: what to do with a damaged record: ``raise``, or ``skip`` (drop it).
        storage: type of the vectors in the work folder: ``float32``, ``float16`` or ``int8``.
        keep: keep the work folder; the same call with another threshold reuses its search.
        neighbours: settings of the search for neighbours.
        execution: who searches: this process, the tasks of a batch queue, or a cluster, all with the same bytes as
            result. The tasks of a batch queue need the input as a file.
    """

    threshold: float | None = 0.9
    near: float | None = 0.8
    digits: Digits = "compare"
    column: int | str = 0
    on_error: OnError = "raise"
    storage: Storage = "float32"
    keep: bool = False
    neighbours: SearchConfig = field(default_factory=SearchConfig)
    execution: ExecutionConfig = LOCAL

    def __post_init__(self) -> None:
        check_storage(self.storage)
        check_choice("digits", self.digits, Digits)
        for name in ("threshold", "near"):
            value = getattr(self, name)
            if value is not None and not 0 < value <= 1:
                raise ConfigError(f"{name}={value}: give a number above 0 and up to 1, or null for none")
        if self.threshold is None:
            why = "with threshold=null, which compares no vectors"
            refuse_unused(self, {why: ("storage", "keep")})
            refuse_unused(self.neighbours, {why: ("memory", "method", "device")}, "neighbours")


class Line(NamedTuple):
    """A line, the reason it is dropped, the earlier line most like it, and the first line of its cluster, from 0."""

    row: int
    reason: str
    score: float
    duplicate_of: int
    cluster: int


@dataclass(frozen=True, eq=False)
class Deduplicated(Result[Line], row=Line):
    """The duplicates among lines, each with an earlier line and the reason; a sequence of :class:`Line`.

    Attributes:
        nearest: int64 (n,), the earlier line most like each line, from 0; -1 for none.
        scores: float32 (n,): 1 for the same text, the share of shingles in common, or the cosine; NaN without a line.
        kinds: uint8 (n,), what the score measures: an index into :data:`REASONS`; 0 without a nearest line.
        threshold: minimum cosine of semantic duplicates; None for none.
        source: what was read.
    """

    nearest: np.ndarray
    scores: np.ndarray
    kinds: np.ndarray
    threshold: float | None
    source: Source | Sequence[str]

    def __len__(self) -> int:
        return len(self.kinds)

    @property
    def reasons(self) -> np.ndarray:
        """Why each line is dropped, uint8 (n,), an index into :data:`REASONS`; 0 for lines that stay."""
        enough = np.inf if self.threshold is None else np.float32(self.threshold)
        return np.where((self.kinds == _SEMANTIC) & ~(self.scores >= enough), 0, self.kinds).astype(np.uint8)

    @property
    def kept(self) -> np.ndarray:
        """Which lines stay, bool (n,)."""
        return self.reasons == 0

    @property
    def duplicate_of(self) -> np.ndarray:
        """The earlier line that each line duplicates, int64 (n,), from 0; -1 for lines that stay."""
        return np.where(self.kept, -1, self.nearest)

    @property
    def clusters(self) -> np.ndarray:
        """The first line of each line's cluster, int64 (n,), from 0; a line without duplicates is its own."""
        places = np.arange(len(self))
        first = np.where(self.duplicate_of < 0, places, self.duplicate_of)
        while not np.array_equal(further := first[first], first):
            first = further
        return first

    @property
    def counts(self) -> dict[str, int]:
        """Number of lines by reason, kept lines first; reasons without lines are left out."""
        counts = np.bincount(self.reasons, minlength=len(REASONS))
        return {name: int(count) for name, count in zip(REASONS, counts, strict=True) if count}

    def rethreshold(self, threshold: float | None) -> Deduplicated:
        """Return the result for another threshold, without another search."""
        return replace(self, threshold=threshold)

    def records(self) -> Iterator[Line]:
        """Return one row per line, all counted from 0; lines that stay may have a score, too."""
        columns = (self.reasons.tolist(), self.scores.tolist(), self.duplicate_of.tolist(), self.clusters.tolist())
        for row, (reason, score, original, cluster) in enumerate(zip(*columns, strict=True)):
            yield Line(row, REASONS[reason], score, original, cluster)

    def __repr__(self) -> str:
        return f"Deduplicated({int(self.kept.sum()):,} of {len(self):,} lines kept, threshold {self.threshold})"

    def __str__(self) -> str:
        counts = self.counts
        kept = counts.pop("kept", 0)
        dropped = ", ".join(f"{count:,} {reason}" for reason, count in counts.items()) or "none"
        largest = int(np.bincount(self.clusters).max()) if len(self) else 0
        return f"{len(self):,} lines read, {kept:,} kept; dropped: {dropped}; largest cluster: {largest:,} lines"

    def save(self, output: str | Path, rejects: str | Path | None = None) -> None:
        """Write the lines that stay, unchanged.

        Args:
            output: file, compressed by its suffix; ``-`` for standard output.
            rejects: a file for the dropped lines: reason, score, line number, number of the line that it duplicates (from
                1), text of that line, and the record, separated by tabs.
        """
        reasons = self.reasons
        records = zip(_records(self.source), reasons.tolist(), strict=True)
        kept = ((record, 0.0) for record, reason in records if not reason)
        file = self.source if isinstance(self.source, Source) else Source(("-",))  # texts are written one per line
        file.write(str(output), kept)
        if rejects is not None:
            self._save_rejects(str(rejects), reasons)

    def _save_rejects(self, path: str, reasons: np.ndarray) -> None:
        wanted = set(np.unique(self.duplicate_of[reasons > 0]).tolist())
        shown: dict[int, str] = {}
        columns = zip(reasons.tolist(), self.scores.tolist(), self.duplicate_of.tolist(), strict=True)
        with open_output(path) as stream:
            for row, (record, (reason, score, original)) in enumerate(zip(_records(self.source), columns, strict=True)):
                if row in wanted and record.texts:
                    shown[row] = one_line(record.texts[0])
                if reason:
                    fields = (REASONS[reason], f"{score:.6f}", str(row + 1), str(original + 1), shown.get(original, ""))
                    stream.write("\t".join(fields).encode() + b"\t" + record.raw.replace(b"\n", b" ") + b"\n")


def _records(source: Source | Sequence[str]) -> Iterator[Record]:
    if isinstance(source, Source):
        return source.read()
    return (Record(text.encode("utf-8", "replace"), b"\n", (text.strip(), "")) for text in source)


def dedup(
    model: AnyModel | str | Path | None,
    input: Sequence[str] | str | Path,
    output: str | Path | None = None,
    *,
    rejects: str | Path | None = None,
    work: str | Path | None = None,
    config: DedupConfig | None = None,
    **settings: Unpack[DedupSettings],
) -> Deduplicated:
    """Find duplicates among lines, and drop them.

    Args:
        model: the model, or its name; None with ``threshold=None``.
        input: a list of texts; or the name of a file (text, tab-separated, ``.csv`` or ``.jsonl``, compressed or not, ``-``
            for standard input).
        output: a file for the lines that stay, unchanged, with their other columns; ``-`` for standard output.
        rejects: a file for the dropped lines, see :meth:`Deduplicated.save`.
        work: folder for unfinished work; None for ``<output>.work``. A killed run on a file resumes from there, with the
            same bytes as result.
        config: what counts as a duplicate; see :class:`DedupConfig`.
        settings: single fields of ``config``: ``threshold``, ``near``, ``column``, …; ``threads`` and ``method`` are those
            of the search.

    Raises:
        ConfigError: a setting is unknown or impossible.
        InputError: a file is missing or damaged.
        Unfinished: with an array, the tasks with the other shards are not done yet.

    Example:
        >>> import xswe
        >>> lines = ["A cat sleeps.", "The train is late.", "a cat  sleeps", "The train is delayed.", "Bread is cheap."]
        >>> found = xswe.dedup(xswe.load("mini"), lines, threshold=0.5)
        >>> found.kept.tolist(), found.clusters.tolist()
        ([True, True, False, False, True], [0, 1, 0, 1, 4])
        >>> found.rethreshold(0.99).counts
        {'kept': 4, 'near': 1}
    """
    config = changed(config or DedupConfig(), settings, "dedup")
    if model is None and config.threshold is not None:
        raise ConfigError("model=None encodes nothing: give a model, or threshold=None for exact and near duplicates")
    source = _file(str(input), config) if isinstance(input, (str, Path)) else list(texts_of(input, "input"))
    _check_files(config, source, output, rejects)
    opened = None if config.threshold is None or model is None else open_model(model, "dedup(model, input)")
    steps = _Dedup(opened, source, config)
    if output is None:
        with scratch("xswe-dedup-") as folder:
            steps.prepare(Path(folder))
            return steps.searched(Path(folder), Path(folder))
    with work_folder(str(output), config.execution, config.keep, work=work) as place:
        if config.execution.has_peers:
            return steps.shared(place, output, rejects)
        found = steps.found(place)
        found.save(output, rejects)
        return found


def _file(path: str, config: DedupConfig) -> Source:
    """Return the file to read; both texts of its records are the same column."""
    kind = format_by_name(path)
    if FORMATS[kind].family == "memory":
        raise ConfigError(f"{path}: dedup reads lines of one language; python -m xswe filter drops duplicates of bitext")
    column = "text" if kind == "jsonl" and isinstance(config.column, int) else config.column
    return Source((path,), (column, column), (), config.on_error)


def _check_files(
    config: DedupConfig, source: Source | list[str], output: str | Path | None, rejects: str | Path | None
) -> None:
    """Refuse incompatible files, before any work."""
    if output is None:
        if rejects is not None:
            raise ConfigError("rejects= needs output=: give both, or read the reasons from the result")
        config.execution.check_names(output)
        return
    for name, path in (("output", output), ("rejects", rejects)):
        if path is not None and isinstance(source, Source):
            check_output(path, [one for one in source.paths if one != "-"], name)
    if rejects is not None:
        check_apart("rejects", rejects, output)
    if isinstance(source, Source):
        _check_kind(str(output), source)
    if config.execution.has_peers:
        names = source.paths if isinstance(source, Source) else [None]
        config.execution.check_names(*names, None if is_special(Path(output)) else output)


def _check_kind(output: str, file: Source) -> None:
    """Refuse an output whose suffix names another format than that of the lines."""
    same = suffix_of(output) == suffix_of(file.paths[0])  # lines of Markdown are kept; its tables have the same suffix
    if not same and output_format("auto", output, ("", "")) != format_of(file):
        raise ConfigError(f"{output}: lines keep the format of {file.paths[0]}; give output= the same suffix")


_ARRAYS = ("nearest", "scores", "kinds")  # kept for every line


@dataclass(frozen=True)
class _Dedup:
    """The steps of deduplication, each in a folder from which a later run resumes."""

    model: AnyModel | None
    source: Source | list[str]
    config: DedupConfig

    def prepare(self, place: Path) -> None:
        """Read the lines into a folder: the exact or near-duplicate of each, and vectors of lines without one."""
        keys, texts, damaged = _read(self.source, place, self.config)
        nearest, scores, kinds = _by_letters(keys, texts, self.config.near, _COMPARES_DIGITS[self.config.digits])
        kinds[damaged], nearest[damaged] = _DAMAGED, -1
        if self.model is not None:
            rows, threads = np.flatnonzero((kinds == 0) & (keys.numbers == 0)), self.config.neighbours.workers
            encoded_to(place / "vectors.npy", self.model, texts, self.config.storage, threads, rows)
            np.save(place / "rows.npy", rows)
            numbered = np.flatnonzero((kinds == 0) & (keys.numbers != 0))
            for groups in _batches(_groups_by_key(numbered, keys.numbers[numbered])):
                vectors = self.model.encode(texts.take(np.concatenate(groups)), threads=threads)
                for own, part in zip(groups, np.split(vectors, np.cumsum([*map(len, groups)])[:-1]), strict=True):
                    earlier, cosines = self._within(part)
                    nearest[own[1:]], scores[own[1:]], kinds[own[1:]] = own[earlier], cosines, _SEMANTIC
            self._part_by_names(numbered, texts, nearest, scores, kinds)
        _save(place, nearest, scores, kinds)

    def _part_by_names(
        self, rows: np.ndarray, texts: Texts, nearest: np.ndarray, scores: np.ndarray, kinds: np.ndarray
    ) -> None:
        """Remove the nearest line from lines that differ from it only in names."""
        if _COMPARES_DIGITS[self.config.digits]:
            asked = rows[kinds[rows] == _SEMANTIC].tolist()
            named = [row for row in asked if differ_in_names(texts[row], texts[int(nearest[row])])]
            nearest[named], scores[named], kinds[named] = -1, np.nan, 0

    def _within(self, vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the nearest earlier vector of each but the first, int64 (n - 1,), and its cosine, float32 (n - 1,)."""
        if len(vectors) > _MAX_PRODUCT_LINES:
            lists = neighbours_within(vectors, 1, self.config.neighbours)
            return lists.forward_ids[1:, 0].astype(np.int64), lists.forward[1:, 0]
        with single_threaded_blas():
            cosines = (vectors @ vectors.T)[1:]
        cosines[np.triu_indices(len(cosines), 1, len(vectors))] = -np.inf
        earlier = cosines.argmax(axis=1)
        return earlier, cosines[np.arange(len(cosines)), earlier]

    def searched(self, prepared: Path, place: Path) -> Deduplicated:
        """Find the nearest earlier line of each line with a vector; a killed search is resumed from ``place``."""
        nearest, scores, kinds = _opened(prepared)
        if self.model is not None:
            rows, vectors = np.load(prepared / "rows.npy"), prepared / "vectors.npy"
            lists = neighbours_within(vectors, 1, self.config.neighbours, self.config.execution, place)
            there = lists.forward_ids[:, 0] >= 0
            nearest[rows[there]] = rows[lists.forward_ids[there, 0]]
            scores[rows[there]], kinds[rows[there]] = lists.forward[there, 0], _SEMANTIC
            self._part_by_names(rows, Texts.open(prepared, "texts"), nearest, scores, kinds)
        return Deduplicated(nearest, scores, kinds, self.config.threshold, self.source)

    @property
    def _search(self) -> dict[str, Any]:
        return vars(replace(self.config.neighbours, threads=None, memory=1.0))  # neither changes the result

    @property
    def _reading(self) -> str:
        """Fingerprint of all that decides the prepared lines; different in every run for a list of texts."""
        stamp = file_stamp(self.source.paths[0]) if isinstance(self.source, Source) else unrepeatable()
        config, model = self.config, None if self.model is None else [self.model.identity, self.config.storage]
        return fingerprint(__version__, stamp, model, config.near, config.digits, config.column, config.on_error)

    def found(self, folder: Path) -> Deduplicated:
        """Read, encode and search in a folder, once."""
        work = self
        if isinstance(self.source, Source):
            work = replace(self, source=self.source.spooled(folder))
        place = folder / f"lines-{work._reading}"
        sought = folder / f"{place.name}-search"
        for earlier in set(folder.glob("lines-*")) - {place, sought}:
            discard(earlier, self.config.execution)
        once(place, place.name, work.prepare)
        return work.searched(place, sought)

    def shared(self, folder: Path, output: str | Path, rejects: str | Path | None) -> Deduplicated:
        """Do the work as one task of an array; a task that finds all shards finished writes the output."""
        done, written = folder / "done", [str(path) for path in (output, rejects) if path is not None]
        identity = fingerprint(self._reading, self._search, self.config.threshold, written)
        if is_made(done, identity, written):
            return Deduplicated(*_opened(done), self.config.threshold, self.source)
        found = self.found(folder)

        def write(place: Path) -> None:
            """Write the lines that stay, and keep the counts of the summary."""
            found.save(output, rejects)
            _save(place, found.nearest, found.scores, found.kinds)

        once(done, identity, write, written)
        return found


def _save(place: Path, *arrays: np.ndarray) -> None:
    for name, array in zip(_ARRAYS, arrays, strict=True):
        np.save(place / f"{name}.npy", array)


def _opened(place: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    nearest, scores, kinds = (np.load(place / f"{name}.npy") for name in _ARRAYS)
    return nearest, scores, kinds


@dataclass(frozen=True, eq=False)
class _Keys:
    """Keys equal for lines with the same text, uint64 (n,), letters (n,), sketch bands (n, b), and numbers (n,).

    If digits are compared, lines share keys of letters and sketches only with the same numbers; otherwise all keys of
    numbers are 0, as for lines without any.
    """

    exact: np.ndarray
    letters: np.ndarray
    bands: np.ndarray
    numbers: np.ndarray


def _read(source: Source | list[str], folder: Path, config: DedupConfig) -> tuple[_Keys, Texts, np.ndarray]:
    """Read the texts into the folder; return their keys, the texts, and which records are damaged."""
    parts: list[tuple[np.ndarray, ...]] = []
    near, compared = config.near is not None, _COMPARES_DIGITS[config.digits]
    records = _records(source)
    with text_writer(folder, "texts") as writer, bar("read", unit="line") as progress:
        while block := list(islice(records, _BLOCK)):
            strings = [record.texts[0] if record.texts else "" for record in block]
            texts = Texts.of(strings)
            append_texts(writer, texts)
            letters = np.array([identity_key(text) for text in strings] if near else [], np.uint64)
            bands = sketches(texts, bands=_BANDS, rows=_BAND_ROWS) if near else np.zeros((len(block), 0), np.uint64)
            numbers = np.array([number_key(text, in_order=True) if compared else 0 for text in strings], np.uint64)
            if compared and near:
                letters, bands = _with_numbers(letters, numbers), _with_numbers(bands, numbers[:, None])
            damaged = np.array([record.texts is None for record in block])
            parts.append((text_hashes(texts), letters, bands, numbers, damaged))
            progress.update(len(block))
    if not parts:
        nothing = np.zeros(0, np.uint64)
        parts.append((nothing, nothing, np.zeros((0, 0), np.uint64), nothing, np.zeros(0, bool)))
    exact, letters, bands, numbers, damaged = (np.concatenate(column) for column in zip(*parts, strict=True))
    return _Keys(exact, letters, bands, numbers), Texts.open(folder, "texts"), damaged


def _with_numbers(keys: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """Return keys that only lines with the same numbers share."""
    return pair_hashes(keys.ravel(), np.broadcast_to(numbers, keys.shape).ravel()).reshape(keys.shape)


def _groups_by_key(rows: np.ndarray, keys: np.ndarray) -> Iterator[np.ndarray]:
    """Yield groups of two or more rows with the same key, each in ascending order."""
    order = np.argsort(keys, kind="stable")
    for own in np.split(rows[order], np.flatnonzero(np.diff(keys[order])) + 1):
        if len(own) > 1:
            yield own


def _batches(groups: Iterable[np.ndarray]) -> Iterator[list[np.ndarray]]:
    """Yield groups of rows in batches large enough to encode."""
    batch, size = [], 0
    for group in groups:
        batch.append(group)
        size += len(group)
        if size >= _BLOCK:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _first(keys: np.ndarray) -> np.ndarray:
    """Return the first row that has the same key as each row, int64 (n,)."""
    order = np.argsort(keys, kind="stable")
    new = np.ones(len(keys), bool)
    new[1:] = keys[order][1:] != keys[order][:-1]
    first = np.empty(len(keys), np.int64)
    first[order] = order[np.maximum.accumulate(np.where(new, np.arange(len(keys)), 0))]
    return first


def differ_in_names(a: str, b: str) -> bool:
    """Return True if two texts differ only in names."""
    here, there = (_WORD.findall(text) for text in (a, b))
    if len(here) != len(there):
        return False
    pairs = enumerate(zip(here, there, strict=True))
    others = [(place, pair) for place, pair in pairs if pair[0].casefold() != pair[1].casefold()]
    return bool(others) and all(_is_name(word, place) for place, pair in others for word in pair)


def _is_name(word: str, place: int) -> bool:
    return "ァ" <= word[0] <= "ー" or (place > 0 and word[0].isupper())


def _by_letters(keys: _Keys, texts: Texts, near: float | None, compared: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the earlier line that each line is an exact or near-duplicate of, its score and its kind."""
    count = len(keys.exact)
    nearest, scores, kinds = np.full(count, -1), np.full(count, np.nan, np.float32), np.zeros(count, np.uint8)
    columns = [(_EXACT, keys.exact)] if near is None else [(_EXACT, keys.exact), (_NEAR, keys.letters)]
    for kind, column in columns:
        first = _first(column)
        rows = np.flatnonzero((first < np.arange(count)) & (kinds == 0))
        nearest[rows], scores[rows], kinds[rows] = first[rows], 1.0, kind
    if near is None:
        return nearest, scores, kinds
    for band in range(keys.bands.shape[1]):
        first = _first(keys.bands[:, band])
        for row in np.flatnonzero((first < np.arange(count)) & ((kinds == 0) | (scores < 1))).tolist():
            text, earlier = texts[row], texts[int(first[row])]
            share = _shared(text, earlier, compared)
            if share >= near and not (scores[row] >= share) and not (compared and differ_in_names(text, earlier)):
                nearest[row], scores[row], kinds[row] = first[row], share, _NEAR
    return nearest, scores, kinds


def _shared(a: str, b: str, digits: bool) -> float:
    """Return the Jaccard similarity of two texts' shingles, ignoring case, blanks and, without ``digits``, digits."""
    plain = ("".join(unicodedata.normalize("NFKC", text).casefold().split()) for text in (a, b))
    here, there = (
        {text[i : i + _SHINGLE] for i in range(max(1, len(text) - _SHINGLE + 1))}
        for text in (text.encode() if digits else _DIGIT.sub("0", text).encode() for text in plain)
    )
    return len(here & there) / len(here | there)
