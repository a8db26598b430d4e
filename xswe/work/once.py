"""Folders that only the first of several processes makes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from xswe.io.files import whole_folder
from xswe.io.locks import locked
from xswe.work.config import ExecutionConfig
from xswe.work.kept import keep
from xswe.work.records import sound_record, write_record


def once(folder: Path, identity: str, make: Callable[[Path], None], outputs: Sequence[str | Path] = ()) -> None:
    """Make a folder atomically, in the first of several processes; the others wait for it.

    It is made again if it has another identity, one of its files is missing or damaged, or one of ``outputs``, which are
    elsewhere, is missing.
    """
    with locked(folder.with_name(f".{folder.name}.making")):
        if not is_made(folder, identity, outputs):
            try:
                with whole_folder(folder) as temporary:
                    make(temporary)
                    files = sorted(path for path in temporary.rglob("*") if path.is_file())
                    write_record(temporary / "made.json", identity, files)
            except OSError:
                # If the file system ignores locks, another process may have put the same folder there meanwhile.
                if not is_made(folder, identity, outputs):
                    raise
        keep(folder / "made.json", f"after the step {folder.name.partition('-')[0]}")


def written_once(
    done: Path, identity: str, write: Callable[[], None], outputs: Sequence[str | Path], execution: ExecutionConfig
) -> None:
    """Write outputs; in an array only one task does, and records it in the folder ``done`` for the others."""
    if execution.has_peers:
        once(done, identity, lambda _: write(), outputs)
    else:
        write()


def is_made(folder: Path, identity: str, outputs: Sequence[str | Path] = ()) -> bool:
    """Return True if :func:`once` has made this folder with this content, it is undamaged, and its outputs exist."""
    return sound_record(folder / "made.json", identity) is not None and all(Path(path).exists() for path in outputs)
