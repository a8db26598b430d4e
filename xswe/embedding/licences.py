"""The licence of a model's weights, derived from what the sources of its training text state."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from xswe.language.codes import LANGUAGES
from xswe.resources import resource

# From the least demanding to the most: (pattern, the hub's name of the licence).
_RANKS = (
    (r"cc0|public domain", "cc0-1.0"),
    (r"\bmit\b", "mit"),
    (r"bsd|apache", "apache-2.0"),
    (r"cc[ -]by(?![ -](sa|nc|nd))", "cc-by-4.0"),
    (r"cc[ -]by[ (-]*sa", "cc-by-sa-4.0"),
)
_REFUSED = re.compile(r"\bn[cd]\b|non-?commercial|research|no derivatives|gpl|none of its own", re.IGNORECASE)
_NUMBER = re.compile(r"v?\d+[km]?")
_OWN_FILES = "local"  # the card of files that no card knows
_ENDINGS = (".gz", ".xz", ".bz2", ".zst", ".tsv", ".txt")


@dataclass(frozen=True)
class Source:
    """Something a model was trained on.

    Attributes:
        name: of the source.
        licence: as the source states it; None if nobody said.
        pairs: how many translation pairs were read, None if not counted.
    """

    name: str
    licence: str | None
    pairs: int | None = None


def derive(sources: Iterable[Source]) -> tuple[str, str]:
    """Return the licence under which weights may be passed on, as the hub names it, and why.

    The most demanding of the sources' licences decides: attribution above none, share-alike above attribution. A source
    for research only, with a licence that is not known here, or with none at all makes it ``other``.
    """
    sources = list(sources)
    unclear = sorted({s.name for s in sources if s.licence is None or _rank(s.licence) is None})
    if unclear or not sources:
        which = ", ".join(unclear) or "the training text, which is not recorded"
        return "other", f"what {which} allows is not stated or not free: ask before you pass the weights on."
    ranks = {s.name: _rank(s.licence or "") or 0 for s in sources}
    highest = max(ranks.values())
    deciding = ", ".join(sorted({name for name, rank in ranks.items() if rank == highest}))
    return _RANKS[highest][1], f"the most demanding licence among the sources, that of {deciding}."


def _rank(licence: str) -> int | None:
    if _REFUSED.search(licence):
        return None
    found = [rank for rank, (pattern, _) in enumerate(_RANKS) if re.search(pattern, licence, re.IGNORECASE)]
    return max(found, default=None)


def sources_of(corpus: Mapping[str, Any], report: Mapping[str, Any]) -> list[Source]:
    """Name the sources of a training run, and their licences where a card of this project knows them.

    Args:
        corpus: the resolved section of the configuration.
        report: the corpus stage's, by language pair: ``checksums`` by file.
    """
    if corpus.get("sample"):
        card = _read(resource("corpora") / "sample" / "card.yaml")
        return [Source("the sample corpus of xswe", str(card["licence"]))]
    cards = {path.stem: _read(path) for path in sorted(resource("corpora").glob("*.yaml"))}
    if name := corpus.get("name"):
        return [Source(str(name), cards.get(str(name), {}).get("licence"))]
    known = _read(resource("corpora") / "licences" / "files.yaml")
    found: dict[str, Source] = {}
    for pair, counts in report.items():
        for file in counts.get("checksums", {}):
            stem = _stem(file)
            entry = known.get(f"{pair}/{stem}")
            if entry is None:
                source = Source(stem, cards.get(_corpus_of(stem), {}).get("licence"))
            else:
                source = Source(str(entry["source"]), str(entry["licence"]))
            found[source.name] = source
    return sorted(found.values(), key=lambda source: source.name)


def _corpus_of(stem: str) -> str:
    """Return the corpus that a file is named after: beside the name there are but languages, versions, dates and sizes.

    What else there is in a name may tell of another text, whose licence is not known: "not-tatoeba", "tatoeba-and-news".
    """
    words = [word for word in re.split(r"[\W_]+", stem.lower()) if word not in LANGUAGES and not _NUMBER.fullmatch(word)]
    return words[0] if len(words) == 1 and words[0] != _OWN_FILES else ""


def _stem(file: str) -> str:
    """Return the name of a file, whatever its folder, without what tells its format."""
    name = Path(file).name
    while (path := Path(name)).suffix in _ENDINGS:
        name = path.stem
    return name


def _read(path: Path) -> dict[str, Any]:
    value = yaml.safe_load(path.read_text(encoding="utf-8")) if path.is_file() else {}
    return value if isinstance(value, dict) else {}
