"""The settings of every verb with kind, default and meaning, as xswe/cli/settings.json holds them for help and completion.

They are those of the verb's function and of the dataclasses in it. Help is to be there in .03 s, and these import torch:
so ``python tools/stubs.py`` writes what they say into the file, and a test compares.
"""

from __future__ import annotations

import dataclasses
import inspect
import json
import re
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import griffe

from xswe.alignment.corrections import SUFFIXES
from xswe.bitext.formats import BY_SUFFIX
from xswe.bitext.output import WRITTEN
from xswe.cli.settings import Values, composed_defaults, function
from xswe.cli.verbs import OWN, PACKAGES, VERBS
from xswe.io.choices import choice_names, choose
from xswe.io.resources import resource
from xswe.io.signatures import MISSING, config_class, hint_of, parts
from xswe.io.suffixes import TABLES
from xswe.text.languages import LANGUAGES
from xswe.text.readers import READERS
from xswe.work.config import HOSTS, Executor

# What docstrings call the files of some formats, whose suffixes help and reference list, and the languages in the table.
_LISTED: dict[str, Iterable[str]] = {
    "any bitext": sorted(BY_SUFFIX),
    "any corrections": sorted(SUFFIXES),
    "any document": READERS,
    "any pairs": sorted(WRITTEN),
    "any known language": LANGUAGES,
    "any table": TABLES,
}
_GROUPS = {
    "pair": "the model's languages, the hub of the pairs first",
    "recipe": "a way to train",
    "teacher": "the encoder whose states are the start; teacher=custom teacher.model=FOLDER for any",
    "distilled": "the encoder whose similarities are imitated; same for the teacher",
    "units": "what gets a vector",
    "objective": "what is trained for",
    "corpus": "what is learnt from: a corpus card, or local with corpus.paths=[…]",
    "corpus/clean": "filters of pairs",
    "execution": f"who does the work: {', '.join(host.does for host in HOSTS.values())}",
}
_WORDS = {int: "whole number", float: "number", bool: "true, false", str: "text"}
Described = dict[str, tuple[str, str]]  # kind and meaning by name


def text() -> str:
    """Return the text of settings.json: a list of name, kind, default and meaning for each setting of each verb."""
    verbs = []
    for verb in VERBS:
        rows = ",\n".join(f"    {json.dumps(row, ensure_ascii=False)}" for row in settings(verb))
        verbs.append(f'  "{verb}": [\n{rows}\n  ]')
    return "{\n" + ",\n".join(verbs) + "\n}\n"


def settings(verb: str) -> list[tuple[str, str, str, str]]:
    """Return name, kind, default and meaning of the settings of a verb; groups first, execution last."""
    spec, described, values = VERBS[verb], Described(), composed_defaults(verb)
    for mode in reversed(spec.calls):
        described |= _described(function(spec.calls[mode]))
    described |= {name: ("", OWN[name]) for name in values.keys() & OWN.keys() - described.keys()}
    if len(spec.calls) > 1:
        summaries = (f"{mode} ({_summary(function(path))})" for mode, path in spec.calls.items())
        described["mode"] = (", ".join(spec.calls), OWN["mode"] + "; ".join(summaries))
    usual = dict(_flat("", choose("recipe", "quickstart"), {})) if "recipe" in spec.groups else {}
    found = [_choice(verb, group) for group in spec.groups]
    for name, value in _flat("", values, described):
        if name == "execution.kind":
            found.append(("execution", ", ".join(typing.get_args(Executor)), "local", _GROUPS["execution"]))
        elif name not in spec.groups and not name.startswith("distilled."):
            found.append((name, described[name][0], _written(usual.get(name, value)), described[name][1]))
    first = {*spec.groups, "mode"}
    return sorted(found, key=lambda row: (row[0] not in first, row[0] == "report", row[0].startswith("execution")))


def _described(call: Callable[..., Any]) -> Described:
    """Return kind and meaning of what a function can be given, by name."""
    found, meanings, cls = Described(), _meanings(call), config_class(call)
    own, hints = inspect.signature(call).parameters, typing.get_type_hints(cls) if cls else {}
    of_class = _meanings(cls) if cls else {}
    for name, _, _, section in parts(call):
        hint = hint_of(call, name) if name in own else hints[name]
        if section:
            found |= {f"{name}.{key}": one for key, one in _of_class(section).items()}
        else:
            found[name] = (_kind(hint), (meanings if name in own else of_class)[name])
    return found


def _of_class(cls: type[Any]) -> Described:
    """Return kind and meaning of the fields of a dataclass, and of those of dataclasses in it."""
    found, meanings, hints = Described(), _meanings(cls), typing.get_type_hints(cls)
    for field in dataclasses.fields(cls):
        if dataclasses.is_dataclass(inner := hints[field.name]):
            found |= {f"{field.name}.{key}": one for key, one in _of_class(typing.cast("type[Any]", inner)).items()}
        else:
            found[field.name] = (_kind(hints[field.name]), meanings[field.name])
    return found


def _meanings(of: Any) -> dict[str, str]:
    """Return the texts under ``Args:`` of a function, or ``Attributes:`` of a class and those that it inherits."""
    found = {}
    for each in reversed(of.__mro__) if isinstance(of, type) else [of]:
        for section in griffe.Docstring(inspect.cleandoc(each.__doc__ or "")).parse("google", warnings=False):
            if section.kind.value in ("parameters", "attributes"):
                found |= {one.name: _in_words(one.description) for one in section.value}
    return found


def _in_words(meaning: str) -> str:
    """Return a meaning as the command line says it: null for None, and the suffixes of formats."""
    plain = re.sub(r":\w+:`([^`]*)`", r"\1", " ".join(meaning.split())).replace("``", "").rstrip(".")
    return re.sub(r"\bNone\b", "null", with_suffixes(plain))


def with_suffixes(text: str) -> str:
    """Return a text with the suffixes or languages that it names: ``any table`` gets the suffixes of all tables."""
    for name, entries in _LISTED.items():
        text = re.sub(rf"\b{name}\b", f"{name} ({' '.join(entries)})", text)
    return text


def _summary(call: Callable[..., Any]) -> str:
    return (inspect.getdoc(call) or "").partition("\n")[0].rstrip(".")


def _choice(verb: str, group: str) -> tuple[str, str, str, str]:
    """Return the choices that are files of conf/, and which of them the defaults name."""
    conf, named = resource("conf"), PACKAGES.get(group, group)
    listed = re.search(rf"^  - {named}: ([\w-]+)", (conf / f"{verb}.yaml").read_text(encoding="utf-8"), re.MULTILINE)
    first, foreign = listed[1] if listed else "", {"teacher": "same", "distilled": "none"}.get(group)
    if group == "pair":
        return group, f"{', '.join(LANGUAGES)} in any order, as en-ja, en-de-zh-ja or ja", first, _GROUPS[group]
    others = (name for name in choice_names(named.partition("@")[0]) if name not in (first, foreign))
    return group, ", ".join([first, *others]), first, _GROUPS[group]


def _flat(section: str, values: Values, described: Described) -> Iterator[tuple[str, Any]]:
    """Yield the settings of sections as ``section.name``; a mapping that is described is a value itself."""
    for key, value in values.items():
        if isinstance(value, dict) and f"{section}{key}" not in described:
            yield from _flat(f"{section}{key}.", value, described)
        else:
            yield f"{section}{key}", value


def _kind(hint: Any) -> str:
    """Return a type in words; closed choices as they are."""
    kinds = [hint]
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        kinds = [kind for kind in typing.get_args(hint) if kind is not type(None)]
    first = typing.get_origin(kinds[0]) or kinds[0]
    if first in (tuple, Sequence):
        return "list"
    if first is typing.Literal:
        return ", ".join("''" if choice == "" else str(choice) for choice in typing.get_args(kinds[0]))
    return "mapping" if first is dict else _WORDS.get(first, "") if len(kinds) == 1 else ""


def _written(value: object) -> str:
    """Return a default as it is written on the command line; "" for one that must be given."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{name}:{_written(own)}" for name, own in value.items()) + "}"
    if isinstance(value, (tuple, list)):
        return f"[{','.join(map(_written, value))}]"
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value == MISSING else "null" if value is None else str(value) or "''"
