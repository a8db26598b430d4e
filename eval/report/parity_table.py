"""The table of what each part of the method is compared with, and how far apart the two are (eval/parity)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from xswe.io.results import markdown

Row = Mapping[str, Any]


def parity(report: Mapping[str, Any]) -> str:
    """Lay out a line for each part and what it is beside; of a quantity that several languages have, the worst."""
    lines: dict[tuple[str, str], dict[str, list[Row]]] = {}
    for row in report["rows"]:
        what = row["what"].partition(": ")[2] or row["what"]
        lines.setdefault((row["component"], row["beside"]), {}).setdefault(what, []).append(row)
    body = [[*who, "; ".join(f"{what}: {_largest(rows)}" for what, rows in found.items())] for who, found in lines.items()]
    return markdown(["part", "beside", "largest difference"], body)


def _largest(rows: Sequence[Row]) -> str:
    if rows[0]["counted"]:
        return f"{sum(row['difference'] for row in rows):,.0f} of {sum(row['n'] for row in rows):,}"
    worst = max(row["difference"] for row in rows)
    return f"{worst:.0e}" if worst else "0"


PARITY: dict[str, tuple[str, Callable[[Any], str]]] = {"parity": ("parity.json", parity)}
