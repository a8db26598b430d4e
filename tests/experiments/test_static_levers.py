"""eval/experiments/static_levers.py: what is done to tables of several trainings."""

from __future__ import annotations

import numpy as np
import pytest
from tokenizers import Tokenizer, models

from tests.conftest import eval_script
from xswe.errors import ConfigError
from xswe.text.subwords import SubwordUnits

levers = eval_script("experiments.static_levers")


def noisy(common, turns, noise):
    """Tables that are ``common``, turned, and with noise of its size times ``noise`` each."""
    rng, size = np.random.default_rng(5), common.shape
    turned = [common, *(common @ np.linalg.qr(rng.normal(size=size[1:] * 2))[0] for _ in range(turns - 1))]
    return [(table + noise * rng.normal(size=size)).astype(np.float32) for table in turned]


def test_tables_that_lie_elsewhere_are_turned_back_before_their_mean():
    common = np.random.default_rng(4).normal(size=(500, 16))
    tables = noisy(common, 9, 0.3)

    def off(table):
        return np.linalg.norm(table - common) / np.linalg.norm(common)

    # Nine times the noise makes a third of it; not turned, eight of nine tables would be noise altogether.
    assert off(tables[0]) > 0.28
    assert off(levers.averaged(tables)) < 0.15
    assert off(np.mean(tables, axis=0)) > 0.8


def test_tables_that_lie_alike_are_left_as_they_are():
    common = np.random.default_rng(4).normal(size=(500, 16))
    tables = [(common + 0.01 * np.random.default_rng(k).normal(size=common.shape)).astype(np.float32) for k in range(3)]
    mean = np.mean(tables, axis=0, dtype=np.float64).astype(np.float32)
    assert levers.averaged(tables).tobytes() == mean.tobytes()


def test_tables_of_other_vocabularies_have_no_mean():
    with pytest.raises(ConfigError, match=r"\(5, 4\) and \(6, 4\)"):
        levers.averaged([np.ones((5, 4), np.float32), np.ones((6, 4), np.float32)])


def test_each_training_has_a_seed_of_its_own(monkeypatch):
    """Three trainings a model: the second model's are 3, 4 and 5."""
    units = SubwordUnits(Tokenizer(models.Unigram([("<unk>", -9.0), ("cat", -1.0)], unk_id=0)), "subwords", ("en", "ja"))
    start = np.eye(2, 4, dtype=np.float32)
    monkeypatch.setattr(levers, "prepared", lambda *_: (None, units, None))
    monkeypatch.setattr(levers.StaticModel, "load", lambda _: None)
    monkeypatch.setattr(levers, "start_of", lambda *_: start)
    monkeypatch.setattr(levers, "trained", lambda table, variation, seed, settings: (table * np.float32(seed), 10.0))
    settings = {"pieces": 0, "vocabulary": "mini", "threads": 1, "runs": "nowhere", "start": "nowhere"}
    model, seconds = levers.varied(levers.Variation(max_steps=1, averaged=3), 1, settings)
    np.testing.assert_array_equal(model.matrix, 4 * start)
    assert 30 <= seconds < 31
