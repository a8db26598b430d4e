"""Lengths and spreads of spans against their definitions."""

from __future__ import annotations

import numpy as np
import pytest

from tests.phrases.test_search import Digits
from xswe.phrases.kernels.bound import TILE, level_of, words_of_part
from xswe.phrases.kernels.norms import VANISHED, measure_spans, tiles_of
from xswe.phrases.search import Search, SpanConfig


@pytest.mark.parametrize(
    ("width", "sizes", "least", "longest"),
    [(3, [0, 1, 5, 64, 65], 1, 4), (8, [130, 0, 63], 2, 5), (17, [70, 2], 3, 9), (12, [128, 9], 1, 1), (1, [40], 1, 6)],
)
def test_spans_are_measured_as_their_vectors_are(width, sizes, least, longest):
    draw = np.random.default_rng(width)
    matrix = np.ascontiguousarray(draw.integers(-2, 3, (30, width)), np.float32)
    matrix[3] = 0
    words = [
        ["".join(chr(0x100 + n) for n in draw.integers(0, 30, n)) or "-" for n in draw.integers(0, 4, s)] for s in sizes
    ]
    source = Digits(matrix)
    search = Search(source, np.ones((1, width), np.float32), SpanConfig(least, longest))
    _, cut = source.cut(texts := [" ".join(one) for one in words])
    _, block = search._prepare(matrix, cut)
    for start, stop in ((0, 1), (1, len(sizes))):
        measure_spans(matrix, block, start, stop, least, longest)
    assert tiles_of(cut.texts).tolist() == np.cumsum([0, *(-(-size // 64) for size in sizes)]).tolist()
    step, close = words_of_part(longest), []
    for text, size, tile in zip(texts, sizes, block.tiles.tolist(), strict=False):
        vectors = source.vectors(text).reshape(-1, width)
        lengths, begin = np.linalg.norm(vectors, axis=1), int(cut.texts[texts.index(text)])
        for first in range(0, size, TILE):
            starts, spread = min(TILE, size - first), np.ones(-(-min(TILE, size - first) // step))
            inverse = block.inverse[(begin + first) * (longest + 1 - least) :].reshape(-1)
            for i in range(starts):
                for n in range(1, longest + 1):
                    a, b = first + i, first + i + n
                    length, apart = np.linalg.norm(vectors[a:b].sum(0)), (lengths[a:b] ** 2).sum()
                    there = b <= size and length**2 > VANISHED * apart
                    if there:
                        spread[i // step] = max(spread[i // step], apart / length**2)
                    if n >= least:
                        expected = 1 / length if there and lengths[a] > 0 and lengths[b - 1] > 0 else 0.0
                        assert inverse[(n - least) * starts + i] == pytest.approx(expected, rel=1e-5), (text, a, b)
            found = block.levels[tile + first // TILE][: len(spread)].astype(int)
            difference = found - np.array([level_of(np.float32(s * 1.000001)) for s in spread]).astype(int)
            assert np.abs(difference).max() <= 1  # the spread is computed with rounding errors
            close += (difference == 0).tolist()
        for row, length in zip(block.rows[begin : begin + size].tolist(), lengths, strict=True):
            assert block.row_lengths[row] == pytest.approx(length, rel=1e-6)
            assert block.row_inverse[row] == pytest.approx(1 / length if length > 0 else 0.0, rel=1e-6)
    assert np.mean(close) > 0.9
