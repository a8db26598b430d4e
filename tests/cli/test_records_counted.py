"""Every verb accounts for the records that it reads: it writes each, or counts it by the reason why it leaves it out."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import cycle
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
import pytest

import xswe
from tests.cli.verbs import run_verb
from tests.conftest import eval_script
from xswe.cli import run
from xswe.cli.help import settings
from xswe.cli.verbs import VERBS

script = eval_script("experiments.local_faults")
# Texts that a rule may leave out, and lines that cannot be read.
ODD = [
    *["", " ", "\u3000", "a", "a", "?!", "12345", "3.14 2,000", "\ufeffa mark", "a\u2028b", "x\x01y", "e\u0301te\u0301"],
    *["猫が寝ている。", "他今天没有来。", "Кошка спит.", "القطة نائمة", "\U0001f600", "zero\u200bwidth", "IN CAPITALS"],
    *["https://example.org/a?b=c", "<b>&amp;</b>", '"quoted', "Train number 12 is late.", "Train number 13 is late."],
    *["A cat sleeps. " * 200, "x" * 3000],
]
DAMAGED = (b"one column\n", b"a \xff cat\tx\n")


class Ran(NamedTuple):
    """A command that ended well."""

    words: list[str]
    result: Any
    printed: str
    logged: str
    folder: Path

    @property
    def written(self) -> int:
        """How many records were written: rows of arrays, or lines."""
        (output,) = (word.removeprefix("output=") for word in self.words if word.startswith("output="))
        files = [*self.folder.glob(output)]
        return sum(len(np.load(file)) if file.suffix == ".npy" else file.read_bytes().count(b"\n") for file in files)

    def counted(self, counts: Mapping[str, int] | None = None) -> int:
        """How many records are left out by the counts of the result, or others; each is printed with its reason."""
        own = [getattr(self.result, name, None) for name in ("left_out", "counts")]
        counts = next((one for one in (counts, *own) if one is not None), None)
        assert counts is not None, f"{type(self.result).__name__} must count by reason what is left out"
        for reason, count in counts.items():
            assert re.search(rf"\b{count:,} {reason}|\b{reason} +{count:,}", self.printed), self.printed
        return sum(counts.values()) - counts.get("kept", 0)

    @property
    def left_out(self) -> int:
        """How many records are left out as the log says."""
        return sum(int(number) for line in re.findall("left out: (.*)", self.logged) for number in re.findall(r"\d+", line))


# Where not all records are written: how many were looked at or left out, of all files or of each; or why none can be.
LOOKED_AT: dict[str, str | Callable[[Ran], int | Sequence[int]]] = {
    "align": lambda ran: sum(len(one.source_lines) + len(one.target_lines) for one in ran.result) + ran.counted(),
    "align, folders": lambda ran: sum(one.source_lines + one.target_lines for one in ran.result),
    "compare": lambda ran: len(ran.result.models[0].rows[0].items) + ran.left_out,
    "corpus": lambda ran: len(ran.result.bitext) + ran.counted(ran.result.report.dropped),
    "evaluate": lambda ran: len(ran.result.rows[0].items) + ran.left_out,
    "import": lambda ran: len(ran.result.matrix) + ran.left_out + merged(ran.folder / "vectors.txt"),
    "lexicon": lambda ran: sum(ran.result.words) + ran.counted(),
    "mine, exact": lambda ran: [
        one.kept + ran.counted(one.dropped) for one in (ran.result.report.source, ran.result.report.target)
    ],
    "mine, negatives": lambda ran: ran.result.read + ran.counted(),
    "phrases": lambda ran: passages(ran),
    "terms": lambda ran: passages(ran),
    "report": "a page, of which tests/report compares the figures with what it is made of",
    "search": lambda ran: len(xswe.load_index(ran.folder / "o")),
    "split": "running text, in which blank lines end paragraphs",
    "train": "its bitext is read as by corpus",
}
LOOKED_AT |= {name: LOOKED_AT[same] for name, same in [("mine, clusters", "mine, exact"), ("train, words", "train")]}


def passages(ran: Ran) -> int:
    """How many passages were looked at, among which those that are left out keep their places."""
    assert ran.counted()
    return ran.result.passages


def files_of(words: Sequence[str], folder: Path) -> list[Path]:
    """Return the files that a command reads, but for queries."""
    given = [value.strip("[]") for name, _, value in (word.partition("=") for word in words) if name != "queries"]
    named = [folder / value for values in given for value in values.split(",") if value and (folder / value).exists()]
    return [file for one in named for file in ([*one.iterdir()] if one.is_dir() else [one])]


def merged(file: Path) -> int:
    """How many lines of a table of vectors have a word of an earlier line."""
    words = [line.split()[0] for line in file.read_text("utf-8").splitlines()]
    return len(words) - len({*words})


def add_odd_lines(file: Path, damaged: bool, turned: bool) -> int:
    """Add lines with odd texts, on each side and on both, lines that repeat others, and damaged ones; count all lines."""
    rows = [line.split("\t") for line in file.read_text("utf-8").splitlines()[:60]]
    sides = range(len(rows[0]) > 2, len(rows[0]))  # without a score
    if not (are_vectors := rows[0][-1][-1].isdigit()):
        for row, text in zip(cycle(rows[:60]), ODD[:: -1 if turned else 1], strict=False):
            for odd in {(*sides,), *((side,) for side in sides)}:
                rows.append([text if column in odd else cell for column, cell in enumerate(row)])
    lines = ["\t".join(row).encode() + b"\n" for row in [*rows, *rows[:5], *rows[60:65]]]
    lines += DAMAGED * (damaged and not are_vectors)
    file.write_bytes(b"".join(lines))
    return len(lines)


def run_on_odd_lines(words: Sequence[str], folder: Path) -> tuple[Ran, list[int]]:
    """Run a command on files with odd lines; return what became of it, and the numbers of lines of the files."""
    skip = [f"{one.name}=skip" for one in settings(words[0]) if one.name.endswith("on_error")]
    lines = [add_odd_lines(file, bool(skip), number == 1) for number, file in enumerate(files_of(words, folder))]
    results, summary = [], run._summary
    with patch.object(run, "_summary", lambda *given: results.append(given[2]) or summary(*given)):
        done = run_verb(*words, *skip, cwd=folder)
    assert done.returncode == 0, done.stderr
    return Ran(words, next(iter(results), None), done.stdout, done.stderr, folder), lines


COMMANDS = {name: case.words.split() for name, case in script.CASES.items() if case.changed}
for name, words in list(COMMANDS.items()):
    if "input=pairs.tsv" in words:
        COMMANDS[f"{name}, two files"] = [*words, "source=en.txt", "target=de.txt"]
        COMMANDS[f"{name}, two files"].remove("input=pairs.tsv")


@pytest.mark.parametrize("name", COMMANDS)
def test_a_record_is_written_or_left_out_and_counted(name, tmp_path):
    if isinstance(looked_at := LOOKED_AT.get(name.removesuffix(", two files"), ""), str) and looked_at:
        pytest.skip(looked_at)
    script.write_inputs(tmp_path)
    ran, lines = run_on_odd_lines(COMMANDS[name], tmp_path)
    if len(lines) == 2 and name.endswith("two files"):
        del lines[1]  # a record is a line of both
    if callable(looked_at):
        found = looked_at(ran)
        assert found == (sum(lines) if isinstance(found, int) else lines), ran.printed
    else:
        without = sum(lines) - ran.written
        assert not without or without == ran.counted(), f"{lines} lines, {ran.written} written; {ran.printed}"


def test_every_mode_of_a_verb_has_a_command():
    modes = {(verb, mode) for verb, spec in VERBS.items() if verb not in script.APART for mode in spec.calls}
    tried = set()
    for verb, *words in COMMANDS.values():
        calls = VERBS[verb].calls
        tried.add((verb, next((mode for mode in calls if f"mode={mode}" in words), next(iter(calls)))))
    assert modes - tried == {("ensemble", ""), ("export", ""), ("search", "verify")}, "these read models, and an index"
