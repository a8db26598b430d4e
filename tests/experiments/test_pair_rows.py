"""eval/experiments/pair_rows.py: rows of pairs of units, and translations made wrong."""

from __future__ import annotations

import random

import numpy as np
import pytest
from tokenizers import Tokenizer, models, pre_tokenizers

from tests.conftest import eval_script
from xswe.io.ragged import Bags
from xswe.model.bigrams import frequent_bigrams
from xswe.model.static import StaticModel
from xswe.text.subwords import SubwordUnits
from xswe.training.objective import Objective
from xswe.training.pairs import ParallelBags
from xswe.training.refine import RefineConfig

rows = eval_script("experiments.pair_rows")
WORDS = ("dog", "bites", "man", "cat")


def units():
    tokenizer = Tokenizer(models.Unigram([("<unk>", -9.0), *((f"▁{word}", -1.0) for word in WORDS)], unk_id=0))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    return SubwordUnits(tokenizer, "subwords", ("en", "de"))


def test_bigrams_alone_learn_from_contrasts_while_units_stay():
    own = units()
    texts = ["dog bites man", "man bites dog"]
    alone = np.random.default_rng(1).normal(size=(len(own), 8)).astype(np.float32)
    bigrams = frequent_bigrams([own.bags(texts * 5)], len(own), 8)
    start = np.concatenate([alone, np.zeros((len(bigrams), 8), np.float32)])
    triples = rows.Contrasts(own.bags([*texts, *texts, *texts[::-1]]), 1.0)
    config = RefineConfig(max_steps=30, batch_size=2, learning_rate=0.05)
    bitext = ParallelBags(*[own.bags(texts)] * 2)
    table = rows.learnt(start, [bitext], config, Objective(), triples, fixed=len(own), bigrams=bigrams)
    np.testing.assert_array_equal(table[: len(own)], alone)
    assert np.prod(StaticModel(own, table, bigrams=bigrams).encode(texts), axis=0).sum() < 0.9


def test_the_gradient_of_contrasts_is_that_of_their_loss():
    draw = np.random.default_rng(2)
    unit = draw.normal(size=(12, 5)) / 4
    loss = rows.Contrasts(Bags.of([[0]] * 12), 0.7, temperature=0.3)
    _, gradient = loss(unit, np.zeros(4))
    for _ in range(5):
        step = draw.normal(size=unit.shape)
        change = (loss(unit + 1e-5 * step, np.zeros(4))[0] - loss(unit - 1e-5 * step, np.zeros(4))[0]) / 2e-5
        assert change == pytest.approx(float((gradient * step).sum()), rel=1e-4)


@pytest.mark.parametrize(
    ("language", "text", "wrong"),
    [
        ("en", "She can swim.", "She can not swim."),
        ("en", "She cannot swim.", "She can swim."),
        ("de", "Das ist nicht wahr.", "Das ist wahr."),
        ("de", "Ich habe einen Hund.", "Ich habe keinen Hund."),
        ("zh", "她喜欢冬天。", "她不喜欢冬天。"),
        ("ja", "手紙を見ました。", "手紙を見ませんでした。"),
        ("en", "Run!", None),
    ],
)
def test_a_negation_is_put_in_or_taken_out(language, text, wrong):
    assert rows.negated(text, language) == wrong


@pytest.mark.parametrize(
    ("language", "text", "wrong"),
    [
        ("en", "The goat chased the horse.", "The horse chased the goat."),
        ("en", "The goat chased him.", None),
        ("de", "Gestern biss der Hund den Mann.", "Gestern biss der Mann den Hund."),
        ("ja", "犬が猫を見た。", "猫が犬を見た。"),
    ],
)
def test_nouns_change_places(language, text, wrong):
    assert rows.order_changed(text, language, random.Random(0), lambda _: []) == wrong


def test_the_second_rows_are_those_of_long_sentences_and_repetitions_count_once():
    own = units()
    bags = Bags.of([[1, 2, 1], [2, 2], [3, 1, 2, 3]])
    assert rows.LengthUnits(own, 2).widened(bags).ids.tolist() == [6, 7, 6, 2, 2, 8, 6, 7, 8]
    once = rows.DistinctUnits(own).widened(bags)
    assert once.ids.tolist() == [1, 2, 2, 3, 1, 2]
    assert once.offsets.tolist() == [0, 2, 3, 6]
