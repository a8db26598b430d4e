"""Shards in parts, aggregates over records, and failures that pass."""

from __future__ import annotations

import errno
import json
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from xswe.errors import InputError, XsweError
from xswe.work import gather as gather_module
from xswe.work import stage as stage_module
from xswe.work.config import LOCAL, ExecutionConfig
from xswe.work.gather import GatherJob, gather
from xswe.work.parts import BEGINNING, PARTS, PartsJob, parts_ahead
from xswe.work.stage import Stage, attempt, patiently

ARRAY = ExecutionConfig("array", 0, 1)
COUNTS = (2, 0, 3)  # parts of each shard


@dataclass(frozen=True)
class Numbers(PartsJob):
    def open(self):
        return 10

    def parts(self, opened, shard):
        for number in range(COUNTS[shard]):
            yield lambda number=number: {
                "rows": np.full((number + 1, 2), opened * shard + number, np.int32),
                "one": np.array([0.5], np.float64),
            }


def stage_of(folder, job, suffix=PARTS):
    return Stage(folder, "numbers", len(COUNTS), suffix, job, "own")


EVERY = [((shard, number + 1), 10 * shard + number) for shard, count in enumerate(COUNTS) for number in range(count)]


@pytest.mark.parametrize("how", [LOCAL, ARRAY], ids=["local", "array"])
@pytest.mark.parametrize("threads", [1, 2])
def test_parts_come_in_order_from_any_place_on(tmp_path, how, threads):
    for begin in (BEGINNING, (0, 1), (0, 2), (1, 0), (2, 1), (2, 3)):
        with parts_ahead(stage_of(tmp_path, Numbers()), how, threads) as parts:
            found = list(parts(begin))
        assert [(place, int(part["rows"][0, 0])) for place, part in found] == [one for one in EVERY if one[0] > begin]
        for (_, number), part in found:
            assert (part["rows"].shape, part["rows"].dtype, part["one"].tolist()) == ((number, 2), np.int32, [0.5])
    assert (tmp_path / "manifest.json").exists() == (how is ARRAY)
    if how is ARRAY:
        assert stage_of(tmp_path, Numbers()).counts(2) == {"lines": 1 + 2 + 3}


@pytest.mark.parametrize("harm", ["flipped", "shorter", "a part less", "gone"])
def test_damage_of_a_part_is_noticed_where_it_is_read(tmp_path, harm):
    stage = stage_of(tmp_path, Numbers())
    with parts_ahead(stage, ARRAY, 1) as parts:
        whole = [part["rows"].tolist() for _, part in parts(BEGINNING)]
        path, state = stage.path(2), stage.path(2).stat()
        data = path.read_bytes()
        place = data.rindex(b"{")
        changed = {
            "flipped": data[:-9] + bytes([data[-9] ^ 1]) + data[-8:],
            "shorter": data[:-1],
            "a part less": data[:place],
        }
        path.unlink()
        if harm in changed:
            path.write_bytes(changed[harm])
            os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
        found = []
        with pytest.raises(XsweError, match=r"000002\.parts: gone or damaged since it was written"):
            found.extend(part["rows"].tolist() for _, part in parts(BEGINNING))
        assert found == whole[: len(found)]
        assert len(found) == (2 if harm == "gone" else 4)
    assert not stage.side_car(2).exists()  # to be made again


class Sum:
    """The sum of numbers, and how many there were."""

    def __init__(self):
        self.done = self.total = 0

    def read(self, records):
        for number, record in enumerate(records):
            if number >= self.done:
                self.done, self.total = self.done + 1, self.total + record
                yield 1

    def merge(self, part):
        self.done, self.total = self.done + part.done, self.total + part.total

    def save(self, path, identity):
        Path(path).write_text(json.dumps([identity, self.done, self.total]))

    def restore(self, path, identity):
        if Path(path).exists() and (found := json.loads(Path(path).read_text()))[0] == identity:
            _, self.done, self.total = found


@dataclass(frozen=True)
class Adding(GatherJob):
    def open(self):
        return 1

    def records(self, opened, shard):
        return range(opened, shard + 3)

    def empty(self, opened):
        return Sum()


@pytest.mark.parametrize("how", [LOCAL, ARRAY], ids=["local", "array"])
def test_an_aggregate_is_the_same_in_one_stream_and_by_shards(tmp_path, how, monkeypatch):
    monkeypatch.setattr(gather_module, "every", lambda: lambda: True)
    stage, found = stage_of(tmp_path, Adding(), ".json2"), Sum()
    gather(stage, found, how, 1, opened=1, unit="line")
    assert (found.done, found.total) == (2 + 3 + 4, 3 + 6 + 10)
    if how is LOCAL:  # the state of a killed run
        (tmp_path / "state.safetensors").write_text(json.dumps(["own", 4, 100]))
        gather(stage, again := Sum(), how, opened=1, unit="line")
        assert (again.done, again.total) == (9, 100 + 3 + (1 + 2 + 3 + 4))  # all but the first four
    else:
        assert [stage.counts(shard) for shard in range(3)] == [{"lines": 2}, {"lines": 3}, {"lines": 4}]


def test_what_fails_now_and_then_is_tried_again(monkeypatch, caplog):
    pauses = []
    monkeypatch.setattr(stage_module.time, "sleep", pauses.append)

    def failing(times, number=errno.EIO):
        left = [times]

        def work():
            if left[0]:
                left[0] -= 1
                raise OSError(number, "lost")
            return "done"

        return work

    retries = stage_module.RETRIES
    assert patiently("a", failing(retries)) == "done"
    assert pauses == [stage_module._PAUSE * 2**turn for turn in range(retries)]
    assert len(caplog.messages) == retries
    with pytest.raises(OSError, match="lost"):
        patiently("a", failing(retries + 1))
    pauses.clear()
    with pytest.raises(OSError, match="lost"):
        patiently("a", failing(1, errno.ENOSPC))
    assert pauses == []


@pytest.mark.parametrize(
    ("error", "said", "fatal"),
    [
        (InputError("a.txt", "no text", "x"), "a.txt: no text; x", False),
        (XsweError("no\n model"), "no model", True),
        (MemoryError(), "MemoryError", True),
        (OSError(errno.ENOSPC, "No space", "b.txt"), "b.txt: No space", True),
        (OSError("8 requested and 4 written"), f"{{folder}}: {os.strerror(errno.ENOSPC)}", True),
    ],
)
def test_a_failure_is_recorded_and_may_end_all(tmp_path, error, said, fatal):
    class Failing(Numbers):
        def run(self, opened, shard, output):
            raise error

    stage = stage_of(tmp_path, Failing())
    found = attempt(stage, 1, lambda: 10)
    assert (found["error"], found["fatal"]) == (said.format(folder=tmp_path), fatal)
    assert json.loads(stage.failure(1).read_text()) == found
    assert stage_of(tmp_path, Numbers()).do(1, 10) == {"lines": 0}
    assert not stage.failure(1).exists()
