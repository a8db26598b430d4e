"""What a user of Hydra knows of it holds, or is refused with a sentence."""

from __future__ import annotations

import re

import pytest
import yaml

from tests.cli.verbs import run_verb
from xswe.io.choices import choice_names

ENCODE = ("encode", "model=mini", "input=a.txt", "threads=1")


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "a.txt").write_text("A cat sleeps.\n", "utf-8")
    return tmp_path


def left(folder):
    """All files and empty folders that a command left."""
    made = [path for path in folder.rglob("*") if path.is_file() or not any(path.iterdir())]
    return {path.relative_to(folder).as_posix() for path in made} - {"a.txt"}


def test_a_multirun_leaves_a_record_and_no_empty_folders(folder):
    done = run_verb(*ENCODE[:2], "input=a.txt", "-m", "output=x.npy,deep/y.npy", "threads=1", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert left(folder) == {"x.npy", "deep/y.npy", "multirun/multirun.yaml"}


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        pytest.param(["hydra.run.dir=rec"], {"rec/.hydra"}, marks=pytest.mark.slow),
        (["hydra.run.dir=rec", "hydra.output_subdir=how"], {"rec/how"}),
        pytest.param(["-m", "hydra.sweep.dir=rec"], {"rec/0/.hydra"}, marks=pytest.mark.slow),
        (["-m", "hydra.sweep.dir=rec", "hydra.sweep.subdir=one"], {"rec/one/.hydra"}),
    ],
)
def test_a_folder_of_hydras_holds_its_record_of_the_settings(folder, words, wanted):
    done = run_verb(*ENCODE, "output=x.npy", *words, cwd=folder)
    assert done.returncode == 0, done.stderr
    records = {f"{place}/{name}.yaml" for place in wanted for name in ("config", "hydra", "overrides")}
    assert left(folder) - {"rec/multirun.yaml"} == {"x.npy", *records}
    assert "output: x.npy" in (folder / next(one for one in records if one.endswith("config.yaml"))).read_text("utf-8")


def test_hydra_changes_the_folder_when_it_is_asked_to(folder):
    words = [f"input={folder}/a.txt", "output=x.npy", "hydra.job.chdir=true", "hydra.run.dir=there"]
    done = run_verb("encode", "model=mini", "threads=1", *words, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "there/x.npy" in left(folder)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["train", "--cfg", "job", "--package", "pca"], "# @package pca\nlevel: sentence\n"),
        (["train", "--cfg", "job", "-p", "refine", "recipe=static"], "batch_size: 2048\n"),
        (["train", "--cfg", "hydra", "-p", "hydra.sweep"], "dir: multirun\nsubdir: .\n"),
        (["train", "--cfg", "all"], "hydra:\n"),
        (["train", "++seed=3", "--cfg", "job", "-p", "seed"], "3"),
        (["train", "--info", "defaults"], "| recipe/quickstart "),
        (["train", "--info", "searchpath"], "conf"),
        (["corpus", "-m", "action=list"], "ccmatrix"),
    ],
)
def test_what_hydra_shows(words, said, folder):
    done = run_verb(*words, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert said in done.stdout
    assert left(folder) <= {"multirun/multirun.yaml"}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["train", "~refine.max_steps"], "~refine.max_steps: a setting always has a value"),
        (["train", "+no=1"], "there is no setting 'no'"),
        (["train", "hydra/launcher=submitit", "-m", "seed=1,2"], "unknown hydra/launcher 'submitit': choose one of basic"),
        (["train", "corpus/clean=wob"], "unknown corpus/clean 'wob': choose one of none, web"),
        (["train", "-m", "--cfg", "job"], "Only one of --run, --multirun, --cfg"),
        (["train", "teacher=none", "teacher.max_tokens=3"], "teacher.max_tokens does nothing without an encoder"),
        (["train", "distilled.max_tokens=3"], "distilled.max_tokens does nothing without an encoder"),
        (["train", "teacher=same"], "teacher=same is for distilled= only"),
    ],
)
def test_what_hydra_does_not_do_here_is_refused(words, said, folder):
    done = run_verb(*words, cwd=folder)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not left(folder)


def test_choices_of_ones_own_need_no_more_than_what_differs(folder):
    for name, text in {
        "teacher/mine": "model: encoder\nprompt: 'q: '\n",
        "units/small": "size: 4000\n",
        "recipe/mine": "defaults: [static, override /units: small, _self_]\nrefine: {max_steps: 7}\n",
        "recipe/alone/mine-ja": "refine: {epochs: 3.0}\n",
        "short": "defaults: [train, _self_]\npca: {dim: 64}\n",
    }.items():
        (folder / f"{name}.yaml").parent.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.yaml").write_text(text, "utf-8")

    def told(*words):
        done = run_verb("train", "--config-dir", folder, "--cfg", "job", "--resolve", *words, cwd=folder)
        assert done.returncode == 0, done.stderr
        return yaml.safe_load(done.stdout)

    values = told("recipe=mine", "teacher=mine", "distilled=mine")
    assert (values["recipe"], values["units"]["size"], values["refine"]["max_steps"]) == ("mine", 4000, 7)
    assert (values["refine"]["batch_size"], values["refine"]["epochs"]) == (2048, 0.0)
    assert values["teacher"] == values["distilled"]
    assert (values["teacher"]["model"], values["teacher"]["prompt"], values["teacher"]["max_tokens"]) == (
        "encoder",
        "q: ",
        512,
    )
    assert told("recipe=mine", "pair=ja")["refine"]["epochs"] == 3.0
    assert told("--config-name", "short")["pca"]["dim"] == 64


@pytest.mark.parametrize("group", ["teacher", "units", "objective", "recipe", "corpus", "corpus/clean"])
def test_the_help_names_the_files_of_a_group(group, folder):
    told = re.split(r"\n  (?=\S)", run_verb("train", "--help-all", cwd=folder).stdout)
    (said,) = (part for part in told if part.startswith(f"{group}="))
    shown = set(said.split("(")[-1].split(")")[0].replace(",", " ").split())
    assert shown == set(choice_names(group)) - {"same"}


def test_a_log_is_ours_unless_hydra_is_asked_for_its_own(folder):
    for name in ("empty.txt", "another.txt"):
        (folder / name).touch()
    words = "encode", "model=mini", "threads=1", "output=x.npy", "hydra.output_subdir=null", "hydra.run.dir=."
    done = run_verb(*words, "input=empty.txt", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert re.search(r"^WARNING xswe\S*: empty.txt: it is empty", done.stderr, re.MULTILINE)
    assert not (folder / "main.log").exists()
    done = run_verb(*words, "input=another.txt", "hydra/job_logging=default", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "WARNING xswe" not in done.stderr
    log = (folder / "main.log").read_text("utf-8")
    assert re.search(r"^\[.*\]\[xswe\S*\]\[WARNING\] - another.txt: it is empty", log, re.MULTILINE)
