"""Checkpoints and records that were damaged since they were written."""

from __future__ import annotations

import json

import numpy as np
import pytest

from xswe.errors import DamagedError
from xswe.io.files import read_json
from xswe.work.checkpoint import load_checkpoint, save_checkpoint
from xswe.work.records import Checksum, sound_record, write_record

ARRAYS = {"a": np.arange(1000, dtype=np.float32), "b": np.zeros((3, 0), np.int64)}


def test_a_checkpoint_comes_back_whole_or_not_at_all(tmp_path, caplog):
    path = tmp_path / "state.safetensors"
    save_checkpoint(path, "one", ARRAYS, {"done": 3})
    arrays, values = load_checkpoint(path, "one")
    assert values == {"done": 3}
    np.testing.assert_array_equal(arrays["a"], ARRAYS["a"])
    assert load_checkpoint(path, "other") is None
    assert not caplog.messages
    whole = path.read_bytes()
    for place in range(0, len(whole), 97):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 4]) + whole[place + 1 :])
        found = load_checkpoint(path, "one")
        assert found is None or (found[1] == values and found[0]["a"].tobytes() == ARRAYS["a"].tobytes())
    path.write_bytes(whole[:-1])
    assert load_checkpoint(path, "one") is None
    assert "damaged since it was written" in caplog.text


def test_a_record_tells_whether_it_is_what_was_written(tmp_path):
    path = tmp_path / "record.json"
    write_record(path, "one", done=12)
    assert sound_record(path, "one")["done"] == 12
    path.write_text(path.read_text("utf-8").replace("12", "13", 1), "utf-8")
    assert sound_record(path, "one") is None


def test_what_is_no_json_any_more_is_said_in_one_line(tmp_path):
    path = tmp_path / "manifest.json"
    path.write_text(json.dumps({"a": 1})[:-1], "utf-8")
    with pytest.raises(DamagedError, match=r"manifest\.json: damaged, or not written by xswe .*; move it away, and"):
        read_json(path)


def test_a_checksum_goes_on_after_it_was_asked_for():
    data = np.random.default_rng(0).integers(0, 256, (5 << 19) + 3, np.uint8)
    whole, parts = Checksum(), Checksum()
    whole.add(data)
    for start in range(0, len(data), 700_001):
        parts.add(data[start : start + 700_001])
        parts.finish()
    assert parts.finish() == whole.finish()
