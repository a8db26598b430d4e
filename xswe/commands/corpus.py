"""``python -m xswe corpus``: what corpora there are, and a corpus fetched, checked and converted for training."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from xswe.corpus.bitext import CorpusConfig, CorpusReport, corpus_files
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
from xswe.io.settings import build
from xswe.text.languages import check_languages

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


def run(values: dict[str, Any]) -> str:
    """List the cards, show one, fetch a corpus, or fetch and convert it; return what to print."""
    action = values["action"]
    if action == "list":
        return _list()
    config = build(CorpusConfig, values["corpus"], "corpus")
    if action == "show":
        return "\n\n".join(_show(find_card(name)) for name in _cards(config, ()) or ["local"])
    languages = check_languages(values["pair"]["languages"])
    if action == "fetch":
        return _fetch(config, languages)
    if action == "convert":
        return _convert(config, languages, values["output"], _threads(values["threads"]))
    raise ConfigError(f"action={action!r}: use list, show, fetch or convert")


def _threads(given: Any) -> int:
    if given is not None and (type(given) is not int or given < 0):
        raise ConfigError(f"threads={given!r}: give a number, or null for all processors")
    return given or available_threads()


def _list() -> str:
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


def _fetch(config: CorpusConfig, languages: tuple[str, ...]) -> str:
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


def _convert(config: CorpusConfig, languages: tuple[str, ...], output: str | None, threads: int) -> str:
    if len(languages) != 2:
        raise ConfigError(f"a corpus has two languages, not {len(languages)}: pair=en-ja")
    pair = (languages[0], languages[1])
    files = corpus_files(config, [pair])[pair]
    place = Path(output) if output else converted_folder(files, pair, config, cache_folder(config.cache) / "converted")
    bitext, report = convert(files, pair, config, place, threads=threads)
    size = sum(path.stat().st_size for path in place.iterdir())
    lines = [_summary(report), "", f"{len(bitext):,} pairs, {size / 1e6:,.1f} MB: {place}"]
    if 0 < config.limit < len(bitext):
        lines.append(f"corpus.limit: a training run draws {config.limit:,} of them at random; all are converted")
    for card in map(find_card, _cards(config, pair)):
        lines.append(f"licence: {card.licence}{_restricted(card)}; cite: {card.cite}")
    return "\n".join(lines)


def _summary(report: CorpusReport) -> str:
    """Lay out where the pairs went, each reason with what it means."""
    explained = {**_SKIPPED, **REASONS}
    counted: Sequence[tuple[str, int]] = sorted(report.dropped.items(), key=lambda item: (-item[1], item[0]))
    rows = [["read", f"{report.read:,}"], *([reason, f"{count:,}"] for reason, count in counted)]
    rows.append(["kept", f"{report.kept:,}"])
    lines = table(["pairs", "count"], rows).splitlines()
    meanings = ["", "", "", *(explained.get(reason, "") for reason, _ in counted), ""]
    return "\n".join(f"{line}  {meaning}".rstrip() for line, meaning in zip(lines, meanings, strict=True))
