"""Settings of these scripts, ``name=value`` words with one line for what a user can cure, and the results of a checkout."""

from __future__ import annotations

import gzip
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import yaml

from xswe.errors import ConfigError, XsweError

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "eval" / "results"
DATA = Path(os.environ.get("XSWE_DATA", "../shared/data")).resolve()  # bitext and evaluation sets
REQUIRED = None  # the default of a setting that must be given


def pairs_of(path: Path, most: int | None = None) -> Iterator[tuple[str, str]]:
    """Yield the first two columns of the first, or all, lines of a tab-separated file, packed by gzip or not."""
    with (gzip.open if path.suffix == ".gz" else open)(path, "rt", encoding="utf-8") as stream:
        for line in islice(stream, most):
            fields = line.rstrip("\n").split("\t")
            if len(fields) > 1:
                yield fields[0], fields[1]


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


# Words of the command line that are settings of training: their names have dots, their values are read as YAML.


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


PAIRS = ("en-de", "en-zh", "en-ja")


def one(rows: Iterable[Mapping[str, Any]], **wanted: Any) -> Mapping[str, Any]:
    """Return the only row that has these values."""
    (found,) = [row for row in rows if all(row.get(key) == value for key, value in wanted.items())]
    return found


class Measured:
    """The results of a checkout: ``measured("serve")`` is ``eval/results/serve.json``."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._held: dict[str, Any] = {}
        self.published = yaml.safe_load((root / "eval" / "report" / "published.yaml").read_text(encoding="utf-8"))

    def __call__(self, name: str) -> Any:
        """Return what a file of results holds."""
        if name not in self._held:
            self._held[name] = json.loads((self._root / "eval" / "results" / f"{name}.json").read_text(encoding="utf-8"))
        return self._held[name]

    def main(self, run: str, step: str, task: str, subset: str, metric: str = "f1") -> float:
        """Return a figure of the main job, times 100."""
        rows = self(f"main/{run}")["rows"]
        return 100 * float(one(rows[step], task=task, subset=subset, metric=metric)["value"])

    def megabytes(self, file: str) -> float:
        """Return the size of a file of the checkout."""
        return (self._root / file).stat().st_size / 1e6

    def paper(self) -> list[float]:
        """Return Tatoeba F1 of the paper, a pair each."""
        found = one(self.published["retrieval"], model="SWE of the paper")["tatoeba"]
        return [found[pair] for pair in PAIRS]
