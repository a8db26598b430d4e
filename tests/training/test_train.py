"""``xswe.train``: a model from lists, files and settings, without Hydra."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import xswe
from tests.conftest import FakeTeacher
from xswe.errors import ConfigError, InputError
from xswe.evaluation.metrics import Row
from xswe.teacher.protocol import TeacherConfig
from xswe.training.config import TrainConfig
from xswe.training.objective import Objective
from xswe.training.recipes import recipe_settings
from xswe.training.refine import RefineConfig
from xswe.training.train import (
    _remove_leftovers,
    bitext_entries,
    configure,
    recorded,
    run_name,
    score_held_out,
    score_imitation,
    score_pivots,
    summary,
    train_with,
)
from xswe.training.triplets import SpanTraining

SMALL = {"refine.max_steps": 4, "refine.batch_size": 32, "pca.dim": 8, "units.vocabulary": "mini", "threads": 1}
STATIC = {**SMALL, "objective.prefixes": []}


@pytest.fixture
def pairs(sample):
    return list(zip(sample["en"][:400], sample["de"][:400], strict=True))


def test_pairs_in_memory_and_the_same_in_a_file_give_the_same_model(tmp_path, pairs):
    (tmp_path / "en-de.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in pairs), encoding="utf-8")
    made = xswe.train(iter(pairs), ["en", "de"], recipe="static", output=tmp_path / "run", **STATIC)
    of_file = xswe.train(tmp_path / "en-de.tsv", ["en", "de"], recipe="static", **STATIC)
    assert of_file.folder is None
    np.testing.assert_array_equal(made.model.matrix, of_file.model.matrix)
    assert made.model.languages == ("en", "de")
    assert made.history[-1]["step"] == 4
    assert {row.note for row in made.metrics} == set(made.steps) == {"refinement"}
    assert "accuracy" in str(made)
    assert "accuracy" in made._repr_html_()
    again = xswe.load(made.folder / "model")
    np.testing.assert_array_equal(again.encode(["A cat."]), made.model.encode(["A cat."]))
    assert json.loads((made.folder / "results.json").read_text())["settings"]["pair"] == "en-de"


def test_several_language_pairs_and_a_teacher_of_ones_own(sample, fake_teacher):
    bitext = {f"en-{code}": list(zip(sample["en"][:400], sample[code][:400], strict=True)) for code in ("de", "ja")}
    few = SMALL | {"pca.dim": 2, "contexts.per_unit": 2, "refine": {"eval_steps": 2}}
    made = xswe.train(bitext, ("en", "de", "ja"), teacher=fake_teacher, **few)
    assert list(made.steps) == ["extraction", "PCA without ABTT", "PCA with ABTT", "refinement"]
    assert {row.subset for row in made.metrics} == {"en-de", "en-ja", "de-ja"}


@pytest.mark.slow
def test_a_refinement_starts_from_a_model_that_is_there(tmp_path, pairs):
    first = xswe.train(pairs, ["en", "de"], recipe="static", output=tmp_path / "a", **STATIC)
    given = STATIC | {"refine.start": str(tmp_path / "a" / "model")}
    more = xswe.train(pairs, ["en", "de"], recipe="static", output=tmp_path / "b", **given)
    np.testing.assert_array_equal(more.steps["start"].matrix, first.model.matrix)
    assert (more.model.matrix != first.model.matrix).any()
    assert "| the vectors of " in (tmp_path / "b" / "model" / "README.md").read_text(encoding="utf-8")
    wrong = {"pca.dim": 16}, {"units.vocabulary": "corpus", "units.size": 1500}, {"refine.start": "mini"}
    for settings in wrong:
        with pytest.raises(ConfigError, match=r"refine\.start=.* set pca\.dim=(8|256)"):
            xswe.train(pairs, ["en", "de"], recipe="static", **given | settings)
    with pytest.raises(ConfigError, match="set teacher=none"):
        xswe.train(pairs, ["en", "de"], teacher=FakeTeacher(), **given | {"pca.dim": 2})


def test_settings_in_full_are_a_recipe_too():
    paper = configure("a.tsv", ["en", "ja"], recipe="paper", settings={"units": "subwords", "clean": "web"})
    assert (paper.units.kind, paper.corpus.clean.ratio, paper.refine.batch_size) == ("subwords", 4.0, 128)
    again = configure("b.tsv", ["en", "ja"], recipe=paper, settings={"refine.batch_size": 64})
    assert again.refine == replace(paper.refine, batch_size=64)
    assert again.corpus == replace(paper.corpus, paths=["b.tsv"])
    assert configure("a.tsv", ["en"], recipe="paper").objective.ranking == 0.0
    assert configure("a.tsv", ["en", "ja"], None).teacher is None
    assert configure("a.tsv", ["en", "ja"], "some/encoder", settings={"distilled": "minilm"}).distilled.max_tokens == 128


@pytest.mark.parametrize(
    ("weight", "named", "imitated"),
    [(0.0, False, "teacher"), (0.0, True, "teacher"), (1.0, False, "teacher"), (1.0, True, "loaded")],
)
def test_the_encoder_that_is_named_is_imitated_or_else_the_teacher(tmp_path, monkeypatch, weight, named, imitated):
    monkeypatch.setattr("xswe.training.train.load_encoder", lambda config, threads: config and "loaded")
    monkeypatch.setattr("xswe.training.train.run_stages", lambda *given, **more: (given[1], more["distilled"]))
    monkeypatch.setattr("xswe.training.train._written", lambda made, *_: made)
    distilled = TeacherConfig("other") if named else None
    config = TrainConfig(("en", "de"), distilled=distilled, objective=Objective(distillation=weight))
    assert train_with(config, "teacher", tmp_path) == ("teacher", imitated)


def test_another_objective_leaves_the_prefixes_of_the_recipes_own():
    assert recipe_settings("static", ["en", "de"])["objective"]["prefixes"] == [256, 128, 64, 32]
    for languages in (["en", "de"], ["en"]):
        assert not recipe_settings("static", languages, objective="ranking")["objective"]["prefixes"]
    assert recipe_settings("static", ["en"], objective="ranking")["objective"]["directions"] == "source"
    assert recipe_settings("static", ["en", "de"], objective="matryoshka")["objective"]["prefixes"] == [256, 128, 64, 32]
    assert recipe_settings("paper", ["en", "de"], objective="joint")["objective"]["margin"] == 0.0


def test_mistakes_are_named_and_leave_nothing(tmp_path, pairs):
    def said(error, *arguments, **settings):
        with pytest.raises(error) as found:
            xswe.train(*arguments, output=tmp_path / "deep" / "run", **settings)
        return str(found.value)

    assert "did you mean refine" in said(ConfigError, pairs, ["en", "de"], refin={"max_steps": 2})
    assert "refine.max_step: there is no such setting; did you mean max_steps?" in said(
        ConfigError, pairs, ["en", "de"], **{"refine.max_step": 2}
    )
    assert "paper, quickstart, static" in said(ConfigError, pairs, ["en", "de"], recipe="statc")
    assert "pair 1 is ('alone',)" in said(ConfigError, [pairs[0], ("alone",)], ["en", "de"])
    with_negatives = [("a", "b", "c"), ("d", "e", "f"), ("g", "h")]
    assert "pair 2 is ('g', 'h')" in said(ConfigError, with_negatives, ["en", "de"])
    assert "one language pair" in said(ConfigError, pairs, ["en", "de", "ja"])
    assert "no such file" in said(InputError, "absent.tsv", ["en", "de"], teacher=None)
    assert not list(tmp_path.iterdir())


def test_a_run_that_fails_later_keeps_what_is_done(tmp_path, pairs, monkeypatch):
    monkeypatch.setattr("xswe.training.pipeline.refine", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        xswe.train(pairs, ["en", "de"], recipe="static", output=tmp_path / "run", **STATIC)
    assert list((tmp_path / "run" / "stages").glob("bags-*"))


def test_training_needs_no_hydra():
    program = (
        "import sys; sys.modules['hydra'] = sys.modules['omegaconf'] = None; import xswe; xswe.train; "
        "from xswe.training.train import configure; configure('sample', ['en', 'de'])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


ROWS = [Row("held-out", "en-de", name, value, 7, note="start") for name, value in (("accuracy", 0.5), ("f1", 0.75))]
ROWS += [Row("without-bitext", "de-ja", "margin_accuracy", 0.1234, 12, note="refinement")]


def test_figures_are_printed_by_step_and_pair():
    assert summary(ROWS, {"start": 16, "refinement": 8}).splitlines() == [
        "step        pair     dims  accuracy  by margin    F1  held out",
        "----------  -------  ----  --------  ---------  ----  --------",
        "start       en-de      16      50.0          -  75.0         7",
        "start       de-ja *    16         -          -     -         0",
        "refinement  en-de       8         -          -     -         0",
        "refinement  de-ja *     8         -       12.3     -        12",
        "* no bitext joins the two: sentences of the sample corpus that were not trained on",
    ]
    alone = [Row("held-out", "en", "spearman_with_teacher", 0.5, 7, note="refinement")]
    assert summary(alone, {"refinement": 8}).splitlines() == [
        "step        language  dims  Spearman with the teacher  Pearson  held out",
        "----------  --------  ----  -------------------------  -------  --------",
        "refinement  en           8                       50.0        -         7",
    ]


def test_imitation_is_judged_by_all_pairs_of_sentences():
    rng = np.random.default_rng(0)
    ours, theirs = rng.normal(size=(6, 4)), rng.normal(size=(6, 3))
    pairs = [(i, j) for i in range(6) for j in range(i)]
    cosines = [[side[i] @ side[j] for i, j in pairs] for side in (ours, theirs)]
    found = {row.metric: row for row in score_imitation(ours, theirs, "t", "en")}
    assert found["pearson_with_teacher"].value == pytest.approx(np.corrcoef(*cosines)[0, 1])
    ranks = [np.argsort(np.argsort(side)) for side in cosines]
    assert found["spearman_with_teacher"].value == pytest.approx(np.corrcoef(*ranks)[0, 1])
    assert {(row.task, row.subset, row.n) for row in found.values()} == {("t", "en", 6)}
    assert [len(score_imitation(ours[:n], theirs[:n], "t", "en")) for n in (0, 2, 3)] == [0, 0, 2]
    assert score_imitation(ours, None, "t", "en") == []
    assert [row.value for row in score_imitation(0 * ours, theirs, "t", "en")] == [None, None]  # undefined


def test_languages_without_a_bitext_are_judged_by_sentences_that_none_was_trained_on(monkeypatch):
    texts = {code: [f"{code} {k}" for k in range(9)] for code in ("en", "de", "ja")}
    monkeypatch.setattr("xswe.training.train.sample_sentences", lambda: texts)
    monkeypatch.setattr(
        "xswe.training.train.score_vectors", lambda a, b, task, subset: [Row(task, subset, "same", float(a == b), len(a))]
    )

    class Numbers:
        def encode(self, texts, threads):
            assert threads == 3
            return [text.split()[1] for text in texts]

    learnt = {"en": [], "de": ["de 4", "x"], "ja": ["ja 0", "ja 4"]}
    made = SimpleNamespace(
        held_out={"en-de": (), "ja-en": ()},
        training=lambda code: learnt[code],
        by_language={step: dict.fromkeys(texts, Numbers()) for step in ("a", "b")},
    )
    found = score_pivots(made, ("en", "de", "ja"), 3)
    assert [(row.note, row.task, row.subset, row.value, row.n) for row in found] == [
        ("a", "without-bitext", "de-ja", 1.0, 7),
        ("b", "without-bitext", "de-ja", 1.0, 7),
    ]
    made.held_out["de-ja"] = ()
    assert score_pivots(made, ("en", "de", "ja"), 3) == []


def test_a_bitext_is_names_or_entries_or_pairs_that_are_written(tmp_path):
    def entries(bitext, languages=("en", "de"), folder=tmp_path):
        return bitext_entries(bitext, languages, folder)

    card = {"card": "ccmatrix"}
    for given, made in (
        (None, None),
        ("sample", "sample"),
        ("a.tsv", ["a.tsv"]),
        (Path("b") / "c", [str(Path("b") / "c")]),
        (card, [card]),
        ([], []),
        (["a.tsv", Path("b.tsv"), card], ["a.tsv", "b.tsv", card]),
        ({"en-de": "a.tsv", "en-ja": [card]}, {"en-de": ["a.tsv"], "en-ja": [card]}),
    ):
        assert entries(given) == made
    assert not list(tmp_path.iterdir())
    path = str(tmp_path / "bitext" / "en-de.jsonl")
    assert entries([("a", "ü"), ["b", '"']]) == [{"path": path, "fields": ["0", "1"]}]
    assert Path(path).read_bytes() == '{"0": "a", "1": "ü"}\n{"0": "b", "1": "\\""}\n'.encode()
    assert entries({"en-de": iter([("a", "b", "c")])}) == {"en-de": [{"path": path, "fields": ["0", "1", "2"]}]}
    said = "pairs of texts must be of one language pair: give a mapping {'en-de': [...], 'en-ja': [...]}"
    for where in ((("en", "de", "ja"), tmp_path), (("en", "de"), None)):
        with pytest.raises(ConfigError) as found:
            entries([("a", "b")], *where)
        assert str(found.value) == said
    for pairs, number in (([("a",)], 0), ([("a", "b"), ("a", 1)], 1), ([("a", "b"), ("a", "b", "c")], 1)):
        with pytest.raises(ConfigError) as found:
            entries(pairs)
        said = f"bitext: pair {number} is {pairs[number]!r}; give two texts each, and any negatives after them"
        assert str(found.value) == said


def test_what_an_earlier_run_left_goes_and_other_files_stay(tmp_path):
    def write():
        for name in ("languages/en", "languages/de", "steps/pca", "steps/notes", "tensorboard", "spans/tensorboard"):
            (tmp_path / name).mkdir(parents=True, exist_ok=True)
        for name in ("languages/en", "languages/de", "steps/pca"):
            (tmp_path / name / "model.safetensors").touch()
        for place in (tmp_path, tmp_path / "spans"):
            (place / "history.csv").touch()
            (place / "tensorboard" / "events.out.tfevents.1").touch()
        (tmp_path / "steps" / "notes" / "mine.txt").touch()

    def left():
        return sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file())

    kept = ["languages/en/model.safetensors", "steps/notes/mine.txt"]
    own, spans = ["history.csv", "tensorboard/events.out.tfevents.1"], SpanTraining(max_steps=1)
    of_spans = [f"spans/{name}" for name in own]
    for refine, further, wanted in (
        (RefineConfig(), SpanTraining(), own),
        (RefineConfig(max_steps=0), SpanTraining(), []),
        (RefineConfig(max_steps=0), spans, of_spans),
        (RefineConfig(), spans, own + of_spans),
    ):
        write()
        _remove_leftovers(
            tmp_path, {tmp_path / "languages" / "en"}, TrainConfig(("en", "de"), refine=refine, spans=further)
        )
        assert left() == sorted(kept + wanted)
        assert (tmp_path / "spans").exists() == bool(further.max_steps)
    shutil.rmtree(tmp_path / "steps" / "notes")
    _remove_leftovers(tmp_path, set(), TrainConfig(("en", "de"), refine=RefineConfig(max_steps=0)))
    assert list(tmp_path.iterdir()) == []


def test_of_the_settings_what_changes_no_model_is_not_recorded():
    found = recorded(TrainConfig(("en", "de"), seed=3, threads=2, refine=RefineConfig(seed=5, threads=7)))
    assert (found["pair"], found["seed"]) == ("en-de", 3)
    assert not {"languages", "threads"} & set(found)
    assert not [name for name, own in found.items() if isinstance(own, dict) and {"seed", "threads"} & set(own)]
    assert found["refine"]["max_steps"] == RefineConfig.max_steps
    names = {run_name(TrainConfig(("en", "de"), recipe="x", seed=seed, threads=n)) for seed in (0, 1) for n in (1, 2)}
    assert len(names) == 2
    assert {(name[:2], len(name)) for name in names} == {("x-", 10)}


def test_each_side_of_held_out_pairs_is_encoded_by_the_model_of_its_language(monkeypatch):
    def tagged(code):
        return SimpleNamespace(encode=lambda texts, threads: (code, tuple(texts), threads))

    monkeypatch.setattr("xswe.training.train.score_vectors", lambda *given: [given])
    monkeypatch.setattr("xswe.training.train.score_imitation", lambda *given: [given])
    models = {"last": {code: tagged(code) for code in ("en", "de")}}
    made = SimpleNamespace(by_language=models, held_out={"en-de": (["a"], ["b"]), "de": (["c"],)}, teacher="theirs")
    assert score_held_out(made, "last", 3) == [
        (("en", ("a",), 3), ("de", ("b",), 3), "held-out", "en-de"),
        (("de", ("c",), 3), "theirs", "held-out", "de"),
    ]


def test_an_encoder_that_is_an_object_has_no_settings():
    assert configure("a.tsv", ["en", "ja"], FakeTeacher(), "static").teacher is None
    assert configure("a.tsv", ["en", "ja"], "auto", "quickstart").teacher == TeacherConfig.named("mini")
    assert configure("a.tsv", ["en", "ja"], TeacherConfig("x", max_tokens=9)).teacher.max_tokens == 9
    same = configure("a.tsv", ["en", "ja"], settings={"distilled": "same"})
    assert same.distilled is None
