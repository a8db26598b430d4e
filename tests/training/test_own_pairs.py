"""Training on pairs of one language, with negatives, and span training on triples of files, through all stages."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from xswe.corpus.bitext import CorpusConfig
from xswe.errors import ConfigError
from xswe.training.config import PCAConfig, TrainConfig
from xswe.training.objective import Objective
from xswe.training.pipeline import run_stages
from xswe.training.refine import RefineConfig
from xswe.training.train import score_held_out
from xswe.training.triplets import SpanTraining, find_triples, read_triples
from xswe.training.units_stage import UnitsConfig

COLOURS = list("赤青緑白黒黄紫茶灰金銀桃")
THINGS = list("車家本犬猫花山川空海木鳥魚馬橋道店駅町村")


def records():
    """An anchor asks for a thing of a colour; its positive has both, its negative another colour."""
    rng = np.random.default_rng(0)
    for colour in COLOURS:
        for thing in THINGS:
            other = rng.choice([c for c in COLOURS if c != colour])
            yield {
                "anchor": f"{colour}の{thing}",
                "positive": f"これは{thing}、色は{colour}",
                "negative": f"これは{thing}、色は{other}",
            }


@pytest.fixture
def pairs(tmp_path):
    path = tmp_path / "pairs.jsonl"
    path.write_text("".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records()), encoding="utf-8")
    return path


def config(path, **changes):
    made = TrainConfig(
        ("ja",),
        CorpusConfig(paths=[str(path)], held_out=0.1, development=0.1),
        units=UnitsConfig(vocabulary="mini"),
        pca=PCAConfig(dim=16, spread=1.0),
        refine=RefineConfig(
            epochs=15, batch_size=60, learning_rate=0.2, eval_steps=5, patience=0, optimiser="dense", duplicates="drop",
            schedule="cosine", warmup=0.1, decay_start=0.0,
        ),
        objective=Objective(margin=0.0, directions="source", prefixes=(16, 8)),
    )  # fmt: skip
    return replace(made, **changes)


@pytest.mark.slow
def test_pairs_of_one_language_teach_ranking(tmp_path, pairs):
    c = config(pairs)
    made = run_stages(c, None, tmp_path / "run")
    report = made.report["refinement"]
    assert report["steps"] == 15 * (192 // 60)
    assert min(h["development_loss"] for h in report["history"]) < 0.7 * report["history"][0]["development_loss"]
    (name,) = made.held_out
    assert name == "ja-ja"
    untrained = run_stages(replace(c, refine=RefineConfig(max_steps=0)), None, tmp_path / "start")
    accuracy = [
        next(row.value for row in score_held_out(run, step, 1) if row.metric == "accuracy_forward")
        for run, step in ((made, "refinement"), (untrained, "refinement"))
    ]
    assert accuracy[0] >= accuracy[1]
    again = run_stages(c, None, tmp_path / "again")
    assert again.model.matrix.tobytes() == made.model.matrix.tobytes()


def test_negatives_change_what_is_learnt(tmp_path, pairs):
    with_negatives = run_stages(config(pairs), None, tmp_path / "with")
    entry = {"path": str(pairs), "fields": ["anchor", "positive"]}
    corpus = CorpusConfig(paths={"ja": [entry]}, held_out=0.1, development=0.1)
    without = run_stages(config(pairs, corpus=corpus), None, tmp_path / "without")
    assert without.model.matrix.tobytes() != with_negatives.model.matrix.tobytes()
    bags = next((tmp_path / "with" / "stages").glob("bags-*"))
    assert np.load(bags / "train.ja-ja.bounds.npy")[-1] == 192
    assert not list(next((tmp_path / "without" / "stages").glob("bags-*")).glob("*negatives*"))


def test_random_vectors_are_as_wide_as_asked(tmp_path, pairs):
    start = run_stages(config(pairs, refine=RefineConfig(max_steps=0)), None, tmp_path / "a").model.matrix
    assert start[start.any(1)].std() == pytest.approx(1.0, rel=0.01)
    narrow = run_stages(
        config(pairs, refine=RefineConfig(max_steps=0), pca=PCAConfig(dim=16)), None, tmp_path / "a"
    ).model.matrix
    np.testing.assert_allclose(narrow, 0.02 * start, rtol=1e-4)


def test_one_language_without_pairs_is_told_what_to_give(tmp_path):
    nothing = CorpusConfig(paths={"en-ja": ["a.tsv"]})
    with pytest.raises(ConfigError, match=r"ja alone has no translations to rank: give pairs of its texts"):
        run_stages(config("x", corpus=nothing), None, tmp_path)
    crossed = Objective(ranking=0.0, distillation=1.0, distillation_on=("cross",))
    with pytest.raises(ConfigError, match=r"set objective\.distillation_on=\[source\]"):
        run_stages(config("x", objective=crossed), None, tmp_path, distilled=object())


def write_triples(tmp_path):
    lines = [f"{r['anchor']}\t遠い所。{r['positive']}。晴れ\t遠い所。{r['negative']}。晴れ\n" for r in records()]
    (tmp_path / "triples.tsv").write_text("".join(lines), encoding="utf-8")
    asked = [{"query": r["anchor"], "positive": r["positive"], "negatives": [r["negative"], "雨"]} for r in records()]
    text = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in asked)
    (tmp_path / "triples.jsonl").write_text(text, encoding="utf-8")
    return [str(tmp_path / "triples.tsv"), str(tmp_path / "triples.jsonl")]


def test_triples_are_read_from_any_file(tmp_path):
    files = find_triples(write_triples(tmp_path))
    phrases, true, false = read_triples(files, CorpusConfig(), 0, 0)
    assert len(phrases) == 3 * 240
    first = next(records())
    assert (phrases[0], true[240], false[240], false[241]) == (first["anchor"], first["positive"], first["negative"], "雨")
    some, *_ = read_triples(files, CorpusConfig(), 100, 0)
    assert len(some) == 100
    assert (
        list(some)
        == list(read_triples(files, CorpusConfig(), 100, 0)[0])
        != list(read_triples(files, CorpusConfig(), 100, 1)[0])
    )
    (tmp_path / "dev.tsv").write_text("雨\n", encoding="utf-8")
    clean, *_ = read_triples(files, CorpusConfig(decontaminate=(str(tmp_path / "dev.tsv"),)), 0, 0)
    assert len(clean) == 2 * 240
    short, *_ = read_triples(files, CorpusConfig(max_characters=10), 0, 0)
    assert len(short) == 2 * 240  # those of the records, which are short
    with pytest.raises(ConfigError, match="name a phrase, a positive and a negative passage"):
        find_triples([{"path": str(tmp_path / "triples.tsv"), "columns": [0, 1]}])


@pytest.mark.slow
def test_span_training_learns_from_triples_alone_in_one_language(tmp_path, pairs):
    spans = SpanTraining(
        max_steps=60, batch_size=32, learning_rate=0.02, eval_steps=20, pairs=0, triples=write_triples(tmp_path)
    )
    made = run_stages(config(pairs, spans=spans), None, tmp_path / "run")
    history = made.report["spans"]["history"]
    assert min(row["development_loss"] for row in history) < 0.9 * history[0]["development_loss"]
    (tmp_path / "triples.jsonl").write_text((tmp_path / "triples.jsonl").read_text("utf-8").split("\n")[0] + "\n", "utf-8")
    other = run_stages(config(pairs, spans=spans), None, tmp_path / "run")
    assert other.model.matrix.tobytes() != made.model.matrix.tobytes()
    with pytest.raises(ConfigError, match="or 0 with"):
        SpanTraining(pairs=0)
