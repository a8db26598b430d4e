"""Mining among the lines of one file: paraphrases and near-duplicates."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pytest

from xswe.errors import ConfigError
from xswe.mining.margin import Selection
from xswe.mining.mined import mine
from xswe.mining.pipeline import both_ways
from xswe.search import clusters
from xswe.search.lists import SearchConfig
from xswe.search.neighbours import neighbours_within

ONE = SearchConfig(threads=1)


def obvious(a, k, allowed):
    """The k best of each row among those allowed, as sets of (row, id)."""
    scores = np.where(allowed, a.astype(np.float64) @ a.astype(np.float64).T, -np.inf)
    ids = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    return {(i, int(j)) for i, row in enumerate(ids) for j in row if scores[i, j] > -np.inf}


def pairs_of(ids):
    return {(i, int(j)) for i, row in enumerate(ids) for j in row if j >= 0}


@pytest.mark.parametrize(("n", "memory"), [(1, 2.0), (3, 0.004), (700, 2.0), (1500, 0.0001)])
def test_neighbours_within_are_those_before_and_after(vectors, n, memory):
    a, _ = vectors(n, 1)
    found = neighbours_within(a, 3, SearchConfig(threads=2, memory=memory))
    before = np.tri(n, k=-1, dtype=bool)
    assert pairs_of(found.forward_ids) == obvious(a, 3, before)
    assert pairs_of(found.backward_ids) == obvious(a, 3, before.T)
    assert pairs_of(both_ways(found).forward_ids) == obvious(a, 3, ~np.eye(n, dtype=bool))


def test_clusters_leave_a_line_itself_out(vectors, monkeypatch):
    monkeypatch.setattr(clusters, "_SAMPLE", 2)
    a, _ = vectors(1500, 1)
    whole = neighbours_within(a, 2, ONE)
    in_one = neighbours_within(a, 2, SearchConfig(method="clusters", clusters=1, probes=1, threads=1))
    several = neighbours_within(a, 2, SearchConfig(method="clusters", threads=1))
    np.testing.assert_array_equal(in_one.forward_ids, whole.forward_ids)
    np.testing.assert_array_equal(in_one.backward_ids, whole.backward_ids)
    assert all(j < i for i, j in pairs_of(several.forward_ids))


@pytest.mark.slow
def test_a_device_leaves_a_line_itself_out(vectors):
    pytest.importorskip("torch")
    a, _ = vectors(1500, 1)
    whole, on_device = neighbours_within(a, 2, ONE), neighbours_within(a, 2, SearchConfig(device="cpu:0"))
    np.testing.assert_array_equal(on_device.forward_ids, whole.forward_ids)
    np.testing.assert_array_equal(on_device.backward_ids, whole.backward_ids)


@pytest.mark.parametrize("select", [how for how in get_args(Selection) if how != "backward"])
def test_each_pair_is_given_once_with_the_earlier_line_first(vectors, select):
    a, b = vectors(300, 300, planted=150)
    found = mine(None, np.concatenate([a, b]), select=select, threshold=None, threads=1)
    places = list(zip(found.source_rows.tolist(), found.target_rows.tolist(), strict=True))
    assert all(i < j for i, j in places)
    assert len(set(places)) == len(places)
    assert {(i, i + 300) for i in range(150)} <= set(places)
    if select == "max":
        assert len({*found.source_rows.tolist(), *found.target_rows.tolist()}) == 2 * len(places)


def test_the_threshold_is_found_within_one_side(vectors):
    a, b = vectors(2000, 2000, planted=1000, dim=64)
    found = mine(None, np.concatenate([a, b]), threads=1)
    right = (found.target_rows - found.source_rows == 2000) & (found.source_rows < 1000)
    assert right.mean() > 0.95
    assert right.sum() > 950
    assert found.threshold.precision == pytest.approx(right.mean(), abs=0.05)


def test_paraphrases_of_a_file_and_of_a_list_are_the_same_and_resumable(model, sample, tmp_path):
    lines = [*sample["en"][:300], *(line.upper() + " Indeed!" for line in sample["en"][:40])]
    (tmp_path / "a.txt").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    settings = {"threshold": 1.1, "threads": 1}
    found = mine(model, tmp_path / "a.txt", output=tmp_path / "pairs.tsv", **settings)
    assert list(found) == list(mine(model, lines, **settings))
    planted = {(i, i + 300) for i in range(40)}
    assert len(planted & set(zip(found.source_rows.tolist(), found.target_rows.tolist(), strict=True))) > 35
    assert "lines: 340 lines read" in str(found.report)
    assert str(found.report).startswith("no target=: paraphrases")  # who forgot it is told
    first = (tmp_path / "pairs.tsv").read_bytes()
    kept = {"work": tmp_path / "work", "keep": True}
    for _ in range(2):
        mine(model, tmp_path / "a.txt", output=tmp_path / "pairs.tsv", **settings, **kept)
        assert (tmp_path / "pairs.tsv").read_bytes() == first


@pytest.mark.parametrize(("settings", "found"), [({"select": "backward"}, "forward"), ({"gold": "gold.tsv"}, "target=")])
def test_what_needs_two_sides_is_refused(model, settings, found):
    with pytest.raises(ConfigError, match=found):
        mine(model, ["a", "b"], **settings)
