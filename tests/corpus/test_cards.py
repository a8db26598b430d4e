"""The corpus cards: whole, consistent with the configuration, and laid out as the files are."""

from __future__ import annotations

import io
import tarfile

import pytest

from tests.bitext.test_blocks import fast, moses_zip
from xswe.corpus.cards import cache_folder, cards, corpus_sources, find_card
from xswe.errors import ConfigError, InputError


def test_every_card_is_whole():
    assert set(cards()) >= {"ccmatrix", "jparacrawl", "tatoeba", "wikimatrix", "nllb", "cc100", "wikipedia", "local"}
    for name, card in cards().items():
        assert card.name == name
        for release in card.versions:
            assert release.urls or release.repo
            assert bool(release.pairs) == (card.kind == "bitext")
            for languages in [pair.split("-") for pair in release.pairs] or [[code] for code in release.languages]:
                for pattern in (*release.urls, *release.files, *release.members.values(), release.config):
                    pattern.format(**release.names(languages))


@pytest.mark.parametrize(
    ("name", "pair", "version", "url"),
    [
        ("ccmatrix", ("en", "de"), "", "https://object.pouta.csc.fi/OPUS-CCMatrix/v1/moses/de-en.txt.zip"),
        ("tatoeba", ("en", "zh"), "", "https://object.pouta.csc.fi/OPUS-Tatoeba/v2023-04-12/moses/cmn-en.txt.zip"),
        ("ccmatrix", ("zh", "ja"), "1", "https://object.pouta.csc.fi/OPUS-CCMatrix/v1/moses/ja-zh.txt.zip"),
        ("jparacrawl", ("en", "ja"), "2", "https://www.kecl.ntt.co.jp/icl/lirg/jparacrawl/release/2.0/bitext/en-ja.tar.gz"),
        ("cc100", ("zh",), "", "https://data.statmt.org/cc-100/zh-Hans.txt.xz"),
    ],
)
def test_addresses(name, pair, version, url):
    release = find_card(name).release_for(pair, version)
    assert release.urls[0].format(**release.names(pair)) == url


def put(tmp_path, name, file):
    folder = tmp_path / "downloads" / name
    folder.mkdir(parents=True, exist_ok=True)
    return folder / file


def test_a_moses_zip_in_the_cache_in_both_directions(tmp_path):
    moses_zip(put(tmp_path, "ccmatrix", "en-ja.txt.zip"))
    for pair, first in ((("en", "ja"), ("a", "あ")), (("ja", "en"), ("あ", "a"))):
        (file,) = corpus_sources("ccmatrix", "", pair, str(tmp_path), True)
        assert fast(file)[0][0] == first
        assert file.score == "*.scores"


@pytest.mark.parametrize(("version", "row"), [("3", "u\tu\t0.8\tHi\tやあ\n"), ("2", "u\t0.8\tHi\tやあ\n")])
def test_the_columns_of_both_releases_of_jparacrawl(tmp_path, version, row):
    text = row.encode()
    with tarfile.open(put(tmp_path, "jparacrawl", f"jparacrawl-{version}.en-ja.tar.gz"), "w:gz") as archive:
        info = tarfile.TarInfo("en-ja/en-ja.bicleaner05.txt")
        info.size = len(text)
        archive.addfile(info, io.BytesIO(text))
    for pair, found in ((("en", "ja"), ("Hi", "やあ")), (("ja", "en"), ("やあ", "Hi"))):
        (file,) = corpus_sources("jparacrawl", version, pair, str(tmp_path), True)
        assert fast(file)[0] == [found]


def test_wikimatrix_has_its_score_first(tmp_path):
    put(tmp_path, "wikimatrix", "WikiMatrix.de-en.tsv").with_suffix(".tsv").touch()
    import gzip

    put(tmp_path, "wikimatrix", "WikiMatrix.de-en.tsv.gz").write_bytes(gzip.compress(b"1.2\tHallo\tHello\n"))
    (file,) = corpus_sources("wikimatrix", "", ("en", "de"), str(tmp_path), True)
    assert fast(file)[0] == [("Hello", "Hallo")]


def test_the_hub_form_names_repository_and_fields():
    (file,) = corpus_sources("ccmatrix", "hub", ("en", "ja"), "", True)
    assert str(file.hub) == "sentence-transformers/parallel-sentences-ccmatrix/en-ja/train"
    assert file.columns == ("english", "non_english")
    (file,) = corpus_sources("ccmatrix", "hub", ("ja", "en"), "", True)
    assert file.columns == ("non_english", "english")


@pytest.mark.parametrize(
    ("name", "version", "pair", "message"),
    [
        ("ccmatrx", "", ("en", "ja"), "the cards are"),
        ("jparacrawl", "", ("en", "de"), "has no en-de; it has en-ja"),
        ("jparacrawl", "7", ("en", "ja"), "has no version '7'; it has 3, 2"),
        ("cc100", "", ("en", "ja"), "monolingual"),
        ("local", "", ("en", "ja"), r"corpus\.paths"),
    ],
)
def test_mistakes(name, version, pair, message):
    with pytest.raises(ConfigError, match=message):
        corpus_sources(name, version, pair, "", True)


def test_a_missing_download_says_what_to_fetch_where(tmp_path, monkeypatch):
    monkeypatch.setenv("XSWE_CACHE", str(tmp_path))
    assert cache_folder() == tmp_path
    with pytest.raises(InputError, match=rf"fetch https://object.*en-ja\.txt\.zip by hand, save it as {tmp_path}"):
        corpus_sources("ccmatrix", "", ("en", "ja"), "", True)


def test_licences_that_bind_models_say_so():
    assert "no commercial use" in find_card("jparacrawl").licence_note()["restrictions"]
    assert find_card("tatoeba").licence_note()["restrictions"] == []
