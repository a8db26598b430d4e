"""The steps by which what is out of order is found, against plain definitions."""

from __future__ import annotations

from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import xswe
from xswe.alignment import moved as module
from xswe.alignment.beads import AlignConfig, Constraints, Prices, line_sums
from xswe.alignment.moved import (
    _around,
    _best_of_each_other,
    _blocks,
    _is_off,
    _is_rejected,
    _pools,
    score_spans,
    without,
)
from xswe.io.ragged import Texts

# A path of 8 and 7 lines: a bead, a gap of each side, a weak bead of two lines, a good one, a weak one.
CELLS = np.array([(0, 0), (1, 1), (2, 1), (2, 2), (4, 3), (5, 4), (6, 5), (8, 7)])
COSINES = np.array([0.9, np.nan, np.nan, 0.3, 0.6, 0.59, 0.9], np.float32)


def test_lines_in_gaps_and_weak_beads_may_belong_elsewhere():
    prices = Prices(noise=0.0, signal=1.0)
    found = _pools(CELLS, COSINES, prices, Constraints())
    assert [rows.tolist() for rows in found] == [[1, 2, 3, 5], [1, 2, 4]]
    known = Constraints([((2, 2), (4, 3))], np.array([1]), np.array([4]))
    assert [rows.tolist() for rows in _pools(CELLS, COSINES, prices, known)] == [[5], [1]]
    sure = np.full(7, 0.9, np.float32)
    assert [len(rows) for rows in _pools(CELLS, sure, prices, Constraints())] == [0, 0]
    assert [len(rows) for rows in _pools(CELLS, sure - 0.7, Prices(noise=-0.5, signal=0.5), Constraints())] == [0, 0]


def test_a_pair_of_lines_is_off_the_path_from_two_lines_before_or_behind():
    rows, columns = (each.ravel() for each in np.mgrid[0:8, 0:7])
    off = _is_off(CELLS, rows, columns).reshape(8, 7)
    for row in range(8):
        low = [column for line, column in CELLS.tolist() if line <= row][-1]
        high = next(column for line, column in CELLS.tolist() if line >= row + 1)
        assert off[row].tolist() == [not low - 1 <= column <= high for column in range(7)]


@pytest.mark.parametrize("at_a_time", [1, 9, 1 << 20])
def test_lines_are_each_others_most_similar_however_many_are_compared_at_a_time(monkeypatch, at_a_time):
    monkeypatch.setattr(module, "_CHUNK_CELLS", at_a_time)
    rng = np.random.default_rng(3)
    source, target = rng.normal(size=(30, 5)).astype(np.float32), rng.normal(size=(20, 5)).astype(np.float32)
    cosines = source @ target.T
    wanted = [(i, j) for i in range(30) for j in range(20) if cosines[i, j] == max(cosines[i].max(), cosines[:, j].max())]
    rows, columns, scores = _best_of_each_other(source, target)
    assert list(zip(rows.tolist(), columns.tolist(), strict=True)) == wanted
    np.testing.assert_allclose(scores, [cosines[pair] for pair in wanted], rtol=1e-5)


def chain_score(chain):
    """What pairs of lines score as a block; None where they do not follow each other."""
    gaps = [(c - a - 1, d - b - 1) for (a, b, _), (c, d, _) in pairwise(chain)]
    if any(min(gap) < 0 or max(gap) > 5 for gap in gaps):
        return None
    return sum(score for *_, score in chain) - 0.05 * sum(map(sum, gaps))


@settings(max_examples=60)
@given(st.data())
def test_blocks_are_the_chains_that_score_most_and_enough(data):
    count = data.draw(st.integers(0, 7))
    rows = sorted(data.draw(st.lists(st.integers(0, 20), min_size=count, max_size=count, unique=True)))
    columns = data.draw(st.lists(st.integers(0, 20), min_size=count, max_size=count, unique=True))
    scores = data.draw(st.lists(st.sampled_from([0.5, 0.6, 0.75, 0.9, 1.1, 1.6]), min_size=count, max_size=count))
    pairs = list(zip(rows, columns, scores, strict=True))
    chains = [chain for size in range(1, count + 1) for chain in combinations(pairs, size)]
    best = max((score for chain in chains if (score := chain_score(chain)) is not None), default=0.0)
    found = _blocks(*map(np.array, (rows, columns, scores)))
    score_of = {pair[:2]: pair for pair in pairs}
    blocks = [[score_of[pair] for pair in block] for block in found]
    assert all(chain_score(block) >= 1.6 - 1e-9 for block in blocks)
    used = [pair for block in found for pair in block]
    assert len(used) == len(set(used))
    if best >= 1.6 + 1e-9:
        assert chain_score(blocks[0]) == pytest.approx(best)
    elif best < 1.6 - 1e-9:
        assert not blocks


def test_lines_within_a_block_that_are_not_free_are_in_none_of_its_beads(sample):
    """Pairs of lines 20 to 24 stand at 30 to 34; some lines between them belong elsewhere."""
    model, config, prices = xswe.load("mini"), AlignConfig(), Prices(noise=0.1, signal=0.6)
    texts = Texts.of(sample["en"][:26]), Texts.of([*sample["de"][:30], *sample["de"][20:26]])
    sides = [module._Side(model, side, 1) for side in texts]

    def found(*gone, pairs=((20, 30), (22, 32), (24, 34)), constraints=None):
        pools = [np.array([line for line in range(*ends) if line not in gone]) for ends in ((20, 26), (30, 36))]
        spans, scores = module._aligned([pairs], sides, tuple(pools), prices, config, constraints or Constraints())
        assert (scores > config.gap).all()
        return spans.tolist()

    every = [[line, line + 1, line + 10, line + 11] for line in range(20, 26)]
    assert found() == every
    assert found(21) == [*every[:1], *every[2:]]
    assert found(21, 33) == [every[0], every[2], *every[4:]]
    rejected = Constraints((), rejected=np.array([[22, 23, 32, 33]]))
    assert every[2] not in found(constraints=rejected)


def test_what_is_free_around_a_block_may_belong_to_it():
    assert _around(20, 22, set(range(100)), set()) == (8, 35)  # twelve lines on either side
    assert _around(20, 22, set(range(17, 25)), set()) == (17, 25)
    assert _around(20, 22, set(range(100)), {15, 30}) == (16, 30)
    assert _around(20, 22, set(), set()) == (20, 23)


def test_a_bead_that_holds_a_rejected_pair_is_rejected():
    known = Constraints((), rejected=np.array([[2, 4, 5, 6], [9, 10, 9, 10]]))
    assert _is_rejected((2, 4, 5, 6), known)
    assert _is_rejected((1, 5, 4, 7), known)
    for part in ((3, 4, 5, 6), (2, 3, 5, 6), (2, 4, 6, 7), (2, 4, 4, 5), (9, 10, 5, 6)):
        assert not _is_rejected(part, known)
    assert not _is_rejected((0, 9, 0, 9), Constraints())


def test_lines_out_of_order_have_no_counterpart_on_the_path():
    known = Constraints((), np.array([1, 7]), np.array([0]))
    found = without(known, np.array([(2, 4, 5, 6), (7, 8, 1, 3)]))
    assert (found.source_gaps.tolist(), found.target_gaps.tolist()) == ([1, 2, 3, 7], [0, 1, 2, 5])


def test_beads_anywhere_score_as_the_sums_of_their_lines(sample):
    model, prices = xswe.load("mini"), Prices(noise=0.1, signal=0.6)
    texts = [Texts.of(sample[language][:30]) for language in ("en", "de")]
    spans = np.array([(3, 4, 3, 4), (5, 7, 5, 6), (9, 9, 2, 3), (0, 1, 20, 23), (2, 3, 8, 8)])
    sums = []
    for side in texts:
        lines = line_sums(model, side)
        lines.centre()
        sums.append(lines.sums)
    wanted = []
    for a, b, c, d in spans.tolist():
        left, right = sums[0][a:b].sum(0), sums[1][c:d].sum(0)
        norms = np.linalg.norm(left) * np.linalg.norm(right)
        wanted.append(float(prices.score(left @ right / norms)) if norms else 0.0)
    np.testing.assert_allclose(score_spans(model, *texts, spans, prices, 1), wanted, atol=1e-4)
    assert wanted[0] > 0.7 > wanted[3]
    assert score_spans(model, *texts, spans[[2, 4]], prices, 1).tolist() == [0.0, 0.0]
