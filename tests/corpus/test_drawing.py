"""Drawing rows without a permutation in memory gives the rows of the permutation."""

from __future__ import annotations

import numpy as np
import pytest

from xswe.corpus import splits as drawing
from xswe.corpus.bitext import Bitext, CorpusConfig
from xswe.corpus.monolingual import Sentences, split_parts
from xswe.corpus.splits import RowSet, draw, split_rows
from xswe.errors import ConfigError
from xswe.io.ragged import Texts


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


@pytest.mark.parametrize(
    ("limit", "held_out", "development", "most"),
    [
        (0, 0.1, 0.25, 1000),
        (0, 0.1, 0.25, 3),
        (17, 0.5, 0.25, 1000),
        (40, 0.1, 0.0, 9),
        (41, 0.0, 0.1, 9),
        (1, 0.9, 0.0, 9),
    ],
)
def test_the_parts_are_the_first_rows_of_the_permutation_sorted(limit, held_out, development, most):
    config = CorpusConfig(
        limit=limit, held_out=held_out, development=development, max_held_out=most, max_development=most + 2
    )
    order = np.random.default_rng([5, 7]).permutation(40)[: limit or None].tolist()
    first = min(most, int(len(order) * held_out))
    second = first + min(most + 2, int(len(order) * development))
    parts = [sorted(order[:first]), sorted(order[first:second]), sorted(order[second:])]
    sides = [Texts.of([f"{side}{n}" for n in range(40)]) for side in "ab"]
    rows = split_rows(Bitext(("en", "ja"), *sides), config, 5)
    assert [rows.held_out.tolist(), rows.development.tolist(), rows.train.tolist()] == parts
    one = split_parts(Sentences(("en",), sides[0]), config, 5)
    assert {name: list(part.source) for name, part in one.items()} == {
        name: [f"a{row}" for row in part] for name, part in zip(("held_out", "development", "train"), parts, strict=True)
    }


@pytest.mark.parametrize("block", [1, 3, 1000])
def test_rows_with_a_text_of_another_part_are_left_out_wherever_they_are(block, monkeypatch):
    monkeypatch.setattr(drawing, "_HASHED_AT_A_TIME", block)
    draws = np.random.default_rng(block).integers(0, 25, (2, 60)).tolist()
    # A text may be a source here and a target there.
    sides = [[str(n) for n in draws[0]], [str(n + 20) for n in draws[1]]]
    rows = split_rows(Bitext(("en", "ja"), *map(Texts.of, sides)), CorpusConfig(held_out=0.1, development=0.05), 3)
    apart = {*rows.held_out.tolist(), *rows.development.tolist()}
    known = {side[row] for side in sides for row in apart}
    assert len(apart) == 9
    assert rows.train.tolist() == [n for n in range(60) if n not in apart and not known & {sides[0][n], sides[1][n]}]


def test_no_more_rows_than_the_shuffle_numbers(monkeypatch):
    monkeypatch.setattr(drawing, "_MAX_ROWS", 1000)
    assert len(draw([1], 1000, 5)[0]) == 5
    with pytest.raises(ConfigError) as caught:
        draw([1], 1001, 5)
    assert str(caught.value) == "1,001 rows to draw from, of at most 1,000: give a smaller corpus"
