"""Drawing rows without a permutation in memory gives the rows of the permutation."""

from __future__ import annotations

import numpy as np
import pytest

from xswe.corpus import splits as drawing
from xswe.corpus.splits import RowSet, draw


@pytest.mark.parametrize("block", [7, 64, 1 << 20])
@pytest.mark.parametrize("size", [0, 1, 2, 3, 10, 1000, 4097])
def test_the_first_rows_are_those_of_the_permutation(size, block, monkeypatch):
    monkeypatch.setattr(drawing, "_NUMBERS_PER_BLOCK", block)
    for seed in ([0, 7], [5, 13, 1]):
        whole = np.random.default_rng(seed).permutation(size)
        for ordered, members in ((0, 0), (1, 0), (10, size), (3, 500), (size, size), (size // 2, 0)):
            first, drawn = draw(seed, size, ordered, members)
            assert first.tolist() == whole[:ordered].tolist()
            assert drawn.rows().tolist() == sorted(whole[:members].tolist())


def test_a_million_rows():
    whole = np.random.default_rng([1, 7]).permutation(1_300_000)
    first, drawn = draw([1, 7], 1_300_000, 2000, 200_000)
    assert np.array_equal(first, whole[:2000])
    assert np.array_equal(drawn.rows(), np.sort(whole[:200_000]))


def test_rows_are_put_in_and_taken_out():
    rows = RowSet(1003, full=True)
    rows.set(np.array([0, 8, 1002]), False)
    assert rows.rows().tolist() == [row for row in range(1003) if row not in (0, 8, 1002)]
    assert [block.tolist() for block in RowSet(10, full=True).blocks(8)] == [list(range(8)), [8, 9]]


def test_an_array_is_permuted_as_its_places_are():
    values = np.sort(np.random.default_rng(0).integers(0, 10**6, 5000))
    assert np.array_equal(
        values[draw([2, 17, 1], 5000, 400)[0]], np.random.default_rng([2, 17, 1]).permutation(values)[:400]
    )
