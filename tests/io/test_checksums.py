"""Checksums against the obvious ones, and files whose damage is noticed where it is read."""

from __future__ import annotations

import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xswe.errors import ModelError
from xswe.io.checksums import BLOCK, Blocks, FileSums, SummedArray, block_of, block_sums, file_sums, text_sums
from xswe.io.ragged import HEADER, Texts


def naive(data, block):
    """The sum of each block's words, each times its place from the end."""
    out = []
    for start in range(0, len(data), block):
        part = data[start : start + block].tobytes()
        words = np.frombuffer(part + bytes(-len(part) % 4), "<u4").tolist()
        out.append(sum(word * (len(words) - place) for place, word in enumerate(words)) % 2**64)
    return out


@given(st.lists(st.text(), max_size=20))
def test_texts_have_the_checksums_of_zlib(texts):
    packed = Texts.of(texts)
    assert text_sums(packed).tolist() == [zlib.crc32(text.encode("utf-8", "replace")) for text in texts]


@given(st.binary(max_size=300), st.integers(0, 3))
def test_blocks_have_the_sums_of_their_words(data, skipped):
    array = np.frombuffer(data, np.uint8)[skipped:]  # which may begin within a word
    assert block_sums(array, 16).tolist() == naive(array, 16)


@settings(max_examples=50)
@given(st.data())
def test_a_changed_byte_always_changes_a_sum(data):
    array = np.array(data.draw(st.lists(st.integers(0, 255), min_size=1, max_size=70)), np.uint8)
    place, change = data.draw(st.integers(0, len(array) - 1)), data.draw(st.integers(1, 255))
    other = array.copy()
    other[place] ^= change
    assert (block_sums(array, 64) != block_sums(other, 64)).sum() == 1


def test_words_that_were_exchanged_change_a_sum():
    array = np.arange(64, dtype=np.uint8)
    assert block_sums(array, 64) != block_sums(np.concatenate([array[32:], array[:32]]), 64)


@pytest.mark.parametrize(("dtype", "row"), [(np.float32, (256,)), (np.int8, (3,)), (np.float32, ()), (np.int8, (70_001,))])
def test_an_array_that_grows_in_pieces_has_the_checksums_of_its_file(tmp_path, dtype, row):
    rng, path = np.random.default_rng(0), tmp_path / "a.npy"
    size = np.dtype(dtype).itemsize * int(np.prod(row, initial=1, dtype=int))
    per_block = block_of(size) // size
    known, rows = None, 0
    for pieces in ([1, 2, per_block], [per_block - 1, 3 * per_block + 1], [0], [5]):
        array = SummedArray(path, dtype, rows, row, known)
        for piece in pieces:
            array.append(rng.integers(-100, 100, (piece, *row)).astype(dtype))
        kept, before = array.kept, known
        array.close()
        known, rows = array.known, array.size
        expected = file_sums(path, size, HEADER)
        assert (known.size, known.block, known.sums.tolist()) == (expected.size, expected.block, expected.sums.tolist())
        assert len(np.load(path)) == rows
        if before is not None:
            assert known.sums[:kept].tolist() == before.sums[:kept].tolist()


def written(path, blocks=20, last=100):
    data = np.random.default_rng(1).integers(0, 255, HEADER + BLOCK * blocks + last, dtype=np.uint8)
    path.write_bytes(data.tobytes())
    return file_sums(path, first=HEADER)


def spoil(path, place):
    with path.open("r+b") as stream:
        stream.seek(place)
        byte = stream.read(1)
        stream.seek(place)
        stream.write(bytes([byte[0] ^ 1]))


@pytest.mark.parametrize("threads", [1, 3])
def test_damage_is_named_with_its_place(tmp_path, threads):
    known = written(tmp_path / "a")
    Blocks(tmp_path / "a", known, HEADER, advice="mend it").check(threads=threads)
    spoil(tmp_path / "a", HEADER + 18 * BLOCK + 7)
    blocks = Blocks(tmp_path / "a", known, HEADER, advice="mend it")
    blocks.check(np.array([3, 3, 17, 0]))
    place = f"bytes {HEADER + 18 * BLOCK:,} to {HEADER + 19 * BLOCK - 1:,}"
    for _ in range(2):  # and again: what is damaged never counts as compared
        with pytest.raises(ModelError, match=rf"a: {place} are not what was written; mend it"):
            blocks.check(threads=threads)
    assert blocks.damaged() == [18]
    blocks.check(np.array([17, 19, 20]))


def test_a_file_that_is_shorter_or_gone_is_damaged(tmp_path):
    known = written(tmp_path / "a")
    with (tmp_path / "a").open("r+b") as stream:
        stream.truncate(HEADER + 19 * BLOCK)
    blocks = Blocks(tmp_path / "a", known, HEADER, advice="mend it")
    assert blocks.damaged() == [19, 20]
    (tmp_path / "a").unlink()
    with pytest.raises(ModelError, match=r"a: cannot be read .*; mend it"):
        Blocks(tmp_path / "a", known, HEADER, advice="mend it").check()


def test_no_block_is_read_twice(tmp_path):
    known = written(tmp_path / "a")
    first = Blocks(tmp_path / "a", known, HEADER, advice="mend it")
    first.check(np.arange(20))
    spoil(tmp_path / "a", HEADER + 3 * BLOCK)
    first.check(np.arange(20))
    longer = FileSums(known.size + 5, known.block, np.concatenate([known.sums[:-1], known.sums[-1:] + np.uint64(1)]))
    second = Blocks(tmp_path / "a", longer, HEADER, advice="mend it", before=first)
    second.check(np.arange(20))
    with pytest.raises(ModelError, match=f"bytes {HEADER + 20 * BLOCK:,} to"):  # which is another now
        second.check()
    with pytest.raises(ModelError, match=f"bytes {HEADER + 3 * BLOCK:,} to"):
        Blocks(tmp_path / "a", known, HEADER, advice="mend it").check(np.arange(20))
