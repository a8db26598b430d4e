"""What an entry of a corpus stands for: files, sides of a Moses pair, members of archives, columns, negatives."""

from __future__ import annotations

import zipfile

import pytest

from xswe.bitext.formats import HubSet
from xswe.bitext.source import Source, check_columns, files_of, find_pairs, least_score
from xswe.errors import ConfigError, InputError


def paths_of(*given, languages=("en", "de"), **more):
    return [tuple(path.rsplit("/", 1)[-1] for path in one.paths) for one in find_pairs(list(given), languages, **more)]


def test_a_side_of_a_moses_pair_brings_the_other(tmp_path):
    for name in ("a.en", "a.de", "b.de.gz", "b.en", "c.en", "d.fr", "e.tsv"):
        (tmp_path / name).touch()
    pair = [("a.en", "a.de")]
    assert (
        paths_of(tmp_path / "a.en") == paths_of(tmp_path / "a.de") == paths_of(tmp_path / "a.en", tmp_path / "a.de") == pair
    )
    assert paths_of(tmp_path / "a.en", languages=("de", "en")) == [("a.de", "a.en")]
    assert paths_of(tmp_path / "b.de.gz") == paths_of(tmp_path / "b.en") == [("b.en", "b.de.gz")]
    assert paths_of(tmp_path / "d.fr") == [("d.fr",)]  # of another language it is no side
    assert paths_of(tmp_path / "a.en", languages=("en", "en")) == [("a.en",)]
    with pytest.raises(ConfigError, match=r"c\.en: the other side, c\.de, is not beside it"):
        paths_of(tmp_path / "c.en")
    assert paths_of({"path": str(tmp_path / "e.tsv")}, tmp_path / "e.tsv") == [("e.tsv",)]  # once


def test_files_are_those_of_a_folder_or_a_pattern(tmp_path):
    for name in ("b.tsv", "a.tsv", ".hidden", "x[1].tsv"):
        (tmp_path / name).touch()
    (tmp_path / "folder").mkdir()
    assert [path.name for path in files_of(tmp_path)] == ["a.tsv", "b.tsv", "x[1].tsv"]
    assert [path.name for path in files_of(tmp_path / "?.tsv")] == ["a.tsv", "b.tsv"]
    (tmp_path / "folder" / "c.tsv").touch()
    assert [path.name for path in files_of(tmp_path / "**" / "?.tsv")] == ["a.tsv", "b.tsv", "c.tsv"]
    (tmp_path / "folder" / "c.tsv").unlink()
    assert [path.name for path in files_of(tmp_path / "x[1].tsv")] == ["x[1].tsv"]  # a name, if there is one
    assert files_of(tmp_path / "none.tsv") == [tmp_path / "none.tsv"]  # which is missed when it is read
    for nothing in (tmp_path / "folder", tmp_path / "*.csv"):
        with pytest.raises(InputError, match="no file there"):
            files_of(nothing)
    with pytest.raises(InputError, match="not on this machine"):
        files_of("https://example.com/a.tsv")


def test_columns_are_two_and_more_numbers():
    assert check_columns([1, 0], "c") == (1, 0)
    assert check_columns((0, 2, 3), "c") == (0, 2, 3)
    for wrong in ([0], [0, -1], [0, True], [0, "1"], 3, "ab", None):
        with pytest.raises(ConfigError, match=r"c=.*: name two columns counted from 0"):
            check_columns(wrong, "c")


@pytest.mark.parametrize(
    ("names", "languages", "found"),
    [
        (["a.en", "a.de", "README"], ("en", "de"), ["a.en", "a.de"]),
        (["a.en", "a.de"], ("de", "en"), ["a.de", "a.en"]),
        (["a.en", "a.de", "b.de", "c.tsv"], ("en", "de"), ["c.tsv"]),
        (["a.txt", "readme.txt", "b.tmx"], ("en", "de"), ["a.txt"]),
        (["a.xml", "b.tmx"], ("en", "de"), ["b.tmx"]),
    ],
)
def test_the_members_of_an_archive_are_a_pair_or_the_one_file_of_pairs(tmp_path, names, languages, found):
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        for name in names:
            archive.writestr(name, "x\ty\n")
    (source,) = find_pairs([str(tmp_path / "a.zip")], languages)
    assert [path.partition("!")[2] for path in source.paths] == found


def test_negatives_are_read_of_more_columns_and_of_tables_of_one_language():
    assert Source(("a.tsv",), (0, 1, 2)).with_negatives
    assert not Source(("a.tsv",), (0, 1), ("en", "de")).with_negatives
    assert Source(("a.csv",), (0, 1), ("en", "en")).with_negatives
    assert not Source(("a.csv",), (0, 1), ("en", "de")).with_negatives
    assert not Source(("a.csv",), (0, 1), ("en",)).with_negatives
    assert not Source(("a.csv",), ("a", "b"), ("en", "en")).with_negatives
    assert not Source(("a.tsv",), (0, 1), ("en", "en")).with_negatives
    assert Source(("a.csv",), ("a", "b", "c"), ("en", "en")).with_negatives


def test_two_files_are_the_sides_of_one_bitext():
    assert (Source(("a.tsv", "b.tsv")).kind, Source(("a.tsv",)).kind) == ("moses", "tsv")


def test_what_is_read_is_told_by_kind_columns_and_score():
    assert Source(("a.tsv",), (2, 1)).layout == ["tsv", (2, 1), (), None, None]
    assert Source(("a.zip!b.tsv",), (0, 1), score=3, min_score=0.5).layout[2:] == [("b.tsv",), 3, None, 0.5]
    assert Source(("a.csv",), ("x", "y")).layout == ["csv", (0, 1), (), None, ("x", "y")]
    assert Source(("a.tsv",), (0, 1, 4, 5)).layout[-1] == {"negatives": (4, 5)}
    assert Source(("a.tsv",), (0, 1, 4)).layout == ["tsv", (0, 1), (), None, None, {"negatives": (4,)}]
    hub = Source((), ("x", "y"), hub=HubSet("owner/set", split="test"))
    assert hub.layout == ["hub", (0, 1), (), None, ("x", "y")]
    assert hub.name == "owner/set/test"


def test_two_columns_are_named_in_the_way_of_the_format():
    for columns in ((0,), (), (0, -1), (0, True), (0, 1.0)):
        with pytest.raises(ConfigError, match=r"columns=\[.*\]: name two columns, the source's first, counted from 0"):
            Source(("a.tsv",), columns)
    with pytest.raises(ConfigError, match=r"columns=\['en', 'de'\]: columns of tab-separated text are counted from 0"):
        Source(("a.tsv",), ("en", "de"))
    for name in ("a.tsv", "a.csv"):  # records have no negatives
        for read in (lambda source: list(source.read()), lambda source: list(source.blocks())):
            with pytest.raises(ConfigError, match=r"columns=\[0, 1, 2\]: name two columns, the source's first$"):
                read(Source((name,), (0, 1, 2)))


def test_negatives_are_columns_of_text_alone_unless_fields_are_named(tmp_path):
    for name in ("a.tsv", "a.csv", "b.en", "b.de"):
        (tmp_path / name).touch()

    def columns(name, **more):
        (found,) = find_pairs([{"path": tmp_path / name, **more}], ("en", "de"), (0, 1, 2))
        return found.columns

    assert [columns(name) for name in ("a.tsv", "a.csv", "b.en")] == [(0, 1, 2), (0, 1), (0, 1)]
    assert columns("a.csv", fields=["a", "b", "c"]) == ("a", "b", "c")
    assert columns("a.tsv", columns=[3, 4, 5]) == (3, 4, 5)
    entry = {"hub": "owner/set", "config": "en-de", "revision": "abc", "streaming": False}
    (found,) = find_pairs([entry], ("en", "de"))
    assert (found.columns, found.paths, str(found.hub)) == ((0, 1), (), "owner/set/en-de/train")
    assert found.hub == HubSet("owner/set", "en-de", "train", "abc", False)
    (found,) = find_pairs([{"hub": "owner/set", "fields": ["a", "b"]}], ("en", "de"))
    assert (found.columns, found.hub) == (("a", "b"), HubSet("owner/set"))


def test_the_least_score_of_an_entry_is_a_number():
    assert [least_score({"min_score": one}) for one in (None, 0, 1, 0.5)] == [None, 0.0, 1.0, 0.5]
    assert least_score({}) is None
    for wrong in (True, "0.5", [0.5]):
        with pytest.raises(ConfigError, match=r"corpus\.paths: min_score=.* must be a number$"):
            least_score({"min_score": wrong})
