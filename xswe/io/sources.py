"""Byte streams of packed files, members of archives, and remote files.

The suffixes of packed files are in :data:`PACKED`. Members of zip and tar archives are read as streams: nothing is
unpacked to disk, and nothing in an archive is trusted. A name that points outside the archive, a link instead of a file,
an encrypted member and a decompression bomb raise a clear error before or while they are read. Remote files (``s3://``,
``gs://``, ``https://`` and whatever else fsspec opens) are only read. Object stores fail now and then, and answer 503
under load: a remote stream retries with growing delays, and continues from the byte it had reached.
"""

from __future__ import annotations

import bz2
import glob
import gzip
import io
import logging
import lzma
import re
import sys
import tarfile
import time
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, cast

from xswe.errors import ConfigError, DependencyError, InputError, brief, needs

logger = logging.getLogger(__name__)
PACKED = (".gz", ".xz", ".bz2", ".zst", ".zstd")
# Text compresses to a third or a tenth of its size, one repeated word to a thousandth.
MAX_RATIO = 400
_MAX_BYTES_AT_ANY_RATIO = 64 << 20  # a smaller member is no bomb
_HINT = "fetch it again from its source, and check who made it"
_ATTEMPTS = 6
_FIRST_PAUSE = 0.5  # seconds; each further one is twice as long
_READ_BYTES = 8 << 20
_FINAL_ERRORS = (FileNotFoundError, PermissionError, NotADirectoryError, IsADirectoryError)


def packing_of(path: str | Path) -> str:
    """Return a packed file's compression suffix in lower case, or "" if it is not packed."""
    suffix = Path(path).suffix.lower()
    return suffix if suffix in PACKED else ""


def without_packing(path: str | Path) -> Path:
    """Return a file's path without its compression suffix."""
    path = Path(path)
    return path.with_suffix("") if packing_of(path) else path


def suffix_of(path: str | Path) -> str:
    """Return the suffix of a file's format in lower case, without any compression suffix."""
    return without_packing(path).suffix.lower()


def unpacked(raw: BinaryIO, packing: str) -> BinaryIO:
    """Return a stream that decompresses another; ``packing`` is a suffix of :data:`PACKED`, or "" for none."""
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


class _Zstd(io.RawIOBase):
    """Decompresses consecutive zstd frames, and detects a truncated file (the library's own reader does not)."""

    def __init__(self, raw: BinaryIO, new_frame: Callable[[], Any]) -> None:
        self._raw, self._new_frame = raw, new_frame
        self._frame = new_frame()
        self._begun = False
        self._ready = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer with decompressed bytes; return how many, 0 at the end."""
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


def damage(*others: type[Exception]) -> tuple[type[Exception], ...]:
    """Return the exceptions that readers of packed files raise for damage, and ``others``."""
    zstandard = sys.modules.get("zstandard")  # until it is loaded, it raises nothing
    loaded = (zstandard.ZstdError,) if zstandard else ()
    return (EOFError, OSError, zlib.error, lzma.LZMAError, tarfile.TarError, zipfile.BadZipFile, *loaded, *others)


def is_zip(path: Path) -> bool:
    """Return True if a file is a zip archive by its name; e-books count."""
    return path.suffix.lower() in (".zip", ".epub")


def _is_zipped(path: Path) -> bool:
    """Return True if a file is a zip archive by its name; e-books and ``.docx`` count."""
    return is_zip(path) or path.suffix.lower() == ".docx"


def is_tar(path: Path) -> bool:
    """Return True if a file is a tar archive by its name, packed or not."""
    return suffix_of(path) in (".tar", ".tgz")


def parted(path: str | Path) -> tuple[Path, str]:
    """Split a name like ``a.zip!b.txt`` into archive and member; for other names return the path and ""."""
    name, _, member = str(path).partition("!")
    archive = Path(name)
    if member and not is_remote(path) and (is_zip(archive) or is_tar(archive)) and not Path(path).exists():
        return archive, member
    return Path(path), ""


def _open_tar(archive: Path, stack: ExitStack) -> tarfile.TarFile:
    """Open a tar archive to be read once from front to back."""
    if packing_of(archive).startswith(".zst"):  # tarfile does not read it before Python 3.14
        raw = stack.enter_context(archive.open("rb"))
        return stack.enter_context(tarfile.open(fileobj=unpacked(raw, ".zst"), mode="r|"))
    return stack.enter_context(tarfile.open(archive, "r:*"))


def check_name(archive: Path, name: str) -> None:
    """Raise InputError if a member's name is absolute, or has a drive, ``..``, NUL or backslash: it could escape."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or "\\" in name or "\0" in name or (path.parts and ":" in path.parts[0]):
        raise InputError(archive, f"it holds a member named {name!r}, which points outside of the archive", _HINT)


def member_names(archive: Path) -> list[str]:
    """List the files in a zip or tar archive; raise InputError if it is damaged, or a name points outside of it."""
    names = []
    try:
        if _is_zipped(archive):
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
        raise _damaged(archive, error) from None
    return names


def _matches(name: str, pattern: str) -> bool:
    return fnmatchcase(name, pattern) or fnmatchcase(PurePosixPath(name).name, pattern)


def match_member(archive: Path, pattern: str, names: list[str]) -> str:
    """Return the one member that matches a pattern; raise InputError if none or several do."""
    found = [name for name in names if _matches(name, pattern)]
    if len(found) != 1:
        what = f"{len(found)} members fit {pattern!r}" if found else f"no member fits {pattern!r}"
        raise InputError(archive, f"{what} (it has {', '.join(names[:8]) or 'none'})", "name the member in the corpus card")
    return found[0]


class _Guarded(io.RawIOBase):
    """A member's bytes, counted; a decompression bomb raises an error."""

    def __init__(self, stream: Any, archive: Path, name: str, packed: int) -> None:
        self._stream, self._archive, self._name = stream, archive, name
        self._most = max(_MAX_BYTES_AT_ANY_RATIO, MAX_RATIO * packed)
        self._read = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Read some bytes. InputError: the member unpacks to too many times its size."""
        data = self._stream.read(len(buffer))
        self._read += len(data)
        if self._read > self._most:
            raise _bomb(self._archive, self._name)
        buffer[: len(data)] = data
        return len(data)


def _bomb(archive: Path, name: str) -> InputError:
    return InputError(
        archive, f"its member {name} unpacks to over {MAX_RATIO} times its size (a decompression bomb)", _HINT
    )


@contextmanager
def open_member(archive: Path, pattern: str) -> Iterator[BinaryIO]:
    """Open the member of a zip or tar archive that matches a name or pattern (in a tar, the first that does).

    InputError: no member matches; or it points outside, is encrypted, a link or a bomb; or the archive is damaged.
    """
    with ExitStack() as stack:
        try:
            stream = (_zip_member if _is_zipped(archive) else _tar_member)(archive, pattern, stack)
        except FileNotFoundError:
            raise _missing(archive) from None
        except damage(RuntimeError, NotImplementedError) as error:
            raise _damaged(archive, error) from None
        yield cast(BinaryIO, io.BufferedReader(stream, 1 << 20))


def _missing(archive: Path) -> InputError:
    return InputError(archive, "no such file", "check the path (relative paths start at the working directory)")


def _damaged(archive: Path, error: BaseException) -> InputError:
    found = brief(error, 100)  # tarfile's messages list every format it tried
    return InputError(archive, f"the archive is truncated or damaged ({found})", "fetch it again")


def _zip_member(archive: Path, pattern: str, stack: ExitStack) -> _Guarded:
    opened = stack.enter_context(zipfile.ZipFile(archive))
    names = member_names(archive)
    info = opened.getinfo(pattern if names.count(pattern) == 1 else match_member(archive, pattern, names))
    if info.file_size > max(_MAX_BYTES_AT_ANY_RATIO, MAX_RATIO * info.compress_size):
        raise _bomb(archive, info.filename)
    return _Guarded(stack.enter_context(opened.open(info)), archive, info.filename, info.compress_size)


def _tar_member(archive: Path, pattern: str, stack: ExitStack) -> _Guarded:
    # In the order of the archive, so that nothing before the member is decompressed twice.
    opened = _open_tar(archive, stack)
    for member in opened:
        check_name(archive, member.name)
        if _matches(member.name, pattern):
            if not member.isfile():
                raise InputError(archive, f"its member {member.name} is a link or device", _HINT)
            return _Guarded(opened.extractfile(member), archive, member.name, archive.stat().st_size)
    raise InputError(archive, f"no member fits {pattern!r}", "name another, or fetch it again")


# Files that are not on this machine.


def is_remote(path: object) -> bool:
    """Return True if a name has a scheme, as in ``s3://bucket/a.txt``."""
    return "://" in str(path)


def check_here(path: str | Path, name: str = "output") -> None:
    """Raise ConfigError if an output, or the path in another setting ``name``, is remote."""
    if re.match(r"\w\w+:/", str(path)):  # a Path turns s3:// into s3:/
        hint = "give a file or folder on this machine, and copy it there or from there"
        raise ConfigError(f"{name}={path}: only texts are read from remote storage; {hint}")


def _system(path: str) -> tuple[Any, str]:
    with needs("fsspec", "remote", f"reading {path}"):
        import fsspec
    try:
        return fsspec.core.url_to_fs(path)
    except ImportError as error:
        raise InputError(path, f"its file system is not installed ({error})", "install what the message names") from None
    except ValueError as error:
        raise InputError(path, f"no file system opens it ({error})", "check the part before ://") from None


def _is_overloaded(error: BaseException) -> bool:
    """Return True if the storage is overloaded, which some libraries report as a missing file."""
    status = getattr(error.__cause__ or error.__context__, "status", 0)
    return status == 429 or status >= 500


def _retry(path: str, ask: Any) -> Any:
    """Call ``ask``, again if the storage fails; InputError: no such file, no access, or it keeps failing."""
    for attempt in range(_ATTEMPTS):
        try:
            return ask()
        except (DependencyError, InputError, ImportError):
            raise
        except Exception as error:  # each storage's library has its own errors
            if isinstance(error, _FINAL_ERRORS) and not _is_overloaded(error):
                hint = "check the name" if isinstance(error, FileNotFoundError) else "check who may read it"
                raise InputError(path, f"cannot be read ({error or type(error).__name__})", hint) from None
            if attempt + 1 == _ATTEMPTS:
                found = f"the storage fails again and again ({brief(error) or type(error).__name__})"
                raise InputError(path, found, "run the same command again when it answers") from None
            pause = _FIRST_PAUSE * 2**attempt
            logger.warning("%s: %s; asking again in %.1f s", path, brief(error), pause)
            time.sleep(pause)
    raise AssertionError


class _RetryingStream(io.RawIOBase):
    """A stream of a remote file that is reopened at its position when the connection breaks."""

    def __init__(self, path: str) -> None:
        self._path, self._place = path, 0
        self._system, self._name = _system(path)
        self._stream: Any = None

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._place

    def seek(self, place: int, whence: int = io.SEEK_SET) -> int:
        """Move to a place, counted from the start only."""
        if whence != io.SEEK_SET:
            raise io.UnsupportedOperation("only from the start")
        if self._stream is not None and place != self._place:
            self._stream.seek(place)
        self._place = place
        return place

    def readinto(self, buffer: Any) -> int:
        data = _retry(self._path, lambda: self._read(len(buffer)))
        buffer[: len(data)] = data
        self._place += len(data)
        return len(data)

    def _read(self, most: int) -> bytes:
        try:
            if self._stream is None:
                self._stream = self._system.open(self._name, "rb", block_size=_READ_BYTES)
                if self._place:
                    self._stream.seek(self._place)
            return self._stream.read(most)
        except Exception:
            self._stream = None
            raise

    def close(self) -> None:
        if self._stream is not None:
            self._stream.close()
            self._stream = None
        super().close()


def open_remote(path: str) -> BinaryIO:
    """Open a remote file for reading, seekable if its storage allows.

    DependencyError: fsspec is not installed. InputError, also while reading: see :func:`remote_state`.
    """
    remote_state(path)
    return cast(BinaryIO, io.BufferedReader(_RetryingStream(path), _READ_BYTES))


def remote_state(path: str) -> tuple[int | None, list[Any]]:
    """Return the size of a remote file, None if it is not seekable, and a stamp of its current version.

    InputError: there is no such file, it may not be read, its storage needs a library that is not installed, or keeps
    failing.
    """
    system, name = _system(path)
    known = _retry(path, lambda: system.info(name))
    if known.get("type") == "directory":
        raise InputError(path, "a folder", "give the name of a file, or a pattern as in folder/*.txt")
    version = [str(known[key]) for key in ("ETag", "etag", "md5Hash", "LastModified", "mtime", "updated") if known.get(key)]
    size = known.get("size")
    return size if known.get("partial", True) else None, [str(path), size, *version]


def expand(given: str | Path | Iterable[str | Path]) -> list[str]:
    """Return the files, local or remote, that names and patterns stand for; the matches of each pattern are sorted.

    A pattern that matches no file raises InputError.
    """
    out: list[str] = []
    for path in [given] if isinstance(given, (str, Path)) else given:
        name = str(path)
        if not glob.has_magic(name) or (name.startswith("http") if is_remote(name) else Path(name).exists()):
            out.append(name)
            continue
        if is_remote(name):
            system, pattern = _system(name)
            found = _retry(name, lambda system=system, pattern=pattern: system.glob(pattern))
            names = [system.unstrip_protocol(one) for one in sorted(found)]
        else:
            names = sorted(one for one in glob.glob(name, recursive=True) if Path(one).is_file())
        if not names:
            raise InputError(name, "matches no file", "check the pattern (** crosses folders)")
        out += names
    return out
