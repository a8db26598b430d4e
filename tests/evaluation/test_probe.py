"""The minimal pairs of eval/, and the shares that its script counts."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from tests.conftest import eval_script


@pytest.fixture(scope="module")
def probe():
    return eval_script("experiments.probe")


def test_there_are_sixty_lines_a_kind_and_no_two_alike(probe):
    lines = probe.read_pairs()
    assert Counter(line["kind"] for line in lines) == dict.fromkeys(probe.KINDS, 60)
    for code in probe.LANGUAGES:
        columns = [(line[code], line[f"{code}_paraphrase"], line[f"{code}_other"]) for line in lines]
        assert all(len(set(texts)) == 3 and all(texts) for texts in columns)
        assert len(set(columns)) == len(lines)
    assert all(line["en"].isascii() and not line["zh"].isascii() and not line["ja"].isascii() for line in lines)


def test_equal_cosines_are_not_told_apart(probe):
    right, wrong = np.array([0.9, 0.5, 0.5], np.float32), np.array([0.1, 0.5, 0.6], np.float32)
    assert probe.shares(right, wrong, ["numbers", "roles", "roles"])["numbers"] == 1.0
    assert probe.shares(right, wrong, ["numbers", "roles", "roles"])["roles"] == 0.0
    assert probe.shares(right, wrong, ["numbers", "roles", "roles"])["all"] == pytest.approx(1 / 3)


class Letters:
    """An encoder that knows how often each letter stands in a text, in English alone."""

    name, dim, languages = "letters", 128, ("en",)

    def encode(self, texts):
        out = np.array([np.bincount([ord(c) % 128 for c in text.lower()], minlength=128) for text in texts], np.float32)
        return out / np.linalg.norm(out, axis=1, keepdims=True)


def test_a_model_is_asked_in_its_own_languages_and_order_is_lost_on_letters(probe):
    rows = {row["question"]: row for row in probe.probe(Letters(), probe.read_pairs())}
    assert set(rows) == {"paraphrase", "strict"}  # there is no German side for English to be translated from
    assert rows["paraphrase"]["roles"] == 0.0
    assert rows["paraphrase"]["numbers"] > 0.5 > rows["strict"]["all"]
