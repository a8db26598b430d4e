"""``python -m xswe bucc``: the BUCC shared task, tuned on its training corpora and measured on its test corpora."""

from __future__ import annotations

from typing import Any

import xswe
from xswe.errors import ConfigError
from xswe.io.archives import open_output
from xswe.io.files import check_output
from xswe.io.results import table
from xswe.io.settings import build
from xswe.mining.bucc import BuccFiles, BuccScore, extract, read_gold_ids, score, tune
from xswe.mining.pipeline import MineConfig
from xswe.search.types import SearchConfig


def run(values: dict[str, Any]) -> str:
    """Tune, extract, write the pairs of ids, and return the table."""
    if len(values["languages"]) != 2:
        raise ConfigError(f"languages={values['languages']}: name the files' two endings in order, as in [de,en]")
    languages = (str(values["languages"][0]), str(values["languages"][1]))
    training, test = (BuccFiles.find(str(values[name]), languages) for name in ("training", "test"))
    if training.gold is None:
        raise ConfigError(f"{values['training']}.gold: no such file; the threshold is tuned on the training corpora's gold")
    if values["output"]:
        check_output(values["output"], [path for files in (training, test) for path in files.paths])
    search = build(SearchConfig, {"threads": values["threads"], **values["neighbours"]}, "neighbours")
    own = {name: values[name] for name in ("score", "k", "select")}
    config = build(MineConfig, {**own, "threshold": None, "neighbours": search}, "bucc")
    model = xswe.load(values["model"])
    gold = read_gold_ids(training.gold)
    tuned = extract(model, training, config)
    threshold = tune(tuned, gold)
    rows = [_row("training (tuned on)", score(tuned, gold, threshold))]
    found = extract(model, test, config)
    if test.gold is not None:
        rows.append(_row("test", score(found, read_gold_ids(test.gold), threshold)))
    lines = []
    if values["output"]:
        pairs = found.above(threshold)
        with open_output(values["output"]) as stream:
            stream.write("".join(f"{a}\t{b}\n" for a, b in pairs).encode("utf-8"))
        lines.append(f"{len(pairs):,} pairs of the test corpora: {values['output']}")
    header = ["corpora", "bucc_precision", "bucc_recall", "bucc_f1", "pairs", "gold", "threshold"]
    return "\n\n".join([table(header, rows), *lines])


def _row(name: str, found: BuccScore) -> list[Any]:
    return [name, found.precision, found.recall, found.f1, found.found, found.gold, f"{found.threshold:.4f}"]
