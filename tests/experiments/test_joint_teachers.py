"""eval/experiments/joint_teachers.py: tables of several teachers are made comparable before they stand side by side."""

from __future__ import annotations

import numpy as np
import pytest

from tests.conftest import eval_script
from xswe.io.ragged import Bags
from xswe.model.static import pool

joint = eval_script("experiments.joint_teachers")


def test_sentences_of_each_table_are_centred_and_vary_alike_and_what_has_no_vector_stays_without():
    draw = np.random.default_rng(3)
    bags = Bags.of([draw.integers(1, 9, size).tolist() for size in range(1, 12)])
    for scale, shift in ((1.0, 0.0), (30.0, 5.0)):
        matrix = (scale * draw.normal(size=(9, 4)) + shift).astype(np.float32)
        matrix[0] = 0
        found = joint.levelled(matrix, bags)
        sentences = pool(found, bags, normalise=False)
        np.testing.assert_allclose(sentences.mean(0), 0, atol=1e-5)
        assert (sentences**2).sum(1).mean() == pytest.approx(1, rel=1e-4)
        assert not found[0].any()
