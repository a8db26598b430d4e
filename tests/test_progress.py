"""What long work says of itself, on a terminal and in a log."""

from __future__ import annotations

import sys

import pytest

from xswe import progress
from xswe.progress import bar, every, reading, took, track


@pytest.fixture
def heard(monkeypatch):
    monkeypatch.setattr(progress, "_silent", False)
    monkeypatch.setattr(progress, "_open_files", [])  # without those of readers that other tests did not read to their end


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
    assert took(9, 0.99, "lines") == "1.0 s"
    assert took(1, 1.0, "lines") == "1.0 s, 1 lines/s"
    assert took(2, 2.0, "lines") == "2.0 s, 1 lines/s"
    assert took(1, 2.2, "lines") == "2.2 s"  # and not 0 lines/s


@pytest.fixture
def terminal(heard, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)


def test_a_total_is_estimated_from_what_was_read_of_the_open_files(terminal, tmp_path):
    for name, size in (("a", 300), ("b", 100), ("empty", 0)):
        (tmp_path / name).write_bytes(bytes(size))
    with (tmp_path / "a").open("rb") as a, (tmp_path / "b").open("rb") as b, (tmp_path / "empty").open("rb") as empty:
        with reading(a), reading(b), reading(empty), bar("read", unit="line") as shown:
            shown.update(5)
            assert shown.total is None  # nothing was read
            a.seek(100)
            shown.update(5)
            assert (shown.n, shown.total) == (10, 40)  # a quarter of the bytes
            b.seek(100)
            shown.update(0)
            assert shown.total == 20
            a.seek(300)
            shown.update(15)
            assert (shown.n, shown.total) == (25, None)
        assert (shown.n, shown.total) == (25, 25)  # the end
        with bar("read", 8) as shown, reading(a):
            shown.update(3)
        assert (shown.n, shown.total) == (3, 8)  # one that is known stays
        with bar("read") as shown:
            shown.update(0)
        assert shown.total is None


def test_large_counts_have_a_suffix_and_long_names_are_cut(terminal):
    for total, scaled in ((99_999, False), (100_000, True), (None, False)):
        with bar("x" * 24, total) as shown:
            assert (shown.unit_scale, shown.desc.rstrip(": ")) == (scaled, "x" * 24)
    with bar("x" * 25, 2, "line", 1) as shown:
        assert (shown.desc.rstrip(": "), shown.n, shown.unit) == ("x" * 23 + "…", 1, " line")
    with bar("count") as shown:
        shown.update(99_999)
        shown.update(0)
        assert not shown.unit_scale
        shown.update(1)
        shown.update(0)
        assert shown.unit_scale


def test_a_line_is_due_half_a_minute_after_the_last(heard, capsys, monkeypatch):
    now = [1000.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    told = []
    with bar("work", 10) as shown:
        for seconds in (0.0, 29.0, 1.0, 29.9, 0.1):
            now[0] += seconds
            shown.display()
            told.append(len(capsys.readouterr().err.splitlines()))
    assert told == [0, 0, 1, 0, 1]
    assert capsys.readouterr().err == ""
    due = every(5.0)
    assert not due()
    now[0] += 4.9
    assert not due()
    now[0] += 0.1
    assert (due(), due()) == (True, False)
    due = every()
    now[0] += 59.9
    assert not due()
    now[0] += 0.1
    assert due()


@pytest.mark.parametrize("kind", [progress._Bar, progress._Lines])
def test_a_bar_that_an_interrupt_kept_from_being_made_says_nothing(kind):
    kind.__new__(kind).close()


def test_silence_ends_again(heard, capsys):
    for silent, shown in ((True, True), (False, False)):
        progress.silence(silent)
        with bar("work", 3) as made:
            assert made.disable == shown
