"""Sentence alignment in one call: lines or running text in, beads out, in the formats of bitext."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Unpack

import numpy as np

from xswe.alignment.beads import AlignConfig, Constraints, Prices
from xswe.alignment.corrections import Corrections, Said, read_corrections
from xswe.alignment.formats import BeadFormat, Manner, Written, bead_format, joined, write_beads
from xswe.alignment.moved import NONE, Moved, find_moved, score_spans, without
from xswe.alignment.rows import Run
from xswe.alignment.windows import Path as AlignedPath
from xswe.alignment.windows import align_texts, is_long
from xswe.bitext.texts import TextSource
from xswe.corpus.near_duplicates import share_among
from xswe.errors import ConfigError
from xswe.io.arguments import check_model, lines_of
from xswe.io.lines import Skipped, left_out_of
from xswe.io.parallel import available_threads
from xswe.io.ragged import Texts
from xswe.io.results import Result
from xswe.io.settings import changed
from xswe.mining.threshold import PrecisionEstimate, Threshold, estimate_from_decoys, near_duplicate_note
from xswe.model.ensemble import AnyModel
from xswe.progress import took
from xswe.text.languages import base_language, check_languages
from xswe.text.scripts import has_cjk, has_kana
from xswe.text.sentences import SplitText, split_text
from xswe.work.folder import work_folder

if TYPE_CHECKING:
    from xswe.settings import AlignSettings, MannerSettings

logger = logging.getLogger(__name__)

Side = str | Path | Sequence[str]
_SCRIPT_SAMPLE = 500  # lines sampled to detect the script
_NO_THRESHOLD = Threshold(-np.inf, "none")


class Bead(NamedTuple):
    """Lines that translate each other; in a gap one side is empty.

    Attributes:
        score: 0 for unrelated lines, 1 for a typical translation in these texts; 0 for a gap.
        source: the text of the lines, joined by spaces except between Chinese or Japanese characters.
        target: likewise.
        source_lines: line numbers, from 0.
        target_lines: likewise.
        status: ``right`` if given by a person, ``moved`` if out of order, else empty.
        notes: a person's notes.
    """

    score: float
    source: str
    target: str
    source_lines: tuple[int, ...]
    target_lines: tuple[int, ...]
    status: str = ""
    notes: str = ""


@dataclass(frozen=True, eq=False)
class AlignedTexts(Result[Bead], row=Bead):
    """Two aligned texts: their beads in the order of the source; a sequence of :class:`Bead`.

    Attributes:
        cells: int64 (k + 1, 2), the number of source and target lines before each step of the path through both texts, and
            the totals at the end. Beads out of order are gaps there.
        spans: int64 (n, 4), the beads and gaps: begin and end in the source, begin and end in the target.
        scores: float32 (n,), 0 for gaps.
        fixed: bool (n,), which beads and gaps were given.
        moved: bool (n,), which beads are out of order.
        source: the source's lines.
        target: the target's lines.
        prices: statistics learnt from the texts.
        languages: of source and target; empty if unknown.
        places: places of each side's sentences in its running text; None if lines were given.
        seconds: time taken.
        threshold: the minimum score of a bead, with the expected precision above it.
        expected: estimated number of right beads down to every score; None unless requested.
        said: a person's texts and notes for beads, by their lines.
        changes: summary of the corrections.
        manner: how beads are written.
    """

    cells: np.ndarray
    spans: np.ndarray
    scores: np.ndarray
    fixed: np.ndarray
    moved: np.ndarray
    source: Texts
    target: Texts
    prices: Prices
    languages: tuple[str, ...] = ()
    places: tuple[SplitText | None, SplitText | None] = (None, None)
    seconds: float = 0.0
    threshold: Threshold = _NO_THRESHOLD
    expected: PrecisionEstimate | None = None
    said: Mapping[tuple[Run, Run], tuple[Said, ...]] = field(default_factory=dict)
    changes: str = ""
    manner: Manner = field(default_factory=Manner)

    def __len__(self) -> int:
        return len(self.spans)

    def _at(self, place: int) -> Bead:
        a, b, c, d = self.spans[place].tolist()
        lines = tuple(range(a, b)), tuple(range(c, d))
        status = "moved" if self.moved[place] else "right" if self.fixed[place] else ""
        if said := self.said.get(lines):
            source, target, notes = (joined(list(filter(None, texts))) for texts in zip(*said, strict=True))
        else:
            source, target, notes = joined(self.source[a:b]), joined(self.target[c:d]), ""
        return Bead(float(self.scores[place]), source, target, *lines, status, notes)

    def __iter__(self) -> Iterator[Bead]:
        return map(self._at, range(len(self)))

    def __repr__(self) -> str:
        shapes, counts = np.unique(np.diff(self.spans)[:, ::2], axis=0, return_counts=True)
        most = np.argsort(-counts, kind="stable")[:4]
        kinds = ", ".join(f"{counts[k]:,} of {shapes[k, 0]}:{shapes[k, 1]}" for k in most)
        return f"AlignedTexts({len(self.source):,} and {len(self.target):,} lines, {kinds})"

    def summary(self) -> str:
        """Describe the alignment and its speed in one line."""
        shares = " and ".join(f"{100 * share:.1f} %" for share in self.coverage)
        lines = len(self.source) + len(self.target)
        moved = f", {int(self.moved.sum()):,} of them out of order" if self.moved.any() else ""
        sizes = f"{len(self.source):,} and {len(self.target):,} lines"
        cut = "" if self.threshold.origin == "none" else f", {self.threshold.sentence()}"
        beads = f"{int(self.is_pair.sum()):,} beads with {shares} of them"
        changes = f"; corrections: {self.changes}" if self.changes else ""
        line = f"{sizes}, {beads}{moved}{cut}, {took(lines, self.seconds, 'lines')}{changes}"
        return line + left_out_of(self.left_out) + near_duplicate_note(self.near, "beads")

    @cached_property
    def near(self) -> float:
        """The share of near-duplicates of earlier beads among the first twenty thousand."""
        return share_among(self.is_pair, self.texts_at)

    def texts_at(self, rows: np.ndarray) -> list[tuple[str, str]]:
        """Return both texts of some entries, given their indices."""
        return [(bead.source, bead.target) for bead in map(self._at, rows.tolist())]

    @property
    def left_out(self) -> Mapping[str, int]:
        """Counts of the parts of documents outside their text, and of lines not written."""
        found = Skipped()
        for places in self.places:
            found.update({} if places is None else places.left_out)
        if not self.manner.gaps:
            aligned = int(np.diff(self.spans)[:, ::2][self.is_pair].sum())
            found.add("lines without a counterpart", len(self.source) + len(self.target) - aligned)
        return found.counts

    @property
    def is_pair(self) -> np.ndarray:
        """Which entries are beads rather than gaps, bool (n,)."""
        return np.asarray((np.diff(self.spans)[:, ::2] > 0).all(1))

    @property
    def pairs(self) -> list[Bead]:
        """The beads, without gaps."""
        return [bead for bead in self if bead.source_lines and bead.target_lines]

    @property
    def coverage(self) -> tuple[float, float]:
        """The share of lines with a partner, for each side."""
        covered = np.diff(self.spans)[:, ::2][self.is_pair].sum(0)
        return float(covered[0] / max(1, len(self.source))), float(covered[1] / max(1, len(self.target)))

    def records(self) -> Iterator[tuple[float, str, str, str, str, str, str]]:
        """Yield the beads as rows, with line numbers separated by commas."""
        for bead in self:
            first, second = (",".join(map(str, one)) for one in (bead.source_lines, bead.target_lines))
            yield (bead.score, bead.source, bead.target, first, second, bead.status, bead.notes)

    def written(self) -> Iterator[Written]:
        """Yield the beads as written; beads that a person split are in their parts."""
        for bead in self:
            score = bead.score if bead.source_lines and bead.target_lines else None
            one = Written(score, *bead[1:], self._places(bead))
            for said in self.said.get((bead.source_lines, bead.target_lines), ()) or (None,):
                yield one if said is None else one._replace(**said._asdict())

    def _places(self, bead: Bead) -> tuple[list[list[int]] | None, list[list[int]] | None]:
        both = zip(self.places, (bead.source_lines, bead.target_lines), strict=True)
        source, target = (
            None if places is None else [[places[line].start, places[line].end] for line in lines] for places, lines in both
        )
        return source, target

    def write(self, path: str | Path, *, format: BeadFormat = "auto", **manner: Unpack[MannerSettings]) -> None:
        """Write the beads atomically.

        Args:
            path: file, plain or compressed; ``-`` for standard output.
            format: ``auto`` goes by the name. Formats of pairs hold no gaps. Those that hold every line of both texts are
                ``xlsx`` and ``csv``, to read and correct; ``html`` and ``docx``, to read; ``jsonl``, with line numbers and
                places; and ``ladder`` (``[0]:[0,1]:score``, lines from 0).
            manner: ``gaps``, ``bom`` and ``date``; see :class:`xswe.alignment.formats.Manner`.

        Raises:
            ConfigError: there is no such format, or it needs the languages.
        """
        kind = bead_format(format, str(path), self.languages)
        write_beads(path, kind, self.written(), changed(self.manner, manner, "write"))


def align(
    model: AnyModel,
    source: Side,
    target: Side,
    *,
    output: str | Path | None = None,
    format: BeadFormat = "auto",
    config: AlignConfig | None = None,
    **settings: Unpack[AlignSettings],
) -> AlignedTexts:
    """Align the sentences of a text with those of its translation, in order: up to five with up to five, or with none.

    Args:
        model: the model that encodes sentences.
        source: a list of lines, or the name of a file: a text file with a sentence a line, or running text (any
            document; any text with ``split``), which is split into sentences.
        target: the other side, likewise.
        output: a file to write the beads to as well, in the format of its name; see :meth:`AlignedTexts.write`. For texts
            of more than 100,000 lines, a killed run leaves its work in the folder ``<output>.work``, and the same call
            resumes from there.
        format: of the output.
        config: settings; see :class:`xswe.alignment.beads.AlignConfig`.
        settings: single fields of ``config``: ``languages``, ``split``, ``fixed``, ``gap``, ``most``, ``min_score``, …

    Raises:
        ConfigError: a setting is unknown or impossible, languages are needed, or a list of corrections contradicts itself.
        InputError: a file is missing or damaged, contradicts itself, or belongs to other texts.

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
    check_model(model, "align(model, source, target)")
    source, target = lines_of(source, "source"), lines_of(target, "target")
    config, begun = changed(config or AlignConfig(), settings, "align"), time.monotonic()
    codes = check_languages(map(base_language, config.languages)) if config.languages else tuple(model.pair)
    manner = manner_of(config, codes, source)
    if output is not None:
        bead_format(format, str(output), codes)  # refuse a bad format before any work
    named = codes if len(codes) == 2 else ("", "")
    sides = [read_side(*given, config.split) for given in zip((source, target), named, strict=True)]
    texts = sides[0][0], sides[1][0]
    if config.languages and len(codes) == 2:
        _warn_of_swapped(texts, codes)
    known = read_corrections(config.fixed, config.uncorrected, texts[0], texts[1], codes)
    long = output is not None and is_long(*texts)
    with work_folder(str(output)) if long else nullcontext() as work:
        threads = available_threads(config.threads)
        path, prices = align_texts(model, *texts, config, known.constraints, threads, work)
        moved = find_moved(model, texts, path[:2], prices, config, known.constraints, threads) if config.moved else NONE
        if len(moved.spans):  # find the path again, without these lines
            rest = without(known.constraints, moved.spans)
            path, prices = align_texts(model, *texts, config, rest, threads, work)
        aligned = _sequence(_cut(path, prices, known.constraints, config), known, moved, (model, *texts, prices, threads))
        aligned = replace(aligned, languages=codes, places=(sides[0][1], sides[1][1]), manner=manner, changes=str(known))
        aligned = replace(aligned, seconds=time.monotonic() - begun)
        if output is not None:
            aligned.write(output, format=format)
    return aligned


def _warn_of_swapped(texts: tuple[Texts, Texts], languages: tuple[str, ...]) -> None:
    """Warn if the scripts show that each side is in the language of the other."""
    a, b = languages
    own, swapped = (_fits(texts[0], one) + _fits(texts[1], other) for one, other in ((a, b), (b, a)))
    if swapped - own > 1:
        what = (
            "the source looks like %s and the target like %s; name languages in the order of the texts: languages=[%s,%s]"
        )
        logger.warning(what, b, a, b, a)


def _fits(texts: Texts, language: str) -> float:
    """Return the share of the first lines in the script of a language."""
    lines = [text for text in texts[:_SCRIPT_SAMPLE] if text]
    kinds = ["ja" if has_kana(text) else "zh" if has_cjk(text) else "" for text in lines]
    return kinds.count(language if language in ("ja", "zh") else "") / max(1, len(lines))


def manner_of(config: AlignConfig, languages: tuple[str, ...], source: Side = "") -> Manner:
    """Return the settings of writing, with the languages as they were named."""
    original = Path(source).name if isinstance(source, (str, Path)) else ""
    return Manner(config.languages or languages, config.gaps, config.bom, config.date, original)


def read_side(given: Side, language: str, split: bool | None) -> tuple[Texts, SplitText | None]:
    """Return the lines of one side, and their places in running text if it was running text.

    ConfigError: the text must be split into sentences, but its language is unknown.
    """
    read = TextSource(str(given), language, split) if isinstance(given, (str, Path)) else given
    if split or (isinstance(read, TextSource) and read.is_cut):
        if not language:
            raise ConfigError("running text is split into sentences by language: set languages, as in languages=[en,de]")
        places = read.sentences() if isinstance(read, TextSource) else split_text("\n".join(read), language)
        return Texts.of([place.text for place in places]), places
    return Texts.of([line.strip() for line in read]), None


class _Kept(NamedTuple):
    """A path with the properties of its steps; see :class:`AlignedTexts`."""

    cells: np.ndarray
    scores: np.ndarray
    fixed: np.ndarray
    threshold: Threshold
    expected: PrecisionEstimate | None


def _cut(path: AlignedPath, prices: Prices, constraints: Constraints, config: AlignConfig) -> _Kept:
    """Score a path's beads, and turn those below the threshold into gaps."""
    scores, expected = prices.score(path.cosines), None
    if len(path.mismatched):  # the scores of mismatches with nearby beads show how many beads are right
        bead, mismatched = ~np.isnan(scores), prices.score(path.mismatched)
        expected = estimate_from_decoys(scores[bead], mismatched[bead], int(bead.sum()))
    threshold = _threshold(config, expected)
    given, ends = set(constraints.anchors), [tuple(cell) for cell in path.cells.tolist()]
    known = np.fromiter((step in given for step in pairwise(ends)), bool, len(ends) - 1)
    for side, gaps in enumerate((constraints.source_gaps, constraints.target_gaps)):
        known |= (np.diff(path.cells[:, 1 - side]) == 0) & np.isin(path.cells[:-1, side], gaps)
    cells, scores = path.cells, np.nan_to_num(scores).astype(np.float32)
    if threshold.value > -np.inf:
        cells, scores, known = _without(cells, scores, known, threshold.value)
    return _Kept(cells, scores, known, threshold, expected)


def _sequence(
    kept: _Kept, known: Corrections, moved: Moved, given: tuple[AnyModel, Texts, Texts, Prices, int]
) -> AlignedTexts:
    """Insert beads that are not on the path, each at its first line of the source."""
    model, source, target, prices, threads = given
    own = score_spans(model, source, target, known.apart, prices, threads)
    found = moved.spans[moved.scores >= kept.threshold.value], moved.scores[moved.scores >= kept.threshold.value]
    apart, scores = (np.concatenate(both) for both in zip((known.apart, own), found, strict=True))
    steps = np.concatenate([kept.cells[:-1], kept.cells[1:]], 1)[:, [0, 2, 1, 3]]
    order = np.arange(len(steps))
    if len(apart):
        order = np.array(_merged(steps.tolist(), apart.tolist()), np.int64)
    spans = np.concatenate([steps, apart])[order]
    out_of_order = np.concatenate([np.zeros(len(steps), bool), (np.diff(apart)[:, ::2] > 0).all(1)])
    fixed = np.concatenate([kept.fixed, np.arange(len(apart)) < len(known.apart)])
    every = np.concatenate([kept.scores, scores]).astype(np.float32)
    return AlignedTexts(
        *(kept.cells, spans, every[order], fixed[order], out_of_order[order], source, target, prices),
        threshold=kept.threshold,
        expected=kept.expected,
        said=known.said,
    )


def _merged(steps: list[list[int]], apart: list[list[int]]) -> list[int]:
    """Return the merged order of steps and of beads apart, as indices into both, concatenated."""
    first = {(0, one[0]) if one[0] < one[1] else (1, one[2]): len(steps) + row for row, one in enumerate(apart)}
    taken = {(side, line) for one in apart for side in (0, 1) for line in range(one[2 * side], one[2 * side + 1])}
    out = []
    for row, (a, b, c, d) in enumerate(steps):
        line = (0, a) if a < b else (1, c)
        if (a < b and c < d) or line not in taken:
            out.append(row)
        elif line in first:
            out.append(first[line])
    return out


def _threshold(config: AlignConfig, expected: PrecisionEstimate | None) -> Threshold:
    """Return the minimum score of a bead."""
    if config.precision is None or expected is None:
        return _NO_THRESHOLD if config.min_score is None else Threshold(config.min_score, "given")
    value = max(expected.choose(precision=config.precision), -np.inf if config.min_score is None else config.min_score)
    return expected.threshold("mismatched neighbours", config.precision, value)


def _without(
    cells: np.ndarray, scores: np.ndarray, fixed: np.ndarray, least: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Turn beads with a low score into gaps: first the source's lines, then the target's."""
    low = np.asarray((np.diff(cells, axis=0) > 0).all(1) & (scores < np.float32(least)))
    out, kept, known = [cells[0]], [], []
    for place, (cell, score) in enumerate(zip(cells[1:], scores.tolist(), strict=True)):
        if low[place] and not fixed[place]:
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
