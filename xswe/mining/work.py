"""Units of work handed out in order to threads, with the state saved now and then."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from xswe.errors import XsweError
from xswe.files import fingerprint, read_json, whole_folder, write_json
from xswe.mining.types import Neighbours
from xswe.mining.vectors import Vectors
from xswe.parallel import run
from xswe.progress import bar

logger = logging.getLogger(__name__)
_SECONDS_BETWEEN_SAVES = 60.0


class Checkpoint:
    """The state of an unfinished search in a folder.

    Args:
        folder: where; None for no checkpoints at all.
        settings: all beside the vectors that decides the result; a state of other settings or vectors is not used.
        sides: what is searched. Its bytes are part of the identity, which takes one pass over them.
        seconds: between two saves.
    """

    def __init__(
        self,
        folder: Path | None,
        settings: list[object],
        sides: tuple[Vectors, Vectors],
        seconds: float = _SECONDS_BETWEEN_SAVES,
    ) -> None:
        self.folder, self.seconds = folder, seconds if folder else float("inf")
        self._identity = "" if folder is None else fingerprint(settings, [side.digest() for side in sides])

    def load(self) -> tuple[int, Neighbours] | None:
        """Return how many units were done, and the lists then."""
        if self.folder is None or not (self.folder / "state.json").is_file():
            return None
        try:
            state = read_json(self.folder / "state.json")
            if state["identity"] != self._identity:
                return None
            logger.info("going on after %d units of work", state["done"])
            return int(state["done"]), Neighbours.open(self.folder)
        except (OSError, ValueError, KeyError) as error:
            raise XsweError(f"{self.folder}: damaged ({error}); remove the folder to start again") from None

    def save(self, done: int, lists: Neighbours) -> None:
        """Write the state, whole or not at all; the time it takes counts against the next save."""
        if self.folder is None:
            return
        started = time.monotonic()
        with whole_folder(self.folder) as temporary:
            lists.save(temporary)
            write_json(temporary / "state.json", {"identity": self._identity, "done": done})
        self.seconds = max(self.seconds, 20 * (time.monotonic() - started))


def work_off(
    first: int,
    units: int,
    work: Callable[[int, int], int],
    pause: Callable[[int], None],
    threads: int,
    description: str,
    total: int,
    seconds: float = float("inf"),
    initial: int = 0,
) -> None:
    """Call ``work(thread, unit)`` for all units from ``first`` on, each once, on ``threads`` threads.

    Args:
        first: the first unit.
        units: one past the last.
        work: does a unit and returns its size for the progress bar; runs at most once at a time for each thread number.
        pause: called with the number of units done so far, when no unit is at work: every ``seconds`` and at the end.
        threads: how many.
        description: for the progress bar.
        total: sum of all sizes.
        seconds: between pauses.
        initial: sum of the sizes of the units before ``first``.
    """
    lock = threading.Lock()
    state = {"next": first}

    with bar(description, total=total, unit="pair", initial=initial) as progress:

        def worker(number: int, deadline: float) -> None:
            """Take one unit of work after the other until the deadline."""
            while time.monotonic() < deadline:
                with lock:
                    unit = state["next"]
                    if unit >= units:
                        return
                    state["next"] += 1
                try:
                    size = work(number, unit)
                except BaseException:
                    state["next"] = units  # an error or an interrupt of one thread ends the work of all
                    raise
                with lock:
                    progress.update(size)

        while state["next"] < units:
            deadline = time.monotonic() + seconds
            run([partial(worker, n, deadline) for n in range(threads)], threads)
            pause(state["next"])
