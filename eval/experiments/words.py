"""Words of the command line that are settings of training: their names have dots, their values are read as YAML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from xswe.errors import ConfigError


def split_words(words: Sequence[str], own: Mapping[str, Any]) -> tuple[list[str], dict[str, Any]]:
    """Part the words that a script knows (and ``--help``) from settings of training, which are returned by name."""
    training = {word for word in words if "=" in word and word.partition("=")[0] not in own}
    settings = {}
    for name, _, value in (word.partition("=") for word in words if word in training):
        settings[name] = parsed(name, value)
    return [word for word in words if word not in training], settings


def parsed(name: str, value: str) -> Any:
    """Read a value as YAML.

    Raises:
        ConfigError: it is none.
    """
    try:
        return yaml.safe_load(value)
    except yaml.YAMLError:
        raise ConfigError(f"{name}={value}: no value of YAML; put quotes around it") from None


def bitext_of(value: str) -> Any:
    """Read what names a bitext, for :func:`xswe.train`; None for nothing."""
    return parsed("bitext", value) if value else None
