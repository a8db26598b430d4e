"""Pairs of one language and their negatives, from files to the three parts of a corpus."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tests.corpus.loading import broken_after, load_bitext, split
from xswe.bitext.rows import Negatives
from xswe.bitext.source import find_pairs
from xswe.corpus.bitext import Bitext, CorpusConfig, describe_files
from xswe.corpus.convert import convert
from xswe.errors import ConfigError, InputError
from xswe.io.ragged import Texts

JA_JA = ("ja", "ja")
RECORDS = [
    {"anchor": "質問一", "positive": "答え一", "negative": "外れ一"},
    {"anchor": "質問二", "positive": "答え二", "negative": None},
    {"anchor": "質問三", "positive": "答え三", "negative": ["外れ二", "", "外れ\t三"], "note": "n"},
    {"anchor": "質問四", "positive": "答え四", "negative_2": "外れ五", "negative_1": "外れ四"},
]
EXPECTED = [
    ("質問一", "答え一", ["外れ一"]),
    ("質問二", "答え二", []),
    ("質問三", "答え三", ["外れ二", "外れ 三"]),
    ("質問四", "答え四", ["外れ四", "外れ五"]),
]


def tuples(bitext: Bitext) -> list[tuple[str, str, list[str]]]:
    found = bitext.negatives
    lists = [[] for _ in bitext.source] if found is None else [found.take([i]).texts for i in range(len(bitext))]
    return [(a, b, list(c)) for a, b, c in zip(bitext.source, bitext.target, lists, strict=True)]


def write_jsonl(path, records):
    path.write_text("".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records), encoding="utf-8")
    return path


def write_parquet(path, records):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    pq.write_table(pa.Table.from_pylist(records), path)
    return path


def load(path, config=None, entry=None):
    config = config or CorpusConfig()
    return load_bitext(find_pairs([entry or path], JA_JA, config.columns), JA_JA, config)[0]


def test_json_lines_need_no_names(tmp_path):
    assert tuples(load(write_jsonl(tmp_path / "a.jsonl", RECORDS))) == EXPECTED
    queries = [{"query": r["anchor"], "positive": r["positive"]} for r in RECORDS]
    assert tuples(load(write_jsonl(tmp_path / "b.jsonl", queries))) == [(a, b, []) for a, b, _ in EXPECTED]


def test_parquet_and_tables_say_the_same(tmp_path):
    flat = [{"anchor": a, "positive": b, "negative": c or None} for a, b, c in EXPECTED]
    assert tuples(load(write_parquet(tmp_path / "a.parquet", flat))) == EXPECTED
    lines = [f"{a}\tx\t{b}\t{''.join(c[:1])}\t{''.join(c[1:])}\n" for a, b, c in EXPECTED]
    (tmp_path / "a.tsv").write_text("".join(lines), encoding="utf-8")
    assert tuples(load(tmp_path / "a.tsv", CorpusConfig(columns=(0, 2, 3, 4)))) == EXPECTED
    entry = {"path": str(tmp_path / "a.tsv"), "columns": [0, 2, 3]}
    assert tuples(load(None, None, entry)) == [(a, b, c[:1]) for a, b, c in EXPECTED]
    assert tuples(load(None, None, {**entry, "columns": [0, 2]})) == [(a, b, []) for a, b, _ in EXPECTED]


@pytest.mark.slow
def test_a_data_set_of_the_hub_names_its_fields(tmp_path):
    pytest.importorskip("datasets")
    folder = tmp_path / "set"
    folder.mkdir()
    write_parquet(folder / "train.parquet", [{"q": a, "a": b, "n": c} for a, b, c in EXPECTED])
    entry = {"hub": str(folder), "fields": ["q", "a", "n"], "streaming": False}
    assert tuples(load(None, None, entry)) == EXPECTED


def test_fields_named_must_be_there(tmp_path):
    path = write_jsonl(tmp_path / "a.jsonl", [{"q": "問", "a": "答", "n": "外"}, {"q": "問い", "a": "答え"}])
    entry = {"path": str(path), "fields": ["q", "a", "n"]}
    with pytest.raises(InputError, match=r"a\.jsonl:2: no text, nor list of texts, under 'n'"):
        load(None, None, entry)
    assert len(load(None, CorpusConfig(on_error="skip"), entry)) == 1
    with pytest.raises(InputError, match=r"no text under 'anchor' and 'positive'; name its fields"):
        load(path)
    with pytest.raises(ConfigError, match="source and target, and any negatives"):
        load(None, None, {"path": str(path), "fields": ["q"]})


def test_a_line_without_the_column_of_a_negative_is_damaged(tmp_path):
    (tmp_path / "a.tsv").write_text("a\tb\tc\nd\te\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"a\.tsv:2: 2 tab-separated columns where columns \(0, 1, 2\) need 3"):
        load(tmp_path / "a.tsv", CorpusConfig(columns=(0, 1, 2)))


def test_negatives_are_what_their_pair_is_as_pairs_are_dropped(tmp_path):
    records = [*RECORDS[:2], {"anchor": "", "positive": "答え", "negative": "外れ"}, *RECORDS[:1], *RECORDS[2:]]
    assert tuples(load(write_jsonl(tmp_path / "a.jsonl", records))) == EXPECTED
    (tmp_path / "dev.tsv").write_text("外れ二\n答え一\n", encoding="utf-8")
    config = CorpusConfig(decontaminate=(str(tmp_path / "dev.tsv"),), max_characters=3)
    found = tuples(
        load(write_jsonl(tmp_path / "b.jsonl", [*RECORDS, {**RECORDS[0], "positive": "ほか", "negative": "長すぎる"}]))
    )
    assert ("質問一", "ほか", ["長すぎる"]) in found
    left = tuples(load(tmp_path / "b.jsonl", config))
    assert left[0] == ("質問二", "答え二", [])
    assert left[-1] == ("質問一", "ほか", [])
    assert ("質問三", "答え三", []) in left  # one is an evaluation text, the other too long
    assert EXPECTED[3] in left  # of three characters, as many as there may be


@pytest.mark.parametrize("after", [1, 2, 5])
def test_a_conversion_that_broke_keeps_the_negatives_where_they_belong(tmp_path, monkeypatch, after):
    monkeypatch.setattr("xswe.bitext.rows.BLOCK_PAIRS", 50)
    monkeypatch.setattr("xswe.work.kept.BRIEF", 0.0)
    records = [
        {"anchor": f"a{i}", "positive": f"p{i}", "negative": [f"n{i}.{k}" for k in range(i % 4)]} for i in range(400)
    ]
    files = find_pairs([write_jsonl(tmp_path / "a.jsonl", records)], JA_JA)
    whole, _ = convert(files, JA_JA, CorpusConfig(), tmp_path / "whole")
    expected = [(r["anchor"], r["positive"], r["negative"]) for r in records]
    assert tuples(whole) == expected == tuples(load_bitext(files, JA_JA, CorpusConfig())[0])
    with monkeypatch.context() as interrupted:
        broken_after(interrupted, after)
        with pytest.raises(KeyboardInterrupt):
            convert(files, JA_JA, CorpusConfig(), tmp_path / "out")
    assert tuples(convert(files, JA_JA, CorpusConfig(), tmp_path / "out")[0]) == expected
    for file in (tmp_path / "whole").glob("*.npy"):
        assert file.read_bytes() == (tmp_path / "out" / file.name).read_bytes()
    parts = split(whole, CorpusConfig(held_out=0.1, development=0.1), seed=0)
    found = [one for part in (parts.train, parts.development, parts.held_out) for one in tuples(part)]
    assert sorted(found) == sorted(expected)


def test_pairs_without_negatives_are_described_as_ever(tmp_path):
    (tmp_path / "a.tsv").write_text("a\tb\tc\n", encoding="utf-8")
    plain, further = (find_pairs([tmp_path / "a.tsv"], ("en", "ja"), columns) for columns in ((0, 1), (0, 1, 2)))
    assert describe_files(plain)[0][-1] == ["tsv", (0, 1), (), None, None]
    assert describe_files(further) != describe_files(plain)
    convert(plain, ("en", "ja"), CorpusConfig(), tmp_path / "out")
    assert not list((tmp_path / "out").glob("*negatives*"))


def test_a_file_of_one_language_is_not_the_other_side_of_itself(tmp_path):
    (tmp_path / "pairs.ja").write_text("問\t答\n", encoding="utf-8")
    assert tuples(load(tmp_path / "pairs.ja")) == [("問", "答", [])]


def test_columns_are_interleaved():
    made = Negatives.of_columns([Texts.of(["a", "", "b"]), Texts.of(["c", "", ""])])
    assert list(made.texts) == ["a", "c", "b"]
    assert made.bounds.tolist() == [0, 2, 2, 3]
    kept = made.where(np.array([True, False, True]))
    assert (list(kept.texts), kept.bounds.tolist()) == (["a", "b"], [0, 1, 1, 2])
