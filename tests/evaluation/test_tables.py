"""Tables of models: which figures they show, under which titles and with which marks."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace

import pytest

from xswe.errors import ConfigError, InputError
from xswe.evaluation import evaluate as module
from xswe.evaluation.evaluate import (
    LEVEL,
    PairedTest,
    _best,
    _file,
    _interval,
    _matching,
    _outcome,
    check_measured,
    figures_of,
    of_marks,
    seconds_of_training,
    shown,
    skipped,
    title,
)
from xswe.evaluation.metrics import Row


def test_a_column_says_no_more_than_tells_it_apart():
    one, two = ("sts17", "en", "spearman", None), ("sts17", "en-de", "spearman", None)
    assert [title(key, (one, two)) for key in (one, two)] == ["sts17 en", "sts17 en-de"]
    assert title(("file", "a.tsv", "f1", None), [one]) == "a.tsv"
    dev, test = (("bucc", "en-de", "f1", split) for split in ("dev", "test"))
    assert [title(key, (dev, test, one)) for key in (dev, test)] == ["bucc en-de dev", "bucc en-de test"]
    both = ("bucc", "en-de", "accuracy", "dev")
    assert title(dev, (dev, both)) == "bucc en-de f1"
    assert title(dev, (dev, test, both)) == "bucc en-de dev f1"


def test_what_was_not_measured_is_said_by_its_reason():
    rows = [
        Row("a", "en", "skipped", None, 0, note="not there"),
        Row("b", "de", "skipped", None, 0, note="not there"),
        Row("a", "en", "skipped", None, 0, note="not there"),
        Row("c", "ja", "skipped", None, 0, note="damaged"),
        Row("d", "ja", "f1", 0.0, 3, note="a note of its own"),
        Row("e", "ja", "skipped", None, 0),
    ]
    assert skipped(rows) == ["skipped a en, b de: not there", "skipped c ja: damaged"]
    check_measured(rows)
    with pytest.raises(ConfigError, match=r"^nothing was measured: skipped a en: not there \(all rows: e\.json\)$"):
        check_measured(rows[:1], "e.json")
    with pytest.raises(ConfigError, match=r"^nothing was measured: no task has any row$"):
        check_measured([])


def test_an_interval_is_shown_where_it_has_both_bounds():
    row = Row("a", "en", "f1", 0.5, 9)
    assert _interval(replace(row, low=0.123, high=0.6)) == "12.3-60.0"
    assert _interval(replace(row, low=0.0, high=0.0)) == "0.0-0.0"
    assert [_interval(replace(row, **one)) for one in ({}, {"low": 0.1}, {"high": 0.1})] == [None] * 3


def test_the_main_score_is_shown_where_nothing_better_is():
    rows = [
        Row("a", "en", "f1", 0.5, 9, source="mteb"),
        Row("a", "en", "main_score", 0.5, 9, source="mteb"),
        Row("b", "en", "main_score", 0.4, 9, source="mteb"),
        Row("a", "de", "main_score", 0.3, 9, source="mteb"),
        Row("c", "en", "spearman", 0.3, 9, source="mteb"),
        Row("c", "de", "spearman", 0.3, 9, source="xswe"),
        Row("c", "ja", "nonesuch", 0.3, 9, source="xswe"),
    ]
    assert [rows.index(row) for row in shown(rows)] == [0, 2, 3, 5]


def measured(name, **values):
    rows = [Row(task, "en", "f1", value, 9) for task, value in values.items()]
    row = lambda key: next((one for one in rows if one.key == key and one.value is not None), None)  # noqa: E731
    return SimpleNamespace(name=name, dim=4, size=2_500_000, rate=None, rows=rows, row=row)


def test_the_best_is_marked_and_what_is_not_shown_to_be_worse():
    models = [measured("x", a=0.5, b=0.1), measured("y", a=0.5, b=0.3), measured("z", a=0.2), measured("w", b=None)]
    models[1].rate = 1234.5
    models[3].rows[0] = replace(models[3].rows[0], note="too few")
    key_a, key_b = figures_of(row for model in models for row in model.rows)
    assert (key_a, key_b) == (("a", "en", "f1", None), ("b", "en", "f1", None))
    assert [_best(models, key).name for key in (key_a, key_b)] == ["x", "y"]  # the first of equals
    assert _best(models[2:], key_b) is None
    tests = [
        PairedTest(*key, best, other, 0.1, 0.0, 0.2, p, p)
        for key, best, other, p in ((key_a, "x", "y", LEVEL), (key_a, "x", "z", LEVEL - 1e-9), (key_b, "y", "x", 1.0))
    ]
    header, lines, notes = _outcome(models, tests)
    assert header == ["model", "dims", "MB", "sentences/s", "a en", "b en"]
    assert [line[:4] for line in lines[:2]] == [["x", 4, "2.5", None], ["y", 4, "2.5", "1,234"]]
    marks = [[cell[-1] for cell in line[4:]] for line in lines]
    assert marks == [["*", "="], ["=", "*"], [" ", " "], [" ", " "]]
    assert lines[0][4].startswith("50.0")
    assert notes == [of_marks(3), "skipped b en: too few (w)"]
    assert "corrected for 3 tests" in of_marks(3)
    assert "corrected" not in of_marks(1)


def test_the_seconds_of_a_training(tmp_path):
    assert seconds_of_training(tmp_path) is None
    (tmp_path / "run.json").write_text(json.dumps({"seconds": {"pca": 1.5, "refine": 2}}))
    assert seconds_of_training(tmp_path) == 3.5


def test_a_pattern_stands_for_the_folders_that_it_matches(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, seed in (("b", 1), ("a", 2)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").write_text(json.dumps({"settings": {"seed": seed}}))
    assert _matching("[ab]*") == [{"path": "a", "name": "seed=2"}, {"path": "b", "name": "seed=1"}]
    (tmp_path / "a" / "config.json").unlink()
    assert _matching("*") == ["a", "b"]
    assert _matching("a") == ["a"]
    assert _matching({"path": "*"}) == [{"path": "*"}]
    with pytest.raises(InputError, match="matches no folder"):
        _matching("none*")


def test_a_file_is_scored_or_a_bitext_in_the_languages_of_its_name_or_of_the_model(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(module, "find_pairs", lambda paths, languages: asked.append((paths, languages)) or [])
    monkeypatch.setattr(module, "evaluate_scored", lambda encode, path: [path.name])
    (tmp_path / "scored.tsv").write_text("0.5\ta\tb\n" * 3)
    (tmp_path / "a.en-ja.tsv").write_text("a\tb\n" * 3)
    (tmp_path / "a.tsv").write_text("a\tb\n" * 3)
    encoder = SimpleNamespace(encode=None, languages=("en", "de"))
    assert _file(encoder, str(tmp_path / "scored.tsv")) == ["scored.tsv"]
    for name, languages in (
        ("a.en-ja.tsv", ("en", "de")),
        ("a.tsv", ("en", "de")),
        ("a.tsv", ("en",)),
        ("a.tsv", ("en", "de", "ja")),
    ):
        assert _file(SimpleNamespace(encode=None, languages=languages), str(tmp_path / name)) == []
    assert [given for _, given in asked] == [("en", "ja"), ("en", "de"), ("en", "en"), ()]
