"""Words ``key=value`` that mean without Hydra what they mean with it: most commands have no others, and begin sooner."""

from __future__ import annotations

import copy
import re
from collections.abc import Collection
from typing import Any

from xswe.cli.settings import Values, composed_defaults, names
from xswe.cli.verbs import VERBS
from xswe.io.signatures import MISSING

_PLAIN = re.compile(r"[A-Za-z0-9_/.:%@?|*+-]*")  # without quotes, brackets, commas, blanks: one primitive of the grammar
_INT = re.compile(r"[+-]?(0|[1-9][0-9]*)")
_FLOAT = re.compile(r"[+-]?(0|[1-9][0-9]*)?\.[0-9]+")
_NUMBER_LIKE = re.compile(r"[+-]?([0-9._]+([eE][0-9._+-]*)?|inf|nan)", re.IGNORECASE)
_WORDS = {"true": True, "false": False, "null": None}


class _Other(Exception):
    """A word that only Hydra reads."""


def simple(verb: str, arguments: Collection[str]) -> Values | None:
    """Return the settings of a verb that its words give; None where Hydra must compose, or complain."""
    if VERBS[verb].groups:
        return None
    values, text = copy.deepcopy(composed_defaults(verb)), names(verb)
    try:
        for argument in arguments:
            key, sign, value = argument.partition("=")
            section, _, name = key.rpartition(".")
            into = values.get(section) if section else values
            if not sign or not isinstance(into, dict) or name not in into or isinstance(into[name], dict):
                return None
            is_list = value.startswith("[") and value.endswith("]")
            parts = [part for part in value[1:-1].split(",") if is_list and value != "[]"]
            into[name] = [_read(part, key in text, True) for part in parts] if is_list else _read(value, key in text)
    except _Other:
        return None
    return None if any(value == MISSING for value in values.values()) else values


def _read(value: str, is_text: bool, within: bool = False) -> Any:
    """Return what one value means; a number is text where a name is asked for."""
    if not _PLAIN.fullmatch(value):
        if within or not re.fullmatch(r"[\w/.:-]+( [\w/.:-]+)*", value):
            raise _Other
        return value  # text with single blanks, or letters of other scripts, is itself
    if (within and not value) or value == MISSING:
        raise _Other
    if value.lower() in _WORDS:
        meant: Any = _WORDS[value.lower()]
    elif _INT.fullmatch(value) or _FLOAT.fullmatch(value):
        meant = int(value) if _INT.fullmatch(value) else float(value)
    elif _NUMBER_LIKE.fullmatch(value):
        raise _Other
    else:
        return value
    return value if is_text and meant is not None else meant
