"""Writes what is generated from the code: public names, stubs for type checkers, and the command line's help.

Public are the functions of the verbs with the types that they take and return, and what the tables here add: they are
written into xswe/__init__.py, xswe/types.py and xswe/types.pyi. xswe/cli/settings.json is written by verb_settings.py.
settings.pyi holds the keyword arguments of the public functions, from the dataclasses of their settings: a type checker
knows by it that ``mine(thresold=1)`` is a mistake. A public function with settings has ``config: MineConfig | None`` and
``**settings: Unpack[MineSettings]``, whose class is imported for type checkers only. After a setting or a name has changed,
``python tools/stubs.py`` is to be run again: a test compares.
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib
import re
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import verb_settings

import xswe
from xswe.alignment.formats import Manner
from xswe.cli.verbs import VERBS
from xswe.corpus.cleaning import CleanConfig
from xswe.evaluation.metrics import Bootstrap
from xswe.io.signatures import config_class
from xswe.teacher.protocol import TeacherConfig
from xswe.training.config import TrainConfig

FOLDER = Path(__file__).parents[1] / "xswe"
# What is public besides the functions of the verbs, as ``public:inside`` if the module uses another name.
_PUBLIC = {
    "alignment.sentences": "align",
    "alignment.words": "align_words",
    "evaluation.ensembles": "ensemble:make_ensemble",
    "mining.filter": "filter:filter_bitext",
    "mining.score": "score:score_pairs",
    "model.export": "export:export_model",
    "phrases.find": "find_phrases",
    "phrases.terms": "find_terms",
    "report.write": "write_report",
    "search.building": "index",
    "search.index": "load_index",
    "serving.app": "make_app",
    "training.sweep": "sweep",
    "training.train": "train",
}
_NOT_PUBLIC = {"train_run", "verify_index"}  # functions of verbs
# Types besides those that public functions take as config= and return, and the entries of these; of two classes with the
# same name, the public one.
_TYPES = {
    "alignment.phrase_table": "Phrase PhraseTable",
    "alignment.term_check": "AgreedTerm TermCheck TermCheckConfig TermFinding",
    "alignment.terms": "BilingualTerm BilingualTerms",
    "alignment.documents": "DocumentPair DocumentPairs",
    "corpus.bitext": "CorpusConfig",
    "evaluation.evaluate": "PairedTest",
    "evaluation.metrics": "Bootstrap",
    "mining.hard_rules": "FilterConfig",
    "mining.pipeline": "MineReport",
    "mining.threshold": "Threshold",
    "model.encoding": "Neighbour Neighbours",
    "model.ensemble": "AnyModel Ensemble",
    "search.hits": "Hit Hits",
    "search.lists": "SearchConfig",
    "teacher.protocol": "TeacherConfig",
    "training.config": "TrainConfig",
    "work.config": "ExecutionConfig",
}
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


def public() -> dict[str, dict[str, str]]:
    """Return the names of the public functions within their modules, and what they are called, by module."""
    calls = (call.partition(":") for verb in VERBS.values() for call in verb.calls.values())
    found = {(module, name): name for module, _, name in calls if name not in _NOT_PUBLIC}
    for name, (module, inside) in xswe._places(_PUBLIC).items():
        found[module.removeprefix("xswe."), inside] = name
    return _by_module(found)


def _by_module(found: Mapping[tuple[str, str], str]) -> dict[str, dict[str, str]]:
    """Return names by module and name within as a mapping for each module, all in order."""
    in_order = groupby(sorted(found.items(), key=lambda one: (one[0][0], one[1])), key=lambda one: one[0][0])
    return {module: {inside: name for (_, inside), name in names} for module, names in in_order}


def functions() -> Iterator[Any]:
    """Yield the public functions."""
    for module, names in public().items():
        yield from (getattr(importlib.import_module(f"xswe.{module}"), inside) for inside in names)


def public_types() -> dict[str, dict[str, str]]:
    """Return the names of the public types by module."""
    found = {name: module for module, names in _TYPES.items() for name in names.split()}

    def add(hint: Any) -> None:
        """Add a class of ours, or those within a type, with the entries of results."""
        for inside in typing.get_args(hint):
            add(inside)
        if isinstance(hint, type) and hint.__module__.startswith("xswe.") and hint.__name__ not in found:
            found[hint.__name__] = hint.__module__.removeprefix("xswe.")
            for base in getattr(hint, "__orig_bases__", ()):
                for entry in typing.get_args(base):
                    add(entry)

    for call in functions():
        module = vars(importlib.import_module(call.__module__))
        for name in call.__annotations__.get("return", "").split(" | "):
            add(module.get(name))
        add(config_class(call))
    return _by_module({(module, name): name for name, module in found.items()})


def configs() -> dict[str, type[Any]]:
    """Return what the settings of each public function are called, and the dataclass that they are the fields of."""
    found = {}
    for call in functions():
        named = re.fullmatch(r"Unpack\[(\w+)\]", str(call.__annotations__.get("settings", "")))
        if named and (cls := config_class(call)):
            found[named[1]] = cls
    return found


def settings() -> str:
    """Return the text of settings.pyi."""
    writer = _Writer()
    for name, cls in sorted((configs() | _FURTHER).items()):
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


def _table(named: Mapping[str, Mapping[str, str]]) -> str:
    """Return the table of names of a module."""
    rows = (
        f'    "{module}": "{" ".join(name if name == inside else f"{name}:{inside}" for inside, name in names.items())}",\n'
        for module, names in named.items()
    )
    return f"_MODULES = {{\n{''.join(rows)}}}\n"


def _imports(named: Mapping[str, Mapping[str, str]], indent: str, exported: bool) -> str:
    """Return the imports of names, those of their own name first; ``exported`` repeats this, by which a stub exports it."""
    lines = []
    for module, names in named.items():
        own = [f"{name} as {name}" if exported else name for inside, name in names.items() if inside == name]
        others = [f"{inside} as {name}" for inside, name in names.items() if inside != name]
        lines += [f"{indent}from xswe.{module} import {one}\n" for one in ([", ".join(own)] if own else []) + others]
    return "".join(lines)


def _filled(name: str, text: str) -> str:
    """Return a module with what is generated in it."""
    begin, first, _, end, rest = re.split(
        r"(# Generated by .*\n)((?:.*\n)*?)(# end of what is generated\n)", (FOLDER / name).read_text(encoding="utf-8")
    )
    return f"{begin}{first}{text}{end}{rest}"


def stubs() -> dict[str, str]:
    """Return the texts of the files by their names."""
    calls, kinds = public(), public_types()
    names = sorted([*(name for own in calls.values() for name in own.values()), "__version__", "errors", "load", "types"])
    listed = "".join(f'    "{name}",\n' for name in names)
    first = f"if TYPE_CHECKING:\n{_imports(calls, '    ', False)}"
    return {
        "__init__.py": _filled("__init__.py", f"{first}\n{_table(calls)}__all__ = [\n{listed}]\n"),
        "types.py": _filled("types.py", _table(kinds)),
        "types.pyi": f'"""Generated from the table in types.py by tools/stubs.py."""\n\n{_imports(kinds, "", True)}',
        "settings.pyi": settings(),
        "cli/settings.json": verb_settings.text(),
    }


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    for name, text in stubs().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
