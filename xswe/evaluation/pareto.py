"""Quality against cost: which of many runs no other beats on both, and a figure of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from xml.sax.saxutils import escape

_WIDTH, _HEIGHT, _LEFT, _BOTTOM, _MARGIN = 720, 440, 70, 60, 24


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


def pareto_figure(points: Sequence[tuple[float, float, str]], x_title: str, y_title: str) -> str:
    """Draw quality against cost as SVG; the points that no other beats are filled, joined and named.

    Args:
        points: (cost, quality as a fraction of one, name); the axis of costs is logarithmic.
        x_title: of the axis of costs.
        y_title: of the axis of qualities, which are shown as percentages.
    """
    front = pareto_front([(cost, value) for cost, value, _ in points])
    costs, values = [math.log10(max(cost, 1e-9)) for cost, *_ in points], [100 * value for _, value, _ in points]
    low_x, high_x = _padded(min(costs), max(costs))
    low_y, high_y = _padded(min(values), max(values))

    def place(k: int) -> tuple[float, float]:
        across = (costs[k] - low_x) / (high_x - low_x)
        up = (values[k] - low_y) / (high_y - low_y)
        return (
            _LEFT + across * (_WIDTH - _LEFT - _MARGIN),
            _HEIGHT - _BOTTOM - up * (_HEIGHT - _BOTTOM - _MARGIN),
        )

    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}"',
        ' font-family="sans-serif" font-size="12">',
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>',
        f'<path d="M{_LEFT} {_MARGIN}V{_HEIGHT - _BOTTOM}H{_WIDTH - _MARGIN}" fill="none" stroke="black"/>',
    ]
    for step in range(5):
        share = step / 4
        x, y = _LEFT + share * (_WIDTH - _LEFT - _MARGIN), _HEIGHT - _BOTTOM - share * (_HEIGHT - _BOTTOM - _MARGIN)
        cost, value = 10 ** (low_x + share * (high_x - low_x)), low_y + share * (high_y - low_y)
        out.append(f'<text x="{x:.1f}" y="{_HEIGHT - _BOTTOM + 18}" text-anchor="middle">{_short(cost)}</text>')
        out.append(f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{value:.1f}</text>')
    out.append(f'<text x="{_WIDTH / 2}" y="{_HEIGHT - 12}" text-anchor="middle">{escape(x_title)}</text>')
    middle = _HEIGHT / 2
    out.append(
        f'<text x="16" y="{middle}" text-anchor="middle" transform="rotate(-90 16 {middle})">{escape(y_title)}, %</text>'
    )
    best = sorted(front, key=lambda k: (costs[k], values[k]))
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in map(place, best))
    out.append(f'<polyline points="{line}" fill="none" stroke="#1f6f8b" stroke-dasharray="4 3"/>')
    for k, (_, _, name) in enumerate(points):
        x, y = place(k)
        fill = "#1f6f8b" if k in front else "white"
        title = f"<title>{escape(name)}</title>"
        out.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" fill="{fill}" stroke="#1f6f8b">{title}</circle>')
        if k in front:
            out.append(f'<text x="{x - 8:.1f}" y="{y - 8:.1f}" text-anchor="end" font-size="10">{escape(name)}</text>')
    return "\n".join([*out, "</svg>"]) + "\n"


def _padded(low: float, high: float) -> tuple[float, float]:
    """Return bounds with some room at both ends, also around a single value."""
    room = 0.1 * (high - low) or 0.5
    return low - room, high + room


def _short(number: float) -> str:
    """Write a number of any size in a few characters."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= size:
            return f"{number / size:.3g}{letter}"
    return f"{number:.3g}"
