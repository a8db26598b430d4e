"""The folder for unfinished work, beside the output."""

from __future__ import annotations

import json
import logging
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from xswe.errors import ConfigError, InputError
from xswe.io.files import is_special, remove_folder, scratch
from xswe.io.locks import locked
from xswe.io.sources import is_remote, open_remote
from xswe.work.config import LOCAL, ExecutionConfig
from xswe.work.kept import unrepeatable

logger = logging.getLogger(__name__)
_BLOCK = 8 << 20  # bytes copied at a time
_MIN_FREE = 1 << 30  # bytes that copies leave free on a disk
_OUTPUTS = ("output", "rejects", "report", "work", "index")  # settings that name outputs


@contextmanager
def work_folder(
    output: str,
    execution: ExecutionConfig = LOCAL,
    keep: bool = False,
    leave: Sequence[str] | None = ("done",),
    work: str | Path | None = None,
) -> Iterator[Path]:
    """Yield the folder of unfinished work from which a killed run resumes, by default ``<output>.work``.

    It is removed when the block ends without an error, unless ``keep``, and after an error if it holds nothing to resume
    from. The tasks of an array share it; ``leave`` names the subfolders that stay, None for all, so that later tasks know
    what is done. ConfigError: the folder is not a work folder, or a run that is not of the same array is using it.
    """
    if work is None and (output == "-" or is_special(Path(output))):
        with scratch("xswe-mine-") as temporary:
            yield Path(temporary)
        return
    folder, shared = Path(work) if work else Path(f"{output}.work"), execution.has_peers
    foreign = folder.exists() and any(not p.name.startswith(".") for p in folder.iterdir())
    if foreign and not (folder / "work.json").is_file():
        raise ConfigError(f"{folder}: exists and is no work folder of mine; set work= to another name")
    with locked(folder, f"{folder}: another run is at work there; wait for it, or choose another output= or work=", shared):
        if not (folder / "work.json").is_file():
            (folder / "work.json").write_text(json.dumps({"output": output}) + "\n", encoding="utf-8")
        try:
            yield folder
        except BaseException:
            if not shared and all(path.name == "work.json" or path.name.startswith(".") for path in folder.iterdir()):
                remove_folder(folder)
            raise
        if not (keep or shared):  # Windows keeps open files such as the lock; these are hidden, or overwritten later
            remove_folder(folder)
    if shared and not keep and leave is not None:
        remove_unheld(folder, leave)


def discard(folder: Path, execution: ExecutionConfig) -> None:
    """Remove the folder of finished work unless it is locked; the folder of an array stays, as tasks may still start."""
    if not execution.has_peers:
        remove_unheld(folder)


def spooled(name: str, folder: Path, execution: ExecutionConfig = LOCAL) -> str:
    """Return the name of a file that can be read more than once: standard input is copied to a folder.

    ConfigError: other processes, which cannot see this standard input, would have to read it.
    """
    if name != "-":
        return name
    execution.check_names(name)
    unrepeatable()
    _copy("standard input", sys.stdin.buffer, folder / "input")
    return str(folder / "input")


@contextmanager
def local_copy(name: str) -> Iterator[Path]:
    """Yield the path of a file on this machine: a remote file is copied for the time of the block."""
    if not is_remote(name):
        yield Path(name)
        return
    with scratch("xswe-remote-") as folder, open_remote(name) as stream:
        path = Path(folder) / name.rpartition("/")[2]
        _copy(name, stream, path)
        yield path


def _copy(name: str, stream: BinaryIO, path: Path) -> None:
    """Copy a stream to a file, leaving 1 GiB of the disk free; InputError: the stream is too large for that."""
    with open(path, "wb") as copy:
        while block := stream.read(_BLOCK):
            if shutil.disk_usage(path.parent).free < _MIN_FREE + len(block):
                problem = f"after {copy.tell() / 1e9:.1f} GB less than {_MIN_FREE >> 30} GiB would be free in {path.parent}"
                raise InputError(name, problem, "write it to a file, or set TMPDIR (or work=) to a larger disk")
            copy.write(block)


def _is_pipe(name: str) -> bool:
    with suppress(OSError, ValueError):  # the value may be a text, longer than any name
        return Path(name).is_fifo()
    return False


@contextmanager
def pipes_spooled(settings: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield settings in which every pipe to be read, such as ``<(zcat a.gz)``, is replaced by a temporary copy.

    A pipe can be read only once, and verbs read their inputs several times. With executors other than ``local``, whose
    processes cannot see the pipe, it is left in place, and refused later.
    """
    if (settings.get("execution") or {}).get("kind", "local") != "local":
        yield settings
        return
    with ExitStack() as stack:
        copies: dict[str, str] = {}

        def copied(value: Any) -> Any:
            """Return a value with the names of pipes in it replaced by those of copies."""
            if isinstance(value, dict):
                return {key: copied(one) for key, one in value.items()}
            if isinstance(value, (list, tuple)):
                return type(value)(map(copied, value))
            if not isinstance(value, str) or not _is_pipe(value):
                return value
            if value not in copies:
                unrepeatable()
                path = Path(stack.enter_context(scratch("xswe-pipe-"))) / Path(value).name
                logger.info("%s: copied to %s while it is read (TMPDIR=... names another place)", value, path.parent)
                with open(value, "rb") as pipe:
                    _copy(value, pipe, path)
                copies[value] = str(path)
            return copies[value]

        yield {name: value if name in _OUTPUTS else copied(value) for name, value in settings.items()}


def remove_unheld(folder: Path, leave: Sequence[str] = ()) -> None:
    """Remove a folder, or all its subfolders but ``leave``, unless others have locked it: the last of them will."""
    if not folder.is_dir():
        return
    with suppress(ConfigError), locked(folder, "other tasks are at work there"):
        for path in folder.iterdir():
            if path.is_dir() and path.name not in leave:
                remove_folder(path)
        if not leave:  # the lock goes last
            remove_folder(folder)
