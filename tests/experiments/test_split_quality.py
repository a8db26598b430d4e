"""Sentences joined and cut again: what is counted, and that real ones are found again."""

from __future__ import annotations

import pytest

from tests.conftest import eval_script

FLOORS = {  # least precision and recall of 3,000 sentences each; lines of news may hold several sentences
    "news en": (0.95, 0.995),
    "news de": (0.96, 0.995),
    "news zh": (0.93, 0.96),
    "everyday en": (0.995, 0.995),
    "everyday de": (0.995, 0.999),
    "everyday ja": (0.99, 0.999),
    "wikipedia ja": (0.99, 0.99),
    "documentation en": (0.98, 0.99),
}


@pytest.fixture(scope="module")
def script():
    pytest.importorskip("sentencex")
    return eval_script("experiments.split_quality")


def test_cuts_that_are_missed_and_those_too_many_are_counted(script):
    lines = ["He left.", 'She said "Never."', "20 came.", "He works for Acme Inc.", "It rains."]
    found = script.measure(lambda text, language: [8, 12, len(text)], lines, "en", 5)
    assert found["cuts"] == 4
    assert found["recall"] == 0.25
    assert found["precision"] == 0.5
    assert found["missed"] == {"quote": 1, "short word": 2}  # after "Never.", came. and Inc.
    assert found["extra"] == {"other": 1}
    assert script.measure(script.by_xswe, lines[:3], "en", 3)["f1"] == 1
    assert list(script.joined(["甲。", "乙。"], "zh", 2)) == [("甲。乙。", {2})]


QUICK = ("documentation en", "everyday ja", "news de")
OTHERS = sorted({*FLOORS} - {*QUICK})


@pytest.mark.parametrize("name", [*QUICK, *(pytest.param(name, marks=pytest.mark.slow) for name in OTHERS)])
def test_real_sentences_are_found_again(script, name):
    file, column, language, _ = script.SETS[name]
    path = script.DATA / "train" / f"{file}.tsv.gz"
    if not path.is_file():
        pytest.skip("XSWE_DATA names no folder with bitext")
    found = script.measure(script.by_xswe, script.lines_of(path, column, 3000), language, 5)
    assert found["precision"] > FLOORS[name][0], found
    assert found["recall"] > FLOORS[name][1], found
