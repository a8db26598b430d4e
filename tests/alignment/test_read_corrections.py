"""What is read from corrections: lists against a plain definition, and tables row by row."""

from __future__ import annotations

from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from xswe.alignment.corrections import Said, read_corrections
from xswe.errors import ConfigError

EN = ["The train is late.", "It rains.", "A cat sleeps on the roof.", "Interest rates have fallen.", "We buy bread."]
DE = ["Der Zug hat Verspätung.", "Es regnet.", "Auf dem Dach schläft eine Katze.", "Die Zinsen fielen.", "Wir kaufen Brot."]
LINES = 9


def partition(draws):
    """Cut the lines of a text into runs of one to three."""
    ends = [0, *sorted(draws.choice(range(1, LINES), int(draws.integers(2, 6)), replace=False).tolist()), LINES]
    return [tuple(range(a, b)) for a, b in pairwise(ends) if b - a < 4]


def box(pair):
    (*_, a), (*_, b) = pair
    return [pair[0][0], a + 1, pair[1][0], b + 1]


@given(st.integers(0, 10_000))
def test_a_list_is_read_as_its_plain_definition(seed):
    draws = np.random.default_rng(seed)
    runs = [partition(draws) for _ in range(2)]
    count = int(draws.integers(0, min(map(len, runs)) + 1))
    chosen = [[side[k] for k in draws.permutation(len(side)).tolist()] for side in runs]
    if seed % 2:  # in order, but for some
        chosen = [sorted(side[:count]) + side[count:] for side in chosen]
    beads = list(zip(chosen[0][:count], chosen[1][:count], strict=True))
    gaps = [[run for run in side[count:] if draws.random() < 0.7] for side in chosen]
    wrong = [(a, b) for a in chosen[0] for b in chosen[1] if draws.random() < 0.15]
    rejected = [(a, b) for a, b in wrong if (a, b) not in beads]
    before = [(a, b) for a in chosen[0] for b in chosen[1] if draws.random() < 0.2]
    fixed = [*beads, *((run, ()) for run in gaps[0]), *(((), run) for run in gaps[1])]
    fixed += [(*pair, "rejected") for pair in rejected]
    found = read_corrections(
        [fixed[k] for k in draws.permutation(len(fixed)).tolist()], before, ["a"] * LINES, ["b"] * LINES, ()
    )
    # The most beads that are in order on both sides; the others are apart, and their lines in gaps.
    chains = [some for size in range(count + 1) for some in combinations(sorted(beads), size)]
    longest = max(len(some) for some in chains if all(a[1] < b[1] for a, b in pairwise(some)))
    anchors = [tuple(zip(*one, strict=True)) for one in found.constraints.anchors]
    in_order = [[*a, *b] for a, b in anchors]
    assert len(in_order) == longest
    assert all(a[1] <= b[0] and a[3] <= b[2] for a, b in pairwise(in_order))
    assert sorted([*in_order, *found.apart.tolist()]) == sorted(map(box, beads))
    for side, lines in enumerate((found.constraints.source_gaps, found.constraints.target_gaps)):
        moved = {line for one in found.apart.tolist() for line in range(*one[2 * side : 2 * side + 2])}
        assert lines.tolist() == sorted({line for run in gaps[side] for line in run} | moved)
    out = [pair for pair in before if pair not in beads]
    assert sorted(found.constraints.rejected.tolist()) == sorted(map(box, {*rejected, *out}))
    assert not found.said
    parts = [(len(beads) + sum(map(len, gaps)), "as they were"), (len(rejected), "rejected"), (len(out), "taken out")]
    assert str(found) == ", ".join(f"{number} {what}" for number, what in parts if number)


def test_a_pair_within_a_larger_bead_was_not_taken_out():
    fixed = [((0, 1), (0,)), ((2,), (1, 2))]
    for before, out in (
        ([((0,), (0,)), ((1,), (0,)), ((2,), (2,))], []),
        ([((1,), (1,))], [[1, 2, 1, 2]]),
        ([((1, 2), (0,))], [[1, 3, 0, 1]]),
        ([((3,), (3,))], [[3, 4, 3, 4]]),
        ([((3,), ()), ((4,), (4,), "rejected")], []),  # no pairs
    ):
        found = read_corrections(fixed, before, EN, DE, ())
        assert found.constraints.rejected.tolist() == out


def test_a_rejected_pair_is_in_no_bead_that_is_given():
    for wrong in (((0, 1), (0,)), ((1,), (0,))):
        with pytest.raises(
            ConfigError, match=r"fixed\[1\]: .* is rejected, but within the bead \[0,1\]:\[0\] \(fixed\[0\]\)"
        ):
            read_corrections([((0, 1), (0,)), (*wrong, "rejected")], None, EN, DE, ())
    found = read_corrections([((0, 1), (0,)), ((1, 2), (0,), "rejected")], None, EN, DE, ())
    assert found.constraints.rejected.tolist() == [[1, 3, 0, 1]]  # which is more than the bead


def test_a_row_that_was_edited_was_not_taken_out_but_others_were(tmp_path):
    for name, rows in (("before", ROWS), ("after", [ROWS[0], (EN[1], "Www vvv kkk!", ""), *ROWS[2:4]])):
        lines = "".join("\t".join(row) + "\n" for row in rows)
        (tmp_path / f"{name}.tsv").write_text(f"source\ttarget\tstatus\n{lines}", "utf-8")
    found = read_corrections(tmp_path / "after.tsv", tmp_path / "before.tsv", EN, DE, ())
    assert found.constraints.rejected.tolist() == [[4, 5, 4, 5]]
    assert str(found) == "3 as they were, 1 typed over, 1 taken out"


def table(tmp_path, *rows, whole=False):
    """Read a table of rows of source, target, and perhaps a status and notes."""
    names = "source\ttarget\tstatus\tnotes" + "\tsource_lines\ttarget_lines" * whole
    text = "".join("\t".join([*row, *[""] * (names.count("\t") + 1 - len(row))]) + "\n" for row in rows)
    (tmp_path / "a.tsv").write_text(f"{names}\n{text}", "utf-8")
    return read_corrections(tmp_path / "a.tsv", None, EN, DE, ())


ROWS = [(a, b, "") for a, b in zip(EN, DE, strict=True)]


def test_a_text_for_a_line_without_a_counterpart_stands_apart(tmp_path):
    found = table(tmp_path, *ROWS[:2], (EN[3], "Nobody wrote that.", "", "a note"), ROWS[4])
    assert found.apart.tolist() == [[3, 4, 0, 0]]
    assert found.said == {((3,), ()): (Said(EN[3], "Nobody wrote that.", "a note"),)}
    assert (found.constraints.source_gaps.tolist(), found.constraints.target_gaps.tolist()) == ([3], [])
    found = table(tmp_path, *ROWS[:2], ("Qqq zzz xxx?", DE[3]), ROWS[4])
    assert found.apart.tolist() == [[0, 0, 3, 4]]
    assert str(found) == "3 as they were, 1 typed over"


def test_what_is_said_of_a_rejected_or_open_row_is_not_written(tmp_path):
    found = table(tmp_path, *ROWS[:2], (EN[2], DE[2], "wrong", "no"), (EN[3], DE[3], "open", "perhaps"), ROWS[4])
    assert (found.said, found.constraints.rejected.tolist()) == ({}, [[2, 3, 2, 3]])
    assert str(found) == "3 as they were, 1 rejected, 1 to be aligned anew"
    found = table(tmp_path, *ROWS[:2], (EN[2], DE[2], "", "yes"))
    assert found.said == {((2,), (2,)): (Said(EN[2], DE[2], "yes"),)}
    assert str(found) == "3 as they were"


def test_blanks_between_lines_are_no_change_but_those_within_one_are(tmp_path):
    merged = f"{EN[0]}{EN[1]}"
    found = table(tmp_path, (merged, DE[0]), (f"A  cat {EN[2][6:]} ", DE[2]), ROWS[4])
    assert (found.said, str(found)) == ({}, "3 as they were")
    found = table(tmp_path, ROWS[0], (EN[1], "Esregnet."), ROWS[4])
    assert found.said == {((1,), (1,)): (Said(EN[1], "Esregnet."),)}
    assert str(found) == "2 as they were, 1 typed over"


def test_rows_whose_texts_stand_at_other_lines_than_they_say_are_counted(tmp_path):
    rows = [(*ROWS[at], "", *lines) for at, lines in ((0, "11"), (2, "23"), (3, ("", "")), (4, "54"))]
    found = table(tmp_path, *rows, whole=True)
    assert str(found) == "2 as they were, 2 with other lines, 2 lines taken out"
    assert found.constraints.anchors == tuple(((line, line), (line + 1, line + 1)) for line in (0, 2, 3, 4))


def test_new_rows_belong_to_the_row_before_them(tmp_path, caplog):
    new = [
        ("Qqq zzz xxx?", "Www vvv kkk!"),
        ("Jjj hhh fff?", "Ppp ooo mmm!", "0.5"),
        ("Ccc bbb ddd?", "Uuu yyy ttt!", "ok"),
    ]
    said = [Said(*row[:2]) for row in new]
    found = table(tmp_path, new[0], ROWS[0], ROWS[1], new[1], new[2], ROWS[4])
    assert found.said == {
        ((0,), (0,)): (said[0], Said(EN[0], DE[0])),
        ((1,), (1,)): (Said(EN[1], DE[1]), said[1], said[2]),
    }
    lost = [(*new[0], "wrong"), (*new[1][:2], "open")]
    found = table(tmp_path, *ROWS[:2], *lost)
    assert (found.said, str(found)) == ({}, "2 as they were, 2 not found")
    assert not caplog.records
    found = table(tmp_path, *ROWS[:2], *new)  # most rows are of another text
    assert (found.said, str(found)) == ({}, "2 as they were, 3 not found")
    assert "a.tsv: 3 rows are not in the texts and are ignored" in caplog.text


def test_a_rejected_row_with_one_side_is_not_found(tmp_path):
    found = table(tmp_path, *ROWS[:3], (EN[3], "Nobody wrote that.", "rejected"), (EN[4], "", "rejected"))
    assert (found.said, found.constraints.rejected.tolist(), found.apart.tolist()) == ({}, [], [])
    assert str(found) == "3 as they were, 2 not found"


@pytest.mark.parametrize(
    ("rows", "gone", "warned"), [(ROWS[:3], 4, False), ([*ROWS[:2], (EN[2], "")], 5, False), (ROWS[:2], 6, True)]
)
def test_a_table_that_lost_most_lines_is_warned_of(tmp_path, caplog, rows, gone, warned):
    found = table(tmp_path, *rows, whole=True)
    assert str(found) == f"{len(rows)} as they were, {gone} lines taken out"
    sizes = [len(lines) for lines in (found.constraints.source_gaps, found.constraints.target_gaps)]
    assert sum(sizes) == gone + (len(rows[-1][1]) == 0)  # whose line has no counterpart, either
    assert ("most lines are in none of its rows, and now have no counterpart" in caplog.text) == warned
