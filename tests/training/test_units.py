"""The units stage: what each choice makes of the same corpus."""

from __future__ import annotations

import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import xswe
from tests.clusters import slices
from xswe.corpus.bitext import CorpusConfig
from xswe.errors import ConfigError, Unfinished
from xswe.io.ragged import Texts
from xswe.training import counting, units_stage
from xswe.training.corpus_stage import make_corpus
from xswe.training.stages import Stages, fingerprint_fields
from xswe.training.units_stage import UnitsConfig, make_units
from xswe.work.config import ExecutionConfig


@pytest.fixture(scope="module")
def make(tmp_path_factory, tokenizer_json, sample):
    """Make the units of a small English-Chinese corpus."""
    from tokenizers import Tokenizer

    folder = tmp_path_factory.mktemp("run")
    lines = [f"{a}\t{b}\n" for a, b in zip(sample["en"][:500], sample["zh"][:500], strict=True)]
    lines += [f"We understand the language of dream number {k}.\t我們明白第{k}個夢的語言。\n" for k in range(200)]
    (folder / "some.tsv").write_text("".join(lines), encoding="utf-8")
    corpus = make_corpus(Stages(folder / "run"), ("en", "zh"), CorpusConfig(paths=[str(folder / "some.tsv")]), 0)

    def units(config, pieces=None, stages=corpus.stages):
        pieces = pieces or Tokenizer.from_str(tokenizer_json)
        return make_units(replace(corpus, stages=stages), ("en", "zh"), config, pieces)[0]

    return units


def test_folding_is_a_switch_of_words_and_subwords(make):
    for kind in ("words", "subwords"):
        settings = {"kind": kind, "vocabulary": "corpus", "size": 4000}
        assert "語" in "".join(make(UnitsConfig(**settings, folding=False)).tokens), kind
        assert "語" not in "".join(make(UnitsConfig(**settings)).tokens), kind


def test_pieces_that_fold_by_themselves_are_refused_where_nothing_is_to_be_folded(make):
    for config in (UnitsConfig("teacher", folding=False), UnitsConfig("subwords", "mini", folding=False)):
        with pytest.raises(ConfigError, match=r"folding=false.*units\.vocabulary=corpus"):
            make(config)


def test_words_of_whole_texts_are_counted_as_they_are_looked_up(make):
    segmenters = {"zh": "teacher-text", "ja": "teacher-text"}
    units = make(UnitsConfig("words", segmenters=segmenters))
    assert units.settings["segmenters"] == {"zh": "teacher-text"}
    text = "我们明白第7个梦的语言。"
    found = units.bags([text])
    assert [units.tokens[i] for i in found.ids] == [word.form for word in units.splitter(text)]


def test_words_in_lower_case_hold_no_capital_and_are_found_in_any_case(make):
    units = make(UnitsConfig("words", lowercase=True))
    assert units.settings["lowercase"] is True
    assert not [word for word in units.tokens if word != word.lower()]
    a, b = (units.bags([text]).ids.tolist() for text in ("We Understand THE language", "we understand the language"))
    assert a == b
    assert len(a) == 4
    assert "We" in make(UnitsConfig("words")).tokens


def written(stages):
    """What the units stage left: the vocabulary, its counts, and nothing of the work."""
    assert not list(stages.folder.glob("*.shards"))
    (folder,) = stages.folder.glob("units-*")
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.name != "stage.json"}


@pytest.fixture(scope="module")
def counted_here(make, tmp_path_factory):
    """A choice of words by which most words tie, the stages of one process, and what it made."""
    config, stages = UnitsConfig("words", most_frequent={"en": 70, "zh": 70}), Stages(tmp_path_factory.mktemp("here"))
    make(config, stages=stages)
    return config, written(stages)


def test_an_array_counts_the_same_words_and_goes_on_after_a_loss(make, counted_here, tmp_path, monkeypatch):
    monkeypatch.setattr(counting, "_TEXTS_PER_SHARD", 150)
    config, alone = counted_here
    tasks = [Stages(tmp_path, True, how) for how in slices(3)]
    for stages in tasks[:2]:
        with pytest.raises(Unfinished, match="count words: this slice is done"):
            make(config, stages=stages)
    lost, damaged = sorted(tmp_path.glob("stages/units-*.shards/*.npz"))[:2]
    lost.unlink()
    damaged.write_bytes(damaged.read_bytes()[:-1] + b"?")
    with pytest.raises(Unfinished, match="of the indices 1-2;"):
        make(config, stages=tasks[2])
    with pytest.raises(Unfinished):
        make(config, stages=tasks[0])
    make(config, stages=tasks[1])
    assert written(tasks[1]) == alone


def test_every_executor_counts_the_same_words(any_executor, make, counted_here, tmp_path, monkeypatch):
    monkeypatch.setattr(counting, "_TEXTS_PER_SHARD", 400)
    config, alone = counted_here

    def count(how: ExecutionConfig) -> Stages:
        make(config, stages=(stages := Stages(tmp_path, execution=how)))
        return stages

    assert written(any_executor(count)) == alone


@pytest.mark.parametrize("kind", ["subwords", "teacher"])
def test_only_words_have_a_choice_of_case(kind):
    with pytest.raises(ConfigError, match=r"units\.lowercase=true is for units=words"):
        UnitsConfig(kind, lowercase=True)


def test_a_switch_at_its_default_is_not_in_the_fingerprint():
    assert not {"folding", "lowercase"} & set(fingerprint_fields(UnitsConfig()))
    switched = fingerprint_fields(UnitsConfig("words", folding=False, lowercase=True))
    assert (switched["folding"], switched["lowercase"]) == (False, True)


def test_texts_without_a_word_are_refused(tmp_path):
    """Of which a model was written that could not be read."""
    pairs = [("!" * (n % 7 + 1) + "?" * (n % 5), "…" * (n % 9 + 1)) for n in range(90)]
    with pytest.raises(ConfigError, match="no word of en, de in the training texts"):
        xswe.train(pairs, ["en", "de"], recipe="static", output=tmp_path / "run", **{"units.kind": "words"})
    assert not (tmp_path / "run" / "model").exists()


def test_a_size_that_is_asked_for_is_had_however_small_the_corpus(make, caplog):
    caplog.set_level("INFO", "xswe")
    assert len(make(UnitsConfig(size=4000)).tokens) <= 4000
    assert "auto: corpus (units.size=4,000 is set)" in caplog.text
    make(UnitsConfig())
    assert "auto: mini (" in caplog.text


def test_a_vocabulary_is_trained_where_it_is_worth_it(make, monkeypatch, caplog):
    caplog.set_level("INFO", "xswe")
    chosen = []

    def ready(config, vocabulary, pieces, languages):
        chosen.append(vocabulary)
        raise ConfigError("stop")

    def told(config):
        caplog.clear()
        with pytest.raises(ConfigError, match="stop"):
            make(config)
        return chosen.pop(), [text for text in caplog.messages if text.startswith("units.vocabulary")]

    monkeypatch.setattr(units_stage, "_ready_tokenizer", ready)
    auto = "units.vocabulary=auto: "
    vocabulary, (line,) = told(UnitsConfig())
    pairs = int(re.fullmatch(rf"{auto}mini \((\d+) pairs; 30,000 are enough\)", line)[1])
    assert (vocabulary, 600 < pairs <= 700) == ("mini", True)
    for least, vocabulary in ((pairs + 1, "mini"), (pairs, "corpus")):
        monkeypatch.setattr(units_stage, "_MIN_PAIRS", least)
        assert told(UnitsConfig()) == (vocabulary, [f"{auto}{vocabulary} ({pairs:,} pairs; {least:,} are enough)"])
    monkeypatch.setattr(units_stage, "_MIN_PAIRS", 10**9)
    assert told(UnitsConfig(size=5000)) == ("corpus", [f"{auto}corpus (units.size=5,000 is set)"])
    assert told(UnitsConfig(vocabulary="mini")) == ("mini", [])
    assert told(UnitsConfig("words")) == ("auto", [])
    monkeypatch.setattr(units_stage, "SHIPPED", ("ja",))
    assert told(UnitsConfig()) == ("corpus", [f"{auto}corpus (mini has no pieces of en, zh)"])


def test_tokens_are_counted_of_the_rows_that_are_asked_for_in_blocks(monkeypatch):
    texts = Texts.of("x" * k for k in range(20))
    rows = np.array([19, 3, 3, 0, 7])
    teacher = SimpleNamespace(lengths=lambda texts: np.array([len(text) for text in texts]))
    for block in (1, 2, 5, 1 << 16):
        monkeypatch.setattr(units_stage, "_COUNTED", block)
        assert units_stage.token_lengths(teacher, texts, "en", rows).tolist() == rows.tolist()
