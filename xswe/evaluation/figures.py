"""Figures as SVG: one style, and the same bytes from the same values."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from xswe.errors import DependencyError
from xswe.files import whole_file

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@contextmanager
def svg_figure(path: Path, x_title: str, y_title: str, size: tuple[float, float] = (6.4, 3.6)) -> Iterator[Axes]:
    """Open axes to draw on; at the end the figure is written, with a legend where anything has a label.

    Args:
        path: the file.
        x_title: under the horizontal axis.
        y_title: beside the vertical one.
        size: width and height in inches.

    Raises:
        DependencyError: matplotlib is not installed.
    """
    try:
        import matplotlib as mpl
        from matplotlib.figure import Figure
    except ImportError:
        raise DependencyError("matplotlib", "evaluate", "drawing a figure") from None
    with mpl.rc_context({"svg.hashsalt": "xswe", "svg.fonttype": "none", "font.size": 9}):
        figure = Figure(figsize=size, layout="constrained")
        axes = figure.add_subplot()
        axes.set_xlabel(x_title)
        axes.set_ylabel(y_title)
        axes.grid(axis="y", linewidth=0.3)
        axes.set_axisbelow(True)
        yield axes
        if axes.get_legend_handles_labels()[0]:
            figure.legend(loc="outside right upper", fontsize=7, frameon=False, handlelength=3)
        with whole_file(path) as temporary:
            figure.savefig(temporary, format="svg", metadata={"Date": None, "Creator": "xswe"})
