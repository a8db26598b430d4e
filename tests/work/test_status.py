"""What is said of long work."""

from __future__ import annotations

import json
import os

import pytest

from xswe.work import status as module
from xswe.work.status import StageStatus, stage_status, work_status


def test_what_is_done_and_how_long_the_rest_takes():
    def told(**further):
        usual = {"shards": 1200, "done": 600, "running": 0, "failed": {}, "lines": 0, "rate": 0.0}
        return str(StageStatus("encode", **usual | further))

    assert told() == "encode: 600 of 1,200 shards done"
    assert told(running=2, lines=60_000) == "encode: 600 of 1,200 shards done, 2 running, 60,000 lines"
    times = {10.0: "60 s", 6.1: "98 s", 6.0: "2 min", 0.101: "99 min", 0.1: "1.7 h", 0.01: "16.7 h"}
    for rate, left in times.items():
        assert told(rate=rate).endswith(f"{60 * rate:,.1f} shards a minute, {left} left")
    assert told(done=1200, rate=1.0) == "encode: 1,200 of 1,200 shards done"
    failed = told(failed={5: "full", 3: "lost", 4: "lost", 9: "lost"}).splitlines()
    assert failed == ["encode: 600 of 1,200 shards done, 4 failed", "  shard 3: lost", "  shard 4: lost", "  shard 5: full"]


def test_of_idle_work_is_said_what_is_missing():
    numbers = ",".join(str(10 + 2 * k) for k in range(20))  # 59 characters
    for missing, shown in ((numbers, numbers), (f"{numbers},", f"{numbers},"), (f"{numbers},7", f"{numbers},…")):
        found = StageStatus("encode", 100, 80, 0, {}, 0, 0.5, 700.0, missing)
        assert found.seconds_left is None
        assert str(found) == (
            "encode: 80 of 100 shards done, none for 12 min: nobody seems to be at work, and the same command goes on, "
            f"missing: {shown}"
        )


def test_the_time_left_is_that_of_the_rate():
    assert StageStatus("encode", 100, 80, 1, {}, 0, 0.5).seconds_left == 40
    assert StageStatus("encode", 100, 80, 1, {}, 0, 0.0).seconds_left is None
    assert StageStatus("encode", 100, 100, 0, {}, 0, 0.0).seconds_left == 0


@pytest.fixture
def stage(tmp_path, monkeypatch):
    """Return what writes the records of a stage of six shards at the second 1,000, and what gives its status at another."""
    now = [1000.0]
    monkeypatch.setattr(module.time, "time", lambda: now[0])

    def write(name, content, second=1000.0):
        (tmp_path / name).write_text(json.dumps(content), "utf-8")
        os.utime(tmp_path / name, (second, second))

    def at(second):
        now[0] = second
        return stage_status(tmp_path)

    write("manifest.json", {"identity": "own", "stage": "encode", "shards": 6})
    return write, at


def record(begun, seconds, lines, identity="own"):
    return {"identity": identity, "begun": begun, "seconds": seconds, "counts": {"lines": lines}}


def test_the_status_is_read_from_the_files_of_a_stage(stage):
    write, at = stage
    write("000000.json", record(1000.0, 10.0, 5))
    write("000001.json", record(1005.0, 15.0, 7))
    write("000002.json", record(1010.0, 30.0, 9, "other"))  # of other settings
    write("000003.failed.json", {"error": "lost"})
    write("000004.failed.json", {})
    write(".000005.x.tmp", {}, 1010.0)
    found = at(1030.0)
    assert found == StageStatus("encode", 6, 2, 1, {3: "lost", 4: "unknown"}, 12, 2 / 20, 0.0, "2-4")
    assert found.seconds_left == 40.0
    assert (at(1609.9).running, at(1610.0).running) == (1, 0)  # nothing was written for ten minutes


@pytest.mark.parametrize(
    ("shards", "patience"), [([], 600.0), ([(1000.0, 10.0)], 90.0), ([(1000.0, 10.0), (1000.0, 40.0)], 180.0)]
)
def test_nobody_seems_to_be_at_work_after_a_while(stage, shards, patience):
    write, at = stage
    last = 1000.0
    for number, (begun, seconds) in enumerate(shards):
        write(f"{number:06d}.json", record(begun, seconds, 1))
        last = max(last, begun + seconds)
    assert at(last + patience).idle == 0
    assert at(last + patience + 0.5).idle == pytest.approx(patience + 0.5)
    for number in range(6):
        write(f"{number:06d}.json", record(1000.0, 1.0, 1))
    assert at(9999.0).idle == 0  # all is done
    assert (at(9999.0).done, at(9999.0).missing) == (6, "")


def test_the_rate_is_that_of_the_latest_shards(stage, monkeypatch):
    write, at = stage
    monkeypatch.setattr(module, "_RECENT", 2)
    for number, begun in enumerate((1000.0, 1050.0, 1052.0)):
        write(f"{number:06d}.json", record(begun, 2.0, 1))
    assert at(1060.0).rate == 2 / 4


def test_the_stages_of_an_output_are_listed_as_they_began(tmp_path):
    output = tmp_path / "a.npy"
    assert str(work_status(output)) == f"no unfinished work; {output} is not there"
    for number, name in enumerate(("second", "first")):
        (folder := tmp_path / "a.npy.work" / name).mkdir(parents=True)
        (folder / "manifest.json").write_text(json.dumps({"identity": "own", "stage": name, "shards": 3}), "utf-8")
        os.utime(folder / "manifest.json", ns=(10**18 - number, 10**18 - number))
    found = work_status(output)
    assert [one.name for one in found] == ["first", "second"]
    assert str(found).splitlines()[-1] == f"{output} is not there"
    assert next(iter(found.records()))[:5] == ("first", 3, 0, 0, "{}")
    assert [one.name for one in work_status(tmp_path / "a.npy.work" / "first" / "*.npy")] == ["first"]
