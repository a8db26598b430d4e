"""``mine`` and ``lexicon`` as a stranger uses them: outputs, pipes, kills."""

from __future__ import annotations

import json

import pytest

from tests.cli.verbs import run_verb
from tests.warm import kill_when


@pytest.fixture
def files(sample, tmp_path):
    (tmp_path / "en.txt").write_text("".join(f"{line}\n" for line in sample["en"][:800]), encoding="utf-8")
    (tmp_path / "ja.txt").write_text("".join(f"{line}\n" for line in sample["ja"][400:1200]), encoding="utf-8")
    return tmp_path


def test_mine_writes_pairs_and_prints_a_summary(files, model_folder):
    done = run_verb(
        "mine", f"model={model_folder}", "source=en.txt", "target=ja.txt", "output=pairs.tsv", "threads=1", cwd=files
    )
    said = done.stdout
    assert done.returncode == 0, done.stderr
    for part in ("source: 800 lines read", "expected precision", "pairs: ", "median", "(read and encode"):
        assert part in said
    lines = [line.split("\t") for line in (files / "pairs.tsv").read_text(encoding="utf-8").splitlines()]
    scores = [float(line[0]) for line in lines]
    assert scores == sorted(scores, reverse=True)
    assert {len(line) for line in lines} == {3}
    assert {p.name for p in files.iterdir()} == {"en.txt", "ja.txt", "pairs.tsv"}


def test_mine_to_standard_output_says_nothing_else_there(files, model_folder):
    settings = [f"model={model_folder}", "source=en.txt", "target=ja.txt", "threads=1", "threshold=null"]
    piped = run_verb("mine", *settings, "output=-", cwd=files)
    run_verb("mine", *settings, "output=pairs.tsv", cwd=files)
    assert piped.stdout.encode() == (files / "pairs.tsv").read_bytes()
    assert "lines read" in piped.stderr


def test_score_from_standard_input_to_standard_output(files, model_folder):
    raw = "A cat.\t猫。\r\nx\ty\tz"
    done = run_verb("mine", f"model={model_folder}", "mode=score", "input=-", "output=-", cwd=files, given=raw)
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.split("\r\n")
    assert first.startswith("A cat.\t猫。\t")
    assert second.startswith("x\ty\tz\t")
    assert not done.stdout.endswith("\n")


@pytest.mark.slow
def test_a_run_killed_anywhere_ends_with_the_same_bytes(files, model_folder, warm_python):
    settings = [f"model={model_folder}", "source=en.txt", "target=ja.txt", "threads=1"]
    run_verb("mine", *settings, "output=whole.tsv", cwd=files)
    work = files / "killed.tsv.work"
    for awaited in (work, work / "source", work / "target" / "side.json"):
        kill_when(warm_python, ["mine", *settings, "output=killed.tsv"], files, awaited.exists)
        if (files / "killed.tsv").exists():
            break
    done = run_verb("mine", *settings, "output=killed.tsv", cwd=files)
    assert done.returncode == 0, done.stderr
    assert (files / "killed.tsv").read_bytes() == (files / "whole.tsv").read_bytes()
    assert not work.exists()


@pytest.mark.parametrize(
    "words",
    [
        ["filter", "model=mini", "input=old.tsv", "output=o.tsv"],
        ["mine", "model=mini", "source=en.txt", "target=ja.txt", "ids=true", "output=o.tsv"],
        ["mine", "mode=score", "model=mini", "score=ratio", "input=old.tsv", "output=o.tsv"],
        ["corpus", "corpus.paths=[old.tsv]", "pair=en-de", "output=o"],
    ],
)
def test_a_command_that_fails_at_once_leaves_nothing_behind(files, words):
    (files / "old.tsv").write_bytes("It is fine.\tEs ist schön.\n".encode("latin-1"))
    before = sorted(files.iterdir())
    done = run_verb(*words, *(["threads=1"] if words[0] != "corpus" else []), cwd=files)
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1), done.stderr
    assert sorted(files.iterdir()) == before


def test_lexicon(files, model_folder):
    (files / "gold.tsv").write_text("the\tの\n", encoding="utf-8")
    done = run_verb("lexicon", f"model={model_folder}", "output=d.tsv", "gold=gold.tsv", "threads=1", cwd=files)
    assert done.returncode == 0, done.stderr
    assert "P@1" in done.stdout
    rows = [line.split("\t") for line in (files / "d.tsv").read_text(encoding="utf-8").splitlines()]
    assert {len(row) for row in rows} == {4}
    assert {row[3] for row in rows} == {"1"}
    assert run_verb("lexicon", f"model={model_folder}", "output=d.jsonl", "threads=1", cwd=files).returncode == 0
    named = [json.loads(line) for line in (files / "d.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [list(row) for row in named[:1]] == [["source", "target", "csls", "rank"]]
    assert [(row["source"], row["target"]) for row in named] == [(row[0], row[1]) for row in rows]


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        (["mine", "target=ja.txt", "output=o"], "source="),
        (["mine", "source=en.txt", "target=none.txt", "output=o"], "none.txt: no such file"),
        (["mine", "source=en.txt", "target=/dev/null", "output=o"], "/dev/null: not a regular file"),
        (["mine", "mode=score", "input=.", "output=o"], ".: a folder"),
        (["mine", "source=en.txt", "target=ja.txt"], "output is not set"),
        (["mine", "source=en.txt", "target=ja.txt", "output=o", "mode=filter"], "mode='filter'"),
        (["mine", "source=en.txt", "target=ja.txt", "output=o", "score=dot"], "score='dot'"),
        (["mine", "source=en.txt", "target=ja.txt", "output=o", "neighbours.method=annoy"], "exact, clusters"),
        (["mine", "source=en.txt", "target=ja.txt", "output=o", "filters.script=true"], "languages=[en,ja]"),
        (["mine", "source=en.txt", "target=ja.txt", "output=o.parquet", "format=tsv"], "laser, bucc"),
        (["mine", "mode=score", "output=o"], "input="),
        (["mine", "mode=score", "input=en.txt", "output=o"], "en.txt:1: 1 tab-separated columns"),
        (["mine", "source=en.txt", "target=ja.txt", "output=./en.txt"], "en.txt: is also read"),
        (["mine", "mode=score", "input=en.txt", "output=en.txt"], "en.txt: is also read"),
        (["mine", "source=en.txt", "target=ja.txt", "output=en.txt/o"], "en.txt is not a folder"),
        (["mine", "mode=score", "input=en.txt", "output=o.jsonl.gz"], "but o.jsonl.gz is jsonl"),
        (["mine", "mode=score", "input=en.txt", "output=o", "format=parquet"], "but o is parquet"),
        (["lexicon", "output=d", "source=en.txt"], "target="),
        (["lexicon", "output=ja.txt", "source=en.txt", "target=ja.txt"], "ja.txt: is also read"),
    ],
)
def test_mistakes_get_one_line_and_exit_status_2(files, model_folder, arguments, found):
    done = run_verb(arguments[0], f"model={model_folder}", *arguments[1:], cwd=files)
    said = done.stderr.splitlines()
    assert done.returncode == 2
    assert len(said) == 1
    assert said[0].startswith("xswe: ")
    assert found in said[0]
    assert not (files / "o").exists()


def test_negatives_paraphrases_and_duplicates_from_the_command_line(files, model_folder):
    model = f"model={model_folder}"
    bitext = "mode=negatives", "source=en.txt", "target=ja.txt", "negatives=2"
    assert run_verb("mine", model, *bitext, "output=t.jsonl", cwd=files).returncode == 0
    assert set(json.loads((files / "t.jsonl").read_text(encoding="utf-8").splitlines()[0])) == {
        *("anchor", "positive", "negative_1", "negative_2"),
    }
    for verb, words, said in (
        ("mine", ("source=en.txt", "output=p.tsv", "threshold=null"), "lines: 800 lines read"),
        ("dedup", ("input=en.txt", "output=u.txt", "rejects=r.tsv"), "800 lines read"),
        ("mine", ("source=en.txt", "target=ja.txt", "output=j.tsv", f"rerank={model_folder}"), "pairs reranked"),
    ):
        done = run_verb(verb, model, *words, cwd=files)
        assert said in done.stdout, done.stderr
    for wrong, said in ((("negatives=2",), "mode=negatives"), (("mode=negatives", "k=3"), "k does nothing")):
        done = run_verb("mine", model, "source=en.txt", "target=ja.txt", "output=x.jsonl", *wrong, cwd=files)
        assert said in done.stderr
