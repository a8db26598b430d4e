from __future__ import annotations

import gzip

import numpy as np
import pytest

from xswe.corpus import monolingual
from xswe.corpus.bitext import CorpusConfig, corpus_files
from xswe.corpus.cleaning import CleanConfig
from xswe.corpus.monolingual import Sentences, describe_sentences, load_sentences, sentence_files, split_parts
from xswe.errors import ConfigError, InputError


def read(paths, language="en", **settings):
    config = CorpusConfig(paths=paths, **settings)
    return load_sentences(config, language, sentence_files(config, language))


def test_plain_text_distinct_and_stripped(tmp_path):
    (tmp_path / "a.txt").write_text("one\n\n two \none\n" + "x" * 50 + "\n", encoding="utf-8")
    with gzip.open(tmp_path / "b.txt.gz", "wt", encoding="utf-8") as stream:
        stream.write("two\nthree\n")
    sentences, report = read([str(tmp_path / "a.txt"), str(tmp_path / "b.txt.gz")], max_characters=20)
    assert list(sentences.source) == ["one", "two", "three"]
    assert (report["read"], report["kept"]) == (7, 3)
    assert report["dropped"] == {"blank": 1, "duplicate": 2, "too long": 1}
    assert set(report["checksums"]) == {str(tmp_path / "a.txt"), str(tmp_path / "b.txt.gz")}


def test_one_side_of_every_bitext_that_has_the_language(tmp_path):
    (tmp_path / "en-de.tsv").write_text("cat\tKatze\ndog\tHund\n", encoding="utf-8")
    (tmp_path / "ja-en.tsv").write_text("猫\tcat\n鳥\tbird\n", encoding="utf-8")
    (tmp_path / "en.txt").write_text("fish\n", encoding="utf-8")
    paths = {name.rsplit(".", 1)[0]: [str(tmp_path / name)] for name in ("en-de.tsv", "ja-en.tsv", "en.txt")}
    assert list(read(paths)[0].source) == ["cat", "dog", "bird", "fish"]
    assert list(read(paths, "ja")[0].source) == ["猫", "鳥"]
    with pytest.raises(ConfigError, match="no entry has the language zh"):
        read(paths, "zh")


def test_bitexts_of_other_languages_are_other_sentences(tmp_path):
    (tmp_path / "m.tmx").write_text("<tmx/>", encoding="utf-8")
    configs = [CorpusConfig(paths={pair: [str(tmp_path / "m.tmx")]}) for pair in ("en-ja", "en-de")]
    first, second = (describe_sentences(config, "en", sentence_files(config, "en")) for config in configs)
    assert first != second


@pytest.mark.parametrize(
    ("name", "content"),
    [("ej.tsv", "cat\t猫\n\n \ndog\t犬\n"), ("m.tmx", "<tmx/>"), ("m.tmx.gz", ""), ("p.jsonl", "{}"), ("a.zip", "")],
)
def test_a_bitext_is_no_plain_text(tmp_path, name, content):
    (tmp_path / name).write_text(content, encoding="utf-8")
    for paths in ([str(tmp_path / name)], {"ja": [str(tmp_path)]}):
        with pytest.raises(InputError, match=rf"{name}: a bitext .*corpus\.paths={{ja-en:\[{name}\]}}"):
            read(paths, "ja")


def test_a_tab_here_and_there_makes_no_bitext(tmp_path):
    (tmp_path / "a.en").write_text("one\ttab\nnone\n", encoding="utf-8")
    assert list(read([str(tmp_path / "a.en")])[0].source) == ["one\ttab", "none"]


def test_the_parts_are_disjoint_and_make_up_the_whole(tmp_path):
    (tmp_path / "a.txt").write_text("".join(f"sentence {i}\n" for i in range(100)), encoding="utf-8")
    config = CorpusConfig(paths=[str(tmp_path / "a.txt")], held_out=0.2, development=0.3, max_development=10)
    sentences, _ = load_sentences(config, "en", sentence_files(config, "en"))
    parts = split_parts(sentences, config, seed=1)
    assert {name: len(part) for name, part in parts.items()} == {"held_out": 20, "development": 10, "train": 70}
    assert sorted(t for part in parts.values() for t in part.source) == sorted(sentences.source)
    assert list(split_parts(sentences, config, seed=2)["held_out"].source) != list(parts["held_out"].source)
    parts["train"].save(tmp_path / "saved")
    assert list(Sentences.open(tmp_path / "saved", ("en",)).source) == list(parts["train"].source)


def test_evaluation_texts_are_dropped(tmp_path):
    (tmp_path / "a.txt").write_text("A cat sleeps.\nA dog runs.\na cat  sleeps\n", encoding="utf-8")
    (tmp_path / "sts.tsv").write_text("5.0\tA cat sleeps.\tA fish.\n", encoding="utf-8")
    sentences, report = read([str(tmp_path / "a.txt")], decontaminate=(str(tmp_path / "sts.tsv"),))
    assert list(sentences.source) == ["A dog runs."]
    assert report["dropped"] == {"evaluation text": 1, "evaluation text, normalised": 1}


def test_running_text_is_cut_into_sentences(tmp_path):
    pytest.importorskip("sentencex")
    paragraphs = [
        "Dr. Smith sleeps. He snores.",
        "",
        "He snores. It is 5 p.m. now!",
        *(f"One {i}. Two {i}." for i in range(3000)),
    ]
    (tmp_path / "a.txt").write_text("\n".join(paragraphs), encoding="utf-8")
    config = CorpusConfig(paths=[str(tmp_path / "a.txt")], split=True)
    found = sentence_files(config, "en")
    sentences, report = load_sentences(config, "en", found)
    assert list(sentences.source)[:5] == ["Dr. Smith sleeps.", "He snores.", "It is 5 p.m. now!", "One 0.", "Two 0."]
    assert (report["read"], report["kept"], report["dropped"]) == (6004, 6003, {"duplicate": 1})
    assert list(load_sentences(config, "en", found, threads=3)[0].source) == list(sentences.source)
    whole = CorpusConfig(paths=config.paths)
    assert describe_sentences(config, "en", found) != describe_sentences(whole, "en", found)
    assert next(iter(load_sentences(whole, "en", found)[0].source)) == paragraphs[0]


def test_sides_of_bitexts_are_not_cut_and_pairs_cannot_be(tmp_path):
    pytest.importorskip("sentencex")
    (tmp_path / "en-ja.tsv").write_text("One. Two.\t一。二。\n", encoding="utf-8")
    paths = {"en-ja": [str(tmp_path / "en-ja.tsv")]}
    assert list(read(paths, split=True)[0].source) == ["One. Two."]
    with pytest.raises(ConfigError, match=r"corpus\.split"):
        corpus_files(CorpusConfig(paths=paths, split=True), [("en", "ja")])


def test_mistakes(tmp_path):
    with pytest.raises(ConfigError, match="for translations"):
        read([str(tmp_path / "a.txt")], min_score=1.0)
    with pytest.raises(ConfigError, match="has no en"):
        read([{"card": "ccmatrix"}])
    with pytest.raises(ConfigError, match="no files"):
        read([])
    with pytest.raises(InputError, match=r"none\.txt"):
        read([str(tmp_path / "none.txt")])
    with pytest.raises(ConfigError, match="name the pair"):
        read([{"path": "a.tsv", "columns": [0, 1]}])


@pytest.mark.parametrize(("tabs", "plain", "refused"), [(10, 1, True), (9, 1, False), (9, 0, True), (11, 5, True)])
def test_ten_lines_with_tabs_make_a_bitext(tmp_path, tabs, plain, refused):
    (tmp_path / "a.txt").write_text("\n" + "a\tb\n" * tabs + "c\n" * plain, encoding="utf-8")
    if not refused:
        assert len(read([str(tmp_path / "a.txt")])[0]) == 2
        return
    with pytest.raises(InputError) as caught:
        read([str(tmp_path / "a.txt")])
    assert str(caught.value) == (
        f"{tmp_path / 'a.txt'}: a bitext (tsv), where plain text of one language is read; name its languages, and one side "
        "of it is taken, as in corpus.paths={en-ja:[a.txt]}"
    )


def test_lines_are_counted_at_the_limits(tmp_path, caplog):
    caplog.set_level("INFO")
    (tmp_path / "a.txt").write_bytes(b"12345\n123456\n\xff\n12345\n\n" + "äöüßé\n".encode())
    sentences, report = read([str(tmp_path / "a.txt")], max_characters=5, on_error="skip", limit=1)
    assert list(sentences.source) == ["12345", "äöüßé"]
    dropped = {"too long": 1, "duplicate": 1, "blank": 1, "not UTF-8": 1}
    assert (report["read"], report["kept"], report["dropped"]) == (5, 2, dropped)
    reasons = "1 blank, 1 duplicate, 1 not UTF-8, 1 too long"
    said = f"en: 5 sentences read, 2 kept, of which corpus.limit draws 1; dropped: {reasons}"
    assert said in caplog.messages


@pytest.mark.parametrize("block", [1, 2, 5, 6])
def test_languages_are_detected_block_by_block(tmp_path, monkeypatch, block):
    asked = []

    def other(texts, language, threads):
        asked.append((len(texts), language, threads))
        return np.array(["x" in text for text in texts], bool)

    monkeypatch.setattr(monolingual, "_CLEANED_AT_A_TIME", block)
    monkeypatch.setattr(monolingual, "in_other_language", other)
    (tmp_path / "a.txt").write_text("ax\nb\ncx\nd\ne\n", encoding="utf-8")
    config = CorpusConfig(paths=[str(tmp_path / "a.txt")], clean=CleanConfig(language="lingua"))
    sentences, report = load_sentences(config, "en", sentence_files(config, "en"), threads=3)
    assert list(sentences.source) == ["b", "d", "e"]
    assert (report["kept"], report["dropped"]) == (3, {"other language": 2})
    assert asked == [(min(block, 5 - start), "en", 3) for start in range(0, 5, block)]
    (tmp_path / "a.txt").write_text("b\n", encoding="utf-8")
    assert load_sentences(config, "en", sentence_files(config, "en"))[1]["dropped"] == {}
