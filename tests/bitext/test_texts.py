"""Texts of one language: every verb reads them alike, and says what was left out."""

from __future__ import annotations

import pytest

import xswe
from xswe.alignment.sentences import read_side
from xswe.bitext.source import Source
from xswe.bitext.texts import TextSource
from xswe.corpus.bitext import CorpusConfig
from xswe.corpus.monolingual import describe_sentences, load_sentences, sentence_files
from xswe.errors import ConfigError, InputError
from xswe.io.lines import Skipped, read_lines
from xswe.serving.passages import Corpus, read_corpora

pytest.importorskip("sentencex")
MENU = "".join(f'<li><a href="{n}">part {n}</a></li>' for n in range(4))
PAGE = f"<html><body><nav>{MENU}</nav><p>The train is late. A cat sleeps.</p><p>We buy bread.</p></body></html>"
SENTENCES = ["The train is late.", "A cat sleeps.", "We buy bread."]
LEFT_OUT = {"paragraphs of navigation and footers": 4}


@pytest.fixture(scope="module")
def mini():
    return xswe.load("mini")


@pytest.fixture
def page(tmp_path):
    path = tmp_path / "manual.en.html"
    path.write_text(PAGE, "utf-8")
    return path


def test_lines_are_the_file_and_all_else_is_written_once(tmp_path, page):
    plain = tmp_path / "a.txt"
    plain.write_bytes(b"one\n\xff\nthree\n")
    left_out = Skipped()
    assert TextSource(str(plain)).lines(tmp_path, left_out) == str(plain)
    kept = TextSource(str(plain), on_error="skip")
    assert list(kept) == ["one", "", "three"]
    for _ in range(2):  # the second time it is there
        (lines, left_out) = kept.lines(tmp_path, found := Skipped()), found
        assert [text for _, text in read_lines(lines)] == ["one", "", "three"]
        assert left_out.counts == {"not UTF-8": 1}
    cut = TextSource(str(page), "en").lines(tmp_path, left_out := Skipped())
    assert [text for _, text in read_lines(cut)] == SENTENCES
    assert left_out.counts == LEFT_OUT
    with pytest.raises(ConfigError, match=r"manual\.en\.html is cut into sentences by its language, which is not known"):
        list(TextSource(str(page)))
    with pytest.raises(InputError, match=r"a \.tmx file has no text line by line"):
        list(TextSource(str(tmp_path / "a.tmx")))


def test_a_side_of_bitexts_is_read(tmp_path):
    for name in ("a.tsv", "b.tsv"):
        (tmp_path / name).write_bytes(f"{name} cat\tKatze\n\n".encode() + b"\xff\tx\nlast\t\n")
    bitexts = tuple(Source((str(tmp_path / name),)) for name in ("a.tsv", "b.tsv"))
    for side, expected in ((0, ["a.tsv cat", "", "last", "b.tsv cat", "", "last"]), (1, ["Katze", "", ""] * 2)):
        texts, left_out = TextSource(str(tmp_path / "a.tsv"), "en", on_error="skip", bitexts=bitexts, side=side), Skipped()
        assert list(texts.read(left_out)) == expected
        assert left_out.counts == {"not UTF-8": 2}
        assert (texts.sources, texts.is_cut) == (bitexts, False)
        lines = texts.lines(tmp_path, left_out := Skipped())
        in_place = [*expected[:2], "", *expected[2:5], "", *expected[5:]]
        assert [text for _, text in read_lines(lines)] == list(texts) == in_place
    assert TextSource(str(tmp_path / "a.tsv")).sources == bitexts[:1]
    names = (("a.txt", None, False), ("a.txt", True, True), ("a.md", None, True), ("a.md", False, False))
    assert [TextSource(name, split=split).is_cut for name, split, _ in names] == [cut for *_, cut in names]


def test_documents_of_a_storage_are_cut_like_those_here(page):
    fsspec = pytest.importorskip("fsspec")
    with fsspec.open("memory://texts/manual.en.html", "wb") as stream:
        stream.write(page.read_bytes())
    for name in (str(page), "memory://texts/manual.en.html"):
        assert list(TextSource(name, "en")) == SENTENCES
        assert list(read_side(name, "en", None)[0]) == SENTENCES
    with pytest.raises(InputError, match=r"memory://texts/none\.html"):
        list(TextSource("memory://texts/none.html", "en"))


def test_documents_are_trained_on_and_served_by_their_sentences(page, caplog):
    config = CorpusConfig(paths=[str(page)])
    found = sentence_files(config, "en")
    sentences, report = load_sentences(config, "en", found)
    assert list(sentences.source) == SENTENCES
    assert report["dropped"] == LEFT_OUT
    assert any("split" in one for one in describe_sentences(config, "en", found) if isinstance(one, dict))
    with caplog.at_level("INFO"):
        assert list(read_corpora([Corpus.of(str(page))], ["en"])["en"].texts) == SENTENCES
    assert "manual.en.html; left out: 4 paragraphs of navigation and footers" in caplog.text


def test_summaries_say_what_was_left_out(mini, page, tmp_path):
    told = "; left out: 4 paragraphs of navigation and footers"
    assert str(xswe.encode_file(mini, page, tmp_path / "a.npy", language="en")).endswith(told)
    assert told in str(xswe.mine(mini, page, page, languages=("en", "en"), threshold=None).report)
    made = xswe.search_phrases(mini, "train", page, tmp_path / "hits.tsv", languages=("de", "en"))
    assert str(made).endswith(told)
    aligned = xswe.align(mini, page, page, languages=("en", "de"))
    left_out = "; left out: 8 paragraphs of navigation and footers"
    assert aligned.summary().endswith(f"{left_out}; near-duplicates of earlier beads: none")


def test_summaries_say_which_records_have_no_texts(mini, tmp_path):
    (tmp_path / "a.tsv").write_bytes(b"A cat sleeps.\tEine Katze schl\xe4ft.\nWe buy bread.\nThe train\tDer Zug\n")
    how = {"languages": ("en", "de"), "on_error": "skip"}
    told = "; left out: 1 not UTF-8, 1 too few columns"
    linked = xswe.link(mini, tmp_path / "a.tsv", tmp_path / "links.txt", **how).summary()
    assert linked.endswith(f"{told}; near-duplicates of earlier pairs: none")
    for score in ("cosine", "ratio"):
        scored = xswe.score_file(mini, tmp_path / "a.tsv", tmp_path / "scored.tsv", score=score, **how)
        assert scored.left_out == {"not UTF-8": 1, "too few columns": 1}
        assert told in str(scored)


@pytest.mark.parametrize("name", ["a.csv", "a.tmx", "a.jsonl"])
def test_an_index_reads_no_markup_as_texts(mini, tmp_path, name):
    (tmp_path / name).write_text("a,b\n", "utf-8")
    with pytest.raises(InputError, match="has no text line by line"):
        xswe.index(mini, tmp_path / name)
    with pytest.raises(InputError, match="has no text line by line"):
        xswe.index(mini, ["A cat sleeps."]).add(tmp_path / name)
