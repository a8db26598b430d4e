"""eval/experiments/main_job.py: any teacher, any pair, one language alone."""

from __future__ import annotations

import json

import pytest

from tests.conftest import eval_script
from xswe.errors import ConfigError


@pytest.fixture(scope="module")
def job():
    return eval_script("experiments.main_job")


@pytest.fixture
def encoder(tmp_path):
    (tmp_path / "my-encoder").mkdir()
    (tmp_path / "my-encoder" / "config.json").write_text("{}")
    return str(tmp_path / "my-encoder")


@pytest.fixture
def commands(job, monkeypatch, tmp_path):
    """The commands that the job runs, whose results are made up, and the settings of a job."""
    found = []

    def run(command, check):
        folder = next(word.removeprefix("output=") for word in command if word.startswith("output="))
        for step in ("extraction", "refinement"):
            (tmp_path / folder / "steps" / step).mkdir(parents=True)
        (tmp_path / folder / "results.json").write_text(json.dumps({"rows": [{"held": "out"}]}))
        (tmp_path / folder / "run.json").write_text("{}")
        found.append(command[4:])

    def figures(model, languages, threads, scratch):
        asked.append((model, languages))
        return 7, [{"task": "file", "subset": f"stsb.{languages[0]}.tsv", "metric": "spearman", "value": 0.5}]

    asked = []
    monkeypatch.setattr(job.subprocess, "run", run)
    monkeypatch.setattr(job, "figures", figures)
    settings = dict(job.DEFAULTS) | {"runs": str(tmp_path / "runs"), "results": str(tmp_path / "results"), "sizes": "500"}
    return found, asked, settings


def test_a_teacher_is_a_name_or_a_folder(job, encoder, commands, tmp_path, capsys):
    found, asked, settings = commands
    job.main(settings | {"pairs": "en-ja", "teachers": f"mini,none,{encoder}"})
    assert [word for command in found for word in command if word.startswith("teacher")] == [
        *("teacher=mini", "teacher=none", "teacher=custom", f"teacher.model={encoder}")
    ]
    assert not any("objective" in word for command in found for word in command)
    made = sorted(file.name for file in (tmp_path / "results" / "main").iterdir())
    runs = ["en-ja-mini-500.json", "en-ja-my-encoder-500.json", "en-ja-none-500.json"]
    assert made == sorted([*runs, "en-ja-teacher.json", "en-ja-teacher-my-encoder.json"])
    record = json.loads((tmp_path / "results" / "main" / "en-ja-my-encoder-500.json").read_text())
    assert (record["teacher"], record["pairs"], list(record["rows"])) == ("my-encoder", 500, ["extraction", "refinement"])
    assert record["train"] == [{"held": "out"}]
    assert encoder not in json.dumps(record)  # where it lies says nothing to others
    assert (f"teacher:{encoder}", ["en", "ja"]) in asked
    job.main(settings | {"pairs": "en-ja", "teachers": "mini,none"})
    assert len(found) == 3  # what is done is not repeated


def test_one_language_alone_is_distilled_and_judged_on_its_similarity(job, commands, tmp_path, capsys):
    found, asked, settings = commands
    job.main(settings | {"pairs": "ja", "teachers": "mini,none"})
    assert len(found) == 1
    assert {"pair=ja", "teacher=mini", "objective=distillation", "keep_steps=true"} <= set(found[0])
    assert all(languages == ["ja"] for _, languages in asked)
    assert {file.name for file in (tmp_path / "results" / "mono").iterdir()} == {"ja-mini-500.json", "ja-teacher.json"}
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split() == ["after", "stsb.ja.tsv"]
    assert lines[-2].split() == ["refinement", "50.0"]


def test_further_settings_make_runs_of_another_name(job, commands, tmp_path, capsys):
    found, _, settings = commands
    further = {
        "pairs": "en-ja",
        "teachers": "mini,none",
        "train": "teacher.dtype=bfloat16 refine.max_steps=2",
        "label": "short",
    }
    job.main(settings | further)
    assert [command.count("teacher.dtype=bfloat16") for command in found] == [1, 0]
    assert [command.count("refine.max_steps=2") for command in found] == [1, 1]
    record = json.loads((tmp_path / "results" / "main" / "en-ja-mini-500-short.json").read_text())
    assert (record["label"], record["settings"]) == ("short", ["teacher.dtype=bfloat16", "refine.max_steps=2"])
    with pytest.raises(ConfigError, match="give them a label="):
        job.main(settings | further | {"label": ""})


def test_a_folder_without_an_encoder_is_refused_before_any_work(job, commands, tmp_path):
    found, _, settings = commands
    with pytest.raises(ConfigError, match="no encoder there"):
        job.main(settings | {"teachers": f"mini,{tmp_path}"})
    assert not found
