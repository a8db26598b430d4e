"""Where the texts of corrected rows stand in the lines of two texts."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xswe.alignment import places
from xswe.alignment.places import Lines, _runs_within, most_alike, place_rows
from xswe.alignment.rows import EditedRow

ENGLISH = [
    "A cat sleeps on the mat.",
    "It rains.",
    "It rains.",
    "The train to Berlin is late.",
    "Nobody knows why.",
    "End.",
]
GERMAN = ["Eine Katze schläft auf der Matte.", "Es regnet.", "Es regnet.", "Der Zug nach Berlin hat Verspätung.", "Ende."]


@given(st.lists(st.text("ab ", max_size=12), min_size=1, max_size=8), st.text("ab", min_size=1, max_size=20))
def test_a_text_is_found_where_whole_lines_are_together_the_same(lines, text):
    own, bare = Lines(lines), ["".join(line.split()) for line in lines]
    assert len(own) == len(lines)
    for line in range(-1, len(lines) + 1):
        rest = "".join(bare[line:]) if 0 <= line < len(lines) else ""
        assert own.begins(line, text) == rest.startswith(text)
        ends = [end for end in range(line + 1, len(lines) + 1) if line >= 0 and "".join(bare[line:end]) == text]
        assert own.at(line, text) == (tuple(range(line, ends[0])) if ends else None)
    if len(text) >= 8:
        wanted = [own.at(line, text) for line in range(len(lines)) if bare[line] and own.at(line, text)]
    else:  # what is as short is found as one line alone
        wanted = [(line,) for line in range(len(lines)) if bare[line] == text]
    assert own.runs_of(text) == wanted
    assert own.text((0, 1)[: len(lines)]) == "".join(bare[:2])


def placed(*rows, lines=(ENGLISH, GERMAN)):
    """The lines of rows, from 0; a row is two texts, and perhaps lines of both sides, any lines, and a status."""
    made = []
    for number, row in enumerate(rows, 1):
        texts, (own, either, status) = row[:2], (*row[2:], *[((), ()), (), ""][len(row[2:]) :])
        made.append(EditedRow(texts, own, either, status, "", number))
    found, lost = place_rows(made, lines)
    return [(one.lines, one.rows) for one in found], lost


def test_whole_lines_stand_where_they_are_there_once_or_between_the_rows_around():
    found = placed(
        (ENGLISH[0], GERMAN[0]), ("It rains.", "Es regnet."), ("It  rains. ", "Es regnet."), (ENGLISH[3], GERMAN[3])
    )
    assert found == ([(((0,), (0,)), (0,)), (((1,), (1,)), (1,)), (((2,), (2,)), (2,)), (((3,), (3,)), (3,))], [])
    merged = f"{ENGLISH[3]} {ENGLISH[4]}"
    assert placed((merged, GERMAN[3]), ("", "Ende.")) == ([(((3, 4), (3,)), (0,)), (((), (4,)), (1,))], [])
    # what stands twice, where its writer says
    assert placed(("It rains.", "Es regnet.", ((2,), (1,)))) == ([(((2,), (1,)), (0,))], [])
    assert placed(("It rains.", "Es regnet.", ((), ()), (2,))) == ([(((2,), (2,)), (0,))], [])
    # and where none is free between the rows around, nearest to the one before
    out_of_order = placed(
        (ENGLISH[3], GERMAN[3]), ("It rains.", "Es regnet."), ("It rains.", "Es regnet."), ("It rains.", "")
    )
    assert out_of_order[0][1:3] == [(((2,), (2,)), (1,)), (((1,), (1,)), (2,))]


@given(st.data())
def test_rows_of_all_lines_in_order_stand_at_their_lines(data):
    """However often a line is there, and whichever lines a row holds together (of eight characters at least)."""
    texts = st.sampled_from(["猫が寝る。", "A train.", "It rains all day long.", "Nobody knows.", "End."])
    lines = [data.draw(st.lists(texts, min_size=2, max_size=9)) for _ in range(2)]
    least = min(map(len, lines))
    count = data.draw(st.integers(1, least))
    cuts = [
        [0, *sorted(data.draw(st.sets(st.integers(1, len(side) - 1), min_size=count - 1, max_size=count - 1))), len(side)]
        for side in lines
    ]
    runs = [[tuple(range(a, b)) for a, b in pairwise(one)] for one in cuts]
    rows = [
        tuple(" ".join(side[line] for line in run) for side, run in zip(lines, both, strict=True))
        for both in zip(*runs, strict=True)
    ]
    assert placed(*rows, lines=lines) == ([(both, (row,)) for row, both in enumerate(zip(*runs, strict=True))], [])


def test_edited_texts_are_compared_with_runs_of_up_to_six_lines():
    assert list(_runs_within([0, 1, 2, 5])) == [(0,), (0, 1), (0, 1, 2), (1,), (1, 2), (2,), (5,)]
    assert [len(run) for run in _runs_within(range(8))] == [
        *range(1, 7),
        *range(1, 7),
        *range(1, 7),
        1,
        2,
        3,
        4,
        5,
        1,
        2,
        3,
        4,
        1,
        2,
        3,
        1,
        2,
        1,
    ]
    assert list(_runs_within([])) == []


def test_a_rejected_row_takes_no_line_from_others():
    rows = (ENGLISH[0], GERMAN[0], ((), ()), (), "rejected"), (ENGLISH[0], GERMAN[3]), (ENGLISH[3], GERMAN[0])
    assert [lines for lines, _ in placed(*rows)[0]] == [((0,), (0,)), ((0,), (3,)), ((3,), (0,))]


def test_rows_into_which_a_line_was_cut_belong_together():
    rows = ("The train to", "Der Zug nach"), ("Berlin is late.", "Berlin hat Verspätung."), (ENGLISH[4], "")
    assert placed(*rows) == ([(((3,), (3,)), (0, 1)), (((4,), ()), (2,))], [])
    three = ("The train", GERMAN[3]), ("to Berlin", ""), ("is late. Nobody knows why.", "")
    assert placed(*three) == ([(((3, 4), (3,)), (0, 1, 2))], [])


def test_what_was_typed_over_stands_at_the_free_lines_that_are_most_like_it():
    assert placed((ENGLISH[0], GERMAN[0]), ("The train to Bremen is late!", GERMAN[3]), (ENGLISH[5], GERMAN[4]))[0][1] == (
        ((3,), (3,)),
        (1,),
    )
    both = "The train to Bremen is late. Nobody knows it."
    assert placed((ENGLISH[0], GERMAN[0]), (both, GERMAN[3]))[0][1] == (((3, 4), (3,)), (1,))
    # like nothing: where the row says, or else nowhere
    assert placed((ENGLISH[0], GERMAN[0]), ("xyz", GERMAN[3], ((4,), (3,))))[0][1] == (((4,), (3,)), (1,))
    assert placed((ENGLISH[0], GERMAN[0]), ("xyz", "qqq")) == ([(((0,), (0,)), (0,))], [1])


@pytest.mark.parametrize(("stands", "found"), [(1, 8), (2, 2), (7, 7), (14, 14), (15, 8)])
def test_where_a_row_says_its_lines_a_text_is_sought_up_to_six_lines_around(stands, found):
    lines = [f"{chr(0x4E00 + 40 * k)}{chr(0x4E01 + 40 * k)}" * 8 for k in range(20)]
    typed = lines[stands][:-3] + "xyz"
    assert placed((typed, "", ((8,), ())), (lines[19], "Ende."), lines=(lines, GERMAN))[0][0] == (((found,), ()), (0,))


def test_of_many_rows_one_at_least_must_be_unchanged(monkeypatch):
    edited = [(f"{text[:-1]}?", f"{other[:-1]}?") for text, other in zip(ENGLISH[:2], GERMAN, strict=False)]
    monkeypatch.setattr(places, "_MAX_EDITED", 2)
    assert len(placed(*edited)[0]) == 2
    monkeypatch.setattr(places, "_MAX_EDITED", 1)
    assert placed(*edited) == ([], [0, 1])
    assert len(placed(*edited, (ENGLISH[3], GERMAN[3]))[0]) == 3


def test_of_other_texts_all_rows_are_lost():
    assert placed(("xyz", "abc"), ("uvw", "def")) == ([], [0, 1])
    assert placed(("xyz", "abc", ((0,), (0,)))) == ([], [0])


def test_the_text_most_alike_is_found_unless_all_are_far_longer():
    assert most_alike("abcdef", ["xbcdef", "abcdef", "abcdxx"]) == (1, 1.0)
    assert most_alike("abcdef", ["abcxxx", "xbcdef"]) == (1, pytest.approx(10 / 12))
    assert most_alike("abc", ["abc" + "x" * 7]) == (0, pytest.approx(6 / 13))
    assert most_alike("abc", ["abc" + "x" * 8]) == (0, 0.0)
    assert most_alike("abc", []) == (0, 0.0)
    assert most_alike("ab" * 200, ["ba" * 200, "ab" * 200]) == (1, 1.0)  # however often its characters are there
