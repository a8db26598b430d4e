"""mteb's own numbers on vectors of ours, from data in mteb's layout."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tests.conftest import Later, eval_script
from xswe.errors import ConfigError
from xswe.evaluation.encoders import StaticEncoder
from xswe.evaluation.metrics import CORRELATIONS, Row, bitext_items, search, weighted_f1
from xswe.evaluation.mteb_bridge import MtebEncoder, run_task
from xswe.evaluation.tasks import PRESETS, SENTENCE_TO_SENTENCE, averages, check, jobs
from xswe.io.products import row_products
from xswe.model.static import StaticModel
from xswe.text.subwords import SubwordUnits

Later("mteb")
pytestmark = pytest.mark.slow  # to import mteb takes seconds, and its list of tasks takes more
write_set = eval_script("parity.retrieval").write_set


@pytest.fixture
def model(tokenizer):
    units = SubwordUnits(tokenizer, "subwords", ("en", "ja"))
    matrix = np.random.default_rng(0).normal(size=(len(units.tokens), 8)).astype(np.float32)
    return StaticModel(units, matrix)


def tatoeba(root, rows):
    write_set(root, "mteb/tatoeba-bitext-mining", "jpn-eng", rows)


def test_tatoeba_through_mteb_equals_our_own_figures(model, tmp_path, sample):
    pairs = list(zip(sample["ja"], sample["en"], strict=True))[:120]
    tatoeba(tmp_path, [{"sentence1": j, "sentence2": e, "lang": "jpn-eng"} for j, e in pairs])
    rows = run_task(StaticEncoder(model, "m"), "tatoeba", tmp_path, tmp_path / "results")
    found = {row.metric: row for row in rows}
    predicted = search(model.encode([j for j, _ in pairs]), model.encode([e for _, e in pairs])).nearest
    assert found["f1"].value == pytest.approx(weighted_f1(predicted), abs=1e-6)
    assert found["accuracy"].value == pytest.approx((predicted == np.arange(120)).mean())
    both = bitext_items(*(model.encode(list(side)) for side in zip(*pairs, strict=True)), margin=True)
    assert found["margin_accuracy_both_ways"].value == pytest.approx(both["accuracy"].mean())
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


@pytest.mark.parametrize("local", [False, True])
def test_what_the_hub_does_not_give_is_told_where_no_folder_is_named(model, tmp_path, sample, monkeypatch, local):
    tatoeba(tmp_path, [{"sentence1": sample["ja"][0], "sentence2": sample["en"][0], "lang": "jpn-eng"}])

    def fail(*_):
        raise ConnectionError("Couldn't reach it")

    monkeypatch.setattr("xswe.evaluation.mteb_bridge._evaluate", fail)
    (row,) = run_task(StaticEncoder(model, "m"), "tatoeba", tmp_path if local else None, tmp_path / "results")
    assert row.note.startswith("ConnectionError" if local else "neither the hub nor its cache has it (ConnectionError")


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
    (job,), skipped = jobs("tatoeba", ("en", "ja", "de"))
    assert job.subsets == {"en-de": "deu-eng", "en-ja": "jpn-eng"}
    assert not skipped
    (job,), _ = jobs("STS22.v2", ("en", "de"))
    assert job.subsets == {"en": "en", "de": "de", "en-de": "de-en"}
    with pytest.raises(ConfigError, match=r"tatooba.*tatoeba, bucc"):
        check(["tatoeba", "tatooba"])
    with pytest.raises(ConfigError, match="empty"):
        check([])
    check(["XLing", "massiveintentclassification", "own.tsv", "folder/own"])


def test_presets_are_the_published_sets():
    everything = ("en", "de", "zh", "ja")
    found, _ = jobs("mteb-en", everything)
    assert len(found) == 56
    assert len(SENTENCE_TO_SENTENCE) == 33
    assert {name.lower() for name in SENTENCE_TO_SENTENCE} <= {job.name for job in found}
    assert {job.name for job in jobs("sts-en", everything)[0]} >= {"sts12", "sick-r", "biosses", "stsbenchmark"}
    assert len(jobs("sts-en", everything)[0]) == 10
    assert all(list(job.subsets) == ["ja"] for job in jobs("jmteb", everything)[0])
    xling, _ = jobs("xling", everything)
    assert {(job.name, *job.subsets) for job in xling} == {
        ("bucc", "en-de", "en-zh"),
        ("bucc.v2", "en-de", "en-zh"),
        ("tatoeba", "en-de", "en-zh", "en-ja"),
        ("sts17", "en-de"),
        ("sts22", "en-de", "en-zh"),
        ("sts22.v2", "en-de", "en-zh"),
    }
    assert set(PRESETS) == {"xling", "sts-en", "mteb-en", "jmteb", "jmteb.v2"}


def test_an_average_needs_all_of_its_tasks():
    names = [job.name for job in jobs("mteb-en", ("en",))[0]]
    rows = [Row(name, "en", "main_score", k / 100, 1) for k, name in enumerate(names)]
    whole = {row.metric: row for row in averages("mteb-en", rows)}
    assert whole["average"].value == pytest.approx(np.mean([row.value for row in rows]))
    short = [name.lower() for name in SENTENCE_TO_SENTENCE]
    assert whole["average_s2s"].value == pytest.approx(np.mean([r.value for r in rows if r.task in short]))
    assert (whole["average"].n, whole["average_s2s"].n) == (56, 33)
    rows[0] = Row(names[0], "en", "skipped", None, 0, note="not there")
    lacking = averages("mteb-en", rows)
    assert [(row.metric, row.value) for row in lacking if "no average:" in row.note] == [("skipped", None)]
    assert names[0] in lacking[0].note
    assert averages("tatoeba", rows) == []


def test_every_kind_of_text_task_runs(model):
    """mteb's own mock tasks: classification, clustering, reranking, retrieval, summarisation and the others."""
    import mteb
    from mteb.results.task_result import TaskError, TaskResult

    done = mteb.mock_run(MtebEncoder(StaticEncoder(model, "m"))).task_results
    assert not [name for name, result in done.items() if isinstance(result, TaskError)]
    assert sum(isinstance(result, TaskResult) for result in done.values()) > 20


def test_model_meta_is_filled_in(model):
    meta = MtebEncoder(StaticEncoder(model, "runs/en-ja")).mteb_model_meta
    assert meta.name == "xswe/runs-en-ja"
    assert meta.languages == ["eng-Latn", "jpn-Jpan"]
    assert meta.embed_dim == 8
    assert meta.n_parameters == meta.n_embedding_parameters == model.matrix.size
    assert meta.memory_usage_mb == pytest.approx(model.matrix.nbytes / 2**20, abs=1e-3)
    assert (meta.open_weights, meta.use_instructions, meta.similarity_fn_name.value) == (True, False, "cosine")


def sts12(root, rows):
    folder = root / "mteb" / "sts12-sts" / "data"
    folder.mkdir(parents=True)
    (folder / "test.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def test_sts_through_mteb_equals_our_own_figures(model, tmp_path, sample):
    scores = np.random.default_rng(0).uniform(0, 5, 100)
    a, b = sample["en"][:100], sample["en"][50:150]
    rows = [{"sentence1": x, "sentence2": y, "score": s} for x, y, s in zip(a, b, scores, strict=True)]
    sts12(tmp_path, rows)
    found = {row.metric: row for row in run_task(StaticEncoder(model, "m"), "STS12", tmp_path, tmp_path / "results")}
    cosines = row_products(model.encode(a), model.encode(b))
    ours = {name: correlate(cosines, scores) for name, correlate in CORRELATIONS.items()}
    assert found["cosine_spearman"].value == pytest.approx(ours["spearman"], abs=1e-6)
    assert found["cosine_pearson"].value == pytest.approx(ours["pearson"], abs=1e-6)
    items = found["cosine_spearman"].items
    assert CORRELATIONS["spearman"](cosines, items[1]) == pytest.approx(ours["spearman"])
    assert found["spearman"].items is None
    row = found["main_score"]
    assert (row.task, row.subset, row.n, row.split) == ("sts12", "en", 100, "test")
    assert "100 of the data set's 3,108 pairs" in row.note
    assert "local copy" in row.note


def test_a_preset_says_what_is_missing_and_gives_no_average(model, tmp_path):
    sts12(tmp_path, [{"sentence1": "a cat", "sentence2": "a dog", "score": k} for k in range(5)])
    rows = run_task(StaticEncoder(model, "m"), "sts-en", tmp_path, tmp_path / "results")
    skipped = {row.task: row.note for row in rows if row.metric == "skipped"}
    assert len(skipped) == 11
    assert "sts13-sts is missing" in skipped["sts13"]
    assert skipped["sts12"] == "mteb's main score is nan"  # all cosines are equal
    assert skipped["sts-en"] == "no average: 10 of 10 tasks were not measured (sts12, sts13, sts14, …)"
    assert not [row for row in rows if row.metric == "average"]


@pytest.mark.parametrize("damage", ["truncated", "empty"])
def test_a_truncated_data_set_is_skipped_with_the_reason(model, tmp_path, damage):
    tatoeba(tmp_path, [{"sentence1": "あ", "sentence2": "a", "lang": "jpn-eng"}] * 5)
    file = tmp_path / "mteb" / "tatoeba-bitext-mining" / "test" / "jpn-eng.jsonl"
    file.write_bytes(file.read_bytes()[:-20] if damage == "truncated" else b"")
    (row,) = run_task(StaticEncoder(model, "m"), "tatoeba", tmp_path, tmp_path / "results")
    assert (row.metric, row.value) == ("skipped", None)
    assert row.note


def test_retrieval_and_aggregate_tasks_read_local_folders(model, tmp_path):
    import mteb

    configs = "".join(
        f"- config_name: {name}\n  data_files:\n  - split: {split}\n    path: {name}.jsonl\n"
        for name, split in (("corpus", "corpus"), ("queries", "queries"), ("default", "test"))
    )
    texts = ["A cat sleeps.", "The train is late.", "She buys bread."]
    files = {
        "corpus": [{"_id": f"d{k}", "title": "", "text": text} for k, text in enumerate(texts)],
        "queries": [{"_id": f"q{k}", "text": text} for k, text in enumerate(texts)],
        "default": [{"query-id": f"q{k}", "corpus-id": f"d{k}", "score": 1} for k in range(3)],
    }
    for part in mteb.get_task("CQADupstackRetrieval").tasks:
        folder = tmp_path / part.metadata.dataset["path"]
        folder.mkdir(parents=True)
        (folder / "README.md").write_text(f"---\nconfigs:\n{configs}---\n")
        for name, rows in files.items():
            (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    rows = run_task(StaticEncoder(model, "m"), "cqadupstackretrieval", tmp_path, tmp_path / "results")
    assert [(row.value, row.subset) for row in rows if row.metric == "ndcg_at_10"] == [(1.0, "en")]
