"""How hits and candidates are laid out, and which queries are read."""

from __future__ import annotations

import pytest

from xswe.alignment.phrases import hit_rows, read_queries, term_rows
from xswe.errors import InputError
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
