"""``python -m xswe mine``: translations from two files, paraphrases from one; scores or hard negatives of a bitext."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from xswe.bitext.output import output_format
from xswe.commands.config import bitext_files, check_report, open_judge, refuse_unused, reported, settings
from xswe.errors import ConfigError
from xswe.io.files import check_output
from xswe.mining.mined import mine
from xswe.mining.pipeline import MineConfig
from xswe.mining.score import NegativesConfig, ScoreFileConfig, mine_negatives, score_file
from xswe.model.ensemble import load_any, locate


def run(values: dict[str, Any]) -> str:
    """Mine or score, and return the summary."""
    if (mode := values["mode"]) not in _MODES:
        raise ConfigError(f"mode={mode!r}: use mine (of one or two monolingual files), score or negatives (of a bitext)")
    check_output(values["output"], [values[name] for name in ("input", "source", "target", "gold") if values[name]])
    do, cls, further, why = _MODES[mode]
    score = ("ratio" if mode == "mine" else "cosine") if values["score"] == "auto" else values["score"]
    unused = {f"with {why}": [name for name in _SETTINGS if name not in {*further, *(one.name for one in fields(cls))}]}
    unused["without a margin as score"] = ["k", *(_KEPT if mode == "score" else ())] if score == "cosine" else []
    refuse_unused("mine", values, unused)
    return str(do({**values, "score": score}))


def _mine(values: dict[str, Any]) -> str:
    if not values["source"] or values["input"]:
        raise ConfigError("mode=mine needs source=, a text file, and target=, another (input= is for mode=score)")
    check_report(values, [str(values[name]) for name in ("source", "target") if values[name]])
    config = settings(MineConfig, values, "mine", evidence=bool(values["report"]))
    output, target = values["output"], str(values["target"]) if values["target"] else None
    if not config.languages:  # known at once what cannot be written, where the model's own languages do not say
        output_format(config.format, output, ("", ""))
    model, judge = load_any(locate(values["model"])), open_judge(values["rerank"], config.neighbours.workers)
    mined = mine(model, str(values["source"]), target, config=config, output=output, work=values["work"], rerank=judge)
    return f"{mined.report}\npairs: {output}{reported(values, mined, model)}"


def _negatives(values: dict[str, Any]) -> str:
    files, config = bitext_files(values, "mode=negatives"), settings(NegativesConfig, values, "mine")
    found = mine_negatives(load_any(locate(values["model"])), files, values["output"], config=config)
    return f"{found}: {values['output']}"


def _score(values: dict[str, Any]) -> str:
    files, config = bitext_files(values, "mode=score"), settings(ScoreFileConfig, values, "mine")
    return str(score_file(values["model"], files, values["output"], work=values["work"], config=config))


_KEPT = ("storage", "work", "keep", "neighbours")  # of what a margin keeps of a bitext; a cosine is told line by line
# What each mode does, its settings, those of the verb beside, and why others are refused.
_MODES: dict[str, Any] = {
    "mine": (_mine, MineConfig, ("report", "work", "rerank", "columns"), "mode=mine: it is for mode=negatives"),
    "negatives": (_negatives, NegativesConfig, (), "mode=negatives"),
    "score": (_score, ScoreFileConfig, ("work",), "mode=score, which keeps every line; python -m xswe filter drops some"),
}
_SETTINGS = sorted({"report", "work", "rerank", *(f.name for cls in (MineConfig, NegativesConfig) for f in fields(cls))})
