"""Settings of these scripts: ``name=value`` words that the script knows, and one line for what a user can cure."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from xswe.errors import ConfigError, XsweError

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "eval" / "results"
REQUIRED = None  # the default of a setting that must be given


def read_settings(words: Sequence[str], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Return every setting, of the type of its default.

    Raises:
        ConfigError: a word is no ``name=value``, its name is unknown or comes twice, its value is not of the type, or a
            required setting is missing.
    """
    found: dict[str, Any] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or name not in defaults:
            raise ConfigError(f"{word}: there is no such setting; use name=value with {', '.join(defaults)}")
        if name in found:
            raise ConfigError(f"{word}: {name} is given twice; leave one out")
        kind = str if defaults[name] is REQUIRED else type(defaults[name])
        try:
            found[name] = kind(value)
        except ValueError:
            raise ConfigError(f"{word}: not a number; the default is {name}={defaults[name]}") from None
    if missing := [name for name, default in defaults.items() if default is REQUIRED and not found.get(name)]:
        raise ConfigError(f"{missing[0]}= is missing; --help shows all settings")
    return {**defaults, **found}


def chosen(value: str, name: str, choices: Sequence[str]) -> list[str]:
    """Split a list at its commas; each entry must be one of the choices."""
    entries = [entry for entry in value.split(",") if entry]
    if wrong := [entry for entry in entries if entry not in choices]:
        raise ConfigError(f"{name}={value}: there is no {wrong[0]!r}; choose from {','.join(choices)}")
    return entries


def numbers(value: str, name: str, least: int = 1) -> list[int]:
    """Split a list of whole numbers at its commas; none may be below ``least``."""
    entries = value.split(",")
    if not all(entry.isdecimal() and int(entry) >= least for entry in entries):
        raise ConfigError(f"{name}={value}: not whole numbers from {least} on with commas between them")
    return [int(entry) for entry in entries]


def run_script(
    main: Callable[[dict[str, Any]], None],
    defaults: Mapping[str, Any],
    description: str | None,
    words: Sequence[str] | None = None,
) -> None:
    """Run a script on the command line's words: status 2 and one line for what a user can cure, ``--help`` tells how."""
    words = sys.argv[1:] if words is None else words
    if {"-h", "--help"} & set(words):
        print(description)
        return
    try:
        main(read_settings(words, defaults))
    except XsweError as error:
        print(f"{Path(sys.argv[0]).name}: {error}", file=sys.stderr)
        raise SystemExit(2) from None
