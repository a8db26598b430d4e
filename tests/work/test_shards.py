"""Shards: cut whatever the number of workers, whole or not there, and done again where they were damaged."""

from __future__ import annotations

import errno
import json
import os
import shutil
import threading
import time
from collections.abc import Callable
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, fields, replace
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import xswe
from tests.clusters import RUNS, SQUARES, Rows, Squares, in_order, made, runs, stage_in
from xswe import progress
from xswe.errors import ConfigError, InputError, Unfinished, XsweError
from xswe.io import files as files_module
from xswe.io import locks
from xswe.io.files import read_json, whole_file
from xswe.io.lines import read_blocks
from xswe.work import kept
from xswe.work import run as run_module
from xswe.work.checkpoint import save_checkpoint
from xswe.work.config import HOSTS, ExecutionConfig
from xswe.work.folder import work_folder
from xswe.work.once import is_made, once
from xswe.work.plan import TextPlan
from xswe.work.records import file_checksum
from xswe.work.run import arrays_once, map_shards, read_arrays, run_shards, shards_ahead
from xswe.work.stage import NOWHERE, Advancing, Stage, attempt
from xswe.work.status import work_status


def test_shards_are_done_once(tmp_path):
    stage = stage_in(tmp_path)
    run_shards(stage, threads=2)
    assert made(stage) == SQUARES
    assert runs(tmp_path) == list(range(7))
    run_shards(stage_in(tmp_path))
    assert runs(tmp_path) == []
    assert [one.done for one in work_status(tmp_path)] == [7]


@dataclass(frozen=True)
class Told:
    """Write what the manifest says."""

    folder: Path
    heavy: bool = False

    def open(self) -> str:
        return read_json(self.folder / "manifest.json")["what"]

    def run(self, opened: str, shard: int, output: Path) -> dict:
        output.write_text(opened)
        return {}

    def files(self, output: Path) -> list[Path]:
        return [output]


def test_another_run_in_a_folder_that_was_removed_is_opened_anew(tmp_path):
    for what in ("first", "second"):
        stage = Stage(tmp_path / "told", "told", 2, ".txt", Told(tmp_path / "told"), what)
        stage.begin(what=what)
        run_shards(stage, threads=1)
        assert made(stage) == [what] * 2
        shutil.rmtree(stage.folder)


@pytest.mark.parametrize("damage", ["flipped", "shorter", "gone", "no side-car", "half a side-car"])
def test_a_damaged_shard_is_done_again(tmp_path, damage):
    stage = stage_in(tmp_path)
    run_shards(stage, threads=1)
    runs(tmp_path)
    path, side_car = stage.path(4), stage.side_car(4)
    if damage == "flipped":
        path.write_text("17")
        os.utime(path, ns=(0, path.stat().st_mtime_ns + 5))
    elif damage == "shorter":
        path.write_text("1")
    elif damage == "half a side-car":
        side_car.write_text(side_car.read_text()[:20])
    else:
        (path if damage == "gone" else side_car).unlink()
    run_shards(stage, threads=1)
    assert runs(tmp_path) == [4]
    assert made(stage) == SQUARES


@pytest.mark.parametrize("harm", ["none", "copied", "flipped", "shorter", "gone", "half a record", "an output gone"])
def test_a_folder_is_made_again_where_it_is_damaged(tmp_path, harm):
    place, output, made = tmp_path / "made", tmp_path / "out", []

    def make(folder):
        (folder / "deep").mkdir()
        (folder / "deep" / "one").write_text("12")
        (folder / "empty").touch()
        output.touch()
        made.append(folder)

    once(place, "this", make, [output])
    path, record = place / "deep" / "one", place / "made.json"
    if harm == "copied":
        os.utime(path)
    elif harm in ("flipped", "shorter"):
        path.write_text("17" if harm == "flipped" else "1")
        os.utime(path, ns=(0, path.stat().st_mtime_ns + 5))
    elif harm == "half a record":
        record.write_text(record.read_text()[:20])
    elif harm != "none":
        (path if harm == "gone" else output).unlink()
    assert is_made(place, "this", [output]) == (harm in ("none", "copied"))
    once(place, "this", make, [output])
    assert (len(made), path.read_text()) == (1 if harm in ("none", "copied") else 2, "12")
    assert is_made(place, "this", [output])
    assert not is_made(place, "that", [output])


def test_a_copied_folder_is_read_and_kept(tmp_path):
    stage = stage_in(tmp_path)
    run_shards(stage, threads=1)
    runs(tmp_path)
    for shard in range(7):  # as a copy that does not keep times
        os.utime(stage.path(shard))
    run_shards(stage, threads=1)
    assert runs(tmp_path) == []


def test_other_settings_do_not_mix_with_what_is_there(tmp_path):
    run_shards(stage_in(tmp_path), threads=1)
    with pytest.raises(ConfigError, match="other settings"):
        stage_in(tmp_path, identity="two")


def test_what_fails_is_said_and_the_rest_is_done(tmp_path):
    (tmp_path / "trouble-2").write_text("bad line")
    (tmp_path / "trouble-5").write_text("passing")
    stage = stage_in(tmp_path)
    with pytest.raises(XsweError, match=r"a\.txt:7: not UTF-8.*1 of 7 shards failed.*goes on"):
        run_shards(stage, threads=1)
    assert runs(tmp_path) == [0, 1, 2, 3, 4, 5, 5, 6]
    (status,) = work_status(tmp_path)
    assert (status.done, list(status.failed)) == (6, [2])
    assert "1 failed" in str(status)
    (tmp_path / "trouble-2").unlink()
    run_shards(stage, threads=1)
    assert runs(tmp_path) == [2]
    assert work_status(tmp_path).stages[0].failed == {}


def test_the_dearest_shards_are_begun_first(tmp_path):
    costs = [1, 2, 9, 1, 5, 7, 3]
    run_shards(stage_in(tmp_path), ExecutionConfig("array", 0, 1), threads=1, costs=costs)
    assert in_order(tmp_path) == [2, 5, 4, 6, 1, 0, 3]


@pytest.mark.parametrize("kind", ["full", "full, says numpy"])
def test_a_full_disk_ends_the_run_at_once(kind, tmp_path):
    (tmp_path / "trouble-1").write_text(kind)
    stage = stage_in(tmp_path)
    with pytest.raises(XsweError, match="No space left on device"):
        run_shards(stage, threads=1)
    assert runs(tmp_path) == [0, 1]


@pytest.mark.skipif(os.name != "posix", reason="limits of a process are POSIX")
@pytest.mark.parametrize(
    "write",
    [
        lambda path: save_checkpoint(path, "one", {"a": np.zeros(1 << 20)}, {}),
        lambda path: xswe.load("mini").save(path, dtype="float32"),
    ],
    ids=["checkpoint", "model"],
)
def test_what_the_disk_has_no_room_for_is_an_error_of_the_system(tmp_path, write):
    import resource

    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (6_000_000, before[1]))
    try:
        with pytest.raises(OSError, match="File too large") as caught:
            write(tmp_path / "a")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert caught.value.errno == errno.EFBIG
    assert list(tmp_path.iterdir()) == []


def test_the_slices_of_an_array_in_any_order(tmp_path):
    stage = stage_in(tmp_path)
    for index in (2, 0):
        with pytest.raises(Unfinished, match=r"of the indices (0-1|1);"):
            run_shards(stage, ExecutionConfig("array", index, 3), threads=1)
    run_shards(stage, ExecutionConfig("array", 1, 3), threads=1)
    assert made(stage) == SQUARES
    assert runs(tmp_path) == list(range(7))


def test_the_folder_of_an_array_goes_with_the_last_of_its_tasks(tmp_path):
    how, work = ExecutionConfig("array", 0, 2), tmp_path / "o.work"
    with work_folder(str(tmp_path / "o"), how) as folder:
        (folder / "search").mkdir()
        with work_folder(str(tmp_path / "o"), how) as again:
            (again / "done").mkdir()
        assert (folder / "search").is_dir()
    assert {path.name for path in work.iterdir()} == {".lock", "done", "work.json"}
    with work_folder(str(tmp_path / "o"), how, leave=()), work_folder(str(tmp_path / "o"), how, leave=()):
        pass
    assert not work.exists()


def test_a_folder_is_removed_while_a_late_worker_writes_to_it(tmp_path, monkeypatch):
    remove, late = os.rmdir, tmp_path / "o.work" / "search" / "000001.npy"

    def interrupted(path, **how):
        with suppress(FileNotFoundError):
            late.touch()
        remove(path, **how)

    with work_folder(str(tmp_path / "o")) as folder:
        (folder / "search").mkdir()
        monkeypatch.setattr(os, "rmdir", interrupted)
    assert not list(tmp_path.iterdir())


def test_a_shard_that_two_do_at_once_stays_done(tmp_path):
    """One that was quicker may be reading it."""
    stage, seen = stage_in(tmp_path), []
    run_shards(stage, threads=1)
    done_again = Mock(wraps=stage.job, **{"run.side_effect": lambda *_: seen.append(stage.counts(3)) or {"lines": 1}})
    replace(stage, job=done_again).do(3, "opened")
    assert seen == [{"lines": 1}]


def test_batch_queues_tell_the_slice(monkeypatch):
    monkeypatch.setenv("SLURM_ARRAY_TASK_ID", "5")
    monkeypatch.setenv("SLURM_ARRAY_TASK_MIN", "1")
    monkeypatch.setenv("SLURM_ARRAY_TASK_STEP", "2")
    monkeypatch.setenv("SLURM_ARRAY_TASK_COUNT", "8")
    assert ExecutionConfig("array").slice == (2, 8)
    monkeypatch.delenv("SLURM_ARRAY_TASK_ID")
    monkeypatch.delenv("SLURM_ARRAY_TASK_COUNT")
    monkeypatch.setenv("JOB_COMPLETION_INDEX", "3")
    assert ExecutionConfig("array", count=4).slice == (3, 4)
    with pytest.raises(ConfigError, match=r"execution\.count is not set"):
        ExecutionConfig("array")


def test_other_settings_that_cannot_work():
    for wrong in ({"kind": "slurm"}, {"kind": "array", "index": 4, "count": 4}, {"workers": 0}, {"shard": 0}):
        with pytest.raises(ConfigError):
            ExecutionConfig(**wrong)


@pytest.mark.parametrize("heavy", [False, True])
def test_every_executor_does_each_shard_once(any_executor, tmp_path, heavy):
    stage = stage_in(tmp_path, heavy=heavy)
    any_executor(lambda how: run_shards(stage, how, threads=1))
    assert made(stage) == SQUARES
    assert runs(tmp_path) == list(range(7))
    stage.path(3).unlink()
    any_executor(lambda how: run_shards(stage, how, threads=1))
    assert made(stage) == SQUARES
    assert runs(tmp_path) == [3]


@pytest.mark.parametrize("heavy", [False, True])
def test_every_executor_does_the_rest_where_a_shard_fails(any_executor, tmp_path, heavy):
    (tmp_path / "trouble-2").write_text("bad line")
    stage = stage_in(tmp_path, heavy=heavy)
    for task in any_executor.tasks:
        with pytest.raises(
            (XsweError, Unfinished), match=r"a\.txt:7: not UTF-8.*1 of 7 shards failed.*goes on|not, of the"
        ):
            run_shards(stage, task, threads=1)
    assert runs(tmp_path) == list(range(7))
    assert [shard for shard in range(7) if stage.counts(shard) is None] == [2]
    (tmp_path / "trouble-2").unlink()
    any_executor(lambda how: run_shards(stage, how, threads=1))
    assert (made(stage), runs(tmp_path)) == (SQUARES, [2])


def test_every_executor_hands_on_the_arrays_in_order(any_executor, tmp_path):
    assert any_executor(lambda how: mapped(tmp_path, execution=how)) == list(range(7))
    assert computed(tmp_path) == list(range(7))
    stage = stage_in(tmp_path)

    def ahead(how: ExecutionConfig) -> list[str]:
        with shards_ahead(stage, how, threads=1) as wait:
            return [wait(shard) or stage.path(shard).read_text() for shard in range(stage.count)]

    assert any_executor(ahead) == SQUARES


def test_a_setting_belongs_to_an_executor_and_is_refused_with_others():
    others = {"index": 1, "count": 9, "wait": 1.0, "address": "auto", "workers": 2, "cpus": 2.0, "gpus": 1.0}
    assert others.keys() == {name for host in HOSTS.values() for name in host.settings}
    assert others.keys() == {field.name for field in fields(ExecutionConfig)} - {"kind", "shard"}
    for kind, host in HOSTS.items():
        changed = {name: value for name, value in others.items() if name in host.settings}
        assert ExecutionConfig(kind, **changed).kind == kind
        for name in others.keys() - changed.keys():
            with pytest.raises(ConfigError, match=rf"^execution\.{name} does nothing with execution={kind}: leave it out$"):
                ExecutionConfig(kind, **changed, **{name: others[name]})


def test_an_executor_looks_at_all_its_settings(any_executor, tmp_path):
    if not any_executor.here:
        pytest.skip("it is joined already")
    seen = set()

    class Watched(ExecutionConfig):
        def __getattribute__(self, name):
            seen.add(name)
            return super().__getattribute__(name)

    def work(how: ExecutionConfig) -> None:
        watched = Watched(**{one.name: getattr(how, one.name) for one in fields(how)})
        seen.clear()
        with shards_ahead(stage, watched, threads=1) as wait:
            wait(0)
        run_shards(stage, watched, threads=1)

    stage = Stage(tmp_path / "squares", "squares", 7, ".txt", Squares(tmp_path, heavy=True), "one")
    stage.begin()
    any_executor(work)
    assert {*HOSTS[any_executor.kind].settings} <= seen


@pytest.fixture
def in_turn(monkeypatch):
    """A cluster of one worker, which rests after each shard; the shards that it fails are in the list."""
    failing = []

    def work(stage, todo, *_):
        for shard in todo:
            yield (
                shard,
                {"error": f"{shard} is broken", "fatal": True}
                if shard in failing
                else attempt(stage, shard, stage.job.open),
            )
            time.sleep(0.1)

    monkeypatch.setattr(run_module, "cluster", nullcontext)
    monkeypatch.setattr(run_module, "on_cluster", work)
    return failing


def test_a_block_goes_on_with_what_a_cluster_has_done(in_turn, tmp_path):
    stage = stage_in(tmp_path)
    with shards_ahead(stage, ExecutionConfig("ray")) as wait:
        wait(0)
        assert stage.counts(6) is None
        for shard in range(stage.count):
            wait(shard)
            assert stage.counts(shard) is not None


def test_what_is_done_needs_no_cluster(tmp_path, monkeypatch):
    stage = stage_in(tmp_path)
    run_shards(stage)
    monkeypatch.setattr(run_module, "cluster", Mock(side_effect=AssertionError))
    with shards_ahead(stage, ExecutionConfig("ray")) as wait:
        wait(6)
    assert len(runs(tmp_path)) == stage.count


def test_what_a_cluster_fails_is_said_where_it_is_waited_for(in_turn, tmp_path):
    in_turn.append(1)
    with shards_ahead(stage_in(tmp_path), ExecutionConfig("ray")) as wait:
        wait(0)
        with pytest.raises(XsweError, match="1 is broken"):
            wait(1)


def test_a_block_that_fails_calls_off_what_is_not_begun(in_turn, tmp_path):
    stage = stage_in(tmp_path)
    with suppress(KeyError), shards_ahead(stage, ExecutionConfig("ray")) as wait:
        wait(0)
        raise KeyError
    assert stage.counts(6) is None


@given(st.lists(st.sampled_from(["", "a", "猫が寝ている", "x" * 40, "\ufeff", "a\rb"])), st.integers(1, 90), st.booleans())
def test_shards_of_text_hold_each_line_once(tmp_path_factory, lines, size, ended):
    path = tmp_path_factory.mktemp("spans") / "a.txt"
    data = "\n".join(lines) + "\n" * ended
    assume("\n" in data or "\r" not in data)  # else it is refused
    path.write_bytes(data.encode())
    plan, _ = TextPlan.of([str(path)], size)
    whole = [text for block in read_blocks(path) for text in block]
    cut = [text for n in range(plan.count) for block in read_blocks(path, span=plan.shard(n)[1]) for text in block]
    assert cut == whole
    assert plan.count == -(-len(data.encode()) // size)


def test_a_bad_line_of_a_span_is_counted_from_the_beginning(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"fine\n" * 100 + b"\xff\xfe\n" + b"fine\n")
    with pytest.raises(InputError, match=r"a\.txt:101: not UTF-8"):
        list(read_blocks(path, span=(300, 508)))


def test_files_one_after_the_other_and_packed_ones_whole(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"x" * 25)
    (tmp_path / "b.txt.gz").write_bytes(b"y" * 99)
    (tmp_path / "c.txt").write_bytes(b"")
    plan, _ = TextPlan.of([str(tmp_path / name) for name in ("a.txt", "b.txt.gz", "c.txt")], 10)
    assert plan.count == 4
    assert [plan.shard(n)[1] for n in range(4)] == [(0, 8), (8, 16), (16, 25), None]


def test_the_status_tells_rate_and_time_left(tmp_path):
    stage = stage_in(tmp_path)
    for shard in (0, 1):
        stage.do(shard, "opened")
        told = json.loads(stage.side_car(shard).read_text())
        stage.side_car(shard).write_text(json.dumps({**told, "begun": 100.0 + 30 * shard, "seconds": 30.0}))
    (status,) = work_status(tmp_path)
    assert status.rate == pytest.approx(2 / 60)
    assert status.seconds_left == pytest.approx(150)
    assert "2 of 7 shards done, 2 lines, 2.0 shards a minute, 2 min left" in str(status)
    os.utime(stage.folder / "manifest.json", (130.0, 130.0))
    (status,) = work_status(tmp_path)
    assert status.seconds_left is None
    assert " left" not in str(status)
    assert "nobody seems to be at work, and the same command goes on, missing: 2-6" in str(status)


def test_the_status_tells_whether_the_output_is_there(tmp_path):
    assert str(work_status(tmp_path / "a")) == f"no unfinished work; {tmp_path / 'a'} is not there"
    (tmp_path / "a.work").mkdir()
    assert (
        str(work_status(tmp_path / "a")) == f"{tmp_path / 'a'} is not there: its work has begun, and is not in shards yet"
    )
    run_shards(stage_in(tmp_path / "a.work"))
    squares = "squares: 7 of 7 shards done, 7 lines"
    assert str(work_status(tmp_path / "a")) == f"{squares}\n{tmp_path / 'a'} is not there"
    (tmp_path / "a").touch()
    assert str(work_status(tmp_path / "a")) == f"{squares}\n{tmp_path / 'a'} is there"


@dataclass(frozen=True)
class Lengths:
    """Write the length of a file's line; ``after`` is called when a shard is done."""

    file: Path
    after: Callable[[Path, int], None]

    heavy = False

    def open(self) -> list[str]:
        return self.file.read_text().splitlines()

    def run(self, opened: list[str], shard: int, output: Path) -> dict:
        with whole_file(output) as temporary:
            temporary.write_text(str(len(self.file.read_text().splitlines()[shard])))
        self.after(output.parent, shard)
        return {"lines": 1}

    def files(self, output: Path) -> list[Path]:
        return [output]


def lengths(folder: Path, after: Callable[[Path, int], None] = lambda *_: None) -> Stage:
    file = folder / "a.txt"
    if not file.exists():
        file.write_text("".join("x" * n + "\n" for n in range(1, 6)))
    _, inputs = TextPlan.of([str(file)], 1 << 20)
    stage = Stage(folder / "lengths", "lengths", 5, ".txt", Lengths(file, after), "one", inputs)
    stage.begin()
    return stage


@pytest.mark.parametrize("how", [ExecutionConfig(), ExecutionConfig("array", 0, 1)], ids=["local", "array"])
def test_an_input_that_is_written_again_meanwhile_is_noticed(tmp_path, how):
    def rewrite(_: Path, shard: int) -> None:
        if shard == 2:  # as many bytes, others
            (tmp_path / "a.txt").write_text("yyyyy\nyyyy\nyyy\nyy\ny\n")

    with pytest.raises(InputError, match=r"a\.txt: changed while it was read"):
        run_shards(lengths(tmp_path, rewrite), how, threads=1)


@pytest.mark.parametrize("harm", ["shorter", "gone", "flipped", "no record", "two have changed places"])
def test_what_becomes_of_a_shard_during_the_run_is_noticed_at_its_end(tmp_path, harm):
    harmed = []

    def spoil(folder: Path, shard: int) -> None:
        path, record = folder / "000001.txt", folder / "000001.json"
        if shard != 4 or harmed:
            return
        harmed.append(harm)
        if harm == "gone":
            path.unlink()
        elif harm == "no record":
            record.unlink()
        elif harm == "two have changed places":
            other = folder / "000000.txt"
            path.rename(folder / "x")
            other.rename(path)
            (folder / "x").rename(other)
        else:
            path.write_text("" if harm == "shorter" else "7")
            os.utime(path, ns=(0, path.stat().st_mtime_ns + 5))

    stage = lengths(tmp_path, spoil)
    run_shards(stage, threads=1)
    assert harmed == [harm]
    assert [stage.sound(shard).read_text() for shard in range(5)] == list("12345")


def test_a_shard_that_is_always_gone_ends_the_run(tmp_path, monkeypatch):
    done = Stage.do

    def lose(self: Stage, shard: int, opened: object) -> dict:
        counts = done(self, shard, opened)
        (tmp_path / "lengths" / "000001.txt").unlink(missing_ok=True)
        return counts

    monkeypatch.setattr(Stage, "do", lose)
    with pytest.raises(XsweError, match=r"000001\.txt: gone or damaged, again and again"):
        run_shards(lengths(tmp_path), threads=1)


def test_a_flipped_bit_is_noticed_where_a_shard_is_read(tmp_path):
    stage = lengths(tmp_path)
    run_shards(stage, threads=1)
    path, state = stage.path(3), stage.path(3).stat()
    path.write_text("7")
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))  # as where a disk has lost a bit
    with pytest.raises(XsweError, match=r"000003\.txt: gone or damaged since it was written; the same command"):
        stage.sound(3)
    run_shards(stage, threads=1)
    assert stage.sound(3).read_text() == "4"


def test_a_worker_of_another_version_does_nothing(tmp_path):
    stage = replace(lengths(tmp_path), version="0.0.1")
    with pytest.raises(ConfigError, match=r"lengths: planned by xswe 0\.0\.1, and here is .*install the same version"):
        stage.check_version()


def test_tasks_of_an_array_that_do_other_work_are_refused(tmp_path):
    stages = [
        Stage(tmp_path / f"squares-{name}", "squares", 4, ".txt", Squares(tmp_path), name, version=version)
        for name, version in (("one", xswe.__version__), ("two", "0.0.1"))
    ]
    for stage in reversed(stages):
        stage.begin()
    with pytest.raises(
        ConfigError, match=r"squares-two: a task with other settings.*\(of xswe 0\.0\.1\) works on the same"
    ):
        run_shards(stages[0], ExecutionConfig("array", 0, 1))
    assert runs(tmp_path) == []
    run_shards(stages[0])  # nobody else is at work on what this process does alone


@given(st.data())
def test_the_checksum_notices_what_changes_places(tmp_path_factory, data):
    path = tmp_path_factory.getbasetemp() / "rows.npy"
    rows = np.random.default_rng(0).standard_normal((1500, 256)).astype(np.float32)  # of 1.5 MB
    a, b = data.draw(st.lists(st.integers(0, len(rows) - 1), min_size=2, max_size=2, unique=True))
    np.save(path, rows)
    before = file_checksum(path)
    rows[[a, b]] = rows[[b, a]]
    np.save(path, rows)
    assert file_checksum(path) != before


def test_names_of_many_shards_sort_as_the_shards_do(tmp_path):
    for count, first, last in ((7, "000000", "000006"), (10**6, "000000", "999999"), (10**6 + 1, "0000000", "1000000")):
        stage = Stage(tmp_path, "squares", count, ".txt", Squares(tmp_path), "one")
        assert (stage.path(0).name, stage.path(count - 1).name) == (f"{first}.txt", f"{last}.txt")


def test_where_files_cannot_be_locked_work_goes_on_with_a_warning(tmp_path, monkeypatch, caplog):
    def refused(*_: object) -> None:
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr(locks.fcntl, "flock", refused)
    for name in ("one", "two"):
        with work_folder(str(tmp_path / name)) as folder:
            once(folder / "made", "this", lambda place: (place / "a").touch())
    assert f"{tmp_path / 'one.work'}: files cannot be locked there (Function not implemented)" in caplog.text


def test_where_locks_do_nothing_a_folder_is_made_whole_by_whoever_is_first(tmp_path, monkeypatch):
    monkeypatch.setattr(locks.fcntl, "flock", lambda *_: None)
    inside, made = threading.Barrier(2), []
    processes = {0: os.getpid(), 1: os.getppid()}  # both alive, by which two runs name their unfinished folders
    number = threading.local()
    monkeypatch.setattr(files_module.os, "getpid", lambda: processes[getattr(number, "own", 0)])

    def make(place: Path) -> None:
        inside.wait(timeout=20)  # both are at it
        (place / "a").write_text("whole")
        made.append(place)

    def begin(own: int) -> None:
        number.own = own
        once(tmp_path / "made", "this", make)

    both = [threading.Thread(target=begin, args=(own,)) for own in processes]
    for one in both:
        one.start()
    for one in both:
        one.join()
    assert len(set(made)) == 2
    assert is_made(tmp_path / "made", "this")
    assert [path.name for path in tmp_path.iterdir() if not path.name.startswith(".")] == ["made"]


def mapped(folder: Path, fails: int = -1, execution: ExecutionConfig | None = None) -> list[int]:
    stage = Stage(folder / "rows", "rows", 7, ".safetensors", Rows(folder / "log", fails), "one")
    return [int(each["row"].sum()) // 3 for each in map_shards(stage, execution or ExecutionConfig(), 2)]


def computed(folder: Path) -> list[int]:
    log = folder / "log"
    found = sorted(map(int, log.read_text().split())) if log.exists() else []
    log.unlink(missing_ok=True)
    return found


def test_what_is_brief_leaves_no_shards(tmp_path):
    assert mapped(tmp_path) == list(range(7))
    assert not (tmp_path / "rows").exists()


@pytest.mark.parametrize("damage", [False, True])
def test_shards_that_were_kept_are_not_computed_again(tmp_path, monkeypatch, damage):
    monkeypatch.setattr(kept, "BRIEF", 0.0)
    with pytest.raises(InputError, match=r"in\.txt: damaged"):
        mapped(tmp_path, fails=5)
    left = {path.stem for path in (tmp_path / "rows").glob("*.safetensors")}
    assert {f"{shard:06d}" for shard in range(5)} <= left
    computed(tmp_path)
    if damage:
        path = tmp_path / "rows" / "000003.safetensors"
        path.write_bytes(path.read_bytes()[:-8] + b"12345678")
    assert mapped(tmp_path) == list(range(7))
    assert set(computed(tmp_path)) == {*range(7)} - {int(name) for name in left} | ({3} if damage else set())


@pytest.mark.parametrize("damage", [False, True])
def test_a_state_takes_the_place_of_the_shards_that_it_holds(tmp_path, monkeypatch, damage):
    monkeypatch.setattr(kept, "BRIEF", 0.0)
    monkeypatch.setattr(progress, "_CHECKPOINT_SECONDS", 0.0)

    def total(fails: int = -1) -> int:
        stage = Stage(tmp_path / "rows", "rows", 7, ".safetensors", Rows(tmp_path / "log", fails), "one")
        state = {"sum": np.zeros((), np.int64)}
        for each in map_shards(stage, threads=1, state=state):
            state["sum"] += each["row"].sum()
        return int(state["sum"])

    with pytest.raises(InputError):
        total(fails=5)
    assert not list((tmp_path / "rows").glob("00000[0-4].*"))
    assert computed(tmp_path) == [0, 1, 2, 3, 4]
    if damage:
        path = tmp_path / "rows" / "state.safetensors"
        path.write_bytes(path.read_bytes()[:-1] + b"?")
    assert total() == 3 * sum(range(7))
    assert computed(tmp_path) == (list(range(7)) if damage else [5, 6])


def test_others_go_on_from_what_this_process_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(kept, "BRIEF", 0.0)
    assert mapped(tmp_path) == list(range(7))
    computed(tmp_path)
    assert mapped(tmp_path, execution=ExecutionConfig("array", index=0, count=1)) == list(range(7))
    assert computed(tmp_path) == []


class Unshared(Rows):
    """The same, which nobody opens elsewhere."""

    def share(self, opened: None) -> None:
        pytest.fail("each task of an array opens its own")


def test_an_array_has_made_all_shards_when_the_map_is_returned(tmp_path):
    stage = Stage(tmp_path / "rows", "rows", 7, ".safetensors", Unshared(tmp_path / "log"), "one")
    found = map_shards(stage, ExecutionConfig("array", 0, 1), 1)
    assert computed(tmp_path) == list(range(7))
    assert [int(each["row"][0]) for each in found] == list(range(7))
    with pytest.raises(Unfinished):
        map_shards(replace(stage, folder=tmp_path / "other"), ExecutionConfig("array", 0, 2), 1)
    assert computed(tmp_path) == [0, 2, 4, 6]


def test_the_shards_of_other_work_are_refused_before_any_is_made(tmp_path, monkeypatch):
    monkeypatch.setattr(kept, "BRIEF", 0.0)
    assert mapped(tmp_path) == list(range(7))
    computed(tmp_path)
    other = Stage(tmp_path / "rows", "rows", 7, ".safetensors", Rows(tmp_path / "log"), "another")
    with pytest.raises(ConfigError, match="holds the shards of other settings"):
        list(map_shards(other))
    assert computed(tmp_path) == []


def test_of_a_stage_that_is_nowhere_nothing_is_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(kept, "BRIEF", 0.0)
    stage = Stage(NOWHERE / "rows", "rows", 7, ".safetensors", Rows(tmp_path / "log"), "one")
    assert len(list(map_shards(stage))) == 7
    assert [path.name for path in tmp_path.iterdir()] == ["log"]


@pytest.mark.parametrize("opened", [None, Advancing()])
def test_a_bar_is_moved_by_the_job_or_by_the_counts_and_for_what_was_kept(tmp_path, monkeypatch, opened):
    """Three of seven shards are kept; a job that moves the bar itself says twice as much as its counts do."""
    monkeypatch.setattr(kept, "BRIEF", 0.0)
    with pytest.raises(InputError):
        mapped(tmp_path, fails=3)
    for shard in range(4, 7):  # begun by another thread
        (tmp_path / "rows" / f"{shard:06d}.json").unlink(missing_ok=True)
    shown = []

    @contextmanager
    def bar(*told):
        yield SimpleNamespace(update=shown.append)
        assert told == ("rows", 21, "line")

    monkeypatch.setattr(run_module, "bar", bar)
    stage = Stage(tmp_path / "rows", "rows", 7, ".safetensors", Rows(tmp_path / "log"), "one")
    assert len(list(map_shards(stage, threads=2, opened=opened, progress=("line", 21)))) == 7
    assert sorted(filter(None, shown)) == [3] * 3 + [6 if opened else 3] * 4


@pytest.mark.parametrize("brief", [0.0, 5.0])
@pytest.mark.parametrize("kind", ["local", "array"])
def test_arrays_are_made_once_and_kept_if_others_or_a_later_run_need_them(tmp_path, monkeypatch, kind, brief):
    monkeypatch.setattr(kept, "BRIEF", brief)
    made = []

    def make():
        made.append(1)
        return {"a": np.arange(3), "b": np.zeros((0, 2), np.float32)}

    for folder, keeps in ((tmp_path / "x", kind == "array" or not brief), *[(NOWHERE / "x", False)] * (kind == "local")):
        made.clear()
        for _ in range(2):
            found = arrays_once(folder, "this", make, RUNS[kind].tasks[0])
            assert {name: each.tolist() for name, each in found.items()} == {"a": [0, 1, 2], "b": []}
        assert len(made) == (1 if keeps else 2)
        assert set(read_arrays(folder)) == ({"a", "b"} if keeps else set())
