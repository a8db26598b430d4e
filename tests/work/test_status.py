"""What is said of long work."""

from __future__ import annotations

from xswe.work.status import StageStatus


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
