"""What every cluster does: one that is added is tested by its entry in `RUNS` of tests/clusters.py."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from tests.clusters import BUGS, SQUARES, Locked, Planned, Threads, made, runs, stage_in, workers_in
from xswe.errors import ConfigError, DependencyError, XsweError
from xswe.io import parallel
from xswe.search.lists import SearchConfig
from xswe.search.shard import Search, SearchJob
from xswe.work import cluster as cluster_module
from xswe.work.cluster import cluster, on_cluster, one_cluster, workers_of
from xswe.work.config import HOSTS, ExecutionConfig
from xswe.work.plan import TextPlan
from xswe.work.run import run_shards
from xswe.work.stage import Stage

HEAVY = pytest.mark.parametrize("heavy", [False, True])


@pytest.fixture
def how(request):
    """The settings of the cluster that the test asks for."""
    kind = {"any_cluster", "cluster_here"} & {*request.fixturenames}
    return request.getfixturevalue(*kind).tasks[0]


@pytest.fixture
def fitting(any_cluster, monkeypatch):
    """How many workers fitted into the cluster, each time it was asked: as many as it has processors."""
    fits, found = cluster_module._fits, []
    monkeypatch.setattr(cluster_module, "_fits", lambda *given: found.append(fits(*given)) or found[-1])
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    monkeypatch.setattr(parallel, "_processors", lambda: 3)  # where this machine is the cluster
    yield found
    assert {*found} == {4 if any_cluster.is_imitated else 2 if HOSTS[any_cluster.kind].library else 3}


@HEAVY
def test_a_worker_that_dies_is_replaced(any_cluster, how, tmp_path, heavy):
    (tmp_path / "trouble-5").write_text("deadly")  # kills the worker, once
    stage = stage_in(tmp_path, heavy=heavy)
    run_shards(stage, how)
    assert made(stage) == SQUARES
    stage.path(3).unlink()
    runs(tmp_path)
    run_shards(stage, how)
    assert made(stage) == SQUARES
    assert runs(tmp_path) == [3]


def test_a_call_of_a_worker_that_has_died_fails_like_any_other(any_cluster, how, tmp_path):
    with cluster(how) as connection:
        workers = workers_of(how.kind)(connection, stage_in(tmp_path, heavy=True), 1.0, 0.0)
        worker = workers.start()
        workers.stop(worker)
        assert isinstance(workers.wait([workers.call(worker, 0)])[1], str)


@HEAVY
def test_a_shard_that_kills_each_of_its_workers_is_named_and_the_others_are_done(
    any_cluster, how, tmp_path, heavy, monkeypatch
):
    monkeypatch.setattr(cluster_module, "DEATHS", 2)
    (tmp_path / "trouble-5").write_text("always deadly")
    stage = stage_in(tmp_path, heavy=heavy)
    with pytest.raises(XsweError, match=r"^squares, shard 5: its worker died again and again \(.+\) \(1 of 7 shards"):
        run_shards(stage, replace(how, workers=1))
    assert [shard for shard in range(7) if stage.counts(shard) is None] == [5]
    assert runs(tmp_path).count(5) == 3


@HEAVY
@pytest.mark.parametrize(
    ("bug", "error", "said"),
    list(
        zip(
            BUGS,
            (ZeroDivisionError, ValueError, RuntimeError),
            ("planted", "planted", "Unreadable: planted 5"),
            strict=True,
        )
    ),
)
def test_an_error_of_the_code_is_raised_as_it_is_or_described(any_cluster, how, tmp_path, heavy, bug, error, said):
    (tmp_path / "trouble-5").write_text(bug)
    with pytest.raises(error, match=said):
        run_shards(stage_in(tmp_path, heavy=heavy), how)


@pytest.mark.parametrize("cpus", [1, 2])
def test_a_worker_uses_a_thread_for_each_of_its_processors(any_cluster, how, tmp_path, monkeypatch, cpus):
    """Else as many workers as there are processors use all of them each."""
    if any_cluster.is_imitated:
        pytest.skip("its workers are in this process")
    if HOSTS[how.kind].library:  # whose machines began with the variable of now
        cpus = min(cpus, int(os.environ.get("OMP_NUM_THREADS", cpus)))
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    stage = stage_in(tmp_path, heavy=True, kind=Threads)
    run_shards(stage, replace(how, cpus=float(cpus)))
    assert [stage.counts(shard)["lines"] for shard in range(7)] == [cpus] * 7


@HEAVY
def test_a_worker_of_another_version_is_refused(any_cluster, how, tmp_path, heavy):
    with pytest.raises(XsweError, match=r"planned by xswe 0\.0\.1, and here is"):
        run_shards(replace(stage_in(tmp_path, heavy=heavy), version="0.0.1"), how)
    assert runs(tmp_path) == []


@pytest.mark.parametrize("seen", [True, False])
def test_the_file_of_a_shard_may_be_seen_late(any_cluster, how, tmp_path, monkeypatch, seen):
    stage, kind, slept = stage_in(tmp_path), workers_of(how.kind), []
    hidden, finished = tmp_path / "hidden", kind.finished

    def away(self, calls):
        call, found = finished(self, calls)
        stage.side_car(calls[call]).rename(hidden)
        slept[:] = [calls[call]]
        return call, found

    def pause(_):
        if seen and len(slept) == 2 and hidden.exists():
            hidden.rename(stage.side_car(slept[0]))
        slept.append(0.0)

    monkeypatch.setattr(kind, "finished", away)
    monkeypatch.setattr(cluster_module.time, "sleep", pause)
    if seen:
        run_shards(stage, how)
        assert made(stage) == SQUARES
    else:
        with pytest.raises(ConfigError, match=r"a worker wrote it, and it cannot be seen here"):
            run_shards(stage, how)


def test_an_executor_that_gives_no_cards_has_none(cluster_here, how, tmp_path):
    with cluster(how) as connection:
        processors, cards = workers_of(how.kind)(connection, stage_in(tmp_path), 1.0, 0.0).room()
    assert processors >= 1
    assert not cards or "gpus" in HOSTS[how.kind].settings


def test_the_shard_that_is_done_first_is_found_first(any_cluster, how, tmp_path):
    if any_cluster.is_imitated:
        pytest.skip("its workers are in this process")
    (tmp_path / "trouble-0").write_text("slow")
    stage = stage_in(tmp_path, heavy=True)
    with cluster(how):
        found = [shard for shard, _ in on_cluster(stage, iter(range(7)), replace(how, workers=2), None)]
    assert sorted(found) == [*range(7)]
    assert found[0] != 0


def test_a_card_that_no_machine_has_is_refused(any_cluster, how, tmp_path):
    any_cluster.takes("gpus")
    with pytest.raises(ConfigError, match=r"execution\.gpus=1: the cluster has 0; give 0 for none$"):
        run_shards(stage_in(tmp_path, heavy=True), replace(how, gpus=1.0))
    assert runs(tmp_path) == []


@pytest.mark.parametrize(("device", "gpus", "asked"), [("cpu", 1.0, 0.0), ("cuda", 0.0, 1.0), ("cuda", 0.5, 0.5)])
def test_a_search_on_cards_asks_for_one_a_worker(cluster_here, how, tmp_path, monkeypatch, device, gpus, asked):
    cluster_here.takes("cpus", "gpus")
    if not cluster_here.is_imitated:
        pytest.skip("its cards are those of this machine")
    job = SearchJob(Search((), (1, 1), False, 1, SearchConfig(method="exact", device=device), tmp_path))
    stage, how = Stage(tmp_path, "tiles", 9, ".safetensors", job, "one"), replace(how, gpus=gpus, cpus=0.5)
    cluster_here.cluster.cards = 2
    monkeypatch.setattr(SearchJob, "open", lambda _: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        run_shards(stage, how)
    assert cluster_here.cluster.asked == (0.5, asked)
    cluster_here.cluster.cards = 0
    if asked:
        with pytest.raises(ConfigError, match=rf"execution.gpus={asked:g}: the cluster has 0; set the device to cpu"):
            run_shards(stage, how)


@HEAVY
@pytest.mark.parametrize("workers", [None, 2])
def test_no_more_shards_are_under_way_than_there_is_room_for(
    any_cluster, how, tmp_path, monkeypatch, fitting, heavy, workers
):
    stage, kind, most = stage_in(tmp_path, 20, heavy=heavy), workers_of(how.kind), []
    finished = kind.finished

    def counted(self, calls):
        most.append(len(calls))
        return finished(self, calls)

    monkeypatch.setattr(kind, "finished", counted)
    run_shards(stage, replace(how, workers=workers))
    assert max(most) == (workers or 2 * fitting[0])
    assert made(stage) == [str(n**2) for n in range(20)]


@HEAVY
def test_no_worker_outlives_the_cluster_or_its_heavy_job(any_cluster, how, tmp_path, fitting, heavy):
    stage = stage_in(tmp_path, 20, heavy=heavy, kind=Locked)

    def all_gone():
        for _ in range(50):
            if not workers_in(tmp_path)[1]:
                return True
            time.sleep(0.1)
        return False

    with cluster(how):
        assert len([*on_cluster(stage, iter(range(20)), how, None)]) == 20
        if heavy:
            assert all_gone()
            assert workers_in(tmp_path)[0] == fitting[0]
    if any_cluster.here:  # another is that of other tests, too
        assert all_gone()


BEGUN = """import json, sys
from pathlib import Path
from tests.clusters import Locked, stage_in
from xswe.work.config import ExecutionConfig
from xswe.work.run import run_shards
folder, heavy, how = json.loads(sys.argv[1])
run_shards(stage_in(Path(folder), 20, heavy=heavy, kind=Locked), ExecutionConfig(**how))
"""


@HEAVY
@pytest.mark.parametrize("address", [None, "local"])
def test_no_worker_outlives_a_process_that_is_killed(any_cluster, how, tmp_path, heavy, address):
    if any_cluster.is_imitated:
        pytest.skip("its workers are in this process")
    if address is not None:
        any_cluster.takes("address")
    for shard in range(20):
        (tmp_path / f"trouble-{shard}").write_text("endless")
    script = tmp_path / "begun.py"  # which a worker must not run again
    script.write_text(BEGUN)
    given, root = json.dumps([str(tmp_path), heavy, asdict(replace(how, address=address))]), Path(__file__).parents[2]
    with subprocess.Popen(
        [sys.executable, str(script), given], cwd=root, env={**os.environ, "PYTHONPATH": str(root)}
    ) as begun:
        while not workers_in(tmp_path)[1]:
            assert begun.poll() is None
            time.sleep(0.05)
        begun.kill()
    deadline = time.monotonic() + 20
    while workers_in(tmp_path)[1] and time.monotonic() < deadline:
        time.sleep(0.1)
    opened = workers_in(tmp_path)[0]
    time.sleep(2.0)  # in which another could take the next shard
    assert workers_in(tmp_path) == (opened, 0)


@HEAVY
def test_more_workers_than_fit_into_the_cluster_are_not_waited_for(any_cluster, how, tmp_path, heavy):
    stage = stage_in(tmp_path, 20, heavy=heavy)
    run_shards(stage, replace(how, workers=8))
    assert made(stage) == [str(n**2) for n in range(20)]


@HEAVY
def test_what_is_not_begun_is_called_off(any_cluster, how, tmp_path, fitting, heavy):
    for shard in range(20):  # of some that are under way, none ends by itself
        (tmp_path / f"trouble-{shard}").write_text("endless" if shard % 2 else "slow")
    stage = stage_in(tmp_path, 20, heavy=heavy)
    with cluster(how):
        work = on_cluster(stage, iter(range(20)), replace(how, workers=18), None)
        next(work)  # one is done, some run, and most of 18 wait
        work.close()
        any_cluster.finish()
        assert len(runs(tmp_path)) <= 1 + 2 * fitting[0]  # one may begin beside each that runs, until it is cancelled, too
        for path in tmp_path.glob("trouble-*"):
            path.unlink()
        run_shards(stage, how)
    assert made(stage) == [str(n**2) for n in range(20)]


@HEAVY
def test_a_plan_of_many_files_is_sent_once_or_to_each_worker(any_cluster, how, tmp_path, monkeypatch, fitting, heavy):
    plan = TextPlan(tuple(f"/shared/corpus/{number}.txt" for number in range(100_000)), (1,) * 100_000, 1)
    monkeypatch.setattr(Planned, "heavy", heavy)
    monkeypatch.setattr(Planned, "sent", [])
    stage = Stage(tmp_path / "s", "clean", 9, ".safetensors", Planned(plan), "one")
    stage.begin()
    run_shards(stage, how)
    assert len(Planned.sent) == (1 if HOSTS[how.kind].library else fitting[0])
    assert [int(stage.load(shard)["row"][0]) for shard in range(9)] == [*range(9)]


def test_the_stages_of_a_block_join_a_cluster_once(cluster_here, how, monkeypatch):
    states, kind = [], workers_of(how.kind)
    join = kind.join

    class Noted:
        def __init__(self, how):
            self.joined = join(how)

        def __enter__(self):
            states.append("joined")
            return self.joined.__enter__()

        def __exit__(self, *given):
            states.append("left")
            return self.joined.__exit__(*given)

    monkeypatch.setattr(kind, "join", Noted)
    for _ in range(2):
        with cluster(how):
            pass
    assert states == ["joined", "left", "joined", "left"]
    states.clear()
    with one_cluster():
        assert not states
        for _ in range(2):
            with one_cluster(), cluster(how) as first, cluster(how) as again:
                assert first is again
    assert states == ["joined", "left"]


def test_a_cluster_that_this_process_is_part_of_is_not_left(any_cluster, how, tmp_path):
    stage = stage_in(tmp_path)
    with workers_of(how.kind).join(how):
        run_shards(stage, how)
        stage.path(3).unlink()
        run_shards(stage, how)
    assert made(stage) == SQUARES


def test_a_cluster_is_joined_at_the_address_in_the_settings(cluster_here):
    cluster_here.takes("address")
    with cluster(ExecutionConfig(cluster_here.kind, address="head.example:6379")):
        assert cluster_here.cluster.address == "head.example:6379"


def test_where_no_cluster_answers_one_is_begun_here_unless_it_was_named(cluster_here, monkeypatch):
    cluster_here.takes("address")
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    cluster_here.cluster.silent = ("auto", "head.example:6379")
    for address in (None, "local"):
        with cluster(ExecutionConfig(cluster_here.kind, address=address)):
            assert cluster_here.cluster.address == "local"
    for address in ("auto", "head.example:6379"):
        with (
            pytest.raises(ConfigError, match=rf"^execution\.address={address}: no cluster answers \(timed out\); "),
            cluster(ExecutionConfig(cluster_here.kind, address=address)),
        ):
            pass


@pytest.mark.parametrize("kind", [kind for kind, host in HOSTS.items() if host.library])
def test_a_cluster_whose_library_is_missing_says_what_to_install(kind, monkeypatch):
    monkeypatch.setitem(sys.modules, HOSTS[kind].library, None)
    with pytest.raises(DependencyError, match=rf"execution={kind} needs .*pip install"):
        cluster(ExecutionConfig(kind)).__enter__()
