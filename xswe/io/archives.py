"""Packed files: the suffixes that are known, and the bytes within. All parts that meet packed files ask here."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import sys
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, cast

from xswe.errors import InputError, needs
from xswe.io.files import whole_file

PACKED = (".gz", ".xz", ".bz2", ".zst", ".zstd")


def packing_of(path: str | Path) -> str:
    """Return the suffix that tells how a file is packed, in lower case, or "" for one that is not."""
    suffix = Path(path).suffix.lower()
    return suffix if suffix in PACKED else ""


def without_packing(path: str | Path) -> Path:
    """Return a file's path without the suffix that tells how it is packed."""
    path = Path(path)
    return path.with_suffix("") if packing_of(path) else path


def unpacked(raw: BinaryIO, packing: str) -> BinaryIO:
    """Return a stream of the bytes within one packed by one of :data:`PACKED`, or "" for none."""
    if packing == ".gz":
        return cast(BinaryIO, gzip.GzipFile(fileobj=raw))
    if packing == ".xz":
        return cast(BinaryIO, lzma.LZMAFile(raw))
    if packing == ".bz2":
        return cast(BinaryIO, bz2.BZ2File(raw))
    return _open_zstd(raw) if packing else raw


def _open_zstd(raw: BinaryIO) -> BinaryIO:
    with needs("zstandard", "train", "reading .zst files"):
        import zstandard
    return io.BufferedReader(_Zstd(raw, zstandard.ZstdDecompressor().decompressobj), 1 << 17)


@contextmanager
def open_output(path: str | Path) -> Iterator[BinaryIO]:
    """Open a file that appears whole or not at all, compressed by its suffix (.gz .xz .bz2 .zst); ``-`` is stdout."""
    if str(path) == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    with whole_file(path) as temporary, open(temporary, "wb") as raw, _compressed(raw, packing_of(path)) as stream:
        yield stream


@contextmanager
def _compressed(raw: BinaryIO, packing: str) -> Iterator[BinaryIO]:
    if packing == ".gz":
        stream: Any = gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0)  # the same bytes every time
    elif packing == ".xz":
        stream = lzma.LZMAFile(raw, "wb")  # noqa: SIM115 (closed below)
    elif packing == ".bz2":
        stream = bz2.BZ2File(raw, "wb")
    elif packing:
        with needs("zstandard", "mine", "writing .zst files"):
            import zstandard
        stream = zstandard.ZstdCompressor().stream_writer(raw, closefd=False)
    else:
        yield raw
        return
    with stream:
        yield cast(BinaryIO, stream)


class _Zstd(io.RawIOBase):
    """Decompress zstd frames one after the other, and notice a file cut short (the library's own reader does not)."""

    def __init__(self, raw: BinaryIO, new_frame: Callable[[], Any]) -> None:
        self._raw, self._new_frame = raw, new_frame
        self._frame = new_frame()
        self._begun = False
        self._ready = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer with unpacked bytes; returns how many, 0 at the end."""
        while not self._ready:
            packed = self._frame.unused_data if self._frame.eof else b""
            if self._frame.eof:
                self._frame, self._begun = self._new_frame(), False
            packed = packed or self._raw.read(1 << 17)
            if not packed:
                if self._begun:
                    raise EOFError("the last zstd frame is not complete")
                return 0
            self._begun = True
            self._ready = self._frame.decompress(packed)
        size = min(len(buffer), len(self._ready))
        buffer[:size] = self._ready[:size]
        self._ready = self._ready[size:]
        return size


# Members of zip and tar archives, read as streams: nothing is unpacked to disk, and nothing in an archive is trusted.
#
# A name that leaves the archive's own folder, a link in the place of text, an encrypted member and a decompression bomb
# are refused with a clear message before or while they are read.


# Text packs to a third or a tenth of its size, and a file of one word over and over to a thousandth.
MAX_RATIO = 400
_SMALL = 64 << 20  # a member below this size is no bomb whatever its ratio
_CURE = "fetch it again from its source, and look who made it"


def damage(*others: type[Exception]) -> tuple[type[Exception], ...]:
    """Return the exceptions by which readers of packed files report damage, and ``others``."""
    zstandard = sys.modules.get("zstandard")  # as long as it is not loaded, it raises nothing
    loaded = (zstandard.ZstdError,) if zstandard else ()
    return (EOFError, OSError, zlib.error, lzma.LZMAError, tarfile.TarError, zipfile.BadZipFile, *loaded, *others)


def _brief(error: BaseException) -> str:
    """Return the first words of an error: tarfile's messages list every format it tried."""
    return " ".join(str(error).split())[:100]


def is_zip(path: Path) -> bool:
    """Tell by the name whether a file is a zip archive, as books are, too."""
    return path.suffix.lower() in (".zip", ".epub")


def is_tar(path: Path) -> bool:
    """Tell by the name whether a file is a tar archive, packed or not."""
    return without_packing(path).suffix.lower() in (".tar", ".tgz")


def _open_tar(archive: Path, stack: ExitStack) -> tarfile.TarFile:
    """Open a tar archive to be read once from front to back."""
    if packing_of(archive).startswith(".zst"):  # which tarfile does not know before Python 3.14
        raw = stack.enter_context(archive.open("rb"))
        return stack.enter_context(tarfile.open(fileobj=unpacked(raw, ".zst"), mode="r|"))
    return stack.enter_context(tarfile.open(archive, "r:*"))


def check_name(archive: Path, name: str) -> None:
    """Refuse a member name that points outside of the folder it would be unpacked to.

    Raises:
        InputError: the name is absolute, has a drive or a ``..``, or holds a NUL or backslash.
    """
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or "\\" in name or "\0" in name or (path.parts and ":" in path.parts[0]):
        raise InputError(archive, f"it holds a member named {name!r}, which points outside of the archive", _CURE)


def member_names(archive: Path) -> list[str]:
    """List the text members of a zip or tar archive.

    Raises:
        InputError: the archive is damaged, or a member's name points outside of it.
    """
    names = []
    try:
        if is_zip(archive):
            with zipfile.ZipFile(archive) as opened:
                for info in opened.infolist():
                    check_name(archive, info.filename)
                    if not info.is_dir():
                        names.append(info.filename)
        else:
            with ExitStack() as stack:
                for member in _open_tar(archive, stack):
                    check_name(archive, member.name)
                    if member.isfile():
                        names.append(member.name)
    except FileNotFoundError:
        raise _missing(archive) from None
    except damage(NotImplementedError) as error:
        raise InputError(archive, f"the archive is truncated or damaged ({_brief(error)})", "fetch it again") from None
    return names


def _fits(name: str, pattern: str) -> bool:
    return fnmatchcase(name, pattern) or fnmatchcase(PurePosixPath(name).name, pattern)


def match_member(archive: Path, pattern: str, names: list[str]) -> str:
    """Return the one member that a pattern names, or raise an InputError where none or several do."""
    found = [name for name in names if _fits(name, pattern)]
    if len(found) != 1:
        what = f"{len(found)} members fit {pattern!r}" if found else f"no member fits {pattern!r}"
        raise InputError(archive, f"{what} (it has {', '.join(names[:8]) or 'none'})", "name the member in the corpus card")
    return found[0]


class _Guarded(io.RawIOBase):
    """A member's bytes, counted: reading stops with an error at a bomb."""

    def __init__(self, stream: Any, archive: Path, name: str, packed: int) -> None:
        self._stream, self._archive, self._name = stream, archive, name
        self._most = max(_SMALL, MAX_RATIO * packed)
        self._read = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._stream.read(len(buffer))
        self._read += len(data)
        if self._read > self._most:
            raise _bomb(self._archive, self._name)
        buffer[: len(data)] = data
        return len(data)


def _bomb(archive: Path, name: str) -> InputError:
    return InputError(
        archive, f"its member {name} unpacks to over {MAX_RATIO} times its size (a decompression bomb)", _CURE
    )


@contextmanager
def open_member(archive: Path, pattern: str) -> Iterator[BinaryIO]:
    """Open the member of a zip or tar archive that a name or pattern fits (the first such of a tar) for reading.

    Raises:
        InputError: no member fits; or it points outside, is encrypted, a link or a bomb; or the archive is damaged.
    """
    with ExitStack() as stack:
        try:
            stream = (_zip_member if is_zip(archive) else _tar_member)(archive, pattern, stack)
        except FileNotFoundError:
            raise _missing(archive) from None
        except damage(RuntimeError, NotImplementedError) as error:
            raise InputError(archive, f"the archive is truncated or damaged ({_brief(error)})", "fetch it again") from None
        yield cast(BinaryIO, io.BufferedReader(stream, 1 << 20))


def _missing(archive: Path) -> InputError:
    return InputError(archive, "no such file", "check the path (relative paths start at the working directory)")


def _zip_member(archive: Path, pattern: str, stack: ExitStack) -> _Guarded:
    opened = stack.enter_context(zipfile.ZipFile(archive))
    info = opened.getinfo(match_member(archive, pattern, member_names(archive)))
    if info.file_size > max(_SMALL, MAX_RATIO * info.compress_size):
        raise _bomb(archive, info.filename)
    return _Guarded(stack.enter_context(opened.open(info)), archive, info.filename, info.compress_size)


def _tar_member(archive: Path, pattern: str, stack: ExitStack) -> _Guarded:
    # In the order of the archive, so that nothing before the member is unpacked twice.
    opened = _open_tar(archive, stack)
    for member in opened:
        check_name(archive, member.name)
        if _fits(member.name, pattern):
            if not member.isfile():
                raise InputError(archive, f"its member {member.name} is a link or device", _CURE)
            return _Guarded(opened.extractfile(member), archive, member.name, archive.stat().st_size)
    raise InputError(archive, f"no member fits {pattern!r}", "name another, or fetch it again")
