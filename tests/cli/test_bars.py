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
from pathlib import Path

import pytest

from tests.cli.verbs import _own_logging
from xswe import progress
from xswe.cli.main import main

WIDTH = 80
EN = ["The train is late.", "A cat sleeps on the roof.", "We buy bread.", "It is raining."] * 5
DE = ["Der Zug hat Verspätung.", "Eine Katze schläft auf dem Dach.", "Wir kaufen Brot.", "Es regnet."] * 5
# Each verb that shows bars, on files that are made for it.
COMMANDS = {
    "align": "model=mini source=en.txt target=de.txt output=beads.tsv",
    "compare": "models=[mini,{path:mini,name:other}] tasks=[pairs.tsv] output=c.json seconds=0",
    "corpus": "pair=en-de corpus.paths=[pairs.tsv] output=converted",
    "dedup": "model=mini input=en.txt output=unique.txt",
    "encode": "model=mini input=en.txt output=a.npy",
    "evaluate": "model=mini tasks=[pairs.tsv] output=e.json",
    "filter": "model=mini input=pairs.tsv output=clean.tsv threshold=0.1 languages=[en,de]",
    "import": "pair=en-de input=words.vec output=imported",
    "link": "model=mini input=pairs.tsv output=links.txt languages=[en,de]",
    "mine": "model=mini source=en.txt target=de.txt threshold=null output=pairs2.tsv",
    "mine of scores": "mode=score model=mini input=pairs.tsv output=scored.tsv languages=[en,de]",
    "mine of negatives": "mode=negatives model=mini input=pairs.tsv output=n.jsonl languages=[en,de]",
    "phrases": "model=mini queries=cat input=de.txt output=hits.tsv",
    "search": "model=mini input=de.txt queries=cat index=kept",
    "train": "recipe=static pair=en-de corpus.limit=300 refine.max_steps=5 refine.batch_size=32 output=run threads=1",
}


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


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    made = tmp_path_factory.mktemp("bars")
    for name, lines in (
        ("en.txt", EN),
        ("de.txt", DE),
        ("pairs.tsv", [f"{a}\t{b}" for a, b in zip(EN, DE, strict=True)]),
        ("words.vec", ["2 3", "cat 1 0 0", "Katze 1 0 1"]),
    ):
        (made / name).write_text("".join(f"{line}\n" for line in lines), "utf-8")
    return made


# Of the ways to show bars, one each; the other verbs take three times as long.
QUICK = ("align", "encode", "filter", "mine", "search")


@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.slow] * (name not in QUICK)) for name in COMMANDS])
def test_bars_end_full_and_apart_from_what_is_logged(name, folder, monkeypatch):
    monkeypatch.setattr(progress, "_silent", False)
    monkeypatch.setattr(sys, "argv", sys.argv)
    monkeypatch.chdir(folder)
    with (
        terminal() as (screen, stream),
        contextlib.redirect_stdout(io.StringIO()),
        _own_logging(),
        contextlib.redirect_stderr(stream),
    ):
        status = main([name.partition(" ")[0], *COMMANDS[name].split()])
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
