"""The verb ``corpus`` as a stranger uses it, and ``train`` on what it converted."""

from __future__ import annotations

import dataclasses
import gzip
import json
from pathlib import Path

import numpy as np
import pytest
import yaml

from tests.bitext.test_blocks import moses_zip
from tests.cli.test_configuration import composed
from tests.cli.verbs import run_verb
from xswe.cli.help import settings
from xswe.cli.main import main
from xswe.corpus.bitext import Bitext, CorpusConfig
from xswe.corpus.cards import cards
from xswe.corpus.cleaning import CleanConfig
from xswe.io.settings import build


def cli(*arguments, cwd):
    return run_verb(*arguments, cwd=cwd, XSWE_CACHE=str(cwd / "cache"))


@pytest.mark.parametrize("choice", sorted({*settings("corpus")[1].kind.split(", "), *cards()} - {"local"}))
def test_every_corpus_composes_and_has_the_settings_of_the_code(choice, tmp_path, monkeypatch):
    monkeypatch.setenv("XSWE_DATA", str(tmp_path))
    values = composed("corpus", f"corpus={choice}")["corpus"]
    assert set(values) == {f.name for f in dataclasses.fields(CorpusConfig)}
    assert set(values["clean"]) == {f.name for f in dataclasses.fields(CleanConfig)}
    assert build(CorpusConfig, values, "corpus").clean == CleanConfig()


def test_filters_for_the_web_are_a_choice():
    values = composed("corpus", "corpus=ccmatrix", "corpus/clean=web")["corpus"]
    assert build(CleanConfig, values["clean"], "corpus.clean").near_duplicates


def test_list_and_show(tmp_path):
    done = cli("corpus", "list", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for name in ("ccmatrix", "jparacrawl", "tatoeba", "wikimatrix", "nllb", "cc100", "wikipedia", "local", "CC BY 2.0 FR"):
        assert name in done.stdout
    done = cli("corpus", "show", "corpus=jparacrawl", cwd=tmp_path)
    assert "no commercial use" in done.stdout
    assert "jparacrawl/release/2.0/bitext" in done.stdout
    assert list(tmp_path.iterdir()) == []


def ccmatrix(folder, n=600):
    generator = np.random.default_rng(0)
    words = [f"w{i}" for i in range(200)]
    sides = [[" ".join(generator.choice(words, 6)) for _ in range(n)] for _ in range(2)]
    (folder / "cache" / "downloads" / "ccmatrix").mkdir(parents=True)
    texts = ["".join(f"{text}\n" for text in side) for side in sides]
    scores = "".join(f"{1.3 - i / 2000:.4f}\n" for i in range(n))
    moses_zip(
        folder / "cache" / "downloads" / "ccmatrix" / "en-ja.txt.zip", source=texts[0], target=texts[1], scores=scores
    )


def test_a_corpus_is_converted_once_and_then_trained_on(tmp_path, tokenizer_json):
    ccmatrix(tmp_path)
    done = cli("corpus", "corpus=ccmatrix", "pair=en-ja", "threads=1", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "600 pairs, " in done.stdout
    assert "Common Crawl" in done.stdout
    (folder,) = (tmp_path / "cache" / "converted").iterdir()
    assert len(Bitext.open(folder, ("en", "ja"))) == 600
    before = {p.name: p.stat().st_mtime_ns for p in folder.iterdir()}
    settings = ["teacher=none", "units.vocabulary=pieces.json", "pca.dim=8", "refine.max_steps=4", "threads=1"]
    (tmp_path / "pieces.json").write_text(tokenizer_json, encoding="utf-8")
    done = cli("train", "corpus=ccmatrix", "pair=en-ja", *settings, "output=run", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert {p.name: p.stat().st_mtime_ns for p in folder.iterdir()} == before
    config = json.loads((tmp_path / "run" / "model" / "config.json").read_text())
    assert config["corpora"][0]["corpus"] == "ccmatrix"
    assert not list((tmp_path / "run" / "stages").glob("text.*"))


def test_two_cards_a_version_and_a_limit(tmp_path):
    ccmatrix(tmp_path, 30)
    rows = "".join(f"{1.3 - i / 9000:.5f}\tSentence {i}.\t文{i}。\n" for i in range(20))
    original = tmp_path / "cache" / "downloads" / "ccmatrix" / "en-ja.bitextf.tsv.gz"
    original.write_bytes(gzip.compress(rows.encode()))
    done = cli("corpus", "corpus.paths=[{card:ccmatrix,version:original}]", "pair=en-ja", "corpus.limit=8", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "20 pairs, " in done.stdout
    assert "a training run draws 8 of them" in done.stdout
    both = "corpus.paths=[{card:ccmatrix},{card:ccmatrix,version:original}]"
    done = cli("corpus", both, "pair=en-ja", "output=out", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "50 pairs, " in done.stdout
    signature = json.loads((tmp_path / "out" / "signature.json").read_text())
    assert signature["cards"] == [{"card": "ccmatrix"}, {"card": "ccmatrix", "version": "original"}]
    done = cli("corpus", "show", "corpus.paths=[{card:jparacrawl},{card:tatoeba}]", cwd=tmp_path)
    assert "NTT's terms" in done.stdout
    assert "CC BY 2.0 FR" in done.stdout
    done = cli("corpus", f"corpus.paths=[{original}]", "pair=en-ja", "output=no", cwd=tmp_path)
    assert done.returncode == 2
    assert "columns: [1, 2], score: 0" in done.stderr


def test_files_of_ones_own_and_what_became_of_their_pairs(tmp_path):
    (tmp_path / "a.tsv").write_text("a\tA\na\tA\nonly\n\tB\nPDF\tPDF\n")
    paths = "corpus.paths=[a.tsv]"
    done = cli("corpus", paths, "output=out", "corpus.on_error=skip", "corpus.clean.identical=true", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for line in ("read", "identical", "duplicate", "blank", "too few columns", "a side without text", "kept"):
        assert line in done.stdout
    signature = json.loads((tmp_path / "out" / "signature.json").read_text())
    assert signature["report"]["kept"] == 1
    assert signature["settings"]["clean"]["identical"] is True
    done = cli("corpus", paths, "output=out", cwd=tmp_path)
    assert done.returncode == 2
    assert "a.tsv" in done.stderr or "other files or settings" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        (["lst"], "choose one of convert, fetch, list, show"),
        (["corpus=nope"], "unknown corpus 'nope': choose one of"),
        (["corpus=jparacrawl", "pair=en-de"], "it has en-ja"),
        (["corpus.paths=[{card:jparacrawl,version:9}]"], "has no version '9'; it has 3, 2"),
        (["corpus=cc100"], "monolingual"),
        (["corpus=ccmatrix", "corpus.offline=true"], "by hand, save it as"),
        (
            ["fetch", "corpus=cc100", "pair.languages=[de]", "corpus.offline=true"],
            "https://data.statmt.org/cc-100/de.txt.xz",
        ),
        (["corpus.paths=[none.tmx]"], "none.tmx: no such file"),
        ([], "corpus.paths"),
        (["corpus.paths=[none.tsv]", "corpus.clean.ratio=0.1"], "corpus.clean.ratio"),
        (["corpus.clean.rato=2"], "corpus.clean.rato"),
        (["corpus.clean=web"], "corpus.clean"),
    ],
)
def test_mistakes_get_one_line_and_exit_status_2(arguments, found, tmp_path):
    done = cli("corpus", *arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert found in done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr.splitlines()) == 1, done.stderr


def test_the_sample_is_found_wherever_the_package_lies(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert main(["corpus", "fetch", "corpus=sample"]) == 0
    path, licence = capsys.readouterr().out.splitlines()
    assert len(Path(path).read_text("utf-8").splitlines()) == 1717
    assert licence == "licence: CC0-1.0"
    assert main(["corpus", "show", "corpus=sample"]) == 0
    card = yaml.safe_load(capsys.readouterr().out)
    assert licence == f"licence: {card['licence']}"
    assert card["files"] == [Path(path).name]
