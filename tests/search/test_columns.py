"""The conditions of a search, on the numbers of columns, against the same told of plain values."""

from __future__ import annotations

import math

import numpy as np
import pytest

from xswe.errors import ConfigError
from xswe.search.columns import Columns

TYPES = {"n": "int", "x": "float", "lang": "str", "open": "bool"}
METADATA = [
    {"n": 3, "x": 0.5, "lang": "en", "open": True},
    {"n": -(2**63) + 1, "x": -math.inf, "lang": "", "open": False},
    {"n": 2**63 - 1, "x": 2, "lang": "ja", "other": 1},
    None,
    {"n": None, "x": None, "lang": None, "open": None},
    {"n": 0, "x": 0.0, "lang": "EN", "open": True},
]


def chosen(**where):
    """The places of the metadata that meet the conditions."""
    columns = Columns(TYPES)
    arrays = columns.arrays(METADATA, len(METADATA), 0)
    assert {name: (array.dtype, array.shape[1:]) for name, array in arrays.items()} == columns.files()
    return np.flatnonzero(columns.chosen(where, arrays.__getitem__)).tolist()


def test_a_value_a_range_a_choice_and_none_are_met_by_those_that_have_them():
    assert chosen(n=3) == [0]
    assert chosen(n=2**63 - 1) == [2]
    assert chosen(n=None) == chosen(x=None) == chosen(lang=None) == [3, 4]
    assert chosen(open=None) == [2, 3, 4]
    assert chosen(n=(0, 3)) == [0, 5]
    assert chosen(n=(None, 0)) == [1, 5]
    assert chosen(n=(None, None)) == chosen(x=(None, None)) == [0, 1, 2, 5]
    assert chosen(x=(0.5, None)) == [0, 2]
    assert chosen(x=2) == chosen(x={2, 7}) == [2]
    assert chosen(x=[0, None]) == chosen(n=[0, None]) == [3, 4, 5]
    assert chosen(lang={"en", ""}) == [0, 1]
    assert chosen(lang=np.array(["EN", "zh"])) == [5]
    assert chosen(open=False) == [1]
    assert chosen(open=True, lang="en") == [0]
    assert chosen(n=set()) == []


@pytest.mark.parametrize("value", [-(2**63), 2**63, True, 1.0, "1"])
def test_a_value_that_a_column_cannot_hold_is_refused_with_its_place(value):
    with pytest.raises(ConfigError, match=r"n: .* of sentence 8 is not of type int, which the column has"):
        Columns({"n": "int"}).arrays([{"n": 1}, {"n": value}], 2, 7)


def test_the_columns_of_a_database_are_those_that_were_noted():
    assert Columns.of(Columns(TYPES).noted()).types == TYPES
    assert Columns.of(None).types == Columns.of("").types == {}
    assert {name: array.tolist() for name, array in Columns({"n": "int"}).arrays(None, 2, 0).items()} == {
        "column0": [-(2**63)] * 2
    }
