"""What ``train dry=true`` says before hours are spent."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.cli.verbs import command, composed, train_config
from tests.conftest import Later
from xswe.corpus.cards import sample_sentences
from xswe.errors import ConfigError, ModelError
from xswe.io.choices import choice_names
from xswe.teacher.outline import load_outline
from xswe.teacher.protocol import TeacherConfig
from xswe.teacher.transformer import load_teacher
from xswe.training import rehearsal

Later("torch")


@pytest.fixture
def dry(tmp_path, tiny_teacher, monkeypatch):
    """Call the verb with ``dry=true``; whoever loads weights fails."""

    def fail(*_):
        raise AssertionError("weights are loaded")

    monkeypatch.setattr("xswe.teacher.transformer.load_teacher", fail)
    monkeypatch.setattr(rehearsal, "_TIMED", 0.01)
    teacher = ["teacher=custom", f"teacher.model={tiny_teacher}"]
    common = ["pca.dim=8", "threads=1", f"output={tmp_path / 'run'}", "dry=true"]
    return lambda *more, own=teacher: command("train", composed("train", *own, *common, *more))


def rows(text):
    return dict(re.split(r"  +", line, maxsplit=1) for line in text.splitlines()[2:] if "  " in line)


def test_teacher_corpus_and_needs_are_told_and_nothing_is_written(dry, tmp_path):
    found = rows(dry("pair=en-ja"))
    size = len(sample_sentences()["en"])
    assert found["sentences, en"] == found["sentences, ja"] == f"{size:,}"
    assert found["teacher's sentences, en"].startswith("at most 1,700; ")
    assert {"memory at once", "disk", "units, at most"} <= set(found)
    assert next(name for name in found if name.startswith("teacher (")).endswith("cpu, float32)")
    assert not (tmp_path / "run").exists()


def test_cards_are_not_fetched_but_believed(dry):
    found = dry("pair=en-ja", "recipe=paper", "corpus.paths=[{card: ccmatrix},{card: jparacrawl}]")
    assert rows(found)["sentences, en"] == "about 62,000,000"
    assert rows(found)["units, at most"] == "180,000"
    assert "the corpus was not read to its end" in found


@pytest.mark.slow
def test_more_texts_take_more_time_and_a_larger_table_more_memory():
    def needs(*more):
        values = composed("train", "pair=en-ja", "teacher=mini", "threads=1", *more)
        return rehearsal.rehearse(train_config(values), Path("nowhere"))

    small, large = needs("corpus.limit=100"), needs("units.size=64000")
    assert small.memory < large.memory
    assert small.disk < large.disk
    assert small.seconds < large.seconds


def test_what_is_not_there_is_told(dry, monkeypatch):
    monkeypatch.setattr(rehearsal, "available_memory", lambda: 1e6)
    assert "memory: 1 MB are available" in dry("pair=en-ja")
    monkeypatch.setattr(rehearsal.shutil, "disk_usage", lambda _: rehearsal.shutil._ntuple_diskusage(0, 0, 1_000_000))
    assert "disk: 1 MB are free" in dry("pair=en-ja")


def test_mistakes_of_the_run_are_found_before_it(dry, tmp_path):
    with pytest.raises(ModelError, match=r"teacher\.model=FOLDER"):
        dry("pair=en-ja", own=["teacher=custom", f"teacher.model={tmp_path / 'none'}"])
    with pytest.raises(ConfigError, match="set dim=32 or less"):
        dry("pair=en-ja", "pca.dim=64", "pca.drop=0")


def test_the_outline_has_the_sizes_of_the_weights(tiny_teacher):
    config = TeacherConfig(str(tiny_teacher))
    teacher, outline = load_teacher(config), load_outline(config)
    assert outline.dim == teacher.dim
    own = sum(p.numel() for p in teacher.model.parameters())
    assert outline.parameters == pytest.approx(own, rel=0.05)
    texts = ["A cat sleeps.", "", "x " * 500]
    expected = [len(teacher._pretrained(text, truncation=True, max_length=128)["input_ids"]) for text in texts]
    assert outline.lengths(texts).tolist() == expected


def test_every_named_teacher_has_settings():
    for name in set(choice_names("teacher")) - {"none", "custom", "same"}:
        assert TeacherConfig.named(name).model
    assert TeacherConfig.named("e5-large").prompt == "query: "
    assert TeacherConfig.named("bge-m3").pooling == "cls"
