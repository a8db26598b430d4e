"""Bars of the verbs, as a terminal of 80 columns shows them."""

from __future__ import annotations

import contextlib
import fcntl
import io
import logging
import os
import re
import struct
import sys
import termios
import threading

import pytest

from tests.cli.verbs import _own_logging
from tests.conftest import eval_script
from xswe import progress
from xswe.cli.main import main

WIDTH = 80
script = eval_script("experiments.local_faults")
WITHOUT = ("ensemble", "export", "lexicon", "report", "split")  # verbs that are soon done
CASES = {name: case for name, case in script.CASES.items() if case.words.split()[0] not in WITHOUT}


class Screen:
    """What a terminal shows of what is written to it: lines that are written over, and a cursor that goes up and down."""

    def __init__(self) -> None:
        self.lines: list[list[str]] = [[]]
        self.row = self.column = 0

    def feed(self, text: str) -> None:
        for part in re.findall(r"\x1b\[[\d;]*[A-Za-z]|.|\n", text, re.DOTALL):
            if part == "\r":
                self.column = 0
            elif part == "\n":
                self.row += 1
                self.lines += [[] for _ in range(self.row + 1 - len(self.lines))]
            elif part == "\x1b[A":
                self.row = max(0, self.row - 1)
            elif not part.startswith("\x1b"):
                line = self.lines[self.row]
                line += [" "] * (self.column + 1 - len(line))
                line[self.column] = part
                self.column += 1

    def shown(self) -> list[str]:
        return [text for line in self.lines if (text := "".join(line).rstrip())]


@contextlib.contextmanager
def terminal():
    """Yield a screen, and a stream to a terminal of 80 columns that it shows."""
    above, below = os.openpty()
    fcntl.ioctl(below, termios.TIOCSWINSZ, struct.pack("HHHH", 24, WIDTH, 0, 0))
    screen, parts = Screen(), []

    def read() -> None:
        with contextlib.suppress(OSError):
            while data := os.read(above, 65_536):
                parts.append(data)

    reader = threading.Thread(target=read)
    reader.start()
    with open(below, "w", encoding="utf-8") as stream:
        yield screen, stream
    reader.join()
    os.close(above)
    screen.feed(b"".join(parts).decode("utf-8"))


# Whose bars are shown like those of others, and which take three times as long as these.
LONG = ("compare", "dedup", "encode, a file a shard", "mine, clusters", "phrases", "terms", "train", "train, words")
LONG += ("align, folders", "link", "mine, negatives", "mine, scored")


@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.slow] * (name in LONG)) for name in CASES])
def test_bars_end_full_and_apart_from_what_is_logged(name, tmp_path, monkeypatch):
    script.write_inputs(tmp_path)
    monkeypatch.setattr(progress, "_silent", False)
    monkeypatch.setattr(sys, "argv", sys.argv)
    monkeypatch.chdir(tmp_path)
    with (
        terminal() as (screen, stream),
        contextlib.redirect_stdout(io.StringIO()),
        _own_logging(),
        contextlib.redirect_stderr(stream),
    ):
        status = main(CASES[name].words.split())
    shown = screen.shown()
    assert status == 0, shown
    bars = [line for line in shown if re.search(r"\d(it|\S*)?/s\]|s/\S+\]|\[\d\d:\d\d", line)]
    assert bars, shown
    for line in bars:
        assert re.fullmatch(r".{1,24}: 100%\|█{3,}\| .*\]", line), line
    assert not [line for line in shown if line not in bars and "|" in line]
    assert max(map(len, bars)) <= WIDTH


def test_what_is_logged_stands_above_the_bar(monkeypatch):
    monkeypatch.setattr(progress, "_silent", False)
    with terminal() as (screen, stream):
        monkeypatch.setattr(sys, "stderr", stream)
        logger, handler = logging.getLogger("tests.bars"), progress.LogHandler(stream)
        monkeypatch.setattr(logger, "propagate", False)  # to what other tests have left
        logger.addHandler(handler)
        with progress.bar("encode", 2, "line") as shown:
            shown.update(1)
            logger.warning("the first half is done")
            shown.update(1)
        logger.removeHandler(handler)
    first, second = screen.shown()
    assert first == "the first half is done"
    assert second.startswith("encode: 100%|")


def test_a_total_is_estimated_by_what_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr(progress, "_silent", False)
    monkeypatch.setattr(progress, "_open_files", [])  # without those of readers that other tests did not read to their end
    (tmp_path / "a.txt").write_bytes(b"a line\n" * 1000)
    with (
        open(tmp_path / "a.txt", "rb", buffering=0) as stream,
        progress.reading(stream),
        progress.bar("read", unit="line") as shown,
    ):
        for _ in range(4):
            stream.read(7 * 200)
            shown.update(200)
            assert shown.total == 1000
        shown.update(100)
    assert (shown.n, shown.total) == (900, 900)
    assert not progress._open_files
