"""The stage of bags, and the tables of languages: rows, and the models that several tables make."""

from __future__ import annotations

import numpy as np
import pytest

from xswe.io.ragged import Bags, Texts
from xswe.text.subwords import SubwordUnits
from xswe.training import bags_stage
from xswe.training.bags_stage import Tables, bags_of, open_bags, open_negatives


@pytest.fixture
def units(tokenizer):
    return SubwordUnits(tokenizer, "teacher", ("en", "de", "ja"))


def test_texts_are_looked_up_in_blocks(units, tmp_path, sample):
    texts = Texts.of([*sample["en"][:1700]] * 5)  # more than a block
    bags_stage._look_up(units, texts, tmp_path, "train.en-de.source", 2)
    made, wanted = Bags.open(tmp_path, "train.en-de.source"), units.bags(list(texts))
    assert len(made) == 8500
    assert made.offsets.tolist() == wanted.offsets.tolist()
    assert made.ids.tolist() == wanted.ids.tolist()


def test_bags_of_a_language_are_those_of_its_sides_in_order(tmp_path):
    sides = {"en-de.source": [[1], [2, 3]], "en-de.target": [[4]], "ja-en.source": [[5]], "ja-en.target": [[6], [7]]}
    sides["de.source"] = [[8, 9]]
    for name, own in sides.items():
        Bags.of(own).save(tmp_path, f"train.{name}")
    pairs = [("en", "de"), ("ja", "en"), ("de",)]
    for code, wanted in {"en": [[1], [2, 3], [6], [7]], "de": [[4], [8, 9]], "ja": [[5]]}.items():
        found = bags_of(tmp_path, pairs, code)
        assert [found.ids[a:b].tolist() for a, b in zip(found.offsets, found.offsets[1:], strict=False)] == wanted
    assert open_bags(tmp_path, "train", ("de",))[1] is None
    assert open_negatives(tmp_path, "train", ("en", "de")) is None
    Bags.of([[3], [4]]).save(tmp_path, "train.en-de.negatives")
    np.save(tmp_path / "train.en-de.bounds.npy", np.array([0, 2, 2]))
    negatives, bounds = open_negatives(tmp_path, "train", ("en", "de"))
    assert (negatives.ids.tolist(), bounds.tolist()) == ([3, 4], [0, 2, 2])


def test_separate_tables_are_stacked_and_averaged_by_counts(units):
    size, rng = len(units.tokens), np.random.default_rng(0)
    tables = Tables(units.languages, units, separate=True)
    bags = Bags.of([[0, 5], [], [size - 1]])
    for k, code in enumerate(units.languages):
        placed = tables.place(bags, code)
        assert placed.ids.tolist() == [k * size + unit for unit in (0, 5, size - 1)]
        assert placed.offsets.tolist() == bags.offsets.tolist()
        assert Tables(units.languages, units, separate=False).place(bags, code) is bags
    matrix = rng.normal(size=(3, size, 4)).astype(np.float32)
    counts = rng.integers(0, 3, (3, size))
    counts[:, :9] = 0  # units that never occur
    whole = tables.model(matrix.reshape(-1, 4), counts).matrix
    models = tables.models(matrix.reshape(-1, 4), counts)
    assert tuple(models) == units.languages
    for unit in (*range(12), size - 1):
        weights = counts[:, unit] if counts[:, unit].any() else np.ones(3)
        mean = np.average(matrix[:, unit], axis=0, weights=weights)
        np.testing.assert_allclose(whole[unit], mean, rtol=1e-5, atol=1e-6)
        for k, code in enumerate(units.languages):
            own = matrix[k, unit] if counts[k, unit] else whole[unit]
            assert models[code].matrix[unit].tolist() == own.tolist()


def test_one_table_is_the_model_of_all_languages(units):
    tables = Tables(units.languages, units, separate=False)
    matrix = np.ones((len(units.tokens), 4), np.float32)
    models = tables.models(matrix, [])
    assert {id(model) for model in models.values()} == {id(models["en"])}
    assert tuple(models) == units.languages
    assert models["en"].matrix is matrix
