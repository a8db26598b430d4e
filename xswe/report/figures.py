"""Figures as SVG that adapts to its page: any width, light or dark, no requests, the same bytes from the same values.

Drawing libraries fix the width, the colours and style attributes. Here all three depend on the reader, and the policy of
pages forbids style attributes: positions are percentages of the plot, and colours are CSS classes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from xswe.report.page import language_of

if TYPE_CHECKING:
    from markupsafe import Markup

_HEIGHT = 220
_COLOURS = 6  # in the style sheet
Bar = tuple[float, float | None, float | None]  # a value, and the bounds of its interval


@dataclass(frozen=True)
class Axis:
    """An axis from ``low`` to ``high``; both above 0 if logarithmic."""

    low: float
    high: float
    log: bool = False

    @classmethod
    def around(cls, values: Any, log: bool = False, zero: bool = False, room: float = 0.04) -> Axis:
        """Return an axis that covers all values, and 0 if ``zero``, with ``room`` as the share of its length left free."""
        found = np.asarray(values, np.float64).ravel()
        found = found[np.isfinite(found) & ((found > 0) | (not log))]
        if not len(found):
            return cls(1.0, 10.0, True) if log else cls(0.0, 1.0)
        low, high = float(found.min()), float(found.max())
        if log:
            gap = max((high / low) ** room, 1.1)
            return cls(low / gap, high * gap, True)
        low = min(0.0, low) if zero else low
        gap = (high - low) * room if high > low else abs(high) * 0.1 or 0.5
        return cls(low if zero and low == 0 else low - gap, high + gap)

    def fraction(self, value: float) -> float:
        """Return the position of a value, from 0 at the start to 1 at the end."""
        if self.log:
            return math.log(max(value, 1e-300) / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)

    def ticks(self, most: int = 6) -> list[tuple[float, str]]:
        """Return round values within the axis, and their labels."""
        if self.log:
            first, last = math.ceil(math.log10(self.low)), math.floor(math.log10(self.high))
            if last - first >= 2:
                every = -(-(last - first + 1) // most)
                return [(10.0**e, _short(10.0**e)) for e in range(first, last + 1, every)]
            found = [m * 10.0**e for e in range(first - 1, last + 1) for m in (1, 2, 3, 5)]
            found = [value for value in found if self.low <= value <= self.high]
            if len(found) < 2:  # less than a factor of two: practically linear
                return Axis(self.low, self.high).ticks(4)
            return [(value, _short(value)) for value in found[:: -(-len(found) // most)]]
        rough = (self.high - self.low) / most
        base = 10.0 ** math.floor(math.log10(rough))
        step = next(base * m for m in (1, 2, 2.5, 5, 10) if base * m >= rough)
        first = math.ceil(self.low / step - 1e-9)
        values = [step * k for k in range(first, math.floor(self.high / step + 1e-9) + 1)]
        digits = max(0, -math.floor(math.log10(step) + 1e-9) + (1 if f"{step:.1e}".startswith("2.5") else 0))
        return [(value, _short(value, digits)) for value in values]


def _short(value: float, digits: int = 0) -> str:
    """Return a number as an axis label, e.g. 1,200 as 1.2k."""
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:.3g}{unit}"
    if digits == 0 and 0 < abs(value) < 1:
        return f"{value:.3g}"
    return f"{round(value, digits) + 0.0:.{digits}f}"


def _at(share: float) -> str:
    return f"{100 * share:.2f}".rstrip("0").rstrip(".") + "%"


def _text(value: object) -> str:
    from markupsafe import escape

    return str(escape(value))


def _frame(x: Axis | None, y: Axis, x_title: str, y_title: str, inside: Sequence[str], label: str, height: int) -> Markup:
    """Draw axes around a figure."""
    from markupsafe import Markup

    parts = [f'<svg class="plot" role="img" aria-label="{_text(label)}" width="100%" height="{height}">']
    for value, name in y.ticks(4):
        at = _at(1 - y.fraction(value))
        parts.append(f'<line class="grid" x1="0" x2="100%" y1="{at}" y2="{at}"/>')
        parts.append(f'<text class="y" x="-8" y="{at}" dy="4">{name}</text>')
    parts.append('<line class="axis" x1="0" x2="100%" y1="100%" y2="100%"/>')
    for value, name in x.ticks() if x else ():
        parts.append(f'<text class="x" x="{_at(x.fraction(value) if x else 0)}" y="100%" dy="16">{name}</text>')
    parts += inside
    parts.append(f'<text class="x" x="50%" y="100%" dy="34">{_text(x_title)}</text>')
    parts.append(f'<text x="-3.2rem" y="0" dy="-6">{_text(y_title)}</text></svg>')
    return Markup("".join(parts))


def _rectangle(series: int, left: float, width: float, height: float, title: str = "") -> str:
    """Return a bar that stands on the axis."""
    sides = f'x="{_at(left)}" width="{_at(width)}" y="{_at(1 - height)}" height="{_at(max(0.0, height))}"'
    inside = f"<title>{_text(title)}</title>" if title else ""
    return f'<rect class="s{series % _COLOURS} fill" {sides}>{inside}</rect>'


def _upright(kind: str, at: float, low: float = 0.0, high: float = 1.0) -> str:
    return f'<line class="{kind}" x1="{_at(at)}" x2="{_at(at)}" y1="{_at(1 - high)}" y2="{_at(1 - low)}"/>'


def _stretched(inside: str) -> str:
    """Return a part of a plot with coordinates from 0 to 1 in both directions, y downwards."""
    return f'<svg viewBox="0 0 1 1" preserveAspectRatio="none" width="100%" height="100%" overflow="visible">{inside}</svg>'


def _points(pairs: Sequence[tuple[float, float]], x: Axis, y: Axis) -> str:
    return " ".join(f"{x.fraction(a):.4f},{1 - y.fraction(b):.4f}" for a, b in pairs)


def _with_legend(plot: Markup, names: Sequence[str]) -> Markup:
    from markupsafe import Markup

    if len(names) < 2:
        return plot
    keys = "".join(f'<li class="s{k % _COLOURS}"><span class="key"></span>{_text(n)}</li>' for k, n in enumerate(names))
    return Markup(f'<ul class="legend">{keys}</ul>{plot}')


def histogram(
    edges: np.ndarray,
    series: Mapping[str, np.ndarray],
    x_title: str,
    label: str,
    cut: float | None = None,
    y_title: str = "",
) -> Markup:
    """Draw counts over the same bins, float64 (b,) each, the first series as bars, the others as areas over them.

    ``label`` describes the figure for screen readers; ``cut`` is marked by a line that scripts may move (class ``cut``).
    """
    x = Axis(float(edges[0]), float(edges[-1]))
    y = Axis.around([float(np.max(counts, initial=1)) for counts in series.values()], zero=True)
    inside = []
    for k, counts in enumerate(series.values()):
        if k == 0:
            for low, high, count in zip(edges[:-1], edges[1:], counts, strict=True):
                if count:
                    a, b = x.fraction(low), x.fraction(high)
                    inside.append(_rectangle(0, a, 0.94 * (b - a), y.fraction(float(count))))
        else:
            steps = [(float(edges[0]), 0.0)]
            for low, high, count in zip(edges[:-1], edges[1:], counts, strict=True):
                steps += [(float(low), float(count)), (float(high), float(count))]
            steps.append((float(edges[-1]), 0.0))
            points = _points(steps, x, y)
            inside.append(
                _stretched(
                    f'<polygon class="s{k} fill area" points="{points}"/><polyline class="s{k} line" points="{points}"/>'
                )
            )
    if cut is not None:
        inside.append(_upright("cut", min(1.0, max(0.0, x.fraction(cut)))))
    return _with_legend(_frame(x, y, x_title, y_title, inside, label, _HEIGHT), list(series))


def lines(
    series: Mapping[str, Sequence[tuple[float, float]]],
    x_title: str,
    y_title: str,
    label: str,
    *,
    log_x: bool = False,
    zero: bool = False,
    mark: float | None = None,
    span: tuple[float, float] | None = None,
) -> Markup:
    """Draw one line per series of (x, y), in order of x; ``mark`` gets a vertical line, ``span`` is the range of x."""
    x = Axis(*span) if span else Axis.around([a for pairs in series.values() for a, _ in pairs], log_x, room=0)
    y = Axis.around([b for pairs in series.values() for _, b in pairs], zero=zero)
    if y.high > 1.0 >= max((b for pairs in series.values() for _, b in pairs), default=2.0):
        y = Axis(y.low, 1.0)  # shares end at 1
    paths = "".join(
        f'<polyline class="s{k % _COLOURS} line" points="{_points(pairs, x, y)}"/>'
        for k, pairs in enumerate(series.values())
        if len(pairs) > 1
    )
    inside = [_stretched(paths)]
    for k, pairs in enumerate(series.values()):
        if len(pairs) < 40:
            inside += [
                f'<circle class="s{k % _COLOURS} dot" cx="{_at(x.fraction(a))}" cy="{_at(1 - y.fraction(b))}" r="3"/>'
                for a, b in pairs
            ]
    if mark is not None:
        inside.append(_upright("cut", min(1.0, max(0.0, x.fraction(mark)))))
    return _with_legend(_frame(x, y, x_title, y_title, inside, label, _HEIGHT), list(series))


def dots(
    series: Mapping[str, Sequence[tuple[float, float, str]]],
    x_title: str,
    y_title: str,
    label: str,
    *,
    log: tuple[bool, bool] = (False, False),
    front: Sequence[tuple[float, float]] = (),
    named: bool = False,
    texts: Mapping[str, Sequence[str]] | None = None,
    height: int = 300,
) -> Markup:
    """Draw one dot per (x, y, name), coloured by series; a thin line joins the points of the ``front``.

    Names show on hovering or, if ``named``, next to the dots; ``texts``: the possible languages of the names, by series.
    ``log``: which of the two axes are logarithmic; ``height`` is in pixels.
    """
    every = [point for points in series.values() for point in points]
    x, y = (Axis.around([point[k] for point in every], log[k]) for k in (0, 1))
    small = len(every) > 200
    inside = [_stretched(f'<polyline class="front" points="{_points(front, x, y)}"/>')] if len(front) > 1 else []
    names = []
    for k, (kind, points) in enumerate(series.items()):
        for a, b, name in points:
            cx, cy = _at(x.fraction(a)), _at(1 - y.fraction(b))
            language = f' lang="{_text(language_of(name, texts[kind]))}"' if texts else ""
            title = f"<title{language}>{_text(name)}</title>" if name else ""
            radius = 2.2 if small else 4.5
            inside.append(f'<circle class="s{k % _COLOURS} dot" cx="{cx}" cy="{cy}" r="{radius}">{title}</circle>')
            if named:
                names.append(f'<text class="name" x="{cx}" y="{cy}" dx="8" dy="4">{_text(name)}</text>')
    return _with_legend(_frame(x, y, x_title, y_title, [*inside, *names], label, height), list(series))


def bars(
    groups: Mapping[str, Mapping[str, Bar]],
    y_title: str,
    label: str,
    *,
    zero: bool = True,
) -> Markup:
    """Draw bars side by side, by group and series; a bar is a value with the bounds of its interval, or None."""
    names = list(dict.fromkeys(name for group in groups.values() for name in group))
    values = [v for group in groups.values() for three in group.values() for v in three if v is not None]
    y = Axis.around(values, zero=zero, room=0.08)
    inside, width = [], 0.76 / max(len(groups), 1)
    for g, (title, group) in enumerate(groups.items()):
        middle = (g + 0.5) / len(groups)
        inside.append(f'<text class="x" x="{_at(middle)}" y="100%" dy="16">{_text(title)}</text>')
        for name, (value, low, high) in group.items():
            k = names.index(name)
            left, top = middle - width / 2 + width * k / len(names), y.fraction(value)
            inside.append(_rectangle(k, left, width / len(names) * 0.88, top, f"{name}, {title}: {value:.4g}"))
            if low is not None and high is not None:
                inside.append(_upright("whisker", left + width / len(names) * 0.44, y.fraction(low), y.fraction(high)))
    return _with_legend(_frame(None, y, "", y_title, inside, label, _HEIGHT), names)


# Analyses of a vector space as in Wada et al. (2025, sections 5.2 and 5.3, appendix C).

_MIN_SENTENCES = 3  # per language, for a silhouette


@dataclass(frozen=True)
class Cloud:
    """Sentences in a plane."""

    name: str  # of the step or method
    drawing: Any  # the plot
    # of the languages in the whole space, -1 to 1: 0 if they overlap; None for a single language
    silhouette: float | None
    # of the variance on each axis; None if the axes are not principal components
    shares: tuple[float, float] | None = None


def proportion(share: float, n: int) -> tuple[float, float]:
    """Return the 95 % Wilson interval of a share of ``n`` trials."""
    z = 1.959964
    wide = z * z / n
    middle = (share + wide / 2) / (1 + wide)
    half = z * float(np.sqrt(share * (1 - share) / n + wide / (4 * n))) / (1 + wide)
    return max(0.0, middle - half), min(1.0, middle + half)


def language_silhouette(vectors: Mapping[str, np.ndarray]) -> float | None:
    """Return the mean silhouette of the languages by cosine: how much nearer sentences are to their own than to the next.

    It is near 0 if the languages overlap, None for fewer than two. Vectors have norm 1, float32 (n, d).
    """
    known = {code: rows for code, rows in vectors.items() if len(rows) >= _MIN_SENTENCES}
    if len(known) < 2:
        return None
    found = []
    for code, rows in known.items():
        own = (1 - rows @ rows.T).sum(1) / (len(rows) - 1)
        other = np.min([(1 - rows @ rest.T).mean(1) for name, rest in known.items() if name != code], 0)
        found.append((other - own) / np.maximum(np.maximum(own, other), 1e-12))
    return float(np.concatenate(found).mean())


def plane(name: str, vectors: Mapping[str, np.ndarray], texts: Mapping[str, Sequence[str]]) -> Cloud:
    """Draw sentences, given as unit vectors, float32 (n, d), by language, in their first two principal components."""
    every = np.concatenate(list(vectors.values())).astype(np.float64)
    centred = every - every.mean(0)
    left, values, _ = np.linalg.svd(centred, full_matrices=False)
    places = left[:, :2] * values[:2]
    total = float((values**2).sum()) or 1.0
    shares = (float(values[0] ** 2) / total, float(values[1] ** 2) / total)
    titles = (f"PC 1 ({100 * shares[0]:.1f} %)", f"PC 2 ({100 * shares[1]:.1f} %)")
    return Cloud(name, scatter(places, vectors, texts, titles, name), language_silhouette(vectors), shares)


def scatter(
    places: np.ndarray,
    vectors: Mapping[str, np.ndarray],
    texts: Mapping[str, Sequence[str]],
    titles: tuple[str, str],
    name: str,
) -> Any:
    """Draw sentences at ``places``, coloured by language; hovering shows the beginning of each."""
    series, start = {}, 0
    for code, rows in vectors.items():
        own = places[start : start + len(rows)].tolist()
        series[code] = [(x, y, text[:50]) for (x, y), text in zip(own, texts[code], strict=True)]
        start += len(rows)
    codes = {code: (code,) for code in series}
    return dots(series, *titles, f"{name}: sentences by language", texts=codes, height=260)
