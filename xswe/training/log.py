"""The history of a run while it is made: ``history.csv`` in the run folder, and TensorBoard where that is installed."""

from __future__ import annotations

import csv
import importlib
import time
from pathlib import Path
from typing import Any

from xswe.files import whole_file

History = list[dict[str, float]]
_SECONDS = 5.0  # between two writes while a run goes on


def write_history(path: Path, history: History) -> None:
    """Write a history as CSV, whole or not at all: one row an evaluation, empty cells for what was not measured."""
    columns = list(dict.fromkeys(name for row in history for name in row))
    with whole_file(path) as temporary, open(temporary, "w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(history)


def _summary_writer() -> Any:
    """Return the class that writes TensorBoard's files; None where that is not installed.

    A mere folder of its name in the working directory is found, and can be imported; only the use shows that it is none.
    """
    try:
        importlib.import_module("tensorboard")  # first: where it is missing, torch need not be loaded to find that out
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        return None
    return SummaryWriter


class RunLog:
    """Follows a history as it grows.

    Args:
        folder: the run folder; ``history.csv`` and, where TensorBoard is installed, ``tensorboard/`` are written there.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self._shown, self._written = folder, 0, float("-inf")
        self._board: Any = None

    def __call__(self, history: History) -> None:
        """Write what is new, if the last time is some seconds ago: a flush to the disk must not slow a quick run."""
        if time.monotonic() - self._written >= _SECONDS:
            self._write(history)
            self._written = time.monotonic()

    def close(self, history: History) -> None:
        """Write the whole history, and finish TensorBoard's file if there is one."""
        self._write(history)
        if self._board is not None:
            self._board.close()
            self._board = None

    def _write(self, history: History) -> None:
        write_history(self.folder / "history.csv", history)
        if self._board is None and (writer := _summary_writer()) is not None:
            # A resumed run shows its whole history again; what an earlier process showed of it is hidden.
            self._board = writer(self.folder / "tensorboard", purge_step=0)
        if self._board is None:
            return
        for row in history[self._shown :]:
            for name, value in row.items():
                if name != "step":
                    self._board.add_scalar(f"refine/{name}", value, int(row["step"]))
        self._shown = len(history)
        self._board.flush()
