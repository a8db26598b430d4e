"""``python -m xswe phrases``: the spans of running text that say what a phrase says, in any language of the model."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, count
from pathlib import Path
from typing import Any

from xswe.commands.config import aside
from xswe.corpus.formats import find_pairs, read_pairs
from xswe.errors import ConfigError, InputError
from xswe.io.archives import packing_of, without_packing
from xswe.io.files import check_input, check_output, file_stamp
from xswe.io.lines import OnError, Skipped, read_lines
from xswe.io.parallel import available_threads
from xswe.io.results import Rows, check_suffix
from xswe.io.settings import build
from xswe.mining.output import Row, open_output, write_tmx
from xswe.model.ensemble import load_single
from xswe.model.resolve import locate
from xswe.phrases.find import Hit, Place, find_phrases
from xswe.phrases.search import SpanConfig
from xswe.phrases.tbx import write_tbx
from xswe.phrases.terms import Term, find_terms
from xswe.phrases.words import StaticWords, WordSource
from xswe.text.languages import check_languages

MODES = ("phrases", "terms")
_SETTINGS = ("min_size", "max_size", "k", "min_score", "examples", "first_stage", "near")
_FILES = ("queries", "passages", "output")
_BITEXTS = (".tmx", ".xlf", ".xliff", ".po", ".mo", ".parquet")  # passages that are read as bitext only
_TEXTS = (".txt", ".tsv", ".gz", ".xz", ".bz2", ".zst", ".zstd", ".en", ".de", ".zh", ".ja")
_AROUND = 40  # characters of context on either side of an example


def run(values: dict[str, Any]) -> str:
    """Search the passages for all phrases, write what is found, and say how it went."""
    if values["mode"] not in MODES:
        raise ConfigError(f"mode={values['mode']!r}: use one of {', '.join(MODES)}")
    terms = values["mode"] == "terms"
    threads = values["threads"] or available_threads()
    settings = {name: values[name] for name in _SETTINGS}
    config = build(SpanConfig, {**settings, "distinct": terms, "threads": threads}, "phrases")
    files = {name: str(values[name]) for name in _FILES}
    given = build(_Files, {**files, "mode": values["mode"], "languages": values["languages"], **values["corpus"]}, "corpus")
    queries = read_queries(given.queries)
    source = open_source(str(values["model"]), threads)
    lines, skipped, begun = count(), Skipped(), time.monotonic()
    how: dict[str, Any] = {"checkpoint": given.checkpoint, "passages_identity": given.identity}
    passages = _passages(given, lines, skipped)
    found: list[list[Any]]
    if terms:
        found = find_terms(source, queries, passages, config, **how)
    else:
        found = find_phrases(source, queries, passages, config, **how)
    seconds = time.monotonic() - begun
    _write(given, queries, found, config.examples)
    if given.checkpoint is not None:
        given.checkpoint.unlink(missing_ok=True)
    total, with_hits, passages_read = sum(map(len, found)), sum(map(bool, found)), next(lines)
    kind = "candidates" if terms else "hits"
    left_out = "".join(f", {number:,} skipped: {reason}" for reason, number in sorted(skipped.counts.items()))
    nothing = f", nothing found for {len(queries) - with_hits:,}" if with_hits < len(queries) else ""
    summary = (
        f"{passages_read:,} passages{left_out}, {len(queries):,} queries, {total:,} {kind} for {with_hits:,} of them"
        f"{nothing}, {passages_read / max(seconds, 1e-9):,.0f} passages/s: {given.output}"
    )
    return aside(summary, given.output)


@dataclass(frozen=True)
class _Files:
    """What is read and written.

    Attributes:
        queries: text file; ``-`` for standard input.
        passages: likewise.
        output: file; ``-`` for standard output.
        mode: of the verb.
        languages: of the phrases and of the passages, empty where they do not matter.
        on_error: what a damaged line of the passages does.
    """

    queries: str
    passages: str
    output: str
    mode: str
    languages: tuple[str, ...]
    on_error: OnError

    def __post_init__(self) -> None:
        if self.queries == self.passages == "-":
            raise ConfigError("queries=- passages=-: one of them can be read from standard input")
        check_output(self.output, [self.queries, self.passages])
        kind, named = self.format, check_languages(self.languages) if self.languages else ()
        if kind == ".tbx" and self.mode != "terms":
            raise ConfigError(f"output={self.output}: terms are written as .tbx: set mode=terms")
        if kind not in _EXCHANGE:
            check_suffix(without_packing(Path(self.output)) if self.output != "-" else "hits.tsv")
        if packing_of(self.output) and kind in (".parquet", ".xlsx"):
            raise ConfigError(f"output={self.output}: {kind} is not written packed; call it hits{kind}")
        needed = kind in _EXCHANGE or self._suffix in _BITEXTS
        if len(named) != 2 and (named or needed):
            raise ConfigError(
                f"languages={list(named)}: name the language of the phrases and the passages', as in languages=[en,ja]"
            )
        if named and kind not in _EXCHANGE and not self.is_bitext:
            raise ConfigError("languages= is for bitext as passages, and for .tmx and .tbx as output: leave it out")
        if self.passages != "-":
            check_input(self.passages)

    @property
    def format(self) -> str:
        """The suffix of the format that is written."""
        if self.output == "-":
            return ".tsv"
        return without_packing(Path(self.output)).suffix.lower()

    @property
    def _suffix(self) -> str:
        return without_packing(Path(self.passages)).suffix.lower()

    @property
    def is_bitext(self) -> bool:
        """Whether the passages have another side."""
        return len(self.languages) == 2 and self._suffix in (*_BITEXTS, ".tsv", ".jsonl")

    def pairs(self, skipped: Skipped) -> Iterator[tuple[str, str]]:
        """Stream a bitext: the side in the language of the phrases, and the passage."""
        a, b = self.languages
        for file in find_pairs([self.passages], (a, b)):
            yield from read_pairs(file, on_error=self.on_error, skipped=skipped)

    @property
    def checkpoint(self) -> Path | None:
        """Where the state of the search is kept; None where it has no place, or the passages cannot be read again."""
        if "-" in (self.output, self.passages):
            return None
        return Path(self.output).with_name(f".{Path(self.output).name}.state")

    @property
    def identity(self) -> list[Any] | None:
        """Tell the passages from others in a file of the same name, without reading them."""
        if self.checkpoint is None:
            return None
        return [*file_stamp(self.passages), self.on_error, self.is_bitext and list(self.languages)]


def read_queries(given: str) -> list[str]:
    """Read phrases, one a line, blank lines left out; what is no file is a phrase itself.

    Raises:
        InputError: there is none, or what is given looks like the name of a file that is not there.
    """
    if given != "-" and not Path(given).exists():
        if not given.strip() or (" " not in given and Path(given).suffix in _TEXTS):
            raise InputError(given, "no such file", "give a text file, or a phrase")
        return [given]
    found = [text.strip() for _, text in read_lines(given) if text and text.strip()]
    if not found:
        raise InputError(given, "no phrase in it", "give a file with one phrase a line, or a phrase")
    return found


def open_source(which: str, threads: int) -> WordSource:
    """Open what ``model=`` names: a model folder, or ``teacher:`` and a teacher, whose token states are then used."""
    if not which.startswith("teacher:"):
        return StaticWords(load_single(locate(which)))
    from xswe.phrases.words import TeacherWords
    from xswe.teacher.protocol import TeacherConfig
    from xswe.teacher.transformer import load_teacher

    teacher = load_teacher(TeacherConfig.named(which.removeprefix("teacher:"), threads))
    return TeacherWords(teacher, teacher.checksum())


def _passages(given: _Files, lines: Iterator[int], skipped: Skipped) -> Iterator[str]:
    """Stream the passages, counting them; one that is skipped is empty, so that all others keep their numbers."""
    if given.is_bitext:
        for _, text in given.pairs(skipped):
            next(lines)
            yield text
        return
    for _, line in read_lines(given.passages, on_error=given.on_error, skipped=skipped):
        next(lines)
        yield line or ""


def _other_sides(given: _Files, found: Sequence[Sequence[Hit | Term]]) -> dict[int, str] | None:
    """Read the other side of the passages that a hit's first place is in; None where they have none."""
    if not given.is_bitext:
        return None
    wanted = {hit.places[0].passage for hits in found for hit in hits}
    return {row: text for row, (text, _) in enumerate(given.pairs(Skipped())) if row in wanted}


def _write(given: _Files, queries: Sequence[str], found: Sequence[Sequence[Any]], examples: int) -> None:
    """Write what was found, in the format of the output's suffix."""
    if given.format in _EXCHANGE:
        with open_output(given.output) as stream:
            stream.writelines(part.encode() for part in _EXCHANGE[given.format](queries, found, given.languages))
        return
    other = _other_sides(given, found)
    result = term_rows(queries, found, examples, other) if given.mode == "terms" else hit_rows(queries, found, other)
    if given.format in (".parquet", ".xlsx"):
        result.write(given.output)
        return
    with open_output(given.output) as stream:
        stream.write(result.render(given.format).encode())


def hit_rows(queries: Sequence[str], found: Sequence[Sequence[Hit]], other: dict[int, str] | None = None) -> Rows:
    """Lay out hits; lines count from 1, characters of the sentence from 0.

    Args:
        queries: the phrases.
        found: the hits of each.
        other: the other side of passages, where they have one.
    """
    rows = []
    for query, hits in zip(queries, found, strict=True):
        for hit in hits:
            place = hit.places[0]
            row = (query, round(hit.score, 4), place.passage + 1, place.start, place.end, place.text, place.context)
            rows.append(row if other is None else (*row, other[place.passage]))
    names = ("phrase", "score", "line", "start", "end", "text", "sentence")
    return Rows(names if other is None else (*names, "other_side"), rows)


def term_rows(
    queries: Sequence[str], found: Sequence[Sequence[Term]], examples: int = 1, other: dict[int, str] | None = None
) -> Rows:
    """Lay out candidates; a phrase for which nothing was found has a row with empty cells.

    Args:
        queries: the phrases.
        found: the candidates of each.
        examples: how many pairs of columns there are for examples.
        other: the other side of passages, where they have one: that of the first example.
    """
    names = ["term", "candidate", "score", "times", "passages", "variants"]
    for number in range(1, examples + 1):
        names += [f"line_{number}", f"example_{number}"]
    names += [] if other is None else ["other_side"]
    rows: list[list[Any]] = []
    for query, terms in zip(queries, found, strict=True):
        if not terms:
            rows.append([query, "", *[None] * (len(names) - 2)])
        for term in terms:
            cells: list[tuple[Any, Any]] = [(place.passage + 1, _example(place)) for place in term.places[:examples]]
            cells += [(None, None)] * (examples - len(cells))
            row: list[Any] = [query, term.text, round(term.score, 4), term.times, term.passages, " | ".join(term.variants)]
            rows.append([*row, *chain(*cells), *([] if other is None else [other[term.places[0].passage]])])
    return Rows(tuple(names), rows)


def _example(place: Place) -> str:
    before, after = place.context[: place.start], place.context[place.end :]
    left = ("…" if len(before) > _AROUND else "") + before[-_AROUND:]
    right = after[:_AROUND] + ("…" if len(after) > _AROUND else "")
    return f"{left}[{place.text}]{right}"


def _tmx(queries: Sequence[str], found: Sequence[Sequence[Hit | Term]], languages: Sequence[str]) -> Iterator[str]:
    """Yield a translation memory of phrases and what says them."""
    rows = (
        Row(round(hit.score, 6), query, hit.text if isinstance(hit, Term) else hit.places[0].text, "phrase", line, rank)
        for query, hits in zip(queries, found, strict=True)
        for rank, hit in enumerate(hits)
        for line in [str(hit.places[0].passage + 1)]
    )
    return write_tmx(rows, languages)


_EXCHANGE: dict[str, Callable[[Sequence[str], Sequence[Sequence[Any]], Sequence[str]], Iterator[str]]] = {
    ".tbx": write_tbx,
    ".tmx": _tmx,
}
