"""Corpus cards as entries of ``corpus.paths``: several in one run, and beside files of one's own."""

from __future__ import annotations

import gzip

import pytest

from tests.bitext.test_blocks import moses_zip
from tests.corpus.loading import load_bitext
from xswe.corpus.bitext import CorpusConfig, corpus_files, describe
from xswe.corpus.convert import convert, converted_folder, prepare
from xswe.errors import ConfigError

EN_JA = ("en", "ja")


@pytest.fixture
def cache(tmp_path):
    """A cache that holds two corpora of English and Japanese, with scores on two scales."""
    folder = tmp_path / "cache" / "downloads"
    (folder / "ccmatrix").mkdir(parents=True)
    (folder / "wikimatrix").mkdir()
    moses_zip(folder / "ccmatrix" / "en-ja.txt.zip", source="a\nb\n", target="あ\nい\n", scores="1.3\n1.1\n")
    for language in ("ja", "de"):
        name = "-".join(sorted(("en", language)))
        rows = {"ja": "1.2\tw\tう\n0.9\tx\tえ\n", "de": "1.2\tHallo\tHello\n"}[language]
        (folder / "wikimatrix" / f"WikiMatrix.{name}.tsv.gz").write_bytes(gzip.compress(rows.encode()))
    return tmp_path / "cache"


def config(cache, paths, **settings):
    return CorpusConfig(paths=paths, cache=str(cache), offline=True, **settings)


def pairs(made, pair=EN_JA):
    bitext, report = load_bitext(corpus_files(made, [pair])[pair], pair, made)
    return list(zip(bitext.source, bitext.target, strict=True)), report


def test_two_cards_and_a_file_in_one_run(cache, tmp_path):
    (tmp_path / "own.tsv").write_text("mine\tわたし\n", encoding="utf-8")
    paths = [{"card": "ccmatrix"}, {"card": "wikimatrix", "version": 1}, str(tmp_path / "own.tsv")]
    found, report = pairs(config(cache, paths))
    assert found == [("a", "あ"), ("b", "い"), ("w", "う"), ("x", "え"), ("mine", "わたし")]
    assert len(report.checksums) == 3


def test_each_card_may_have_its_own_least_score(cache):
    paths = [{"card": "ccmatrix", "min_score": 1.2}, {"card": "wikimatrix"}]
    assert pairs(config(cache, paths))[0] == [("a", "あ"), ("w", "う"), ("x", "え")]
    assert pairs(config(cache, paths, min_score=1.0))[0] == [("a", "あ"), ("w", "う")]
    with pytest.raises(ConfigError, match="min_score='high' must be a number"):
        pairs(config(cache, [{"card": "ccmatrix", "min_score": "high"}]))


def test_cards_serve_every_pair_and_a_mapping_tells_them_apart(cache):
    both = corpus_files(config(cache, [{"card": "wikimatrix"}]), [("en", "de"), EN_JA])
    assert [file.columns for pair in both for file in both[pair]] == [(2, 1), (1, 2)]
    mapping = {"en-de": [{"card": "wikimatrix"}], "en-ja": [{"card": "wikimatrix"}, {"card": "ccmatrix"}]}
    found = corpus_files(config(cache, mapping), [("en", "de"), EN_JA])
    assert [len(files) for files in found.values()] == [1, 2]
    with pytest.raises(ConfigError, match="jparacrawl 3 has no en-de"):
        corpus_files(config(cache, [{"card": "jparacrawl"}]), [("en", "de"), EN_JA])


def test_only_cards_are_converted_in_the_cache(cache, tmp_path):
    own = tmp_path / "run"
    for paths, place, name in (
        ([{"card": "ccmatrix"}], cache / "converted", "ccmatrix.en-ja-"),
        ([{"card": "ccmatrix"}, {"card": "wikimatrix"}], cache / "converted", "ccmatrix+wikimatrix.en-ja-"),
        ([{"card": "ccmatrix"}, str(tmp_path / "own.tsv")], own, "text.en-ja-"),
    ):
        (tmp_path / "own.tsv").write_text("mine\tわたし\n", encoding="utf-8")
        made = config(cache, paths)
        files = corpus_files(made, [EN_JA])[EN_JA]
        folder = converted_folder(files, EN_JA, made, own)
        assert folder.parent == place
        assert folder.name.startswith(name)
        assert len(convert(files, EN_JA, made, folder)[0]) >= 2


def test_a_card_says_what_its_files_say(cache):
    """The content of a run with a card alone does not depend on how the card was named."""
    (file,) = corpus_files(config(cache, [{"card": "ccmatrix"}]), [EN_JA])[EN_JA]
    (same,) = corpus_files(config(cache, {"en-ja": [{"card": "ccmatrix", "version": "1"}]}), [EN_JA])[EN_JA]
    assert describe(config(cache, ()), [file]) == describe(config(cache, ()), [same])


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"card": "ccmatrx"}, "the cards are"),
        ({"card": "ccmatrix", "version": 9}, "has no version '9'; it has 1, original, hub"),
        ({"card": "ccmatrix", "columns": [1, 2]}, "'columns' is no setting of a corpus card"),
    ],
)
def test_mistakes(cache, entry, message):
    with pytest.raises(ConfigError, match=message):
        corpus_files(config(cache, [entry]), [EN_JA])


def test_what_is_said_of_a_limited_corpus_is_what_is_kept_of_it(cache, tmp_path, caplog):
    rows = "".join(f"text {i}\t文{i}\n" for i in range(100))
    (tmp_path / "own.tsv").write_text(rows, encoding="utf-8")
    made = config(cache, [str(tmp_path / "own.tsv")], limit=40, held_out=0.1, development=0.1)
    files = corpus_files(made, [EN_JA])[EN_JA]
    caplog.set_level("INFO", "xswe")
    _, sizes = prepare(files, EN_JA, made, 0, tmp_path, tmp_path / "own")
    assert "100 pairs read, 100 kept, of which corpus.limit draws 40; dropped: none" in caplog.text
    assert "en-ja: 32 train, 4 development, 4 held out" in caplog.text
    assert sizes == {"train": 32, "development": 4, "held_out": 4}
    caplog.clear()
    prepare(files, EN_JA, made, 0, tmp_path, tmp_path / "own")  # converted already: what is used is said again
    assert "32 train" in caplog.text
