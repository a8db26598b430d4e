"""Helpers that stay awake: the same results as a pool of threads, whatever happens in a piece of work."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

from xswe.io.compiler import changes, prefetch_row
from xswe.io.parallel import over_blocks, run
from xswe.training import loop


def names():
    return sum(thread.name == "xswe awake" for thread in threading.enumerate())


@pytest.mark.parametrize("turns", [1, 2_000_000])  # helpers that sleep at once, and that never do
def test_work_is_shared_and_results_are_in_order(monkeypatch, turns):
    monkeypatch.setattr(loop, "_POLLS", turns)
    with loop.awake(3):
        assert names() == 2
        for size in (3, 100, 7):
            assert over_blocks(lambda a, b: (a, b), size, 3) == [(size * k // 3, size * (k + 1) // 3) for k in range(3)]
        time.sleep(0.01)
        who = run([threading.current_thread] * 3, 3)
        assert who[0] is threading.current_thread()
        assert [thread.name for thread in who[1:]] == ["xswe awake"] * 2
        assert len(set(who)) == 3
        assert run([lambda: 1, lambda: 2], 2) == [1, 2]  # another number of tasks goes to the pool
    deadline = time.monotonic() + 5
    while names() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert names() == 0


def test_a_piece_may_share_out_work_itself():
    with loop.awake(2):
        inner = lambda a, b: over_blocks(lambda c, d: (a, b, c, d), 2, 2)  # noqa: E731
        assert over_blocks(inner, 4, 2) == [[(0, 2, 0, 1), (0, 2, 1, 2)], [(2, 4, 0, 1), (2, 4, 1, 2)]]


@pytest.mark.parametrize("bad", [0, 1])
def test_an_error_arrives_and_the_others_end_first(bad):
    done = []

    def piece(a, b):
        if a == bad:
            raise ValueError(f"piece {a}")
        time.sleep(0.05)
        done.append(a)

    with loop.awake(2):
        with pytest.raises(ValueError, match=f"piece {bad}"):
            over_blocks(piece, 2, 2)
        assert done == [1 - bad]
        assert over_blocks(lambda a, b: a, 2, 2) == [0, 1]


def test_a_change_is_seen_and_waiting_ends():
    cell = np.zeros(1, np.int64)
    assert not changes(cell, 0, 1000)
    assert changes(cell, 1, 1000)
    threading.Timer(0.02, lambda: cell.__setitem__(0, 5)).start()
    assert changes(cell, 0, 10**11)


def test_a_prefetch_changes_nothing():
    matrix = np.arange(12, dtype=np.float32).reshape(3, 4)
    prefetch_row(matrix, 2)
    assert matrix.tolist() == np.arange(12).reshape(3, 4).tolist()
