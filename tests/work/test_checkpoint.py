"""Checkpoints and records that were damaged since they were written."""

from __future__ import annotations

import json
import os
import zlib

import numpy as np
import pytest

from xswe.errors import DamagedError
from xswe.io.files import read_json
from xswe.work import kept
from xswe.work.checkpoint import load_checkpoint, save_checkpoint
from xswe.work.records import Checksum, file_checksum, read_if_there, sound_record, write_record

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


def naive(data):
    """The checksum by its definition: sums of numbers times odd factors, chained by CRC-32."""
    value = 0
    for start in range(0, len(data), 1 << 20):
        chunk = data[start : start + (1 << 20)]
        padded = np.frombuffer(chunk + bytes(-len(chunk) % 8), "<u8")
        factors = np.arange(len(padded), dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15) | np.uint64(1)
        value = zlib.crc32((padded * factors).sum().tobytes(), value ^ (len(chunk) % (1 << 20) or 1 << 20))
    return value


@pytest.mark.parametrize("size", [0, 1, 7, 8, 9, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, (2 << 20) + 9])
def test_a_checksum_is_that_of_its_definition(tmp_path, size):
    data = np.random.default_rng(size).integers(0, 256, size, np.uint8).tobytes()
    found = Checksum()
    found.add(data)
    assert found.finish() == naive(data)
    (tmp_path / "a").write_bytes(data)
    assert file_checksum(tmp_path / "a") == naive(data)


def test_a_record_holds_for_the_files_that_it_was_written_for(tmp_path):
    (tmp_path / "d").mkdir()
    path, file = tmp_path / "record.json", tmp_path / "d" / "a"
    file.write_bytes(b"abcd")
    state = file.stat()
    write_record(path, "one", [file], more=[1])
    expected = {"identity": "one", "more": [1], "files": [["d/a", 4, state.st_mtime_ns, naive(b"abcd")]]}
    assert sound_record(path, "one") == sound_record(path, "one", read=True) == expected
    assert json.loads(path.read_text()) == expected | {"checksum": zlib.crc32(json.dumps(expected).encode())}
    assert sound_record(path, "other") is None
    assert sound_record(tmp_path / "none.json", "one") is None
    os.utime(file, ns=(0, 0))
    assert sound_record(path, "one") == expected  # read, and found to be the same
    file.write_bytes(b"abce")
    assert sound_record(path, "one") is None
    os.utime(file, ns=(state.st_atime_ns, state.st_mtime_ns))
    assert sound_record(path, "one") == expected  # only one who reads it notices
    assert sound_record(path, "one", read=True) is None
    file.write_bytes(b"abc")
    os.utime(file, ns=(state.st_atime_ns, state.st_mtime_ns))
    assert sound_record(path, "one") is None
    write_record(path, "one", [file], 7)
    assert sound_record(path, "one")["files"][0][3] == 7  # which was known
    assert sound_record(path, "one", read=True) is None
    assert (read_if_there(path)["identity"], read_if_there(tmp_path / "none.json")) == ("one", {})
    path.write_text("[", "utf-8")
    assert read_if_there(path) == {}


def test_a_checkpoint_says_where_a_run_goes_on(tmp_path):
    kept.begin()
    save_checkpoint(tmp_path / "a", "one", ARRAYS, {})
    assert kept.going_on() == ""
    save_checkpoint(tmp_path / "a", "one", ARRAYS, {}, "after 3 steps")
    assert kept.going_on() == "after 3 steps"
    kept.begin()
    assert load_checkpoint(tmp_path / "a", "one") is not None
    assert kept.going_on() == "after 3 steps"
    kept.begin()
    assert load_checkpoint(None, "one") is load_checkpoint(tmp_path / "none", "one") is None
