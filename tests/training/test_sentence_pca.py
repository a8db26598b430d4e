from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from tests.conftest import Later
from xswe.errors import ConfigError
from xswe.io.ragged import Bags
from xswe.model.static import pool

base, decomposition, checks = (Later(f"sklearn.{name}") for name in ("base", "decomposition", "utils.estimator_checks"))
reduction = Later("xswe.training.sentence_pca")


@pytest.fixture
def sentences():
    rng = np.random.default_rng(0)
    return (rng.normal(size=(500, 24)) * np.linspace(3, 0.1, 24) + 5).astype(np.float32)


def test_equals_scikit_learn_up_to_sign(sentences):
    ours, theirs = (
        reduction.SentencePCA(drop=3, dim=10).fit(sentences),
        decomposition.PCA(24).fit(sentences.astype(np.float64)),
    )
    np.testing.assert_allclose(ours.mean_, theirs.mean_, atol=1e-6)
    np.testing.assert_allclose(ours.explained_variance_, theirs.explained_variance_, rtol=1e-6)
    np.testing.assert_allclose(np.abs(ours.components_), np.abs(theirs.components_[3:13]), atol=1e-5)
    assert ours.explained_variance_ratio_.sum() == pytest.approx(1)
    np.testing.assert_allclose(np.abs(ours.transform(sentences)), np.abs(theirs.transform(sentences)[:, 3:13]), atol=1e-4)


def test_streamed_blocks_equal_the_whole(sentences):
    whole = reduction.SentencePCA(drop=1, dim=5).fit(sentences)
    streamed = reduction.SentencePCA(drop=1, dim=5).fit(
        iter([sentences[:7], sentences[7:7], sentences[7:300], sentences[300:]])
    )
    np.testing.assert_allclose(whole.components_, streamed.components_, atol=1e-9)
    assert streamed.n_samples_seen_ == 500


def test_components_are_orthonormal_and_dropped_directions_vanish(sentences):
    pca = reduction.SentencePCA(drop=2, dim=20).fit(sentences)
    np.testing.assert_allclose(pca.components_ @ pca.components_.T, np.eye(20), atol=1e-12)
    dropped = decomposition.PCA(2).fit(sentences.astype(np.float64)).components_
    back = pca.transform(sentences) @ pca.components_
    assert np.abs(back @ dropped.T).max() < 1e-4


def test_mean_pooling_commutes_with_the_projection(sentences):
    rng = np.random.default_rng(1)
    words = rng.normal(size=(30, 24)).astype(np.float32)
    pca = reduction.SentencePCA(drop=1, dim=8).fit(sentences)
    bags = Bags.of([rng.integers(0, 30, 5).tolist() for _ in range(9)])
    first = pool(pca.transform(words), bags, normalise=False)
    np.testing.assert_allclose(first, pca.transform(pool(words, bags, normalise=False)), atol=1e-5)


def test_signs_are_fixed(sentences):
    one, two = reduction.SentencePCA(0, 24).fit(sentences), reduction.SentencePCA(0, 24).fit(sentences[::-1].copy())
    np.testing.assert_allclose(one.components_, two.components_, atol=1e-6)
    biggest = one.components_[np.arange(24), np.abs(one.components_).argmax(1)]
    assert (biggest > 0).all()


@pytest.mark.parametrize(("width", "drop"), [(768, 7), (256, 2), (99, 0)])
def test_auto_drops_a_hundredth_of_the_dimensions(width, drop):
    rows = np.random.default_rng(2).normal(size=(20, width))
    assert reduction.SentencePCA(dim=4).fit(rows).drop_ == drop


def test_estimator_contract():
    pca = reduction.SentencePCA(drop=2, dim=6)
    assert pca.get_params() == {"drop": 2, "dim": 6}
    assert base.clone(pca).get_params() == pca.get_params()
    assert "drop=2" in repr(pca)


def test_widths_that_do_not_fit_name_the_largest_that_does(sentences):
    with pytest.raises(ConfigError, match="set dim=20 or less"):
        reduction.SentencePCA(drop=4, dim=21).fit(sentences)
    with pytest.raises(ConfigError, match="more text"):
        reduction.SentencePCA(dim=2).fit(iter([sentences[:1]]))
    with pytest.raises(ValueError, match="minimum of 2 is required"):
        reduction.SentencePCA(dim=2).fit(sentences[:1])
    assert reduction.SentencePCA().fit(sentences).components_.shape == (24, 24)
    assert reduction.SentencePCA().fit(np.tile(sentences, 20)).components_.shape == (256, 480)


@pytest.mark.parametrize("settings", [{}, {"drop": 0, "dim": 1}])
def test_it_is_an_estimator_of_scikit_learn(settings):
    found = [
        one["status"] for one in checks.check_estimator(reduction.SentencePCA(**settings))
    ]  # which raises what one finds
    assert set(found) <= {"passed", "skipped"}
    assert found.count("passed") > 30


def test_columns_have_names_and_tables_stay_tables(sentences):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(sentences.astype(np.float64), columns=[f"d{k}" for k in range(24)])
    pca = reduction.SentencePCA(drop=2, dim=3).fit(frame)
    assert pca.feature_names_in_.tolist() == list(frame.columns)
    assert pca.get_feature_names_out().tolist() == ["sentencepca0", "sentencepca1", "sentencepca2"]
    made = pca.set_output(transform="pandas").transform(frame)
    assert list(made.columns) == ["sentencepca0", "sentencepca1", "sentencepca2"]
    np.testing.assert_array_equal(made.to_numpy(), pca.set_output(transform="default").transform(frame))
    with pytest.raises(ValueError, match="feature names"):
        pca.transform(frame[frame.columns[::-1]])
    with pytest.raises(ValueError, match="infinity"):
        reduction.SentencePCA().fit(iter([sentences, np.full((2, 24), np.inf)]))


def test_without_scikit_learn_the_reduction_says_what_to_install_and_training_is_there():
    program = (
        "import sys\n"
        "sys.modules['sklearn'] = None\n"
        "import xswe, xswe.training.train\n"
        "from xswe.errors import DependencyError\n"
        "try:\n    import xswe.training.sentence_pca\n"
        "except DependencyError as error:\n    print(error)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "pip install 'xswe[train]'" in done.stdout
