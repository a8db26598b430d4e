"""``python -m xswe lexicon``: a dictionary from the vectors of words."""

from __future__ import annotations

from typing import Any

from xswe.alignment.dictionary import DictionaryConfig, lexicon
from xswe.commands.config import settings


def run(values: dict[str, Any]) -> str:
    """Write the lexicon, and return its size and (with a gold lexicon) its precision."""
    config, sides = settings(DictionaryConfig, values, "lexicon"), {name: values[name] for name in ("source", "target")}
    found = lexicon(values["model"], values["output"], config=config, **sides)
    lines = [f"{found.summary()}: {values['output']}", *([str(found.precision)] if found.precision else [])]
    return "\n".join(lines)
