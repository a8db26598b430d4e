from __future__ import annotations

import numpy as np
import pytest

from xswe.bitext.source import Source
from xswe.errors import InputError
from xswe.evaluation.metrics import (
    CORRELATIONS,
    PRIMARY,
    Row,
    bitext_items,
    correlation_rows,
    neighbourhood,
    primary_metrics,
    search,
    weighted_f1,
)
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
        found = (nearest_by_margin if margin else nearest)(a, b)
        assert items["f1_forward"].mean() == pytest.approx(weighted_f1(found))
        assert items["accuracy_forward"].tolist() == (found == np.arange(300)).tolist()
    assert nearest(a, b).tolist() != nearest_by_margin(a, b).tolist()
    np.testing.assert_array_equal(bitext_items(a, b)["mrr"], bitext_items(a, b, False)["mrr"])


def test_hubs_are_what_the_margin_is_for():
    a, b = vectors(noise=0.6)
    hub = b.mean(0)
    b = b + 2.0 * hub * (np.arange(300) < 5)[:, None]
    b /= np.linalg.norm(b, axis=1, keepdims=True)
    assert bitext_retrieval(a, b, margin=True)["accuracy"] >= bitext_retrieval(a, b)["accuracy"]


def test_correlations_are_scipys_with_ties_and_at_any_scale():
    from scipy.stats import pearsonr, spearmanr

    rng = np.random.default_rng(2)
    for n, values, scale in ((300, 1000, 1.0), (9, 4, 1e-3), (20, 3, 1e3), (2, 1000, 1e-4)):
        x, y = (rng.integers(0, values, n) * scale for _ in range(2))
        x[0], y[0], x[1], y[1] = 0, 0, scale, 2 * scale  # never constant
        found = {name: correlate(x, y) for name, correlate in CORRELATIONS.items()}
        assert found["spearman"] == pytest.approx(spearmanr(x, y).statistic, abs=1e-12)
        assert found["pearson"] == pytest.approx(pearsonr(x, y).statistic, abs=1e-12)
    for _ in range(50):  # rounding leads beyond 1
        x = rng.normal(size=5)
        assert 1 - 1e-12 < CORRELATIONS["pearson"](x, 3 * x) <= 1
        assert -1 <= CORRELATIONS["pearson"](x, -3 * x) < -1 + 1e-12
    assert np.isnan([correlate(np.ones(3), rng.random(3)) for correlate in CORRELATIONS.values()]).all()


def test_a_place_is_represented_by_the_first_of_its_metrics():
    rng = np.random.default_rng(0)
    names = (*PRIMARY, "accuracy", "mrr")
    for _ in range(200):
        found = [("ab"[rng.integers(2)], names[rng.integers(len(names))]) for _ in range(rng.integers(5))]
        known = {place: [metric for where, metric in found if where == place and metric in PRIMARY] for place in "ab"}
        assert primary_metrics(found) == {place: min(has, key=PRIMARY.index) for place, has in known.items() if has}


def test_a_neighbourhood_is_the_mean_of_what_is_nearest():
    a, b = vectors(7)
    for k in (1, 2, 6, 7, 8):
        np.testing.assert_allclose(neighbourhood(a, b, k), np.sort(a @ b.T, 1)[:, -min(k, 7) :].mean(1), rtol=1e-5)
    np.testing.assert_array_equal(neighbourhood(a, b), neighbourhood(a, b, 4))


def test_without_pairs_no_figure_is_above_zero():
    assert weighted_f1(np.zeros(0, np.int64)) == 0.0
    none = np.zeros((0, 4), np.float32)
    assert {len(items) for items in bitext_items(none, none, margin=True).values()} == {0}


@pytest.mark.parametrize(
    ("found", "scores", "reason"),
    [
        ([0.5, 0.5], [1.0, 2.0], "all cosines are equal"),
        ([0.5, 0.25], [1.0, 1.0], "all scores are equal"),
        ([0.5, np.inf], [1.0, 2.0], "of all cosines, or of the scores, some are not finite"),
        ([0.5], [1.0], "1 pair is too few"),
    ],
)
def test_a_correlation_that_is_undefined_says_why(found, scores, reason):
    rows = correlation_rows(np.array(found), np.array(scores), "file", "a.tsv")
    note = f"no correlation: {reason}"
    assert rows == [Row("file", "a.tsv", metric, None, len(found), note=note) for metric in CORRELATIONS]


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
