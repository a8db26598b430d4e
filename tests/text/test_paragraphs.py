"""Paragraphs and lines of running text, at the limits of what counts as wrapped, and menus of pages."""

from __future__ import annotations

import pytest

from xswe.io.lines import Skipped
from xswe.text.readers import paragraphs, paragraphs_of
from xswe.text.sentences import Sentence, SplitText, one_line, split_text


def lines(*groups):
    return "\n".join(character * width for character, width, times in groups for _ in range(times))


@pytest.mark.parametrize(
    ("text", "wrapped"),
    [
        (lines(("x", 110, 3)), True),
        (lines(("x", 111, 3)), False),
        (lines(("語", 55, 3)), True),  # two columns each
        (lines(("語", 56, 3)), False),
        (lines(("x", 100, 3)), True),
        (lines(("x", 100, 2)), False),  # one line alone is followed by another
        (lines(("x", 100, 2)) + "\n\n" + lines(("x", 100, 2)), True),
        (lines(("x", 100, 50), ("y", 111, 2)), True),  # two of fifty-two may be longer
        (lines(("x", 100, 49), ("y", 111, 2)), False),
        (lines(("x", 61, 3), ("y", 100, 1)), True),  # most lines are more than three fifths of the longest
        (lines(("x", 60, 3), ("y", 100, 1)), False),
        (lines(("x", 99, 3)) + ".\n" + lines(("x", 99, 2)), True),
        (lines(("x", 99, 3)) + ".\n" + lines(("x", 99, 1)) + ".”\nx", False),  # two of four end sentences
        ("", True),
    ],
)
def test_short_lines_that_go_on_are_one_paragraph(text, wrapped):
    blocks = [block for block in text.split("\n\n") if block]
    expected = blocks if wrapped else [line for block in blocks for line in block.split("\n")]
    assert [text[start:end] for start, end in paragraphs(text)] == expected


def test_blank_lines_are_in_no_paragraph():
    text = "\n \n  One.\n\t\nTwo. \n \nThree."
    assert [text[start:end] for start, end in paragraphs(text)] == ["  One.", "Two. ", "Three."]


def kept_of(tmp_path, *blocks):
    (tmp_path / "a.html").write_text("".join(f"<p>{block}</p>" for block in blocks), "utf-8")
    found = paragraphs_of(tmp_path / "a.html", left_out := Skipped())
    assert left_out.counts.get("paragraphs of navigation and footers", 0) == len(blocks) - len(found)
    return len(found)


@pytest.mark.parametrize(
    ("block", "is_menu"),
    [
        ("<a>" + "x" * 7 + "</a>yyy", True),
        ("<a>" + "x" * 6 + "</a>yyyy", False),  # three fifths of its letters are linked
        ("<a>" + "x x x x x x x" + "</a> y y y", True),
        ("<a>" + "x" * 79 + "</a>", True),
        ("<a>" + "x" * 80 + "</a>", False),
        ("<a>xxx.</a>", False),
        ("<a>x<a>x</a>xx</a>x", True),  # within two links
        ("</a>x<a>y</a>", False),
    ],
)
def test_three_short_blocks_of_links_are_a_menu(tmp_path, block, is_menu):
    assert kept_of(tmp_path, block, block) == 2
    assert kept_of(tmp_path, block, block, block) == (0 if is_menu else 3)
    assert kept_of(tmp_path, block, block, "text", block) == 4


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a\nb", "a b"),
        ("a  \n\n \tb  c", "a b  c"),
        ("語\n語", "語語"),
        ("語\na", "語 a"),
        ("、\na", "、a"),
        (".\n語", ". 語"),
        ("\na", "a"),
        ("a\n", "a"),
        ("\n", ""),
    ],
)
def test_lines_are_joined_with_a_space_but_for_chinese_and_japanese(text, line):
    assert one_line(text) == line


def test_what_is_said_of_sentences(tmp_path):
    sentences = tuple(Sentence("A.", 3 * k, 3 * k + 2, k // 2) for k in range(1003))
    made = SplitText("A. " * 1003, sentences, "en", {"x": 2})
    assert made.summary() == "1,003 sentences in 502 paragraphs; left out: 2 x"
    assert repr(made) == "SplitText(1,003 sentences in 502 paragraphs; left out: 2 x, en)"
    assert SplitText("", (), "en").summary() == "0 sentences in 0 paragraphs"
    made.write(tmp_path / "a.TXT")
    assert (tmp_path / "a.TXT").read_text("utf-8") == "A.\n" * 1003
    with pytest.raises(TypeError) as caught:
        split_text(b"A.", "en")
    assert str(caught.value) == "input is of type bytes: give running text, a str, or the Path of a file"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("One\n***\nTwo\n| c | d |\nThree\n# Four", ["One", "Two", "c", "d", "Three", "Four"]),
        ("a\nb\n\nc", ["a\nb", "c"]),
        ("1. a\n2) b\n- [x] c\n> > d\n1234567890. e", ["a", "b", "c", "d\n1234567890. e"]),
        ("####### a", ["####### a"]),
        ("~~~\nno\n```\nno\n~~~~\nyes", ["yes"]),
        ("````\nno\n```\nno\n````\nyes", ["yes"]),
        ("---\nno: x\n---\nyes", ["yes"]),
        ("---\nyes", ["yes"]),
        ("![a](b) [c][d] <http://e.f> <g@h.i> <b>j</b> `k` **l** _m_ n\\*", ["a c http://e.f g@h.i j k l m n*"]),
        ("猫**が**寝る 2*3*4 a_b_c", ["猫が寝る 2*3*4 a_b_c"]),
    ],
)
def test_markdown_is_read_without_its_marks(tmp_path, text, found):
    (tmp_path / "a.md").write_text(text, "utf-8")
    assert paragraphs_of(tmp_path / "a.md") == found
