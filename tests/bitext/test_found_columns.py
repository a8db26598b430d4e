"""Which columns of a table hold the texts."""

from __future__ import annotations

import pytest

from xswe.bitext.tables import csv_separator, find_columns

ANY = (0, 1)  # no columns are named


@pytest.mark.parametrize(
    ("names", "languages", "found"),
    [
        ("id en de", "en de", [1, 2]),
        ("id en de", "de en", [2, 1]),
        ("id en_GB zh-Hans", "en zh", [1, 2]),
        ("en_GB en de", "en de", [1, 2]),  # the name itself before one with a locale
        ("id en de", "", [1, 2]),
        ("en de ja", "", None),  # which of the three?
        ("en de source target", "en ja", [2, 3]),
        ("en source target", "", [1, 2]),
        ("source target", "en de", [0, 1]),
        ("de text", "en de", None),
        ("positive x anchor", "en en", [2, 0]),
        ("query positive negative_2 negative_1", "en en", [0, 1, 3, 2]),
        ("query anchor positive", "", [1, 2]),
        ("positive negative", "en en", None),
        ("positive source target", "en en", [1, 2]),
        ("anchor positive source target", "en de", [2, 3]),  # pairs of two languages have no anchor
        ("en de anchor positive", "", [0, 1]),
        ("en de anchor positive", "en en", [2, 3]),
        ("target", "", None),
        ("", "en de", None),
    ],
)
def test_columns_without_names_are_found_by_languages_or_their_usual_names(names, languages, found):
    assert find_columns(names.split(), ANY, languages.split()) == found


@pytest.mark.parametrize(
    ("columns", "found"),
    [
        ((2, 0), [2, 0]),
        ((1, 2), [1, 2]),
        ((0, 2), [0, 2]),
        ((0, 3), None),
        (("c", "a"), [2, 0]),
        (("a", 2), [0, 2]),
        (("a", "d"), None),
        (("a", "b", "c"), [0, 1, 2]),
        ((1, 2, 0), [1, 2, 0]),
    ],
)
def test_columns_are_found_by_their_names_or_numbers(columns, found):
    assert find_columns(["a", "b", "c"], columns, ()) == found


def test_the_first_two_numbers_stand_for_the_usual_names_with_negatives_too():
    assert find_columns(["negative", "anchor", "positive"], (0, 1, 2), ("en", "en")) == [1, 2, 0]
    assert find_columns(["negative", "anchor", "positive"], (0, 2, 1), ("en", "en")) == [0, 2, 1]


def test_numbers_do_not_count_among_names_that_have_no_order():
    assert find_columns(["a", "source", "target"], (2, 0), (), by_number=False) == [1, 2]
    assert find_columns(["a", "source", "target"], ("a", "source"), (), by_number=False) == [0, 1]


@pytest.mark.parametrize(
    ("header", "separator"),
    [("a,b", ","), ("a;b", ";"), ("a\tb", "\t"), ("a", ","), ('"a,b,c";d', ";"), ("a;b,c", ","), ("a;b;c,d", ";")],
)
def test_a_header_tells_the_separator(header, separator):
    assert csv_separator(header) == separator
