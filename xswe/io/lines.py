"""Lines of text files: decompressed, strictly decoded with errors that name the line, one by one or in blocks."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import lru_cache
from io import BufferedReader
from itertools import pairwise
from pathlib import Path
from typing import BinaryIO, Literal, cast

import numpy as np

from xswe.errors import InputError
from xswe.io.inputs import steady
from xswe.io.ragged import Texts
from xswe.io.settings import for_all
from xswe.io.sources import damage, is_remote, open_member, open_remote, packing_of, parted, suffix_of, unpacked
from xswe.io.suffixes import SUFFIXES
from xswe.progress import reading

logger = logging.getLogger(__name__)
# A longer line is no sentence; without a limit, one bad file could fill the memory.
MAX_LINE_BYTES = 1 << 20
_MAX_EXACT_BYTES = 64 << 20  # of a line that is written again as it is
OnError = Literal["raise", "skip"]
RAISES = for_all(OnError, {"raise": True, "skip": False})
_MAX_WHOLE_BYTES = 256 << 20  # the largest file that is read whole
_UNREADABLE_SUFFIXES = (".json", ".sgm", ".sgml", ".xml")
# First bytes of files that are not text: their format, and the cure. Files whose suffix names the format do not get here.
_SAVE, _UNPACK = "save it as UTF-8 text: a table as .csv or .tsv, else .txt", "unpack it, or let its name end in"
_WRITE = "write it as .parquet, .jsonl or text"
_SIGNATURES = {
    b"PK\x03\x04": ("a zip archive, as .xlsx, .docx and .odt files are", f"{_SAVE}; or unpack it"),
    b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1": ("an Office file, as .xls and .doc", _SAVE),
    b"%PDF-": ("PDF", _SAVE),
    b"{\\rtf": ("RTF", _SAVE),
    b"ARROW1\0\0": ("Arrow", _WRITE),
    b"\xff\xff\xff\xff": ("a stream of Arrow, as datasets saves", _WRITE),
    b"PAR1\x15": ("Parquet", f"{_SAVE}; or let its name end in .parquet"),
    b"\x1f\x8b\x08": ("packed by gzip", f"{_UNPACK} .gz"),
    b"\xfd7zXZ\0": ("packed by xz", f"{_UNPACK} .xz"),
    b"BZh91AY&SY": ("packed by bzip2", f"{_UNPACK} .bz2"),
    b"\x28\xb5\x2f\xfd": ("packed by zstd", f"{_UNPACK} .zst"),
    b"7z\xbc\xaf\x27\x1c": ("packed by 7-Zip", "unpack it"),
}
RETURNS_ALONE = "its lines end in CR alone", "convert them with  tr '\\r' '\\n'"
_SKIPPABLE = "or set on_error=skip to leave it out and count it"


@dataclass
class Skipped:
    """Lines left out by a reader with ``on_error="skip"``, counted by reason."""

    counts: dict[str, int] = field(default_factory=dict)

    def add(self, reason: str, count: int = 1) -> None:
        """Count ``count`` more."""
        if count:
            self.counts[reason] = self.counts.get(reason, 0) + count

    def update(self, counts: Mapping[str, int]) -> None:
        """Add other counts."""
        for reason, count in counts.items():
            self.add(reason, count)

    def tell(self, name: str) -> None:
        """Log what was left out of a file, if anything was."""
        if self.counts:
            logger.info("%s%s", name, left_out_of(self.counts))


def left_out_of(counts: Mapping[str, int]) -> str:
    """Return the end of a summary that lists counts of left-out lines, "" if there are none."""
    listed = ", ".join(f"{count:,} {what}" for what, count in counts.items())
    return f"; left out: {listed}" if listed else ""


@contextmanager
def open_binary(path: str | Path) -> Iterator[BinaryIO]:
    """Open a file for reading, decompressing ``.gz``, ``.xz``, ``.bz2`` and ``.zst`` by their suffix; ``-`` is stdin.

    Names with a scheme (``s3://…``) are read through fsspec, see :mod:`xswe.io.sources`. InputError: the file is
    missing, or is a packed file, table or document whose name does not say so.
    """
    if str(path) == "-":
        _check_text(sys.stdin.buffer, path)
        yield sys.stdin.buffer
        return
    archive, member = parted(path)
    if member:
        with steady(archive), open_member(archive, member) as raw:
            yield unpacked(raw, packing_of(member))
        return
    with nullcontext() if is_remote(path) else steady(path):
        if (suffix := suffix_of(path)) in _UNREADABLE_SUFFIXES:
            hint = "call it .jsonl if it has an object a line; else write its text as lines, or its pairs as .tsv or .tmx"
            raise InputError(path, f"{suffix} files are not read", hint)
        with open_remote(str(path)) if is_remote(path) else open(path, "rb") as raw:
            if not (packing := packing_of(path)):
                _check_text(raw, path)
            with reading(raw):
                yield unpacked(raw, packing)


def _check_text(stream: BinaryIO, path: str | Path) -> None:
    """Raise InputError if the first bytes of a stream are the signature of a format that is not text."""
    first = stream.peek(16)[:16] if isinstance(stream, BufferedReader) else b"\n"
    if not first:
        _warn_of_empty(str(path))
    for begin, (found, hint) in _SIGNATURES.items():
        if first.startswith(begin):
            raise InputError(path, found, hint)


@lru_cache
def _warn_of_empty(path: str) -> None:
    """Warn of an empty file, once even if it is read several times."""
    logger.warning("%s: it is empty", "standard input" if path == "-" else path)


def check_lines(path: str | Path) -> None:
    """Raise InputError if a file's suffix is that of a table or a translation memory, not of lines of text."""
    suffix = suffix_of(path)
    if suffix in SUFFIXES and SUFFIXES[suffix].has_rows:
        hint = "write its texts to a file, one a line (filter, corpus, link, and phrases with languages= read bitext)"
        raise InputError(path, f"a {suffix} file has no text line by line", hint)


@contextmanager
def unbroken(path: str | Path) -> Iterator[None]:
    """Raise InputError if the packed file read in the block is damaged."""
    try:
        yield
    except damage() as error:
        raise damaged_archive(path, error, None, "fetch it again") from None


def read_whole(stream: BinaryIO, path: str | Path, what: str) -> bytes:
    """Read a stream to its end; raise InputError if it does not fit into memory."""
    with unbroken(path):
        data = stream.read(_MAX_WHOLE_BYTES + 1)
    if len(data) > _MAX_WHOLE_BYTES:
        raise InputError(path, f"{what} of over {_MAX_WHOLE_BYTES >> 20} MiB", "cut it into several files")
    return data


def read_lines(
    path: str | Path, *, on_error: OnError = "raise", skipped: Skipped | None = None
) -> Iterator[tuple[int, str | None]]:
    """Yield (line number from 1, text without its line end) of a UTF-8 file, decompressed by its suffix; ``-`` is stdin.

    Only LF (or CR LF) ends a line: U+2028 and the like stay inside. A byte-order mark is dropped. A file with CR alone,
    which would be one line, raises InputError. So does a line that is not UTF-8 or too long, unless ``on_error`` is
    ``skip``: its text is then None, which keeps line-aligned files aligned, and ``skipped`` counts it; a truncated
    archive then ends after its last whole line.
    """
    skipped = skipped if skipped is not None else Skipped()
    with open_binary(path) as stream:
        lines, number = Lines(stream), 1
        while lines.ready(1):
            block = lines.take()
            texts: Iterable[str | None]
            try:
                texts = _without_ends(block, path, number)
            except InputError:  # raised or skipped when its line comes
                data, rows = block.data.tobytes(), enumerate(pairwise(block.offsets.tolist()), number)
                texts = (decode_line(data[low:high], path, row, on_error, skipped) for row, (low, high) in rows)
            yield from enumerate(texts, number)
            number += len(block)
        if lines.damage is not None:
            if RAISES[on_error] or isinstance(lines.damage, ReturnsAlone):
                raise damaged_archive(path, lines.damage, number)
            skipped.add("damaged archive")


def has_returns_alone(first: bytes) -> bool:
    """Return True if a file's first line, as far as it is read, contains lone CRs, the line ends of old Macs."""
    return not first.endswith(b"\n") and b"\r" in first.rstrip(b"\r")


def damaged_archive(
    path: str | Path, error: BaseException, number: int | None, hint: str = f"fetch it again, {_SKIPPABLE}"
) -> InputError:
    """Return the error of a compressed file, or other input, that ends or breaks within line ``number``."""
    if isinstance(error, ReturnsAlone):
        return InputError(path, *RETURNS_ALONE)
    found = f"the archive is truncated or damaged ({error})"
    return InputError(path, found, hint, number)


def too_few_columns(path: str | Path, found: int, columns: tuple[int, ...], number: int) -> InputError:
    """Return the error of a line without the requested columns."""
    problem = f"{found} tab-separated columns where columns {columns} need {max(columns) + 1}"
    hint = "set columns=[…] (counted from 0), or on_error=skip to leave such lines out"
    return InputError(path, problem, hint, number)


def unequal_sides(short: str | Path, long: str | Path, number: int) -> InputError:
    """Return the error of two line-aligned files, one of which ends before the other's line ``number``."""
    hint = "the two files must be aligned line by line: fetch both again, or set on_error=skip"
    return InputError(short, f"ends before line {number}, where {long} goes on", hint, number)


def not_utf8(path: str | Path, first: int, data: bytes, at: int, further: str = "") -> InputError:
    """Return the error of an invalid UTF-8 byte at ``data[at]``; ``first`` is the number of the first line in ``data``."""
    line, column = first + data.count(b"\n", 0, at), at - data.rfind(b"\n", 0, at)
    if line == 1 and data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return InputError(path, "UTF-16, not UTF-8", "convert the file with  iconv -f UTF-16 -t UTF-8")
    found = f"not UTF-8 (byte {data[at]:#04x} at column {column})"
    return InputError(path, found, f"convert the file with iconv{further}", line)


def nul_byte(path: str | Path, first: int, data: bytes, further: str = "") -> InputError:
    """Return the error of a NUL byte in ``data``, whose first line has the number ``first``."""
    line = first + data.count(b"\n", 0, data.index(b"\0"))
    hint = f"convert the file to UTF-8 with iconv{further}"
    return InputError(path, "a NUL byte (UTF-16 text, or no text at all)", hint, line)


def too_long(path: str | Path, line: int, further: str = "", limit: int = MAX_LINE_BYTES) -> InputError:
    """Return the error of a line longer than ``limit`` bytes."""
    return InputError(path, f"a line of over {limit >> 20} MiB", f"cut the file into lines{further}", line)


def decode_line(raw: bytes, path: str | Path, number: int, on_error: OnError, skipped: Skipped) -> str | None:
    """Decode one line and strip its line end; an invalid line raises InputError or, if skipped, returns None."""
    body = raw.removesuffix(b"\n").removesuffix(b"\r")
    try:
        if len(body) > MAX_LINE_BYTES:
            reason, error = "line too long", too_long(path, number, f", {_SKIPPABLE}")
        elif "\0" not in (text := body.decode("utf-8")):
            return text
        else:
            reason, error = "NUL byte", nul_byte(path, number, raw, f", {_SKIPPABLE}")
    except UnicodeDecodeError as found:
        reason, error = "not UTF-8", not_utf8(path, number, raw, found.start, f", {_SKIPPABLE}")
    if RAISES[on_error]:
        raise error
    skipped.add(reason)
    return None


# Blocks of lines of a byte stream, in bounded memory whatever the file contains.


BLOCK_LINES = 16_384
_BLOCK_BYTES = 16 << 20  # a block is never much larger, however long its lines are
_CHUNK = 1 << 20  # at most MAX_LINE_BYTES, so that a line within a chunk is never too long


class ReturnsAlone(Exception):
    """A stream without line feeds whose lines seem to end in carriage returns."""


class Lines:
    """The lines of a stream, many at a time and undecoded.

    A line longer than ``limit``, ``MAX_LINE_BYTES``, is cut to that and two more bytes, by which readers recognise it.
    ``exact`` keeps longer ones, up to 64 MiB, and a byte-order mark, and adds no line feed to a last line without one.
    ``inside`` means that the stream begins within its file, where no byte-order mark is expected. At most about ``size``
    bytes are buffered, and one line.
    """

    def __init__(self, stream: BinaryIO, exact: bool = False, inside: bool = False, size: int = 0) -> None:
        self._stream, self._exact, self._size = stream, exact, size or _BLOCK_BYTES
        self.limit = _MAX_EXACT_BYTES if exact else MAX_LINE_BYTES
        self._read_available = getattr(stream, "read1", stream.read)  # also from a pipe, or just before damage
        self._buffer = np.zeros(0, np.uint8)
        self._ends = np.zeros(0, np.int64)  # one past the line feed of each whole line in the buffer
        self._run = 0  # bytes so far of the line that the next chunk continues
        self._begun, self._over, self._found = inside, False, inside
        self.damage: BaseException | None = None  # what ended the stream early

    def ready(self, most: int) -> int:
        """Read until ``most`` lines, or a block's worth of bytes, are buffered; return the number of buffered lines."""
        if not self._over and len(self._ends) < most and len(self._buffer) < self._size:
            chunks, lines, size = [self._buffer.tobytes()], len(self._ends), len(self._buffer)
            while lines < most and size < self._size + (lines == 0) * self.limit:
                if not (chunk := self._read()):
                    break
                chunk = self._bounded(chunk)
                chunks.append(chunk)
                lines, size = lines + chunk.count(b"\n"), size + len(chunk)
            if not (self._found or lines) and has_returns_alone(b"".join(chunks)):
                self.damage, chunks = self.damage or ReturnsAlone(), []
            self._found = True
            is_open = self._over and self._run > 0 and self.damage is None
            if is_open and not self._exact:
                chunks.append(b"\n")
            self._buffer = np.frombuffer(b"".join(chunks), np.uint8)
            self._ends = np.flatnonzero(self._buffer == 0x0A) + 1
            if is_open and self._exact:
                self._ends = np.append(self._ends, len(self._buffer))
        return min(most, len(self._ends))

    def before(self, lines: int, size: int) -> int:
        """Return the number of lines, from 1 to ``lines``, that start before byte ``size``."""
        return max(1, min(lines, 1 + int(np.searchsorted(self._ends, size))))

    def within(self, lines: int, size: int) -> int:
        """Return how many of the next ``lines`` lines fit into ``size`` bytes without their line ends, at least 1."""
        return max(1, int(np.searchsorted(self._ends[:lines] - np.arange(1, lines + 1), size, "right")))

    def _read(self) -> bytes:
        """Read a chunk; note the end of the stream, or a decompression error."""
        try:
            chunk = self._read_available(_CHUNK)
        except damage() as error:
            self.damage, chunk = error, b""
        self._over = not chunk
        return chunk

    def take(self, lines: int | None = None) -> Texts:
        """Return the next lines, or all buffered ones, with their line ends."""
        lines = len(self._ends) if lines is None else lines
        if not lines:
            return Texts(np.zeros(0, np.uint8), np.zeros(1, np.int64))
        end = int(self._ends[lines - 1])
        block = Texts(self._buffer[:end], np.concatenate([np.zeros(1, np.int64), self._ends[:lines]]))
        self._buffer, self._ends = self._buffer[end:], self._ends[lines:] - end
        return block

    def _bounded(self, chunk: bytes) -> bytes:
        """Cut off the bytes of a chunk that exceed the size limit of the line it continues."""
        if not self._begun:
            self._begun = True
            while len(chunk) <= 3 and (more := self._read()):
                chunk += more
            chunk = chunk if self._exact else chunk.removeprefix(b"\xef\xbb\xbf") or b"\n"  # the mark alone is a line
        feed = chunk.find(b"\n")
        head = len(chunk) if feed < 0 else feed
        room = max(0, self.limit + 2 - self._run)
        self._run = self._run + len(chunk) if feed < 0 else len(chunk) - chunk.rfind(b"\n") - 1
        return chunk if head <= room else chunk[:room] + chunk[head:]


# The lines of a text file as blocks of flat ``Texts``, without a Python string per line.


READ_LINES, BLOCK_BYTES = 4096, 1 << 22


def read_blocks(path: str | Path, lines: int = READ_LINES, span: tuple[int, int] | None = None) -> Iterator[Texts]:
    """Yield the lines of a UTF-8 file in blocks of ``lines``, or fewer: at the end, and to stay within 4 MiB.

    Only LF (or CR LF) ends a line; a byte-order mark at the start is dropped. Block ends depend on the text alone, not
    on compression or the chunks of a pipe. ``span`` selects the lines of an unpacked file that begin in that range of
    bytes: spans that partition the file partition its lines. InputError: the file is missing or damaged, or a line is
    not UTF-8, has a NUL byte or exceeds 1 MiB.
    """
    start, number = span[0] if span else 0, 1
    with lines_counted(path, start), open_binary(path) as stream:
        source = cast(BinaryIO, Span(stream, *span)) if span else stream
        found = Lines(source, inside=start > 0, size=BLOCK_BYTES + 2 * MAX_LINE_BYTES)
        while count := found.ready(lines):
            block = found.take(found.within(count, BLOCK_BYTES))
            yield _without_ends(block, path, number)
            number += len(block)
        if found.damage is not None:
            raise damaged_archive(path, found.damage, number, "fetch it again")


class Span:
    """A stream of the lines that begin within a span of another; ``at`` is the current position."""

    def __init__(self, stream: BinaryIO, start: int, stop: int) -> None:
        self._stream, self.at, self._stop, self._open = stream, start, stop, False
        if start:
            stream.seek(start - 1)
            self.at -= 1
            part = b""
            while not part.endswith(b"\n") and (part := stream.readline(_CHUNK)):
                self.at += len(part)

    def read(self, most: int) -> bytes:
        """Return at most ``most`` bytes, none at the end."""
        if self.at < self._stop:
            data = self._stream.read(min(most, self._stop - self.at))
            self.at += len(data)
            self._open = self.at >= self._stop and not data.endswith(b"\n")
            return data
        data = self._stream.readline(most) if self._open else b""
        self._open = bool(data) and not data.endswith(b"\n")
        return data


@contextmanager
def lines_counted(path: str | Path, start: int) -> Iterator[None]:
    """Make errors in a span that starts at byte ``start`` count lines from the beginning of the file."""
    try:
        yield
    except InputError as error:
        if error.line is None or not start or is_remote(path):
            raise
        before = 0
        with open(path, "rb") as stream:
            head = Span(stream, 0, start)
            while data := head.read(_CHUNK):
                before += data.count(b"\n")
        raise InputError(error.path, error.problem, error.hint, error.line + before) from None


def _without_ends(lines: Texts, path: str | Path, first: int) -> Texts:
    """Return whole lines, numbered from ``first``, without their line ends; InputError: one is damaged."""
    data, errors = lines.data.tobytes(), list[InputError]()
    if (long := np.flatnonzero(lines.sizes > MAX_LINE_BYTES + 1)).size:
        size = lines.data[lines.offsets[long + 1] - 2] == 0x0D  # a line may end in CR LF
        if (long := long[lines.sizes[long] - size > MAX_LINE_BYTES + 1]).size:
            errors.append(too_long(path, first + int(long[0])))
    if not data.isascii():
        try:
            data.decode("utf-8")
        except UnicodeDecodeError as error:
            errors.append(not_utf8(path, first, data, error.start))
    if b"\0" in data:
        errors.append(nul_byte(path, first, data))
    if errors:
        raise min(errors, key=lambda error: error.line or 0)
    offsets = lines.offsets
    if b"\r" in data:
        data = data.replace(b"\r\n", b"\n")
        offsets = np.append(0, np.flatnonzero(np.frombuffer(data, np.uint8) == 0x0A) + 1)
    return Texts(np.frombuffer(data.translate(None, b"\n"), np.uint8), offsets - np.arange(len(offsets)))
