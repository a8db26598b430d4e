"""The verbs as ``python -m xswe`` runs them, in this process: a test does not wait for the start of another Python."""

from __future__ import annotations

import contextlib
import copy
import functools
import io
import logging
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

from tests.conftest import eval_script
from xswe.cli.main import main
from xswe.cli.run import run
from xswe.cli.settings import arguments, check_shape, function, simple
from xswe.cli.verbs import VERBS
from xswe.training.config import TrainConfig


def composed(verb: str, *words: str) -> dict[str, Any]:
    """Return the settings of a verb as the command line composes them: by Hydra where it must be."""
    return by_hydra(verb, *words) if (values := simple(verb, words)) is None else values


def by_hydra(verb: str, *words: str) -> dict[str, Any]:
    """Return the settings of a verb, as Hydra composes them; the same words once, as that takes a third of a second."""
    return copy.deepcopy(_by_hydra(verb, words, os.environ.get("XSWE_DATA")))


@functools.cache
def _by_hydra(verb: str, words: tuple[str, ...], _data: str | None) -> dict[str, Any]:
    from xswe.cli import compose  # Hydra, which takes a second to import

    compose.register(verb, words)
    return compose.plain(compose.composed(verb, compose.overrides([*words])))


def train_config(values: dict[str, Any]) -> TrainConfig:
    """Return the settings of a run, as the verb hands them to the library."""
    return arguments("train", "", values | {"languages": values["pair"]["languages"]})["config"]


def command(verb: str, values: dict[str, Any]) -> str:
    """Run a verb on composed settings, and return what is said of it."""
    return run(verb, check_shape(verb, dict(values)))


@functools.cache
def commands() -> dict[str, list[str]]:
    """Return a command by the class of the result of its verb: the last in the table of faults."""
    found = {}
    for words in (case.words.split() for case in eval_script("experiments.local_faults").CASES.values()):
        modes = [word.removeprefix("mode=") for word in words if word.startswith("mode=")]
        calls = VERBS[words[0]].calls
        call = function(calls[next((mode for mode in modes if mode in calls), next(iter(calls)))])
        found |= dict.fromkeys(call.__annotations__["return"].split(" | "), words)
    return found


def returned(kind: str, folder: Path) -> Any:
    """Return the result of such a class, by a verb that writes it into a folder with its inputs."""
    assert kind in commands(), f"no verb returns {kind}, and no test makes one"
    verb, *words = commands()[kind]
    results = list[Any]()
    eval_script("experiments.local_faults").write_inputs(folder)
    with contextlib.chdir(folder), patch("xswe.cli.run._summary", lambda *given: results.append(given[2]) or ""):
        command(verb, composed(verb, *words))
    return results[0]


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
