"""The public face: what a notebook needs, without an import below the top."""

from __future__ import annotations

import ast
import doctest
import importlib
import pickle
import re
import subprocess
import sys
from itertools import chain
from pathlib import Path
from typing import get_args

import numpy as np
import pytest

import xswe
from xswe.bitext.convert import rewrite_bitext
from xswe.cli.verbs import VERBS
from xswe.errors import ConfigError, InputError

EN = ["The train is late.", "A cat sleeps on the roof.", "We buy bread.", "The train is late."]
DE = ["Wir kaufen Brot.", "Der Zug hat Verspätung.", "Eine Katze schläft auf dem Dach."]
PAIRS = {(0, 1), (1, 2), (2, 0)}


@pytest.fixture(scope="module")
def mini():
    return xswe.load("mini")


def test_the_docstring_says_what_each_function_is_for():
    assert not set(xswe._PUBLIC) - set(re.findall(r"``(\w+)``", xswe.__doc__))


def test_every_public_name_is_there_and_listed():
    assert sorted(xswe.__all__) == dir(xswe) == sorted({*xswe._PUBLIC, "__version__", "errors", "load", "types"})
    assert len(dir(xswe)) <= 40  # as many as can be read
    for module in (xswe, xswe.types):
        assert all(getattr(module, name) is not None for name in dir(module))
        with pytest.raises(AttributeError, match="no attribute 'absent'"):
            module.absent  # noqa: B018


def test_a_type_checker_knows_every_public_name():
    tree = ast.parse(Path(xswe.__file__).read_text("utf-8"))
    blocks = [node.body for node in tree.body if isinstance(node, ast.If)]
    imports = [node for node in chain(tree.body, *blocks) if isinstance(node, ast.ImportFrom)]
    known = {one.asname or one.name for node in imports for one in node.names}
    assert {*xswe.__all__} <= known | {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_what_a_function_takes_and_a_verb_returns_is_among_the_types():
    calls = [call.partition(":") for verb in VERBS.values() for call in verb.calls.values()]
    functions = [getattr(importlib.import_module(f"xswe.{module}"), name) for module, _, name in calls]
    named = {name for function in functions for name in function.__annotations__["return"].split(" | ")}
    public = [getattr(xswe, name).__annotations__ for name in xswe._PUBLIC]
    named |= {types["config"].partition(" ")[0] for types in public if "config" in types}
    results = [one for name in dir(xswe.types) if hasattr(one := getattr(xswe.types, name), "to_pandas")]
    entries = [get_args(base) for one in results for base in one.__orig_bases__]
    named |= {one.__name__ for given in entries for one in given if isinstance(one, type) and not get_args(one)}
    assert {*named} - {"None", "Path", "str"} <= {*dir(xswe.types)}, "to be named in tools/stubs.py"


def test_every_public_function_has_tests():
    """Which import it, or call it as a user does."""
    texts = "".join(file.read_text("utf-8") for file in Path(__file__).parent.rglob("test_*.py"))
    calls = [rf"\bxswe\.{name}\(|\bimport [^\n]*\b{inside}\b|^    {inside},$" for name, (_, inside) in xswe._PUBLIC.items()]
    assert not [call for call in calls if not re.search(call, texts, re.MULTILINE)]


def test_a_result_is_found_among_the_types():
    assert isinstance(xswe.mine(None, *[np.eye(3, dtype=np.float32)] * 2, threshold=None), xswe.types.MinedPairs)
    with pytest.raises(AttributeError, match=r"xswe\.MinedPairs is xswe\.types\.MinedPairs"):
        xswe.MinedPairs  # noqa: B018


@pytest.mark.parametrize("name", xswe._ELSEWHERE)
def test_a_name_that_went_to_its_room_is_refused_with_the_place(name):
    with pytest.raises(AttributeError, match=rf"xswe\.{name} is ") as told:
        getattr(xswe, name)
    place, _, inside = str(told.value).partition(" is ")[2].removeprefix("now in its room: from ").partition(" import ")
    assert eval(place) if not inside else getattr(importlib.import_module(place), inside)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: xswe.mine(None, ["a"], taget=["b"]), "taget: there is no such argument; did you mean target?"),
        (lambda: xswe.mine(None, soure=["a"]), "soure: there is no such argument; did you mean source?"),
        (lambda: xswe.evaluate("mini", tsks="a"), "tsks: there is no such argument; did you mean tasks?"),
        (lambda: xswe.work_status(place="a"), "place: there is no such argument; work_status has output"),
        (lambda: xswe.mine(None, ["a"], ["b"], neighbors={"methd": "exact"}), "methd: there is no such setting"),
    ],
)
def test_a_misspelt_argument_is_guessed_and_the_other_spelling_accepted(call, said):
    with pytest.raises(ConfigError) as told:
        call()
    assert str(told.value).startswith(said)


def test_a_public_function_is_found_again_by_its_name():
    assert pickle.loads(pickle.dumps(xswe.mine)) is xswe.mine
    assert (xswe.filter.__module__, xswe.filter.__qualname__) == ("xswe", "filter")


def test_a_misspelt_name_is_guessed():
    done = subprocess.run([sys.executable, "-c", "import xswe; xswe.lod"], capture_output=True, text=True)
    assert "Did you mean: 'load'?" in done.stderr


def test_importing_loads_nothing_of_it():
    program = "import sys, xswe; assert not {'numpy', 'numba', 'xswe.mining', 'torch'} & set(sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


FOLDER = Path(xswe.__file__).parent
WITH_EXAMPLES = [
    ".".join(("xswe", *path.relative_to(FOLDER).with_suffix("").parts)).removesuffix(".__init__")
    for path in sorted(FOLDER.rglob("*.py"))
    if re.search(r"^ +>>> ", path.read_text("utf-8"), re.MULTILINE)
]
LONG = {"xswe.model.static", "xswe.training.sweep"}  # which bring sentence-transformers, and train twice


@pytest.mark.parametrize(
    "module", [pytest.param(name, marks=[pytest.mark.slow] if name in LONG else []) for name in WITH_EXAMPLES]
)
def test_examples_in_docstrings_run(module):
    failed, tried = doctest.testmod(importlib.import_module(module))
    assert tried
    assert not failed


def test_lists_files_and_vectors_give_the_same_pairs(mini, tmp_path):
    (tmp_path / "en.txt").write_text("".join(f"{text}\n" for text in EN), encoding="utf-8")
    of_lists = xswe.mine(mini, EN, DE, threshold=None)
    of_files = xswe.mine(mini, tmp_path / "en.txt", DE, threshold=None, output=tmp_path / "out.tsv")
    of_vectors = xswe.mine(None, mini.encode(EN[:3]), mini.encode(DE), threshold=None)
    assert {(pair.source_row, pair.target_row) for pair in of_lists} == PAIRS
    assert list(of_lists) == list(of_files)
    assert [pair[-2:] for pair in of_vectors] == [pair[-2:] for pair in of_lists]
    assert next(iter(of_vectors)).source is None
    assert all(pair.source == EN[pair.source_row] and pair.target == DE[pair.target_row] for pair in of_lists)
    assert of_lists.report.source.dropped == {"duplicate": 1}
    of_lists.write(tmp_path / "again.tsv")
    assert (tmp_path / "again.tsv").read_bytes() == (tmp_path / "out.tsv").read_bytes()
    assert not (tmp_path / "out.tsv.work").exists()


def test_pairs_print_and_convert(mini):
    pandas = pytest.importorskip("pandas")
    mined = xswe.mine(mini, ["<b>A cat sleeps.</b>"], ["Eine Katze schläft."], threshold=None)
    assert "&lt;b&gt;A cat" in mined._repr_html_()
    assert "1 pairs" in repr(mined)
    frame = mined.to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert frame.columns.tolist() == ["score", "source", "target", "source_row", "target_row"]
    assert len(frame) == len(mined) == 1


def test_what_only_the_command_line_did_is_a_function(mini, tmp_path):
    lines = "".join(f"{EN[a]}\t{DE[b]}\n" for a, b in sorted(PAIRS))
    (tmp_path / "own.tsv").write_text(lines, encoding="utf-8")
    (tmp_path / "de.txt").write_text("".join(f"{text}\n" for text in DE), encoding="utf-8")
    assert xswe.link("mini", tmp_path / "own.tsv", tmp_path / "links.txt").pairs == 3
    assert xswe.score_file(mini, tmp_path / "own.tsv", tmp_path / "scored.tsv", threads=1).lines == 3
    found = xswe.search_phrases("mini", "late train", tmp_path / "de.txt", tmp_path / "hits.tsv", k=1)
    assert (found.passages, len(found.found[0])) == (3, 1)
    answers = xswe.search_file(mini, tmp_path / "de.txt", "late train", k=1)
    assert answers.hits[0][0].text == DE[1]
    assert "[" in str(answers)
    small = xswe.export("mini", tmp_path / "small", keep=8000, dim=64, dtype="int8")
    both = xswe.ensemble(["mini", small.path], tmp_path / "both", weights=[0.7, 0.3])
    assert xswe.load(tmp_path / "both").dim == both.ensemble.dim == 320
    xswe.export(small.path, tmp_path / "v.txt", format="word2vec")
    assert (
        xswe.import_vectors(tmp_path / "v.txt", ["en"], tmp_path / "again").dim == xswe.load(tmp_path / "again").dim == 64
    )
    assert "ccmatrix" in xswe.prepare_corpus(action="list")
    with pytest.raises(ConfigError, match="most does nothing with what=links"):
        xswe.link(mini, tmp_path / "own.tsv", tmp_path / "l.txt", most=3)
    with pytest.raises(ConfigError, match="candidates does nothing without rerank="):
        xswe.search_file(mini, tmp_path / "de.txt", "late train", candidates=7)


def test_mistakes_in_mining_are_named(mini, tmp_path):
    vectors = np.eye(256, dtype=np.float32)[:3]
    strict = xswe.mine(mini, ["7 cats", "A dog."], ["8 Katzen", "Ein Hund."], threshold=None, filters={"numbers": True})
    assert [(pair.source, pair.target) for pair in strict] == [("A dog.", "Ein Hund.")]
    with pytest.raises(ConfigError, match=r"number: there is no such setting; did you mean numbers\?"):
        xswe.mine(mini, ["a"], ["b"], filters={"number": True})
    with pytest.raises(ConfigError, match=r"treshold: there is no such setting; did you mean threshold\?"):
        xswe.mine(mini, EN, DE, treshold=1.0)
    with pytest.raises(ConfigError, match="give both sides alike"):
        xswe.mine(mini, vectors, DE)
    with pytest.raises(ConfigError, match="give a model, or vectors"):
        xswe.mine(None, EN, DE)
    mined = xswe.mine(None, vectors, vectors, threshold=None)
    with pytest.raises(ConfigError, match="no texts to write"):
        mined.write(tmp_path / "a.tsv")
    with pytest.raises(InputError, match="no such file"):
        xswe.mine(mini, "absent.txt", DE)
    with pytest.raises(ConfigError, match="cannot both be standard input"):
        xswe.mine(mini, "-", "-", output=tmp_path / "b.tsv")
    assert not list(tmp_path.iterdir())


def test_a_file_is_encoded_as_its_lines_are(mini, tmp_path):
    (tmp_path / "de.txt").write_text("".join(f"{text}\n" for text in DE), encoding="utf-8")
    made = xswe.encode_file(mini, tmp_path / "de.txt", tmp_path / "de.npy", threads=1)
    assert (len(made), made.dim, made.kept) == (3, 256, 0)
    np.testing.assert_array_equal(np.load(made.path), mini.encode(DE))
    again = xswe.encode_file(mini, tmp_path / "de.txt", tmp_path / "c.npy", threads=0)  # all processors
    assert again.path.read_bytes() == made.path.read_bytes()
    with pytest.raises(ConfigError, match="threads=-1"):
        xswe.encode_file(mini, tmp_path / "de.txt", tmp_path / "b.npy", threads=-1)


def test_the_words_nearest_in_meaning_are_of_the_language_asked_for(mini):
    assert [near.word for near in mini.neighbours("car", language="zh", k=1)] == ["车"]
    near = mini.neighbours("猫", language="en", k=3)
    assert "cat" in [word for _, word in near]
    assert repr(near).startswith("Neighbours('猫': ")
    assert near[0].score == max(near.to_pandas()["score"])
    assert not {"car", "Car"} & {word for _, word in mini.neighbours("car", k=30)}
    with pytest.raises(ConfigError, match="fr"):
        mini.neighbours("car", language="fr")


def test_a_bitext_is_evaluated_in_the_languages_that_its_name_or_its_texts_say(mini, sample, tmp_path, caplog):
    pairs = list(zip(sample["en"][:60], sample["zh"][:60], strict=True))
    for name in ("news.en-zh.tsv", "news.tsv"):
        (tmp_path / name).write_text("".join(f"{a}\t{b}\n" for a, b in pairs), encoding="utf-8")
    rewrite_bitext([str(tmp_path / "news.en-zh.tsv")], str(tmp_path / "news.tmx"), ("en", "zh"))
    for name in ("news.en-zh.tsv", "news.tsv", "news.tmx"):
        assert xswe.evaluate(mini, str(tmp_path / name), threads=1)[0].n == 60
    assert not [record for record in caplog.records if record.levelname == "WARNING"]


def test_similarities_are_those_of_the_vectors(mini):
    ensemble = xswe.types.Ensemble.of([mini, mini])
    for model in (mini, ensemble):
        cosines = model.similarity(EN, DE)
        np.testing.assert_allclose(cosines, model.encode(EN) @ model.encode(DE).T, atol=1e-6)
        assert model.similarity(EN[0], DE[1]) == pytest.approx(cosines[0, 1], abs=1e-6)
        np.testing.assert_array_equal(np.concatenate(list(model.encode_stream(EN, block=3))), model.encode(EN))


def test_scores_print_convert_and_write_themselves(mini, tmp_path, monkeypatch):
    pytest.importorskip("scipy")
    pandas = pytest.importorskip("pandas")
    (tmp_path / "own.tsv").write_text("".join(f"{EN[a]}\t{DE[b]}\n" for a, b in sorted(PAIRS)), encoding="utf-8")
    scores = xswe.evaluate(mini, str(tmp_path / "own.tsv"), threads=1)
    assert {row.value for row in scores if row.metric == "accuracy"} == {1.0}
    assert str(scores).splitlines()[0].split() == ["task", "subset", "metric", "value", "95%", "n", "source"]
    assert isinstance(scores.to_pandas(), pandas.DataFrame)
    both = xswe.compare([mini, {"path": "mini", "name": "again"}], [str(tmp_path / "own.tsv")], seconds=0, threads=1)
    assert len(both.to_pandas()) == 2 * len(scores)
    for found in (scores, both):
        assert "100.0" in found._repr_html_()
        for suffix in (".json", ".csv", ".md", ".tex"):
            found.write(tmp_path / f"a{suffix}")
            assert "own.tsv" in (tmp_path / f"a{suffix}").read_text(encoding="utf-8")
    monkeypatch.setattr("xswe.evaluation.tasks._registered", dict)  # mteb's tasks take seconds to import
    with pytest.raises(ConfigError, match="unknown task 'tatooba'"):
        xswe.evaluate(mini, "tatooba")
