"""Beads as each format of their own writes them, byte for byte."""

from __future__ import annotations

import json
import re
from itertools import zip_longest

import pytest

from tests.foreign import READ_PAIRS, TEXTS, as_pairs
from xswe.alignment.formats import _OWN, Manner, Written, bead_format, joined, write_beads
from xswe.errors import ConfigError

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


PAGE = """<!doctype html>
<html><head><meta charset="utf-8"><title>TITLE</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><style>STYLE</style></head>
<body><table>
<tr><td class="n">1</td><td lang="en">A &amp; b</td><td lang="de-AT">C</td></tr>
<tr><td class="n">–</td><td lang="en"></td><td lang="de-AT">D<p class="note">so</p></td></tr>
<tr class="moved" title="out of order"><td class="n">5</td><td lang="en">E</td><td lang="de-AT">F</td></tr>
</table></body></html>
"""


def test_a_page_numbers_lines_from_one_and_marks_what_moved(tmp_path):
    def page(**manner):
        return re.sub("<style>.*</style>", "<style>STYLE</style>", written(tmp_path, "html", **manner), flags=re.DOTALL)

    assert page(languages=("en", "de-AT"), original="a <b>.txt") == PAGE.replace("TITLE", "a &lt;b&gt;.txt")
    plain = PAGE.replace("TITLE", "Parallel texts").replace(' lang="en"', "").replace(' lang="de-AT"', "")
    assert page(languages=("en",)) == plain


@pytest.mark.parametrize("kind", sorted({*_OWN} - {"jsonl", "ladder"}))  # a ladder has no texts
def test_another_program_reads_every_text(tmp_path, kind):
    assert kind in READ_PAIRS, (
        "no test reads what is written: READ_PAIRS of tests/foreign.py must say how another program does"
    )
    pairs, path = list(zip_longest(TEXTS, TEXTS[1:], fillvalue="x")), tmp_path / f"a{_OWN[kind]}"
    write_beads(path, kind, (Written(0.5, *pair, (0,), (0,)) for pair in pairs), Manner(languages=("en", "de")))
    for pair, found in zip(pairs, READ_PAIRS[kind](path), strict=True):
        assert found == [as_pairs(kind, text) for text in pair]


def test_pairs_have_a_score_and_memories_have_lines(tmp_path):
    assert written(tmp_path, "laser") == "0.123457\tA & b\tC\n0.000000\t\tD\n0.500000\tE\tF\n"
    assert written(tmp_path, "laser", gaps=False) == "0.123457\tA & b\tC\n0.500000\tE\tF\n"
    both = {"languages": ("en", "de"), "date": "2026-01-31", "original": "o.txt"}
    memory = written(tmp_path, "tmx", **both)
    lines = re.findall('<prop type="x-lines">(.*?)</prop>', memory)
    assert (lines, memory.count("20260131T000000Z")) == (["1 2 | 1", " | 2 3", "a.txt:5 | b.txt:4"], 4)
    assert '<file original="o.txt" datatype="plaintext"' in written(tmp_path, "xliff", **both)
    assert '<file id="f1" original="o.txt" xml:space="preserve">' in written(tmp_path, "xliff2", **both)
    with pytest.raises(ConfigError, match="date=soon: write now, or a date"):
        Manner(date="soon")


@pytest.mark.parametrize(
    ("wanted", "output", "found"),
    [
        ("auto", "a.htm", "html"),
        ("auto", "a.docx", "docx"),
        ("auto", "a.ladder.gz", "ladder"),
        ("auto", "a.jsonl", "jsonl"),
        ("auto", "a.tsv", "laser"),
        ("auto", "a", "laser"),
        ("ladder", "a.txt", "ladder"),
        ("xliff2", "a.xlf", "xliff2"),
        ("auto", "a.xlf", "xliff"),
    ],
)
def test_the_format_is_the_wanted_one_or_that_of_the_name(wanted, output, found):
    assert bead_format(wanted, output, ("en", "de")) == found


def test_a_format_that_beads_cannot_have_is_refused():
    with pytest.raises(ConfigError, match="format=bucc is for pairs of ids, but beads have line numbers: use ladder"):
        bead_format("bucc", "a.tsv", ())
    with pytest.raises(ConfigError, match="set languages"):
        bead_format("auto", "a.tmx", ("en",))


@pytest.mark.parametrize(
    ("texts", "text"),
    [
        (["a", "b"], "a b"),
        (["猫。", "犬"], "猫。犬"),
        (["猫", "a"], "猫 a"),
        (["a", "猫"], "a 猫"),
        (["", "a", "", "b"], "a b"),
        (["a。", "猫"], "a。猫"),
        (["a.", "猫"], "a. 猫"),
        (["猫。", "a"], "猫。 a"),
        (["「a」", "猫", "犬"], "「a」猫犬"),
        ([], ""),
    ],
)
def test_lines_are_joined_with_a_blank_but_for_chinese_and_japanese(texts, text):
    assert joined(texts) == text
