"""The runs of a sweep in one table, and figures of quality against cost.

    python -m eval.experiments.sweep_table runs=runs/en-ja[,…] [metric=accuracy] [step=refinement] [output=runs/sweep]

``runs`` are run folders, or folders of them: what ``python -m xswe train -m key=a,b,c`` left. The metric is that of the
held-out pairs after the step; of a single language it is ``spearman_with_teacher``. Writes ``sweep.csv``, ``sweep.json``,
``pareto-bytes.svg`` and ``pareto-seconds.svg``. Seconds.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eval.report.figures import draw_pareto, pareto_front
from eval.settings import run_script
from xswe.errors import ConfigError, InputError
from xswe.io.files import read_json, whole_file, write_json
from xswe.io.results import table


@dataclass(frozen=True)
class SweepRun:
    """One run of a sweep.

    Attributes:
        folder: the run folder.
        settings: what it was told, flat: ``refine.batch_size`` and the like.
        value: its quality, a fraction of one.
        bytes: of the model's matrix.
        seconds: its stages took, whichever run did them.
    """

    folder: Path
    settings: dict[str, Any]
    value: float
    bytes: int
    seconds: float


DEFAULTS: dict[str, Any] = {"runs": "runs", "metric": "accuracy", "step": "refinement", "output": "runs/sweep"}


def run(values: dict[str, Any]) -> str:
    """Gather the runs, write table and figures, and return the table."""
    paths = values["runs"].split(",")
    runs = [read_run(folder, values["metric"], values["step"]) for folder in find_runs(paths)]
    varying = varying_settings([one.settings for one in runs])
    front = {"bytes": pareto_front([(r.bytes, r.value) for r in runs])}
    front["seconds"] = pareto_front([(r.seconds, r.value) for r in runs])
    output = Path(values["output"])
    rows = []
    for k in sorted(range(len(runs)), key=lambda k: -runs[k].value):
        one = runs[k]
        on = ", ".join(cost for cost in front if k in front[cost])
        chosen = {name: one.settings.get(name) for name in varying}
        figures = {values["metric"]: one.value, "bytes": one.bytes, "seconds": one.seconds, "pareto": on}
        rows.append(chosen | figures | {"folder": str(one.folder)})
    write_json(output / "sweep.json", {"metric": values["metric"], "step": values["step"], "runs": rows})
    with whole_file(output / "sweep.csv") as temporary, open(temporary, "w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    names = [", ".join(f"{name.split('.')[-1]}={one.settings.get(name)}" for name in varying) for one in runs]
    for cost in front:
        points = [(float(getattr(one, cost)), one.value, name) for one, name in zip(runs, names, strict=True)]
        draw_pareto(points, cost, values["metric"], output / f"pareto-{cost}.svg")
    header = [name for name in rows[0] if name != "folder"]
    cells = [[f"{row[name]:.0f}" if name == "seconds" else row[name] for name in header] for row in rows]
    # The first column stands left in a table; a setting that is a fraction must not be shown as a percentage.
    shown = [[str(cell) if name in varying else cell for name, cell in zip(header, row, strict=True)] for row in cells]
    return f"{table(header, shown)}\n\ntable and figures: {output}"


def find_runs(paths: Sequence[str]) -> list[Path]:
    """Find run folders: those given, and those anywhere below a given one.

    Raises:
        InputError: there is none.
    """
    found = sorted({file.parent for path in paths for file in Path(path).rglob("results.json") if is_run(file)})
    if not found:
        raise InputError(
            ", ".join(paths), "no run folder in it", "give the folders that a sweep wrote, as in runs=runs/en-ja"
        )
    return found


def is_run(results: Path) -> bool:
    """Tell whether a ``results.json`` is that of a finished training run."""
    return (results.parent / "run.json").is_file() and (results.parent / "model" / "model.safetensors").is_file()


def read_run(folder: Path, metric: str, step: str) -> SweepRun:
    """Read one run; its quality is the mean of the metric over the subsets of the held-out pairs."""
    results = _whole(folder / "results.json", "rows", "settings")
    rows = [row for row in results["rows"] if row["note"] == step and row["metric"] == metric]
    values = [row["value"] for row in rows if row["task"] == "held-out" and row["value"] is not None]
    if not values:
        known = sorted({row["metric"] for row in results["rows"]})
        raise ConfigError(f"metric={metric}: {folder} has none of it at the step {step!r}; it has {', '.join(known)}")
    size = (folder / "model" / "model.safetensors").stat().st_size
    seconds = sum(_whole(folder / "run.json", "seconds")["seconds"].values())
    return SweepRun(folder, flat(results["settings"]), sum(values) / len(values), size, round(seconds, 3))


def _whole(file: Path, *wanted: str) -> dict[str, Any]:
    """Read one of a run's files, which has the entries ``wanted``."""
    cure = "give the same training command again, which writes it anew, or remove the folder"
    try:
        found = read_json(file)
    except ValueError as error:
        raise InputError(file, f"damaged ({error})", cure) from None
    if not isinstance(found, dict) or not set(wanted) <= set(found):
        raise InputError(file, f"it has no {' and '.join(wanted)}", cure)
    return found


def flat(settings: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Flatten nested settings: ``{"refine": {"batch": 5}}`` becomes ``{"refine.batch_size": 5}``."""
    out: dict[str, Any] = {}
    for name, value in settings.items():
        out |= flat(value, f"{prefix}{name}.") if isinstance(value, Mapping) else {f"{prefix}{name}": value}
    return out


def varying_settings(all_settings: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the settings that are not the same in all runs, in their order of appearance."""
    names = dict.fromkeys(name for settings in all_settings for name in settings)
    return [name for name in names if len({repr(settings.get(name)) for settings in all_settings}) > 1]


if __name__ == "__main__":
    run_script(lambda settings: print(run(settings)), DEFAULTS, __doc__)
