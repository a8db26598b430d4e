from __future__ import annotations

import json
from xml.etree import ElementTree

import pytest

from tests.conftest import Later, eval_script
from xswe.errors import ConfigError
from xswe.evaluation.metrics import Row

Later("torch")
Later("matplotlib")
ablate, settings_module = eval_script("experiments.ablate"), eval_script("settings")


def run(*words):
    own, further = ablate.split_words(words, ablate.DEFAULTS)
    return ablate.run(settings_module.read_settings(own, ablate.DEFAULTS), further)


@pytest.fixture(scope="module")
def small(tiny_teacher, tmp_path_factory):
    folder = tmp_path_factory.mktemp("ablate")
    return folder, [
        "pair=en-ja",
        f"teacher={tiny_teacher}",
        "units.kind=teacher",
        "contexts.per_unit=3",
        "pca.dim=16",
        "refine.max_steps=20",
        "refine.batch_size=64",
        "threads=1",
        f"output={folder / 'run'}",
    ]


def stages(folder):
    # The converted text, text.en-ja-..., lies beside them.
    return sorted(path.name for path in (folder / "run" / "stages").iterdir() if not path.name.startswith("text."))


@pytest.mark.slow
def test_a_study_reuses_stages_and_skips_what_cannot_work(small, tmp_path):
    common, folder = [*small[1][:-1], f"output={tmp_path / 'run'}"], tmp_path  # with no stages of other tests
    table = run(*common, "study=drop", "values=0,2,20")
    names = [name.split("-")[0] for name in stages(folder)]
    assert {name: names.count(name) for name in set(names)} == {
        **dict.fromkeys(("corpus", "units", "bags", "contexts", "extract"), 1),
        "pca": 2,  # none removed is what 0 is
        "refine": 2,
    }
    assert "skipped 20: drop=20 and dim=16 need vectors of 36" in table
    found = json.loads((folder / "run" / "ablation" / "drop.json").read_text())
    assert {(row["variant"], row["step"]) for row in found["rows"]} == {
        (value, step) for value in (0, 2) for step in ("PCA with ABTT", "refinement")
    }
    assert [skip["variant"] for skip in found["skipped"]] == [20]
    assert found["settings"]["teacher"]["model"] == "tiny-mgte0"  # not where it lies
    markdown = (folder / "run" / "ablation" / "drop.md").read_text().splitlines()
    assert markdown[0] == "| components removed | after | dims | units | held-out en-ja |"
    assert len([line for line in markdown if line.startswith("| ")]) == 2 + 5
    svg = (folder / "run" / "ablation" / "drop.svg").read_bytes()
    assert ElementTree.fromstring(svg).tag.endswith("svg")
    before = stages(folder)
    run(*common, "study=drop", "values=0,2,20")
    assert stages(folder) == before
    assert (folder / "run" / "ablation" / "drop.svg").read_bytes() == svg


@pytest.mark.slow
def test_stages_are_one_run(small):
    folder, common = small
    table = run(*common, f"results={folder / 'results'}")
    steps = ("extraction", "PCA without ABTT", "PCA with ABTT", "refinement")
    assert all(step in table for step in steps)
    found = json.loads((folder / "results" / "stages.json").read_text())
    assert tuple(dict.fromkeys(row["step"] for row in found["rows"])) == steps
    assert {row["dim"] for row in found["rows"] if row["step"] == "extraction"} == {32}


@pytest.mark.slow
def test_tasks_that_were_skipped_are_told_below_the_table(small, monkeypatch):
    _, common = small
    rows = [Row("tatoeba", "en-ja", "skipped", None, 0, "mteb", note="no network")]
    monkeypatch.setattr(ablate, "run_tasks", lambda *_: list(rows))
    table = run(*common, "study=stages", "tasks=tatoeba")
    assert table.count("skipped tatoeba en-ja: no network") == 1


@pytest.mark.slow
def test_the_pca_of_words_is_another(small):
    folder, common = small
    run(*common, "study=pca_level")
    rows = json.loads((folder / "run" / "ablation" / "pca_level.json").read_text())["rows"]
    assert {row["variant"] for row in rows} == {"sentence", "word"}
    pcas = [name for name in stages(folder) if name.startswith("pca-")]
    fitted = {
        json.loads((folder / "run" / "stages" / name / "stage.json").read_text())["inputs"][1]["level"] for name in pcas
    }
    assert fitted == {"sentence", "word"}


@pytest.mark.parametrize("study", list(ablate.STUDIES.values()), ids=lambda study: study.name)
def test_every_study_names_real_settings(study):
    for value in study.values:
        made = ablate.configure("sample", ["en", "ja"], settings={**study.fixed, study.setting: value})
        assert made.units.kind == study.fixed.get("units.kind", "subwords")


@pytest.mark.slow
def test_mistakes_are_named(small):
    _, common = small
    with pytest.raises(ConfigError, match="there is no such setting"):
        run(*common, "setting=refine.bach", "values=1")
    with pytest.raises(ConfigError, match=r"study\.axis=choice"):
        run(*common, "study=drop", "values=auto,3")
    with pytest.raises(ConfigError, match="choose one, as in teacher=mini"):
        run("study=drop", "teacher=none")
    with pytest.raises(ConfigError, match=r"drop=40"):
        run(*common, "study=drop", "values=40")
    with pytest.raises(ConfigError, match="study=dimm: choose one of stages"):
        run(*common, "study=dimm")


def test_results_name_the_data_folder_as_users_do(monkeypatch):
    settings = {"corpus": {"paths": {"en-ja": ["/home/a/data/train/x.tsv", "own.tsv"]}, "limit": 5}, "seed": None}
    monkeypatch.setenv("XSWE_DATA", "/home/a/data")
    assert ablate.named_data(settings)["corpus"] == {"paths": {"en-ja": ["$XSWE_DATA/train/x.tsv", "own.tsv"]}, "limit": 5}
    monkeypatch.delenv("XSWE_DATA")
    assert ablate.named_data(settings) == settings
