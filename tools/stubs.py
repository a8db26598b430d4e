"""Writes what is generated from the code, for type checkers and for the command line's help.

Written are xswe/types.pyi, of the names in xswe/types.py, xswe/settings.pyi, and xswe/cli/settings.json (verb_settings.py).
settings.pyi holds the keyword arguments of the public functions, from the dataclasses of their settings: a type checker
knows by it that ``mine(thresold=1)`` is a mistake. A public function with settings has ``config: MineConfig | None`` and
``**settings: Unpack[MineSettings]``, whose class is imported for type checkers only. After a setting or a name has changed,
``python tools/stubs.py`` is to be run again: a test compares.
"""

from __future__ import annotations

import argparse
import dataclasses
import inspect
import re
import sys
import types
import typing
from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import verb_settings

import xswe
from xswe.alignment.formats import Manner
from xswe.corpus.cleaning import CleanConfig
from xswe.evaluation.metrics import Bootstrap
from xswe.teacher.protocol import TeacherConfig
from xswe.training.config import TrainConfig

FOLDER = Path(__file__).parents[1] / "xswe"
# Settings of functions that take no config=; of the others it says what their settings are the fields of.
_FURTHER: dict[str, type[Any]] = {"MannerSettings": Manner, "TrainSettings": TrainConfig}
# Of train: what is a parameter, or decided by the recipe; and what the name of a choice may stand for.
_NOT_OF_TRAIN = {"languages", "teacher", "recipe"}
_CHOICES = {"units", "objective", "clean", "distilled"}
_NAMES = {"FilterConfig": "LineFilterSettings", "Objective": "ObjectiveSettings", "SpanTraining": "SpanTrainingSettings"}
_HEAD = '''"""The settings of the public functions as keyword arguments, for type checkers.

Generated from the dataclasses of settings by tools/stubs.py, which is to be run, not this file to be changed.
"""

'''


def functions() -> dict[str, type[Any]]:
    """Return what the settings of each public function are called, and the dataclass that they are the fields of."""
    found = {}
    for name in xswe.__all__:
        if not inspect.isfunction(call := getattr(xswe, name)):
            continue
        places = inspect.signature(call).parameters
        named = re.fullmatch(r"Unpack\[(\w+)\]", str(places["settings"].annotation)) if "settings" in places else None
        if named and "config" in places:
            found[named[1]] = getattr(
                sys.modules[inspect.unwrap(call).__module__], str(places["config"].annotation).partition(" ")[0]
            )
    return found


def settings() -> str:
    """Return the text of settings.pyi."""
    writer = _Writer()
    for name, cls in sorted((functions() | _FURTHER).items()):
        writer.write(cls, name)
    writer.sections["SweepSettings"] = (
        "class SweepSettings(TrainSettings, total=False):\n"
        '    """What all runs of a sweep have in common."""\n\n'
        f"    teacher: str | Path | {writer.kind(TeacherConfig)} | None\n    recipe: str | {writer.imported(TrainConfig)}\n"
        f"    bootstrap: {writer.imported(Bootstrap)} | None\n"
    )
    first = "from collections.abc import Mapping, Sequence\nfrom pathlib import Path\n"
    imports = f"{first}from typing import Any, Literal, TypedDict\n\n"
    for place, names in groupby(sorted(writer.imports), key=itemgetter(0)):
        imports += f"from {place} import {', '.join(name for _, name in names)}\n"
    return "\n\n".join([_HEAD + imports, *writer.sections.values()])


class _Writer:
    """The classes that are written, each after those that it names, and what they import."""

    def __init__(self) -> None:
        self.sections: dict[str, str] = {}
        self.imports: set[tuple[str, str]] = set()

    def imported(self, cls: type[Any]) -> str:
        self.imports.add((cls.__module__, cls.__name__))
        return cls.__name__

    def write(self, cls: type[Any], name: str) -> str:
        """Write the fields of a dataclass as a class of keyword arguments, and return its name."""
        if name in self.sections:
            return name
        lines = [f"    {key}: {hint}\n" for key, hint in self._fields(cls).items()]
        first = (cls.__doc__ or "").partition("\n")[0]
        self.sections[name] = f'class {name}(TypedDict, total=False):\n    """{first}"""\n\n{"".join(lines)}'
        return name

    def _fields(self, cls: type[Any]) -> dict[str, str]:
        hints, names = typing.get_type_hints(cls), [one.name for one in dataclasses.fields(cls) if one.init]
        found = {name: self.kind(hints[name]) for name in names}
        if dataclasses.is_dataclass(hints.get("neighbours")):  # changed() takes these for those of the search
            nested = typing.get_type_hints(hints["neighbours"])
            found |= {name: self.kind(nested[name]) for name in ("threads", "method")}
        if cls is not TrainConfig:
            return found
        found = {name: hint for name, hint in found.items() if name not in _NOT_OF_TRAIN}
        found["threads"] += " | None"
        found["clean"] = self.kind(CleanConfig)
        return {name: f"str | {hint}" if name in _CHOICES else hint for name, hint in found.items()}

    def kind(self, hint: Any) -> str:
        """Return a type as it is written; of a dataclass also its fields, and of a tuple any sequence."""
        origin, arguments = typing.get_origin(hint), typing.get_args(hint)
        if hint is type(None):
            return "None"
        if origin in (typing.Union, types.UnionType):
            return " | ".join(dict.fromkeys(self.kind(one) for one in arguments))
        if origin is typing.Literal:
            return f"Literal[{', '.join(map(_quoted, arguments))}]"
        if origin in (tuple, Sequence):
            return f"Sequence[{self.kind(arguments[0])}]"
        if origin is dict:
            return f"Mapping[{', '.join(map(self.kind, arguments))}]"
        if dataclasses.is_dataclass(hint):
            cls = typing.cast("type[Any]", hint)
            name = _NAMES.get(cls.__name__, cls.__name__.replace("Config", "Settings"))
            return f"{self.imported(cls)} | {self.write(cls, name)}"
        return "Any" if hint is Any else str(hint.__name__)


def _quoted(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value)


def types_() -> str:
    """Return the text of types.pyi."""
    lines = [
        f"from xswe.{module} import {', '.join(f'{name} as {name}' for name in names.split())}\n"
        for module, names in xswe.types._MODULES.items()
    ]
    return f'"""Generated from the table in types.py by tools/stubs.py."""\n\n{"".join(lines)}'


def stubs() -> dict[str, str]:
    """Return the texts of the files by their names."""
    return {"settings.pyi": settings(), "types.pyi": types_(), "cli/settings.json": verb_settings.text()}


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    for name, text in stubs().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
