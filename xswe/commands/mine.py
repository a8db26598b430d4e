"""``python -m xswe mine``: translations from two files, paraphrases from one; scores or hard negatives of a bitext."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from typing import Any

from xswe.commands.config import (
    aside,
    bitext_files,
    check_report,
    open_judge,
    refuse_unused,
    reported,
    settings,
    without_clusters,
)
from xswe.corpus.records import RecordFile
from xswe.errors import ConfigError
from xswe.io.files import check_output
from xswe.io.results import check_suffix
from xswe.mining.mined import mine
from xswe.mining.negatives import NegativesConfig, mine_negatives
from xswe.mining.output import output_format
from xswe.mining.pipeline import MineConfig
from xswe.mining.score import ScoreConfig, score_bitext
from xswe.model.ensemble import load_any, locate


def run(values: dict[str, Any]) -> str:
    """Mine or score, and return the summary (on standard error where the pairs go to standard output)."""
    if (mode := values["mode"]) not in _MODES:
        raise ConfigError(
            f"mode={mode!r}: use mine (one or two monolingual files), score or negatives (of an aligned bitext)"
        )
    if not values["output"]:
        raise ConfigError("output is not set: give a file, or - for standard output")
    check_output(values["output"], [values[name] for name in ("input", "source", "target", "gold") if values[name]])
    if check_report(values, [str(values[name]) for name in ("source", "target") if values[name]]) and mode != "mine":
        raise ConfigError("report= is for mode=mine: it shows pairs that were chosen among others")
    do, cls, further, why = _MODES[mode]
    usual = {**vars(NegativesConfig()), **vars(MineConfig()), "score": "auto", "work": None, "rerank": None}
    usual |= {name: vars(usual[name]) for name in ("filters", "execution")}
    known = {field.name for field in fields(cls)} | {*further, "columns", "languages", "neighbours", "evidence"}
    if unused := [name for name in usual if name not in known and values[name] != usual[name]]:
        raise ConfigError(f"{unused[0]} does nothing with {why}")
    margin = values["score"] not in ("cosine", *(() if mode == "mine" else ("auto",)))
    reasons: dict[str, Iterable[str]] = {
        "without rerank=": () if values["rerank"] else ["rerank_share"],
        "without select=kbest": () if values["select"] == "kbest" else ["best"],
        "without threshold=auto": () if values["threshold"] == "auto" else ["precision"],
        "without a margin as score": () if margin else ["k"],
        "without input=": () if values["input"] else ["columns"],
        "without neighbours.method=clusters": without_clusters(values),
    }
    refuse_unused("mine", values, reasons)
    return aside(do(values), values["output"])


def _mine(values: dict[str, Any]) -> str:
    if not values["source"] or values["input"]:
        raise ConfigError("mode=mine needs source=, a text file, and target=, another (input= is for mode=score)")
    score = "ratio" if values["score"] == "auto" else values["score"]
    config = settings(MineConfig, values, "mine", score=score, evidence=bool(values["report"]))
    output, target = str(values["output"]), str(values["target"]) if values["target"] else None
    if not config.languages:  # known at once what cannot be written, where the model's own languages do not say
        output_format(config.format, output, ("", ""))
    model, judge = load_any(locate(values["model"])), open_judge(values["rerank"], config.neighbours.workers)
    mined = mine(model, str(values["source"]), target, config=config, output=output, work=values["work"], rerank=judge)
    return f"{mined.report}\npairs: {output}{reported(values, mined, model)}"


def _negatives(values: dict[str, Any]) -> str:
    files, config = bitext_files(values, "mode=negatives"), settings(NegativesConfig, values, "mine")
    check_suffix(values["output"])
    found = mine_negatives(load_any(locate(values["model"])), files, values["output"], config=config)
    return f"{found}: {values['output']}"


def _score(values: dict[str, Any]) -> str:
    score = "cosine" if values["score"] == "auto" else values["score"]
    files, config = bitext_files(values, "mode=score"), settings(ScoreConfig, values, "mine", score=score)
    model = load_any(locate(values["model"]))
    spoken = tuple(values["languages"]) or model.pair
    file = RecordFile(tuple(files), tuple(values["columns"]), spoken, values["on_error"])
    how = {name: values[name] for name in ("format", "work", "keep")}
    return str(score_bitext(model, file, str(values["output"]), config, **how))


# What each mode does, its settings, those of the verb beside, and why others are refused.
_MODES: dict[str, Any] = {
    "mine": (_mine, MineConfig, ("work", "rerank"), "mode=mine: it is for mode=negatives"),
    "negatives": (_negatives, NegativesConfig, (), "mode=negatives"),
    "score": (
        *(_score, ScoreConfig, ("work", "keep", "format", "on_error")),
        "mode=score, which keeps every line; python -m xswe filter drops some",
    ),
}
