"""How hits and candidates are laid out, and which queries are read."""

from __future__ import annotations

from dataclasses import replace
from zipfile import ZipFile

import pytest

from xswe.alignment.link import LinkedBitext
from xswe.alignment.phrase_table import phrase_table
from xswe.alignment.phrases import (
    FoundInFiles,
    PhraseFiles,
    PhraseSearchConfig,
    _candidates,
    _units,
    hit_rows,
    read_queries,
    term_rows,
)
from xswe.alignment.term_check import TermCheck
from xswe.alignment.words import LinkedPair
from xswe.bitext.memories import Unit
from xswe.bitext.termbases import Candidate
from xswe.errors import ConfigError, InputError
from xswe.phrases.find import Hit, Place
from xswe.phrases.terms import Term

PASSAGES = ["The late train.", "A cat sleeps here."]
OTHER = {0: "Der späte Zug.", 1: "Eine Katze schläft hier."}


def place(passage, start, end):
    return Place(passage, start, end, PASSAGES[passage])


def test_a_hit_is_a_row_with_its_span_and_its_translation():
    hits = [Hit(0.876543, 1, 1, (place(1, 2, 5), place(0, 0, 3))), Hit(0.5, 1, 1, (place(0, 4, 8),))]
    rows = hit_rows(["Katze", "nichts"], [hits, []])
    assert list(rows.names) == ["phrase", "score", "line", "start", "end", "text", "sentence"]
    assert [tuple(row) for row in rows.rows] == [
        ("Katze", 0.8765, 2, 2, 5, "cat", PASSAGES[1]),
        ("Katze", 0.5, 1, 4, 8, "late", PASSAGES[0]),
    ]
    both = hit_rows(["Katze"], [hits], OTHER, {place(1, 2, 5): (5, 10)})
    assert [tuple(row)[7:] for row in both.rows] == [(5, 10, "Katze", OTHER[1]), (None, None, None, OTHER[0])]
    assert list(both.names)[7:] == ["other_start", "other_end", "other_text", "other_side"]


def test_a_candidate_is_a_row_with_as_many_examples_as_are_asked_for():
    terms = [Term("cat", 0.98765, 7, 5, ("cats", "Cat"), (place(1, 2, 5), place(0, 4, 8), place(0, 0, 3)))]
    rows = term_rows(["Katze", "nichts"], [terms, []], 2)
    assert list(rows.names)[:6] == ["term", "candidate", "score", "times", "passages", "variants"]
    assert list(rows.names)[6:] == ["line_1", "example_1", "line_2", "example_2"]
    assert [list(row) for row in rows.rows] == [
        ["Katze", "cat", 0.9877, 7, 5, "cats | Cat", 2, "A [cat] sleeps here.", 1, "The [late] train."],
        ["nichts", "", *[None] * 8],
    ]
    (row,) = term_rows(["Katze"], [terms], 4, OTHER, {place(1, 2, 5): (5, 10)}).rows
    assert list(row)[10:] == [1, "[The] late train.", None, None, "Katze", OTHER[1]]
    (row,) = term_rows(["Katze"], [terms], 1, OTHER).rows
    assert list(row)[8:] == [None, OTHER[1]]


@pytest.fixture
def files(tmp_path):
    """Phrases, and passages of each kind."""
    for name in ("q.txt", "a.txt", "a.tsv", "a.csv", "a.md", "a.tmx"):
        (tmp_path / name).write_text("a\tb\n", "utf-8")
    for name, members in (("t.zip", ["a.tsv"]), ("c.zip", ["a.csv"]), ("m.zip", ["a.en", "a.de"])):
        with ZipFile(tmp_path / name, "w") as archive:
            for member in members:
                archive.writestr(member, "source,target\n" if member == "a.csv" else "a\tb\n")

    def made(passages="a.txt", output="o.tsv", **how):
        config = PhraseSearchConfig(**how)
        return PhraseFiles(str(tmp_path / "q.txt"), str(tmp_path / passages), output, config)

    return made


@pytest.mark.parametrize(
    ("passages", "output", "how", "kind"),
    [
        ("a.txt", "o.tsv", {}, (".tsv", False, False)),
        ("a.txt", "-", {}, (".tsv", False, False)),
        ("a.txt", "o.csv.gz", {}, (".csv", False, False)),
        ("a.tsv", "o.tsv", {}, (".tsv", False, False)),  # whose lines are passages
        ("a.tsv", "o.tsv", {"languages": ("en", "de")}, (".tsv", False, True)),
        ("a.txt", "o.tmx", {"languages": ("en", "de")}, (".tmx", False, False)),
        ("a.csv", "o.tsv", {"languages": ("en", "de")}, (".tsv", False, True)),
        ("t.zip", "o.tsv", {}, (".tsv", False, False)),
        ("t.zip", "o.tsv", {"languages": ("en", "de")}, (".tsv", False, True)),
        ("c.zip", "o.tsv", {"languages": ("en", "de")}, (".tsv", False, True)),
        ("m.zip", "o.tsv", {"languages": ("en", "de")}, (".tsv", False, True)),
        ("a.md", "o.tsv", {"languages": ("en", "de")}, (".tsv", True, False)),
        ("a.txt", "o.tsv", {"languages": ("en", "de"), "split": True}, (".tsv", True, False)),
        ("a.txt", "o.tbx", {"languages": ("en", "de"), "mode": "terms"}, (".tbx", False, False)),
    ],
)
def test_what_holds_passages_is_known_by_its_name_and_the_languages(files, passages, output, how, kind):
    found = files(passages, output, **how)
    assert (found.format, found.is_cut, found.is_bitext) == kind
    texts = found.texts("other.tsv")
    assert (texts.name, texts.language, texts.split) == ("other.tsv", how.get("languages", ("", ""))[1], how.get("split"))
    assert bool(texts.bitexts) == kind[2]


@pytest.mark.parametrize(
    ("passages", "output", "how", "said"),
    [
        ("a.csv", "o.tsv", {}, "name the languages of the phrases and the passages"),
        ("c.zip", "o.tsv", {}, "name the languages of the phrases and the passages"),
        ("a.md", "o.tsv", {}, "name the languages of the phrases and the passages"),
        ("a.txt", "o.tmx", {}, "name the languages of the phrases and the passages"),
        ("a.tsv", "o.tsv", {"languages": ("en",)}, r"languages=\['en'\]: name the languages"),
        ("a.txt", "o.tbx", {"languages": ("en", "de")}, r"output=o\.tbx: terms are written as \.tbx: set mode=terms"),
        ("a.txt", "o.docx", {}, r"o\.docx"),
    ],
)
def test_a_search_that_cannot_be_is_refused_before_it(files, passages, output, how, said):
    with pytest.raises(ConfigError, match=said):
        files(passages, output, **how)


def test_a_summary_counts_passages_queries_and_what_was_found(files):
    hit = Hit(0.5, 1, 1, (place(0, 4, 8),))
    found = FoundInFiles([[hit, hit], [hit]], 1234, {}, 2.0, files(), ["a", "b"])
    took = "2.0 s, 617 passages/s: o.tsv"
    assert str(found) == f"1,234 passages, 2 queries, 3 hits for 2 of them, {took}"
    found = replace(found, found=[[], [hit], []], left_out={"not UTF-8": 3}, files=files(mode="terms"))
    assert str(found) == (
        f"1,234 passages, 3 queries, 1 candidates for 1 of them, nothing found for 2, {took}; left out: 3 not UTF-8"
    )


def test_memories_and_term_lists_hold_each_hit():
    hits = [Hit(0.87654321, 1, 1, (place(1, 2, 5), place(0, 0, 3)))]
    terms = [Term("cat", 0.98765, 7, 5, ("cats",), (place(1, 2, 5),))]
    assert list(_units(["Katze", "nichts", "Kater"], [hits, [], terms])) == [
        Unit(0.876543, "Katze", "cat", "phrase 2"),
        Unit(0.98765, "Kater", "cat", "phrase 2"),
    ]
    assert list(_candidates(["Katze", "nichts"], [terms, []])) == [
        ("Katze", [Candidate("cat", PASSAGES[1], "score 0.9877, 7 times in 5 passages")]),
        ("nichts", []),
    ]


def test_links_are_counted_with_what_was_made_of_them():
    table = phrase_table([LinkedPair("a", "x", ((0, 1),), ((0, 1),), ((0, 0),), (1.0,))])
    check = TermCheck((), 4, {})
    for made, said in (
        (None, "1,234 pairs, 5 links"),
        (table, "1,234 pairs, 5 links, PhraseTable(1 pairs)"),
        (check, f"1,234 pairs, {check.summary()}"),
    ):
        near = "; near-duplicates of earlier pairs: none"
        assert LinkedBitext(1234, 5, made).summary() == f"{said}{near}"
        assert LinkedBitext(1234, 5, made, {"not UTF-8": 2}).summary() == f"{said}; left out: 2 not UTF-8{near}"
    assert (
        LinkedBitext(1234, 5, None, near=0.25)
        .summary()
        .startswith("1,234 pairs, 5 links; near-duplicates of earlier pairs: 25")
    )
    assert LinkedBitext(0, 0, None).summary() == "0 pairs, 0 links"


def test_what_stands_around_a_span_is_cut_on_both_sides():
    found = place(1, 6, 12)
    assert found.text == "sleeps"
    assert found.around(6) == ("A cat ", " here.")
    assert found.around(2) == ("…t ", " h…")
    assert found.around(99) == ("A cat ", " here.")


def test_queries_are_a_phrase_or_the_lines_of_a_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "q.txt").write_text("one\n\n  two \n")
    (tmp_path / "none.txt").write_text("\n \n")
    assert read_queries("q.txt") == ["one", "two"]
    for phrase in ("late", "the late train.txt", "v1.2"):
        assert read_queries(phrase) == [phrase]
    for wrong, said in (("nothing.txt", "no such file"), (" ", "no such file"), ("none.txt", "no phrase in it")):
        with pytest.raises(InputError, match=said):
            read_queries(wrong)
