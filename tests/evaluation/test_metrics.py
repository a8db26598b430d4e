from __future__ import annotations

import numpy as np
import pytest

from xswe.bitext.source import Source
from xswe.errors import InputError
from xswe.evaluation.metrics import CORRELATIONS, bitext_items, neighbourhood, search, weighted_f1
from xswe.evaluation.tasks import evaluate_bitext, evaluate_scored, is_scored
from xswe.io.results import table
from xswe.mining.margin import score_candidates
from xswe.search.neighbours import SearchConfig, find_neighbours


def vectors(n=300, noise=0.9, seed=0):
    rng = np.random.default_rng(seed)
    a = rng.normal(size=(n, 16)).astype(np.float32)
    b = (a + noise * rng.normal(size=a.shape)).astype(np.float32)
    return tuple(x / np.linalg.norm(x, axis=1, keepdims=True) for x in (a, b))


def nearest(queries, candidates):
    return search(queries, candidates).nearest


def nearest_by_margin(queries, candidates):
    base = neighbourhood(queries, candidates), neighbourhood(candidates, queries)
    return search(queries, candidates, base).nearest


def bitext_retrieval(source, target, margin=False):
    return {name: items.mean() for name, items in bitext_items(source, target, margin).items()}


def test_weighted_f1_is_scikit_learns():
    sklearn, rng = pytest.importorskip("sklearn.metrics"), np.random.default_rng(1)
    for n in (1, 5, 200):
        predicted = np.where(rng.random(n) < 0.6, np.arange(n), rng.integers(0, n, n))
        expected = sklearn.f1_score(np.arange(n), predicted, average="weighted", zero_division=0)
        assert weighted_f1(predicted) == pytest.approx(expected)


def test_blocks_do_not_matter(monkeypatch):
    a, b = vectors()
    whole = nearest(a, b), nearest_by_margin(a, b)
    monkeypatch.setattr("xswe.evaluation.metrics._BLOCK_ROWS", 7)
    np.testing.assert_array_equal(nearest(a, b), whole[0])
    np.testing.assert_array_equal(nearest_by_margin(a, b), whole[1])


def test_margin_equals_its_definition():
    a, b = vectors(40)
    s = (a @ b.T).astype(np.float64)
    base = (np.sort(s, 1)[:, -4:].mean(1)[:, None] + np.sort(s, 0)[-4:].mean(0)[None]) / 2
    np.testing.assert_array_equal(nearest_by_margin(a, b), (s / base).argmax(1))


def test_evaluation_scores_by_the_margin_that_mining_mines_by():
    rng = np.random.default_rng(5)
    a = rng.normal(size=(40, 7, 256)).astype(np.float32)  # so few unrelated lines that neighbourhoods hold next to nothing
    b = (a + 6 * rng.normal(size=a.shape)).astype(np.float32)
    a, b = (x / np.linalg.norm(x, axis=2, keepdims=True) for x in (a, b))
    for left, right in zip(a, b, strict=True):
        scored = score_candidates(find_neighbours(left, right, 7, SearchConfig(threads=1)), "ratio", k=4)
        best = scored.forward_ids[np.arange(7), scored.forward.argmax(1)]
        np.testing.assert_array_equal(nearest_by_margin(left, right), best)


def test_accuracy_both_ways():
    a, b = vectors()
    s = a @ b.T
    found = bitext_retrieval(a, b)
    assert found["accuracy_forward"] == pytest.approx((s.argmax(1) == np.arange(300)).mean())
    assert found["accuracy_backward"] == pytest.approx((s.argmax(0) == np.arange(300)).mean())
    assert found["accuracy"] == pytest.approx((found["accuracy_forward"] + found["accuracy_backward"]) / 2)
    assert 0.3 < found["f1"] < found["accuracy"] < 1


def test_ranks_are_places_in_the_sorted_scores():
    from sklearn.metrics import label_ranking_average_precision_score

    a, b = vectors(noise=1.5)
    found = search(a, b)
    order = np.argsort(-(a @ b.T), axis=1, kind="stable")
    np.testing.assert_array_equal(found.rank, 1 + (order == np.arange(300)[:, None]).argmax(1))
    np.testing.assert_array_equal(found.nearest, order[:, 0])
    expected = label_ranking_average_precision_score(np.eye(300), a @ b.T)  # with one answer a query: the MRR
    assert bitext_retrieval(a, b)["mrr_forward"] == pytest.approx(expected)


def test_ties_go_to_the_lowest_row_in_rank_and_nearest_alike():
    a = np.eye(4, dtype=np.float32)[[0, 0, 2, 3]]
    found = search(a, a)
    np.testing.assert_array_equal(found.nearest, [0, 0, 2, 3])
    np.testing.assert_array_equal(found.rank, [1, 2, 1, 1])
    np.testing.assert_array_equal(found.rank == 1, found.nearest == np.arange(4))


def test_figures_are_means_of_their_items():
    a, b = vectors(noise=1.2)
    for margin in (False, True):
        items = bitext_items(a, b, margin)
        assert items["f1_forward"].mean() == pytest.approx(weighted_f1(search(a, b).nearest)) or margin


def test_hubs_are_what_the_margin_is_for():
    a, b = vectors(noise=0.6)
    hub = b.mean(0)
    b = b + 2.0 * hub * (np.arange(300) < 5)[:, None]
    b /= np.linalg.norm(b, axis=1, keepdims=True)
    assert bitext_retrieval(a, b, margin=True)["accuracy"] >= bitext_retrieval(a, b)["accuracy"]


def test_correlations_are_scipys():
    from scipy.stats import pearsonr, spearmanr

    a, b = vectors()
    scores = np.random.default_rng(2).random(300)
    cosines = (a * b).sum(1)
    found = {name: correlate(cosines, scores) for name, correlate in CORRELATIONS.items()}
    assert found["spearman"] == pytest.approx(spearmanr(cosines, scores).statistic, abs=1e-4)
    assert found["pearson"] == pytest.approx(pearsonr(cosines, scores).statistic, abs=1e-4)


def letters(texts):
    out = np.array([[t.count(c) for c in "abcdef"] for t in texts], np.float32)
    return out / np.maximum(np.linalg.norm(out, axis=1, keepdims=True), 1e-9)


def test_files_as_tasks(tmp_path):
    (tmp_path / "b.tsv").write_text("aab\taab\nbcc\tbcc\nfed\tfed\n")
    rows = {row.metric: row for row in evaluate_bitext(letters, Source((tmp_path / "b.tsv",)))}
    assert rows["accuracy"].value == rows["margin_f1"].value == 1.0
    assert (rows["accuracy"].n, rows["accuracy"].subset, rows["accuracy"].task) == (3, "b.tsv", "file")
    scored = tmp_path / "s.tsv"
    scored.write_text("5.0\tab\tab\n2.5\tab\tac\n0\tab\tcd\n")
    assert is_scored(scored)
    assert not is_scored(tmp_path / "b.tsv")
    (tmp_path / "header.tsv").write_text("score\ta\tb\n\n5.0\tab\tab\n2.5\tab\tac\n")
    assert is_scored(tmp_path / "header.tsv")
    with pytest.raises(InputError, match=r"header\.tsv:1.*score"):
        evaluate_scored(letters, tmp_path / "header.tsv")
    found = {row.metric: row.value for row in evaluate_scored(letters, scored)}
    assert found["spearman"] == pytest.approx(1.0)
    scored.write_text("5.0\tab\tab\nx\tab\tac\n")
    with pytest.raises(InputError, match=r"s\.tsv:2"):
        evaluate_scored(letters, scored)
    scored.write_text("5.0\tab\tab\nnan\tab\tac\n")
    with pytest.raises(InputError, match=r"s\.tsv:2.*nan"):
        evaluate_scored(letters, scored)
    scored.write_text("5.0\tab\tab\n5.0\tab\tac\n")
    assert [(row.value, row.note) for row in evaluate_scored(letters, scored)] == [
        (None, "no correlation: all scores are equal")
    ] * 2
    (tmp_path / "empty.tsv").write_text("")
    with pytest.raises(InputError, match="no pair"):
        evaluate_bitext(letters, Source((tmp_path / "empty.tsv",)))


def test_tables_are_aligned_and_show_percent():
    assert table(["a", "value"], [["x", 0.5], ["long", None], ["y", 3]]) == (
        "a     value\n----  -----\nx      50.0\nlong      -\ny         3"
    )
