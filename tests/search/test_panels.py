"""Panels of targets: they fit in the memory, and are the same in whatever order their parts are read."""

from __future__ import annotations

import numpy as np
import pytest

from xswe.io.products import COLUMNS, pack
from xswe.search import exact
from xswe.search.exact import _PANEL_STEP, _READ, _STRIP, _read_panel, panel_rows
from xswe.search.lists import SearchConfig
from xswe.search.vectors import Vectors


@pytest.mark.parametrize("last", [_READ, _READ + 1, 2 * _READ + COLUMNS + 3])
def test_parts_of_a_panel_that_are_read_in_any_order_make_it(monkeypatch, last):
    rows = np.random.default_rng(0).standard_normal((last + 40, 5)).astype(np.float32)
    expected = pack(rows[7 : 7 + last], COLUMNS)
    for turn in (1, -1):

        def in_turn(function, size, block, threads, turn=turn):
            for start in list(range(0, size, block))[::turn]:
                function(start, min(start + block, size))

        monkeypatch.setattr(exact, "parallel_for", in_turn)
        np.testing.assert_array_equal(_read_panel(Vectors(rows), 7, 7 + last, 1), expected)


@pytest.mark.parametrize("threads", [1, 2, 16])
@pytest.mark.parametrize(("dim", "k"), [(256, 4), (768, 1), (64, 100)])
def test_a_panel_is_as_large_as_the_memory_allows(dim, k, threads):
    config = SearchConfig(method="exact", memory=1.5)
    read_and_packed = threads * (2 * _STRIP + _READ) * dim * 4
    a_row = dim * 4 + threads * (k * 8 + 4)  # of the panel, and of each thread's lists: scores, numbers and limits
    rows = panel_rows(10**9, dim, k, config, threads)
    assert rows % _PANEL_STEP == 0
    assert read_and_packed + rows * a_row <= config.bytes < read_and_packed + (rows + _PANEL_STEP) * a_row
    small = SearchConfig(method="exact", memory=1e-6)
    assert panel_rows(10**9, dim, k, small, threads) == _PANEL_STEP
    for targets, least in ((1, _PANEL_STEP), (_PANEL_STEP, _PANEL_STEP), (_PANEL_STEP + 1, 2 * _PANEL_STEP)):
        assert panel_rows(targets, dim, k, config, threads) == least
