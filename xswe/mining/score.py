"""Scores of an aligned bitext, appended as a column; order and all other bytes are unchanged."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Unpack

import numpy as np

from xswe.bitext.output import Format, format_of, output_format
from xswe.bitext.records import Record
from xswe.bitext.seen import KeySet, text_hashes
from xswe.bitext.source import Source
from xswe.corpus.near_duplicates import NearDuplicates
from xswe.errors import ConfigError
from xswe.io.arguments import check_model, file_names, texts_of
from xswe.io.files import check_output, file_stamp, fingerprint, read_json, write_json
from xswe.io.lines import OnError, Skipped, left_out_of
from xswe.io.products import row_products
from xswe.io.ragged import Texts
from xswe.io.settings import changed, check_choice, check_least, refuse_unused
from xswe.mining.margin import Score, neighbourhood, score_cosines
from xswe.mining.threshold import estimate_from_decoys, near_duplicate_note
from xswe.model.ensemble import AnyModel, open_model
from xswe.progress import bar, took
from xswe.search.lists import SearchConfig
from xswe.search.neighbours import find_neighbours
from xswe.search.vectors import Storage, VectorWriter, as_vectors
from xswe.work.folder import work_folder
from xswe.work.once import once

if TYPE_CHECKING:
    from xswe.settings import ScoreFileSettings

_BLOCK = 16_384
UNSCORED = float("nan")


@dataclass(frozen=True)
class ScoreFileConfig:
    """How a bitext is read, scored and written.

    Attributes:
        score: ``cosine`` is computed while reading; a margin needs the neighbourhoods among all lines of the bitext first.
        k: number of neighbours in the neighbourhood of a margin.
        storage: type of the vectors in the work folder.
        neighbours: settings of the search for neighbours.
        columns: of source and target in separated text: numbers from 0, or names; for JSON the names of fields.
        languages: of source and target, for ``.tmx`` and ``.jsonl``.
        on_error: what to do with a damaged record: ``raise`` or ``skip``.
        format: of the output, which must be that of the bitext; ``auto``: by its name.
        keep: keep the work folder.
    """

    score: Score = "cosine"
    k: int = 4
    storage: Storage = "float32"
    neighbours: SearchConfig = field(default_factory=SearchConfig)
    columns: tuple[int | str, ...] = (0, 1)
    languages: tuple[str, ...] = ()
    on_error: OnError = "raise"
    format: Format = "auto"
    keep: bool = False

    def __post_init__(self) -> None:
        check_choice("score", self.score, Score)
        check_least(self, k=1)
        if self.streams:
            sought = ["neighbours"] if replace(self.neighbours, threads=None) != SearchConfig() else []
            refuse_unused(self, {"without a margin as score": ["k", "storage", "keep", *sought]})

    @property
    def streams(self) -> bool:
        """Whether a line's score depends only on that line."""
        return self.score == "cosine"


def score_pairs(
    model: AnyModel,
    source: Sequence[str],
    target: Sequence[str],
    score: Score = "cosine",
    k: int = 4,
    neighbours: SearchConfig | None = None,
) -> np.ndarray:
    """Score aligned texts, float32 (n,).

    Args:
        model: the model.
        source: n texts.
        target: n texts.
        score: which score; a margin takes its neighbourhoods among the distinct texts given.
        k: number of neighbours in the neighbourhood of a margin.
        neighbours: settings of the search for neighbours.

    Raises:
        ConfigError: the lists differ in length.
    """
    check_model(model, "score(model, source, target)")
    source, target = texts_of(source, "source"), texts_of(target, "target")
    if len(source) != len(target):
        raise ConfigError(f"{len(source)} source texts for {len(target)} target texts: give as many of both")
    search = neighbours or SearchConfig()
    sides = [list(dict.fromkeys(texts)) for texts in (source, target)]
    vectors = [model.encode(side, threads=search.workers) for side in sides]
    rows = [
        np.array([place[text] for text in texts], np.int64)
        for texts, place in (
            (t, {text: i for i, text in enumerate(s)}) for t, s in zip((source, target), sides, strict=True)
        )
    ]
    return _score_rows(vectors, rows, score, k, search)[0]


def _score_rows(
    given: Sequence[np.ndarray | Path],
    rows: Sequence[np.ndarray],
    score: Score,
    k: int,
    search: SearchConfig,
    work: Path | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the scores of pairs of rows, and as decoys the scores of each source with the next target."""
    out, decoys = np.empty(len(rows[0]), np.float32), np.empty(max(0, len(rows[0]) - 1), np.float32)
    sides = [as_vectors(side) for side in given]
    source_means, target_means = (np.zeros(len(side), np.float32) for side in sides)
    if score != "cosine":
        lists = find_neighbours(given[0], given[1], k, search, work=work)
        source_means, target_means = neighbourhood(lists.forward, k), neighbourhood(lists.backward, k)
    for scores, first, second in ((out, rows[0], rows[1]), (decoys, rows[0][:-1], rows[1][1:])):
        for start in range(0, len(scores), _BLOCK):
            a, b = (each[start : start + _BLOCK] for each in (first, second))
            cosines = row_products(sides[0].take(a), sides[1].take(b))
            scores[start : start + _BLOCK] = score_cosines(cosines, source_means[a], target_means[b], score)
    return out, decoys


@dataclass(frozen=True)
class Distribution:
    """How the pairs of a bitext score.

    Attributes:
        quantiles: scores at 0, 5, 25, 50, 75, 95 and 100 %; empty without pairs.
        threshold: score above which pairs score like translations; None if it cannot be estimated.
        below: the share of pairs below the threshold.
        unsure: why the threshold cannot be estimated.
    """

    quantiles: tuple[float, ...] = ()
    threshold: float | None = None
    below: float = 0.0
    unsure: str = ""

    @classmethod
    def of(cls, scores: np.ndarray, decoys: np.ndarray) -> Distribution:
        """Summarise the scores of the pairs; ``decoys`` score sources with the next pair's target, which is wrong."""
        if not len(scores):
            return cls()
        quantiles = tuple(np.quantile(scores, (0, 0.05, 0.25, 0.5, 0.75, 0.95, 1)).tolist())
        expected = estimate_from_decoys(scores, decoys, len(scores))
        if expected.unsure:
            return cls(quantiles, unsure=expected.unsure)
        threshold = expected.choose()
        return cls(quantiles, threshold, float((scores < np.float32(threshold)).mean()))

    def __str__(self) -> str:
        if not self.quantiles:
            return ""
        names = ("lowest", "5 %", "25 %", "median", "75 %", "95 %", "highest")
        shown = ", ".join(f"{name} {value:.4f}" for name, value in zip(names, self.quantiles, strict=True))
        note = f"no threshold can be suggested: {self.unsure}"
        if self.threshold is not None:
            note = (
                f"{100 * self.below:.1f} % score below {self.threshold:.4f}, as pairs of different lines do; "
                "python -m xswe filter finds them, and other noise"
            )
        return f"scores: {shown}\n{note}"


@dataclass(frozen=True)
class ScoredBitext:
    """The summary of scoring a bitext: lines read, lines not scored, mean score, seconds taken.

    ``near`` is the share of near-duplicates of earlier pairs among the first hundred thousand; ``left_out`` counts
    damaged records by reason.
    """

    lines: int
    unscored: int
    mean: float
    score: Score
    seconds: float
    output: str
    distribution: Distribution = field(default_factory=Distribution)
    left_out: Mapping[str, int] = field(default_factory=dict)
    near: float = 0.0

    def __str__(self) -> str:
        left_out = f", {self.unscored:,} of them not scored (nan)" if self.unscored else ""
        mean = f", mean {self.score} {self.mean:.4f}" if self.lines > self.unscored else ""
        first = f"{self.lines:,} lines{left_out}{mean}, {took(self.lines, self.seconds, 'lines')}: {self.output}"
        near = near_duplicate_note(self.near, "pairs") if self.lines > self.unscored else ""
        return f"{first}{left_out_of(self.left_out)}{near}\n{self.distribution}".rstrip("\n")


def score_file(
    model: AnyModel | str | Path,
    input: str | Path | Sequence[str | Path],
    output: str | Path,
    *,
    work: str | Path | None = None,
    config: ScoreFileConfig | None = None,
    **settings: Unpack[ScoreFileSettings],
) -> ScoredBitext:
    """Append a score to every record of a bitext, leaving order and all other bytes unchanged.

    Args:
        model: the model, or its name.
        input: any bitext, ``-`` for standard input; or two line-aligned files.
        output: file, plain or compressed, or ``-`` for standard output.
        work: folder for unfinished work; None for ``<output>.work``. A killed run resumes from there.
        config: the settings; see :class:`ScoreFileConfig`.
        settings: single fields of ``config``: ``score``, ``k``, ``columns``, …; ``threads`` and ``method`` are those of the
            search.

    Raises:
        ConfigError: a setting is unknown or impossible, or the output has another format than the bitext.
        InputError: the bitext is missing or damaged.
    """
    config = changed(config or ScoreFileConfig(), settings, "mode=score")
    if work is not None and config.streams:
        raise ConfigError("work does nothing without a margin as score: leave it out")
    paths = tuple(file_names(input, "input", "texts are scored by xswe.score(model, source, target)"))
    check_output(output, [path for path in paths if path != "-"])
    model = open_model(model, "score_file(model, input, output)")
    file = Source(paths, tuple(config.columns), tuple(config.languages) or model.pair, config.on_error)
    kind = output_format(config.format, str(output), file.languages)
    if kind != format_of(file):
        raise ConfigError(
            f"mode=score keeps the format of the bitext, {file.kind}, but {output} is {kind}: name an output of that format"
        )
    started = time.monotonic()
    left_out, near = Skipped(), NearDuplicates()
    if config.streams:
        counts = _stream(model, file, str(output), config, left_out, near)
    else:
        with work_folder(str(output), keep=config.keep, work=work) as place:
            counts = _by_margin(model, file, str(output), config, place, left_out, near)
    lines, scores, decoys = counts
    mean = float(scores.mean(dtype=np.float64)) if len(scores) else UNSCORED
    taken, spread = time.monotonic() - started, Distribution.of(scores, decoys)
    unscored = lines - len(scores)
    return ScoredBitext(lines, unscored, mean, config.score, taken, str(output), spread, left_out.counts, near.share)


# The number of lines of a bitext, the scores of scored lines, and those of their decoys.
_Scores = tuple[int, np.ndarray, np.ndarray]


def _by_margin(
    model: AnyModel,
    file: Source,
    output: str,
    config: ScoreFileConfig,
    work: Path,
    left_out: Skipped,
    near: NearDuplicates,
) -> _Scores:
    """Read and encode the bitext into a folder, find neighbourhoods, and write the bitext with its scores."""
    file = file.spooled(work)
    inputs = [model.identity, [file_stamp(path) for path in file.paths]]
    identity = fingerprint(inputs, config.score, config.storage, list(file.columns))
    spool = work / "bitext"
    once(spool, identity, lambda place: _spool(model, file, place, config))
    read = read_json(spool / "read.json")
    left_out.update(read["left_out"])
    near.lines, near.repeated = read["near"]
    names = ("source", "target")
    hashes = [np.fromfile(spool / f"{name}.hashes", np.uint64) for name in names]
    scored = np.flatnonzero(hashes[0])
    rows = [_rows_of(each[scored]) for each in hashes]
    sides = [spool / f"{name}.npy" for name in names]
    scores = np.full(len(hashes[0]), UNSCORED, np.float32)
    search = work / f"search-{identity}"
    found, decoys = _score_rows(sides, rows, config.score, config.k, config.neighbours, search)
    scores[scored] = found
    file.write(output, zip(file.read_raw(), scores.tolist(), strict=True), scored=True)
    return len(scores), found, decoys


def _rows_of(hashes: np.ndarray) -> np.ndarray:
    """Number distinct hashes by first occurrence, and return the number of each hash."""
    _, first, inverse = np.unique(hashes, return_index=True, return_inverse=True)
    places = np.empty(len(first), np.int64)
    places[np.argsort(first, kind="stable")] = np.arange(len(first))
    return places[inverse]


def _stream(
    model: AnyModel, file: Source, output: str, config: ScoreFileConfig, left_out: Skipped, near: NearDuplicates
) -> _Scores:
    """Score and write the bitext block by block."""
    total, found, decoys = 0, [np.zeros(0, np.float32)], [np.zeros(0, np.float32)]
    threads = config.neighbours.workers
    lines = file.read(left_out)

    def scored() -> Iterator[tuple[Record, float]]:
        """Yield the records with their scores, counting them."""
        nonlocal total
        while block := list(islice(lines, _BLOCK)):
            good = [line.texts for line in block if line.texts is not None]
            sides = [Texts.of([pair[k] for pair in good]) for k in (0, 1)]
            near.add(*sides)
            left, right = (model.encode(side, threads=threads) for side in sides)
            cosines = row_products(left, right)
            found.append(cosines)
            decoys.append(row_products(left[:-1], right[1:]))
            scores = iter(cosines.tolist())
            for line in block:
                yield line, UNSCORED if line.texts is None else next(scores)
            total += len(block)
            progress.update(len(block))

    with bar("score", unit="pair") as progress:
        file.write(output, scored(), scored=True)
    return total, np.concatenate(found), np.concatenate(decoys)


def _spool(model: AnyModel, file: Source, folder: Path, config: ScoreFileConfig) -> None:
    """Write the vectors of each side's distinct texts, and a hash of every line's texts."""
    seen, left_out, near = (KeySet(), KeySet()), Skipped(), NearDuplicates()
    lines = file.read(left_out)
    threads = config.neighbours.workers
    with ExitStack() as stack:

        def create(name: str) -> BinaryIO:
            return stack.enter_context(open(folder / name, "wb"))

        hashes = create("source.hashes"), create("target.hashes")
        vectors = [
            stack.enter_context(closing(VectorWriter(folder / f"{name}.npy", model.dim, config.storage)))
            for name in ("source", "target")
        ]
        progress = stack.enter_context(bar("encode", unit="pair"))
        while block := list(islice(lines, _BLOCK)):
            scorable = np.array([line.texts is not None for line in block])
            good = [line.texts for line in block if line.texts is not None]
            sides = [Texts.of([pair[side] for pair in good]) for side in (0, 1)]
            near.add(*sides)
            for side, texts in enumerate(sides):
                keys = text_hashes(texts)
                everyone = np.zeros(len(block), np.uint64)  # 0 for a line that cannot be scored
                everyone[scorable] = keys
                hashes[side].write(everyone.tobytes())
                new = np.flatnonzero(seen[side].add(keys))
                if len(new):
                    vectors[side].append(model.encode(texts.take(new), threads=threads))
            progress.update(len(block))
    write_json(folder / "read.json", {"left_out": left_out.counts, "near": [near.lines, near.repeated]})
