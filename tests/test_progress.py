"""What long work says of itself, on a terminal and in a log."""

from __future__ import annotations

import sys

import pytest

from xswe import progress
from xswe.progress import bar, took, track


@pytest.fixture
def heard(monkeypatch):
    monkeypatch.setattr(progress, "_silent", False)


def test_short_work_leaves_nothing_in_a_log(heard, capsys):
    assert list(track(range(3), "work")) == [0, 1, 2]
    with bar("more", 10) as shown:
        shown.update(10)
    assert capsys.readouterr().err == ""


def test_long_work_leaves_a_line_now_and_then(heard, capsys, monkeypatch):
    monkeypatch.setattr(progress, "_LOG_SECONDS", 0.0)
    with bar("search", 564_935_892, "pair") as shown:
        shown.update(100_000_000)
        shown.refresh()
    lines = capsys.readouterr().err.splitlines()
    assert "100M/565M" in lines[-1]
    assert not any("\r" in line for line in lines)


def test_a_terminal_has_a_bar(heard, capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with bar("encode", 10, "line") as shown:
        shown.update(5)
    assert "\r" in capsys.readouterr().err


def test_a_rate_is_told_of_what_takes_a_second():
    assert took(5000, 2.0, "lines") == "2.0 s, 2,500 lines/s"
    assert took(3, 0.1, "lines") == "0.1 s"
    assert took(1, 2.2, "lines") == "2.2 s"  # and not 0 lines/s
