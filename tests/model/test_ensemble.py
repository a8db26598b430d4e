from __future__ import annotations

import json

import numpy as np
import pytest

import xswe
from xswe.errors import ConfigError, ModelError
from xswe.evaluation.models import open_encoder
from xswe.model.ensemble import Ensemble, fit_weights, load_single
from xswe.model.interchange import read_static
from xswe.model.static import StaticModel
from xswe.text.subwords import SubwordUnits
from xswe.text.words import WordSplitter, WordUnits

TEXTS = ["A cat sleeps on the warm roof.", "Der Zug hat Verspätung.", "the house", "cat", ""]


@pytest.fixture
def pieces(tokenizer):
    units = SubwordUnits(tokenizer, "subwords", ("en", "de", "ja"))
    rng = np.random.default_rng(0)
    return StaticModel(units, rng.normal(size=(len(units.tokens), 16)).astype(np.float32))


@pytest.fixture
def words():
    units = WordUnits(["cat", "house", "roof", "Zug"], WordSplitter(("de", "en"), {}, None), None)
    return StaticModel(units, np.random.default_rng(1).normal(size=(4, 6)).astype(np.float32))


def test_inner_products_are_the_weighted_mean_of_the_parts_cosines(pieces, words):
    model = Ensemble.of([pieces, words], [3.0, 1.0])
    known = TEXTS[:4]
    a, b, both = pieces.encode(known), words.encode(known), model.encode(known)
    np.testing.assert_allclose(both @ both.T, 0.75 * a @ a.T + 0.25 * b @ b.T, atol=1e-5)
    assert (model.dim, model.languages) == (22, ("en", "de"))
    np.testing.assert_array_equal(model.encode(known, threads=2), both)
    np.testing.assert_array_equal(model.encode("cat"), both[3])


def test_a_part_that_knows_nothing_of_a_text_leaves_it_to_the_others(pieces, words):
    model = Ensemble.of([pieces, words])
    vectors = model.encode(["A dog barks.", ""])
    assert np.linalg.norm(vectors, axis=1).tolist() == pytest.approx([1.0, 0.0])
    np.testing.assert_allclose(vectors[0, :16], pieces.encode("A dog barks."), atol=1e-6)


def test_an_ensemble_opens_from_one_folder(pieces, words, tmp_path):
    model = Ensemble.of([pieces, words], [0.6, 0.4], {"note": "x"})
    model.save(tmp_path / "both")
    opened = xswe.load(tmp_path / "both")
    assert isinstance(opened, Ensemble)
    assert (opened.weights, opened.description) == (pytest.approx((0.6, 0.4)), {"note": "x"})
    np.testing.assert_array_equal(opened.encode(TEXTS), model.encode(TEXTS))
    encoder = open_encoder(str(tmp_path / "both"), 1)
    assert (encoder.dim, encoder.parameters) == (22, pieces.matrix.size + words.matrix.size)
    np.testing.assert_array_equal(encoder.encode(TEXTS), model.encode(TEXTS))
    model.save(tmp_path / "both")  # replaces its like
    pieces.save(tmp_path / "one")
    with pytest.raises(ModelError, match="no ensemble"):
        model.save(tmp_path / "one")


def test_a_part_may_share_rows(pieces, words, tmp_path):
    model = Ensemble.of([pieces.share_rows(8), words])
    model.save(tmp_path / "both")
    assert xswe.load(tmp_path / "both").encode(TEXTS).tobytes() == model.encode(TEXTS).tobytes()


@pytest.mark.parametrize("folder", ["../one", "/etc", "part-x", "part-0/../../one"])
def test_a_part_outside_its_folder_is_refused(pieces, words, tmp_path, folder):
    Ensemble.of([pieces, words]).save(tmp_path / "both")
    path = tmp_path / "both" / "config.json"
    config = json.loads(path.read_text())
    config["parts"][0]["folder"] = folder
    path.write_text(json.dumps(config))
    with pytest.raises(ModelError, match="not part-0"):
        xswe.load(tmp_path / "both")


def test_weights_may_be_an_array(pieces, words):
    assert Ensemble.of([pieces, words], np.array([3.0, 1.0])).weights == (0.75, 0.25)


@pytest.mark.parametrize("weights", [[1.0], [1.0, -1.0], [0.0, 0.0], [float("nan"), 1.0]])
def test_weights_that_cannot_work(pieces, words, weights):
    with pytest.raises(ConfigError, match="weights"):
        Ensemble.of([pieces, words], weights)


def test_models_without_a_common_language_are_refused(pieces, tokenizer):
    chinese = StaticModel(SubwordUnits(tokenizer, "subwords", ("zh",)), pieces.matrix)
    with pytest.raises(ConfigError, match="no language in common"):
        Ensemble.of([pieces, chinese])


def test_fitted_weights_find_the_peak():
    peak = np.array([0.55, 0.35, 0.1])
    found = fit_weights(lambda w: -float(((w - peak) ** 2).sum()), 3)
    assert found.sum() == pytest.approx(1.0)
    np.testing.assert_allclose(found, peak, atol=0.05)
    assert fit_weights(lambda w: float(w[1]), 2).tolist() == pytest.approx([0.0, 1.0])


def test_truncation_keeps_the_first_dimensions(pieces):
    short = pieces.truncate(5)
    assert short.dim == 5
    np.testing.assert_array_equal(short.matrix, pieces.matrix[:, :5])
    with pytest.raises(ConfigError, match="16 dimensions"):
        pieces.truncate(17)


def test_model2vec_folders_mean_the_same_to_us(tmp_path, tokenizer):
    static = pytest.importorskip("model2vec").StaticModel
    rng = np.random.default_rng(2)
    size = tokenizer.get_vocab_size()
    mapping, weights = rng.integers(0, 50, size), rng.random(size).astype(np.float32)
    how = {"weights": weights, "token_mapping": mapping, "config": {"model_type": "model2vec"}}
    theirs = static(rng.normal(size=(50, 8)).astype(np.float32), tokenizer, **how)
    theirs.save_pretrained(tmp_path / "m2v")
    ours = read_static(str(tmp_path / "m2v"), ("en",))
    texts = TEXTS[:4]
    expected = theirs.encode(texts)
    expected = expected / np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose((ours.encode(texts) * expected).sum(1), 1.0, atol=1e-6)


def test_wordllamas_package_means_the_same_to_us():
    wordllama = pytest.importorskip("wordllama")
    folder = wordllama.__path__[0]
    theirs = wordllama.WordLlama.load(cache_dir=folder, disable_download=True)
    texts = ["The cat sat on the mat.", "Where is the next station, please?", "A quick brown fox"]
    expected = theirs.embed(texts)
    expected = expected / np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose((read_static("wordllama").encode(texts) * expected).sum(1), 1.0, atol=1e-5)


def test_neighbours_of_an_ensemble_are_by_the_weighted_mean_of_the_cosines():
    whole = xswe.load("mini")
    short = whole.rotate().truncate(16)
    one, other = (
        {near.word: near.score for near in part.neighbours("car", language="de", k=3000)} for part in (whole, short)
    )
    both = {word: 0.75 * one[word] + 0.25 * other[word] for word in one.keys() & other.keys()}
    near = Ensemble.of([whole, short], [3.0, 1.0]).neighbours("car", language="de", k=5)
    assert [one.word for one in near] == sorted(both, key=both.__getitem__, reverse=True)[:5]
    assert near[0].score == pytest.approx(both[near[0].word])


def test_what_no_ensemble_is_made_of_is_said(pieces, words, tmp_path):
    def said(call, *arguments, kind=ConfigError):
        with pytest.raises(kind) as found:
            call(*arguments)
        return str(found.value)

    for parts, weights in (([], []), ([pieces], [1.0, 1.0]), ([pieces], [0.0]), ([pieces, words], [2.0, -1.0])):
        message = f"weights={weights}: give one for each of the {len(parts)} models, none negative, not all 0"
        assert said(Ensemble.of, parts, weights) == message
    assert Ensemble.of([pieces, words], [1.0, 0.0]).weights == (1.0, 0.0)
    model = Ensemble.of([pieces, words], [0.5, 1.5])
    assert repr(model) == f"Ensemble(en-de, 22 dimensions, {{0.25: {pieces}, 0.75: {words}}})"
    model.save(tmp_path / "m")
    path = tmp_path / "m" / "config.json"
    whole = json.loads(path.read_text())
    assert [(part["folder"], part["weight"], part["dim"]) for part in whole["parts"]] == [
        ("part-0", 0.25, 16),
        ("part-1", 0.75, 6),
    ]
    for wrong in ("1", None, True, 0, 1.5):
        path.write_text(json.dumps(whole | {"format_version": wrong}))
        problem = f"{path}: format_version is {wrong!r}, no version; fetch or train the model again"
        assert said(xswe.load, tmp_path / "m", kind=ModelError) == problem
    path.write_text(json.dumps(whole | {"format_version": 2}))
    assert said(xswe.load, tmp_path / "m", kind=ModelError) == f"{path}: format version 2 is newer than 1; upgrade xswe"
    path.write_text(json.dumps(whole | {"parts": [{"folder": "part-0"}]}))
    told = f"{path}: damaged (KeyError('weight')); make the ensemble again"
    assert said(xswe.load, tmp_path / "m", kind=ModelError) == told
    single = said(load_single, tmp_path / "m", kind=ModelError)
    assert single.endswith(
        f"an ensemble, where one table of vectors is needed; give one of its parts, {tmp_path / 'm'}/part-0"
    )
    (tmp_path / "empty").mkdir()
    model.save(tmp_path / "empty")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file").touch()
    told = f"{tmp_path / 'other'}: exists and is no ensemble's folder; choose another name or move it away"
    assert said(model.save, tmp_path / "other", kind=ModelError) == told
    assert "exists and is no ensemble's folder" in said(model.save, tmp_path / "other" / "file", kind=ModelError)


@pytest.mark.parametrize("seed", range(4))
def test_no_move_of_the_last_step_betters_fitted_weights(seed):
    rng = np.random.default_rng(seed)
    peak, steps = rng.dirichlet(np.ones(4)), (0.2, 0.05)
    tried = []

    def score(weights):
        tried.append(weights.copy())
        return -float(((weights - peak) ** 2).sum())

    found = fit_weights(score, 4, steps)
    assert all((one >= -1e-12).all() and one.sum() == pytest.approx(1.0) for one in tried)
    assert tried[0].tolist() == [0.25] * 4
    best = score(found)
    for giver in range(4):
        for taker in range(4):
            moved = found.copy()
            step = min(steps[-1], moved[giver])
            moved[[giver, taker]] += [-step, step] if giver != taker else [0.0, 0.0]
            assert score(moved) <= best + 1e-12
