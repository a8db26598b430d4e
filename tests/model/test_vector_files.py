"""Vector files: formats that others read, and outputs that survive a kill."""

from __future__ import annotations

import json
from unittest.mock import patch

import numpy as np
import pytest
from safetensors.numpy import load_file

from xswe.errors import ConfigError
from xswe.model import vector_files
from xswe.model.precision import convert, restore
from xswe.model.vector_files import VectorFile, open_writer, part_of
from xswe.work import kept

ROWS = np.random.default_rng(0).normal(size=(10, 6)).astype(np.float32)
BLOCKS = [(0, 4), (4, 8), (8, 10)]


@pytest.fixture(autouse=True)
def noted_at_once(monkeypatch):
    monkeypatch.setattr(kept, "BRIEF", 0.0)


class Killed(BaseException):
    """Stands for the end of the process."""


def write(path, dtype="float32", *, blocks=BLOCKS, until=10, identity="s", note=True):
    """Write blocks till row ``until``, then die; returns the first rows of those that are written."""
    written = []
    with open_writer(VectorFile(path, 6, dtype), identity) as writer:
        for number, (start, stop) in enumerate(blocks, 1):
            if (0, number) <= writer.place:
                continue
            assert writer.append(part_of(ROWS[start:stop], dtype)) == stop - start
            written.append(start)
            if note:
                writer.save((0, number))
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
    write(tmp_path / f"a{suffix}", dtype, blocks=[])
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
@pytest.mark.parametrize("damage", ["flipped", "exchanged", "shorter", "scales", "checkpoint"])
def test_rows_that_were_damaged_are_written_again(tmp_path, dtype, damage, caplog):
    write(tmp_path / "whole.npy", dtype)
    with pytest.raises(Killed):
        write(tmp_path / "a.npy", dtype, until=8)
    rows, size = tmp_path / ".a.npy.partial", VectorFile(tmp_path / "a.npy", 6, dtype).row_bytes
    found = bytearray(rows.read_bytes())
    again = [0, 4, 8]
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
    elif damage == "checkpoint":
        checkpoint = tmp_path / ".a.npy.checkpoint"
        told = checkpoint.read_bytes()
        checkpoint.write_bytes(told.replace(b'rows\\": 8', b'rows\\": 4'))
        assert checkpoint.read_bytes() != told
    else:
        again = [8]
    rows.write_bytes(found)
    assert write(tmp_path / "a.npy", dtype) == again
    assert ("damaged since it was written" in caplog.text) == (again != [8])
    assert (tmp_path / "a.npy").read_bytes() == (tmp_path / "whole.npy").read_bytes()


def test_rows_that_no_checkpoint_knows_are_written_again(tmp_path):
    with pytest.raises(Killed):
        write(tmp_path / "a.npy", until=8, note=False)
    assert not list(tmp_path.iterdir())
    assert write(tmp_path / "a.npy") == [0, 4, 8]


def test_another_model_starts_anew(tmp_path):
    with pytest.raises(Killed):
        write(tmp_path / "a.npy", until=8)
    assert write(tmp_path / "a.npy", identity="another") == [0, 4, 8]


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
            writer.append(part_of(ROWS, "int8"))
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


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8"])
def test_the_bytes_of_arrays_are_numpys_and_safetensors(tmp_path, dtype):
    """A header of 512 bytes, the rows, and for int8 their scales."""
    (rows, scales), size = convert(ROWS, dtype), VectorFile(tmp_path / "a.npy", 6, dtype).row_bytes
    for suffix in (".npy", ".safetensors"):
        write(tmp_path / f"a{suffix}", dtype)
    descr = {"float32": "<f4", "float16": "<f2", "int8": "|i1"}[dtype]
    shape = repr({"descr": descr, "fortran_order": False, "shape": (10, 6)}).encode()
    head = b"\x93NUMPY\x01\x00\xf6\x01" + shape.ljust(501) + b"\n"
    assert (tmp_path / "a.npy").read_bytes() == head + rows.tobytes()
    found, tail = (tmp_path / "a.safetensors").read_bytes(), b"" if scales is None else scales.tobytes()
    own = {"dtype": {"float32": "F32", "float16": "F16", "int8": "I8"}[dtype], "shape": [10, 6]}
    header = {"embeddings": own | {"data_offsets": [0, 10 * size]}}
    if scales is not None:
        header["scales"] = {"dtype": "F32", "shape": [10], "data_offsets": [10 * size, 10 * size + 40]}
        assert (tmp_path / "a.scales.npy").read_bytes()[512:] == tail
    assert (found[:8], json.loads(found[8:512]), found[512:]) == (
        (504).to_bytes(8, "little"),
        header,
        rows.tobytes() + tail,
    )


def test_checksums_of_parts_add_up_and_tell_rows_and_bits_apart():
    rng = np.random.default_rng(0)
    rows = rng.integers(-128, 128, (9, 5)).astype(np.int8)
    whole = vector_files._checksum(rows, 3)
    for cut in range(1, 9):
        assert (
            vector_files._checksum(rows[:cut], 3) + vector_files._checksum(rows[cut:], 3 + cut)
        ) % 2**64 == whole % 2**64
    others = [vector_files._checksum(rows, 4)]
    for row, column in ((0, 0), (8, 4), (4, 2)):
        changed = rows.copy()
        changed[row, column] ^= 1
        others.append(vector_files._checksum(changed, 3))
    for first, second in ((0, 1), (0, 8)):
        changed = rows.copy()
        changed[[first, second]] = rows[[second, first]]
        others.append(vector_files._checksum(changed, 3))
    assert len({one % 2**64 for one in (whole, *others)}) == 7


def test_many_rows_are_read_and_written_in_groups(tmp_path, monkeypatch):
    monkeypatch.setattr(vector_files, "_GROUP", 3)
    for suffix in (".npy", ".parquet"):
        with pytest.raises(Killed):
            write(tmp_path / f"a{suffix}", "int8", until=8)
        assert write(tmp_path / f"a{suffix}", "int8") == [8]  # the checksum of the groups is that of the blocks
        np.testing.assert_array_equal(read(tmp_path / f"a{suffix}", "int8")[0], convert(ROWS, "int8")[0])
