"""A verb's settings: the words of the command line as typed values, over the defaults of its function and dataclasses."""

from __future__ import annotations

import copy
import dataclasses
import importlib
import inspect
import re
import typing
from collections.abc import Callable, Collection, Mapping
from typing import Any

from xswe.cli.verbs import VERBS, merged
from xswe.errors import ConfigError
from xswe.io.settings import OF_THE_RUN, build, convert, suggestion
from xswe.io.signatures import MISSING, config_class, hint_of, parts, plain
from xswe.report import OF_RESULTS
from xswe.text.languages import LANGUAGES

Values = dict[str, Any]
# Words that need no Hydra to parse: most commands have no others, and start faster without it.
_HYDRA_PRIMITIVE = re.compile(r"[A-Za-z0-9_/.:%@?|*+-]*")  # no quotes, brackets, commas, blanks
_INT = re.compile(r"[+-]?(0|[1-9][0-9]*)")
_FLOAT = re.compile(r"[+-]?(0|[1-9][0-9]*)?\.[0-9]+")
_NUMBER_LIKE = re.compile(r"[+-]?([0-9._]+([eE][0-9._+-]*)?|inf|nan)", re.IGNORECASE)
_NUMERIC = re.compile(r"\b(int|float|bool|dict)\b")  # in the source of a type
_WORDS = {"true": True, "false": False, "null": None}


def function(path: str) -> Callable[..., Any]:
    """Return the function named by ``module:name``."""
    module, _, name = path.partition(":")
    return typing.cast("Callable[..., Any]", getattr(importlib.import_module(f"xswe.{module}"), name))


def own_settings(verb: str, mode: str = "") -> Values:
    """Return the settings of the function of one mode with their defaults; a section is a mapping."""
    spec, out = VERBS[verb], Values()
    for name, _, default, section in parts(function(spec.calls[mode])):
        if section:
            out[name] = plain(dataclasses.asdict(section()))
        elif name not in spec.groups and not (name == "languages" and "pair" in spec.groups):
            out[name] = plain(default)
        if name == "input" and mode in spec.bitext:
            out |= {"input": None, "source": None, "target": None}
    if "neighbours" in out:
        out.setdefault("threads", None)
    for values in out.values():
        for name in OF_THE_RUN if isinstance(values, dict) else ():
            if name in out:
                values.pop(name, None)
    if "output" in out:
        out["output"] = MISSING
    if OF_RESULTS.keys() & function(spec.calls[mode]).__annotations__["return"].split(" | "):
        out["report"] = None
    return out | {name: value for name, value in spec.usual.items() if name in out}


def composed_defaults(verb: str) -> Values:
    """Return all settings of a verb with their defaults, which the files of ``conf/`` for chosen groups override."""
    spec, out = VERBS[verb], Values()
    modes = {mode: own_settings(verb, mode) for mode in spec.calls}
    for own in modes.values():
        for name, value in own.items():
            out[name] = merged(out[name], value) if name in out else value
    for name, value in out.items():  # required by some modes only
        if value == MISSING and not all(name in own for own in modes.values()):
            out[name] = None
    if len(modes) > 1:
        out["mode"] = next(iter(modes))
    return out


def names(verb: str) -> set[str]:
    """Return the settings that are names or texts, not numbers."""
    texts = {name for name, hint in _hints(verb) if re.search(r"\bstr\b", hint) and not _NUMERIC.search(hint)}
    return texts | {"corpus.paths", "rerank", "model", "report", "source", "target", "input"}


def of_one(verb: str) -> set[str]:
    """Return the settings that take one name, not a list."""
    found = {name for name, hint in _hints(verb) if re.match(r"(str|Path|Lines|Side)\b", hint)}
    return (found | {"model", "output", "report", "source", "target"}) - set(VERBS[verb].many)


def _hints(verb: str) -> list[tuple[str, str]]:
    """Return the settings of a verb with the source of their types."""
    return [(name, hint) for path in VERBS[verb].calls.values() for name, hint, _, _ in parts(function(path))]


def arguments(verb: str, mode: str, values: Values) -> dict[str, Any]:
    """Return the arguments of a verb's function, converted and checked, with its dataclass as ``config``."""
    spec, call = VERBS[verb], function(VERBS[verb].calls[mode])
    parameters = inspect.signature(call).parameters
    out: dict[str, Any] = {}
    for name, _, default, section in parts(call):
        if name in parameters and name in values:
            value = values[name]
            where = name if section else f"{verb}.{name}"
            keep = name in ("model", *spec.many) or (name == "input" and mode in spec.bitext)
            if value is None and default == MISSING and len(spec.calls) > 1:
                raise ConfigError(f"mode={mode} needs {name}=…")
            out[name] = value if keep else convert(hint_of(call, name), value, where)
    if cls := config_class(call):
        given = {field.name: values[field.name] for field in dataclasses.fields(cls) if field.name in values}
        given = {name: value for name, value in given.items() if name not in out}
        if "neighbours" in given:
            given["neighbours"] = {"threads": values["threads"], **given["neighbours"]}
        if any(field.name == "evidence" for field in dataclasses.fields(cls)):
            given["evidence"] = bool(values.get("report"))
        if verb == "mine" and given.get("score") == "auto":
            del given["score"]
        out["config"] = cls.of(given) if hasattr(cls, "of") else build(cls, given, verb)
    return out


def check_used(verb: str, mode: str, values: Values) -> None:
    """Refuse settings of other modes that differ from their defaults."""
    if len(VERBS[verb].calls) == 1:
        return
    usual, modes = composed_defaults(verb), {one: own_settings(verb, one) for one in VERBS[verb].calls}
    for name in values.keys() - modes[mode].keys() - {"mode", "hydra"}:
        if values[name] != usual[name]:
            others = " and ".join(one for one in modes if name in modes[one])
            raise ConfigError(f"{name} does nothing with mode={mode}, only with mode={others}: leave it out")


def check_shape(verb: str, values: Values) -> Values:
    """Return composed settings, with a single text as a list where a list is expected.

    ConfigError: a setting is unknown, a section is given a plain value, a single path or name is a list or a mapping, or a
    required name is null.
    """
    spec, usual = VERBS[verb], composed_defaults(verb)
    groups = {group.partition("/")[0] for group in spec.groups} - {"recipe"} | ({"execution"} & usual.keys())
    known = [*usual, *groups, "recipe"] if "recipe" in spec.groups else [*usual, *groups]
    if unknown := sorted(values.keys() - set(known) - {"hydra"}):  # added by + or by a file of the user
        raise ConfigError(f"there is no setting {unknown[0]!r}{suggestion(unknown[0], known)}")
    sections = {name for path in spec.calls.values() for name, _, _, section in parts(function(path)) if section}
    for name in (groups | sections) & values.keys():
        if not isinstance(value := values[name], Mapping):
            chosen = f"; a file chooses it by  defaults: [override /{name}: {value}, _self_]" if name in groups else ""
            raise ConfigError(f"{name}={value}: {name} has settings of its own, {name}.…=; --help lists them{chosen}")
    for name in sorted(of_one(verb)):
        if isinstance(values.get(name), list if verb == "evaluate" else (list, dict)):  # its model may be a mapping
            advice = "; two aligned files are source= and target=" if name == "input" and "source" in values else ""
            raise ConfigError(f"{name}={values[name]}: give one name, without brackets{advice}")
    for name in sorted(names(verb) & usual.keys() & values.keys()):
        if values[name] is None and usual[name] is not None:
            raise ConfigError(f"{name} is not set: give {name}=…")
    lists = {name for name, value in usual.items() if isinstance(value, list)}
    return {name: [value] if name in lists and isinstance(value, str) else value for name, value in values.items()}


class _NeedsHydra(Exception):
    """A word that only Hydra can parse."""


def simple(verb: str, arguments: Collection[str]) -> Values | None:
    """Return the settings of a verb from its words; None if Hydra must compose them, or complain."""
    if "recipe" in (groups := VERBS[verb].groups):  # a recipe makes further choices
        return None
    values, text = copy.deepcopy(composed_defaults(verb)), names(verb)
    pairs = [argument.partition("=") for argument in arguments]
    if groups and not _choose(verb, {key: value for key, _, value in pairs if key in groups}, values):
        return None
    try:
        for key, sign, value in (pair for pair in pairs if pair[0] not in groups):
            *sections, name = key.split(".")
            into: Any = values
            for section in sections:
                into = into.get(section) if isinstance(into, dict) else None
            if not sign or not isinstance(into, dict) or name not in into or isinstance(into[name], dict):
                return None
            is_list = value.startswith("[") and value.endswith("]")
            parts = [part for part in value[1:-1].split(",") if is_list and value != "[]"]
            into[name] = [_read(part, key in text, True) for part in parts] if is_list else _read(value, key in text)
    except _NeedsHydra:
        return None
    return None if any(value == MISSING for value in values.values()) else values


def _choose(verb: str, named: dict[str, str], values: Values) -> bool:
    """Apply the choices of groups to a verb's settings; return False if Hydra must do so, or a choice is unknown."""
    from xswe.io.choices import choice_names, choose, chosen, update  # imports YAML, which other verbs do not need

    listed = chosen(choose("", verb)["defaults"]) | named
    codes = listed["pair"].split("-")
    if len({*codes} & LANGUAGES.keys()) < len(codes):
        return False
    values["pair"] = {"languages": codes}
    for group in VERBS[verb].groups[1:]:
        if listed[group] not in choice_names(group) or "${" in str(choice := choose(group, listed[group])):
            return False
        update(values, {group.replace("/", "."): choice})
    return True


def _read(value: str, is_text: bool, within: bool = False) -> Any:
    """Return the typed value of a setting; with ``is_text``, numbers are text."""
    if not _HYDRA_PRIMITIVE.fullmatch(value):
        if within or not re.fullmatch(r"[\w/.:-]+( [\w/.:-]+)*", value):
            raise _NeedsHydra
        return value  # text with single blanks, or in other scripts
    if (within and not value) or value == MISSING:
        raise _NeedsHydra
    if value.lower() in _WORDS:
        parsed: Any = _WORDS[value.lower()]
    elif _INT.fullmatch(value) or _FLOAT.fullmatch(value):
        parsed = int(value) if _INT.fullmatch(value) else float(value)
    elif _NUMBER_LIKE.fullmatch(value):
        raise _NeedsHydra
    else:
        return value
    return value if is_text and parsed is not None else parsed


# Hints at settings of readers that not every verb has: the setting, the hint, and its replacement.
_READER_HINTS = (
    ("on_error", r",? or (set )?on_error=skip[^;]*$", ""),
    ("columns", r"set columns=\[…\] \(counted from 0\)", "write the two texts, and a tab between, on each line"),
)


def as_keys(message: str, values: Mapping[str, Any]) -> str:
    """Return an error message with the library's arguments as the verb's keys: ``drop=3`` as ``pca.drop=3``.

    Names at the top of the verb's settings, or in several sections, stay. Hints at settings of readers that the verb does
    not have are replaced.
    """
    sections: dict[str, list[str]] = {}
    for section, inside in values.items():
        for name in inside if isinstance(inside, Mapping) else ():
            sections.setdefault(name, []).append(section)

    def key(found: re.Match[str]) -> str:
        within = sections.get(found[0], [])
        return f"{within[0]}.{found[0]}" if len(within) == 1 and found[0] not in values else found[0]

    for name, offered, instead in _READER_HINTS:
        if name not in values and name not in sections:
            message = re.sub(offered, instead, message)
    return re.sub(r"(?<![\w./='\"-])[a-z_]+(?==)", key, message)
