"""Names of runs: the settings in which those of a sweep differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from xswe.io.files import read_json

_CHOSEN_BY = ("teacher.model", "distilled.model", "units.kind")  # what stands for the rest of its section


def names_of_runs(models: Sequence[str]) -> list[str] | None:
    """Return names such as ``pca.dim=64, seed=1`` for the models of some runs.

    None where one is no model of a run, or two were trained with the same settings.
    """
    files = [Path(model) / "config.json" for model in models]
    if len(files) < 2 or not all(path.is_file() for path in files):
        return None
    runs = [dict(_leaves(read_json(path).get("settings") or {})) for path in files]
    recipes = [run.get("recipe") for run in runs]
    names = [_name(run, [one for one in runs if one.get("recipe") == run.get("recipe")]) for run in runs]
    if len(set(recipes)) > 1:  # whose settings differ by it in much else
        names = [f"recipe={recipe}, {name}".removesuffix(", ") for recipe, name in zip(recipes, names, strict=True)]
    return names if all(names) and len(set(names)) == len(names) else None


def _name(run: Mapping[str, Any], others: Sequence[Mapping[str, Any]]) -> str:
    """Return the settings of a run that one of the others has otherwise, as the command line has them."""
    keys = dict.fromkeys(key for one in others for key in one)
    varied = [key for key in keys if len({str(one.get(key)) for one in others}) > 1]
    short = {key.partition(".")[0]: key for key in _CHOSEN_BY if key in varied}
    shown = {key: run.get(key) for key in varied if key.partition(".")[0] not in short}
    shown = {section: run.get(key) for section, key in short.items()} | shown
    return ", ".join(f"{key}={_word(value)}" for key, value in shown.items())


def _leaves(values: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the values of nested settings by their names with dots."""
    for name, value in values.items():
        if isinstance(value, Mapping) and value:
            yield from _leaves(value, f"{before}{name}.")
        else:
            yield before + name, value


def _word(value: Any) -> str:
    """Return a value as the command line writes it."""
    if isinstance(value, (list, tuple)):
        return f"[{','.join(map(_word, value))}]"
    return {None: "none", True: "true", False: "false"}[value] if value is None or isinstance(value, bool) else str(value)
