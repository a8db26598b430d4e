"""The command called as a function: what it leaves in its folder."""

from __future__ import annotations

import json

import pytest

from tests.cli.verbs import command, composed
from tests.conftest import Later

Later("torch")


@pytest.fixture
def settings(tmp_path, tokenizer):
    """Overrides of a run small enough for a test; further ones come after them."""
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    small = [
        "pca.dim=8",
        "refine.batch_size=64",
        "refine.max_steps=2",
        "spans.batch_size=16",
        "threads=1",
        f"output={tmp_path / 'run'}",
    ]
    units = f"units.vocabulary={tmp_path / 'tokenizer.json'}"
    return lambda *more: composed("train", "pair=en-de", "teacher=none", units, *small, *more)


def test_outputs_of_earlier_settings_go_and_what_is_not_ours_stays(tmp_path, settings):
    folder = tmp_path / "run"
    command("train", settings("extract.merge=separate", "keep_steps=true"))
    assert {path.name for path in folder.iterdir()} >= {"languages", "steps", "history.csv", "model"}
    command("train", settings("spans.max_steps=2", "keep_steps=true"))
    assert {path.name for path in (folder / "steps").iterdir()} == {"refinement", "span-training"}
    assert (folder / "spans" / "history.csv").is_file()
    assert not (folder / "languages").exists()
    (folder / "steps" / "notes.txt").write_text("mine")
    command("train", settings("refine.max_steps=0"))
    left = {path.name for path in folder.iterdir()} - {".lock", "stages"}
    assert left == {"model", "results.json", "run.json", "steps"}
    assert [path.name for path in (folder / "steps").iterdir()] == ["notes.txt"]


@pytest.fixture
def paper(tmp_path, tiny_teacher):
    """Overrides that make recipe=paper as small as its code allows; all else is as it stands."""
    small = [
        "contexts.per_unit=2",
        "pca.dim=8",
        "refine.max_steps=80",
        "corpus=sample",
        "corpus.max_characters=200",
        "threads=1",
    ]
    teacher = ["teacher=custom", f"teacher.model={tiny_teacher}", f"output={tmp_path / 'run'}"]
    return lambda *more: composed("train", "recipe=paper", *small, *teacher, *more)


def report_of(folder):
    return json.loads((folder / "run" / "results.json").read_text(encoding="utf-8"))["report"]


@pytest.mark.slow
def test_the_paper_recipe_runs_for_a_pair(tmp_path, paper):
    assert "refinement" in command("train", paper("pair=en-ja", "corpus.development=0.1"))
    report = report_of(tmp_path)
    assert (report["pca"]["drop"], report["corpus"]["en-ja"]["development"]) == (0, 0)
    assert report["extraction"]["units_with_contexts"] == report["extraction"]["units_with_vector"]
    history = report["refinement"]["history"]
    assert [row["step"] for row in history] == [0, 40, 80]
    assert history[-1]["development_loss"] < history[0]["development_loss"]


@pytest.mark.parametrize("language", [pytest.param("en", marks=pytest.mark.slow), "ja"])
def test_the_paper_recipe_runs_for_one_language_as_it_stands(tmp_path, paper, language):
    assert "Spearman with the teacher" in command("train", paper(f"pair={language}", "corpus.development=0.1"))
    history = report_of(tmp_path)["refinement"]["history"]
    assert history[-1]["development_loss"] < history[0]["development_loss"]


@pytest.mark.slow
def test_the_paper_recipe_joins_four_languages_without_refinement(tmp_path, paper):
    assert "PCA with ABTT" in command("train", paper("pair=en-de-zh-ja", "refine.max_steps=0"))
    report = report_of(tmp_path)
    assert "refinement" not in report
    assert set(report["corpus"]) == {"en-de", "en-zh", "en-ja"}
