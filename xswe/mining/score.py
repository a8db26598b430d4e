"""Scoring a bitext that is already aligned: a column is appended, every other byte and the order stay as they are."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import BinaryIO

import numpy as np

from xswe.corpus.records import Record, RecordFile
from xswe.corpus.rows import text_hashes
from xswe.corpus.seen import KeySet
from xswe.errors import ConfigError
from xswe.io.archives import open_output
from xswe.io.files import file_stamp, fingerprint, read_json, whole_folder, work_folder, write_json
from xswe.io.ragged import Texts
from xswe.mining.margin import Score, check_score, neighbourhood, row_cosines, score_cosines
from xswe.mining.output import format_of, output_format
from xswe.model.ensemble import AnyModel
from xswe.progress import bar, took
from xswe.search.neighbours import find_neighbours
from xswe.search.types import SearchConfig
from xswe.search.vectors import Storage, Vectors, VectorWriter, as_vectors

_BLOCK = 16_384
UNSCORED = float("nan")


@dataclass(frozen=True)
class ScoreConfig:
    """How a bitext is scored.

    Attributes:
        score: ``cosine`` streams; a margin takes the neighbourhoods among all lines of the bitext and reads it first.
        k: neighbours that a margin is taken against.
        storage: of the vectors in the work folder.
        neighbours: how neighbours are sought.
    """

    score: Score = "cosine"
    k: int = 4
    storage: Storage = "float32"
    neighbours: SearchConfig = field(default_factory=SearchConfig)

    def __post_init__(self) -> None:
        check_score(self.score)

    @property
    def streams(self) -> bool:
        """Whether a line's score depends on that line only."""
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
        model: what encodes.
        source: n texts.
        target: n texts.
        score: which; a margin takes its neighbourhoods among the distinct texts given.
        k: neighbours that a margin is taken against.
        neighbours: how they are sought.

    Raises:
        ConfigError: the lists differ in length.
    """
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
    return _score_rows((as_vectors(vectors[0]), as_vectors(vectors[1])), (rows[0], rows[1]), score, k, search, None)


def _score_rows(
    sides: tuple[Vectors, Vectors],
    rows: tuple[np.ndarray, np.ndarray],
    score: Score,
    k: int,
    search: SearchConfig,
    checkpoint: Path | None,
) -> np.ndarray:
    """Score pairs of rows of distinct vectors."""
    out = np.empty(len(rows[0]), np.float32)
    here, there = (np.zeros(len(side), np.float32) for side in sides)
    if score != "cosine":
        lists = find_neighbours(*sides, k, search, checkpoint)
        here, there = neighbourhood(lists.forward, k), neighbourhood(lists.backward, k)
    for start in range(0, len(out), _BLOCK):
        a, b = (each[start : start + _BLOCK] for each in rows)
        cosines = row_cosines(sides[0].take(a), sides[1].take(b))
        out[start : start + _BLOCK] = score_cosines(cosines, here[a], there[b], score)
    return out


@dataclass(frozen=True)
class ScoredBitext:
    """How a bitext was scored: its lines, those that could not be, the mean score, and the seconds it took."""

    lines: int
    unscored: int
    mean: float
    score: Score
    seconds: float
    output: str

    def __str__(self) -> str:
        left_out = f", {self.unscored:,} of them not scored (nan)" if self.unscored else ""
        fast = took(self.lines, self.seconds, "lines")
        return f"{self.lines:,} lines{left_out}, mean {self.score} {self.mean:.4f}, {fast}: {self.output}"


def score_bitext(
    model: AnyModel,
    file: RecordFile,
    output: str,
    config: ScoreConfig | None = None,
    *,
    format: str = "auto",
    work: str | None = None,
    keep: bool = False,
) -> ScoredBitext:
    """Add a score to every record of a bitext, every other byte and the order as they are; ``nan`` where there is none.

    Args:
        model: what encodes.
        file: the bitext.
        output: file, plain or compressed, or ``-`` for standard output.
        config: how.
        format: of the output, which must be the bitext's own; ``auto`` for that of its name.
        work: folder for unfinished work; None for ``<output>.work``. A run that was killed goes on from there.
        keep: leave that folder at the end.

    Raises:
        ConfigError: the output has another format than the bitext.
        InputError: the bitext is missing or damaged.
    """
    config = config or ScoreConfig()
    kind = output_format(format, output, file.languages)
    if kind != format_of(file):
        raise ConfigError(f"mode=score adds a score to {file.kind} records as they are, which makes no {kind}: {output}")
    started = time.monotonic()
    if config.streams:
        counts = _stream(model, file, output, config)
    else:
        with work_folder(output, work, keep) as place:
            counts = _by_margin(model, file, output, config, place)
    return ScoredBitext(*counts, config.score, time.monotonic() - started, output)


def _by_margin(model: AnyModel, file: RecordFile, output: str, config: ScoreConfig, work: Path) -> tuple[int, int, float]:
    """Read and encode the bitext into a folder, find neighbourhoods, and write it with its scores."""
    inputs = time.time_ns() if "-" in file.paths else [model.identity, [file_stamp(path) for path in file.paths]]
    identity = fingerprint(inputs, config.score, config.storage, list(file.columns))
    spool = work / "bitext"
    if not (spool / "identity.json").is_file() or read_json(spool / "identity.json") != identity:
        with whole_folder(spool) as temporary:
            _spool(model, file, temporary, config)
            write_json(temporary / "identity.json", identity)
    names = ("source", "target")
    hashes = [np.fromfile(spool / f"{name}.hashes", np.uint64) for name in names]
    scored = np.flatnonzero(hashes[0])
    rows = [_rows_of(each[scored]) for each in hashes]
    sides = [Vectors.open(spool / f"{name}.npy") for name in names]
    checkpoint = work / f"search-{fingerprint(identity, config.k, config.neighbours.method)}"
    scores = np.full(len(hashes[0]), UNSCORED, np.float32)
    found = _score_rows((sides[0], sides[1]), (rows[0], rows[1]), config.score, config.k, config.neighbours, checkpoint)
    scores[scored] = found
    ends = np.fromfile(spool / "ends", np.int64).reshape(-1, 2)
    before, after = file.frame()
    with open_output(output) as stream, open(spool / "lines", "rb") as raw:
        stream.write(before)
        for score, (body, end) in zip(scores.tolist(), ends.tolist(), strict=True):
            record = Record(raw.read(body), raw.read(end), None)
            stream.write(file.scored(record, score) + record.end)
        stream.write(after)
    mean = float(np.mean(found)) if len(found) else UNSCORED
    return len(scores), len(scores) - len(found), mean


def _rows_of(hashes: np.ndarray) -> np.ndarray:
    """Return for each hash the place of its first occurrence among first occurrences."""
    _, first, inverse = np.unique(hashes, return_index=True, return_inverse=True)
    places = np.empty(len(first), np.int64)
    places[np.argsort(first, kind="stable")] = np.arange(len(first))
    return places[inverse]


def _stream(model: AnyModel, file: RecordFile, output: str, config: ScoreConfig) -> tuple[int, int, float]:
    """Score and write block after block."""
    total = unscored = 0
    added = 0.0
    threads = config.neighbours.workers
    lines, (before, after) = file.read(), file.frame()
    with open_output(output) as stream, bar("score", unit="pair") as progress:
        stream.write(before)
        while block := list(islice(lines, _BLOCK)):
            good = [line.texts for line in block if line.texts is not None]
            left, right = (model.encode([pair[k] for pair in good], threads=threads) for k in (0, 1))
            cosines = row_cosines(left, right)
            added += float(cosines.sum(dtype=np.float64))
            scores = iter(cosines.tolist())
            for line in block:
                score = UNSCORED if line.texts is None else next(scores)
                stream.write(file.scored(line, score) + line.end)
            total, unscored = total + len(block), unscored + len(block) - len(good)
            progress.update(len(block))
        stream.write(after)
    return total, unscored, added / (total - unscored) if total > unscored else UNSCORED


def _spool(model: AnyModel, file: RecordFile, folder: Path, config: ScoreConfig) -> None:
    """Write the lines as they are, the vectors of each side's distinct texts, and a hash of every line's texts."""
    seen, lines = (KeySet(), KeySet()), file.read()
    threads = config.neighbours.workers
    with ExitStack() as stack:

        def create(name: str) -> BinaryIO:
            return stack.enter_context(open(folder / name, "wb"))

        raw, ends = create("lines"), create("ends")
        hashes = create("source.hashes"), create("target.hashes")
        vectors = [
            stack.enter_context(closing(VectorWriter(folder / f"{name}.npy", model.dim, config.storage)))
            for name in ("source", "target")
        ]
        progress = stack.enter_context(bar("encode", unit="pair"))
        while block := list(islice(lines, _BLOCK)):
            raw.write(b"".join(line.raw + line.end for line in block))
            ends.write(np.array([(len(line.raw), len(line.end)) for line in block], np.int64).tobytes())
            scorable = np.array([line.texts is not None for line in block])
            for side in (0, 1):
                texts = [line.texts[side] for line in block if line.texts is not None]
                keys = text_hashes(Texts.of(texts))
                everyone = np.zeros(len(block), np.uint64)  # 0 for a line that cannot be scored
                everyone[scorable] = keys
                hashes[side].write(everyone.tobytes())
                new = np.flatnonzero(seen[side].add(keys))
                if len(new):
                    vectors[side].append(model.encode([texts[i] for i in new], threads=threads))
            progress.update(len(block))
