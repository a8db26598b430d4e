"""``python -m xswe filter``: noisy bitext in, clean bitext out."""

from __future__ import annotations

import time
from dataclasses import fields
from typing import Any

from xswe.commands.config import aside, check_report, open_judge, refuse_unused, reported
from xswe.errors import ConfigError
from xswe.io.execution import ExecutionConfig
from xswe.io.files import check_output
from xswe.io.settings import build
from xswe.mining.filter import BitextFilter, filter_bitext
from xswe.mining.output import output_format
from xswe.model.ensemble import load_any, locate
from xswe.progress import took


def run(values: dict[str, Any]) -> str:
    """Filter, and return the summary (on standard error where the pairs go to standard output)."""
    given, moses = values["input"], (values["source"], values["target"])
    if bool(given) == bool(all(moses)) or (given and any(moses)):
        raise ConfigError("filter needs input= (a bitext, - for standard input), or source= and target=")
    paths = [str(given)] if given else [str(path) for path in moses]
    unused = {"without rerank=": () if values["rerank"] else ["rerank_share"]}
    refuse_unused("filter", values, unused | {"without input=": () if given else ["columns"]})
    output, how = str(values["output"]), {name: values[name] for name in ("rejects", "columns", "languages")}
    check_output(output, [path for path in paths if path != "-"])
    output_format("auto", output, ("", ""))  # known before any work is done
    wanted = {"evidence": check_report(values, paths)}
    config = build(
        BitextFilter, {f.name: values[f.name] for f in fields(BitextFilter) if f.name in values} | wanted, "filter"
    )
    execution = build(ExecutionConfig, values["execution"], "execution")
    started = time.monotonic()
    model, how["rerank"] = load_any(locate(values["model"])), open_judge(values["rerank"], values["threads"])
    found = filter_bitext(model, paths, output, threads=values["threads"], config=config, execution=execution, **how)
    seconds = time.monotonic() - started
    summary = f"{found}\n{took(len(found), seconds, 'pairs')}: {output}{reported(values, found, model)}"
    return aside(summary, output)
