"""Tokenised bitexts: batches of them, and which of their texts are equal, against plain lists."""

from __future__ import annotations

import numpy as np
import pytest

from xswe.io.ragged import Bags
from xswe.training.pairs import ParallelBags


@pytest.mark.parametrize("resident", [True, False])
@pytest.mark.parametrize("seed", range(10))
def test_batches_and_equal_texts_are_those_of_lists(tmp_path, monkeypatch, seed, resident):
    rng = np.random.default_rng(seed)

    def texts(n):
        return [rng.integers(0, 3, rng.integers(0, 3)).tolist() for _ in range(n)]

    n, alike, alone = int(rng.integers(1, 12)), bool(seed % 2), seed % 5 == 4
    bounds = np.concatenate([[0], np.cumsum(rng.integers(0, 3, n))])
    lists = {"source": texts(n)} | ({} if alone else {"target": texts(n)})
    lists |= {} if alone or seed % 5 == 3 else {"negatives": texts(bounds[-1])}
    columns = {name: Bags.of(own) for name, own in lists.items()}
    if not resident:
        monkeypatch.setattr("xswe.training.pairs._MAX_RESIDENT", 0)
        for name, bags in columns.items():
            bags.save(tmp_path, name)
        columns = {name: Bags.open(tmp_path, name) for name in columns}
    bitext = ParallelBags(**columns, alike=alike, **({"bounds": bounds} if "negatives" in lists else {}))
    rows = rng.permutation(n)[: int(rng.integers(1, n + 1))]
    source, target = lists["source"], lists.get("target", [])
    own = [k for row in rows for k in range(bounds[row], bounds[row + 1])] if "negatives" in lists else []
    own = [k for k in own if lists["negatives"][k]]  # without a known unit it is no negative
    assert bitext.negatives_of(rows).tolist() == own
    wanted = [source[row] for row in rows] + [target[row] for row in rows if target]
    wanted += [lists["negatives"][k] for k in own]
    made = bitext.batch(rows)
    assert [made.ids[a:b].tolist() for a, b in zip(made.offsets, made.offsets[1:], strict=False)] == wanted
    assert len(bitext) == n

    first, second, *again = bitext.same(rows)
    candidates = ([source, target][bool(target)][row] for row in rows)
    candidates = [*candidates, *(lists["negatives"][k] for k in own)]
    anchors = [source[row] for row in rows]
    equal = lambda a, b: [[x == y for y in b] for x in a]  # noqa: E731
    assert (first[:, None] == first).tolist() == equal(anchors, anchors)
    assert (second[:, None] == second).tolist() == equal(candidates, candidates)
    assert len(again) == alike
    if alike:
        assert (again[0][:, None] == second).tolist() == equal(anchors, candidates)

    numbers = bitext.texts()
    assert numbers.bounds.tolist() == (bounds.tolist() if "negatives" in lists else [0] * (n + 1))
    assert numbers.alike == (alike and not alone)
    if alone:
        assert numbers.target.tolist() == list(range(n))
    else:
        assert (numbers.target[:, None] == numbers.target).tolist() == equal(target, target)
    assert [k for k, number in enumerate(numbers.negatives) if number >= 0] == [
        k for k, text in enumerate(lists.get("negatives", [])) if text
    ]
