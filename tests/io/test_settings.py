"""Settings from plain values: what is converted, what is refused, and in which words."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import pytest

from xswe.errors import ConfigError
from xswe.io.choices import chosen, update
from xswe.io.settings import build, changed, check_choice, convert, defaults, for_all, refuse_unused, suggestion

Fruit = Literal["apple", "pear"]


@dataclass(frozen=True)
class Inner:
    size: int = 3
    share: float = 0.5


@dataclass(frozen=True)
class Outer:
    name: str = "a"
    fruit: Fruit = "apple"
    deep: bool = False
    limit: int | None = None
    either: int | str = 0
    many: tuple[int, ...] = ()
    table: dict[str, float] = field(default_factory=dict)
    inner: Inner = field(default_factory=Inner)
    perhaps: Inner | None = None


@pytest.mark.parametrize(
    ("hint", "value", "found"),
    [
        (int, 3, 3),
        (float, 3, 3.0),
        (float, 0.5, 0.5),
        (str, "3", "3"),
        (bool, True, True),
        (int | None, None, None),
        (int | None, 3, 3),
        (int | str, "x", "x"),
        (str | int, 4, 4),
        (tuple[float, ...], [1, 2.5], (1.0, 2.5)),
        (tuple[int, ...], (), ()),
        (dict[str, float], {1: 2}, {"1": 2.0}),
        (Fruit, "pear", "pear"),
        (Inner, {"size": 4}, Inner(4)),
        (Inner, Inner(5), Inner(5)),
        (Inner | None, {"share": 1}, Inner(share=1.0)),
    ],
)
def test_a_value_of_the_right_type_is_taken(hint, value, found):
    made = convert(hint, value, "x")
    assert (made, type(made)) == (found, type(found))


@pytest.mark.parametrize(
    ("hint", "value", "message"),
    [
        (int, "3", "x='3': expected int"),
        (int, True, "x=True: expected int"),
        (int, 3.0, "x=3.0: expected int"),
        (float, True, "x=True: expected float"),
        (float, "0.5", "x='0.5': expected float"),
        (str, 3, "x=3: expected str"),
        (bool, 1, "x=1: expected bool"),
        (float, float("inf"), "x=inf: give a finite number"),
        (float | None, float("nan"), "x=nan: give a finite number"),
        (float | str, -float("inf"), "x=-inf: give a finite number"),
        (tuple[float, ...], [1.0, float("inf")], "x=inf: give a finite number"),
        (dict[str, float], {"a": float("nan")}, "x=nan: give a finite number"),
        (Inner, {"share": float("inf")}, r"x\.share=inf: give a finite number"),
        (int, None, "x=None: expected int"),
        (int | None, "a", "x='a': expected int"),
        (int | str, 0.5, "x=0.5: expected int"),
        (tuple[int, ...], "ab", r"x='ab': expected a list, as in x=\[a,b\]"),
        (tuple[int, ...], [1, "b"], "x='b': expected int"),
        (dict[str, float], [1], r"x=\[1\]: expected a mapping, as in x=\{a:1\}"),
        (dict[str, float], {"a": "b"}, "x='b': expected float"),
        (Inner, 3, r"x=3: expected a mapping, as in x=\{a:1\}"),
        (Inner, {"sise": 3}, r"x\.sise: there is no such setting; did you mean size\?"),
        (Fruit, "plum", r"x='plum': choose one of apple, pear$"),
        (Fruit, "peer", r"x='peer': choose one of apple, pear; did you mean pear\?"),
    ],
)
def test_a_value_of_another_type_is_refused(hint, value, message):
    with pytest.raises(ConfigError, match=message):
        convert(hint, value, "x")


def test_a_dataclass_is_made_of_what_is_given():
    assert build(Outer, {}, "o") == Outer()
    made = build(Outer, {"many": [1], "inner": {"size": 9}, "perhaps": {}, "limit": 2}, "o")
    assert made == Outer(many=(1,), inner=Inner(9), perhaps=Inner(), limit=2)
    with pytest.raises(ConfigError, match=r"^o\.inner\.size='a': expected int"):
        build(Outer, {"inner": {"size": "a"}}, "o")
    with pytest.raises(ConfigError, match=r"^zzz: there is no such setting; it has name, fruit, deep"):
        build(Outer, {"zzz": 1}, "")
    assert defaults(Inner) == {"size": 3, "share": 0.5}


def test_fields_are_changed_by_name_and_within_others():
    assert changed(Outer(), {"name": "b", "inner": {"size": 7}}, "verb") == Outer("b", inner=Inner(7))
    assert changed(Outer(), {"inner": Inner(8)}, "verb").inner == Inner(8)
    assert changed(Outer(), {"table": {"a": 1.0}}, "verb").table == {"a": 1.0}
    with pytest.raises(ConfigError, match=r"^nam: there is no such setting; did you mean name\?"):
        changed(Outer(), {"nam": 1}, "verb")
    with pytest.raises(ConfigError, match=r"^share=nan: give a finite number"):
        changed(Outer(), {"inner": {"share": float("nan")}}, "verb")
    with pytest.raises(ConfigError, match=r"^zzz: there is no such setting; verb's inner has size, share"):
        changed(Outer(), {"inner": {"zzz": 1}}, "verb")


def test_what_nothing_looks_at_must_be_as_usual():
    unused = {"without deep": ["limit", "table"], "with pears": ["inner"]}
    refuse_unused(Outer(name="x", many=(1,)), unused)
    for given, message in (
        ({"limit": 3}, "^limit does nothing without deep: leave it out"),
        ({"table": {"a": 1.0}}, "^table does nothing without deep"),
        ({"inner": Inner(4)}, "^inner does nothing with pears"),
    ):
        with pytest.raises(ConfigError, match=message):
            refuse_unused(Outer(**given), unused)
    with pytest.raises(ConfigError, match=r"^part\.limit does nothing"):
        refuse_unused(Outer(limit=3), unused, "part")


def test_every_choice_needs_what_does_it_and_no_other_has_it():
    assert for_all(Fruit, {"pear": 1, "apple": 2}) == {"pear": 1, "apple": 2}
    for table in ({"pear": 1}, {"pear": 1, "apple": 2, "plum": 3}):
        with pytest.raises(TypeError, match="each choice needs an entry"):
            for_all(Fruit, table)
    check_choice("fruit", "pear", Fruit)
    with pytest.raises(ConfigError, match=r"^a=1: choose one of '', b$"):
        check_choice("a", 1, Literal["", "b"])
    assert suggestion("sice", ["size", "share"]) == "; did you mean size?"
    assert suggestion("zzz", ["size"]) == ""


def test_nested_values_are_changed_in_place():
    values = {"a": {"b": 1, "c": {"d": 2}}, "e": 3, "f": [1]}
    given = {"b": {"x": [1]}}
    update(values, {"a.c.d": 5, "a.b": 6, "e": {"x": 1}, "f": [2], "g.h": 7, "i": Inner(1)})
    assert values == {"a": {"b": 6, "c": {"d": 5}}, "e": {"x": 1}, "f": [2], "g": {"h": 7}, "i": {"size": 1, "share": 0.5}}
    update(values, {"i": Inner(2, 0.25), "a": given})
    assert (values["i"], values["a"]) == ({"size": 2, "share": 0.25}, {"b": {"x": [1]}, "c": {"d": 5}})
    given["b"]["x"].append(2)
    assert values["a"]["b"] == {"x": [1]}


def test_choices_of_a_list_of_defaults():
    assert chosen(["_self_", {"override /teacher": "none"}, {"/corpus/clean": "off", "pair": "en-de"}]) == {
        **{"teacher": "none", "corpus/clean": "off", "pair": "en-de"}
    }


def test_settings_of_a_search_are_those_of_the_section_of_neighbours():
    @dataclass(frozen=True)
    class Search:
        threads: int = 1
        method: str = "exact"
        most: int = 3

    @dataclass(frozen=True)
    class Work:
        size: int = 1
        neighbours: Search = field(default_factory=Search)

    assert changed(Work(), {"size": 2, "threads": 4}, "work") == Work(2, Search(4))
    assert changed(Work(), {"method": "a", "neighbours": Search(2, "b", 5)}, "work") == Work(1, Search(2, "a", 5))
    assert changed(Work(), {"neighbours": {"most": 5}}, "work") == Work(1, Search(1, "exact", 5))
    with pytest.raises(ConfigError, match=r"^most: there is no such setting; work has size, neighbours, threads, method$"):
        changed(Work(), {"most": 2}, "work")
    with pytest.raises(ConfigError, match=r"^threads: there is no such setting"):
        changed(Inner(), {"threads": 2}, "inner")
