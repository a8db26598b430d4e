"""The verbs as ``python -m xswe`` runs them, in this process: a test does not wait for the start of another Python."""

from __future__ import annotations

import contextlib
import io
import logging
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

from hydra import compose, initialize_config_dir

from xswe.cli.compose import plain, register
from xswe.cli.main import main
from xswe.cli.run import run
from xswe.cli.settings import check_shape
from xswe.io.resources import resource


def composed(verb: str, *overrides: str) -> dict[str, Any]:
    """Return the settings of a verb, as Hydra composes them."""
    register(verb)
    with initialize_config_dir(version_base="1.3", config_dir=str(resource("conf").resolve())):
        return plain(compose(verb, overrides=list(overrides)))


def command(verb: str, values: dict[str, Any]) -> str:
    """Run a verb on composed settings, and return what is said of it."""
    return run(verb, check_shape(verb, dict(values)))


class Done(NamedTuple):
    """What a process of its own would have left, as ``subprocess.run`` tells it."""

    returncode: int
    stdout: str
    stderr: str


@contextlib.contextmanager
def _own_logging() -> Iterator[None]:
    """Put back the handlers and levels of the loggers that a verb sets."""
    root, ours = logging.getLogger(), logging.getLogger("xswe")
    before = root.handlers[:], root.level, ours.level
    try:
        yield
    finally:
        root.handlers[:] = before[0]
        root.setLevel(before[1])
        ours.setLevel(before[2])


def run_verb(*arguments: object, cwd: Path, given: str = "", **environment: str) -> Done:
    """Run a verb in a folder, with a standard input, outputs and an environment of its own."""
    asked, out, err = (io.TextIOWrapper(io.BytesIO(text), "utf-8", newline="") for text in (given.encode(), b"", b""))
    with (
        contextlib.chdir(cwd),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        patch.object(sys, "stdin", asked),
        patch.object(sys, "argv", sys.argv),
        patch.dict(os.environ, environment),
        _own_logging(),
    ):
        try:
            status = main([*map(str, arguments)])
        except SystemExit as ended:
            status = int(ended.code or 0)
        for stream in (out, err):
            stream.flush()
        return Done(status, *(stream.buffer.getvalue().decode("utf-8") for stream in (out, err)))
