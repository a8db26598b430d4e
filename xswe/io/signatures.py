"""The settings of a function: its arguments, and the fields of its ``config`` dataclass."""

from __future__ import annotations

import dataclasses
import inspect
import types
import typing
from collections.abc import Callable, Iterator
from typing import Any

MISSING = "???"  # the default of a required setting
# Arguments of functions that are not settings: the dataclass, single fields of it, and arguments that a verb sets itself.
NO_SETTINGS = frozenset({"config", "settings", "evidence", "distinct", "results"})
_SECTIONS = ("bootstrap", "corpus", "distilled", "execution", "teacher")  # even if their default is None


def hint_of(call: Callable[..., Any], name: str) -> Any:
    """Return the type of an argument; Any if it is known to type checkers only."""
    holder = types.SimpleNamespace(__annotations__={name: call.__annotations__[name]})
    try:
        return typing.get_type_hints(holder, call.__globals__)[name]
    except NameError:
        return Any


def _dataclass_in(hint: Any) -> type[Any] | None:
    kinds = (hint, *typing.get_args(hint))
    return next((kind for kind in kinds if isinstance(kind, type) and dataclasses.is_dataclass(kind)), None)


def config_class(call: Callable[..., Any]) -> type[Any] | None:
    """Return the dataclass of a function's settings."""
    return _dataclass_in(hint_of(call, "config")) if "config" in call.__annotations__ else None


def parts(call: Callable[..., Any]) -> Iterator[tuple[str, str, Any, type[Any] | None]]:
    """Yield the settings of a function: name, type as written, default, and the dataclass if it is a section."""
    seen = set()
    for name, one in inspect.signature(call).parameters.items():
        if name in NO_SETTINGS or one.kind is one.VAR_KEYWORD:
            continue
        seen.add(name)
        section = _dataclass_in(hint_of(call, name)) if name in _SECTIONS else None
        default = MISSING if one.default is one.empty else one.default
        yield name, str(one.annotation), default, section
    cls = config_class(call)
    for field in dataclasses.fields(cls) if cls else ():
        if field.name not in NO_SETTINGS | seen:
            factory = field.default_factory
            default = field.default if factory is dataclasses.MISSING else factory()
            section = type(default) if dataclasses.is_dataclass(default) else None
            if field.name in _SECTIONS:
                section = _dataclass_in(typing.get_type_hints(cls)[field.name])
            yield field.name, str(field.type), MISSING if default is dataclasses.MISSING else default, section


def plain(value: Any) -> Any:
    """Return a value with its tuples as lists."""
    if isinstance(value, dict):
        return {name: plain(own) for name, own in value.items()}
    return [plain(own) for own in value] if isinstance(value, (list, tuple)) else value
