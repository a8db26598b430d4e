"""The verbs as ``python -m xswe`` runs them, in this process: a test does not wait for the start of another Python."""

from __future__ import annotations

import contextlib
import copy
import functools
import io
import logging
import os
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

from tests.conftest import eval_script
from xswe.cli.main import main
from xswe.cli.run import run
from xswe.cli.settings import arguments, check_shape, function, simple
from xswe.cli.verbs import VERBS
from xswe.corpus.cards import sample_sentences
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
def commands() -> dict[str, list[list[str]]]:
    """Return the commands in the table of faults by the class of the result of their verb."""
    found = dict[str, list[list[str]]]()
    for words in (case.words.split() for case in eval_script("experiments.local_faults").CASES.values()):
        modes = [word.removeprefix("mode=") for word in words if word.startswith("mode=")]
        calls = VERBS[words[0]].calls
        call = function(calls[next((mode for mode in modes if mode in calls), next(iter(calls)))])
        for kind in call.__annotations__["return"].split(" | "):
            found.setdefault(kind, []).append(words)
    return found


def returned(
    kind: str,
    folder: Path,
    *further: str,
    codes: tuple[str, str] = ("en", "de"),
    change: Callable[[str], str] = lambda text: text,
) -> Any:
    """Return the result of such a class, by a verb that writes it into a folder with its inputs.

    The inputs are in two languages, and what ``change`` makes of their texts; ``further`` settings are added.
    """
    assert kind in commands(), f"no verb returns {kind}, and no test makes one"
    faults, sides, results = eval_script("experiments.local_faults"), sample_sentences(), list[Any]()
    with patch.object(faults, "sample_sentences", lambda: dict(zip(("en", "de"), map(sides.get, codes), strict=True))):
        faults.write_inputs(folder)
    for path in filter(Path.is_file, folder.rglob("*")):
        path.write_text(change(path.read_text("utf-8")), "utf-8")
    named = dict(zip(("en", "de"), codes, strict=True))
    for verb, *words in commands()[kind]:
        own = [re.sub(r"(?<=[\[,=-])(en|de)(?=[],-]|$)", lambda code: named[code[0]], word) for word in words]
        with contextlib.chdir(folder), patch("xswe.cli.run._summary", lambda *given: results.append(given[2]) or ""):
            command(verb, composed(verb, *own, *further))
        if type(results[-1]).__name__ == kind:
            break
    return results[-1]


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
