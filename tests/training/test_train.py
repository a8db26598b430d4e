"""``xswe.train``: a model from lists, files and settings, without Hydra."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

import xswe
from tests.conftest import FakeTeacher
from xswe.errors import ConfigError, InputError
from xswe.teacher.protocol import TeacherConfig
from xswe.training.config import TrainConfig
from xswe.training.objective import Objective
from xswe.training.recipes import recipe_settings
from xswe.training.train import configure, train_with

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
