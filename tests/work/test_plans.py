"""How a text is cut into shards, what is kept of unfinished work, and copies of what can be read only once."""

from __future__ import annotations

import io
import json
import sys
from itertools import pairwise
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xswe.errors import ConfigError, InputError
from xswe.work import folder as folders
from xswe.work import kept
from xswe.work.config import LOCAL, ExecutionConfig
from xswe.work.folder import pipes_spooled, remove_unheld, spooled
from xswe.work.plan import TextPlan, ranges


@given(
    sizes=st.lists(st.none() | st.integers(0, 40), min_size=1, max_size=4),
    most=st.integers(1, 12),
    align=st.sampled_from([1, 4]),
)
def test_shards_follow_each_other_and_none_is_too_large(sizes, most, align):
    plan = TextPlan(tuple(f"{number}.txt" for number in range(len(sizes))), tuple(sizes), most, align)
    listed = [plan.place(number) for number in range(plan.count)]
    for file, size in enumerate(sizes):
        own = [span for place, span in listed if place == file]
        assert [listed[number] for number in plan.shards_of(file)] == [(file, span) for span in own]
        if size is None:
            assert own == [None]
            continue
        assert len(own) == -(-size // most)
        assert [begin for begin, _ in own] == [0, *(end for _, end in own[:-1])][: len(own)]
        if own:
            assert own[-1][1] == size
            assert all(end % align == 0 for _, end in own[:-1])
        assert all(end - begin <= most + align - 1 for begin, end in own)
    assert [plan.shard(number) for number in range(plan.count)] == [(f"{file}.txt", span) for file, span in listed]
    with pytest.raises(IndexError):
        plan.place(plan.count)


def test_a_plan_has_the_sizes_of_files_and_is_read_again(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("a.txt", "b.txt.gz"):
        (tmp_path / name).write_bytes(b"a" * 10)
    plan, inputs = TextPlan.of(["a.txt", "b.txt.gz"], 4, 2)
    assert plan == TextPlan((str(tmp_path / "a.txt"), str(tmp_path / "b.txt.gz")), (10, None), 4, 2)
    assert (plan.count, inputs.files) == (4, plan.files)
    (tmp_path / "manifest.json").write_text(
        json.dumps({"plan": {"files": plan.files, "sizes": plan.sizes, "shard_bytes": 4, "align": 2}})
    )
    assert TextPlan.read(tmp_path) == plan
    with pytest.raises(ConfigError, match="standard input cannot be cut into shards"):
        TextPlan.of(["-"], 4)


@given(st.sets(st.integers(0, 30)))
def test_ranges_stand_for_their_numbers(numbers):
    parts = [list(map(int, part.split("-"))) for part in ranges(numbers).split(",") if part]
    assert [number for part in parts for number in range(part[0], part[-1] + 1)] == sorted(numbers)
    assert all(len(part) == 1 or part[0] < part[1] for part in parts)
    assert all(before[-1] + 1 < after[0] for before, after in pairwise(parts))


def test_a_run_goes_on_from_what_was_kept_last(tmp_path, monkeypatch):
    kept.begin()
    for name in "abc":
        (tmp_path / name).touch()
        kept.keep(tmp_path / name, f"after {name}")
    assert kept.going_on() == "after c"
    kept.keep(tmp_path / "a", "after a again")
    assert kept.going_on() == "after a again"
    (tmp_path / "a").unlink()
    assert kept.going_on() == "after c"
    monkeypatch.setattr(kept, "_CLEANED_EVERY", 4)
    kept.keep(tmp_path / "d", "after d")
    assert set(kept._kept) == {tmp_path / "b", tmp_path / "c"}
    assert kept.unrepeatable() != 0
    assert kept.going_on() == ""  # nothing is read twice
    kept.begin()
    assert (kept.going_on(), kept._kept) == ("", {})
    kept.keep(tmp_path / "b", "after b")
    assert kept.going_on() == "after b"


def test_standard_input_is_copied_while_there_is_room(tmp_path, monkeypatch):
    free = [100]
    monkeypatch.setattr(folders, "_BLOCK", 4)
    monkeypatch.setattr(folders, "_MIN_FREE", 10)
    monkeypatch.setattr(folders.shutil, "disk_usage", lambda path: SimpleNamespace(free=free[0]))
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b"a\nb\nc\n")))
    assert spooled("a.txt", tmp_path) == "a.txt"
    assert spooled("-", tmp_path, LOCAL) == str(tmp_path / "input")
    assert (tmp_path / "input").read_bytes() == b"a\nb\nc\n"
    assert kept._streams
    for room, fits in ((14, True), (13, False)):
        free[0] = room
        sys.stdin.buffer.seek(0)
        if fits:
            assert spooled("-", tmp_path)
        else:
            with pytest.raises(InputError, match=r"^standard input: after 0\.0 GB less than 0 GiB would be free in "):
                spooled("-", tmp_path)
    with pytest.raises(ConfigError):
        spooled("-", tmp_path, ExecutionConfig("array", 0, 2))
    kept.begin()


def test_settings_that_name_no_pipe_stay_as_they_are(tmp_path):
    given = {"input": [str(tmp_path), "x" * 5000], "more": {"a": ("b", 1, None)}, "execution": {"kind": "local"}}
    with pipes_spooled(given) as settings:
        assert settings == given
        assert type(settings["more"]["a"]) is tuple
    with pipes_spooled(other := {"execution": {"kind": "array"}}) as settings:
        assert settings is other


def test_a_folder_is_removed_but_for_what_is_to_stay(tmp_path):
    for name in ("w/done", "w/half"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "w" / "work.json").touch()
    remove_unheld(tmp_path / "w", ("done",))
    assert {path.name for path in (tmp_path / "w").iterdir()} == {"done", "work.json", ".lock"}
    remove_unheld(tmp_path / "w")
    assert not (tmp_path / "w").exists()
    remove_unheld(tmp_path / "w")
    assert not list(tmp_path.iterdir())
