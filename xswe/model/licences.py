"""The licence of a model's weights, derived from its training data."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any

import yaml

from xswe.corpus.cards import Card, card_names, cards, entries_of
from xswe.errors import InputError
from xswe.io.resources import resource
from xswe.io.sources import PACKED, is_tar, is_zip, member_names
from xswe.text.languages import LANGUAGES

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
_ENDINGS = (*PACKED, ".zip", ".tar", ".tgz", ".tsv", ".txt", ".tmx", ".jsonl", ".parquet")


@dataclass(frozen=True)
class Source:
    """Something a model was trained on."""

    name: str  # of the source
    licence: str | None  # as the source states it; None if not stated
    pairs: int | None = None  # how many translation pairs were read, None if not counted
    restrictions: tuple[str, ...] = ()  # what its terms require of models trained on it
    by: str = ""  # the authors to attribute it to


def derive(sources: Iterable[Source]) -> tuple[str, str]:
    """Return the licence for distributing the weights, as the hub names it, and the reason.

    The most demanding of the sources' licences decides: attribution above none, share-alike above attribution. A source
    for research only, with an unknown licence, or with none at all makes it ``other``.
    """
    sources = list(sources)
    if bound := [s for s in sources if s.restrictions]:
        terms = "; ".join(f"{s.name}: {', '.join(s.restrictions)}" for s in bound)
        return "other", f"the terms of a source bind the models trained on it ({terms})."
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
    """Return the sources of a training run, with their licences if known.

    ``corpus`` is that section of the resolved configuration; ``report`` is that of the corpus stage: for each language
    pair, ``checksums`` by file.
    """
    if corpus.get("paths") == "sample":
        sample = _read(resource("corpora") / "sample" / "card.yaml")
        return [Source("the sample corpus of xswe", str(sample["licence"]), by="the xswe maintainers")]
    known = _read(resource("corpora") / "licences" / "files.yaml")
    found: dict[str, Source] = {}
    for pair, counts in report.items():
        sources = _of_entries(corpus.get("paths"), pair.split("-"))
        for file in counts.get("checksums", {}):
            stem = _stem(file)
            if stated := known.get(f"{pair}/{stem}"):
                sources.append(Source(str(stated["source"]), str(stated["licence"]), by=str(stated["by"])))
            else:
                card = _card_of(Path(file))
                sources.append(_of_card(card) if card else Source(stem, None))
        found |= {source.name: source for source in sources}
    return sorted(found.values(), key=lambda source: source.name)


def _of_card(card: Card) -> Source:
    return Source(card.name, card.licence, restrictions=card.restrictions, by=card.cite)


def _of_entries(paths: Any, languages: list[str]) -> list[Source]:
    """Return the corpus cards and hub data sets, with or without files, that a language or pair was read from."""
    entries = entries_of(paths, languages)
    if len(languages) == 1 and isinstance(paths, Mapping):  # a single language may be a side of bitexts
        entries = [
            entry for name in paths if languages[0] in name.split("-") for entry in entries_of(paths, name.split("-"))
        ]
    out = [_of_card(cards()[name]) for name in card_names(entries)]
    owners = {release.repo: card for card in cards().values() for release in card.versions if release.repo}
    for entry in entries:
        if isinstance(entry, Mapping) and (repo := entry.get("hub")):
            out.append(_of_card(owners[repo]) if repo in owners else Source(str(repo), None))
    return out


def _card_of(file: Path) -> Card | None:
    """Return the card of the corpus that a file belongs to, judged by its name, or the names within an archive."""
    if file.parent.name in cards() and file.parent.parent.name == "downloads":
        return cards()[file.parent.name]
    if name := _corpus_of(_stem(file.name)):
        return cards()[name]
    if not (is_zip(file) or is_tar(file)) or not file.is_file():
        return None
    try:
        members = [PurePosixPath(name) for name in member_names(file)]
    except InputError:
        return None
    texts = [
        m for m in members if m.suffix[1:].lower() in _codes() or (m.suffix in (".tsv", ".txt") and m.stem != "README")
    ]
    inside = {_corpus_of(_stem(member.name)) for member in texts}
    return cards()[inside.pop()] if len(inside) == 1 and inside != {""} else None


def _corpus_of(stem: str) -> str:
    """Return the corpus that a file is named after, "" for none.

    Apart from the corpus, the name may only contain languages, versions, dates and sizes: other words may mean another
    text, whose licence is unknown ("not-tatoeba", "tatoeba-and-news"). Names that do not include their corpus
    ("en-ja.bicleaner05") must equal those on its card, languages included.
    """
    name, languages = _parted(stem)
    return name if name in _named_after() else _file_names().get((name, languages), "")


def _parted(stem: str) -> tuple[str, frozenset[str]]:
    """Split a file name into the words that name the corpus, and the languages."""
    words = [word for word in re.split(r"[\W_]+", stem.lower()) if word and not _NUMBER.fullmatch(word)]
    codes = _codes()
    return " ".join(word for word in words if word not in codes), frozenset(codes[word] for word in words if word in codes)


@lru_cache(maxsize=1)
def _codes() -> dict[str, str]:
    """Return the language of each code used in file names."""
    codes = {code: code for code in LANGUAGES} | {language.iso3: code for code, language in LANGUAGES.items()}
    for card in cards().values():
        for release in card.versions:
            codes |= {word: code for code, own in release.codes.items() for word in re.split(r"[\W_]+", own.lower())}
    return codes


@lru_cache(maxsize=1)
def _named_after() -> frozenset[str]:
    """Return the names of the corpora that have files."""
    return frozenset(name for name, card in cards().items() if card.versions)


@lru_cache(maxsize=1)
def _file_names() -> dict[tuple[str, frozenset[str]], str]:
    """Return the corpus of each file name on the cards, split by :func:`_parted`, except names that corpora share."""
    owners: dict[tuple[str, frozenset[str]], set[str]] = {}
    for card in cards().values():
        for release in card.versions:
            for languages in release.pairs or release.languages:
                names = release.names(languages.split("-"))
                for pattern in (*release.files, *release.urls, *release.members.values()):
                    name, found = _parted(_stem(PurePosixPath(pattern.format(**names)).name))
                    if name and "*" not in pattern:
                        owners.setdefault((name, found), set()).add(card.name)
    return {key: names.pop() for key, names in owners.items() if len(names) == 1}


def _stem(file: str) -> str:
    """Return the name of a file without its folder and the suffixes of its format."""
    name = Path(file).name
    while (path := Path(name)).suffix.lower() in _ENDINGS:
        name = path.stem
    return name


def _read(path: Path) -> dict[str, Any]:
    value = yaml.safe_load(path.read_text(encoding="utf-8")) if path.is_file() else {}
    return value if isinstance(value, dict) else {}
