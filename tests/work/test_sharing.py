"""How shards are shared among the workers of a cluster, which is a list here, and which settings say so."""

from __future__ import annotations

import contextlib
import json
from types import SimpleNamespace

import numpy as np
import pytest

from xswe.errors import ConfigError
from xswe.io import files
from xswe.work import cluster as module
from xswe.work.cluster import _finished, _fits, on_cluster
from xswe.work.config import ExecutionConfig
from xswe.work.folder import work_folder
from xswe.work.stage import Job, Stage


class Filling(Job):
    shared = None

    def compute(self, opened, shard):
        return {"a": np.array([shard])}, {"lines": 1}

    def share(self, opened):
        self.shared = opened


def stage_in(folder, count=9, job=None):
    (stage := Stage(folder / "own", "fill", count, ".safetensors", job or Filling(), "own")).begin()
    return stage


@pytest.mark.parametrize(
    ("room", "cpus", "gpus", "fits"),
    [
        ((8.0, 0.0), 1.0, 0.0, 8),
        ((8.0, 0.0), 3.0, 0.0, 2),
        ((1.0, 0.0), 3.0, 0.0, 1),  # at least one
        ((8.0, 3.0), 1.0, 1.0, 3),
        ((2.0, 3.0), 1.0, 0.5, 2),
        ((2.0, 1.0), 0.0, 0.0, 200),
        ((8.0, 0.5), 1.0, 1.0, None),
    ],
)
def test_as_many_workers_as_fit(tmp_path, room, cpus, gpus, fits):
    for on_card, cure in ((True, "set the device to cpu"), (False, "give 0 for none")):
        job = Filling()
        job.on_card = on_card
        stage = stage_in(tmp_path, job=job)
        if fits is None:
            with pytest.raises(ConfigError, match=f"^execution.gpus=1: the cluster has 0.5; {cure}$".replace(".", r"\.")):
                _fits(room, stage, cpus, gpus)
        else:
            assert _fits(room, stage, cpus, gpus) == fits


@pytest.fixture
def cluster(monkeypatch):
    """Workers that do a shard when they are asked for one, the last first, and a note of how many were at work."""
    notes = SimpleNamespace(most=0, asked=[], cancelled=None, rooms=0, found=None, room=(2.0, 0.0))

    class Workers:
        def __init__(self, connection, stage, cpus, gpus):
            assert connection == "joined"
            self.stage, notes.gpus = stage, gpus

        def room(self):
            notes.rooms += 1
            return notes.room

        def submit(self, shard, workers):
            notes.asked.append((shard, workers))
            return f"call {shard}"

        def finished(self, running):
            notes.most = max(notes.most, len(running))
            call = list(running)[-1]
            return call, notes.found or self.stage.do(running[call], "opened")

        def cancel(self, running):
            notes.cancelled = sorted(running.values())

    monkeypatch.setattr(module, "workers_of", lambda kind: Workers)
    monkeypatch.setattr(module, "cluster", lambda execution: contextlib.nullcontext("joined"))
    monkeypatch.setattr(module, "every", lambda seconds: lambda: False)
    return notes


@pytest.mark.parametrize(("workers", "most", "told"), [(None, 4, 2), (3, 3, 2), (1, 1, 1)])  # there is room for two
def test_one_shard_waits_for_each_worker(tmp_path, cluster, workers, most, told):
    stage = stage_in(tmp_path)
    found = dict(on_cluster(stage, iter(range(9)), ExecutionConfig("ray", workers=workers), "opened"))
    assert sorted(found) == list(range(9))
    assert (cluster.most, cluster.asked) == (most, [(shard, told) for shard in range(9)])
    assert (cluster.rooms, cluster.cancelled, stage.job.shared, cluster.gpus) == (1, [], "opened", 0.0)
    assert list(on_cluster(stage, iter(()), ExecutionConfig("ray"), "other")) == []
    assert stage.job.shared == "opened"


def test_what_runs_is_cancelled_by_who_stops_early(tmp_path, cluster):
    work = on_cluster(stage_in(tmp_path), iter(range(9)), ExecutionConfig("ray"), None)
    assert next(work)[0] == 3
    work.close()
    assert cluster.cancelled == [0, 1, 2]


def test_a_heavy_job_has_its_card(tmp_path, cluster):
    cluster.room = (4.0, 4.0)
    for heavy, on_card, gpus, expected in (
        (True, True, 0.0, 1.0),
        (True, False, 0.0, 0.0),
        (True, True, 0.5, 0.5),
        (False, True, 0.5, 0.0),
    ):
        job = Filling()
        job.heavy, job.on_card = heavy, on_card
        list(on_cluster(stage_in(tmp_path, 1, job), iter([0]), ExecutionConfig("ray", gpus=gpus), None))
        assert cluster.gpus == expected


def test_a_worker_that_dies_or_writes_elsewhere_is_told(tmp_path, monkeypatch):
    pauses = []
    monkeypatch.setattr(module.time, "sleep", pauses.append)
    stage, workers = stage_in(tmp_path), SimpleNamespace(finished=lambda running: ("call", answer))
    answer = "killed"
    assert _finished(stage, workers, {"call": 3}) == (3, "killed")
    answer = {"error": "x", "fatal": True}
    assert _finished(stage, workers, {"call": 3}) == (3, answer)
    answer = {"lines": 1}
    with pytest.raises(ConfigError, match=r"000003\.json: a worker wrote it, and it cannot be seen here"):
        _finished(stage, workers, {"call": 3})
    assert pauses == [0.1 * 2**turn for turn in range(8)]
    stage.side_car(3).touch()
    pauses.clear()
    assert (_finished(stage, workers, running := {"call": 3}), running, pauses) == ((3, answer), {}, [])


def test_settings_at_their_bounds(monkeypatch):
    for name in ("SLURM_ARRAY_TASK_ID", "JOB_COMPLETION_INDEX", "SLURM_ARRAY_TASK_COUNT"):
        monkeypatch.delenv(name, raising=False)
    assert ExecutionConfig(shard=1).shard == 1
    assert ExecutionConfig("ray", workers=1, cpus=0.0, gpus=0.0).workers == 1
    assert ExecutionConfig("array", 0, 1, wait=0.0).slice == (0, 1)
    for kind, wrong, said in (
        ("local", {"shard": 0}, "execution.shard=0: give the bytes"),
        ("ray", {"workers": 0}, "execution.workers=0: give at least 1"),
        ("ray", {"cpus": -0.5}, "execution.cpus=-0.5: must be a number, at least 0"),
        ("ray", {"gpus": float("inf")}, "execution.gpus=inf: must be a number"),
        ("array", {"index": 3, "count": 3}, "execution.index=3: must be from 0 to execution.count - 1, which is 2"),
        ("array", {"index": -1, "count": 3}, "execution.index=-1: must be from 0"),
        ("array", {"count": 3}, "execution.index is not set"),
        ("array", {"index": 3}, "execution.count is not set"),
    ):
        with pytest.raises(ConfigError) as raised:
            ExecutionConfig(kind, **wrong)
        assert str(raised.value).startswith(said)
    monkeypatch.setenv("SLURM_ARRAY_TASK_ID", "5")
    assert ExecutionConfig("array", count=9).slice == (5, 9)
    monkeypatch.setenv("SLURM_ARRAY_TASK_STEP", "0")
    assert ExecutionConfig("array", count=9).slice == (5, 9)
    ExecutionConfig().check_names("-", 3)
    for name in ("-", 3, None):
        with pytest.raises(ConfigError, match=r"^execution=array: others read and write the same"):
            ExecutionConfig("array", 0, 1).check_names("a.txt", name)


def test_the_folder_of_unfinished_work_goes_unless_something_is_left(tmp_path, monkeypatch):
    output = str(tmp_path / "a.tsv")
    with work_folder(output) as folder:
        assert folder == tmp_path / "a.tsv.work"
        assert json.loads((folder / "work.json").read_text()) == {"output": output}
    assert not folder.exists()

    def broken(*names):
        with work_folder(output) as folder:
            for name in names:
                (folder / name).touch()
            raise ZeroDivisionError

    for names, stays in (((".hidden",), False), (("state",), True)):
        with pytest.raises(ZeroDivisionError):
            broken(*names)
        assert folder.exists() == stays
    with work_folder(output, keep=True) as folder:
        assert (folder / "state").exists()  # it goes on
    assert folder.exists()
    for name in ("work.json", "state"):
        (folder / name).unlink()
    (folder / ".lock").touch()
    with work_folder(output):
        pass
    folder.mkdir()
    (folder / "own").touch()
    with pytest.raises(ConfigError, match="exists and is no work folder of mine"):
        work_folder(output).__enter__()
    with work_folder("-") as folder:
        assert files.is_special(folder) is False
        assert folder.name.startswith("xswe-mine-")
    with work_folder(output, work=tmp_path / "w") as folder:
        assert folder == tmp_path / "w"
