"""Tables, as plain text and as Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def cell(value: Any) -> str:
    """Format one cell: fractions of one as percentages with one decimal, None as a dash."""
    if value is None:
        return "-"
    return f"{100 * value:.1f}" if isinstance(value, float) else str(value)


def table(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Lay rows out under a header; the first column stands left, the others right."""
    cells = [list(map(str, header)), *([cell(value) for value in row] for row in rows)]
    widths = [max(len(row[k]) for row in cells) for k in range(len(header))]

    def line(row: Sequence[str]) -> str:
        parts = [
            text.ljust(width) if k == 0 else text.rjust(width)
            for k, (text, width) in enumerate(zip(row, widths, strict=True))
        ]
        return "  ".join(parts).rstrip()

    return "\n".join([line(cells[0]), "  ".join("-" * width for width in widths), *map(line, cells[1:])])


def markdown(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Lay rows out as a Markdown table; the first column stands left, the others right."""
    lines = [list(map(str, header)), ["---"] + ["---:"] * (len(header) - 1)]
    lines += [[cell(value).replace("|", "\\|") for value in row] for row in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
