"""Folders that are made once, by the first of several processes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from xswe.io.files import whole_folder
from xswe.io.locks import locked
from xswe.work.config import ExecutionConfig
from xswe.work.kept import keep
from xswe.work.records import sound_record, write_record


def once(folder: Path, identity: str, make: Callable[[Path], None], outputs: Sequence[str | Path] = ()) -> None:
    """Make a folder once, whole or not at all, whichever of several processes comes first; the others wait for it.

    It is made again where it has another identity, or a file in it, or one of ``outputs`` elsewhere, is gone or damaged.
    """
    with locked(folder.with_name(f".{folder.name}.making")):
        if not is_made(folder, identity, outputs):
            try:
                with whole_folder(folder) as temporary:
                    make(temporary)
                    files = sorted(path for path in temporary.rglob("*") if path.is_file())
                    write_record(temporary / "made.json", identity, files)
            except OSError:
                # Where locks do nothing, another process may have put the same folder there meanwhile.
                if not is_made(folder, identity, outputs):
                    raise
        keep(folder / "made.json", f"after the step {folder.name.partition('-')[0]}")


def written_once(
    done: Path, identity: str, write: Callable[[], None], outputs: Sequence[str | Path], execution: ExecutionConfig
) -> None:
    """Write outputs; one task of an array does so and records it in a folder for the others."""
    if execution.has_peers:
        once(done, identity, lambda _: write(), outputs)
    else:
        write()


def is_made(folder: Path, identity: str, outputs: Sequence[str | Path] = ()) -> bool:
    """Return True if :func:`once` has made an undamaged folder of this content, and its outputs are there."""
    return sound_record(folder / "made.json", identity) is not None and all(Path(path).exists() for path in outputs)
