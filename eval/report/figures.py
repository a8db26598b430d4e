"""Figures as SVG, of one style, the same bytes from the same values: fronts of quality, and studies of one setting."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

from xswe.errors import ConfigError, DependencyError
from xswe.evaluation.metrics import Row, primary_metrics
from xswe.io.files import whole_file
from xswe.io.results import markdown

if TYPE_CHECKING:
    from matplotlib.axes import Axes


INK = "#333333"  # of all that is no series; in the file it is the colour of _STYLE, which follows the page
_STYLE = "svg {color: #24292f} @media (prefers-color-scheme: dark) {svg {color: #d0d7de}}"
_INKED = ("text.color", "axes.labelcolor", "axes.edgecolor", "axes.titlecolor", "xtick.color", "ytick.color")


@contextmanager
def svg_axes(path: Path, columns: int = 1, size: tuple[float, float] = (6.4, 3.6)) -> Iterator[Sequence[Axes]]:
    """Open axes side by side; at the end they are written as SVG without a background, for light and dark pages.

    Text stays text, and the same values give the same bytes.

    Args:
        path: the file.
        columns: the number of axes.
        size: width and height in inches.

    Raises:
        DependencyError: matplotlib is not installed.
    """
    try:
        import matplotlib as mpl
        from matplotlib.figure import Figure
    except ImportError:
        raise DependencyError("matplotlib", "evaluate", "drawing a figure") from None
    look: dict[str, Any] = {"svg.hashsalt": "xswe", "svg.fonttype": "none", "font.size": 9}
    look |= {"axes.spines.top": False, "axes.spines.right": False, **dict.fromkeys(_INKED, INK)}
    with mpl.rc_context(look):
        figure = Figure(figsize=size, layout="constrained")
        yield figure.subplots(1, columns, squeeze=False)[0]
        with whole_file(path) as temporary, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about letters that the layout has no font for: readers have one
            about = {"Date": None, "Creator": "xswe"}
            figure.savefig(temporary, format="svg", transparent=True, metadata=about)
            drawn = temporary.read_text("utf-8").replace(INK, "currentColor")
            temporary.write_text(drawn.replace("*{stroke-linejoin", f"{_STYLE} *{{stroke-linejoin", 1), "utf-8")


@contextmanager
def svg_figure(path: Path, x_title: str, y_title: str) -> Iterator[Axes]:
    """Open axes to draw on; at the end the figure is written, with a legend where anything has a label.

    Args:
        path: the file.
        x_title: under the horizontal axis.
        y_title: beside the vertical one.

    Raises:
        DependencyError: matplotlib is not installed.
    """
    with svg_axes(path) as (axes,):
        axes.set_xlabel(x_title)
        axes.set_ylabel(y_title)
        axes.grid(axis="y", linewidth=0.3)
        axes.set_axisbelow(True)
        yield axes
        if axes.get_legend_handles_labels()[0]:
            axes.figure.legend(loc="outside right upper", fontsize=7, frameon=False, handlelength=3)


# Quality against cost: which of many runs no other beats on both, and a figure of them.


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


# What an ablation found: one table, as Markdown and JSON, and one figure.


AXES = ("choice", "linear", "log")


@dataclass(frozen=True)
class Study:
    """What is varied, and what is looked at.

    Attributes:
        name: of the files.
        title: what the table calls the values.
        setting: the dotted name of the setting varied; None for one run whose steps are compared.
        values: its values.
        labels: what tables call them, where they are not to be shown as they are.
        fixed: settings that the study needs, by dotted name.
        steps: the steps of the method after which each variant is measured.
        teacher: it says nothing without a teacher.
        axis: of the figure: ``choice`` (bars), ``linear`` or ``log`` (lines).
    """

    name: str
    title: str
    setting: str | None = None
    values: tuple[Any, ...] = ()
    labels: tuple[Any, ...] = ()
    fixed: dict[str, Any] = field(default_factory=dict)
    steps: tuple[str, ...] = ("refinement",)
    teacher: bool = False
    axis: str = "choice"

    def __post_init__(self) -> None:
        if self.axis not in AXES:
            raise ConfigError(f"study.axis={self.axis!r}: use {', '.join(AXES)}")
        if self.axis != "choice" and not all(isinstance(name, (int, float)) for name in self.names):
            raise ConfigError(f"study.axis={self.axis} needs numbers as values: set study.axis=choice")
        if self.setting and not self.values:
            raise ConfigError(f"study.values is empty: name values of {self.setting}, as in study.values=[1,2]")
        if self.labels and len(self.labels) != len(self.values):
            raise ConfigError(f"study.labels has {len(self.labels)} entries for {len(self.values)} values")

    @property
    def names(self) -> tuple[Any, ...]:
        """What tables call the values."""
        return self.labels or self.values


@dataclass(frozen=True)
class Variant:
    """One line of the table.

    Attributes:
        name: the value, or what it is called.
        step: the step after which it was measured.
        dim: dimensions of a vector.
        units: number of units.
        rows: the figures.
        reason: why there are none.
    """

    name: Any
    step: str
    dim: int = 0
    units: int = 0
    rows: tuple[Row, ...] = ()
    reason: str | None = None

    def figures(self) -> dict[str, float]:
        """Return the main figure of each task and subset."""
        measured = [row for row in self.rows if row.value is not None]
        chosen = primary_metrics(((row.task, row.subset), row.metric) for row in measured)
        return {
            " ".join(filter(None, [row.task if row.task != "file" else "", row.subset])): float(row.value or 0.0)
            for row in measured
            if chosen.get((row.task, row.subset)) == row.metric
        }


def as_json(study: Study, variants: Sequence[Variant], settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return everything that was measured as a JSON object."""
    rows = [
        {"variant": v.name, "step": v.step, "dim": v.dim, "units": v.units, **row.as_dict()}
        for v in variants
        for row in v.rows
    ]
    skipped = [{"variant": v.name, "step": v.step, "reason": v.reason} for v in variants if v.reason]
    about = {"study": study.name, "title": study.title, "setting": study.setting, "axis": study.axis}
    return {**about, "settings": dict(settings), "rows": rows, "skipped": skipped}


def as_table(study: Study, variants: Sequence[Variant]) -> tuple[list[str], list[list[Any]]]:
    """Lay the figures out: a line a variant and step, a column a task."""
    columns = list(dict.fromkeys(place for variant in variants for place in variant.figures()))
    stages = study.setting is None
    header = [study.title, *([] if stages else ["after"]), "dims", "units", *columns]
    lines = []
    for variant in variants:
        name = [variant.step] if stages else [str(variant.name), variant.step]
        found = variant.figures()
        sizes = [None, None] if variant.reason else [str(variant.dim), f"{variant.units:,}"]
        lines.append([*name, *sizes, *(found.get(place) for place in columns)])
    return header, lines


def as_markdown(study: Study, variants: Sequence[Variant]) -> str:
    """Return the table in Markdown, with what was skipped below it."""
    reasons = {f"{variant.name}: {variant.reason}" for variant in variants if variant.reason}
    return "\n".join([markdown(*as_table(study, variants)), *(f"\nSkipped {reason}." for reason in sorted(reasons))])


def draw(study: Study, variants: Sequence[Variant], path: Path) -> None:
    """Draw the figure, a line (or a row of bars) a task and step, as SVG; the same figures give the same bytes.

    Raises:
        DependencyError: matplotlib is not installed.
    """
    stages = study.setting is None
    lines: dict[tuple[str, str], dict[Any, float]] = {}
    for variant in variants:
        for place, value in variant.figures().items():
            x, step = (variant.step, "") if stages else (variant.name, variant.step)
            lines.setdefault((place, step), {})[x] = 100 * value
    names = list(dict.fromkeys(x for line in lines.values() for x in line))
    places, steps = list(dict.fromkeys(p for p, _ in lines)), list(dict.fromkeys(s for _, s in lines))
    with svg_figure(path, study.title, "F1, Spearman (x 100)") as axes:
        for k, ((place, step), line) in enumerate(lines.items()):
            label = f"{place}, {step}" if step else place
            colour = f"C{places.index(place) % 10}"
            if study.axis == "choice":
                width = 0.8 / len(lines)
                at = [names.index(x) - 0.4 + (k + 0.5) * width for x in line]
                faded = 0.45 + 0.55 * (steps.index(step) + 1) / len(steps)
                axes.bar(at, list(line.values()), width, color=colour, alpha=faded, label=label)
            else:
                style = ("-", "--", ":", "-.")[(len(steps) - 1 - steps.index(step)) % 4]
                axes.plot(list(line), list(line.values()), style, color=colour, marker="o", markersize=3, label=label)
        if study.axis == "choice":
            axes.set_xticks(range(len(names)), [fill(str(name), 12) for name in names])
        else:
            axes.set_xscale(study.axis)
            axes.set_xticks(names, [f"{name:,}" for name in names])
            axes.minorticks_off()
