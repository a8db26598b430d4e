"""Beads as each format of their own writes them, byte for byte."""

from __future__ import annotations

import json

import pytest

from xswe.alignment.formats import Manner, Written, joined, write_beads

BEADS = [
    Written(0.123456789, "A & b", "C", (0, 1), (0,)),
    Written(None, "", "D", (), (1, 2), notes="so"),
    Written(0.5, "E", "F", (4,), (3,), "moved", places=([[5, 6]], None), before=("a.txt:", "b.txt:")),
]


def written(tmp_path, kind, beads=BEADS, **manner):
    write_beads(tmp_path / f"a.{kind}", kind, beads, Manner(**manner))
    return (tmp_path / f"a.{kind}").read_text("utf-8")


def test_a_ladder_has_the_numbers_of_lines_and_scores(tmp_path):
    assert written(tmp_path, "ladder") == "[0,1]:[0]:0.123457\n[]:[1,2]:0.000000\n[4]:[3]:0.500000\n"
    assert written(tmp_path, "ladder", gaps=False) == "[0,1]:[0]:0.123457\n[4]:[3]:0.500000\n"


def test_objects_have_what_is_known(tmp_path):
    first, gap, moved = map(json.loads, written(tmp_path, "jsonl").splitlines())
    assert first == {"score": 0.123457, "source": "A & b", "target": "C", "source_lines": [0, 1], "target_lines": [0]}
    assert gap == {"score": 0.0, "source": "", "target": "D", "source_lines": [], "target_lines": [1, 2], "notes": "so"}
    assert (moved["status"], moved["source_places"]) == ("moved", [[5, 6]])
    assert "target_places" not in moved


def test_a_table_has_lines_from_one(tmp_path):
    assert written(tmp_path, "csv").splitlines() == [
        "source,target,score,status,notes,source_lines,target_lines",
        "A & b,C,0.123457,,,1 2,1",
        ",D,,,so,,2 3",
        "E,F,0.5,moved,,a.txt:5,b.txt:4",
    ]
    assert written(tmp_path, "csv", bom=True)[0] == "\ufeff"


def test_a_page_numbers_lines_from_one_and_marks_what_moved(tmp_path):
    page = written(tmp_path, "html", languages=("en", "de-AT"), original="a <b>.txt")
    assert "<title>a &lt;b&gt;.txt</title>" in page
    assert '<tr><td class="n">1</td><td lang="en">A &amp; b</td><td lang="de-AT">C</td></tr>' in page
    assert '<tr><td class="n">–</td><td lang="en"></td><td lang="de-AT">D<p class="note">so</p></td></tr>' in page
    assert '<tr class="moved" title="out of order"><td class="n">5</td>' in page
    assert "<title>Parallel texts</title>" in (plain := written(tmp_path, "html", languages=("en",)))
    assert "lang=" not in plain


@pytest.mark.parametrize(
    ("texts", "text"),
    [
        (["a", "b"], "a b"),
        (["猫。", "犬"], "猫。犬"),
        (["猫", "a"], "猫 a"),
        (["a", "猫"], "a 猫"),
        (["", "a", "", "b"], "a b"),
        ([], ""),
    ],
)
def test_lines_are_joined_with_a_blank_but_for_chinese_and_japanese(texts, text):
    assert joined(texts) == text
