"""Names of the runs of a sweep: the settings in which they differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from xswe.io.files import read_json

_CHOICES = ("teacher.model", "distilled.model", "units.kind")  # each stands for the rest of its section


def names_of_runs(models: Sequence[str]) -> list[str] | None:
    """Return names such as ``pca.dim=64, seed=1`` for the models of runs.

    None if one of them is not the model of a run, or two were trained with the same settings.
    """
    files = [Path(model) / "config.json" for model in models]
    if len(files) < 2 or not all(path.is_file() for path in files):
        return None
    runs = [dict(_leaves(read_json(path).get("settings") or {})) for path in files]
    recipes = [run.get("recipe") for run in runs]
    names = [_name(run, [one for one in runs if one.get("recipe") == run.get("recipe")]) for run in runs]
    if len(set(recipes)) > 1:  # a recipe changes many settings, so each is compared with runs of its own recipe
        names = [f"recipe={recipe}, {name}".removesuffix(", ") for recipe, name in zip(recipes, names, strict=True)]
    return names if all(names) and len(set(names)) == len(names) else None


def _name(run: Mapping[str, Any], others: Sequence[Mapping[str, Any]]) -> str:
    """Return the settings of a run that differ between the runs, as typed on the command line."""
    keys = dict.fromkeys(key for one in others for key in one)
    varied = [key for key in keys if len({str(one.get(key)) for one in others}) > 1]
    short = {key.partition(".")[0]: key for key in _CHOICES if key in varied}
    shown = {key: run.get(key) for key in varied if key.partition(".")[0] not in short}
    shown = {section: run.get(key) for section, key in short.items()} | shown
    return ", ".join(f"{key}={_as_typed(value)}" for key, value in shown.items())


def _leaves(values: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    """Yield nested settings as dotted names and values."""
    for name, value in values.items():
        if isinstance(value, Mapping) and value:
            yield from _leaves(value, f"{before}{name}.")
        else:
            yield before + name, value


def _as_typed(value: Any) -> str:
    """Return a value as typed on the command line."""
    if isinstance(value, (list, tuple)):
        return f"[{','.join(map(_as_typed, value))}]"
    return {None: "none", True: "true", False: "false"}[value] if value is None or isinstance(value, bool) else str(value)
