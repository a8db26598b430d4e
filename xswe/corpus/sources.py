"""From a corpus card to files of pairs in the cache."""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path

from xswe.corpus.archives import match_member, member_names
from xswe.corpus.cards import Card, Version, find_card
from xswe.corpus.download import fetch, recorded_digest
from xswe.corpus.pairs import PairFile
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
