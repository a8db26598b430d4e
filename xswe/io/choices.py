"""Choices of configuration groups: the files in ``conf/``, which override the defaults of the dataclasses."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Any

import yaml

from xswe.errors import ConfigError
from xswe.io.resources import resource
from xswe.io.settings import suggestion


def choice_names(group: str) -> list[str]:
    """Return the names of the choices of a group, such as ``teacher`` or ``corpus/clean``."""
    return sorted(path.stem for path in (resource("conf") / group).glob("*.yaml"))


def choose(group: str, name: object) -> dict[str, Any]:
    """Return the settings of a choice by name; those of recipes and objectives by section.

    ConfigError: there is no such choice.
    """
    if name not in (known := choice_names(group)):
        raise ConfigError(f"unknown {group} {name!r}: choose one of {', '.join(known)}{suggestion(str(name), known)}")
    path: Path = resource("conf") / group / f"{name}.yaml"
    return yaml.safe_load(path.read_text(encoding="utf-8")) or {}


def chosen(entries: Sequence[Any]) -> dict[str, str]:
    """Return the choices in a defaults list by group: ``override /teacher: none`` gives ``{"teacher": "none"}``."""
    pairs = (pair for entry in entries if isinstance(entry, Mapping) for pair in entry.items())
    return {group.removeprefix("override").strip().lstrip("/"): name for group, name in pairs}


def update(values: dict[str, Any], changes: Mapping[str, Any]) -> None:
    """Change nested values in place; a dotted name means the nested value, a dataclass its fields."""
    for name, value in changes.items():
        first, _, rest = name.partition(".")
        new = {rest: value} if rest else asdict(value) if is_dataclass(value) and not isinstance(value, type) else value
        if isinstance(new, Mapping) and isinstance(values.get(first), dict):
            update(values[first], new)
        else:
            values[first] = copy.deepcopy(new)
