"""``python -m xswe mine``: translations from two files, paraphrases from one; scores or hard negatives of a bitext."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from typing import Any, TypeVar

from xswe.commands.config import aside, check_report, open_judge, refuse_unused, reported, without_clusters
from xswe.corpus.records import RecordFile
from xswe.errors import ConfigError
from xswe.io.files import check_output
from xswe.io.results import check_suffix
from xswe.io.settings import build
from xswe.mining.mined import mine
from xswe.mining.negatives import NegativesConfig, mine_negatives
from xswe.mining.output import output_format
from xswe.mining.pipeline import MineConfig
from xswe.mining.score import ScoreConfig, score_bitext
from xswe.mining.side import FilterConfig
from xswe.model.ensemble import load_any, locate
from xswe.search.types import SearchConfig

Config = TypeVar("Config", MineConfig, ScoreConfig, NegativesConfig)
_NEGATIVES = ("negatives", "candidates", "relative_margin")
_CHOICE = (
    "rerank",
    "rerank_share",
    "split",
    "select",
    "best",
    "threshold",
    "precision",
    "gold",
    "ids",
    "max_score",
    "filters",
)
# What the other modes have settings for, and what says why it is refused.
_UNUSED = {
    "mine": (_NEGATIVES, "mode=mine: it is for mode=negatives"),
    "negatives": ((*_CHOICE, "k", "score", "format", "work", "keep", "execution"), "mode=negatives"),
    "score": (
        (*_CHOICE, *_NEGATIVES, "min_score", "execution"),
        "mode=score, which keeps every line; python -m xswe filter drops some",
    ),
}


def run(values: dict[str, Any]) -> str:
    """Mine or score, and return the summary (on standard error where the pairs go to standard output)."""
    if values["mode"] not in _MODES:
        raise ConfigError(
            f"mode={values['mode']!r}: use mine (one or two monolingual files), score or negatives (of an aligned bitext)"
        )
    if not values["output"]:
        raise ConfigError("output is not set: give a file, or - for standard output")
    check_output(values["output"], [values[name] for name in ("input", "source", "target", "gold") if values[name]])
    sides = [str(values[name]) for name in ("source", "target") if values[name]]
    if check_report(values, sides) and values["mode"] != "mine":
        raise ConfigError("report= is for mode=mine: it shows pairs that were chosen among others")
    names, why = _UNUSED[values["mode"]]
    usual = {**vars(NegativesConfig()), **vars(MineConfig()), "score": "auto", "work": None, "rerank": None}
    usual |= {name: vars(usual[name]) for name in ("filters", "execution")}
    if unused := [name for name in names if values[name] != usual[name]]:
        raise ConfigError(f"{unused[0]} does nothing with {why}")
    mines = values["mode"] == "mine"
    margin = values["score"] not in ("cosine", *(() if mines else ("auto",)))
    reasons: dict[str, Iterable[str]] = {
        "without rerank=": () if values["rerank"] else ["rerank_share"],
        "without select=kbest": () if values["select"] == "kbest" else ["best"],
        "without threshold=auto": () if values["threshold"] == "auto" else ["precision"],
        "without a margin as score": () if margin else ["k"],
        "without input=": () if values["input"] else ["columns"],
        "without neighbours.method=clusters": without_clusters(values),
    }
    refuse_unused("mine", values, reasons)
    return aside(_MODES[values["mode"]](values), values["output"])


def _config(cls: type[Config], values: dict[str, Any], **more: Any) -> Config:
    """Build the settings of a mode from those of the verb."""
    search = build(SearchConfig, {"threads": values["threads"], **values["neighbours"]}, "neighbours")
    nested = {"neighbours": search, "filters": build(FilterConfig, values["filters"], "filters")}
    every = values | nested | more
    return build(cls, {f.name: every[f.name] for f in fields(cls)}, "mine")


def _mine(values: dict[str, Any]) -> str:
    if not values["source"] or values["input"]:
        raise ConfigError("mode=mine needs source=, a text file, and target=, another (input= is for mode=score)")
    score = "ratio" if values["score"] == "auto" else values["score"]
    config = _config(MineConfig, values, score=score, evidence=bool(values["report"]))
    output, target = str(values["output"]), str(values["target"]) if values["target"] else None
    if not config.languages:  # known at once what cannot be written, where the model's own languages do not say
        output_format(config.format, output, ("", ""))
    model, judge = load_any(locate(values["model"])), open_judge(values["rerank"], config.neighbours.workers)
    mined = mine(model, str(values["source"]), target, config=config, output=output, work=values["work"], rerank=judge)
    return f"{mined.report}\npairs: {output}{reported(values, mined, model)}"


def _bitext(values: dict[str, Any]) -> tuple[str, ...]:
    """Return the file or the two files of an aligned bitext."""
    table, moses = values["input"], (values["source"], values["target"])
    if bool(table) == bool(all(moses)) or (table and any(moses)):
        raise ConfigError(f"mode={values['mode']} needs input= (a bitext, - for standard input), or source= and target=")
    return (str(table),) if table else (str(moses[0]), str(moses[1]))


def _negatives(values: dict[str, Any]) -> str:
    files, config = _bitext(values), _config(NegativesConfig, values)
    check_suffix(values["output"])
    found = mine_negatives(load_any(locate(values["model"])), files, values["output"], config=config)
    return f"{found}: {values['output']}"


def _score(values: dict[str, Any]) -> str:
    score = "cosine" if values["score"] == "auto" else values["score"]
    files, config = _bitext(values), _config(ScoreConfig, values, score=score)
    model = load_any(locate(values["model"]))
    file = RecordFile(files, tuple(values["columns"]), tuple(values["languages"]) or model.pair, values["on_error"])
    how = {name: values[name] for name in ("format", "work", "keep")}
    return str(score_bitext(model, file, str(values["output"]), config, **how))


_MODES = {"mine": _mine, "score": _score, "negatives": _negatives}
