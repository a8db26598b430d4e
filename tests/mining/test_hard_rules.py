"""Hard rules of mining, at the limits of each and against the same told one pair at a time."""

from __future__ import annotations

import numpy as np
import pytest

from xswe.errors import ConfigError
from xswe.mining import hard_rules
from xswe.mining.hard_rules import (
    FilterConfig,
    Traits,
    filter_candidates,
    identity_key,
    number_key,
    reason_to_drop,
)
from xswe.mining.margin import Candidates
from xswe.text.numbers import same_numbers


@pytest.mark.parametrize(
    ("text", "least", "language", "reason"),
    [
        ("", 0, None, "blank"),
        ("abc", 3, None, None),
        ("abc", 4, None, "too short"),
        ("猫が寝る", 0, "en", "wrong script"),
        ("猫が寝る", 0, "ja", None),
        ("猫が寝る", 0, None, None),
        ("a", 2, "ja", "too short"),
    ],
)
def test_why_a_line_is_left_out(text, least, language, reason):
    assert reason_to_drop(text, FilterConfig(min_characters=least), language) == reason


def test_settings_that_cannot_be():
    for ratio in (0.0, 1.0, 3.5):
        FilterConfig(length_ratio=ratio)
    with pytest.raises(ConfigError, match=r"^length_ratio=0\.99: must be at least 1, or 0 for no limit$"):
        FilterConfig(length_ratio=0.99)
    with pytest.raises(ConfigError, match=r"^min_characters=-1: give a number, 0 for no limit$"):
        FilterConfig(min_characters=-1)
    assert FilterConfig().language(None, "source") is None
    assert FilterConfig(script=True).language("de", "source") == "de"
    needed = r"^script=true needs the languages of the files: set languages=\[en,ja\] \(target missing\)$"
    with pytest.raises(ConfigError, match=needed):
        FilterConfig(script=True).language(None, "target")


def test_the_key_of_numbers():
    assert number_key("no number") == number_key("ohne Zahl, größer") == number_key("") == 0
    assert number_key("3 of 5") == number_key("5 von 3 größeren") != number_key("3 of 6")
    assert number_key("3 of 5", in_order=True) == number_key("3, 5", in_order=True) != number_key("5, 3", in_order=True)
    assert number_key("3 3 5", in_order=True) == number_key("3 5 3", in_order=True)
    assert 0 < number_key("12") < 2**64
    assert number_key("1 2") != number_key("12")


TEXTS = (
    ["A cat", "12 cats", "3 dogs", "a dog and 3 more", "x"],
    ["a  CAT", "12 Katzen", "4 Hunde", "ein Hund und drei mehr", "ein x", "X"],
)


def traits(texts):
    keys = [[key(text) for text in texts] for key in (identity_key, number_key)]
    sizes = np.array([len(text.encode()) for text in texts])
    return Traits(sizes, *(np.array(own, np.uint64) for own in keys), texts)


@pytest.mark.parametrize(
    "config",
    [
        FilterConfig(),
        FilterConfig(identical=False, length_ratio=5.0),  # as long as "x" and "ein x"
        FilterConfig(identical=False, numbers=True),
        FilterConfig(length_ratio=1.2, numbers=True),
        FilterConfig(identical=False),
    ],
)
@pytest.mark.parametrize("block", [1, 2, 100])
def test_candidates_are_ruled_out_by_the_first_rule_that_they_break(monkeypatch, config, block):
    monkeypatch.setattr(hard_rules, "_ROWS", block)
    draw = np.random.default_rng(block)
    lists = []
    for here, there in (TEXTS, TEXTS[::-1]):
        ids = np.argsort(draw.random((len(here), len(there))), axis=1)[:, :4].astype(np.int32)
        ids[draw.random(ids.shape) < 0.2] = -1
        lists += [np.where(ids >= 0, draw.random(ids.shape), -np.inf).astype(np.float32), ids]
    given = Candidates(*lists)
    found, dropped = filter_candidates(given, config, *map(traits, TEXTS))

    def broken(a, b):
        if config.identical and "".join(a.casefold().split()) == "".join(b.casefold().split()):
            return "identical sides"
        sizes = sorted(len(text.encode()) for text in (a, b))
        if config.length_ratio and sizes[1] > config.length_ratio * sizes[0]:
            return "length ratio"
        return "numbers" if config.numbers and not same_numbers(a, b) else None

    counts = {}
    for way, (here, there) in (("forward", TEXTS), ("backward", TEXTS[::-1])):
        wanted = getattr(given, way).copy()
        for row, ids in enumerate(getattr(given, f"{way}_ids").tolist()):
            for place, other in enumerate(ids):
                if other >= 0 and (reason := broken(here[row], there[other])):
                    wanted[row, place] = -np.inf
                    counts[reason] = counts.get(reason, 0) + 1
        np.testing.assert_array_equal(getattr(found, way), wanted)
    assert {name: count for name, count in dropped.items() if count} == counts
    active = {"identical sides": config.identical, "length ratio": config.length_ratio, "numbers": config.numbers}
    assert list(dropped) == [name for name, on in active.items() if on]
    assert found.forward_ids is given.forward_ids
