"""``python -m xswe mine``: translations from two files, paraphrases from one, or scores of a bitext aligned already."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

from xswe.corpus.records import RecordFile
from xswe.errors import ConfigError
from xswe.io.files import check_output, file_stamp
from xswe.io.settings import build
from xswe.mining.mined import mine
from xswe.mining.output import output_format
from xswe.mining.pipeline import MineConfig, work_folder
from xswe.mining.score import ScoreConfig, score_file
from xswe.mining.side import FilterConfig
from xswe.model.ensemble import load_any
from xswe.model.resolve import locate
from xswe.progress import speed
from xswe.search.types import SearchConfig

_OWN = ("mode", "model", "input", "source", "target", "output", "work", "columns", "corpus", "threads", "hydra")


def run(values: dict[str, Any]) -> str:
    """Mine or score, and return the summary (on standard error where the pairs go to standard output)."""
    if values["mode"] not in ("mine", "score"):
        raise ConfigError(f"mode={values['mode']!r}: use mine (two monolingual files) or score (an aligned bitext)")
    if not values["output"]:
        raise ConfigError("output is not set: give a file, or - for standard output")
    check_output(values["output"], [values[name] for name in ("input", "source", "target", "gold") if values[name]])
    summary = (_mine if values["mode"] == "mine" else _score)(values)
    if values["output"] == "-":
        sys.stderr.write(f"{summary}\n")
        return ""
    return summary


def _search(values: dict[str, Any]) -> dict[str, Any]:
    return {"threads": values["threads"], **values["neighbours"]}


def _mine(values: dict[str, Any]) -> str:
    if not values["source"] or values["input"]:
        raise ConfigError("mode=mine needs source=, a text file, and target=, another (input= is for mode=score)")
    settings = {key: value for key, value in values.items() if key not in _OWN}
    settings["score"] = "ratio" if values["score"] == "auto" else values["score"]
    settings |= {"on_error": values["corpus"]["on_error"]}
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
    mined = mine(model, str(values["source"]), target, output=output, work=values["work"], config=config)
    return f"{mined.report}\npairs: {output}"


def _score(values: dict[str, Any]) -> str:
    table, moses = values["input"], (values["source"], values["target"])
    if bool(table) == bool(all(moses)) or (table and any(moses)):
        raise ConfigError("mode=score needs input= (a bitext, - for standard input), or source= and target=")
    _refuse_unused(values)
    files = (str(table),) if table else (str(moses[0]), str(moses[1]))
    model, output = load_any(locate(values["model"])), str(values["output"])
    languages = tuple(values["languages"] or (model.languages if len(model.languages) == 2 else ()))
    file = RecordFile(files, tuple(values["columns"]), languages, values["corpus"]["on_error"])
    kind = output_format(values["format"], output, languages)
    if kind != {"tsv": "laser", "moses": "laser"}.get(file.kind, file.kind):
        raise ConfigError(f"mode=score adds a score to {file.kind} records as they are, which makes no {kind}: {output}")
    chosen = {name: values[name] for name in ("k", "storage")}
    chosen |= {"score": "cosine" if values["score"] == "auto" else values["score"]}
    config = build(ScoreConfig, chosen | {"neighbours": build(SearchConfig, _search(values), "neighbours")}, "mine")
    identity = None if "-" in files else [model.identity, [file_stamp(path) for path in files]]
    started = time.monotonic()
    if config.streams:
        report = score_file(model, file, output, config, Path())
    else:
        with work_folder(output, values["work"], values["keep"]) as work:
            report = score_file(model, file, output, config, work, identity)
    seconds = time.monotonic() - started
    unscored = f", {report['unscored']:,} of them not scored (nan)" if report["unscored"] else ""
    rate = speed(int(report["lines"]), seconds, "lines")
    return (
        f"{report['lines']:,} lines{unscored}, mean {config.score} {report['mean']:.4f}, {seconds:.1f} s {rate}: {output}"
    )


def _refuse_unused(values: dict[str, Any]) -> None:
    """Refuse what scoring would ignore."""
    usual = MineConfig()
    names = ("select", "best", "threshold", "precision", "gold", "min_score", "max_score", "ids")
    unused = [name for name in names if values[name] != getattr(usual, name)]
    unused += [f"filters.{name}" for name, value in values["filters"].items() if value != getattr(usual.filters, name)]
    if unused:
        raise ConfigError(
            f"{unused[0]} does nothing with mode=score, which keeps every line; python -m xswe filter drops some"
        )
