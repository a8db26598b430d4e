"""The change log names what is new or gone since the last release."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tools.surface import surface

ROOT = Path(__file__).parents[1]
RELEASED = (ROOT / "tests" / "released.txt").read_text("utf-8").splitlines()


def words_of(name: str, before: list[str]) -> list[str]:
    """Return what a bullet says of a name that was not there before: of a setting that other verbs had, also the verb."""
    verb, _, setting = name.partition(" ")
    if setting:
        return [setting, verb] if any(one.endswith(f" {setting}") for one in before) else [setting]
    return [name.rpartition("=")[2]]


def unnamed(now: list[str], released: list[str], changes: str) -> list[str]:
    """Return the names that are in one list only, and in no bullet of what is not released."""
    section = re.search(r"^## \S+ \(not released\)\n(.*?)(?=^## |\Z)", changes, re.MULTILINE | re.DOTALL)
    bullets = re.split(r"^- ", section[1] if section else "", flags=re.MULTILINE)[1:]

    def is_named(words: list[str]) -> bool:
        found = [re.compile(rf"(?<![\w./-]){re.escape(word)}(?![\w-]|\.\w)") for word in words]
        return any(all(one.search(bullet) for one in found) for bullet in bullets)

    both = ((set(now) - set(released), released), (set(released) - set(now), now))
    return sorted(name for names, others in both for name in names if not is_named(words_of(name, others)))


def test_what_is_new_or_gone_is_in_the_change_log():
    missing = unnamed(surface(), RELEASED, (ROOT / "CHANGELOG.md").read_text("utf-8"))
    assert not missing, "CHANGELOG.md, below the version that is not released: a line of each"


CHANGES = """# Changes

## 0.2.0 (not released)

- `link` reports. `mine score=mutual` is new, and `.adoc`.
- Portuguese; `objective.hinge` of `train`.

## 0.1.0

- `dedup report=`, `fold`
"""


@pytest.mark.parametrize(
    ("now", "released", "missing"),
    [
        (["link report", "dedup report"], ["dedup report"], ["link report"]),  # which the first bullet does not name
        (["mine score", "score=mutual", ".adoc", "Portuguese"], ["mine score"], []),
        (["train objective.hinge", "corpus objective.hinge"], [], []),
        (["train objective.hing", "objective", ".ado", "fold"], [], [".ado", "fold", "objective", "train objective.hing"]),
        ([], ["fold", "link"], ["fold"]),
    ],
)
def test_every_name_needs_a_bullet(now, released, missing):
    assert unnamed(now, released, CHANGES) == missing


def test_without_a_version_that_is_not_released_nothing_is_named():
    assert unnamed(["Portuguese"], [], CHANGES.replace(" (not released)", "")) == ["Portuguese"]
    assert unnamed(["link"], ["link"], "") == []
