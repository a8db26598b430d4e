"""The figures of a rehearsal that need no teacher, worked out by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from tokenizers import Tokenizer, models

from xswe.bitext.rows import Rows
from xswe.corpus.bitext import CorpusConfig
from xswe.corpus.cards import sample_sentences
from xswe.corpus.contexts import ContextConfig
from xswe.errors import ConfigError
from xswe.io.ragged import Texts
from xswe.teacher.outline import Outline
from xswe.teacher.protocol import TeacherConfig
from xswe.training import rehearsal as module
from xswe.training.config import PCAConfig, TrainConfig
from xswe.training.objective import Objective
from xswe.training.refine import RefineConfig
from xswe.training.rehearsal import (
    Side,
    _bytes,
    _bytes_of,
    _count,
    _disk,
    _memory,
    _remarks,
    _round,
    _span,
    rehearse,
    stated,
)
from xswe.training.units_stage import UnitsConfig

CONFIG = TrainConfig(("en", "de"), pca=PCAConfig(dim=64), refine=RefineConfig(batch_size=32), teacher=None)


def side(pairs=1000.0, known=True, characters=50.0):
    return Side("en", pairs, known, ["a"], characters)


def test_numbers_are_rounded_to_two_digits():
    written = [_round(number) for number in (0, 7.4, 99.4, 100, 1234, 1250, 98_765, 1_049_999, 99_999)]
    assert written == ["0", "7", "99", "100", "1,200", "1,200", "99,000", "1,000,000", "100,000"]
    assert [_count(1234.0, known) for known in (True, False)] == ["1,234", "about 1,200"]


def test_times_and_sizes_are_in_units_that_people_use():
    assert [_span(seconds) for seconds in (0, 89.4, 90, 5399, 5400, 129_599, 129_600)] == [
        "0 seconds",
        "89 seconds",
        "1.5 minutes",
        "90.0 minutes",
        "1.5 hours",
        "36.0 hours",
        "1.5 days",
    ]
    assert [_bytes(number) for number in (0, 5e5, 999e6, 1e9, 25.04e9)] == ["0 MB", "0 MB", "999 MB", "1.0 GB", "25.0 GB"]


def test_packed_files_hold_three_times_their_size(tmp_path):
    for name in ("a.txt", "b.gz", "c.zip", "d.tsv"):
        (tmp_path / name).write_bytes(bytes(100))
    assert _bytes_of(sorted(tmp_path.iterdir())) == 800.0
    assert _bytes_of([]) == 0.0


def test_memory_and_disk_without_a_teacher():
    bigrams = replace(CONFIG, refine=RefineConfig(batch_size=32, bigrams=500))
    assert _memory(CONFIG, None, 1000) == 3 * 1000 * 64 * 4 + 4 * 32**2 * 2
    assert _memory(bigrams, None, 1000) == 3 * 1500 * 64 * 4 + 4 * 32**2 * 2
    texts, bags, tables = 1000 * 58.0, 1000 * (4 * 10 + 8.0), 3 * 1000 * 64 * 4
    assert _disk(CONFIG, None, 1000, [side()]) == texts + bags + tables
    assert _disk(CONFIG, None, 1000, [side(), side()]) == 2 * (texts + bags) + tables
    assert _disk(CONFIG, None, 0, [side(characters=1.0)]) == 1000 * 9.0 + 1000 * 12.0  # a unit at least


OUTLINE = Outline("any", 32, 6, 128, 4, 1000, False, Tokenizer(models.Unigram([("<unk>", 0.0)], 0)), "", 512)
TEACHER = TeacherConfig("any/hub-name", dtype="float32", batch_tokens=100)


def test_an_encoder_has_four_matrices_of_attention_and_two_or_three_inside():
    assert OUTLINE.weights == 6 * (4 * 32 * 32 + 2 * 32 * 128)
    assert replace(OUTLINE, gated=True).weights == 6 * (4 * 32 * 32 + 3 * 32 * 128)
    assert OUTLINE.parameters == OUTLINE.weights + 1000 * 32
    assert OUTLINE.operations(10) == 10 * 2 * OUTLINE.weights + 4 * 6 * 10 * 10 * 32  # each token looks at all
    assert OUTLINE.numbers_at_once(10) == 8 * 32 + 3 * 128 + 4 * 10


def test_memory_and_disk_with_a_teacher(tmp_path):
    config, sides, without = replace(CONFIG, teacher=TEACHER), [side(), side(3000.0)], 4000 * 58.0 + 4000 * 48.0
    table, vectors = 1000 * 64 * 4.0, 1000 * 32 * 4.0
    alone = _disk(config, OUTLINE, 1000, sides)
    assert alone == without + 3 * table + OUTLINE.parameters * 4 + 4 * vectors
    assert _disk(replace(config, teacher=replace(TEACHER, model=str(tmp_path))), OUTLINE, 1000, sides) == (
        alone - OUTLINE.parameters * 4  # which is there
    )
    imitating = replace(config, objective=Objective(distillation=0.5))
    assert _disk(imitating, OUTLINE, 1000, sides) == alone + 1000 * 32 * 2  # of the first side, two bytes a number
    batch = 100 * OUTLINE.numbers_at_once(64) * 4
    assert _memory(config, OUTLINE, 1000) == OUTLINE.parameters * 4 + batch + 3 * vectors
    half = replace(config, teacher=replace(TEACHER, dtype="bfloat16", batch_tokens=0))
    batch = 16_384 * replace(OUTLINE, max_tokens=20).numbers_at_once(20) * 2
    assert _memory(half, replace(OUTLINE, max_tokens=20), 1000) == OUTLINE.parameters * 2 + batch + 3 * vectors
    assert _memory(config, OUTLINE, 100_000) == 3 * 100_000 * 64 * 4 + 4 * 32**2 * 2  # the refinement needs more


def test_the_teachers_time_is_that_of_the_sentences_it_reads(monkeypatch, tmp_path):
    class Words(Outline):
        def lengths(self, texts):
            return np.array([len(text.split()) for text in texts])

    outline = Words(**vars(OUTLINE))
    monkeypatch.setattr(module, "load_outline", lambda config: outline)
    monkeypatch.setattr(module, "check_settings", lambda *_: None)
    monkeypatch.setattr(module, "operations_a_second", lambda *_: 1000.0)
    monkeypatch.setattr(module, "_units_of", lambda config, side, teacher: 20 if side.language == "en" else 10)
    monkeypatch.setattr(module, "_place", lambda config: "cpu, float32")
    texts = {"en": ["a b", "a b c d"], "de": ["a b c"]}
    sides = [Side(code, pairs, True, texts[code], 9.0) for code, pairs in (("en", 1000.0), ("de", 4000.0))]
    monkeypatch.setattr(module, "_sides", lambda config: sides)
    config = replace(CONFIG, teacher=TEACHER, contexts=ContextConfig(per_unit=30), units=UnitsConfig(kind="words"))
    found = rehearse(config, tmp_path)
    costs = {code: np.mean([outline.operations(len(text.split())) for text in own]) for code, own in texts.items()}
    assert found.seconds == pytest.approx((600 * costs["en"] + 300 * costs["de"]) / 500)  # half of the speed of products
    rows = dict(found.rows)
    assert rows["units, at most"] == "30"
    assert rows["teacher's sentences, en"] == "at most 600; 3 tokens each, the longest of 2 4"
    assert rows["teacher's sentences, de"] == "at most 300; 3 tokens each, the longest of 1 3"
    assert (found.memory, found.disk) == (_memory(config, outline, 30), _disk(config, outline, 30, sides))
    few = replace(config, contexts=ContextConfig(per_unit=300))
    assert rehearse(few, tmp_path).seconds == pytest.approx((1000 * costs["en"] + 3000 * costs["de"]) / 500)
    imitating = rehearse(replace(config, objective=Objective(distillation=0.5)), tmp_path)
    assert imitating.seconds == pytest.approx((1600 * costs["en"] + 300 * costs["de"]) / 500)
    one = rehearse(replace(config, units=UnitsConfig(kind="teacher")), tmp_path)
    assert dict(one.rows)["units, at most"] == "20"
    assert rehearse(replace(config, teacher=None), tmp_path).seconds == 0.0


def test_a_card_says_how_many_pairs_it_has(monkeypatch):
    sizes = {"en-de": "4.5 M", "ja-en": "300 k", "en-zh": "", "de-ja": "1234"}
    card = SimpleNamespace(release_for=lambda pair, version: SimpleNamespace(pairs=sizes))
    monkeypatch.setattr(module, "find_card", lambda name: card)
    monkeypatch.setattr(module, "card_version", lambda entry: ("x", None))
    pairs = ("en", "de"), ("de", "en"), ("en", "ja"), ("en", "zh"), ("de", "ja"), ("zh", "ja")
    assert [stated({}, pair) for pair in pairs] == pytest.approx([4.5e6, 4.5e6, 3e5, 1e6, 1234, 1e6])


def test_what_is_to_be_read_before_a_run(monkeypatch, tmp_path):
    monkeypatch.setattr(module, "available_memory", lambda: 1000)
    monkeypatch.setattr(module.shutil, "disk_usage", lambda place: SimpleNamespace(free=2000))

    def said(sides=None, memory=0.0, disk=0.0, config=CONFIG):
        return [
            line.partition(":")[0]
            for line in _remarks(config, sides or [side()], memory, disk, Path(tmp_path / "none" / "there"))
        ][1:]

    assert said() == said(memory=900.0, disk=1800.0) == []
    assert said(memory=901.0) == ["memory"]
    assert said(disk=1801.0) == ["disk"]
    assert said([side(known=False), side()]) == ["the corpus was not read to its end"]
    assert said([side(320.0)]) == []
    assert said([side(319.0)]) == ["en"]
    assert said([side(1.0)], config=replace(CONFIG, refine=RefineConfig(batch_size=32, max_steps=0, epochs=0.0))) == []
    monkeypatch.setattr(module, "available_memory", lambda: 0)  # where the system does not say
    assert said(memory=1e12) == []


def lines(tmp_path, name, count, size=10):
    """A file of pairs, or of sentences, each of the same number of bytes."""
    path = tmp_path / name
    own = [f"{k:06d} " + "ab " * size for k in range(count)]
    path.write_text("".join(f"{one}\t{one}\n" if name.endswith(".tsv") else f"{one}\n" for one in own), encoding="utf-8")
    return path


def sampled(path, pair=("en", "de"), **settings):
    corpus = CorpusConfig(paths=[str(path)], **settings)
    return [(count, known, len(texts)) for count, known, texts in module._sampled(corpus, pair, 1)]


@pytest.mark.parametrize("pair", [("en", "de"), ("en",)])
def test_a_small_file_is_counted_and_a_large_one_estimated_by_its_bytes(tmp_path, monkeypatch, pair):
    path, sides = lines(tmp_path, "a.tsv" if len(pair) == 2 else "a.txt", 60), len(pair)
    assert sampled(path, pair) == [(60.0, True, 60)] * sides
    for limit, wanted in ((59, (59.0, True)), (60, (60.0, True)), (61, (60.0, True))):
        assert [one[:2] for one in sampled(path, pair, limit=limit)] == [wanted] * sides
    monkeypatch.setattr(module, "SAMPLE", 20)
    for count, known, size in sampled(path, pair):
        assert (known, size) == (False, 20)
        assert count == pytest.approx(60.0, rel=0.05)
    assert [one[:2] for one in sampled(path, pair, limit=50)] == [(50.0, True)] * sides


def test_cards_and_files_are_added_up(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "stated", lambda entry, pair: 1000.0)
    corpus = CorpusConfig(
        paths=[str(lines(tmp_path, "a.tsv", 30)), {"card": "ccmatrix"}, str(lines(tmp_path, "b.tsv", 12))]
    )
    both = ("en", "de")
    assert [one[:2] for one in module._sampled(corpus, both, 1)] == [(1042.0, False)] * 2
    assert [len(texts) for *_, texts in module._sampled(corpus, both, 1)] == [42, 42]
    cards = replace(corpus, paths=[{"card": "ccmatrix"}])
    own = sample_sentences()
    assert [texts for *_, texts in module._sampled(cards, both, 1)] == [own["en"], own["de"]]
    assert module._sampled(cards, ("de",), 1) == [(1e6, False, own["de"])]
    assert module._sampled(replace(cards, limit=7), ("de",), 1) == [(7.0, False, own["de"])]


def test_the_texts_of_a_language_are_those_of_all_its_bitexts(monkeypatch):
    found = {
        ("en", "de"): [(10.0, True, ["ab"]), (10.0, True, ["ä"])],
        ("en", "ja"): [(5.0, False, ["cdef"]), (5.0, False, [])],
    }
    monkeypatch.setattr(module, "_sampled", lambda corpus, pair, threads: found[pair])
    assert module._sides(TrainConfig(("en", "de", "ja"))) == [
        Side("en", 15.0, False, ["ab", "cdef"], 3.0),
        Side("de", 10.0, True, ["ä"], 2.0),
        Side("ja", 5.0, False, [], 0.0),
    ]


def test_units_are_as_many_as_their_kind_has():
    def units(config, teacher=None, code="en", texts=("a cat",)):
        return module._units_of(TrainConfig(("en", "de"), units=config), Side(code, 9.0, True, list(texts), 5.0), teacher)

    assert units(UnitsConfig(size=77)) == 77
    assert units(UnitsConfig("teacher"), OUTLINE) == 1000
    words = UnitsConfig("words", most_frequent={"en": 50})
    assert (units(words), units(words, code="de")) == (50, 150_000)
    assert units(words, texts=["."] * 99 + ["a"]) == 50  # a hundred sentences are tried
    with pytest.raises(ConfigError) as caught:
        units(words, texts=["."] * 100 + ["a"])
    assert str(caught.value) == "en: its first sentences have no word; check corpus.paths and the columns"


def test_what_is_printed_before_a_run(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "available_memory", lambda: 10**6)
    monkeypatch.setattr(module.shutil, "disk_usage", lambda place: SimpleNamespace(free=2 * 10**6))
    sides = [Side("en", 12_345.0, False, ["a"], 50.0), Side("de", 100.0, True, ["b"], 50.0)]
    monkeypatch.setattr(module, "_sides", lambda config: sides)
    found = rehearse(replace(CONFIG, units=UnitsConfig("words", most_frequent={"en": 3000, "de": 2000})), tmp_path / "run")
    memory, disk = 3 * 5000 * 64 * 4 + 4 * 32**2 * 2, 12_445 * 58 + 12_445 * 48 + 3 * 5000 * 64 * 4
    assert (found.seconds, found.memory, found.disk) == (0.0, memory, disk)
    assert str(found).splitlines() == [
        "what            estimate",
        "--------------  --------",
        "sentences, en   about 12,000",
        "sentences, de   100",
        "units, at most  5,000",
        f"memory at once  {memory / 1e6:.0f} MB",
        f"disk            {disk / 1e6:.0f} MB",
        "times are right within a factor of about two, with this machine as busy as now; nothing was trained or written",
        "memory: 1 MB are available; take fewer units, or a smaller teacher.batch_tokens",
        f"disk: 2 MB are free in {tmp_path}; set output= and XSWE_CACHE to a larger one, or corpus.limit",
        "the corpus was not read to its end: counts are estimated from a sample, or stated by a corpus card",
        "de: fewer than ten batches; take more pairs, or a smaller refine.batch_size",
    ]


@pytest.mark.parametrize(("most", "blocks"), [(1, 1), (4, 1), (5, 2), (8, 2), (9, 3), (12, 3), (13, None)])
def test_of_a_large_file_whole_blocks_are_read_until_there_are_enough(tmp_path, monkeypatch, most, blocks):
    made, dropped = [Rows(Texts.of(["aaa"] * 4), Texts.of(["bb"] * 4)) for _ in range(3)], np.array([0, 0, 1, 0])
    monkeypatch.setattr(module, "clean_file", lambda *_: (SimpleNamespace(rows=rows) for rows in made))
    monkeypatch.setattr(module, "reasons_of", lambda *_: dropped)
    monkeypatch.setattr(module, "SAMPLE", most)
    (tmp_path / "a.tsv").write_bytes(bytes(1000))
    sides = ([], [])
    file = SimpleNamespace(files=[tmp_path / "a.tsv"])
    found = module._read(file, CorpusConfig(), ("en", "de"), 1, sides)
    kept = 3 * (blocks or 3)
    if blocks is None:
        assert found == (9.0, True)
    else:
        assert found == (pytest.approx(kept * 1000 / (blocks * 4 * (4 + 3))), False)
    assert sides == (["aaa"] * min(kept, most), ["bb"] * min(kept, most))
    (tmp_path / "a.tsv").write_bytes(bytes(10))  # never fewer than were kept
    assert module._read(file, CorpusConfig(), ("en", "de"), 1, ([], []))[0] == kept
