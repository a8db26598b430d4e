"""``xswe.mine``: pairs of translations from texts, files or vectors."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Unpack

import numpy as np

from xswe.bitext.output import Row, output_format, write_rows
from xswe.errors import ConfigError
from xswe.io.arguments import check_reranker, is_texts, lines_of
from xswe.io.files import check_output, scratch
from xswe.io.ragged import Texts
from xswe.io.results import Result
from xswe.io.settings import changed, refuse_unused
from xswe.mining.evidence import Evidence
from xswe.mining.margin import Pairs
from xswe.mining.pipeline import Lines, MineConfig, Mined, MineReport, mine_sides, mine_vectors, report_of
from xswe.mining.side import Side
from xswe.mining.threshold import Threshold
from xswe.model.ensemble import AnyModel, open_model
from xswe.search.rerank import Encoder
from xswe.work.folder import work_folder

if TYPE_CHECKING:
    from xswe.settings import MineSettings

_BLOCK = 4096  # pairs whose texts are read at a time


class Pair(NamedTuple):
    """A pair of translations; texts are None if vectors were mined."""

    score: float
    source: str | None
    target: str | None
    source_row: int
    target_row: int


@dataclass(frozen=True, eq=False)
class MinedPairs(Result[Pair], row=Pair):
    """Pairs of translations, best first; a sequence of :class:`Pair`.

    Attributes:
        scores: float32 (n,).
        source_rows: int64 (n,), indices from 0 into the source as given: a list, the lines of a file, or vectors.
        target_rows: int64 (n,).
        source: the n source texts; None if vectors were mined.
        target: the n target texts.
        threshold: the threshold that was applied, and the precision and recall expected above it.
        languages: of source and target; empty if unknown.
        report: what was read, kept and dropped, and how long it took; None for vectors.
        evidence: evidence of how the run decided, for a report; None without ``evidence=True``.
    """

    scores: np.ndarray
    source_rows: np.ndarray
    target_rows: np.ndarray
    source: Texts | None
    target: Texts | None
    threshold: Threshold
    languages: tuple[str, ...] = ()
    report: MineReport | None = None
    evidence: Evidence | None = None

    def __len__(self) -> int:
        return len(self.scores)

    def __iter__(self) -> Iterator[Pair]:
        rows = zip(self.scores.tolist(), self.source_rows.tolist(), self.target_rows.tolist(), strict=True)
        for i, (score, a, b) in enumerate(rows):
            source = None if self.source is None else self.source[i]
            yield Pair(score, source, None if self.target is None else self.target[i], a, b)

    def _at(self, place: int) -> Pair:
        source, target = (None if side is None else side[place] for side in (self.source, self.target))
        return Pair(float(self.scores[place]), source, target, int(self.source_rows[place]), int(self.target_rows[place]))

    def __repr__(self) -> str:
        return f"MinedPairs({len(self):,} pairs, {self.threshold.sentence()})"

    def write(self, path: str | Path, *, format: str = "auto") -> None:  # bitext has formats of its own
        """Write the pairs atomically.

        Args:
            path: file, plain or compressed (``.gz``, ``.xz``, ``.bz2``, ``.zst``).
            format: the name of a format; ``auto``: by the file name, or else ``laser`` (score<TAB>source<TAB>target).

        Raises:
            ConfigError: the format is unknown, or vectors were mined, which have no texts.
        """
        if self.source is None or self.target is None:
            raise ConfigError("vectors were mined, which have no texts to write: mine lists or files, or take the rows")
        pairs = Pairs.of(self.scores, np.arange(len(self)), np.arange(len(self)))
        sides = _PairedLines(self.source, self.source_rows), _PairedLines(self.target, self.target_rows)
        write_rows(str(path), output_format(format, str(path), self.languages), _rows(pairs, *sides), self.languages)


@dataclass(frozen=True, eq=False)
class _PairedLines:
    """The lines of one side in the order of the pairs."""

    texts: Texts
    rows: np.ndarray

    def names(self, rows: np.ndarray) -> Iterable[str]:
        return map(str, (self.rows[rows] + 1).tolist())


def _rows(pairs: Pairs, source: Side | _PairedLines, target: Side | _PairedLines) -> Iterator[Row]:
    """Yield the rows to write, reading the texts in blocks."""
    for start in range(0, len(pairs), _BLOCK):
        block = slice(start, start + _BLOCK)
        rows = [(source, pairs.source[block]), (target, pairs.target[block])]
        scores = (round(score, 6) for score in pairs.scores[block].tolist())
        texts = (side.texts.take(chosen) for side, chosen in rows)
        names = (side.names(chosen) for side, chosen in rows)
        yield from map(Row, scores, *texts, *names, pairs.rank[block].tolist())


def mine(
    model: AnyModel | str | Path | None,
    source: Lines | Path | np.ndarray,
    target: Lines | Path | np.ndarray | None = None,
    *,
    output: str | Path | None = None,
    work: str | Path | None = None,
    rerank: Encoder | None = None,
    config: MineConfig | None = None,
    **settings: Unpack[MineSettings],
) -> MinedPairs:
    """Find translations between the lines of two sides, or paraphrases and near-duplicates among the lines of one.

    Args:
        model: the model, or its name; None for vectors.
        source: a list of texts, the name of a text file, or float32 (n, d) unit vectors.
        target: the other side, also vectors if the source is; texts and files may be mixed. Without it pairs are mined
            among the lines of the source, each once, the earlier line first; no line is its own neighbour.
        output: a file to write the pairs to as well, by its suffix any pairs; ``-`` for standard output.
        work: folder for unfinished work; None for ``<output>.work``. A killed run with an output resumes from there, with
            the same bytes as result.
        rerank: a slower and better encoder, anything whose ``encode(texts)`` returns unit vectors: it scores the pairs near
            the threshold, and encodes at most ``rerank_share`` of the lines.
        config: the settings; see :class:`xswe.mining.pipeline.MineConfig`.
        settings: single fields of ``config``: ``score``, ``k``, ``select``, ``threshold``, ``filters``, …; ``threads`` and
            ``method`` are those of the search.

    Raises:
        ConfigError: a setting is unknown or impossible.
        InputError: a file is missing or damaged.

    Example:
        >>> import xswe
        >>> english, german = ["The train is late.", "A cat sleeps."], ["Eine Katze schläft.", "Der Zug hat Verspätung."]
        >>> [(pair.source, pair.target) for pair in xswe.mine(xswe.load("mini"), english, german, threshold=None)]
        [('A cat sleeps.', 'Eine Katze schläft.'), ('The train is late.', 'Der Zug hat Verspätung.')]
        >>> lines = ["The train is late.", "A cat sleeps.", "The trains are delayed.", "Bread is cheap."]
        >>> best, *_ = xswe.mine(xswe.load("mini"), lines, threshold=None)
        >>> best.source, best.target
        ('The train is late.', 'The trains are delayed.')
    """
    config = changed(config or MineConfig(), settings, "mine")
    if any(isinstance(side, np.ndarray) and not is_texts(side) for side in (source, target)):
        if isinstance(model, np.ndarray):
            raise TypeError("model is an array: vectors are mined without one, as in xswe.mine(None, source, target)")
        return _of_vectors(source, target, config, output is None and rerank is None)
    if model is None:
        raise ConfigError("model=None encodes nothing: give a model, or vectors")
    check_reranker(rerank, named=True)
    refuse_unused(config, {"without rerank=": () if rerank else ("rerank_share",)})
    given = _given(source, target)
    if output is not None:
        check_output(output, [str(one) for one in (*given, config.gold) if isinstance(one, (str, Path)) and one != "-"])
        if config.languages or isinstance(model, (str, Path)):  # refuse at once what cannot be written
            output_format(config.format, str(output), config.languages or ("", ""))
    model = open_model(model, "mine(model, source, target)")
    languages = config.languages or (() if target is None else model.pair)
    if output is None:
        config.execution.check_names(output)
        with scratch("xswe-mine-") as folder:
            return _result(*mine_sides(model, given, config, Path(folder), rerank), languages)
    kind = output_format(config.format, str(output), languages)
    with work_folder(str(output), config.execution, config.keep, ("source", "target", "neighbours"), work) as place:
        sides, mined, seconds = mine_sides(model, given, config, place, rerank)
        start = time.monotonic()
        write_rows(str(output), kind, _rows(mined.pairs, *sides), languages)
        return _result(sides, mined, seconds | {"write": time.monotonic() - start}, languages)


def _of_vectors(source: object, target: object, config: MineConfig, alone: bool) -> MinedPairs:
    if not alone:
        raise ConfigError("vectors have no texts, for output= and rerank=: mine lists or files")
    if not isinstance(source, np.ndarray) or not (target is None or isinstance(target, np.ndarray)):
        raise ConfigError("vectors are mined with vectors: give both sides alike, as arrays")
    mined = mine_vectors(source, target, config)
    rows = mined.pairs.source.astype(np.int64), mined.pairs.target.astype(np.int64)
    return MinedPairs(mined.pairs.scores, *rows, None, None, mined.threshold, evidence=mined.evidence)


def _given(source: object, target: object) -> tuple[Lines, Lines | None]:
    """Return file names as str and lines as lists; refuse standard input on both sides."""
    if isinstance(source, str) and isinstance(target, str) and source == target == "-":
        raise ConfigError("source and target cannot both be standard input: give at least one file")
    sides = [lines_of(source, "source"), *([] if target is None else [lines_of(target, "target")])]
    first, *second = (str(side) if isinstance(side, (str, Path)) else list(side) for side in sides)
    return first, second[0] if second else None


def _result(sides: tuple[Side, Side], mined: Mined, seconds: dict[str, float], languages: tuple[str, ...]) -> MinedPairs:
    """Copy the pairs out of the sides' files, which may be removed afterwards."""
    rows: Sequence[np.ndarray] = (mined.pairs.source, mined.pairs.target)
    texts = [side.texts.take(chosen.astype(np.int64)) for side, chosen in zip(sides, rows, strict=True)]
    places = [np.asarray(side.numbers)[chosen] - 1 for side, chosen in zip(sides, rows, strict=True)]
    how = (mined.threshold, languages, report_of(sides, mined, seconds), mined.evidence)
    return MinedPairs(mined.pairs.scores, places[0], places[1], texts[0], texts[1], *how)
