"""Vector files: formats that others read, and outputs that survive a kill."""

from __future__ import annotations

import errno
import os
from unittest.mock import patch

import numpy as np
import pytest
from safetensors.numpy import load_file

from xswe.errors import ConfigError, InputError
from xswe.io.ragged import Texts
from xswe.model import vector_files
from xswe.model.folder import convert, restore
from xswe.model.vector_files import VectorFile, open_writer
from xswe.work import kept
from xswe.work.records import file_checksum

LINES = [f"line {k}" for k in range(10)]
ROWS = np.random.default_rng(0).normal(size=(10, 6)).astype(np.float32)
BLOCKS = [(0, 4), (4, 8), (8, 10)]


@pytest.fixture(autouse=True)
def noted_at_once(monkeypatch):
    monkeypatch.setattr(kept, "BRIEF", 0.0)


class Killed(BaseException):
    """Stands for the end of the process."""


def write(path, dtype="float32", *, lines=LINES, until=10, signature="s", note=True):
    """Write blocks till row ``until``, then die."""
    written = []
    with open_writer(VectorFile(path, 6, dtype), signature) as writer:
        for start, stop in BLOCKS:
            if start >= len(lines):
                break
            if (place := writer.admit(Texts.of(lines[start:stop]), "input.txt")) is not None:
                checksum = writer.write(place[0], ROWS[start:stop])
                written.append(start)
                if note:
                    writer.save(stop, place[1], checksum)
            if stop >= until < 10:
                raise Killed
    return written


def read(path, dtype):
    if path.suffix == ".npy":
        rows = np.load(path, mmap_mode="r")
        return rows, np.load(path.with_name(f"{path.stem}.scales.npy")) if dtype == "int8" else None
    if path.suffix == ".safetensors":
        tensors = load_file(path)
        assert set(tensors) == ({"embeddings", "scales"} if dtype == "int8" else {"embeddings"})
        return tensors["embeddings"], tensors.get("scales")
    pq = pytest.importorskip("pyarrow.parquet")
    table = pq.read_table(path)
    rows = np.array(table["embedding"].to_pylist(), dtype).reshape(-1, 6)
    assert table.schema.field("embedding").type.list_size == 6
    return rows, table["scale"].to_numpy() if dtype == "int8" else None


@pytest.mark.parametrize("suffix", [".npy", ".safetensors", ".parquet"])
@pytest.mark.parametrize("dtype", ["float32", "float16", "int8"])
def test_others_read_what_was_written_and_nothing_is_left_beside_it(tmp_path, suffix, dtype):
    path = tmp_path / f"a{suffix}"
    write(path, dtype)
    rows, scales = read(path, dtype)
    expected, expected_scales = convert(ROWS, dtype)
    assert rows.dtype == expected.dtype
    np.testing.assert_array_equal(rows, expected)
    if scales is not None:
        np.testing.assert_array_equal(scales, expected_scales)
    np.testing.assert_allclose(restore(np.asarray(rows), scales), ROWS, atol=2e-2)
    names = {f"a{suffix}"} | ({"a.scales.npy"} if (dtype, suffix) == ("int8", ".npy") else set())
    assert {p.name for p in tmp_path.iterdir()} == names


@pytest.mark.parametrize("suffix", [".npy", ".safetensors", ".parquet"])
@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_an_empty_input_is_an_empty_array(tmp_path, suffix, dtype):
    write(tmp_path / f"a{suffix}", dtype, lines=[])
    assert read(tmp_path / f"a{suffix}", dtype)[0].shape == (0, 6)


@pytest.mark.parametrize("suffix", [".npy", ".safetensors"])
@pytest.mark.parametrize("dtype", ["float16", "int8"])
def test_a_killed_run_is_taken_up_to_the_same_bytes(tmp_path, suffix, dtype):
    whole, path = tmp_path / f"whole{suffix}", tmp_path / f"a{suffix}"
    write(whole, dtype)
    with pytest.raises(Killed):
        write(path, dtype, until=8)
    assert not path.exists()
    assert write(path, dtype) == [8]  # only the last block is written again
    assert path.read_bytes() == whole.read_bytes()
    assert not [p for p in tmp_path.iterdir() if p.name.startswith(".")]


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8"])
@pytest.mark.parametrize("damage", ["flipped", "exchanged", "shorter", "scales", "journal"])
def test_rows_that_were_damaged_are_written_again(tmp_path, dtype, damage):
    write(tmp_path / "whole.npy", dtype)
    with pytest.raises(Killed):
        write(tmp_path / "a.npy", dtype, until=8)
    rows, size = tmp_path / ".a.npy.partial", VectorFile(tmp_path / "a.npy", 6, dtype).row_bytes
    found = bytearray(rows.read_bytes())
    again = [4, 8]
    if damage == "flipped":
        found[512 + 4 * size + 3] ^= 16
    elif damage == "exchanged":
        first, second = (slice(512 + row * size, 512 + (row + 1) * size) for row in (4, 6))
        found[first], found[second] = found[second], found[first]
    elif damage == "shorter":
        del found[-2:]
    elif damage == "scales" and dtype == "int8":
        scales = bytearray((tmp_path / ".a.npy.scales.partial").read_bytes())
        scales[-1] ^= 1
        (tmp_path / ".a.npy.scales.partial").write_bytes(scales)
    elif damage == "journal":
        journal = tmp_path / ".a.npy.journal.json"
        journal.write_text(journal.read_text().replace("[4,", "[3,"))
        again = [0, 4, 8]
    else:
        again = [8]
    rows.write_bytes(found)
    assert write(tmp_path / "a.npy", dtype) == again
    assert (tmp_path / "a.npy").read_bytes() == (tmp_path / "whole.npy").read_bytes()


def test_rows_that_the_journal_does_not_know_are_written_again(tmp_path):
    with pytest.raises(Killed):
        write(tmp_path / "a.npy", until=8, note=False)
    assert write(tmp_path / "a.npy") == [0, 4, 8]


def test_another_model_starts_anew(tmp_path):
    with pytest.raises(Killed):
        write(tmp_path / "a.npy", until=8)
    assert write(tmp_path / "a.npy", signature="another") == [0, 4, 8]


@pytest.mark.parametrize("lines", [["changed", *LINES[1:]], [LINES[0] + LINES[1], "", *LINES[2:]]])
def test_another_text_is_refused(tmp_path, lines):
    with pytest.raises(Killed):
        write(tmp_path / "a.npy", until=8)
    with pytest.raises(InputError, match=r"not the text.*remove .*journal"):
        write(tmp_path / "a.npy", lines=lines)


@pytest.mark.parametrize("lines", [LINES[:4], LINES[:6], []])
def test_a_shorter_text_is_refused(tmp_path, lines):
    with pytest.raises(Killed):
        write(tmp_path / "a.npy", until=8)
    with pytest.raises((InputError, ConfigError), match=r"remove .*journal"):
        write(tmp_path / "a.npy", lines=lines)


def test_an_older_output_stays_until_the_new_one_is_whole(tmp_path):
    (tmp_path / "a.npy").write_text("older")
    with pytest.raises(Killed):
        write(tmp_path / "a.npy", until=8)
    assert (tmp_path / "a.npy").read_text() == "older"


def test_two_writers_of_one_output_are_kept_apart(tmp_path):
    pytest.importorskip("fcntl")
    file = VectorFile(tmp_path / "a.npy", 6, "float32")
    with open_writer(file, "s"), pytest.raises(ConfigError, match="another process"), open_writer(file, "s"):
        pass


def test_two_writers_of_one_shard_do_not_meet(tmp_path):
    file = VectorFile(tmp_path / "a.npy", 6, "int8", own=True)

    def write_it(between=lambda: None):
        with open_writer(file, "s") as writer:
            writer.write(0, ROWS)
            writer.rows = len(ROWS)
            between()
        return file.path.read_bytes() + file.scales.read_bytes()

    def another():
        with patch("os.getpid", return_value=0):
            assert write_it() == alone

    def broken():
        raise Killed

    alone = write_it()
    assert write_it(another) == alone
    with pytest.raises(Killed):
        write_it(broken)
    assert {path.name for path in tmp_path.iterdir()} == {"a.npy", "a.scales.npy"}


@pytest.mark.parametrize(("name", "dtype", "found"), [("a.txt", "float32", "ends in"), ("a.npy", "int4", "float16")])
def test_settings_that_cannot_work(tmp_path, name, dtype, found):
    with pytest.raises(ConfigError, match=found):
        VectorFile(tmp_path / name, 6, dtype)


@pytest.mark.parametrize("way", ["here", "no room asked for", "the storage copies", "the storage gives up"])
def test_rows_of_another_file_are_copied_to_their_place(tmp_path, monkeypatch, way):
    content = np.random.default_rng(0).bytes(vector_files._HEADER + 3 * 700_000 + 5)
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_bytes(content)
    target.write_bytes(b"before")
    monkeypatch.setattr(os, "major", lambda device: int(way in ("here", "no room asked for")), raising=False)
    moves = iter([9, 1_000_000, None] if way == "the storage gives up" else [])

    def moved(read, write, size, start, place):
        if (most := next(moves, 500_000)) is None:
            raise OSError(errno.EXDEV, "not there")
        return os.pwrite(write, os.pread(read, min(most, size), start), place)

    def refused(*_):
        raise OSError(errno.EOPNOTSUPP, "not there")

    monkeypatch.setattr(os, "copy_file_range", moved, raising=False)
    if way == "no room asked for":
        monkeypatch.setattr(os, "posix_fallocate", refused, raising=False)
    with source.open("rb", buffering=0) as read, target.open("r+b") as write:
        found = vector_files._copy(read, write, 6)
    assert found == file_checksum(source)
    assert target.read_bytes() == b"before" + content[vector_files._HEADER :]


def test_no_room_for_what_is_copied_is_an_error_at_once(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    (tmp_path / "source").write_bytes(bytes(vector_files._HEADER + 9))
    monkeypatch.setattr(os, "major", lambda device: 1, raising=False)
    monkeypatch.setattr(os, "posix_fallocate", full, raising=False)
    with (tmp_path / "source").open("rb") as read, (tmp_path / "target").open("w+b") as write:
        with pytest.raises(OSError, match="No space left"):
            vector_files._copy(read, write, 0)
        assert os.fstat(write.fileno()).st_size == 0
