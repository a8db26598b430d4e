"""mteb's own numbers on vectors of ours, from data in mteb's layout."""

from __future__ import annotations

import json

import numpy as np
import pytest

from xswe.embedding.static import StaticEmbedding
from xswe.errors import ConfigError
from xswe.evaluation.encoders import StaticEncoder
from xswe.evaluation.mteb_bridge import run_task, subsets
from xswe.evaluation.retrieval import bitext_retrieval, nearest, weighted_f1
from xswe.language.subwords import SubwordUnits

pytest.importorskip("mteb")


@pytest.fixture
def model(tokenizer):
    units = SubwordUnits(tokenizer, "subwords", ("en", "ja"))
    matrix = np.random.default_rng(0).normal(size=(len(units.tokens), 8)).astype(np.float32)
    return StaticEmbedding(units, matrix)


def tatoeba(root, rows):
    folder = root / "mteb" / "tatoeba-bitext-mining"
    (folder / "test").mkdir(parents=True)
    settings = "---\nconfigs:\n- config_name: default\n  data_files:\n  - split: test\n    path: test/*.jsonl\n---\n"
    (folder / "README.md").write_text(settings)
    lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    (folder / "test" / "jpn-eng.jsonl").write_text(lines, encoding="utf-8")


def test_tatoeba_through_mteb_equals_our_own_figures(model, tmp_path, sample):
    pairs = list(zip(sample["ja"], sample["en"], strict=True))[:120]
    tatoeba(tmp_path, [{"sentence1": j, "sentence2": e, "lang": "jpn-eng"} for j, e in pairs])
    rows = run_task(StaticEncoder(model, "m"), "tatoeba", tmp_path, tmp_path / "results")
    found = {row.metric: row for row in rows}
    predicted = nearest(model.encode([j for j, _ in pairs]), model.encode([e for _, e in pairs]))
    assert found["f1"].value == pytest.approx(weighted_f1(predicted), abs=1e-6)
    assert found["accuracy"].value == pytest.approx((predicted == np.arange(120)).mean())
    both = bitext_retrieval(*(model.encode(list(side)) for side in zip(*pairs, strict=True)), margin=True)
    assert found["margin_accuracy_both_ways"].value == pytest.approx(both["accuracy"])
    assert found["margin_accuracy_both_ways"].source == "xswe"
    row = found["f1"]
    assert (row.task, row.subset, row.n, row.split) == ("tatoeba", "en-ja", 120, "test")
    assert row.source.startswith("mteb 2.")
    assert row.revision
    assert list((tmp_path / "results").rglob("Tatoeba.json"))


def test_a_missing_data_set_is_skipped_with_the_reason_never_zero(model, tmp_path):
    (row,) = run_task(StaticEncoder(model, "m"), "tatoeba", tmp_path, tmp_path / "results")
    assert (row.metric, row.value, row.subset) == ("skipped", None, "en-ja")
    assert "tatoeba-bitext-mining is missing" in row.note


def test_a_damaged_data_set_is_skipped_with_the_reason(model, tmp_path):
    tatoeba(tmp_path, [{"wrong": "column"}])
    (row,) = run_task(StaticEncoder(model, "m"), "tatoeba", tmp_path, tmp_path / "results")
    assert (row.metric, row.value) == ("skipped", None)
    assert row.note


def test_a_task_without_the_models_languages_is_skipped(model, tmp_path):
    (row,) = run_task(StaticEncoder(model, "m"), "bucc", tmp_path, tmp_path / "results")
    assert row.metric == "skipped"
    assert "en, ja" in row.note


def test_subsets_follow_the_models_languages():
    assert subsets("tatoeba", ("en", "ja", "de")) == {"en-de": "deu-eng", "en-ja": "jpn-eng"}
    with pytest.raises(ConfigError, match=r"tatoeba, bucc"):
        subsets("tatooba", ("en",))
