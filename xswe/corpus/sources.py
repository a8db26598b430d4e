"""What the entries of ``corpus.paths`` stand for: files of one's own, and the files of corpus cards, in the cache."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from xswe.corpus.archives import match_member, member_names
from xswe.corpus.cards import Card, Version, find_card
from xswe.corpus.download import fetch, recorded_digest
from xswe.corpus.pairs import PairFile, find_pairs, least_score
from xswe.corpus.tables import HubSet
from xswe.errors import ConfigError
from xswe.files import check_input, file_digest


def cache_folder(cache: str = "") -> Path:
    """Return where fetched and converted corpora are: as given, else ``XSWE_CACHE``, else ``~/.cache/xswe``."""
    return Path(cache or os.environ.get("XSWE_CACHE") or "~/.cache/xswe").expanduser()


def digest_of(path: Path) -> str:
    """Return a file's SHA-256, from its download's record where there is one; a file that stays the same is read once."""
    now = check_input(path)
    if found := recorded_digest(path):
        return found
    return _digest(path.absolute(), now.st_size, now.st_mtime_ns)


@lru_cache(maxsize=1024)
def _digest(path: Path, size: int, mtime_ns: int) -> str:
    """Read a file of this size and age: a stage asks several times for the checksum of what may be gigabytes."""
    return file_digest(path)


def fetch_release(card: Card, release: Version, languages: tuple[str, ...], cache: str, offline: bool) -> list[Path]:
    """Bring the files of a language or pair into the cache."""
    names = release.names(languages)
    folder = cache_folder(cache) / "downloads" / card.name
    out = []
    for file in release.files:
        urls = [url.format(**names) for url in release.urls]
        target = folder / file.format(**names)
        out.append(fetch(urls, target, sha256=release.sha256.get("-".join(languages)), offline=offline))
    return out


def entries_of(paths: Any, languages: Sequence[str]) -> list[Any]:
    """Return the entries of ``corpus.paths`` for a language or pair: of a mapping those under its name, else all."""
    given = paths.get("-".join(languages), ()) if isinstance(paths, Mapping) else paths or ()
    return [given] if isinstance(given, (str, Path)) else list(given)


def is_card(entry: Any) -> bool:
    """Tell whether an entry of ``corpus.paths`` is a corpus card, ``{card: ccmatrix}``."""
    return isinstance(entry, Mapping) and "card" in entry


def card_names(entries: Sequence[Any]) -> list[str]:
    """Return the names of the corpus cards among entries of ``corpus.paths``, each once."""
    return list(dict.fromkeys(str(entry["card"]) for entry in entries if is_card(entry)))


def card_version(entry: Mapping[str, Any]) -> tuple[str, str]:
    """Return the card and version that an entry names; the version is "" for the card's first.

    Raises:
        ConfigError: the entry has another setting.
    """
    known = ("card", "version", "min_score")
    if unknown := sorted(set(entry) - set(known)):
        raise ConfigError(f"corpus.paths: {unknown[0]!r} is no setting of a corpus card; they are {', '.join(known)}")
    version = entry.get("version")
    return str(entry["card"]), "" if version is None else str(version)


def find_sources(
    entries: Sequence[Any], languages: tuple[str, str], columns: tuple[int, ...], cache: str, offline: bool
) -> list[PairFile]:
    """Resolve entries of ``corpus.paths`` to files of pairs, in their order; those of corpus cards are fetched.

    Args:
        entries: corpus cards, ``{card: ccmatrix, version: "1"}``, and whatever
            :func:`xswe.corpus.pairs.find_pairs` knows.
        languages: source and target language.
        columns: of tab-separated files of one's own.
        cache: folder of fetched corpora, "" for the usual one.
        offline: never ask the network.

    Raises:
        ConfigError: there is no entry, or a card lacks the version or pair.
        InputError: a file is not there, or cannot be had.
    """
    if not entries:
        return find_pairs(entries, languages, columns)
    out: list[PairFile] = []
    for entry in entries:
        if is_card(entry):
            name, version = card_version(entry)
            files = corpus_sources(name, version, languages, cache, offline)
            files = [replace(file, min_score=least_score(entry)) for file in files]
        else:
            files = find_pairs([entry], languages, columns)
        out += [file for file in files if file not in out]
    return out


def corpus_sources(name: str, version: str, languages: tuple[str, str], cache: str, offline: bool) -> list[PairFile]:
    """Fetch a corpus's files of a language pair and say how they are laid out.

    Raises:
        ConfigError: there is no such corpus, version or pair, or the corpus has no pairs at all.
        InputError: the files cannot be had.
    """
    card = find_card(name)
    if card.kind != "bitext":
        raise ConfigError(f"corpus {name} is monolingual: training needs translations; python -m xswe corpus list")
    release = card.release_for(languages, version)
    names = release.names(languages)
    if release.format == "hub":
        fields = {code: release.fields.get(code, release.fields.get("other", code)) for code in languages}
        hub = HubSet(release.repo, release.config.format(**names), release.split)
        pair = (fields[languages[0]], fields[languages[1]])
        return [PairFile(Path(release.repo), format="hub", fields=pair, hub=hub, languages=languages)]
    return [_laid_out(path, release, names, languages) for path in fetch_release(card, release, languages, cache, offline)]


def _laid_out(path: Path, release: Version, names: dict[str, str], languages: tuple[str, str]) -> PairFile:
    members = {part: pattern.format(**names) for part, pattern in release.members.items()}
    if release.format == "moses-zip":
        present = member_names(path)
        sides = tuple(match_member(path, members[side], present) for side in ("source", "target"))
        return PairFile(path, None, (0, 1), "moses", sides, members.get("score"), languages=languages)
    first = names["source"] == names["a"]
    a, b = release.columns["a"], release.columns["b"]
    texts = (members["text"],) if "text" in members else ()
    return PairFile(
        path, None, (a, b) if first else (b, a), "tsv", texts, release.columns.get("score"), languages=languages
    )
