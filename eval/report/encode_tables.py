"""Tables of eval/bench/encode.py's JSON: for its own output, and for eval/report/tables.py."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from xswe.io.results import markdown

Record = Mapping[str, Any]
PEERS = ("model2vec", "sentence-transformers", "WordLlama")


def fastest_peer(row: Record, kind: str = "") -> float:
    """Return the sentences/s of the fastest peer in a row, of those whose name ends with ``kind``."""
    return max(rate for name, rate in row["rates"].items() if name.startswith(PEERS) and name.endswith(kind))


def _ours(report: Record) -> list[str]:
    return [name for name in report["rows"][0]["rates"] if name.startswith("xswe")]


def _text(row: Record) -> str:
    return f"{row['language']}, {row['words']} words"


def rates(report: Record) -> str:
    """Sentences a second of all systems."""
    rows = [[_text(row), row["threads"], *(f"{rate:,.0f}" for rate in row["rates"].values())] for row in report["rows"]]
    return markdown(["text", "threads", *report["rows"][0]["rates"]], rows)


def ratios(report: Record) -> str:
    """Times the fastest peer, whatever its units; for sub-words also times the fastest peer with the same units."""
    ours, like = _ours(report), "xswe sub-words"
    rows = []
    for row in report["rows"]:
        cells = [f"{row['rates'][name] / fastest_peer(row):.1f}" for name in ours]
        rows.append([_text(row), row["threads"], *cells, f"{row['rates'][like] / fastest_peer(row, 'sub-words'):.1f}"])
    return markdown(["text", "threads", *ours, "sub-words to sub-words"], rows)


def floors(report: Record) -> str:
    """The part of the floor, the pooling of ready ids alone, that is reached."""
    ours = _ours(report)
    rows = [
        [_text(row), row["threads"], *(f"{row['rates'][name] * row['profile'][name]['floor'] / 1e6:.2f}" for name in ours)]
        for row in report["rows"]
    ]
    return markdown(["text", "threads", *ours], rows)


def profile(report: Record) -> str:
    """Where one thread's time goes, microseconds a text."""
    rows = []
    for row in report["rows"]:
        for name in _ours(report) if row["threads"] == 1 else []:
            cells = [f"{row['profile'][name][part]:.2f}" for part in ("units", "packing", "look-up", "gather")]
            rows.append([_text(row), name, *cells, f"{1e6 / row['rates'][name]:.2f}"])
    return markdown(["text", "model", "units", "packing", "look-up", "gather", "all"], rows)


def processes(report: Record) -> str:
    """Cold start and peak memory, each in a process of its own on one thread."""
    rows = [[name, f"{row['cold start']:.2f}", f"{row['peak']:.0f}"] for name, row in report["processes"].items()]
    return markdown(["system", "cold start, s", "peak memory, MB"], rows)


def segmenters(report: Record) -> str:
    """Our look-up by fugashi and jieba, beside the bare libraries."""
    return markdown(["", "value"], [[name, f"{value:,.2f}"] for name, value in report["segmentation"].items()])


def precisions(report: Record) -> str:
    """Accuracy on Tatoeba and size of a real model in each precision."""
    if not report["precisions"]:
        return "(run with model=)"
    columns = list(report["precisions"][0])
    rows = [[cell if isinstance(cell, str) else f"{cell:.4g}" for cell in row.values()] for row in report["precisions"]]
    return markdown(columns, rows)


_SECTIONS = {
    "rates": rates,
    "ratios": ratios,
    "floors": floors,
    "profile": profile,
    "processes": processes,
    "segmenters": segmenters,
    "precisions": precisions,
}
ENCODING: dict[str, tuple[str, Callable[[Any], str]]] = {
    f"encoding.{name}": ("bench_encode.json", function) for name, function in _SECTIONS.items()
}


def lay_out(report: Record) -> str:
    """Lay all of a report out."""
    return "\n\n".join(f"{function.__doc__}\n\n{function(report)}" for function in _SECTIONS.values())
