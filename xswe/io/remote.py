"""Files that are not on this machine: ``s3://``, ``gs://``, ``https://`` and all else that fsspec opens, for reading.

Object stores fail now and then, and say 503 where they are asked too much. A stream from here asks again, more and more
slowly, and goes on from the byte that it had come to.
"""

from __future__ import annotations

import glob
import io
import logging
import re
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, BinaryIO, cast

from xswe.errors import ConfigError, DependencyError, InputError, needs

logger = logging.getLogger(__name__)
_ATTEMPTS = 6
_FIRST_PAUSE = 0.5  # seconds; each further one is twice as long
_BLOCK = 8 << 20
_HOPELESS = (FileNotFoundError, PermissionError, NotADirectoryError, IsADirectoryError)


def is_remote(path: object) -> bool:
    """Tell whether a name is one with a scheme, as in ``s3://bucket/a.txt``."""
    return "://" in str(path)


def check_here(output: str | Path) -> None:
    """Refuse to write into a storage.

    Raises:
        ConfigError: the output is the name of something in one.
    """
    if re.match(r"\w\w+:/", str(output)):  # of s3:// a path makes s3:/
        raise ConfigError(f"output={output}: storages are read, not written; give a file or folder here, and copy it")


def _system(path: str) -> tuple[Any, str]:
    with needs("fsspec", "remote", f"reading {path}"):
        import fsspec
    try:
        return fsspec.core.url_to_fs(path)
    except ImportError as error:
        raise InputError(path, f"its file system is not installed ({error})", "install what the message names") from None
    except ValueError as error:
        raise InputError(path, f"no file system opens it ({error})", "check the part before ://") from None


def _passing(error: BaseException) -> bool:
    """Tell whether a storage's answer was that it has too much to do, which some libraries call a missing file."""
    status = getattr(error.__cause__ or error.__context__, "status", 0)
    return status == 429 or status >= 500


def _patiently(path: str, ask: Any) -> Any:
    """Call ``ask`` until it answers, or says what no patience will change.

    Raises:
        InputError: there is no such file, it may not be read, or the storage goes on failing.
    """
    for attempt in range(_ATTEMPTS):
        try:
            return ask()
        except (DependencyError, InputError, ImportError):
            raise
        except Exception as error:  # each storage's library has errors of its own
            if isinstance(error, _HOPELESS) and not _passing(error):
                cure = "check the name" if isinstance(error, FileNotFoundError) else "check who may read it"
                raise InputError(path, f"cannot be read ({error or type(error).__name__})", cure) from None
            if attempt + 1 == _ATTEMPTS:
                found = f"the storage fails again and again ({' '.join(str(error).split()) or type(error).__name__})"
                raise InputError(path, found, "run the same command again when it answers") from None
            pause = _FIRST_PAUSE * 2**attempt
            logger.warning("%s: %s; asking again in %.1f s", path, " ".join(str(error).split()), pause)
            time.sleep(pause)
    raise AssertionError


class _Patient(io.RawIOBase):
    """A stream of a remote file that is opened anew where it breaks."""

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
        if whence != io.SEEK_SET:
            raise io.UnsupportedOperation("only from the start")
        if self._stream is not None and place != self._place:
            self._stream.seek(place)
        self._place = place
        return place

    def readinto(self, buffer: Any) -> int:
        data = _patiently(self._path, lambda: self._read(len(buffer)))
        buffer[: len(data)] = data
        self._place += len(data)
        return len(data)

    def _read(self, most: int) -> bytes:
        try:
            if self._stream is None:
                self._stream = self._system.open(self._name, "rb", block_size=_BLOCK)
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
    """Open a remote file for reading; it can be sought in where its storage allows.

    Raises:
        DependencyError: fsspec, or what it needs for this storage, is not installed.
        InputError: see :func:`remote_state`; also while reading.
    """
    remote_state(path)
    return cast(BinaryIO, io.BufferedReader(_Patient(path), _BLOCK))


def remote_state(path: str) -> tuple[int | None, list[Any]]:
    """Return the size of a remote file, None where it cannot be sought in, and what tells it from another of its name.

    Raises:
        InputError: there is none, it may not be read, or the storage goes on failing.
    """
    system, name = _system(path)
    known = _patiently(path, lambda: system.info(name))
    if known.get("type") == "directory":
        raise InputError(path, "a folder", "give the name of a file, or a pattern as in folder/*.txt")
    version = [str(known[key]) for key in ("ETag", "etag", "md5Hash", "LastModified", "mtime", "updated") if known.get(key)]
    size = known.get("size")
    return size if known.get("partial", True) else None, [str(path), size, *version]


def expand(given: str | Path | Iterable[str | Path]) -> list[str]:
    """Return the files that names and patterns stand for: those of each pattern sorted, packed or not, here or remote.

    Raises:
        InputError: a pattern matches no file.
    """
    out: list[str] = []
    for path in [given] if isinstance(given, (str, Path)) else given:
        name = str(path)
        if not glob.has_magic(name) or (not is_remote(name) and Path(name).exists()) or name.startswith("http"):
            out.append(name)
            continue
        if is_remote(name):
            system, pattern = _system(name)
            found = _patiently(name, lambda system=system, pattern=pattern: system.glob(pattern))
            names = [system.unstrip_protocol(one) for one in sorted(found)]
        else:
            names = sorted(one for one in glob.glob(name, recursive=True) if Path(one).is_file())
        if not names:
            raise InputError(name, "matches no file", "check the pattern (** crosses folders)")
        out += names
    return out
