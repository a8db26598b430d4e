"""Shared work: what an error in one thread does to the others."""

from __future__ import annotations

import threading
import time

import pytest

from xswe.mining.work import work_off
from xswe.parallel import run, share


def test_an_error_is_raised_only_when_no_thread_works_any_more():
    finished = threading.Event()

    def slow():
        time.sleep(0.2)
        finished.set()

    def broken():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run([broken, slow], 2)
    assert finished.is_set()


@pytest.mark.parametrize("failing", [0, 1])
def test_an_error_ends_the_work_of_all_threads(failing):
    done = []

    def block(start, stop):
        if start == failing:
            raise ZeroDivisionError
        time.sleep(0.005)
        done.append(start)

    with pytest.raises(ZeroDivisionError):
        share(block, 1000, 1, 2)
    assert len(done) < 10
    done.clear()
    with pytest.raises(ZeroDivisionError):
        work_off(0, 1000, lambda _, unit: block(unit, unit + 1) or 1, lambda _: None, 2, "work", 1000)
    assert len(done) < 10
