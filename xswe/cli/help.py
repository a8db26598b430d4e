"""``python -m xswe <verb> --help``: what a verb does, examples, and its settings with meanings, types and defaults."""

from __future__ import annotations

import json
import textwrap
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from xswe.cli.verbs import VERBS

_WIDTH, _COLUMN = 100, 34
SHORT = (  # the settings of train in its short help
    *("pair", "recipe", "teacher", "corpus", "corpus.paths", "corpus/clean", "corpus.limit", "units", "units.size"),
    *("objective", "contexts.per_unit", "pca.dim", "pca.drop", "refine.max_steps", "refine.batch_size"),
    *("refine.learning_rate", "output", "seed", "threads", "keep_steps"),
)


class Setting(NamedTuple):
    """One line of the help."""

    name: str  # as on the command line
    kind: str  # its type, or its choices
    default: str  # as typed on the command line; "" if it is required
    meaning: str

    def lines(self) -> list[str]:
        """Return the lines of help for this setting."""
        head = f"  {self.name}={self.default}"
        text = f"{self.meaning} ({self.kind})" if self.kind else self.meaning
        text = text if self.default else f"{text} [must be given]"
        wrapped = textwrap.wrap(text, _WIDTH - _COLUMN) or [""]
        first = [f"{head:<{_COLUMN}}{wrapped[0]}"] if len(head) < _COLUMN else [head, " " * _COLUMN + wrapped[0]]
        return [*first, *(" " * _COLUMN + line for line in wrapped[1:])]


def verb_help(verb: str, full: bool = False) -> str:
    """Return the help of a verb; for ``train`` with only the most important settings, unless ``full``."""
    found = settings(verb)
    shown = found if full or verb != "train" else [by for name in SHORT for by in found if by.name == name]
    examples = "\n".join(f"  python -m xswe {verb} {example}" for example in VERBS[verb].examples)
    lines = [line for setting in shown for line in setting.lines()]
    further = f"\n\npython -m xswe {verb} --help-all   all {len(found)} settings" if len(shown) < len(found) else ""
    what = VERBS[verb].what
    return f"python -m xswe {verb}: {what}\n\n{examples}\n\nsettings, with their defaults:\n" + "\n".join(lines) + further


def settings(verb: str) -> list[Setting]:
    """Return all settings of a verb: its groups, the arguments of its function, and the fields of its dataclasses."""
    return [Setting(*row) for row in _table()[verb]]


@lru_cache(maxsize=1)
def _table() -> dict[str, list[list[str]]]:
    """Return the settings of all verbs, derived by tools/verb_settings.py from their functions and dataclasses."""
    found: dict[str, list[list[str]]] = json.loads(Path(__file__).with_name("settings.json").read_text(encoding="utf-8"))
    return found
