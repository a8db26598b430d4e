"""The names that users write: verbs, their settings and choices, suffixes and languages.

``tests/released.txt`` holds those of the last release; ``make release`` writes it. CHANGELOG.md must name what is new or
gone since (``tests/test_changelog.py``).
"""

from __future__ import annotations

import re

from xswe.cli.help import settings
from xswe.cli.verbs import VERBS
from xswe.io.suffixes import SUFFIXES
from xswe.text.languages import LANGUAGES


def surface() -> list[str]:
    """Return the names, sorted: settings as ``verb setting``, their choices as ``setting=choice``."""
    names = {*VERBS, *SUFFIXES, *(language.name for language in LANGUAGES.values())}
    for verb in VERBS:
        for setting in settings(verb):
            names.add(f"{verb} {setting.name}")
            if setting.kind != "true, false" and re.fullmatch(r"\w[\w-]*(, \w[\w-]*)+", setting.kind):
                names |= {f"{setting.name}={choice}" for choice in setting.kind.split(", ")}
    return sorted(names)
