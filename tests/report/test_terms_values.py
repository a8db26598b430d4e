"""What a page of phrases or terms is made of."""

from __future__ import annotations

import pytest

pytest.importorskip("jinja2", reason="pages need Jinja2: pip install 'xswe[report]'")

from xswe.errors import InputError
from xswe.phrases.find import Hit, Place
from xswe.phrases.terms import Term
from xswe.report import terms as module
from xswe.report.terms import Example, Found, TermView, terms_page, view_of_hits


@pytest.fixture
def context(monkeypatch):
    """Return what the template is given."""
    monkeypatch.setattr(module, "render", lambda template, **context: context)
    return terms_page


def test_hits_and_terms_are_shown_with_their_examples(monkeypatch):
    monkeypatch.setattr(module, "_CONTEXT_CHARACTERS", 3)
    monkeypatch.setattr(module, "_OTHER_SIDE_CHARACTERS", 4)
    place = Place(7, 5, 8, "over the sea to Skye")
    hit = Hit(0.5, 1, 1, (place,))
    term = Term("Sea", 0.75, 9, 4, ("seas",), (place, Place(8, 0, 3, "sea")))
    found = TermView.of(["mer", "x", "y"], [[hit, term], [], []], ("fr", "en"), {7: "la mer", 9: "no"})
    sea = Example(8, "…er ", "the", " se…", "la m")
    assert found.found == (
        (
            "mer",
            (
                Found("the", 0.5, None, None, (), (sea,)),
                Found("Sea", 0.75, 9, 4, ("seas",), (sea, Example(9, "", "sea", "", ""))),
            ),
        ),
        ("x", ()),
        ("y", ()),
    )
    assert found.languages == ("fr", "en")


PHRASES = "phrase\tscore\ttext\tline\tstart\tend\tsentence\tother_side\nsea\t0.5\tMeer\t3\t4\t8\tdas Meer ist\tthe sea\n"
PHRASES += "sea\t0.25\tSee\t9\t0\t3\tSee\t\nday\t0.125\tTag\t1\t0\t3\tTag\t\n"
TERMS = "term,candidate,score,times,passages,variants,example_1,line_1,example_2,line_2,other_side\n"
TERMS += "sea,Meer,0.5,9,4,Meere | Meers,das [Meer] ist,3,[Meer],5,the sea\nsea,See,0.25,2,1,,,,,,\nday,,,,,,,,,,\n"


def test_a_table_of_phrases_or_terms_is_read_row_by_row(tmp_path):
    (tmp_path / "a.tsv").write_text(PHRASES, "utf-8")
    assert view_of_hits(tmp_path / "a.tsv", ("en", "de")) == TermView(
        (
            (
                "sea",
                (
                    Found("Meer", 0.5, None, None, (), (Example(3, "das ", "Meer", " ist", "the sea"),)),
                    Found("See", 0.25, None, None, (), (Example(9, "", "See", ""),)),
                ),
            ),
            ("day", (Found("Tag", 0.125, None, None, (), (Example(1, "", "Tag", ""),)),)),
        ),
        ("en", "de"),
    )
    (tmp_path / "a.csv").write_text(TERMS, "utf-8")
    examples = Example(3, "das ", "Meer", " ist", "the sea"), Example(5, "", "Meer", "")
    candidates = Found("Meer", 0.5, 9, 4, ("Meere", "Meers"), examples), Found("See", 0.25, 2, 1, (), ())
    assert view_of_hits(tmp_path / "a.csv") == TermView((("sea", candidates), ("day", ())))
    row = '{"phrase": "sea", "score": 0.5, "text": "Meer", "line": 3, "start": 4, "end": 8, "sentence": "das Meer"}\n'
    (tmp_path / "a.jsonl").write_text(f"\n{row}", "utf-8")
    (example,) = view_of_hits(tmp_path / "a.jsonl").found[0][1][0].examples
    assert example == Example(3, "das ", "Meer", "")


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("", r"a\.tsv:1: no names of columns"),
        ("phrase\tscore\n", r"a\.tsv: no rows in it"),
        ("a\tb\nc\td\n", r"a\.tsv:2: no column 'phrase' or 'term'"),
        ("phrase\tscore\nsea\t0.5\n", r"a\.tsv:2: no hit of phrases"),
        (PHRASES + "sea\tx\tMeer\t3\t4\t8\tdas Meer\t\n", r"a\.tsv:5: no hit of phrases"),
    ],
)
def test_what_phrases_did_not_write_is_refused(tmp_path, lines, said):
    (tmp_path / "a.tsv").write_text(lines, "utf-8")
    with pytest.raises(InputError, match=said):
        view_of_hits(tmp_path / "a.tsv")


def found(text, times=None):
    return Found(text, 0.5, times, times, (), (Example(1, "", text, ""),))


def test_a_page_counts_phrases_and_candidates(context):
    view = TermView((("sea", (found("Meer"), found("See"))), ("x", ())), ("en", "de"), 1200, "summary")
    told = context(view, {"a": 1})
    assert told["overview"] == [
        ("phrases", "2", ""),
        ("with candidates", "1", "1 without"),
        ("hits", "2", ""),
        ("passages read", "1,200", ""),
    ]
    assert (told["title"], told["counted"], told["summary"], told["settings"]) == ("Phrases", False, "summary", {"a": 1})
    assert told["found"] == [("sea", (found("Meer"), found("See")))]
    assert (told["nothing"], told["nothing_more"], told["left_out"]) == (["x"], 0, 0)
    assert told["data"] == {"languages": ["en", "de"]}
    told = context(TermView((("sea", (found("Meer", 3),)),), ("xx",)))
    assert told["overview"] == [("phrases", "1", ""), ("with candidates", "1", "0 without"), ("candidates", "1", "")]
    assert told["title"] == "Terms"
    assert {"en", "de", "zh", "ja", "xx"} <= set(told["codes"])


def test_a_page_that_is_too_large_has_the_first_phrases_and_says_how_many_are_left_out(context, monkeypatch):
    one = Found("Meer", 0.5, None, None, ("ab", "c"), (Example(1, "ü", "Meer", "b", "cd"), Example(2, "", "", "")))
    size = 3 + 700 + 2 * 4 + 3 + (4 * 260 + 2 + 4 + 1 + 2) + 4 * 260
    view = TermView((("sea", (one,)), ("sky", (one,)), ("x", ())))
    for room, shown in ((2 * size + 1, 3), (2 * size, 2), (2 * size - 1, 1), (size, 1), (size - 1, 0)):
        monkeypatch.setattr(module, "_PAGE_CHARACTERS", room)
        told = context(view)
        assert told["left_out"] == 3 - shown
        assert [query for query, _ in told["found"]] == ["sea", "sky"][:shown]
    many = TermView(tuple((str(n), ()) for n in range(2001)))
    assert (len(context(many)["nothing"]), context(many)["nothing_more"]) == (2000, 1)
