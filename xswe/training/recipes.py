"""Recipes: named choices and settings on top of the defaults, read from ``conf/``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, fields, is_dataclass
from pathlib import Path
from typing import Any, cast

from xswe.io.choices import choice_names, choose, chosen, update
from xswe.io.settings import OF_THE_RUN, defaults
from xswe.teacher.protocol import TeacherConfig
from xswe.training.config import TrainConfig

Values = dict[str, Any]


def sections() -> dict[str, Values]:
    """Return the defaults of every section of :class:`TrainConfig` by name."""
    classes = {f.name: f.default_factory for f in fields(TrainConfig) if is_dataclass(f.default_factory)}
    return {name: defaults(cast("type[Any]", cls)) for name, cls in classes.items()}


def teacher_settings(teacher: str | Path | TeacherConfig) -> Values | None:
    """Return the settings of an encoder: one of ``conf/teacher``, or a folder or name for transformers."""
    if teacher == "none":
        return None
    config = teacher if isinstance(teacher, TeacherConfig) else TeacherConfig.named(str(teacher))
    return {name: value for name, value in asdict(config).items() if name not in OF_THE_RUN}


def recipe_settings(name: str, languages: Sequence[str], *, units: str = "", objective: str = "") -> Values:
    """Return the full settings of a recipe of ``conf/recipe`` for a model of some languages.

    ``units`` and ``objective`` override the recipe's choices. ConfigError: the recipe or choice does not exist.
    """
    recipe = choose("recipe", name)
    picked = chosen(choose("", "train")["defaults"]) | chosen(recipe.pop("defaults", []))
    values: Values = {"recipe": name, "teacher": teacher_settings(picked["teacher"]), **sections()}
    update(values, {"units": choose("units", units or picked["units"])})
    update(values, choose("objective", objective or picked["objective"]))
    other = objective not in ("", picked["objective"])
    replaced = choose("objective", picked["objective"]).get("objective", {}) if other else {}
    alone = choose("recipe/alone", name) if len(languages) == 1 and name in choice_names("recipe/alone") else {}
    for own in (recipe, alone):
        update(values, {**own, "objective": {k: v for k, v in own.get("objective", {}).items() if k not in replaced}})
    return values
