"""Names of documents: which belong together, and what their beads' files are called."""

from __future__ import annotations

import pytest

from xswe.alignment import documents as module
from xswe.alignment.documents import _documents, _key, _listed, _outputs
from xswe.errors import InputError
from xswe.text.languages import LANGUAGES, Language


@pytest.mark.parametrize(
    ("name", "rough", "fine"),
    [
        ("a/news.en.txt", "a/news", "a/news"),
        ("a/news_de.html", "a/news", "a/news"),
        ("NEWS-JA.TXT", "news", "news"),
        ("en.news.txt", "en", "news"),
        ("en_news.txt", "news", "news"),
        ("news.deu.txt", "news", "news"),
        ("news.ger.txt.gz", "news", "news"),
        ("news.chi.txt", "news", "news"),
        ("news.zho.txt", "news", "news"),
        ("news.v1.en.txt", "news", "news.v1"),
        ("news.v1.txt", "news", "news.v1"),
        ("token.txt", "token", "token"),
        ("news.fr.txt", "news", "news.fr"),
        ("1.2.txt", "1.2", "1.2"),
    ],
)
def test_a_name_without_its_language_and_suffixes(name, rough, fine):
    assert (_key(name), _key(name, True)) == (rough, fine)


def test_a_language_that_is_added_is_known_in_names(monkeypatch):
    monkeypatch.setitem(LANGUAGES, "ko", Language("ko", "Korean", "hangul", "kor", "kor-Hang"))
    assert [_key(name, True) for name in ("news.ko.txt", "news_kor.txt")] == ["news", "news"]


def test_each_output_has_the_shortest_name_that_tells_it_apart():
    def outputs(*pairs):
        return _outputs([(None, source, target) for source, target in pairs], ".tsv")

    assert outputs(("a.en.txt", "a.de.txt"), ("b/c.en.txt", "c.txt")) == ["a.tsv", "b/c.tsv"]
    assert outputs(("a.v1.en.txt", "x"), ("a.v2.en.txt", "y")) == ["a.v1.tsv", "a.v2.tsv"]
    assert outputs(("a.en.txt", "x"), ("a.en.html", "y")) == ["a.en.txt.tsv", "a.en.html.tsv"]
    assert outputs(("a.txt", "x/1"), ("a.txt", "x/2")) == ["a.txt-x-1.tsv", "a.txt-x-2.tsv"]
    assert outputs(("a.txt", "x"), ("a.txt", "x")) == ["a.txt-x.tsv", "a.txt-x_.tsv"]
    assert len(set(outputs(("documents.txt", "x"), ("b.txt", "y"), ("documents.en.txt", "z")))) == 3


def test_no_output_takes_the_name_of_the_table():
    stem, _, suffix = module._TABLE.rpartition(".")
    ((name,)) = _outputs([(None, f"{stem}.txt", "x")], suffix)
    assert name != module._TABLE


def test_documents_are_found_in_folders_but_for_hidden_ones(tmp_path):
    for name in ("b.txt", "a/c.txt", ".hidden", "a/.git/x", ".x/y.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert _documents(tmp_path) == ["a/c.txt", "b.txt"]
    with pytest.raises(InputError, match="no folder"):
        _documents(tmp_path / "b.txt")


def test_a_list_names_documents_within_the_folders(tmp_path):
    folders = tmp_path / "en", tmp_path / "de"
    for folder in folders:
        (folder / "x").mkdir(parents=True)
        (folder / "x" / "a.txt").touch()
    manifest = tmp_path / "pairs.tsv"
    manifest.write_text("x/a.txt\tx/a.txt\t0.9\n\n  \nx/a.txt\tx/a.txt\n")
    assert list(_listed(manifest, folders)) == [(None, "x/a.txt", "x/a.txt")] * 2
    for line, said in (
        ("x/a.txt", "no two names"),
        ("x/a.txt\tx/b.txt", "no x/b.txt in .*de"),
        ("../en/x/a.txt\tx/a.txt", "there is no .* in .*en"),
        (f"{folders[0]}/x/a.txt\tx/a.txt", "there is no"),
        ("x\tx/a.txt", "there is no x in"),
    ):
        manifest.write_text(f"\n{line}\n")
        with pytest.raises(InputError, match=rf"pairs\.tsv:2: .*{said}"):
            list(_listed(manifest, folders))
