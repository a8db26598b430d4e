"""Corpus cards: what a public corpus is, where it lies, how it is laid out, and what its licence allows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal, get_args

import yaml

from xswe.errors import ConfigError
from xswe.resources import resource

CardFormat = Literal["moses-zip", "tar", "tsv", "hub", "lines"]


@dataclass(frozen=True)
class Version:
    """One release of a corpus.

    In ``files``, ``urls``, ``members`` and ``config`` the names ``{a}`` and ``{b}`` stand for the two codes in
    alphabetical order (as OPUS names its files), ``{source}`` and ``{target}`` for those of the pair as it is used, and
    ``{other}`` for the one that is not English.

    Attributes:
        version: its name.
        format: ``moses-zip``, ``tar`` (of tab-separated text), ``tsv``, ``hub``, or ``lines`` (monolingual).
        pairs: the language pairs it has, each with its size as the distributor states it, or None.
        languages: of a monolingual corpus.
        codes: the corpus's own code of a language, where it is not ours.
        files: the file of a pair, by its name in the cache.
        urls: where it is fetched, the first that answers.
        sha256: of the file of a pair, where one is published.
        members: in an archive, the patterns of the members ``source``, ``target`` and ``score``, or ``text``.
        columns: 0-based columns ``a``, ``b`` and ``score`` of tab-separated text.
        repo: on the hub, the data set.
        config: its configuration.
        split: its split.
        fields: its fields, by language code, ``other`` for the language that is not English; ``text`` if monolingual.
    """

    version: str
    format: CardFormat
    pairs: dict[str, str | None] = field(default_factory=dict)
    languages: tuple[str, ...] = ()
    codes: dict[str, str] = field(default_factory=dict)
    files: tuple[str, ...] = ()
    urls: tuple[str, ...] = ()
    sha256: dict[str, str] = field(default_factory=dict)
    members: dict[str, str] = field(default_factory=dict)
    columns: dict[str, int] = field(default_factory=dict)
    repo: str = ""
    config: str = ""
    split: str = "train"
    fields: dict[str, str] = field(default_factory=dict)

    def names(self, languages: Sequence[str]) -> dict[str, str]:
        """Return what the place-holders stand for, for one language or a pair."""
        codes = [self.codes.get(code, code) for code in languages]
        ordered = sorted(codes)
        names = {"source": codes[0], "a": ordered[0]}
        if len(codes) == 2:
            names |= {"target": codes[1], "b": ordered[1], "other": codes[1] if languages[0] == "en" else codes[0]}
        return names

    def serves(self, languages: Sequence[str]) -> bool:
        """Tell whether this release has a language, or a pair in either direction."""
        if len(languages) == 1:
            return languages[0] in self.languages
        return "-".join(languages) in self.pairs or "-".join(reversed(languages)) in self.pairs


@dataclass(frozen=True)
class Card:
    """One corpus.

    Attributes:
        name: what it is called on the command line.
        what: what it is.
        kind: ``bitext`` or ``monolingual``.
        homepage: where to read about it, and to fetch it by hand.
        licence: its licence, as its source states it.
        allows: what that allows, in a few words.
        restrictions: what a model trained on it must say about itself; empty if nothing.
        cite: how to cite it.
        versions: its releases, the one to use first.
        unchecked: what this card says without its having been looked up.
    """

    name: str
    what: str
    kind: Literal["bitext", "monolingual"]
    homepage: str | None
    licence: str
    allows: str
    restrictions: tuple[str, ...]
    cite: str
    versions: tuple[Version, ...]
    unchecked: tuple[str, ...]

    def release(self, version: str = "") -> Version:
        """Return a release, the first where none is named."""
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
        """Return a release that has a language or language pair.

        Raises:
            ConfigError: there is no such version, or it lacks the pair.
        """
        release = self.release(version)
        if not release.serves(languages):
            known = ", ".join(release.pairs or release.languages)
            raise ConfigError(f"corpus {self.name} {release.version} has no {'-'.join(languages)}; it has {known}")
        return release

    def licence_note(self) -> dict[str, Any]:
        """Return what a model card must say of this corpus."""
        return {"corpus": self.name, "licence": self.licence, "restrictions": list(self.restrictions), "cite": self.cite}


def _version(values: Mapping[str, Any]) -> Version:
    values = dict(values)
    for name in ("files", "urls", "languages"):
        values[name] = tuple(values.get(name, ()))
    if values["format"] not in get_args(CardFormat):
        raise ConfigError(f"format {values['format']!r}: use {', '.join(get_args(CardFormat))}")
    return Version(**{**values, "version": str(values["version"])})


@lru_cache(maxsize=1)
def cards() -> dict[str, Card]:
    """Return all cards by name, in the order of their names."""
    out = {}
    for path in sorted(resource("corpora").glob("*.yaml")):
        try:
            values = yaml.safe_load(path.read_text(encoding="utf-8"))
            versions = tuple(_version(version) for version in values.pop("versions"))
            values |= {name: tuple(values[name]) for name in ("restrictions", "unchecked")}
            out[path.stem] = Card(**values, versions=versions)
        except (yaml.YAMLError, TypeError, KeyError, ConfigError) as error:
            raise ConfigError(f"{path}: not a corpus card ({' '.join(str(error).split())})") from None
    return out


def find_card(name: str) -> Card:
    """Return a card by its name.

    Raises:
        ConfigError: there is none; the message lists those there are.
    """
    if name not in cards():
        raise ConfigError(f"unknown corpus {name!r}: the cards are {', '.join(cards())}; python -m xswe corpus list")
    return cards()[name]
