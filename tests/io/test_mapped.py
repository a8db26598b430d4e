from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from xswe.errors import XsweError
from xswe.io.ragged import Bags, Spans, id_type, mapped, release
from xswe.search.vectors import Vectors
from xswe.training import pairs as pairs_module
from xswe.training.pairs import ParallelBags, equal_bags


def resident(path: Path) -> int:
    """Bytes of a mapped file that the system counts to this process."""
    found, total = False, 0
    for line in Path("/proc/self/smaps").read_text().splitlines():
        if "-" in line.split(" ")[0]:
            found = line.endswith(str(path))
        elif found and line.startswith("Rss:"):
            total += int(line.split()[1]) << 10
    return total


def test_spans_of_a_file_are_those_of_the_array(tmp_path):
    array = np.arange(1000, dtype=np.uint16)
    np.save(tmp_path / "a.npy", array)
    opened = np.load(tmp_path / "a.npy", mmap_mode="r")

    @given(st.lists(st.tuples(st.integers(0, 899), st.integers(0, 60)), max_size=20), st.integers(0, 40))
    def check(spans, shift):
        starts = np.array([start for start, _ in spans], np.int64)
        places = np.cumsum([0, *(size for _, size in spans)])
        out = np.empty(places[-1], np.uint16)
        Spans(opened[shift : shift + 960]).read(starts, places, out)  # a view keeps its place in the file
        expected = [array[shift + start : shift + start + size] for start, size in spans]
        assert np.array_equal(out, np.concatenate([array[:0], *expected]))

    check()


def test_what_lies_in_memory_has_no_spans(tmp_path):
    assert Spans.of(np.zeros(3)) is None
    np.save(tmp_path / "a.npy", np.zeros((4, 4)))
    assert Spans.of(np.load(tmp_path / "a.npy", mmap_mode="r")[:, 1:]) is None
    assert not mapped(np.load(tmp_path / "a.npy", mmap_mode="c"))  # its pages may hold changes


def test_a_file_cut_off_while_in_use_is_an_error(tmp_path):
    np.save(tmp_path / "a.npy", np.arange(100_000))
    spans = Spans.of(np.load(tmp_path / "a.npy", mmap_mode="r"))
    with open(tmp_path / "a.npy", "r+b") as stream:
        stream.truncate(1000)
    with pytest.raises(XsweError, match=r"a\.npy: cannot be read to its end"):
        spans.read(np.array([50_000]), np.array([0, 10]), np.empty(10, np.int64))


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="the system does not tell what is resident")
def test_pages_are_given_back_and_rows_bring_none(tmp_path):
    np.save(tmp_path / "a.npy", np.random.default_rng(0).normal(size=(20_000, 256)).astype(np.float32))
    opened = np.load(tmp_path / "a.npy", mmap_mode="r")
    assert np.isfinite(opened.sum())
    assert resident(tmp_path / "a.npy") > 19 << 20
    release(opened, np.zeros(3))
    assert resident(tmp_path / "a.npy") == 0
    rows = np.arange(19_999, -1, -7)
    assert np.array_equal(Vectors(opened).take(rows), np.array(opened)[rows])
    release(opened)
    Vectors(opened).take(rows)
    assert resident(tmp_path / "a.npy") == 0


def test_few_units_take_two_bytes_and_give_the_same_batches(tmp_path, monkeypatch):
    generator = np.random.default_rng(0)
    lists = [generator.integers(0, 65_536, generator.integers(0, 9)).tolist() for _ in range(50)]
    bags = Bags.of([*lists, *lists[:10]])
    small = Bags(bags.ids.astype(id_type(65_536)), bags.offsets)
    assert (small.ids.dtype, id_type(65_537)) == (np.uint16, np.int32)
    small.save(tmp_path, "s")
    opened = Bags.open(tmp_path, "s")
    rows = generator.permutation(60)[:20]
    batches = [ParallelBags(each, each).batch(rows) for each in (bags, small, opened)]
    monkeypatch.setattr(pairs_module, "_MAX_RESIDENT", 0)
    batches.append(ParallelBags(opened, opened).batch(rows))
    for batch in batches:
        assert batch.ids.dtype == np.int32
        assert np.array_equal(batch.ids, batches[0].ids)
        assert np.array_equal(batch.offsets, batches[0].offsets)
    assert opened.take(rows).ids.dtype == np.int32
    assert np.array_equal(opened.counts(70_000), bags.counts(70_000))
    same = equal_bags(opened)
    assert np.array_equal(same[:10], same[50:])
    assert len(np.unique(same)) == len({tuple(each) for each in lists})
