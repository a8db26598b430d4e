"""``python -m xswe mine``: translations from two files, paraphrases from one; scores or hard negatives of a bitext."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xswe.commands.config import aside, check_report, reported
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
from xswe.model.ensemble import load_any
from xswe.model.resolve import locate
from xswe.search.types import SearchConfig

_OWN: tuple[str, ...] = (
    "mode",
    "model",
    "input",
    "source",
    "target",
    "output",
    "work",
    "columns",
    "corpus",
    "threads",
    "rerank",
)
_OWN = (*_OWN, "report", "hydra")
_NEGATIVES = ("negatives", "candidates", "relative_margin")


def run(values: dict[str, Any]) -> str:
    """Mine or score, and return the summary (on standard error where the pairs go to standard output)."""
    if values["mode"] not in _MODES:
        raise ConfigError(
            f"mode={values['mode']!r}: use mine (one or two monolingual files), score or negatives (of an aligned bitext)"
        )
    if not values["output"]:
        raise ConfigError("output is not set: give a file, or - for standard output")
    check_output(values["output"], [values[name] for name in ("input", "source", "target", "gold") if values[name]])
    if (
        check_report(values, [str(values[name]) for name in ("source", "target") if values[name]])
        and values["mode"] != "mine"
    ):
        raise ConfigError("report= is for mode=mine: it shows pairs that were chosen among others")
    if values["mode"] != "negatives" and (
        unused := [name for name in _NEGATIVES if values[name] != getattr(NegativesConfig(), name)]
    ):
        raise ConfigError(f"{unused[0]} does nothing with mode={values['mode']}: it is for mode=negatives")
    summary = _MODES[values["mode"]](values)
    return aside(summary, values["output"])


def _search(values: dict[str, Any]) -> dict[str, Any]:
    return {"threads": values["threads"], **values["neighbours"]}


def _mine(values: dict[str, Any]) -> str:
    if not values["source"] or values["input"]:
        raise ConfigError("mode=mine needs source=, a text file, and target=, another (input= is for mode=score)")
    settings = {key: value for key, value in values.items() if key not in (*_OWN, *_NEGATIVES)}
    settings["score"] = "ratio" if values["score"] == "auto" else values["score"]
    settings |= {"on_error": values["corpus"]["on_error"], "evidence": bool(values["report"])}
    nested = {
        "neighbours": build(SearchConfig, _search(values), "neighbours"),
        "filters": build(FilterConfig, values["filters"], "filters"),
    }
    config = build(MineConfig, {**settings, **nested}, "mine")
    output = str(values["output"])
    if not config.languages:  # known at once what cannot be written, where the model's own languages do not say
        output_format(config.format, output, ("", ""))
    model = load_any(locate(values["model"]))
    target = str(values["target"]) if values["target"] else None
    judge = None
    if values["rerank"]:
        from xswe.evaluation.models import open_encoder  # not needed without a judge, and slow to import

        judge = open_encoder(values["rerank"], config.neighbours.workers)
    how = {"output": output, "work": values["work"], "rerank": judge}
    mined = mine(model, str(values["source"]), target, config=config, **how)
    return f"{mined.report}\npairs: {output}{reported(values, mined, model)}"


def _bitext(values: dict[str, Any]) -> tuple[str, ...]:
    """Return the file or the two files of an aligned bitext."""
    table, moses = values["input"], (values["source"], values["target"])
    if bool(table) == bool(all(moses)) or (table and any(moses)):
        raise ConfigError(f"mode={values['mode']} needs input= (a bitext, - for standard input), or source= and target=")
    return (str(table),) if table else (str(moses[0]), str(moses[1]))


def _negatives(values: dict[str, Any]) -> str:
    files = _bitext(values)
    _refuse_unused(values, ("k", "score", "max_score", "format", "work", "keep"), "mode=negatives")
    settings = {name: values[name] for name in (*_NEGATIVES, "columns", "languages", "storage", "min_score")}
    settings |= {"on_error": values["corpus"]["on_error"]}
    search = build(SearchConfig, _search(values), "neighbours")
    config = build(NegativesConfig, {**settings, "neighbours": search}, "mine")
    check_suffix(values["output"])
    found = mine_negatives(load_any(locate(values["model"])), files, values["output"], config=config)
    return f"{found}: {values['output']}"


def _score(values: dict[str, Any]) -> str:
    files = _bitext(values)
    _refuse_unused(
        values, ("min_score", "max_score"), "mode=score, which keeps every line; python -m xswe filter drops some"
    )
    model, output = load_any(locate(values["model"])), str(values["output"])
    languages = tuple(values["languages"]) or model.pair
    file = RecordFile(files, tuple(values["columns"]), languages, values["corpus"]["on_error"])
    chosen = {name: values[name] for name in ("k", "storage")}
    chosen |= {"score": "cosine" if values["score"] == "auto" else values["score"]}
    config = build(ScoreConfig, chosen | {"neighbours": build(SearchConfig, _search(values), "neighbours")}, "mine")
    how = {name: values[name] for name in ("format", "work", "keep")}
    return str(score_bitext(model, file, output, config, **how))


def _refuse_unused(values: dict[str, Any], more: Sequence[str], why: str) -> None:
    """Refuse what only mining uses, and ``more``."""
    names = ("rerank", "rerank_share", "select", "best", "threshold", "precision", "gold", "ids", *more)
    usual = {**vars(MineConfig()), "score": "auto", "work": None, "rerank": None}
    unused = [name for name in names if values[name] != usual[name]]
    unused += [f"filters.{name}" for name, value in values["filters"].items() if value != getattr(usual["filters"], name)]
    if unused:
        raise ConfigError(f"{unused[0]} does nothing with {why}")


_MODES = {"mine": _mine, "score": _score, "negatives": _negatives}
