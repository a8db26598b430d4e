"""Sentences of two texts in order, as one call: lines or running text in, beads out, in the formats of bitext."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from xswe.alignment.beads import AlignConfig, Constraints, Prices
from xswe.alignment.corrections import find_constraints
from xswe.alignment.windows import Path as AlignedPath
from xswe.alignment.windows import align_texts, is_long
from xswe.errors import ConfigError
from xswe.io.lines import check_lines, read_lines
from xswe.io.parallel import available_threads
from xswe.io.ragged import Texts
from xswe.io.results import Result, write_text
from xswe.io.settings import changed
from xswe.io.sources import suffix_of
from xswe.mining.output import Row, output_format, write_rows
from xswe.mining.threshold import Expected, Threshold, from_mismatches
from xswe.model.ensemble import AnyModel
from xswe.progress import took
from xswe.text.languages import check_languages, has_cjk
from xswe.text.sentences import Sentence, is_document, split_text
from xswe.work.folder import work_folder

_OWN = {"ladder": ".ladder", "jsonl": ".jsonl"}  # formats that hold gaps and the numbers of lines
Side = str | Path | Sequence[str]
_ALL = Threshold(-np.inf, "none")


class Bead(NamedTuple):
    """Lines that translate each other; in a gap one side is empty.

    Attributes:
        score: 0 for what is unrelated in these texts, 1 for a typical translation; 0 for a gap.
        source: the lines' text; several are joined, with a blank but between Chinese or Japanese characters.
        target: likewise.
        source_lines: which lines, from 0.
        target_lines: likewise.
    """

    score: float
    source: str
    target: str
    source_lines: tuple[int, ...]
    target_lines: tuple[int, ...]


def bead_format(wanted: str, output: str, languages: tuple[str, ...]) -> str:
    """Return the format: the wanted one, or for ``auto`` that of the file's name.

    Raises:
        ConfigError: there is no such format, or it needs the languages.
        DependencyError: the library that writes it is not installed.
    """
    suffix = suffix_of(output)
    if wanted in _OWN or (wanted == "auto" and suffix in _OWN.values()):
        return wanted if wanted in _OWN else next(name for name, own in _OWN.items() if own == suffix)
    if wanted == "bucc":
        raise ConfigError("format=bucc holds pairs of ids, and beads have lines: use ladder")
    return output_format(wanted, output, languages)


@dataclass(frozen=True, eq=False)
class AlignedTexts(Result):
    """Two texts and the beads that they are made of, in order; a sequence of :class:`Bead`.

    Attributes:
        cells: int64 (n + 1, 2), how many lines of source and target come before each bead, and at last all.
        scores: float32 (n,), 0 for gaps.
        fixed: bool (n,), which beads and gaps were given.
        source: the source's lines.
        target: the target's lines.
        prices: what was learnt from the texts.
        languages: of source and target; empty if they are not known.
        places: where the sentences of each side stand in its running text; None where lines were given.
        seconds: how long it took.
        threshold: the least score of a bead, and what is expected of those above.
        expected: how many beads down to every score are expected to be right; None where nobody asked.
    """

    cells: np.ndarray
    scores: np.ndarray
    fixed: np.ndarray
    source: Texts
    target: Texts
    prices: Prices
    languages: tuple[str, ...] = ()
    places: tuple[Sequence[Sentence] | None, Sequence[Sentence] | None] = (None, None)
    seconds: float = 0.0
    threshold: Threshold = _ALL
    expected: Expected | None = None

    def __len__(self) -> int:
        return len(self.scores)

    def __getitem__(self, place: int) -> Bead:
        if place < 0:
            place += len(self)
        if not 0 <= place < len(self):
            raise IndexError(place)
        (a, b), (c, d) = self.cells[place].tolist(), self.cells[place + 1].tolist()
        texts = joined(self.source[a:c]), joined(self.target[b:d])
        return Bead(float(self.scores[place]), *texts, tuple(range(a, c)), tuple(range(b, d)))

    def __iter__(self) -> Iterator[Bead]:
        return (self[place] for place in range(len(self)))

    def __repr__(self) -> str:
        shapes, counts = np.unique(np.diff(self.cells, axis=0), axis=0, return_counts=True)
        most = np.argsort(-counts, kind="stable")[:4]
        kinds = ", ".join(f"{counts[k]:,} of {shapes[k, 0]}:{shapes[k, 1]}" for k in most)
        return f"AlignedTexts({len(self.source):,} and {len(self.target):,} lines, {kinds})"

    def summary(self) -> str:
        """Say in one line what was aligned, and how fast."""
        shares = " and ".join(f"{100 * share:.1f} %" for share in self.coverage)
        lines = len(self.source) + len(self.target)
        beads = int((np.diff(self.cells, axis=0) > 0).all(1).sum())
        sizes = f"{len(self.source):,} and {len(self.target):,} lines"
        cut = "" if self.threshold.origin == "none" else f", {self.threshold.sentence()}"
        return f"{sizes}, {beads:,} beads with {shares} of them{cut}, {took(lines, self.seconds, 'lines')}"

    @property
    def pairs(self) -> list[Bead]:
        """The beads that are no gaps."""
        return [bead for bead in self if bead.source_lines and bead.target_lines]

    @property
    def coverage(self) -> tuple[float, float]:
        """Which share of either side's lines has a partner."""
        steps = np.diff(self.cells, axis=0)
        held = steps[(steps > 0).all(1)].sum(0)
        return float(held[0] / max(1, len(self.source))), float(held[1] / max(1, len(self.target)))

    def columns(self) -> tuple[str, ...]:
        """Return the fields of :class:`Bead`."""
        return Bead._fields

    def records(self) -> Iterator[tuple[float, str, str, str, str]]:
        """Return the beads, their lines separated by commas."""
        for bead in self:
            lines = (",".join(map(str, one)) for one in (bead.source_lines, bead.target_lines))
            yield (bead.score, bead.source, bead.target, *lines)  # type: ignore[misc]

    def write(self, path: str | Path, *, format: str = "auto") -> None:  # bitext has formats of its own
        """Write the beads, whole or not at all.

        Args:
            path: file, plain or compressed; ``-`` for standard output.
            format: ``auto``, by the name; the name of a format of pairs (``laser``, ``tmx``, ``xliff``, ``csv``, ``xlsx``,
                ``parquet``, ``markdown``, ``latex``), which hold no gaps; ``jsonl``, with the lines' numbers and places, or
                ``ladder`` (``[0]:[0,1]:score``, lines from 0), which hold them.

        Raises:
            ConfigError: there is no such format, or it needs the languages.
        """
        kind = bead_format(format, str(path), self.languages)
        if kind not in _OWN:
            write_rows(str(path), kind, bead_rows(self), self.languages)
            return
        write_text(path, _ladder(self) if kind == "ladder" else _objects(self))


def bead_rows(beads: AlignedTexts, before: tuple[str, str] = ("", "")) -> Iterator[Row]:
    """Yield the beads that are no gaps as pairs; their ids are the lines' numbers, from 1, with something before each."""
    for bead in beads:
        if bead.source_lines and bead.target_lines:
            both = zip(before, (bead.source_lines, bead.target_lines), strict=True)
            a, b = (" ".join(f"{name}{line + 1}" for line in lines) for name, lines in both)
            yield Row(round(bead.score, 6), bead.source, bead.target, a, b, 1)


def _ladder(beads: AlignedTexts) -> Iterator[str]:
    """Yield ``[0]:[0,1]:score``: the numbers of the lines, from 0; a gap has none on one side."""
    steps = zip(beads.cells[:-1].tolist(), beads.cells[1:].tolist(), beads.scores.tolist(), strict=True)
    for (a, b), (c, d), score in steps:
        sides = (",".join(map(str, range(low, high))) for low, high in ((a, c), (b, d)))
        yield ":".join(f"[{side}]" for side in sides) + f":{score:.6f}\n"


def _objects(beads: AlignedTexts) -> Iterator[str]:
    """Yield an object a bead; of running text with the characters where its sentences stand."""
    for bead in beads:
        value = {**bead._asdict(), "score": round(bead.score, 6)}
        for name, lines, places in zip(
            ("source", "target"), (bead.source_lines, bead.target_lines), beads.places, strict=True
        ):
            if places is not None:
                value[f"{name}_places"] = [[places[line].start, places[line].end] for line in lines]
        yield json.dumps(value, ensure_ascii=False) + "\n"


def joined(texts: Sequence[str]) -> str:
    """Return lines as one text: with a blank between them, but for Chinese and Japanese."""
    out = ""
    for text in texts:
        blank = " " if out and text and not (has_cjk(text) and (has_cjk(out[-1]) or out[-1] in "。！？」』”）")) else ""
        out = f"{out}{blank}{text}"
    return out


def align(
    model: AnyModel,
    source: Side,
    target: Side,
    *,
    output: str | Path | None = None,
    format: str = "auto",
    config: AlignConfig | None = None,
    **settings: Any,
) -> AlignedTexts:
    """Align the sentences of a text and of its translation, in order: up to five with up to five, or with none.

    Args:
        model: what encodes.
        source: a list of lines, or the name of a file: a text file with a sentence a line, or running text (Markdown, HTML,
            DOCX, EPUB, PDF; any text with ``split``), which is cut into sentences.
        target: the other side, likewise.
        output: a file that the beads are written to as well, in the format of its name; see :meth:`AlignedTexts.write`. Of
            texts of more than 100,000 lines the folder ``<output>.work`` holds what a killed run has done, and the same
            call goes on from there.
        format: of the output.
        config: how; see :class:`xswe.alignment.beads.AlignConfig`.
        settings: single fields of it: ``languages``, ``split``, ``fixed``, ``gap``, ``most``, ``min_score``, …

    Raises:
        ConfigError: a setting is unknown or impossible, languages are needed, or a list of corrections contradicts itself.
        InputError: a file is missing or damaged, contradicts itself, or is of other texts.

    Example:
        >>> import xswe
        >>> english = ["The train is late.", "It rains.", "A cat sleeps on the roof.", "We buy bread."]
        >>> german = ["Der Zug hat Verspätung. Es regnet.", "Auf dem Dach schläft eine Katze.", "Wir kaufen Brot"]
        >>> for bead in xswe.align(xswe.load("mini"), english, german):
        ...     print(bead.source_lines, bead.target_lines)
        (0, 1) (0,)
        (2,) (1,)
        (3,) (2,)
    """
    config, begun = changed(config or AlignConfig(), settings, "align"), time.monotonic()
    codes = check_languages(config.languages) if config.languages else tuple(model.pair)
    if output is not None:
        bead_format(format, str(output), codes)  # known before any work is done
    spoken = codes if len(codes) == 2 else ("", "")
    sides = [read_side(*given, config.split) for given in zip((source, target), spoken, strict=True)]
    texts = sides[0][0], sides[1][0]
    constraints = find_constraints(config.fixed, config.uncorrected, texts[0], texts[1], codes)
    long = output is not None and is_long(*texts)
    with work_folder(str(output)) if long else nullcontext() as work:
        path, prices = align_texts(model, *texts, config, constraints, config.threads or available_threads(), work)
        cells, scores, known, threshold, expected = _cut(path, prices, constraints, config)
        places, seconds = (sides[0][1], sides[1][1]), time.monotonic() - begun
        aligned = AlignedTexts(cells, scores, known, *texts, prices, codes, places, seconds, threshold, expected)
        if output is not None:
            aligned.write(output, format=format)
    return aligned


def read_side(given: Side, language: str, split: bool | None) -> tuple[Texts, Sequence[Sentence] | None]:
    """Return the lines of one side, and where they stand if it was running text.

    Raises:
        ConfigError: it must be cut into sentences, and its language is not known.
    """
    is_file = isinstance(given, (str, Path))
    if split or (split is None and is_file and is_document(given)):  # type: ignore[arg-type]
        if not language:
            raise ConfigError("running text is cut into sentences by its language: set languages, as in languages=[en,de]")
        text = Path(given) if is_file else "\n".join(given)  # type: ignore[arg-type]
        places = split_text(text, language)
        return Texts.of([place.text for place in places]), places
    if is_file:
        check_lines(given)  # type: ignore[arg-type]
    lines = [text or "" for _, text in read_lines(given)] if isinstance(given, (str, Path)) else given
    return Texts.of([line.strip() for line in lines]), None


def _cut(
    path: AlignedPath, prices: Prices, constraints: Constraints, config: AlignConfig
) -> tuple[np.ndarray, np.ndarray, np.ndarray, Threshold, Expected | None]:
    """Score a path's beads, and turn those below the threshold into gaps.

    Returns:
        Cells, scores, which steps were given, the threshold, and how many beads are expected to be right.
    """
    scores, expected = prices.score(path.cosines), None
    if len(path.mismatched):  # what a bead's source scores with the beads around tells how many of the beads are right
        bead, mismatched = ~np.isnan(scores), prices.score(path.mismatched)
        expected = from_mismatches(scores[bead], mismatched[bead], int(bead.sum()))
    threshold = _threshold(config, expected)
    given, ends = set(constraints.anchors), [tuple(cell) for cell in path.cells.tolist()]
    known = np.fromiter((step in given for step in pairwise(ends)), bool, len(ends) - 1)
    for side, gaps in enumerate((constraints.source_gaps, constraints.target_gaps)):
        known |= (np.diff(path.cells[:, 1 - side]) == 0) & np.isin(path.cells[:-1, side], gaps)
    cells, scores = path.cells, np.nan_to_num(scores).astype(np.float32)
    if threshold.value > -np.inf:
        cells, scores, known = _without(cells, scores, known, threshold.value)
    return cells, scores, known, threshold, expected


def _threshold(config: AlignConfig, expected: Expected | None) -> Threshold:
    """Return the least score of a bead."""
    if config.precision is None or expected is None:
        return _ALL if config.min_score is None else Threshold(config.min_score, "given")
    value = max(expected.choose(precision=config.precision), -np.inf if config.min_score is None else config.min_score)
    return Threshold(value, "mismatched neighbours", *expected.between(value, None), expected.unsure)


def _without(
    cells: np.ndarray, scores: np.ndarray, fixed: np.ndarray, least: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Turn beads of a low score into gaps: the source's lines, then the target's."""
    bead = np.asarray((np.diff(cells, axis=0) > 0).all(1))
    out, kept, known = [cells[0]], [], []
    for place, (cell, score) in enumerate(zip(cells[1:], scores.tolist(), strict=True)):
        if bead[place] and score < least and not fixed[place]:
            for side in (0, 1):
                while out[-1][side] < cell[side]:
                    out.append(out[-1] + np.eye(2, dtype=np.int64)[side])
                    kept.append(0.0)
                    known.append(False)
        else:
            out.append(cell)
            kept.append(score)
            known.append(bool(fixed[place]))
    return np.stack(out), np.array(kept, np.float32), np.array(known, bool)
