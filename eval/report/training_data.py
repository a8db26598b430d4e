"""Which tests of the tables a model has seen other texts of the source of: by its card, or by the card that it would have.

A model in the package, or in the checkout, has a card with its sources; a run of ``main_job.py`` or ``levers.py`` was
trained on the files of ``XSWE_DATA/train``, whose sources ``corpora/licences/files.yaml`` names, as the cards of such runs
do. Of others' models it is said in ``published.yaml`` where it is known.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from eval.settings import ROOT

SEEN = {"tatoeba": "Tatoeba"}  # by the task, the source that its sentences were drawn from
MARK = "†"
_CARDS = {"mini": "xswe/pretrained/mini", "base": "models/base", "teacher:mini": "xswe/teacher/mini"}
_CARDS["static vectors of make-teacher"] = _CARDS["teacher:mini"]  # whose table these are, before it was cut


@lru_cache
def of_card(folder: str) -> frozenset[str]:
    """Return the sources that the card of a model names; nothing where there is no card."""
    card = ROOT / folder / "README.md"
    text = card.read_text(encoding="utf-8") if card.is_file() else ""
    _, _, table = text.partition("\n| source | by |")
    rows = table.partition("\n\n")[0].splitlines()[2:]
    return frozenset(row.split(" | ")[0].removeprefix("| ") for row in rows)


@lru_cache
def of_pair(languages: str) -> frozenset[str]:
    """Return the sources of the files that a run of these languages (``en-de``, ``en-de-zh-ja``) is trained on."""
    known = yaml.safe_load((ROOT / "corpora" / "licences" / "files.yaml").read_text(encoding="utf-8"))
    codes = set(languages.split("-"))
    return frozenset(
        str(stated["source"]) for file, stated in known.items() if set(file.partition("/")[0].split("-")) <= codes
    )


def trained_on(record: Mapping[str, Any], step: str | None = None) -> frozenset[str]:
    """Return the sources of the training texts of a record's models; nothing where they are not known.

    Args:
        record: of eval/results.
        step: of a record of the main job, the step whose model it is; its teacher is another one.
    """
    if step == "teacher":
        return of_card(_CARDS.get(f"teacher:{record['teacher']}", ""))
    if "pair" in record:
        return of_pair(str(record["pair"]))
    for setting in record.get("settings") or ():
        if isinstance(setting, str) and setting.startswith("pair=") and "corpus=xswe_data" in record["settings"]:
            return of_pair(setting.removeprefix("pair="))
    names = [Path(name).name for name in re.split(", ?", str(record.get("model", "")))]
    return frozenset().union(*(of_card(_CARDS[name]) for name in names if name in _CARDS))


def seen(tasks: Iterable[str], sources: Iterable[str]) -> list[str]:
    """Return the sources, among some, that the sentences of some tasks were drawn from."""
    return sorted({SEEN[task] for task in tasks if task in SEEN} & set(sources))


def mark_all(table: str, sources: Iterable[str]) -> str:
    """Say in the first cell of a table in Markdown, whose models were all trained on the same, what they have seen."""
    header, _, rest = table.partition("\n")
    tasks = [task for task in SEEN if task in header.lower()]
    first, bar, others = header.removeprefix("| ").partition(" |")
    if not (found := seen(tasks, sources)):
        return table
    return f"| {first} ({', '.join(found)} is in the training data of all){bar}{others}\n{rest}"
