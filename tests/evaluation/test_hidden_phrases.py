"""Hidden phrases: the reader, the builder, and the figures."""

from __future__ import annotations

import numpy as np
import pytest

from xswe.errors import ConfigError, InputError
from xswe.evaluation.phrases import (
    HiddenPhrase,
    hide_phrases,
    overlap,
    phrase_rows,
    read_hidden_phrases,
    write_hidden_phrases,
)


def test_the_reader_reads_what_the_format_says(tmp_path):
    path = tmp_path / "set.tsv"
    path.write_text("origin\ttarget\tscore\tcontext\na cat\tcats\t3.5\tBig cats sleep.\nx\tgone\t1\tNothing.\n", "utf-8")
    items = read_hidden_phrases(path)
    assert items == [
        HiddenPhrase("a cat", "cats", 3.5, "Big cats sleep.", 4),
        HiddenPhrase("x", "gone", 1.0, "Nothing.", -1),
    ]
    write_hidden_phrases(items, tmp_path / "again.tsv")
    assert read_hidden_phrases(tmp_path / "again.tsv") == items


@pytest.mark.parametrize(("text", "line"), [("a\tb\t1\tc\na\tb\n", 2), ("a\tb\tmany\tc\nx\ty\tfew\tz\n", 2), ("a b\n", 1)])
def test_a_bad_line_is_named(tmp_path, text, line):
    (tmp_path / "set.tsv").write_text(text, "utf-8")
    with pytest.raises(InputError, match=rf"set\.tsv:{line}: not origin"):
        read_hidden_phrases(tmp_path / "set.tsv")


@pytest.mark.parametrize("spaced", [True, False])
def test_targets_stand_where_the_builder_says_among_neighbours(spaced):
    carriers = [f"Carrier {i}." for i in range(20)]
    pairs = [(float(i % 6), f"phrase {i}", f"target {i}") for i in range(200)]
    items = hide_phrases(pairs, carriers, seed=1, spaced=spaced)
    for (score, phrase, target), item in zip(pairs, items, strict=True):
        assert (item.score, item.phrase, item.target) == (score, phrase, target)
        assert item.context[item.start : item.end] == target
        rest = item.context[: item.start] + item.context[item.end :]
        numbers = [int(part.split(".")[0]) for part in rest.split("Carrier ")[1:]]
        assert 1 <= len(numbers) <= 6
        assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    assert {item.start > 0 for item in items} == {True, False}
    assert items == hide_phrases(pairs, carriers, seed=1, spaced=spaced)
    assert items != hide_phrases(pairs, carriers, seed=2, spaced=spaced)
    with pytest.raises(ConfigError, match="at least 7"):
        hide_phrases(pairs, carriers[:6], seed=1, spaced=True)


def test_overlap():
    assert overlap(2, 6, 2, 6) == 1.0
    assert overlap(2, 6, 4, 8) == pytest.approx(1 / 3)
    assert overlap(2, 6, 6, 8) == overlap(2, 2, 3, 3) == 0.0


def test_the_figures_of_known_answers():
    items = [HiddenPhrase("a", "b", score, "xxb", 2) for score in (0.0, 2.0, 4.0, 5.0)]
    rows = phrase_rows(items, np.array([0.1, 0.2, 0.3, 0.9]), np.array([0, 0, 2, 0]), np.array([1, 1, 3, 3]), "t", "en")
    found = {row.metric: (row.value, row.n) for row in rows}
    assert found["spearman"] == (pytest.approx(1.0), 4)
    assert found["pearson"][0] == pytest.approx(np.corrcoef([0, 2, 4, 5], [0.1, 0.2, 0.3, 0.9])[0, 1])
    assert found["iou"] == (pytest.approx((1 + 1 / 3) / 2), 2)
    assert found["found"] == (0.5, 2)


@pytest.mark.parametrize(
    ("gold", "scores", "why"),
    [
        ([1.0], [0.5], "1 pair is too few"),
        ([1.0, 1.0], [0.5, 0.6], "all scores are equal"),
        ([1.0, 2.0], [0.5, 0.5], "all of the method's scores are equal"),
        ([1.0, 2.0], [0.5, np.nan], "some are not finite"),
    ],
)
def test_where_there_is_no_correlation_the_rows_say_why(gold, scores, why):
    items = [HiddenPhrase("a", "b", score, "xxb", 2) for score in gold]
    rows = phrase_rows(items, np.array(scores), np.zeros(len(items), int), np.ones(len(items), int), "t", "en")
    assert [(row.metric, row.value) for row in rows] == [("spearman", None), ("pearson", None)]
    assert all(why in row.note for row in rows)


def test_a_score_that_is_no_number_is_refused(tmp_path):
    (tmp_path / "set.tsv").write_text("a\tb\t1\tc\na\tb\tnan\tc\n", "utf-8")
    with pytest.raises(InputError, match=r"set\.tsv:2: the score is nan"):
        read_hidden_phrases(tmp_path / "set.tsv")
