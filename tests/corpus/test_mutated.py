"""Two hundred damaged files of every format: each is a clear error or a counted skip, and leaves nothing behind."""

from __future__ import annotations

import gzip
import io
import zipfile

import numpy as np
import pytest

from eval.experiments import damaged_texts
from eval.experiments.damaged_texts import PAIR as EN_JA
from eval.experiments.damaged_texts import mutate, tarred, tsv
from xswe.bitext import lines as blocks
from xswe.bitext.source import find_pairs
from xswe.corpus.bitext import CorpusConfig
from xswe.corpus.convert import convert
from xswe.errors import XsweError


@pytest.fixture(scope="module")
def bases():
    return damaged_texts.bases()


def check(folder, name, data):
    """Convert a damaged file strictly and leniently; return what came of it."""
    path = folder / name
    path.write_bytes(data)
    outcomes = []
    for on_error in ("raise", "skip"):
        out = folder / f"out-{on_error}"
        problem = ""
        try:
            bitext, report = convert(find_pairs([path], EN_JA), EN_JA, CorpusConfig(on_error=on_error), out)
        except XsweError as error:
            problem = str(error)
        if problem:
            assert "\n" not in problem
            assert problem.startswith(str(path))
            assert not out.exists()
            outcomes.append("error")
        else:
            assert report.read >= report.kept == len(bitext)
            assert all("\n" not in text and "\0" not in text for side in (bitext.source, bitext.target) for text in side)
            outcomes.append("skipped" if report.dropped else "fine")
    return outcomes


def trial(folder, bases, number):
    generator = np.random.default_rng(number)
    name = sorted(bases)[number % len(bases)]
    return check(folder, name, mutate(bases[name], generator))


@pytest.mark.parametrize("number", range(33))
def test_damaged_files(tmp_path, bases, number, monkeypatch):
    monkeypatch.setattr(blocks, "BLOCK_LINES", 64)
    assert len(trial(tmp_path, bases, number)) == 2


@pytest.mark.slow
@pytest.mark.parametrize("number", range(33, 200))
def test_many_more_damaged_files(tmp_path, bases, number):
    assert len(trial(tmp_path, bases, number)) == 2


@pytest.mark.parametrize("number", range(26))
def test_damaged_files_are_read_in_every_way(tmp_path, bases, number):
    made = [(name, data, False) for name, data in bases.items()]
    made += [(name, data, True) for name, data in damaged_texts.documents().items()]
    name, data, document = made[number % len(made)]
    assert set(damaged_texts.trial(tmp_path, name, data, document).values()) == {"fine"}
    damaged = mutate(data, np.random.default_rng([5, number]))
    assert set(damaged_texts.trial(tmp_path, name, damaged, document).values()) <= {"error", "skipped", "fine"}


def test_the_whole_files_are_fine_and_damage_is_noticed(tmp_path, bases):
    for name, data in bases.items():
        folder = tmp_path / name.replace(".", "-")
        folder.mkdir()
        assert check(folder, name, data) == ["fine", "fine"], name
        (folder / "cut").mkdir()
        strict, _ = check(folder / "cut", name, data[: len(data) // 2 + 7])
        assert strict == "error" or name in ("a.po", "a.tsv"), name  # a catalogue may end after any entry


@pytest.mark.parametrize("name", ["../X.en-ja.en", "/X.en-ja.en"])
def test_traversal_leaves_nothing(tmp_path, name):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr(name, "a\n")
        archive.writestr("X.en-ja.ja", "b\n")
    assert check(tmp_path, "evil.zip", out.getvalue()) == ["error", "error"]
    assert check(tmp_path, "evil.tar.gz", tarred("../evil.txt", tsv())) == ["error", "error"]


@pytest.mark.slow
def test_a_line_of_a_gibibyte_in_a_small_file(tmp_path):
    path = tmp_path / "line.tsv.gz"
    with gzip.open(path, "wb", compresslevel=1) as stream:
        stream.write(b"a\tA\n")
        for _ in range(1024):
            stream.write(bytes(0x78 for _ in range(1 << 10)) * 1024)
        stream.write(b"\nb\tB\n")
    assert check(tmp_path, path.name, path.read_bytes()) == ["error", "skipped"]


@pytest.mark.slow
def test_a_zip_bomb(tmp_path):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for code in EN_JA:
            archive.writestr(f"X.en-ja.{code}", bytes(300 << 20))
    assert check(tmp_path, "bomb.zip", out.getvalue()) == ["error", "error"]
