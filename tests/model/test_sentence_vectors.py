"""A model as a transformer of scikit-learn."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import xswe
from tests.conftest import Later

base, pipeline, checks = (Later(f"sklearn.{name}") for name in ("base", "pipeline", "utils.estimator_checks"))
step = Later("xswe.model.sentence_vectors")
reduction = Later("xswe.training.sentence_pca")

TEXTS = ["A cat sleeps.", "Der Zug hat Verspätung.", ""]


@pytest.fixture(scope="module")
def vectors():
    return xswe.load("mini").encode(TEXTS)


def test_scikit_learns_own_checks():
    done = checks.check_estimator(step.SentenceVectors())  # of an estimator of texts they are few
    assert {one["status"] for one in done} == {"passed"}


@pytest.mark.parametrize("kind", [list, np.array, lambda texts: pytest.importorskip("pandas").Series(texts)])
def test_texts_of_any_kind_become_the_models_vectors(kind, vectors):
    made = step.SentenceVectors("mini").fit_transform(kind(TEXTS))
    assert made.dtype == np.float32
    np.testing.assert_array_equal(made, vectors)


def test_columns_have_names_and_tables_are_made(vectors):
    pytest.importorskip("pandas")
    made = step.SentenceVectors().set_output(transform="pandas").fit_transform(TEXTS)
    assert list(made.columns)[::255] == ["sentencevectors0", "sentencevectors255"]
    np.testing.assert_array_equal(made.to_numpy(), vectors)


def test_copies_and_stored_ones_hold_no_model(vectors):
    whole = pipeline.make_pipeline(step.SentenceVectors(), reduction.SentencePCA(drop=0, dim=2)).fit(TEXTS)
    stored = pickle.dumps(whole[0])
    assert len(stored) < 2000
    np.testing.assert_array_equal(pickle.loads(stored).transform(TEXTS), vectors)
    assert "_model" not in vars(base.clone(whole[0]))
    assert whole.transform(TEXTS).shape == (3, 2)
    assert base.clone(whole).set_params(sentencevectors__threads=2)[0].get_params() == {"model": "mini", "threads": 2}


def test_another_model_of_the_same_object_is_loaded(tmp_path, vectors):
    model = xswe.load("mini")
    model.quantize("float32").truncate(8).save(tmp_path / "short")
    first = step.SentenceVectors()
    assert first.transform(TEXTS).shape == vectors.shape
    assert first.set_params(model=str(tmp_path / "short")).transform(TEXTS).shape == (3, 8)


@pytest.mark.parametrize(
    ("texts", "problem"),
    [("A cat.", "one text"), ([["A cat."]], "2 dimensions"), (["A cat.", float("nan")], "row 1 is nan"), ([None], "row 0")],
)
def test_what_is_no_list_of_texts_is_a_value_error(texts, problem):
    for call in (step.SentenceVectors().fit, step.SentenceVectors().transform):
        with pytest.raises(ValueError, match=problem):
            call(texts)
