"""Corpus cards: addresses, layout and licence of public corpora."""

from __future__ import annotations

import logging
import os
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import yaml

from xswe.bitext.formats import HubSet
from xswe.bitext.source import Source, find_pairs, least_score
from xswe.corpus.fetch import fetch
from xswe.errors import ConfigError, brief
from xswe.io.resources import resource
from xswe.io.settings import check_choice, for_all
from xswe.io.sources import match_member, member_names

SAMPLE = "sample"  # as corpus.paths: the bitext in this package, 1,717 sentences in four languages
SENTENCES = "sentences.tsv"
SAMPLE_COLUMNS = ("en", "de", "zh", "ja")
CardFormat = Literal["moses-zip", "tar", "tsv", "hub", "lines"]
CardKind = Literal["bitext", "monolingual"]
_IN_TWO_MEMBERS = for_all(CardFormat, {"moses-zip": True, "tar": False, "tsv": False, "hub": False, "lines": False})
_IS_BITEXT = for_all(CardKind, {"bitext": True, "monolingual": False})


@dataclass(frozen=True)
class Version:
    """One release of a corpus.

    In ``files``, ``urls``, ``members`` and ``config``, ``{a}`` and ``{b}`` stand for the two codes in alphabetical order
    (as OPUS names its files), ``{source}`` and ``{target}`` for those of the pair as it is used, and ``{other}`` for the
    one that is not English.
    """

    version: str
    format: CardFormat  # ``moses-zip``, ``tar`` (of tab-separated text), ``tsv``, ``hub``, or ``lines`` (monolingual)
    # its language pairs, each with its size as the distributor states it, or None
    pairs: dict[str, str | None] = field(default_factory=dict)
    languages: tuple[str, ...] = ()  # of a monolingual corpus
    codes: dict[str, str] = field(default_factory=dict)  # the corpus's own language codes that differ from ours
    files: tuple[str, ...] = ()  # names in the cache of a pair's files
    urls: tuple[str, ...] = ()  # mirrors, tried in order
    sha256: dict[str, str] = field(default_factory=dict)  # of a pair's file, if published
    # in an archive, the patterns of the members ``source``, ``target`` and ``score``, or ``text``
    members: dict[str, str] = field(default_factory=dict)
    # 0-based columns ``a``, ``b`` and ``score`` of tab-separated text
    columns: dict[str, int] = field(default_factory=dict)
    repo: str = ""  # the data set on the hub
    config: str = ""
    split: str = "train"
    # its fields, by language code, ``other`` for the language that is not English; ``text`` if monolingual
    fields: dict[str, str] = field(default_factory=dict)

    def names(self, languages: Sequence[str]) -> dict[str, str]:
        """Return the values of the placeholders for one language or a pair."""
        codes = [self.codes.get(code, code) for code in languages]
        ordered = sorted(codes)
        names = {"source": codes[0], "a": ordered[0]}
        if len(codes) == 2:
            names |= {"target": codes[1], "b": ordered[1], "other": codes[1] if languages[0] == "en" else codes[0]}
        return names

    def serves(self, languages: Sequence[str]) -> bool:
        """Return True if this release has a language, or a pair in either direction."""
        if len(languages) == 1:
            return languages[0] in self.languages
        return "-".join(languages) in self.pairs or "-".join(reversed(languages)) in self.pairs


@dataclass(frozen=True)
class Card:
    """One corpus."""

    name: str  # on the command line
    what: str
    kind: CardKind
    homepage: str | None  # where to read about it, and to fetch it by hand
    licence: str  # its licence, as its source states it
    allows: str  # what the licence allows, in a few words
    restrictions: tuple[str, ...]  # what a model trained on it must say about itself; empty if nothing
    cite: str  # how to cite it
    versions: tuple[Version, ...]  # its releases, the default first
    unchecked: tuple[str, ...]  # statements of this card that were not verified

    @property
    def terms(self) -> str:
        """The licence, and its conditions for a model."""
        return f"{self.licence} [{'; '.join(self.restrictions)}]" if self.restrictions else self.licence

    def __str__(self) -> str:
        lines = [
            f"{self.name} ({self.kind})",
            *textwrap.wrap(self.what, 100),
            f"licence:  {self.licence}",
            f"allows:   {self.allows}",
            *(f"models:   {restriction}" for restriction in self.restrictions),
            f"homepage: {self.homepage or '-'}",
            f"cite:     {self.cite}",
        ]
        for release in self.versions:
            served = ", ".join(f"{pair} ({size})" if size else pair for pair, size in release.pairs.items())
            lines.append(f"version {release.version} ({release.format}): {served or ', '.join(release.languages)}")
            lines += [f"  {url}" for url in release.urls] or [f"  hub: {release.repo} {release.config}"]
            if release.columns:
                lines.append("  columns: " + ", ".join(f"{name} {place}" for name, place in release.columns.items()))
        return "\n".join(lines + [f"unchecked: {what}" for what in self.unchecked])

    def release(self, version: str = "") -> Version:
        """Return a release, the first if none is named."""
        if not self.versions:
            raise ConfigError(f"corpus {self.name}: nothing to fetch; give your own files, corpus.paths=[...]")
        if not version:
            return self.versions[0]
        for release in self.versions:
            if release.version == str(version):
                return release
        known = ", ".join(release.version for release in self.versions)
        raise ConfigError(f"corpus {self.name} has no version {version!r}; it has {known}")

    def release_for(self, languages: Sequence[str], version: str = "") -> Version:
        """Return a release, if it has a language or pair; else raise a ConfigError that lists what it has."""
        release = self.release(version)
        if not release.serves(languages):
            known = ", ".join(release.pairs or release.languages)
            raise ConfigError(f"corpus {self.name} {release.version} has no {'-'.join(languages)}; it has {known}")
        return release

    def licence_note(self) -> dict[str, Any]:
        """Return the licence note on this corpus for a model card."""
        return {"corpus": self.name, "licence": self.licence, "restrictions": list(self.restrictions), "cite": self.cite}


def _version(values: Mapping[str, Any]) -> Version:
    values = dict(values)
    for name in ("files", "urls", "languages"):
        values[name] = tuple(values.get(name, ()))
    check_choice("format", values["format"], CardFormat)
    return Version(**{**values, "version": str(values["version"])})


def sample_folder() -> Path:
    """Return the folder of the sample corpus and its card."""
    return resource("corpora") / SAMPLE


def sample_sentences(most: int | None = None) -> dict[str, list[str]]:
    """Return the first ``most`` sentences of the sample corpus, or all, by language, aligned line by line."""
    lines = (sample_folder() / SENTENCES).read_text(encoding="utf-8").splitlines()[:most]
    return dict(zip(SAMPLE_COLUMNS, map(list, zip(*(line.split("\t") for line in lines), strict=True)), strict=True))


@lru_cache(maxsize=1)
def cards() -> dict[str, Card]:
    """Return all cards by name, sorted."""
    out = {}
    for path in sorted(resource("corpora").glob("*.yaml")):
        try:
            values = yaml.safe_load(path.read_text(encoding="utf-8"))
            versions = tuple(_version(version) for version in values.pop("versions"))
            values |= {name: tuple(values[name]) for name in ("restrictions", "unchecked")}
            out[path.stem] = Card(**values, versions=versions)
        except (yaml.YAMLError, TypeError, KeyError, ConfigError) as error:
            raise ConfigError(f"{path}: not a corpus card ({brief(error)})") from None
    return out


def find_card(name: str) -> Card:
    """Return a card by its name, or raise a ConfigError that lists all cards."""
    if name not in cards():
        raise ConfigError(f"unknown corpus {name!r}: the cards are {', '.join(cards())}; python -m xswe corpus list")
    return cards()[name]


logger = logging.getLogger(__name__)


def cache_folder(cache: str = "") -> Path:
    """Return the folder of fetched and converted corpora: as given, else ``XSWE_CACHE``, else ``~/.cache/xswe``."""
    return Path(cache or os.environ.get("XSWE_CACHE") or "~/.cache/xswe").expanduser()


def fetch_release(card: Card, release: Version, languages: tuple[str, ...], cache: str, offline: bool) -> list[Path]:
    """Fetch the files of a language or pair into the cache."""
    names = release.names(languages)
    folder = cache_folder(cache) / "downloads" / card.name
    out = []
    for file in release.files:
        urls = [url.format(**names) for url in release.urls]
        target = folder / file.format(**names)
        out.append(fetch(urls, target, sha256=release.sha256.get("-".join(languages)), offline=offline))
    return out


def entries_of(paths: Any, languages: Sequence[str]) -> list[Any]:
    """Return the entries of ``corpus.paths`` for a language or pair: those under its name in a mapping, else all."""
    given = paths.get("-".join(languages), ()) if isinstance(paths, Mapping) else paths or ()
    return [given] if isinstance(given, (str, Path)) else list(given)


def is_card(entry: Any) -> bool:
    """Return True if an entry of ``corpus.paths`` is a corpus card, ``{card: ccmatrix}``."""
    return isinstance(entry, Mapping) and "card" in entry


def card_names(entries: Sequence[Any]) -> list[str]:
    """Return the names of the corpus cards among entries of ``corpus.paths``, each once."""
    return list(dict.fromkeys(str(entry["card"]) for entry in entries if is_card(entry)))


def card_version(entry: Mapping[str, Any]) -> tuple[str, str]:
    """Return the card and version that an entry names, "" for the card's first; ConfigError: it has other settings."""
    known = ("card", "version", "min_score")
    if unknown := sorted(set(entry) - set(known)):
        raise ConfigError(f"corpus.paths: {unknown[0]!r} is no setting of a corpus card; they are {', '.join(known)}")
    version = entry.get("version")
    return str(entry["card"]), "" if version is None else str(version)


def find_sources(
    entries: Sequence[Any], languages: tuple[str, str], columns: tuple[int, ...], cache: str, offline: bool
) -> list[Source]:
    """Resolve entries of ``corpus.paths`` to files of pairs, in their order; those of corpus cards are fetched.

    Entries are corpus cards, ``{card: ccmatrix, version: "1"}``, and whatever :func:`xswe.bitext.source.find_pairs`
    accepts, with ``columns`` for tab-separated files. A ``cache`` of "" is the default one. ConfigError: there is no
    entry, or a card lacks the version or pair. InputError: a file is missing, or cannot be fetched.
    """
    if not entries:
        return find_pairs(entries, languages, columns)
    out: list[Source] = []
    for entry in entries:
        if is_card(entry):
            name, version = card_version(entry)
            files = corpus_sources(name, version, languages, cache, offline)
            files = [replace(file, min_score=least_score(entry)) for file in files]
        else:
            files = find_pairs([entry], languages, columns)
        out += [file for file in files if file not in out]
    return out


def corpus_sources(name: str, version: str, languages: tuple[str, str], cache: str, offline: bool) -> list[Source]:
    """Fetch a corpus's files of a language pair, and return them as sources; raises as :func:`find_sources`."""
    card = find_card(name)
    if not _IS_BITEXT[card.kind]:
        raise ConfigError(f"corpus {name} is monolingual: training needs translations; python -m xswe corpus list")
    release = card.release_for(languages, version)
    names = release.names(languages)
    if release.format == "hub":
        fields = {code: release.fields.get(code, release.fields.get("other", code)) for code in languages}
        hub = HubSet(release.repo, release.config.format(**names), release.split)
        pair = (fields[languages[0]], fields[languages[1]])
        return [Source((), pair, languages, hub=hub)]
    return [_laid_out(path, release, names, languages) for path in fetch_release(card, release, languages, cache, offline)]


def _laid_out(path: Path, release: Version, names: dict[str, str], languages: tuple[str, str]) -> Source:
    members = {part: pattern.format(**names) for part, pattern in release.members.items()}
    if _IN_TWO_MEMBERS[release.format]:
        present = member_names(path)
        sides = tuple(match_member(path, members[side], present) for side in ("source", "target"))
        return Source(tuple(f"{path}!{side}" for side in sides), (0, 1), languages, score=members.get("score"))
    first = names["source"] == names["a"]
    a, b = release.columns["a"], release.columns["b"]
    name = f"{path}!{members['text']}" if "text" in members else str(path)
    return Source((name,), (a, b) if first else (b, a), languages, score=release.columns.get("score"))
