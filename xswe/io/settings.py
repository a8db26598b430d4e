"""Settings: plain values of a file or command line as frozen dataclasses, with errors that name the key."""

from __future__ import annotations

import dataclasses
import math
import types
import typing
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from xswe.errors import ConfigError

T = TypeVar("T")
V = TypeVar("V")
C = TypeVar("C", bound=Any)  # a dataclass of settings
OF_THE_RUN = ("seed", "threads")  # settings of a section that are set by the run


def suggestion(name: str, known: Iterable[str]) -> str:
    """Return a question that suggests the known name most similar to a mistyped one, "" if none is similar.

    Example:
        >>> suggestion("lerning_rate", ["max_steps", "learning_rate"])
        '; did you mean learning_rate?'
    """
    import difflib  # slow to import, and not needed until a name is wrong

    found = difflib.get_close_matches(name, list(known), 1)
    return f"; did you mean {found[0]}?" if found else ""


def for_all(choices: Any, table: dict[str, V]) -> dict[str, V]:
    """Return a table that has exactly one entry per choice of a closed type.

    Otherwise raise TypeError, at import, before a choice without an implementation could be taken for another.
    """
    if set(table) != set(typing.get_args(choices)):
        raise TypeError(f"{sorted(table)} are not {sorted(typing.get_args(choices))}: each choice needs an entry")
    return table


def check_choice(name: str, value: object, choices: Any) -> None:
    """Raise ConfigError if the value of the setting ``name`` is not a choice of a closed type."""
    if value not in (known := typing.get_args(choices)):
        listed = ", ".join(str(choice) or "''" for choice in known)
        raise ConfigError(f"{name}={value!r}: choose one of {listed}{suggestion(str(value), map(str, known))}")


def full_name(section: str, name: str) -> str:
    """Return the name of a setting with that of its section in a verb, "" for none."""
    return f"{section}.{name}" if section else name


def check_least(config: Any, section: str = "", **least: float) -> None:
    """Raise ConfigError if a number of a configuration is below its least value; None is taken.

    ``section`` is the section of the settings in a verb.
    """
    for name, low in least.items():
        if (value := getattr(config, name)) is not None and not value >= low:
            raise ConfigError(f"{full_name(section, name)}={value}: give at least {low}")


def defaults(cls: type[Any]) -> dict[str, Any]:
    """Return the defaults of a dataclass of settings, except those set by the run."""
    return {name: value for name, value in dataclasses.asdict(cls()).items() if name not in OF_THE_RUN}


def build(cls: type[T], values: Mapping[str, Any], where: str) -> T:
    """Build a dataclass of numbers, strings, tuples, dicts and dataclasses from plain values; check names and types.

    ConfigError: a key in the section ``where`` ("" for none) is unknown, or a value has the wrong type.
    """
    hints = typing.get_type_hints(cls)
    names = [f.name for f in dataclasses.fields(cls) if f.init]  # type: ignore[arg-type]
    if unknown := sorted(set(values) - set(names)):
        advice = suggestion(unknown[0], names) or f"; {where or 'it'} has {', '.join(names)}"
        raise ConfigError(f"{full_name(where, unknown[0])}: there is no such setting{advice}")
    return cls(**{name: convert(hints[name], values[name], full_name(where, name)) for name in names if name in values})


def convert(hint: Any, value: Any, where: str) -> Any:
    """Convert one value to its annotated type."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        if value is None and type(None) in arguments:
            return None
        kinds = [kind for kind in arguments if kind is not type(None)]
        return convert(type(value) if type(value) in kinds else kinds[0], value, where)
    if dataclasses.is_dataclass(hint):
        return _nested(typing.cast("type[Any]", hint), value, where)
    if origin is typing.Literal:
        check_choice(where, value, hint)
        return value
    if origin is tuple:
        if not isinstance(value, (list, tuple)):
            raise ConfigError(f"{where}={value!r}: expected a list, as in {where}=[a,b]")
        return sound(tuple(convert(arguments[0], item, where) for item in value), where)
    if origin is dict:
        if not isinstance(value, Mapping):
            raise ConfigError(f"{where}={value!r}: expected a mapping, as in {where}={{a:1}}")
        return {str(k): convert(arguments[1], v, where) for k, v in value.items()}
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if hint in (int, float, str, bool) and (not isinstance(value, hint) or (hint is int and isinstance(value, bool))):
        raise ConfigError(f"{where}={value!r}: expected {hint.__name__}")
    return sound(value, where)


def sound(value: V, where: str) -> V:
    """Return a value; ConfigError if it is infinite or NaN, or a list with a blank, which no setting allows."""
    if isinstance(value, float) and not math.isfinite(value):
        raise ConfigError(f"{where}={value}: give a finite number")
    if isinstance(value, (list, tuple)) and any(isinstance(one, str) and not one.strip() for one in value):
        raise ConfigError(f"{where}={list(value)}: leave out the blank")
    return value


def _nested(cls: type[T], value: Any, where: str) -> T:
    """Build a nested dataclass, unless the value is one already."""
    if isinstance(value, cls):
        return value
    if not isinstance(value, Mapping):
        raise ConfigError(f"{where}={value!r}: expected a mapping, as in {where}={{a:1}}")
    return build(cls, value, where)


def refuse_unused(config: Any, unused: Mapping[str, Iterable[str]], section: str = "") -> None:
    """Raise ConfigError if a setting that has no effect differs from its default.

    ``unused`` lists such settings by reason: ``{"with what=links": ["most"]}``; ``section`` is their section in a verb.
    """
    fields = {field.name: field for field in dataclasses.fields(config)}
    for why, names in unused.items():
        for name in names:
            make = fields[name].default_factory
            if getattr(config, name) != (fields[name].default if make is dataclasses.MISSING else make()):
                raise ConfigError(f"{full_name(section, name)} does nothing {why}: leave it out")


def changed(config: C, settings: Mapping[str, Any], what: str) -> C:
    """Return a configuration with some fields changed, as by the keyword arguments of a public function.

    If the configuration has ``neighbours``, ``threads`` and ``method`` are settings of that search. A mapping changes
    some fields of a nested dataclass. ConfigError: a setting is impossible, or unknown (it lists those of ``what``).
    """
    known = [field.name for field in dataclasses.fields(config)]
    nested = ("threads", "method") if "neighbours" in known else ()
    search = {name: settings[name] for name in nested if name in settings}
    own_settings = {name: value for name, value in settings.items() if name not in search}
    if unknown := sorted(set(own_settings) - set(known)):
        guess = suggestion(unknown[0], [*known, *nested]) or f"; {what} has {', '.join([*known, *nested])}"
        raise ConfigError(f"{unknown[0]}: there is no such setting{guess}")
    if search:
        own_settings["neighbours"] = dataclasses.replace(own_settings.get("neighbours", config.neighbours), **search)
    for name, value in own_settings.items():
        if isinstance(value, Mapping) and dataclasses.is_dataclass(group := getattr(config, name)):
            own_settings[name] = changed(group, value, f"{what}'s {name}")
    for name, value in (vars(config) | own_settings).items():
        sound(value, name)
    return dataclasses.replace(config, **own_settings)
