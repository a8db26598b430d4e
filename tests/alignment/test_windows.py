"""Long texts, aligned window by window: the same beads as of the whole, whatever the windows and the anchors."""

from __future__ import annotations

import os
import signal
import threading
import time

import numpy as np
import pytest

import xswe
from xswe.alignment import windows
from xswe.alignment.beads import AlignConfig, Constraints
from xswe.alignment.windows import align_texts
from xswe.io.ragged import Texts

LINES, MISSING = 2000, 300
NONE = np.zeros(0, np.float32)


@pytest.fixture
def small(monkeypatch):
    """Windows of some hundred lines, so that a text of some thousand has many."""
    for name, value in {"_WHOLE": 100, "_WINDOW": 800, "_COARSE": 1000, "_LEARN": 3000, "_BORDER": 60, "_STEPS": 6}.items():
        monkeypatch.setattr(windows, name, value)


@pytest.fixture(scope="module")
def sides(sample):
    rows = np.random.default_rng(5).permutation(np.tile(np.arange(len(sample["en"])), 2))[:LINES].tolist()
    english = Texts.of(sample["en"][row] for row in rows)
    return english, Texts.of(sample["de"][row] for row in rows[:1000] + rows[1000 + MISSING :])


def share_right(cells: np.ndarray) -> float:
    """The share of lines with a partner that lie in a bead with it alone."""
    i, j = cells[:-1][(np.diff(cells, axis=0) == 1).all(1)].T
    return float(np.where(i < 1000, i == j, i - MISSING == j).sum() / (LINES - MISSING))


def is_path(cells: np.ndarray) -> bool:
    steps = np.diff(cells, axis=0)
    return cells[0].tolist() == [0, 0] and cells[-1].tolist() == [LINES, LINES - MISSING] and bool((steps.sum(1) > 0).all())


def test_windows_are_joined_to_the_path_of_the_whole(sides, small, monkeypatch):
    model = xswe.load("mini")
    (cells, cosines, _), prices = align_texts(model, *sides, AlignConfig(), threads=2)
    assert is_path(cells)
    assert len(cosines) == len(cells) - 1
    assert share_right(cells) > 0.97
    bead = (np.diff(cells, axis=0) > 0).all(1)
    assert np.array_equal(np.isnan(cosines), ~bead)
    again, _ = align_texts(model, *sides, AlignConfig(), threads=1)
    assert np.array_equal(again[0], cells)
    assert np.array_equal(again[1], cosines, equal_nan=True)
    monkeypatch.setattr(windows, "_WHOLE", 1 << 20)
    (whole, of_whole, _), known = align_texts(model, *sides, AlignConfig())
    same = {tuple(cell) for cell in cells.tolist()} & {tuple(cell) for cell in whole.tolist()}
    assert len(same) > 0.99 * len(whole)
    assert np.nanmedian(cosines) == pytest.approx(np.nanmedian(of_whole), abs=0.01)
    assert prices.signal == pytest.approx(known.signal, abs=0.05)


def test_anchors_are_kept_in_long_texts(sides, small):
    anchors = [((500, 480), (501, 483)), ((501, 483), (502, 484)), ((1600, 1600 - MISSING), (1601, 1601 - MISSING))]
    (cells, cosines, _), _ = align_texts(xswe.load("mini"), *sides, AlignConfig(), Constraints(anchors))
    assert is_path(cells)
    ends = zip(cells[:-1].tolist(), cells[1:].tolist(), strict=True)
    steps = {(tuple(a), tuple(b)): cosine for (a, b), cosine in zip(ends, cosines, strict=True)}
    assert set(anchors) <= set(steps)
    assert steps[anchors[2]] > 0.3  # of a true bead
    assert share_right(cells) > 0.95


def test_an_ensemble_is_encoded_anew_in_each_window(sides, small):
    class Opaque:  # not a static model: its vectors are no sums
        identity = "opaque"

        def encode(self, texts, *, threads=1):
            return model.encode(texts, threads=threads)

    model = xswe.load("mini")
    (cells, _, _), _ = align_texts(Opaque(), *sides, AlignConfig())
    assert share_right(cells) > 0.95


def test_texts_are_long_from_one_line_more_than_a_window(monkeypatch):
    monkeypatch.setattr(windows, "_WHOLE", 5)
    assert not windows.is_long(Texts.of(["a"] * 3), Texts.of(["b"] * 2))
    assert windows.is_long(Texts.of(["a"] * 3), Texts.of(["b"] * 3))


def test_small_windows_with_a_known_bead_between_them_are_one(monkeypatch):
    monkeypatch.setattr(windows, "_WINDOW", 10)

    def gathered(*ends):
        """Windows between lines of the source, from one to the next; the bead between them is a line of each side."""
        found = []
        for start, stop, bead in ends:
            stop, end = (stop, stop), (stop + bead, stop + bead)
            found.append(windows.Window((start, start), stop, end, end))
        return [(one.start[0], one.stop[0], one.end[0], one.cut[0]) for one in windows._gathered(found)]

    assert gathered((0, 2, 1), (3, 6, 1), (7, 8, 0)) == [(0, 6, 7, 7), (7, 8, 8, 8)]  # 10 lines are enough
    assert gathered((0, 2, 1), (3, 7, 1), (8, 9, 0)) == [(0, 2, 3, 3), (3, 9, 9, 9)]
    assert gathered((0, 2, 0), (2, 3, 0)) == [(0, 2, 2, 2), (2, 3, 3, 3)]  # nobody gave a bead between them
    assert gathered() == []


def test_windows_without_a_cell_in_common_are_aligned_as_one():
    window = windows.Window((0, 0), (4, 4), (4, 4), (3, 3))
    path = windows.Path(np.array([[0, 0], [1, 0], [4, 4]]), np.full(2, np.nan, np.float32), NONE)
    other = windows.Window((2, 2), (6, 6), (6, 6), (6, 6))
    further = windows.Path(np.array([[2, 2], [2, 4], [6, 6]]), np.full(2, np.nan, np.float32), NONE)
    asked = []

    def again(one: windows.Window) -> windows.Path:
        asked.append(one)
        return windows.Path(np.array([one.start, one.stop]), np.zeros(1, np.float32), NONE)

    out = list(windows._joined(iter([(window, path), (other, further)]), again))
    assert asked == [windows.Window((0, 0), (6, 6), (6, 6), (6, 6))]
    assert [one.cells.tolist() for one in out] == [[[0, 0], [6, 6]]]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_run_killed_anywhere_goes_on_to_the_same_bytes(sides, small, tmp_path, monkeypatch):
    """Killed at random moments, and between two windows; what was done by then is done only once."""
    monkeypatch.setattr("xswe.work.kept.BRIEF", 0.0)
    monkeypatch.setattr(windows, "_WINDOW", 300)
    some = [side[:1300] for side in sides]
    output, work, model, done = tmp_path / "a.ladder", tmp_path / "a.ladder.work", xswe.load("mini"), []
    path, draw = windows.Pair.path, np.random.default_rng(3)

    def run(dies_after: float = np.inf, **settings) -> None:
        def one(*given):
            if len(done) >= dies_after:
                os.kill(os.getpid(), signal.SIGKILL)
            done.append(given)
            return path(*given)

        monkeypatch.setattr(windows.Pair, "path", one)
        xswe.align(model, *some, output=output, precision=0.9, threads=1, **settings)

    def killed(after: float, dies_after: float = np.inf) -> bool:
        if not (process := os.fork()):
            if after:
                threading.Timer(after, os.kill, (os.getpid(), signal.SIGKILL)).start()
            run(dies_after)
            os._exit(0)
        return os.waitpid(process, 0)[1] == signal.SIGKILL

    begun = time.monotonic()
    run()
    seconds, whole, count = time.monotonic() - begun, output.read_bytes(), len(done)
    assert not work.exists()
    assert count > 7
    output.unlink()
    killed(seconds * draw.uniform(0.1, 0.9))
    run()
    assert output.read_bytes() == whole
    assert not work.exists()
    output.unlink()
    done.clear()
    assert killed(0, 4)
    assert work.exists()
    assert killed(0, 2)  # goes on, and is killed again
    run()
    assert len(done) == count - 6
    assert output.read_bytes() == whole
    assert killed(0, 3)
    done.clear()
    run(search=7)  # other settings: nothing of it is taken
    assert len(done) >= count - 1
    assert not work.exists()
