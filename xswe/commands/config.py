"""From Hydra's untyped configuration to plain values."""

from __future__ import annotations

import re
import sys
import typing
from typing import Any

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import InterpolationResolutionError

from xswe.errors import ConfigError


def plain(config: DictConfig) -> dict[str, Any]:
    """Resolve a configuration to plain Python values.

    Raises:
        ConfigError: a setting is taken from an environment variable that is not set, or must be given and is not.
    """
    try:
        if missing := sorted(OmegaConf.missing_keys(config)):
            raise ConfigError(f"{missing[0]} is not set: give {missing[0]}=…")
        return typing.cast("dict[str, Any]", OmegaConf.to_container(config, resolve=True))
    except InterpolationResolutionError as error:
        if (found := re.search(r"Environment variable '(\w+)' not found", str(error))) is None:
            raise
        key, name = error.full_key, found[1]
        raise ConfigError(f"{key} is under the folder that {name} names, which is not set: export {name}=DIR") from None


def aside(summary: str, output: object) -> str:
    """Return what to print of a run: nothing where the output itself goes there, and the summary to standard error."""
    if output != "-":
        return summary
    sys.stderr.write(f"{summary}\n")
    return ""
