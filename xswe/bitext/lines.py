"""The pairs of a file, one by one or as blocks of flat arrays, each made by a job that any thread may run.

Lines of text, plain, packed or within an archive, are cut by compiled code; pairs of other formats are packed as their
readers yield them. Reading goes in file order in the caller's thread; the jobs do the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np

from xswe.bitext import kernels
from xswe.bitext.catalogues import read_catalogue
from xswe.bitext.checks import JUDGED, check_columns_are_text, check_sides_are_text
from xswe.bitext.memories import read_tmx, read_xliff
from xswe.bitext.rows import Negatives, Rows, copied, pack
from xswe.bitext.source import PairFile
from xswe.bitext.tables import csv_rows, read_hub, read_jsonl, read_parquet, read_rows, sheet_texts
from xswe.errors import ConfigError
from xswe.io.inputs import steady
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
    unequal_sides,
)
from xswe.io.ragged import Texts
from xswe.io.sources import open_member, packing_of

Job = Callable[[], Rows]
Spans = Sequence[tuple[int, int]]  # of a file, or of two that are aligned line by line: first byte, and one past the last
_UNITS = {"catalogue": read_catalogue, "tmx": read_tmx, "xliff": read_xliff}
_REASONS = {
    kernels.LONG: "line too long",
    kernels.NOT_UTF8: "not UTF-8",
    kernels.NUL: "NUL byte",
    kernels.FEW: "too few columns",
}


def read_pairs(file: PairFile, *, on_error: OnError = "raise", skipped: Skipped | None = None) -> Iterator[tuple[str, str]]:
    """Yield the pairs of one file, each side a line without blanks at its ends; a side may be empty.

    InputError, with file and line: bad UTF-8, too few columns, sides of unequal length, a truncated archive.
    """
    skipped = skipped if skipped is not None else Skipped()
    for job in read_jobs(file, on_error=on_error):
        rows = job()
        for reason, count in rows.skipped.items():
            skipped.add(reason, count)
        yield from zip(rows.source, rows.target, strict=True)


def read_jobs(
    file: PairFile, *, on_error: OnError = "raise", scores: bool = False, spans: Spans | None = None
) -> Iterator[Job]:
    """Yield the jobs that make a file's pairs, in order; with ``scores`` the corpus's own scores are read, too.

    The n-th job of a file is always the same. ``Rows.skipped`` counts what is skipped. Of a file that :func:`is_cut`,
    ``spans`` (one of each file, with as many lines) select the lines whose first byte is in them; errors then count lines
    from their beginning, see :func:`xswe.io.lines.lines_counted`. Raises as :func:`read_pairs`, in a job or between jobs.
    """
    if file.format == "tsv":
        yield from _columns(file, on_error, scores, spans[0] if spans else None)
    elif file.format == "moses":
        yield from _moses(file, on_error, scores, spans)
    else:
        skipped = Skipped()
        for number, rows in enumerate(_records(file, on_error, skipped)):
            if not number:
                check_sides_are_text(str(file.hub or file.source), file.languages, *_first(rows))
            yield _ready(Rows(rows.source, rows.target, None, dict(skipped.counts), rows.negatives))
            skipped.counts.clear()
        if skipped.counts:
            yield _ready(Rows(Texts.of([]), Texts.of([]), None, dict(skipped.counts)))


def _records(file: PairFile, on_error: OnError, skipped: Skipped) -> Iterator[Rows]:
    """Yield the blocks of a file that is not text by lines."""
    if file.hub is not None:
        return read_hub(file.hub, file.record)
    if file.format == "parquet":
        return read_parquet(file.source, file.record)
    return pack(_units(file, on_error, skipped), file.format in ("csv", "jsonl", "xlsx") and file.with_negatives)


def _units(file: PairFile, on_error: OnError, skipped: Skipped) -> Iterator[tuple[str, ...]]:
    """Yield the pairs of records, each followed by its negatives, or of a translation memory."""
    if file.format in ("csv", "xlsx"):
        rows = csv_rows(file.source) if file.format == "csv" else sheet_texts(file.source)
        return read_rows(rows, file.source, file.record, file.columns, on_error=on_error, skipped=skipped)
    if file.format == "jsonl":
        return read_jsonl(file.source, file.record, on_error=on_error, skipped=skipped)
    return _UNITS[file.format](file.source, file.languages, on_error=on_error, skipped=skipped)


def is_cut(file: PairFile) -> bool:
    """Return True if a file can be read by spans: it is text by lines, and neither packed nor in an archive."""
    return file.format in ("tsv", "moses") and not file.members and not any(map(packing_of, file.files))


def _first(rows: Rows) -> tuple[list[str], list[str]]:
    return list(rows.source[:JUDGED]), list(rows.target[:JUDGED])


def _ready(rows: Rows) -> Job:
    return lambda: rows


def _open(stack: ExitStack, file: Path, member: str | None) -> BinaryIO:
    if member is None:
        return stack.enter_context(open_binary(file))
    stack.enter_context(steady(file))
    return stack.enter_context(open_member(file, member))


def _columns(file: PairFile, on_error: OnError, scores: bool, span: tuple[int, int] | None) -> Iterator[Job]:
    column = file.score if scores else None
    if isinstance(column, str):
        raise ConfigError(f"{file.source}: the score of tab-separated text is a column, counted from 0")
    with ExitStack() as stack:
        stream, inside = _open(stack, file.source, file.members[0] if file.members else None), bool(span and span[0])
        lines = Lines(cast(BinaryIO, Span(stream, *span)) if span else stream, inside=inside)
        number = 1
        while count := lines.ready(BLOCK_LINES):
            yield _column_job(file, lines.take(count), number, on_error, column, number == 1 and not inside)
            number += count
        yield from _end(lines, file.source, number, on_error)


def _column_job(file: PairFile, block: Texts, number: int, on_error: OnError, score: int | None, judged: bool) -> Job:
    def job() -> Rows:
        """Find the lines of all sides, and keep the rows that are fine on both."""
        spans, status = np.zeros((len(block), 4), np.int64), np.zeros(len(block), np.uint8)
        kernels.cut_lines(block.data, block.offsets, *file.columns, MAX_LINE_BYTES, spans, status)
        further = [_column(block, int(column), status) for column in file.negatives]
        if RAISES[on_error]:
            complain(block, status, file.source, number, (*file.columns, *map(int, file.negatives)))
        fine = np.flatnonzero(status == kernels.FINE)
        if judged:
            check_columns_are_text(file.source, file.columns, file.languages, first_lines(block, fine))
        spans = spans[fine]
        source, target = copied(block.data, spans[:, 0], spans[:, 1]), copied(block.data, spans[:, 2], spans[:, 3])
        texts = [copied(block.data, one[fine, 0], one[fine, 1]) for one in further]
        negatives = Negatives.of_columns(texts) if texts else None
        scores = None if score is None else _score_column(block, score, fine)
        return Rows(source, target, scores, _counted(status), negatives)

    return job


def first_lines(block: Texts, rows: np.ndarray) -> list[tuple[int, str]]:
    """Return those of a file's first lines in ``rows``, with their numbers, by which its columns are recognised."""
    raw = ((row, block.data[block.offsets[row] : block.offsets[row + 1]]) for row in rows[:JUDGED].tolist())
    return [(row + 1, line.tobytes().decode("utf-8").rstrip("\r\n")) for row, line in raw]


def _column(block: Texts, column: int, status: np.ndarray) -> np.ndarray:
    """Return where a further column starts and stops, int64 (n, 4); ``status`` marks lines that lack it."""
    spans, own = np.zeros((len(block), 4), np.int64), np.zeros(len(block), np.uint8)
    kernels.cut_lines(block.data, block.offsets, column, column, MAX_LINE_BYTES, spans, own)
    np.maximum(status, own, out=status)
    return spans


def _score_column(block: Texts, column: int, rows: np.ndarray) -> np.ndarray:
    spans, status = np.zeros((len(block), 4), np.int64), np.zeros(len(block), np.uint8)
    kernels.cut_lines(block.data, block.offsets, column, column, MAX_LINE_BYTES, spans, status)
    spans[status != kernels.FINE] = 0
    return _numbers(copied(block.data, spans[rows, 0], spans[rows, 1]))


def _numbers(texts: Texts) -> np.ndarray:
    """Read one number a text, NaN where there is none."""
    out = np.full(len(texts), np.nan, np.float32)
    for row, text in enumerate(texts):
        try:
            out[row] = float(text)
        except ValueError:
            continue
    return out


def _moses(file: PairFile, on_error: OnError, scores: bool, spans: Spans | None) -> Iterator[Job]:
    """Jobs of two line-aligned files or members, and of the member that holds the scores."""
    with ExitStack() as stack:
        names: list[tuple[Path, str | None]] = (
            [(file.source, member) for member in file.members] if file.members else [(path, None) for path in file.files]
        )
        if scores and file.score is not None:
            names.append((file.source, str(file.score)))
        opened, inside = [_open(stack, path, member) for path, member in names], bool(spans and spans[0][0])
        parts = [cast(BinaryIO, Span(s, *span)) for s, span in zip(opened, spans, strict=True)] if spans else opened
        streams = [Lines(stream, inside=inside) for stream in parts]
        where = [f"{path}!{member}" if member else str(path) for path, member in names]
        number = 1
        while True:
            counts = [lines.ready(BLOCK_LINES) for lines in streams]
            if not min(counts):
                break
            blocks = [lines.take(min(counts)) for lines in streams]
            judged = number == 1 and not inside
            yield _moses_job(blocks, where, number, on_error, file.languages if judged else None)
            number += min(counts)
        damaged = False
        for lines, name in zip(streams, where, strict=True):
            if lines.damage is not None:
                damaged = True
                yield from _end(lines, name, number, on_error)
        if max(counts) and not damaged:
            yield from _unequal(where[counts.index(0)], where[counts.index(max(counts))], number, on_error)


def _moses_job(
    blocks: list[Texts], where: list[str], number: int, on_error: OnError, languages: tuple[str, str] | None
) -> Job:
    def job() -> Rows:
        """Find the lines of all sides, and keep the rows that are fine on both."""
        spans, status = [], []
        for block, name in zip(blocks, where, strict=True):
            spans.append(np.zeros((len(block), 4), np.int64))
            status.append(np.zeros(len(block), np.uint8))
            kernels.cut_lines(block.data, block.offsets, -1, -1, MAX_LINE_BYTES, spans[-1], status[-1])
            if RAISES[on_error]:
                complain(block, status[-1], name, number, (0, 0))
        fine = np.flatnonzero(np.maximum(status[0], status[1]) == kernels.FINE)
        texts = [copied(b.data, s[fine, 0], s[fine, 1]) for b, s in zip(blocks, spans, strict=True)]
        if languages is not None:
            check_sides_are_text(" and ".join(where[:2]), languages, *(list(side[:JUDGED]) for side in texts[:2]))
        skipped: dict[str, int] = {}
        for one in status[:2]:
            for reason, count in _counted(one).items():
                skipped[reason] = skipped.get(reason, 0) + count
        return Rows(texts[0], texts[1], _numbers(texts[2]) if len(texts) > 2 else None, skipped)

    return job


def _counted(status: np.ndarray) -> dict[str, int]:
    counts = np.bincount(status, minlength=len(_REASONS) + 2)
    return {reason: int(counts[code]) for code, reason in _REASONS.items() if counts[code]}


def complain(block: Texts, status: np.ndarray, name: str | Path, number: int, columns: tuple[int, ...]) -> None:
    """Raise the error of the first damaged line, if there is one."""
    bad = np.flatnonzero(status > kernels.EMPTY)
    if not len(bad):
        return
    row = int(bad[0])
    raw = block.data[block.offsets[row] : block.offsets[row + 1]].tobytes()
    if status[row] == kernels.LONG:
        raw = raw.removesuffix(b"\n")
    line = decode_line(raw, name, number + row, "raise", Skipped()) or ""
    raise too_few_columns(name, line.count("\t") + 1, columns, number + row)


def _unequal(short: str, long: str, number: int, on_error: OnError) -> Iterator[Job]:
    if RAISES[on_error]:
        raise unequal_sides(short, long, number)
    yield _ready(Rows(Texts.of([]), Texts.of([]), None, {"unequal length": 1}))


def _end(lines: Lines, name: str | Path, number: int, on_error: OnError) -> Iterator[Job]:
    """Report that a stream ended early, if it did."""
    if lines.damage is None:
        return
    if RAISES[on_error] or isinstance(lines.damage, ReturnsAlone):
        raise damaged_archive(name, lines.damage, number)
    yield _ready(Rows(Texts.of([]), Texts.of([]), None, {"damaged archive": 1}))
