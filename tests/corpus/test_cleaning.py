"""Filters one by one, with known answers; near-duplicates and decontamination."""

from __future__ import annotations

import dataclasses
import json
import unicodedata

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.corpus.loading import load_bitext
from xswe.bitext.convert import rewrite_bitext
from xswe.bitext.rows import Rows
from xswe.bitext.seen import Admission, KeySet
from xswe.bitext.source import find_pairs
from xswe.corpus import decontamination
from xswe.corpus import fetch as sources
from xswe.corpus.bitext import CorpusConfig, describe
from xswe.corpus.cleaning import REASONS, CleanConfig, Cleaner
from xswe.corpus.decontamination import EvaluationTexts
from xswe.corpus.near_duplicates import NearDuplicates
from xswe.errors import ConfigError, InputError
from xswe.io.ragged import Texts
from xswe.text.scripts import cjk_runs, has_kana

EN_JA = ("en", "ja")


def clean(tmp_path, rows, languages=EN_JA, **settings):
    path = tmp_path / "c.tsv"
    path.write_text("".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")
    names = {f.name for f in dataclasses.fields(CleanConfig)}
    filters = CleanConfig(**{k: v for k, v in settings.items() if k in names})
    rest = {k: v for k, v in settings.items() if k not in names and k != "score"}
    files = find_pairs([{"path": path, "score": settings["score"]} if "score" in settings else path], languages)
    bitext, report = load_bitext(files, languages, CorpusConfig(clean=filters, **rest))
    return list(zip(bitext.source, bitext.target, strict=True)), report.dropped


GOOD = ("Good day", "こんにちは")


@pytest.mark.parametrize(
    ("settings", "bad", "reason"),
    [
        ({"min_characters": 3}, ("ok", "はい、そう"), "too short"),
        ({"letters": 0.5}, ("12.000 / 14", "これは本です"), "few letters"),
        ({"letters": 0.5}, ("A book", "――――本――――"), "few letters"),
        ({"script": 0.6}, ("Привет, Welt", "これは本です"), "other script"),
        ({"script": 0.6}, ("A book", "this is 本"), "other script"),
        ({"script": 0.6}, ("A book", "これは本 Привет, мир"), "other script"),  # one of theirs counts as three letters
        ({"ratio": 3.0}, ("no", "いいえ、そうではありません"), "length ratio"),
        ({"identical": True}, ("PDF", "PDF"), "identical"),
    ],
)
def test_each_filter_drops_and_counts(tmp_path, settings, bad, reason):
    assert clean(tmp_path, [GOOD, bad], **settings) == ([GOOD], {reason: 1})
    assert clean(tmp_path, [GOOD, bad]) == ([GOOD, bad], {})  # off by default
    assert reason in REASONS


SCRIPTS = {"en": {"latin"}, "de": {"latin"}, "zh": {"han"}, "ja": {"han", "kana"}}


def letters_of(text, language):
    """The weights of a text's letters by script, as the settings describe them."""
    weights = {"latin": 0, "han": 0, "kana": 0, "other": 0}
    for one in text:
        if cjk_runs(one):
            weights["kana" if has_kana(one) else "han"] += 3 if language in ("zh", "ja") else 1
        elif unicodedata.category(one)[0] in "LM":
            weights["latin" if "LATIN" in unicodedata.name(one) else "other"] += 1
    return weights


def reasons_by_definition(pair, languages, config, longest, score, least):
    """Yield the reasons to drop a pair, in any order."""
    sizes, characters = [len(text.encode()) for text in pair], list(map(len, pair))
    if not all(pair):
        yield "blank"
    if max(characters) > longest:
        yield "too long"
    if min(characters) < config.min_characters:
        yield "too short"
    for text, language in zip(pair, languages, strict=True):
        weights = letters_of(text, language)
        if sum(letters_of(text, "en").values()) < config.letters * sum(not one.isspace() for one in text):
            yield "few letters"
        if sum(weights[script] for script in SCRIPTS[language]) < config.script * sum(weights.values()):
            yield "other script"
    if config.ratio and max(sizes) > config.ratio * min(sizes):
        yield "length ratio"
    if config.identical and pair[0] == pair[1]:
        yield "identical"
    if least is not None and score < least:
        yield "low score"


@settings(max_examples=80)
@given(
    pairs=st.lists(
        st.tuples(*[st.text("aé1 .дが漢ー\uff21\u3000", max_size=6)] * 2, st.sampled_from([0.4, 0.5, 0.6])), max_size=9
    ),
    languages=st.sampled_from([("en", "ja"), ("zh", "de"), ("ja", "zh")]),
    config=st.builds(
        CleanConfig,
        min_characters=st.integers(0, 3),
        letters=st.sampled_from([0.0, 0.5, 1.0]),
        script=st.sampled_from([0.0, 0.5, 0.75]),
        ratio=st.sampled_from([0.0, 1.0, 2.0]),
        identical=st.booleans(),
    ),
    longest=st.integers(3, 6),
    least=st.sampled_from([None, 0.5]),
)
def test_a_pair_is_dropped_for_the_first_reason_that_its_definition_gives(pairs, languages, config, longest, least):
    source, target, scores = ([one[k] for one in pairs] for k in range(3))
    rows = Rows(Texts.of(source), Texts.of(target), np.array(scores))
    found = [["", *REASONS][number] for number in Cleaner(languages, config, longest)(rows, least).reason]
    order = {reason: number for number, reason in enumerate([*REASONS, ""])}
    expected = [
        min([*reasons_by_definition(pair, languages, config, longest, score, least), ""], key=order.__getitem__)
        for *pair, score in pairs
    ]
    assert found == expected


def test_script_of_chinese_is_han_and_accents_are_latin(tmp_path):
    rows = [("Größe, l'œuvre", "大小"), ("Größe", "おおきさ")]
    assert clean(tmp_path, rows, ("de", "zh"), script=0.9) == (rows[:1], {"other script": 1})


@pytest.mark.parametrize(
    ("language", "text", "kept"),
    [
        ("zh", "请调用 CreateViewport() 打开新的窗口", True),
        ("ja", "CreateViewport() を呼び出して新しい窓を開く", True),
        ("zh", "CreateViewport() 返回 IDirect3DViewport3", False),
        ("zh", "CreateViewport を呼び出して新しい窓を開く", False),
    ],
)
def test_words_in_latin_letters_do_not_make_a_text_of_another_script(tmp_path, language, text, kept):
    rows = [("Call CreateViewport() to open a new window", text)]
    assert clean(tmp_path, rows, ("en", language), script=0.5) == ((rows, {}) if kept else ([], {"other script": 1}))


def test_texts_are_changed_before_they_are_judged(tmp_path):
    rows = [("a\u200b  b\x07c", "ＡＢＣ　ｶﾞｷﾞ１２"), ("a b c", "ABC ガギ12")]
    assert clean(tmp_path, rows, control=True, width=True) == ([rows[1]], {"duplicate": 1})
    assert clean(tmp_path, [("cafe\u0301", "漢\u2f00")], normalise="NFKC")[0] == [("café", "漢一")]
    assert clean(tmp_path, [("cafe\u0301", "漢\u2f00")], normalise="NFC")[0] == [("café", "漢\u2f00")]
    assert clean(tmp_path, [("x", "漢語學習")], ("en", "zh"), simplify=True)[0] == [("x", "汉语学习")]
    assert clean(tmp_path, [("x", "漢語學習")], EN_JA, simplify=True)[0] == [("x", "漢語學習")]
    assert clean(tmp_path, [("\u3000", "ｘ"), ("ｘ\u3000", "\u00a0y")], normalise="NFKC") == ([("x", "y")], {"blank": 1})


def test_low_scores(tmp_path):
    rows = [("a", "A", "1.1"), ("b", "B", "0.9"), ("c", "C", "none")]
    assert clean(tmp_path, rows, min_score=1.0, score=2) == ([("a", "A")], {"low score": 2})
    with pytest.raises(ConfigError, match=r"corpus\.min_score: these files have no scores"):
        clean(tmp_path, rows, min_score=1.0)


def test_hubs_are_kept_a_few_times(tmp_path):
    rows = [("Home", f"ページ{i}") for i in range(10)] + [("Away", "ページ1"), ("x", "y")]
    kept, dropped = clean(tmp_path, rows, hubs=3)
    assert kept == [*rows[:3], *rows[-2:]]
    assert dropped == {"hub": 7}


def test_near_duplicates_share_most_shingles(tmp_path):
    text = "The committee will meet again on the {} of next month in the great hall of the city"
    other = "委員会は来月{}日に市の大ホールで再び会議を開く予定であることを発表しました"
    rows = [(text.format(n), other.format(n)) for n in ("12", "14", "30")]
    rows += [("A quite different sentence about a cat", "猫についてのまったく別の文"), ("Yes", "はい"), ("No", "いいえ")]
    kept, dropped = clean(tmp_path, rows, near_duplicates=True)
    assert kept == [rows[0], *rows[3:]]  # digits are all alike to a sketch
    assert dropped == {"near duplicate": 2}


def test_a_sketch_meets_near_texts_and_seldom_others(tmp_path):
    generator = np.random.default_rng(5)
    words = ["".join(map(chr, generator.integers(97, 123, 6))) for _ in range(4000)]
    base = [list(generator.choice(words, 25)) for _ in range(300)]
    near = [[*row[:12], "other", *row[13:]] for row in base]  # about 80 % of the shingles in common
    apart = [[*row[:8], *generator.choice(words, 17)] for row in base]  # about 20 %
    rows = [(" ".join(row), f"文{i}" * 20) for part in (base, near, apart) for i, row in enumerate(part)]
    _, found = clean(tmp_path, rows[:600], near_duplicates=True)
    _, wrong = clean(tmp_path, rows[:300] + rows[600:], near_duplicates=True)
    assert found["near duplicate"] > 150
    assert wrong.get("near duplicate", 0) < 10


def test_the_order_of_the_reasons_and_of_the_lines(tmp_path):
    rows = [("", ""), ("PDF", "PDF"), GOOD, GOOD, ("x" * 2000, "y")]
    kept, dropped = clean(tmp_path, rows, identical=True, letters=0.1)
    assert kept == [GOOD]
    assert dropped == {"blank": 1, "identical": 1, "duplicate": 1, "too long": 1}


def evaluation(tmp_path):
    folder = tmp_path / "eval"
    folder.mkdir()
    (folder / "sts.tsv").write_text("4.5\tA cat sleeps.\tEine Katze schläft.\n", encoding="utf-8")
    record = {"translation": {"en": "The end", "ja": "ＮＨＫの、ニュース"}, "n": 3}
    (folder / "x.jsonl").write_text(json.dumps(record) + "\n", encoding="utf-8")
    (folder / "x.csv").write_text('id,text\n1,"Late, again."\n', encoding="utf-8")
    (folder / "about.md").write_text("not an evaluation file")
    return folder


def test_evaluation_texts_are_dropped_exactly_and_normalised(tmp_path):
    folder = evaluation(tmp_path)
    rows = [
        ("A cat sleeps.", "猫が寝る"),
        ("a CAT: sleeps", "猫"),
        ("News", "NHKのニュース"),
        ("4.5", "四・五"),
        ("The end of it", "その終わり"),
        ("Late, again.", "また"),
    ]
    kept, dropped = clean(tmp_path, rows, decontaminate=(str(folder),))
    assert kept == rows[3:5]
    assert dropped == {"evaluation text": 2, "evaluation text, normalised": 2}
    texts = EvaluationTexts([folder])
    assert (texts.count, len(texts.files)) == (5, 3)
    exact, normalised = texts.known(Texts.of(["The end", "the end", "", "!?"]))
    assert exact.tolist() == [True, False, False, False]
    assert normalised.tolist() == [True, True, False, False]


@pytest.mark.parametrize("suffix", [".tsv", ".csv", ".jsonl", ".xlsx", ".parquet", ".tmx", ".xlf", ".po"])
def test_evaluation_texts_of_every_format(tmp_path, suffix):
    pair = ("A cat sleeps.", "Eine Katze schläft.")
    (tmp_path / "test.tsv").write_text("\t".join(pair) + "\n", encoding="utf-8")
    if suffix != ".tsv":
        rewrite_bitext([tmp_path / "test.tsv"], tmp_path / f"test{suffix}", ("en", "de"))
    texts = EvaluationTexts([tmp_path / f"test{suffix}"])
    assert [one.tolist() for one in texts.known(Texts.of([*pair, "A dog sleeps."]))] == [[True, True, False]] * 2


def test_an_evaluation_text_of_a_memory_may_stand_on_several_lines(tmp_path):
    english, german = (
        f"<tuv xml:lang='{code}'><seg>{text}</seg></tuv>"
        for code, text in (("en", "A cat\n  sleeps."), ("de", "Sie schläft."))
    )
    memory = f"<tmx version='1.4'><header/><body><tu>{english}{german}</tu></body></tmx>"
    (tmp_path / "test.tmx").write_text(memory, encoding="utf-8")
    exact, normalised = EvaluationTexts([tmp_path / "test.tmx"]).known(Texts.of(["A cat sleeps.", "a cat sleeps"]))
    assert (exact.tolist(), normalised.tolist()) == ([True, False], [True, True])


def test_the_evaluation_files_are_part_of_what_a_corpus_is(tmp_path):
    folder = evaluation(tmp_path)
    (tmp_path / "c.tsv").write_text("a\tb\n")
    files = find_pairs([tmp_path / "c.tsv"], EN_JA)
    before = describe(CorpusConfig(decontaminate=(str(folder),)), files)
    (folder / "sts.tsv").write_text("4.5\tA dog sleeps.\tx\n")
    assert describe(CorpusConfig(decontaminate=(str(folder),)), files) != before
    assert describe(CorpusConfig(decontaminate=(str(folder),), cache="/elsewhere"), files) != before


def test_files_are_read_once_for_their_checksums_and_not_parsed(tmp_path, monkeypatch):
    folder, read = evaluation(tmp_path), []
    (tmp_path / "c.tsv").write_text("a\tb\n")
    files, config = find_pairs([tmp_path / "c.tsv"], EN_JA), CorpusConfig(decontaminate=(str(folder),))
    monkeypatch.setattr(sources, "file_digest", lambda path: read.append(path.name) or "checksum")
    monkeypatch.setattr(decontamination, "_texts", None)
    assert describe(config, files) == describe(config, files)
    assert sorted(read) == ["c.tsv", "sts.tsv", "x.csv", "x.jsonl"]
    (tmp_path / "c.tsv").write_text("a\tanother\n")
    describe(config, files)
    assert read[4:] == ["c.tsv"]


def test_near_duplicates_are_counted_among_the_first():
    texts = [f"Page {n} of the report about the state of the railways" for n in (1, 2, 13)]
    texts += ["A cat sleeps on the mat.", "A dog barks at the moon, as it does every night."]
    counted = NearDuplicates(most=6)
    assert counted.share == 0
    counted.add(Texts.of(texts[:3]))
    assert (counted.lines, counted.repeated) == (3, 2)
    counted.add(Texts.of([texts[1], *texts[3:], texts[0]]))
    assert (counted.lines, counted.repeated, counted.share) == (6, 3, 1 / 2)
    counted.add(Texts.of(texts))
    assert (counted.lines, counted.repeated) == (6, 3)
    pairs = NearDuplicates()
    pairs.add(Texts.of([texts[0], texts[1], texts[0]]), Texts.of([texts[3], texts[4], texts[3]]))
    assert (pairs.lines, pairs.repeated) == (3, 1)  # both sides must be near


@pytest.mark.parametrize(("name", "text"), [("none.tsv", None), ("empty.tsv", "1\t2\n"), ("bad.jsonl", "{")])
def test_evaluation_files_that_cannot_be_used(tmp_path, name, text):
    if text is not None:
        (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=name):
        EvaluationTexts([tmp_path / name])


@settings(max_examples=20)
@given(st.lists(st.lists(st.integers(1, 60), max_size=40), max_size=6))
def test_a_key_set_is_a_set_in_order(blocks):
    mine, naive = KeySet(), set()
    for block in blocks:
        fresh = mine.add(np.array(block, np.uint64))
        expected = []
        for key in block:
            expected.append(key not in naive)
            naive.add(key)
        assert fresh.tolist() == expected
    assert len(mine) == len(naive)
    assert mine.has(np.arange(1, 61, dtype=np.uint64)).tolist() == [k in naive for k in range(1, 61)]


def test_a_key_set_and_counts_grow():
    keys = np.random.default_rng(0).integers(1, 1 << 62, 100_000, dtype=np.uint64)
    mine = KeySet()
    assert all(mine.add(block).all() for block in np.split(keys, 10))
    assert not mine.add(keys).any()
    admission, none = Admission(2, (1, 2, 3)), np.empty((50_000, 0), np.uint64)
    sides, fine = np.repeat(keys[:50_000], 2).reshape(-1, 2), np.zeros(50_000, np.uint8)
    # Both sides of a pair are the same text here, which is met twice a pair: at its second pair it is a hub.
    assert not admission(keys[:50_000], none, sides, fine).any()
    assert (admission(keys[50_000:], none, sides, fine) == 3).all()
    assert (admission(keys[:50_000], none, sides, fine) == 1).all()


@pytest.mark.parametrize(
    "wrong", [{"normalise": "NFX"}, {"letters": 2.0}, {"ratio": 0.5}, {"hubs": 300}, {"min_characters": -1}]
)
def test_settings_that_cannot_work(wrong):
    with pytest.raises(ConfigError, match=r"corpus\.clean"):
        CleanConfig(**wrong)
