"""Hidden phrases: the reader, the builder, and the figures."""

from __future__ import annotations

import os
import sys

import numpy as np
import pytest

from tests.conftest import eval_script
from xswe.errors import ConfigError, InputError

hidden = eval_script("experiments.hidden_phrases")
HiddenPhrase, hide_phrases, overlap = hidden.HiddenPhrase, hidden.hide_phrases, hidden.overlap
phrase_rows, read_hidden_phrases = hidden.phrase_rows, hidden.read_hidden_phrases


@pytest.fixture
def script(monkeypatch, capsys):
    """Run a script of eval/ in this process; returns its status and what it printed."""
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):  # some scripts set them, and are not to do so for others
        monkeypatch.setenv(name, os.environ.get(name, "1"))

    def run(name, *words):
        module = eval_script(name)
        monkeypatch.setattr(sys, "argv", [f"{name}.py", *words])
        status = 0
        try:
            eval_script("settings").run_script(module.main, module.DEFAULTS, module.__doc__)
        except SystemExit as exit:
            status = exit.code
        found = capsys.readouterr()
        return status, found.err or found.out

    return run


def test_the_reader_reads_what_the_format_says(tmp_path):
    path = tmp_path / "set.tsv"
    path.write_text("origin\ttarget\tscore\tcontext\na cat\tcats\t3.5\tBig cats sleep.\nx\tgone\t1\tNothing.\n", "utf-8")
    items = read_hidden_phrases(path)
    assert items == [
        HiddenPhrase("a cat", "cats", 3.5, "Big cats sleep.", 4),
        HiddenPhrase("x", "gone", 1.0, "Nothing.", -1),
    ]


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


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "model= is missing"),
        (["model=m", "sets=x"], "sets=x: there is no such setting"),
        (["model=m", "threads"], "threads: there is no such setting"),
        (["model=m", "threads=1", "threads=2"], "threads is given twice"),
        (["model=m", "threads=two"], "threads=two: not a number"),
        (["model=none-there"], "none-there: there is no such folder"),
    ],
)
def test_the_scripts_refuse_what_they_do_not_know(script, words, message):
    for name in ("experiments.phrases", "bench.phrases"):
        status, told = script(name, *words)
        assert (status, told.count("\n")) == (2, 1)
        assert message in told


@pytest.mark.parametrize(
    "name",
    [
        "bench.encode",
        "bench.mine",
        "bench.teacher",
        "experiments.convert_e5",
        "experiments.levers",
        "experiments.main_job",
        "experiments.mining_quality",
    ],
)
def test_the_other_scripts_refuse_it_too(script, name):
    status, told = script(name, "modle=m")
    assert (status, told.count("\n")) == (2, 1)
    assert told.startswith(f"{name}.py: modle=m: there is no such setting")


@pytest.mark.parametrize(
    ("name", "word", "message"),
    [
        ("experiments.phrases", "baselines=bm25,bm52", "there is no 'bm52'"),
        ("experiments.phrases", "subsets=en,fr", "there is no 'fr'"),
        ("experiments.phrases", "set=x.tsv", "set= and language= go together"),
        ("bench.phrases", "queries=1,0", "not whole numbers from 1 on"),
    ],
)
def test_the_scripts_refuse_values_that_cannot_work(script, name, word, message):
    status, told = script(name, "model=mini", word)
    assert status == 2
    assert message in told


def test_the_scripts_tell_how_they_are_used(script):
    assert all("model=" in told and status == 0 for status, told in (script("experiments.phrases", "--help"),))
    assert script("bench.phrases", "-h")[0] == 0


def test_a_set_is_of_its_language_and_has_published_figures_only_if_they_are_of_it(script, tmp_path):
    text = "Katze\teine Katze\t4.5\tHier schläft eine Katze.\nHund\tBaum\t0\tDort steht ein Baum.\n"
    for name, language, published in (("own.tsv", "de", False), ("STS-B-Context.tsv", "en", True)):
        (tmp_path / name).write_text(text, "utf-8")
        words = ["model=mini", f"set={tmp_path / name}", f"language={language}", "train=0", "baselines=bm25", "threads=1"]
        status, told = script("experiments.phrases", *words)
        assert status == 0
        assert told.startswith(f"\n{language}\n")
        assert ("published" in told) == published
    (tmp_path / "own.tsv").write_text("Katze\tKatze\n", "utf-8")
    status, told = script("experiments.phrases", "model=mini", f"set={tmp_path / 'own.tsv'}", "language=de")
    assert (status, told.count("\n")) == (2, 1)
    assert "own.tsv:1: not origin" in told
