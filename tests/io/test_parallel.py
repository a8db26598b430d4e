"""Shared work: what an error in one thread does to the others, and what a fork does to all of them."""

from __future__ import annotations

import copy
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from xswe.io.parallel import (
    Lock,
    Together,
    alongside,
    available_threads,
    blocks,
    in_order,
    over_blocks,
    parallel_for,
    run,
    team,
)
from xswe.training.loop import awake

forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")


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


def test_blocks_are_even_and_none_is_empty():
    for size in range(1, 12):
        for parts in range(14):
            found = blocks(size, parts)
            assert [place for start, stop in found for place in range(start, stop)] == list(range(size))
            assert len(found) == max(1, min(parts, size))
            sizes = [stop - start for start, stop in found]
            assert min(sizes) > 0
            assert max(sizes) - min(sizes) <= 1
    assert blocks(0, 3) == [(0, 0)]
    for size, threads, least, expected in ((10, 3, 1, 3), (10, 3, 5, 2), (10, 3, 6, 1), (10, 3, 11, 1), (2, 9, 1, 2)):
        assert over_blocks(lambda start, stop: (start, stop), size, threads, least) == blocks(size, expected)


def test_work_is_shared_by_as_many_threads_as_are_given():
    def slow():
        time.sleep(0.003)
        return threading.get_ident()

    def threads_of(threads):
        return {
            "run": run([slow] * 8, threads),
            "parallel_for": (found := [], parallel_for(lambda *_: found.append(slow()), 8, 1, threads))[0],
            "in_order": list(in_order(lambda _: slow(), range(8), threads)),
        }

    own = threading.get_ident()
    for threads in (0, 1):
        assert all(set(found) == {own} for found in threads_of(threads).values())
    shared = threads_of(3)
    assert {name: len(set(found)) for name, found in shared.items()} == {"run": 3, "parallel_for": 3, "in_order": 3}
    assert (own in shared["run"], own in shared["parallel_for"], own in shared["in_order"]) == (True, True, False)
    assert run([slow], 3) == [own]


def test_as_many_tasks_as_a_team_has_members_are_theirs():
    def asked(tasks):
        return ["team", *(task() for task in tasks)]

    tasks = [lambda k=k: k for k in range(3)]
    with team((2, asked)):
        assert run(tasks[:2], 2) == ["team", 0, 1]
        assert run(tasks, 2) == [0, 1, 2]
        assert run(tasks[:1], 2) == [0]
        with team(None):
            assert run(tasks[:2], 2) == [0, 1]
        assert run(tasks[:2], 2) == ["team", 0, 1]
    assert run(tasks[:2], 2) == [0, 1]


@pytest.mark.parametrize("most", [1, 3])
def test_no_more_is_taken_in_advance_than_may_wait(most):
    taken = []
    results = alongside(str, (taken.append(item) or item for item in range(9)), *([most] if most > 1 else []))
    for number in range(9):
        assert next(results) == str(number)
        assert len(taken) == min(9, number + most + 1)
    assert list(results) == []


def test_an_error_comes_after_the_results_before_it():
    def items():
        yield from (1, 2)
        raise ZeroDivisionError

    for results in (in_order(str, items(), 2), alongside(str, items()), alongside(str, items(), 5)):
        assert [next(results), next(results)] == ["1", "2"]
        with pytest.raises(ZeroDivisionError):
            next(results)


@pytest.mark.parametrize("failing", [0, 1])
def test_an_error_ends_the_work_of_all_threads(failing):
    done = []

    def block(start, stop):
        if start == failing:
            raise ZeroDivisionError
        time.sleep(0.005)
        done.append(start)

    with pytest.raises(ZeroDivisionError):
        parallel_for(block, 1000, 1, 2)
    assert len(done) < 10


def in_a_fork(holds):
    """Tell whether a function is true in a forked process, and within a few seconds."""
    process = os.fork()
    if not process:
        signal.alarm(20)  # ends the process, whatever it waits for
        try:
            os._exit(0 if holds() else 1)
        finally:
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 0


def works():
    return run([lambda: 1, lambda: 2], 2) == [1, 2] and list(in_order(abs, [-1, -2, -3], 2)) == [1, 2, 3]


@forks
def test_a_forked_process_has_threads_of_its_own():
    assert works()
    assert in_a_fork(works)
    assert works()


@forks
def test_a_process_forked_from_an_awake_team_works_too():
    with awake(2):
        assert works()
        assert in_a_fork(works)
        assert works()


@forks
@pytest.mark.parametrize("rest", [lambda stream: stream.close() is None, lambda stream: not list(stream)])
def test_a_stream_begun_before_a_fork_ends_at_once(rest):
    release = threading.Event()
    stream = in_order(lambda item: item and release.wait(), range(9), 2)
    assert next(stream) == 0

    def ends():
        try:
            return rest(stream)
        except RuntimeError as error:
            return "begin it anew" in str(error)

    try:
        assert in_a_fork(ends)
    finally:
        release.set()
    assert len(list(stream)) == 8


@forks
def test_a_lock_that_another_thread_holds_is_free_in_a_forked_process():
    lock, held, done = Lock(), threading.Event(), threading.Event()

    def hold():
        with lock:
            held.set()
            done.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()

    def take():
        with lock:
            return True

    try:
        assert in_a_fork(take)
    finally:
        done.set()
    thread.join()


def test_a_copy_of_a_lock_is_another_lock():
    lock = Lock()
    with lock:
        for made in (copy.deepcopy(lock), pickle.loads(pickle.dumps(lock))):
            with made:
                assert made is not lock


def test_what_is_done_alongside_is_done_in_order_by_one_thread():
    seen = []

    def note(item):
        seen.append((item, threading.get_ident()))
        return item * item

    taken = (item for item in range(50))
    assert list(alongside(note, taken)) == [item * item for item in range(50)]
    assert [item for item, _ in seen] == list(range(50))
    assert len({thread for _, thread in seen}) == 1
    assert seen[0][1] != threading.get_ident()


def test_after_a_call_that_fails_alongside_none_is_made():
    seen = []

    def broken(item):
        seen.append(item)
        time.sleep(0.01)
        if item == 3:
            raise ZeroDivisionError
        return item

    results = alongside(broken, iter(range(50)))
    got = []
    with pytest.raises(ZeroDivisionError):
        got.extend(iter(results))
    assert seen == [0, 1, 2, 3]


def test_whoever_stops_early_ends_the_thread_and_the_iterable():
    ended = threading.Event()

    def items():
        try:
            yield from range(1000)
        finally:
            ended.set()

    results = alongside(str, items())
    assert next(results) == "0"
    results.close()
    assert ended.is_set()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("xswe-alongside")]


@pytest.mark.parametrize(("said", "expected"), [("1", 1), ("1,2", 1), ("999", None), ("0", None), ("many", None)])
def test_omp_num_threads_is_the_most(monkeypatch, said, expected):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    processors = available_threads()
    monkeypatch.setenv("OMP_NUM_THREADS", said)
    assert available_threads() == (expected or processors)


@pytest.mark.parametrize(("name", "value", "shown"), [("TQDM_DISABLE", "1", False), ("TQDM_DISABLE", "0", True)])
def test_bars_are_switched_off_as_those_of_tqdm_are_and_have_no_colour(name, value, shown):
    program = (
        "import time; from xswe import progress; progress._LOG_SECONDS = 0; "
        "[time.sleep(0.3) for _ in progress.track(range(3), 'work')]"
    )
    environment = {key: said for key, said in os.environ.items() if key != "XSWE_PROGRESS"} | {name: value}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment)
    assert ("work" in done.stderr) is shown
    assert "\x1b[3" not in done.stderr


def test_questions_that_wait_are_answered_in_one_go(monkeypatch):
    monkeypatch.setattr("xswe.io.parallel.available_threads", lambda: 1)
    batches, begun, go = [], threading.Event(), threading.Event()

    def answer(questions):
        batches.append(len(questions))
        begun.set()
        go.wait(10)
        return [question * 2 for question in questions]

    ask = Together(answer)
    with ThreadPoolExecutor(6) as pool:
        first = pool.submit(ask, 0)
        begun.wait(10)
        others = [pool.submit(ask, question) for question in range(1, 6)]
        while len(ask._waiting) < 5:
            time.sleep(0.001)
        go.set()
        assert [first.result(10), *(other.result(10) for other in others)] == [0, 2, 4, 6, 8, 10]
    assert batches == [1, 5]


def test_all_who_asked_are_told_of_an_error_and_the_next_is_answered():
    ask = Together(lambda questions: [1 // question for question in questions])
    with pytest.raises(ZeroDivisionError):
        ask(0)
    assert ask(1) == 1
