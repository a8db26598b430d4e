"""The corpora that there are cards of: listed, shown, fetched and converted."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from xswe.corpus.bitext import Bitext, CorpusConfig, CorpusReport, corpus_files
from xswe.corpus.cards import (
    Card,
    cache_folder,
    card_names,
    card_version,
    cards,
    entries_of,
    fetch_release,
    find_card,
    is_card,
)
from xswe.corpus.cleaning import REASONS
from xswe.corpus.convert import convert, converted_folder
from xswe.errors import ConfigError
from xswe.io.parallel import available_threads
from xswe.io.results import table

_SKIPPED = {
    "line too long": "a line of over a mebibyte",
    "not UTF-8": "a line that is not UTF-8",
    "NUL byte": "a line with a NUL byte",
    "too few columns": "a line without the columns asked for",
    "unequal length": "the end of the longer of two line-aligned files",
    "damaged archive": "all that came after the damage",
    "other languages": "a unit without one of the two languages",
    "not translated": "a unit without a translation",
    "fuzzy or obsolete": "a message whose translation is marked so",
}


@dataclass(frozen=True)
class ConvertedCorpus:
    """A corpus that was converted.

    Attributes:
        bitext: its pairs.
        report: how many were read, and where the rest went.
        place: the folder.
        cards: of the corpora it was made of.
        limit: how many pairs a training run draws; 0 for all.
    """

    bitext: Bitext
    report: CorpusReport
    place: Path
    cards: tuple[Card, ...]
    limit: int = 0

    def __str__(self) -> str:
        size = sum(path.stat().st_size for path in self.place.iterdir())
        lines = [_summary(self.report), "", f"{len(self.bitext):,} pairs, {size / 1e6:,.1f} MB: {self.place}"]
        if 0 < self.limit < len(self.bitext):
            lines.append(f"corpus.limit: a training run draws {self.limit:,} of them at random; all are converted")
        lines += [f"licence: {card.licence}{_restricted(card)}; cite: {card.cite}" for card in self.cards]
        return "\n".join(lines)


def list_corpora() -> str:
    """Return a table of all cards, and their licences."""
    rows = []
    for card in cards().values():
        for release in card.versions:
            served = ", ".join(f"{pair} ({size})" if size else pair for pair, size in release.pairs.items())
            rows.append([card.name, release.version, card.kind, served or ", ".join(release.languages)])
        if not card.versions:
            rows.append([card.name, "-", card.kind, "any"])
    width = max(len(name) for name in cards())
    licences = "\n".join(
        f"{card.name.ljust(width)}  {card.licence}{_restricted(card)}" for card in cards().values() if card.versions
    )
    body = [[*row[:3]] for row in rows]
    laid_out = table(["corpus", "version", "kind"], body).splitlines()
    lines = [f"{laid_out[0]}  pairs or languages", laid_out[1]]
    lines += [f"{line}  {row[3]}" for line, row in zip(laid_out[2:], rows, strict=True)]
    return (
        "\n".join(lines)
        + f"\n\nlicences, as their sources state them:\n{licences}\n\npython -m xswe corpus show name=ccmatrix"
    )


def show_corpora(config: CorpusConfig) -> str:
    """Return what the cards say that a configuration names; that of ``local`` without one."""
    return "\n\n".join(_show(find_card(name)) for name in _cards(config, ()) or ["local"])


def _restricted(card: Card) -> str:
    return f" [{'; '.join(card.restrictions)}]" if card.restrictions else ""


def _show(card: Card) -> str:
    lines = [
        f"{card.name} ({card.kind})",
        *textwrap.wrap(card.what, 100),
        f"licence:  {card.licence}",
        f"allows:   {card.allows}",
        *(f"models:   {restriction}" for restriction in card.restrictions),
        f"homepage: {card.homepage or '-'}",
        f"cite:     {card.cite}",
    ]
    for release in card.versions:
        served = ", ".join(f"{pair} ({size})" if size else pair for pair, size in release.pairs.items())
        lines.append(f"version {release.version} ({release.format}): {served or ', '.join(release.languages)}")
        lines += [f"  {url}" for url in release.urls] or [f"  hub: {release.repo} {release.config}"]
        if release.columns:
            lines.append("  columns: " + ", ".join(f"{name} {place}" for name, place in release.columns.items()))
    return "\n".join(lines + [f"unchecked: {what}" for what in card.unchecked])


def _cards(config: CorpusConfig, languages: tuple[str, ...]) -> list[str]:
    """Return the names of the corpus cards of a language or pair; without one, of all."""
    if isinstance(config.paths, Mapping) and not languages:
        return list(dict.fromkeys(name for key in config.paths for name in _cards(config, tuple(key.split("-")))))
    return card_names(entries_of(config.paths, languages))


def fetch_corpora(config: CorpusConfig, languages: tuple[str, ...]) -> str:
    """Fetch the files of the cards that a configuration names; return their paths and licences.

    Raises:
        ConfigError: it names no card, or one whose pairs are read from the hub.
        InputError: the corpus cannot be fetched, or is not what its card says.
    """
    entries = [entry for entry in entries_of(config.paths, languages) if is_card(entry)]
    if not entries:
        raise ConfigError("name the corpus to fetch, as in  python -m xswe corpus fetch name=ccmatrix pair=en-ja")
    lines = []
    for name, version in map(card_version, entries):
        card = find_card(name)
        release = card.release_for(languages, version)
        if release.format == "hub":
            raise ConfigError(f"corpus {card.name} {release.version} is read from the hub while it is converted")
        paths = fetch_release(card, release, languages, config.cache, config.offline)
        lines += [*map(str, paths), f"licence: {card.licence}{_restricted(card)}"]
    return "\n".join(lines)


def convert_corpus(
    config: CorpusConfig, languages: tuple[str, ...], output: str | Path | None = None, threads: int | None = None
) -> ConvertedCorpus:
    """Read, clean and convert a bitext for training.

    Args:
        config: what to read and what to drop.
        languages: of source and target.
        output: folder; None for one in the cache, by what it is made of.
        threads: how many; None for all processors.

    Raises:
        ConfigError: there are not two languages.
        InputError: a file is missing or damaged.
    """
    if threads is not None and (type(threads) is not int or threads < 0):
        raise ConfigError(f"threads={threads!r}: give a number, or null for all processors")
    if len(languages) != 2:
        raise ConfigError(f"a corpus has two languages, not {len(languages)}: pair=en-ja")
    pair = (languages[0], languages[1])
    files = corpus_files(config, [pair])[pair]
    place = Path(output) if output else converted_folder(files, pair, config, cache_folder(config.cache) / "converted")
    bitext, report = convert(files, pair, config, place, threads=threads or available_threads())
    return ConvertedCorpus(bitext, report, place, tuple(map(find_card, _cards(config, pair))), config.limit)


def _summary(report: CorpusReport) -> str:
    """Lay out where the pairs went, each reason with what it means."""
    explained = {**_SKIPPED, **REASONS}
    counted: Sequence[tuple[str, int]] = sorted(report.dropped.items(), key=lambda item: (-item[1], item[0]))
    rows = [["read", f"{report.read:,}"], *([reason, f"{count:,}"] for reason, count in counted)]
    rows.append(["kept", f"{report.kept:,}"])
    lines = table(["pairs", "count"], rows).splitlines()
    meanings = ["", "", "", *(explained.get(reason, "") for reason, _ in counted), ""]
    return "\n".join(f"{line}  {meaning}".rstrip() for line, meaning in zip(lines, meanings, strict=True))
