"""The page of a comparison or a sweep."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from xswe.errors import InputError
from xswe.evaluation.evaluate import (
    Comparison,
    Key,
    Measured,
    PairedTest,
    correct,
    figures_of,
    seconds_of_training,
    shown,
    title,
)
from xswe.evaluation.metrics import Row
from xswe.io.files import read_json
from xswe.model.folder import matrix_file
from xswe.report import figures
from xswe.report.page import figure, number, percent, render

_GROUPS = 5  # groups of bars side by side
_TRAINING = "seconds of training"


def read_comparison(path: str | Path) -> Comparison:
    """Read the JSON that ``compare`` writes; InputError: the file is missing or is not a comparison."""
    try:
        record = read_json(path)
        models = []
        for about in record["models"]:
            rows = [
                Row(**{k: v for k, v in row.items() if k != "model"})
                for row in record["rows"]
                if row["model"] == about["name"]
            ]
            size, rate = about["bytes"], about["sentences_per_second"]
            known = (about["name"], about["dim"], size, about["parameters"], tuple(about["languages"]))
            models.append(Measured(*known, rate, tuple(rows), about.get("training_seconds")))
        tests = tuple(correct([PairedTest(**test) for test in record["tests"]]))
        return Comparison(tuple(models), tests, record["threads"])
    except FileNotFoundError:
        raise InputError(path, "no such file", "give what compare wrote, as in compare=compare.json") from None
    except (KeyError, TypeError, ValueError):
        raise InputError(path, "no comparison in it", "give what compare wrote, as in compare=compare.json") from None


def comparison_page(found: Comparison, settings: dict[str, Any] | None = None) -> str:
    """Return the page of a comparison of models."""
    models = [model.only(shown(model.rows)) for model in found.models]
    keys = figures_of(row for model in models for row in model.rows)
    header, lines = found.layout()
    quality = _quality(models, keys)
    notes = str(found).partition("\n\n")[2].splitlines()
    sizes = {model.name: model.size / 1e6 for model in models}
    rates = {model.name: float(model.rate) for model in models if model.rate}
    seconds = {model.name: model.training for model in models if model.training}
    plots = _plots(
        quality, size=(sizes, "MB of the weights"), speed=(rates, "sentences a second"), training=(seconds, _TRAINING)
    )
    return render(
        "comparison.html",
        title="Comparison",
        about=f"{len(models)} models on the same {len(keys)} figure{'s' if len(keys) > 1 else ''}, times 100.",
        overview=[
            ("models", number(len(models)), ""),
            ("figures", number(len(keys)), ""),
            ("threads", number(found.threads), ""),
        ],
        header=header,
        lines=[["–" if cell is None else str(cell) for cell in line] for line in lines],
        notes=notes,
        plots=plots,
        mean="the mean of all figures that every model has",
        bars=_bars({model.name: {key: model.row(key) for key in keys} for model in models}, keys),
        tests=[
            (title(test.key, keys), test.best, test.other, _signed(test), figure(test.p, 3), figure(test.corrected, 3))
            for test in found.tests
        ],
        settings=settings,
    )


def sweep_page(found: Any, settings: dict[str, Any] | None = None) -> str:
    """Return the page of a :class:`xswe.training.sweep.Sweep`."""
    keys = found.keys
    names = [", ".join(f"{name.rpartition('.')[2]}={value}" for name, value in point.settings.items()) for point in found]
    header, lines = found.layout()
    rows = {}
    for name, point in zip(names, found, strict=True):
        spread = {key: (point.mean(key), point.deviation(key)) for key in keys}
        rows[name] = {key: _spread(key, *value) for key, value in spread.items()}
    seconds = {name: taken for name, point in zip(names, found, strict=True) if (taken := _seconds(point.folders))}
    sizes = {name: size for name, point in zip(names, found, strict=True) if (size := _size(point.folders))}
    quality = {
        name: sum(values) / len(values)
        for name, point in zip(names, found, strict=True)
        if (values := [mean for key in keys if (mean := point.mean(key)) is not None])
    }
    plots = _plots(quality, size=(sizes, "MB of the model"), training=(seconds, _TRAINING))
    tests = [
        (
            title(key, keys),
            str(names[found.points.index(found.best(key))]),
            names[k],
            percent(test.difference),
            figure(test.p, 3),
            figure(found.corrected[key, k], 3),
        )
        for (key, k), test in found.tests.items()
    ]
    return render(
        "comparison.html",
        title="Sweep",
        about=f"{len(names)} choices of {', '.join(found.names)}, {len(found.points[0].seeds)} seeds each, times 100.",
        overview=[("choices", number(len(names)), ""), ("seeds", number(len(found.points[0].seeds)), "")],
        header=header,
        lines=lines,
        notes=found.notes(),
        plots=plots,
        mean="the mean of all figures",
        bars=_bars(rows, keys),
        tests=tests,
        settings=settings,
    )


def _signed(test: PairedTest) -> str:
    return f"{100 * test.difference:+.1f} ({100 * test.low:+.1f} to {100 * test.high:+.1f})"


def _spread(key: Key, mean: float | None, deviation: float | None) -> Row | None:
    """Return a mean over seeds as a figure whose interval is plus or minus one standard deviation."""
    if mean is None:
        return None
    low, high = (None, None) if deviation is None else (mean - deviation, mean + deviation)
    return Row(key[0], key[1], key[2], mean, 0, split=key[3], low=low, high=high)


def _seconds(folders: Sequence[Path]) -> float | None:
    """Return the mean training time of run folders, in seconds; None if none of them records it."""
    found = [taken for folder in folders if (taken := seconds_of_training(folder)) is not None]
    return sum(found) / len(found) if found else None


def _size(folders: Sequence[Path]) -> float | None:
    paths = [path for folder in folders if (path := matrix_file(Path(folder) / "model")).is_file()]
    return sum(path.stat().st_size for path in paths) / len(paths) / 1e6 if paths else None


def _quality(models: Sequence[Measured], keys: Sequence[Key]) -> dict[str, float]:
    """Return each model's mean of the figures that all models have."""
    found = {model.name: {key: row.value for key in keys if (row := model.row(key))} for model in models}
    common = [key for key in keys if all(key in own for own in found.values())]
    return {name: sum(own[key] or 0.0 for key in common) / len(common) for name, own in found.items()} if common else {}


def _plots(quality: Mapping[str, float], **costs: tuple[Mapping[str, float], str]) -> list[tuple[str, Any]]:
    """Draw quality against each cost, or speed, that is known for at least two models."""
    known = {about: cost for about, cost in costs.items() if min(len(quality), len(cost[0])) > 1}
    return [(f"Quality against {about}", _against(quality, *cost, about != "speed")) for about, cost in known.items()]


def _against(quality: Mapping[str, float], costs: Mapping[str, float], axis: str, low_is_good: bool) -> Any:
    """Draw quality against a cost, or a speed, and join the models on the Pareto front."""
    points = sorted((max(costs[name], 1e-6), 100 * value, name) for name, value in quality.items() if name in costs)
    front, best = [], -1.0
    for x, y, _ in points if low_is_good else reversed(points):
        if y > best:
            front.append((x, y))
            best = y
    label = f"Quality against {axis}, a dot each: {', '.join(name for _, _, name in points)}"
    return figures.dots({"": points}, axis, "mean, %", label, log=(True, False), front=front, named=True)


def _bars(rows: Mapping[str, Mapping[Key, Row | None]], keys: Sequence[Key]) -> list[tuple[str, Any]]:
    """Draw the figures of each task, one group of bars per language pair or set."""
    out = []
    for task in dict.fromkeys(key[0] for key in keys):
        own = [key for key in keys if key[0] == task]
        for start in range(0, len(own), _GROUPS):
            groups: dict[str, dict[str, figures.Bar]] = {}
            for key in own[start : start + _GROUPS]:
                for name, known in rows.items():
                    if (row := known.get(key)) is not None and row.value is not None:
                        bounds = [None if bound is None else 100 * bound for bound in (row.low, row.high)]
                        groups.setdefault(title(key, keys), {})[name] = (100 * row.value, bounds[0], bounds[1])
            if groups:
                out.append((task, figures.bars(groups, "%", f"{task}: {', '.join(groups)}")))
    return out
