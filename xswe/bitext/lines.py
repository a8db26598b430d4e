"""Blocks of lines of one text file, or of several line-aligned ones, cut into columns by compiled code."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np

from xswe.bitext import kernels
from xswe.bitext.checks import CHECKED, check_columns_are_text, check_languages_of, check_sides_are_text, spread
from xswe.bitext.rows import Negatives, Rows, copied
from xswe.io.lines import (
    BLOCK_LINES,
    MAX_LINE_BYTES,
    RAISES,
    Lines,
    OnError,
    ReturnsAlone,
    Skipped,
    Span,
    damaged_archive,
    decode_line,
    open_binary,
    too_few_columns,
    too_long,
    unequal_sides,
)
from xswe.io.ragged import Texts

Job = Callable[[], Rows]
Spans = Sequence[tuple[int, int]]  # of one file, or two line-aligned ones: first byte, and one past the last
_REASONS = {
    kernels.LONG: "line too long",
    kernels.NOT_UTF8: "not UTF-8",
    kernels.NUL: "NUL byte",
    kernels.FEW: "too few columns",
}


@dataclass(frozen=True, eq=False)
class LineBlock:
    """Consecutive lines of one file, or of several line-aligned ones, with their line ends."""

    paths: tuple[str, ...]  # the files
    lines: tuple[Texts, ...]  # of each file, equally many
    number: int  # of the first line, from 1
    place: int  # the byte in the first file where the first line begins
    begins: bool  # whether it begins with the file's first line

    def cut(self, columns: Sequence[int]) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Find columns of the lines (of several files, the whole lines) without the blanks at their ends.

        Returns the start and end of each column, int64 (n, 2), and the states of each file's lines, uint8 (n,).
        """
        spans, states = list[np.ndarray](), list[np.ndarray]()
        for lines in self.lines:
            state, wanted = np.zeros(len(lines), np.uint8), list(columns) if len(self.lines) == 1 else [-1]
            for k in range(0, len(wanted), 2):
                pair, bounds, codes = wanted[k : k + 2], np.zeros((len(lines), 4), np.int64), np.zeros(len(lines), np.uint8)
                kernels.cut_lines(*lines.frozen, pair[0], pair[-1], MAX_LINE_BYTES, bounds, codes)
                np.maximum(state, codes, out=state)
                spans += [bounds[:, 2 * side : 2 * side + 2] for side in range(len(pair))]
            states.append(state)
        return spans, states

    def complain(self, states: Sequence[np.ndarray], columns: Sequence[int]) -> None:
        """Raise InputError for the first damaged line, if there is one."""
        for path, lines, state in zip(self.paths, self.lines, states, strict=True):
            if not len(bad := np.flatnonzero(state > kernels.EMPTY)):
                continue
            row = int(bad[0])
            raw = lines.data[lines.offsets[row] : lines.offsets[row + 1]].tobytes()
            line = decode_line(raw, path, self.number + row, "raise", Skipped()) or ""
            raise too_few_columns(path, line.count("\t") + 1, tuple(columns), self.number + row)

    def count(self, states: Sequence[np.ndarray], left_out: Skipped) -> None:
        """Count the damaged records by kind of damage, one that is damaged on both sides once."""
        state = np.maximum.reduce(states[:2])
        for code, reason in _REASONS.items():
            left_out.add(reason, int((state == code).sum()))

    def check(self, columns: Sequence[int], languages: Sequence[str], fine: np.ndarray, in_corpus: bool) -> None:
        """Raise InputError if the texts of the lines ``fine`` are numbers or addresses; warn of other languages."""
        texts, some = self._decoded(fine[:CHECKED]), self._decoded(fine[spread(fine)])
        numbers = (fine[:CHECKED] + 1).tolist()
        if len(texts) == 1:
            numbered = list(zip(numbers, texts[0], strict=True))
            check_columns_are_text(Path(self.paths[0]), (columns[0], columns[1]), languages, numbered, in_corpus)
        else:
            check_sides_are_text(" and ".join(self.paths[:2]), languages, texts[0], texts[1], lines=numbers)
        fields = [line.split("\t") for line in some[0]] if len(some) == 1 else []
        sides = [[row[column] for row in fields] for column in columns[:2]] if fields else [*some, []][:2]
        check_languages_of(" and ".join(self.paths[:2]), languages, sides[0], sides[1])

    def _decoded(self, rows: np.ndarray) -> list[list[str]]:
        """Return some lines of each file of texts as strings."""
        files = self.lines[:2]  # any third one holds scores
        raw = [[lines.data[lines.offsets[row] : lines.offsets[row + 1]].tobytes() for row in rows] for lines in files]
        return [[line.decode("utf-8").removeprefix("\ufeff").rstrip("\r\n") for line in one] for one in raw]


def line_blocks(
    paths: Sequence[str],
    most: int = 0,
    window: int = 0,
    spans: Spans | None = None,
    *,
    exact: bool = False,
    on_error: OnError = "raise",
    skipped: Skipped | None = None,
) -> Iterator[LineBlock]:
    """Stream the lines of one file, or of several line-aligned ones, ``most`` a block; 0 for ``BLOCK_LINES``.

    With one file, blocks also end every ``window`` bytes, counted from its beginning. ``spans``, one per file, select the
    lines that begin in them, equally many of each file. With ``exact``, lines are left unchanged, and any damage is an
    error; else ``on_error`` says whether files that end too early are errors, or counted in ``skipped``. InputError: a file
    is damaged, or shorter than another.
    """
    with ExitStack() as stack:
        opened, place, inside = [stack.enter_context(open_binary(path)) for path in paths], 0, bool(spans and spans[0][0])
        if spans:
            parts = [Span(stream, *span) for stream, span in zip(opened, spans, strict=True)]
            opened, place = [cast(BinaryIO, part) for part in parts], parts[0].at
        streams, number = [Lines(stream, exact=exact, inside=inside) for stream in opened], 1
        while count := min(ready := [stream.ready(most or BLOCK_LINES) for stream in streams]):
            if window and len(streams) == 1:
                count = streams[0].before(count, window - place % window)
            block = LineBlock(
                tuple(paths), tuple(stream.take(count) for stream in streams), number, place, number == 1 and not inside
            )
            if exact:
                _refuse_long(block, streams[0].limit)
            yield block
            place, number = place + int(block.lines[0].offsets[-1]), number + count
        damaged = [(path, lines.damage) for path, lines in zip(paths, streams, strict=True) if lines.damage is not None]
        for path, damage in damaged:
            if exact:
                raise damaged_archive(path, damage, number, "fetch it again")
            if RAISES[on_error] or isinstance(damage, ReturnsAlone) or skipped is None:
                raise damaged_archive(path, damage, number)
            skipped.add("damaged archive")
        if max(ready) and not damaged:
            if exact or RAISES[on_error] or skipped is None:
                raise unequal_sides(paths[ready.index(0)], paths[ready.index(max(ready))], number)
            skipped.add("unequal length")


def _refuse_long(block: LineBlock, limit: int) -> None:
    for lines, path in zip(block.lines, block.paths, strict=True):
        ended = lines.data[lines.offsets[1:] - 1] == 0x0A
        if (long := np.flatnonzero(lines.sizes - ended > limit)).size:
            raise too_long(path, block.number + int(long[0]), limit=limit)


def line_job(
    block: LineBlock,
    columns: Sequence[int],
    languages: Sequence[str],
    on_error: OnError,
    score: int | None,
    in_place: bool = False,
) -> Job:
    """Return a function that makes the rows of a block: ``columns`` and the score column of its valid lines.

    Columns after the first two are negatives. Of three line-aligned files, the third holds the scores. With ``in_place`` a
    damaged line is a pair without texts.
    """

    def job() -> Rows:
        """Cut the lines into columns, check or count damaged ones, and return the pairs that are sound."""
        spans, states = block.cut(columns)
        if RAISES[on_error]:
            block.complain(states, columns)
        state = np.maximum.reduce(states[:2])
        if block.begins:
            block.check(columns, languages, np.flatnonzero(state == kernels.FINE), True)
        kept = state <= kernels.EMPTY  # all columns of a blank line are empty
        if in_place:
            for span in spans:
                span[~kept] = 0
        fine = np.flatnonzero(kept | in_place)
        of = block.lines if len(block.lines) > 1 else block.lines * len(spans)
        texts = [copied(one.data, span[fine, 0], span[fine, 1]) for one, span in zip(of, spans, strict=True)]
        skipped, scores, negatives = Skipped(), None, None
        block.count(states, skipped)
        if len(block.lines) == 1:
            negatives = Negatives.of_columns(texts[2:]) if len(texts) > 2 else None
        elif len(texts) > 2:
            scores = _numbers(texts[2])
        if score is not None:
            (span, _), (state,) = block.cut((score, score))
            span[state != kernels.FINE] = 0
            scores = _numbers(copied(block.lines[0].data, span[fine, 0], span[fine, 1]))
        return Rows(texts[0], texts[1], scores, skipped.counts, negatives)

    return job


def _numbers(texts: Texts) -> np.ndarray:
    """Parse each text as a number, NaN if it is none."""
    out = np.full(len(texts), np.nan, np.float32)
    for row, text in enumerate(texts):
        try:
            out[row] = float(text)
        except ValueError:
            continue
    return out


def bodies(lines: Texts) -> Iterator[tuple[bytes, bytes]]:
    """Iterate over (line without its end, line end), both unchanged."""
    data = lines.data.tobytes()
    for low, high in pairwise(lines.offsets.tolist()):
        line = data[low:high]
        body = line.removesuffix(b"\n")
        body = body.removesuffix(b"\r") if len(body) < len(line) else body
        yield body, line[len(body) :]
