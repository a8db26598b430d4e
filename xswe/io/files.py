"""Atomic writing of files and folders."""

from __future__ import annotations

import bz2
import errno
import glob
import gzip
import hashlib
import importlib.util
import json
import logging
import lzma
import os
import platform
import re
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np

from xswe.errors import ConfigError, DamagedError, InputError, brief, needs
from xswe.io.sources import PACKED, check_here, is_remote, packing_of, parted, remote_state
from xswe.io.suffixes import SUFFIXES

logger = logging.getLogger(__name__)
ON_WINDOWS = os.name == "nt"  # where an open or mapped file can be neither renamed nor removed
# Suffixes of files read or written here, which no output folder may have.
_FILE_SUFFIXES = {*PACKED, *(suffix for suffix, one in SUFFIXES.items() if one.is_ours)}


def _sync(path: Path) -> None:
    """Flush a file or directory to the disk, so that a later rename cannot outrun its content."""
    if ON_WINDOWS and path.is_dir():  # Windows does not open folders, and flushes only writable files
        return
    descriptor = os.open(path, os.O_RDWR if ON_WINDOWS else os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def check_output(output: str | Path, inputs: Iterable[str | Path] = (), name: str = "output") -> None:
    """Raise ConfigError, before any work is done, if an output cannot be written or would replace an input.

    ``name`` is the setting's name in the message.
    """
    if str(output) == "-":
        return
    check_here(output, name)
    path = Path(output)
    if not path.name:
        raise ConfigError(f"{name}={output}: give the name of a file, or - for standard output")
    if path.is_dir():
        raise ConfigError(f"{name}={path}: is a folder; give the name of a file")
    if path.is_file() and any(Path(given).is_file() and path.samefile(given) for given in inputs):
        raise ConfigError(f"{name}={path}: is also read, and would be overwritten; give another name")
    if not is_special(path):
        _check_room(path, name)


def _check_room(path: Path, name: str) -> None:
    """Raise ConfigError if ``path`` cannot have a temporary sibling, which is written first and then renamed."""
    path = path.resolve() if path.is_symlink() else path
    above = next(folder for folder in path.absolute().parents if os.path.lexists(folder))
    if not above.is_dir():
        raise ConfigError(f"{name}={path}: {above} is not a folder; give a path inside one")
    if not os.access(above, os.W_OK | os.X_OK):
        raise ConfigError(f"{name}={path}: nothing may be written into {above}; give a name in a folder of your own")


def check_apart(name: str, path: str | Path, output: str | Path, other: str = "output") -> None:
    """Raise ConfigError if the path of a setting is the same as that of the ``other``."""
    if os.path.abspath(path) == os.path.abspath(output):
        raise ConfigError(f"{name}={path}: is the {other}, too; give another name")


def check_input(path: str | Path) -> os.stat_result:
    """Return the stat of a regular file; raise InputError if it is missing, or a folder, pipe or device."""
    if is_remote(path):
        raise InputError(path, "not on this machine, and this verb reads files here only", "fetch it first")
    path = parted(path)[0]
    if path.is_file():
        return path.stat()
    if path.is_dir():
        raise InputError(path, "a folder", "give the name of a file")
    if path.exists():
        raise InputError(path, "not a regular file", "write it to a file first, or give - and pipe it to standard input")
    raise InputError(path, "no such file", "check the path (relative paths start at the working directory)")


def file_stamp(path: str | Path) -> list[Any]:
    """Return the path, size and modification time of a file, which identify its version without reading it.

    Raises as :func:`check_input`.
    """
    if is_remote(path):
        return remote_state(str(path))[1]
    state = check_input(path)
    return [str(Path(path).resolve()), state.st_size, state.st_mtime_ns]


def is_special(path: Path) -> bool:
    """Return True if a path is a pipe or device, which can be written to but not replaced."""
    return path.exists() and not path.is_file() and not path.is_dir()


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # another user's
        return True
    return True


def sibling(path: Path, end: str = "tmp", crowded: bool = False) -> Path:
    """Return a hidden sibling of ``path`` for this process and host; remove those left by killed processes of this host.

    In a crowded folder nothing is removed: see :func:`remove_leftovers`.
    """
    if not crowded:
        remove_leftovers(path.parent, f".{path.name}.", end)
    return path.with_name(f".{path.name}.{_host()}-{os.getpid()}.{end}")


def _host() -> str:
    return fingerprint(platform.node(), length=6)


def _is_left(name: str) -> bool:
    """Return True if a name ends in this host and the id of a process that is gone."""
    before, _, process = name.rpartition("-")
    return before.endswith(f".{_host()}") and process.isdecimal() and not _is_alive(int(process))


def taken_over(path: Path, identity: str) -> Path:
    """Return a hidden sibling of ``path`` for this process and host, taking over the folder a killed process left, if any.

    Folders left with another identity are removed. A process that may still be running keeps its folder, even if no lock
    shows that it is.
    """
    begin = f".{path.name}.unfinished"
    own_folder = path.with_name(f"{begin}.{identity}.{_host()}-{os.getpid()}")
    for left in path.parent.glob(f"{glob.escape(begin)}.*") if os.name == "posix" else ():
        if _is_left(left.name) and not own_folder.exists() and left.name.startswith(f"{begin}.{identity}."):
            os.replace(left, own_folder)
        elif _is_left(left.name):
            shutil.rmtree(left, ignore_errors=True)
    return own_folder


def remove_leftovers(folder: Path, begin: str = ".", end: str = "tmp") -> None:
    """Remove unfinished files that killed processes of this host left in a folder."""
    if os.name != "posix" or not folder.is_dir():  # only POSIX has a signal 0, which tests for a process
        return
    with os.scandir(folder) as entries:  # one by one: there may be 100,000 shards
        names = [entry.name for entry in entries if entry.name.startswith(begin) and entry.name.endswith(f".{end}")]
    for leftover in map(folder.joinpath, names):
        if _is_left(leftover.name.removesuffix(f".{end}")):
            shutil.rmtree(leftover, ignore_errors=True) if leftover.is_dir() else leftover.unlink(missing_ok=True)


def remove_folder(folder: Path) -> None:
    """Remove a folder that others may still be writing to: it is renamed first, so that they no longer find it."""
    doomed = sibling(folder, "old")
    try:
        os.replace(folder, doomed)
    except FileNotFoundError:
        return
    except OSError:  # the system does not rename a folder with open files
        doomed = folder
    shutil.rmtree(doomed, ignore_errors=True)


def _apply_umask(path: Path) -> None:
    """Give a file that only its owner can read (as some libraries create them) the mode that the umask implies."""
    if os.name == "posix" and path.stat().st_mode & 0o077 == 0:
        umask = os.umask(0o022)
        os.umask(umask)
        path.chmod(0o666 & ~umask)


@contextmanager
def blaming(path: Path, hidden: Path) -> Iterator[None]:
    """Make system errors name the requested path, not its temporary sibling, which is gone by then."""
    try:
        yield
    except OSError as error:
        if not str(error.filename).startswith(str(hidden)):
            raise
        raise OSError(error.errno, error.strerror, f"{path}{str(error.filename)[len(str(hidden)) :]}") from error


@contextmanager
def whole_file(path: str | Path, crowded: bool = False) -> Iterator[Path]:
    """Yield a temporary sibling of ``path``; on success it is flushed and renamed to ``path``, on failure removed.

    A symbolic link is kept, and its target written. A pipe or device is not replaced, but gets all bytes at the end. A
    ``crowded`` folder of many thousands of files is not searched for leftovers, see :func:`remove_leftovers`.
    """
    path = Path(path)
    if is_special(path):
        with scratch() as folder:
            temporary = Path(folder) / path.name
            yield temporary
            with temporary.open("rb") as whole, path.open("wb") as sink:
                shutil.copyfileobj(whole, sink)
        return
    path = path.resolve() if path.is_symlink() else path
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = sibling(path, crowded=crowded)
    with blaming(path, temporary):
        temporary.touch()  # so that failures are alike, whichever library writes the file
        try:
            yield temporary
            _apply_umask(temporary)
            _sync(temporary)
            os.replace(temporary, path)
            with suppress(FileNotFoundError):  # whoever waited for the file may have removed its folder
                _sync(path.parent)
        finally:
            temporary.unlink(missing_ok=True)


@contextmanager
def open_output(path: str | Path) -> Iterator[BinaryIO]:
    """Open a file for atomic writing, compressed by its suffix (.gz .xz .bz2 .zst); ``-`` is stdout."""
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


def check_folder(output: str | Path) -> None:
    """Raise ConfigError if an output folder is named like a file, remote, standard output, or cannot be made."""
    check_here(output)
    if (suffix := Path(output).suffix.lower()) in _FILE_SUFFIXES:
        raise ConfigError(f"output={output}: a folder is written there; leave {suffix} out")
    if str(output) == "-":
        raise ConfigError("output=-: only texts and tables go to standard output; give a name")
    if Path(output).name and not Path(output).exists():
        _check_room(Path(output), "output")


@contextmanager
def whole_folder(path: str | Path, unfinished: Path | None = None) -> Iterator[Path]:
    """Like :func:`whole_file` for a folder: an existing one at ``path``, or the target of a link there, is replaced last.

    If given, ``unfinished`` is yielded instead of a temporary sibling; its contents are kept, also on failure.
    """
    check_folder(path)
    path = Path(path)
    path = path.resolve() if path.is_symlink() else path
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = unfinished or sibling(path)
    if unfinished is None:
        shutil.rmtree(temporary, ignore_errors=True)
    with blaming(path, temporary):
        temporary.mkdir(exist_ok=unfinished is not None)
        try:
            yield temporary
            for file in temporary.rglob("*"):
                if file.is_file():
                    _apply_umask(file)
                    _sync(file)
            if path.exists():
                doomed = sibling(path, "old")
                os.replace(path, doomed)
                os.replace(temporary, path)
                shutil.rmtree(doomed, ignore_errors=True)
            else:
                os.replace(temporary, path)
            _sync(path.parent)
        finally:
            if unfinished is None:
                shutil.rmtree(temporary, ignore_errors=True)


def write_json(path: str | Path, value: Any) -> None:
    """Write ``value`` atomically as indented UTF-8 JSON with a final newline."""
    with whole_file(path) as temporary:
        text = json.dumps(value, ensure_ascii=False, indent=2) + "\n"
        temporary.write_text(text, encoding="utf-8", errors="backslashreplace")  # file names may not be UTF-8


def read_json(path: str | Path) -> Any:
    """Read one JSON value; raise DamagedError if the file has none."""
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except ValueError as error:
        hint = "move it away, and give the command again that makes it"
        raise DamagedError(f"{path}: damaged, or not written by xswe ({brief(error)}); {hint}") from None


def strings_in(value: Any) -> Iterator[str]:
    """Yield all strings within a JSON value, except the keys."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for one in value.values():
            yield from strings_in(one)
    elif isinstance(value, list):
        for one in value:
            yield from strings_in(one)


def fingerprint(*parts: Any, length: int = 12) -> str:
    """Return the first ``length`` hex digits of a SHA-256 over the canonical JSON of ``parts``."""
    canonical = json.dumps(parts, ensure_ascii=False, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(canonical.encode("utf-8", "surrogatepass")).hexdigest()[:length]


def file_digest(path: str | Path) -> str:
    """Return the SHA-256 of a file's bytes in hex."""
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def arrays_digest(*arrays: np.ndarray) -> str:
    """Return a SHA-256 in hex over the dtypes, shapes and bytes of arrays."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(f"{array.dtype.str} {array.shape}".encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def scratch(prefix: str = "xswe-") -> tempfile.TemporaryDirectory[str]:
    """Return a temporary folder; on Windows, a file still mapped at the end is left behind without an error."""
    return tempfile.TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=ON_WINDOWS)


def package_folder(name: str) -> Path | None:
    """Return the folder of an installed package without importing it; None if there is none."""
    found = importlib.util.find_spec(name)
    return Path(found.submodule_search_locations[0]) if found and found.submodule_search_locations else None


# Arrays in safetensors, which with a few values in JSON also hold the checkpoint of a run.


def save_tensors(
    path: Path, arrays: Mapping[str, np.ndarray], metadata: dict[str, str] | None = None, crowded: bool = False
) -> None:
    """Write arrays of any memory layout, and metadata, atomically as a safetensors file."""
    from safetensors import SafetensorError
    from safetensors.numpy import save_file

    laid = {name: np.asarray(value, order="C") for name, value in arrays.items()}
    with whole_file(path, crowded=crowded) as temporary:
        try:
            save_file(laid, temporary, metadata)
        except SafetensorError as error:  # which has the system's error number in its message only
            found = re.search(r"os error (\d+)", str(error))
            number = int(found[1]) if found else errno.EIO
            raise OSError(number, os.strerror(number), str(path)) from None
