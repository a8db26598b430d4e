"""Vectors of texts, made once for equal ones."""

from __future__ import annotations

import numpy as np
import pytest

from xswe.io.ragged import Texts
from xswe.training import teacher_vectors
from xswe.training.teacher_vectors import RowVectors, as_imitated, distinct_texts


def test_distinct_texts_are_the_shortest_first():
    texts = ["bb", "a", "", "ü", "bb", "aa", "a", "c"]
    found, index = distinct_texts(Texts.of(texts))
    assert list(found) == ["", "a", "c", "aa", "bb", "ü"]  # by bytes
    assert [found[int(i)] for i in index] == texts


def test_rows_are_looked_up_and_centred():
    vectors = np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]], np.float16)
    plain = RowVectors(vectors, np.array([2, 0, 2, 1]))
    assert len(plain) == 4
    assert plain[np.array([0, 3])].tolist() == vectors[[2, 1]].astype(np.float32).tolist()
    centre = np.array([1.0, 0.5], np.float32)
    made = RowVectors(vectors, plain.index, centre)[np.arange(4)]
    wanted = vectors[plain.index].astype(np.float32) - centre
    np.testing.assert_allclose(made, wanted / np.linalg.norm(wanted, axis=1, keepdims=True), rtol=1e-6)
    assert RowVectors(centre[None].astype(np.float16), np.zeros(1, int), centre)[np.zeros(1, int)].tolist() == [[0.0, 0.0]]


@pytest.mark.parametrize(("size", "most", "step"), [(5, 5, 1), (6, 5, 2), (10, 5, 2), (11, 5, 3)])
def test_the_mean_is_of_every_so_many_vectors(monkeypatch, size, most, step):
    monkeypatch.setattr(teacher_vectors, "_SAMPLE_SIZE", most)
    vectors = np.random.default_rng(0).normal(size=(size, 3)).astype(np.float16)
    mean = RowVectors(vectors, np.zeros(0, int)).mean()
    np.testing.assert_allclose(mean, vectors[::step].astype(np.float64).mean(0), rtol=1e-6)


@pytest.mark.parametrize("cosine", [0.49, 0.51])
def test_texts_that_are_all_alike_are_told_from_a_half_on(caplog, cosine):
    one = np.array([[cosine**0.5, (1 - cosine) ** 0.5], [cosine**0.5, -((1 - cosine) ** 0.5)]], np.float16)
    given = {"train": [RowVectors(one, np.arange(2))], "development": []}
    assert as_imitated(given, centred=False) == given
    assert caplog.messages == [
        f"the imitated encoder finds any two sentences alike (mean cosine {cosine}); the table will imitate that and be "
        "the worse for it: try objective.distillation_centred=true"
    ] * (cosine > 0.5)
