"""Tables of alignment from its measurements' JSON, for tables.py: one function a table, JSON in, Markdown out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from xswe.io.results import markdown

Record = Mapping[str, Any]
_KINDS = ("edited", "half missing", "moved", "novels")
_EACH = ("aer", "precision", "recall", "function", "other")


def sentences(record: Record) -> str:
    """F1 of beads, strict and lax, by what was done to the documents (eval/experiments/align_quality.py)."""
    kinds = [kind for kind in _KINDS if kind in record["f1"]["xswe"]]
    rows = []
    for method, found in record["f1"].items():
        for measure in ("strict", "lax"):
            figures = (f"{100 * found[name][measure]:.1f}" for name in (*kinds, "mean"))
            rows.append([method, measure, *figures])
    return markdown(["method", "F1", *kinds, "mean of bitexts"], rows)


def growth(record: Record) -> str:
    """What it costs to align ever longer texts (eval/experiments/align_quality.py)."""
    rows = []
    for row in record["growth"]:
        other = [row.get("vecalign encode"), row.get("vecalign align"), row.get("ratio")]
        rows.append(
            [
                f"{row['lines']:,}",
                f"{row['seconds']:.1f}",
                f"{row['MiB']:,.0f}",
                f"{100 * row['share of lines right']:.1f}",
                *(None if value is None else f"{value:.1f}" for value in other),
            ]
        )
    titles = ["lines a side", "s", "MiB beside the texts", "% of lines right"]
    return markdown([*titles, "s, vecalign: encode", "align", "times"], rows)


def links(record: list[Record]) -> str:
    """Alignment error rate of word links (eval/experiments/link_quality.py)."""
    rows = []
    for row in sorted(record, key=lambda row: (row["pair"], -row["sentences"])):
        figures = (f"{100 * row[name]:.1f}" for name in _EACH)
        rows.append([row["pair"], f"{row['sentences']:,}", row["method"], *figures])
    names = ["error rate", "precision", "recall", "of frequent words", "of others"]
    return markdown(["pair", "sentences", "method", *names], rows)


ALIGN: dict[str, tuple[str, Callable[[Any], str]]] = {
    "align": ("align.json", sentences),
    "align.growth": ("align.json", growth),
    "links": ("links.json", links),
}
