"""Answers of an index: what is asked of it, and how its hits are shown."""

from __future__ import annotations

import io

import pytest

import xswe
from xswe.errors import ConfigError
from xswe.report import answers as module
from xswe.report.answers import Answers, FileSearchConfig, _check, answer
from xswe.search.hits import Hit, Hits

TWO = [Hits("q", (Hit(0.5, "one two", 0), Hit(0.25, "two", 1))), Hits("r", ())]


class Index:
    """An index that notes what is asked."""

    def __init__(self, model=None):
        self.model, self.asked = model, []

    def search(self, queries, k, **how):
        self.asked.append((queries, k, how))
        return [Hits(query, TWO[0].hits) for query in queries]

    def __str__(self):
        return "an index"


def test_what_is_asked_of_the_index():
    index = Index()
    config = FileSearchConfig(k=7, candidates=30, rescored=9, threads=2)
    assert [hits.query for hits in Answers(index, config, "encoder").ask(["a", "b"])] == ["a", "b"]
    how = {"rescored": 9, "threads": 2, "rerank": "encoder", "candidates": 30}
    assert index.asked == [(["a", "b"], 7, how)]


def test_hits_are_shown_under_their_query_where_there_are_several():
    shown = "0.5000  one two\n0.2500  two"
    assert str(Answers(Index(), FileSearchConfig(), hits=TWO[:1])) == shown
    assert str(Answers(Index(), FileSearchConfig(), hits=TWO)) == f"q:\n{shown}\n\nr:\nnothing found"
    assert str(Answers(Index(), FileSearchConfig(), hits=TWO, output="a.tsv")) == "2 queries, 2 hits: a.tsv"


def test_the_best_word_is_marked_if_that_is_asked_for(random_model, monkeypatch):
    monkeypatch.setattr(module, "mark_best", lambda model, query, texts, left, right: [f"{left}{t}{right}" for t in texts])
    model = xswe.load(random_model)
    for mark, given, expected in ((True, model, "<one two>"), (False, model, "one two"), (True, None, "one two")):
        (text,) = Answers(Index(given), FileSearchConfig(mark=mark), hits=TWO[:1]).shown(("<", ">"))
        assert text.splitlines()[0] == f"0.5000  {expected}"


def test_a_terminal_is_asked_until_an_empty_line(monkeypatch, capsys):
    index = Index()
    monkeypatch.setattr(module, "search_file", lambda **given: Answers(index, FileSearchConfig(mark=False)))
    terminal = io.StringIO("cat\n dog \n\nmore\n")
    terminal.isatty = lambda: True
    monkeypatch.setattr("sys.stdin", terminal)
    assert answer({"queries": None, "output": None}) == ""
    assert [queries for queries, *_ in index.asked] == [["cat"], ["dog"]]
    said = capsys.readouterr().out
    assert said.startswith("an index; an empty line ends\n> 0.5000  one two")
    assert said.count("> ") == 3


@pytest.mark.parametrize(
    ("is_terminal", "no_colour", "marks"),
    [(True, False, ("\033[1m", "\033[0m")), (True, True, ("[", "]")), (False, False, ("[", "]"))],
)
def test_marks_are_bold_on_a_terminal_with_colours(random_model, monkeypatch, is_terminal, no_colour, marks):
    monkeypatch.setattr(module, "mark_best", lambda model, query, texts, left, right: [f"{left}{t}{right}" for t in texts])
    found = Answers(Index(xswe.load(random_model)), FileSearchConfig(), hits=TWO[:1])
    monkeypatch.setattr(module, "search_file", lambda **given: found)
    screen = io.StringIO()
    screen.isatty = lambda: is_terminal
    monkeypatch.setattr("sys.stdout", screen)
    monkeypatch.setattr("sys.stdin", io.StringIO())
    monkeypatch.setenv("NO_COLOR", "1") if no_colour else monkeypatch.delenv("NO_COLOR", raising=False)
    assert answer({"queries": "q", "output": None}) == "0.5000  {0}one two{1}\n0.2500  {0}two{1}".format(*marks)


def test_without_a_terminal_queries_are_read_or_given(monkeypatch):
    given = []
    found = Answers(Index(), FileSearchConfig(mark=False), hits=TWO)
    monkeypatch.setattr(module, "search_file", lambda **settings: given.append(settings) or found)
    monkeypatch.setattr("sys.stdin", io.StringIO())
    assert answer({"queries": None, "output": None}) == str(found)
    assert answer({"queries": "cat", "output": "a.tsv"}) == str(found)
    assert [settings["queries"] for settings in given] == ["-", "cat"]


@pytest.mark.parametrize(
    ("settings", "folder", "file", "written", "reranks", "refused"),
    [
        ({"candidates": 4}, None, "a.txt", False, False, "candidates does nothing without rerank="),
        ({"candidates": 4}, None, "a.txt", False, True, ""),
        ({"language": "de"}, None, "a.txt", False, False, "language does nothing without split=true"),
        ({"language": "de", "split": True}, None, "a.txt", False, False, ""),
        ({"language": "de"}, None, None, False, False, "language does nothing without split=true"),
        ({"method": "binary"}, "there", "a.txt", False, False, "method does nothing to .*there, which is there"),
        ({"method": "binary"}, "new", "a.txt", False, False, ""),
        ({"storage": "int8"}, "there", None, False, False, "storage does nothing to"),
        ({"rescored": 9}, None, "a.txt", False, False, "rescored does nothing without method=binary"),
        ({"rescored": 9, "method": "binary"}, None, "a.txt", False, False, ""),
        ({"rescored": 9}, "there", None, False, False, ""),
        ({"split": True}, "there", None, False, False, "split does nothing without input="),
        ({"mark": False}, None, "a.txt", True, False, "mark does nothing with output="),
        ({"mark": False}, None, "a.txt", False, False, ""),
    ],
)
def test_settings_that_would_be_ignored_are_refused(tmp_path, settings, folder, file, written, reranks, refused):
    (tmp_path / "there").mkdir()
    place = None if folder is None else str(tmp_path / folder)
    if refused:
        with pytest.raises(ConfigError, match=refused):
            _check(FileSearchConfig(**settings), place, file, written, reranks)
    else:
        _check(FileSearchConfig(**settings), place, file, written, reranks)
