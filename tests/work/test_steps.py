"""Work in two steps: alone or in shards, whole or continued, it gives the same."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

import numpy as np
import pytest

from xswe.work import steps as module
from xswe.work.config import LOCAL, ExecutionConfig
from xswe.work.steps import TwoSteps, two_steps

TEXT = [[5, 1, 4], [2], [], [7, 7], [3, 9, 8, 6]]  # blocks of numbers


@dataclass(frozen=True)
class Running(TwoSteps):
    """The running sum of all squares up to each number, and the number."""

    shards: tuple[int, ...] = (0, 2, 3, 5)  # the first block of each
    seen: list = field(default_factory=list)

    def open(self):
        return "opened"

    def blocks(self, shard):
        return TEXT if shard is None else TEXT[self.shards[shard] : self.shards[shard + 1]]

    def first(self, opened, block):
        assert opened == "opened"
        return {"squares": np.array([number**2 for number in block], np.int64)}

    def fold(self, opened):
        total = [0]

        def fold(arrays):
            sums = total[0] + np.cumsum(arrays["squares"])
            total[0] = int(sums[-1]) if len(sums) else total[0]
            return sums

        return fold

    def second(self, opened, block, folded):
        self.seen.append(list(block))
        return {"numbers": np.array(block, np.int64), "sums": folded}


def joined(found):
    found = list(found)
    return {name: np.concatenate([part[name] for part in found if part]).tolist() for name in ("numbers", "sums")}


NUMBERS = [number for block in TEXT for number in block]
EXPECTED = {"numbers": NUMBERS, "sums": np.cumsum(np.square(NUMBERS)).tolist()}


@pytest.mark.parametrize("execution", [LOCAL, ExecutionConfig("array", 0, 1)], ids=["local", "array"])
@pytest.mark.parametrize("threads", [1, 2])
def test_the_fold_goes_over_all_blocks_in_order(tmp_path, execution, threads):
    for folder in (None, tmp_path):
        steps = Running()
        assert (
            joined(two_steps(steps, folder, "own", shards=3, execution=execution, threads=threads, opened="opened"))
            == EXPECTED
        )
        assert sorted(steps.seen) == sorted(TEXT)


def test_a_shard_may_have_no_blocks(tmp_path):
    steps, how = Running((0, 2, 2, 5)), ExecutionConfig("array", 0, 1)
    assert joined(two_steps(steps, tmp_path, "own", shards=3, execution=how, threads=1, opened="opened")) == EXPECTED
    for name in steps.names[:2]:
        records = [json.loads(path.read_text()) for path in sorted((tmp_path / f"{name}-own").glob("00*.json"))]
        assert [record["counts"] for record in records] == [{"lines": 4}, {"lines": 0}, {"lines": 6}]
        assert all(0 <= record["seconds"] < 60 for record in records)


def test_what_was_saved_is_folded_again_and_not_done_again(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "every", lambda seconds: lambda: True)

    def begin(steps):
        return two_steps(steps, tmp_path, "own", execution=LOCAL, threads=1, opened="opened")

    killed = begin(Running())
    assert [next(killed)["numbers"].tolist() for _ in range(2)] == TEXT[:2]
    killed.close()
    again = Running()
    assert joined(begin(again)) == EXPECTED
    assert again.seen == TEXT[3:]  # the empty block has no records to be done
    finished = Running()
    assert joined(begin(finished)) == EXPECTED
    assert finished.seen == []
    other = Running()
    assert joined(two_steps(other, tmp_path, "other", execution=LOCAL, threads=1, opened="opened")) == EXPECTED
    assert other.seen == list(filter(None, TEXT))


def test_brief_work_saves_nothing(tmp_path):
    assert joined(two_steps(Running(), tmp_path, "own", execution=LOCAL, threads=1, opened="opened")) == EXPECTED
    assert not list(tmp_path.rglob("*.safetensors"))
