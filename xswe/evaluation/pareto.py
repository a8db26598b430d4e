"""Quality against cost: which of many runs no other beats on both, and a figure of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from xswe.evaluation.figures import svg_figure


def pareto_front(points: Sequence[tuple[float, float]]) -> set[int]:
    """Return which points no other beats: none is as cheap and as good, and better in one of the two.

    Args:
        points: (cost, quality).
    """
    return {
        i
        for i, (cost, value) in enumerate(points)
        if not any(c <= cost and v >= value and (c < cost or v > value) for c, v in points)
    }


def draw_pareto(points: Sequence[tuple[float, float, str]], x_title: str, y_title: str, path: Path) -> None:
    """Draw quality against cost as SVG; the points that no other beats are filled, joined and named.

    Args:
        points: (cost, quality as a fraction of one, name); the axis of costs is logarithmic.
        x_title: of the axis of costs.
        y_title: of the axis of qualities, which are shown as percentages.
        path: the file.

    Raises:
        DependencyError: matplotlib is not installed.
    """
    front = pareto_front([(cost, value) for cost, value, _ in points])
    shown = [(max(cost, 1e-9), 100 * value, name) for cost, value, name in points]  # a cost of nothing has a place, too
    with svg_figure(path, x_title, f"{y_title}, %") as axes:
        axes.set_xscale("log")
        best = sorted(shown[k][:2] for k in front)
        axes.plot(*zip(*best, strict=True), "--", color="C0", linewidth=0.8)
        for k, (x, y, name) in enumerate(shown):
            axes.plot([x], [y], "o", color="C0", fillstyle="full" if k in front else "none")
            if k in front:
                axes.annotate(name, (x, y), (-4, 4), textcoords="offset points", ha="right", fontsize=7)
