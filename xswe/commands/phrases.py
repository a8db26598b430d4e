"""``python -m xswe phrases``: the spans of running text that say what a phrase says, in any language of the model."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from xswe.errors import ConfigError, InputError
from xswe.io.files import check_input, check_output, file_stamp
from xswe.io.lines import OnError, Skipped, read_lines
from xswe.io.parallel import available_threads
from xswe.io.settings import build
from xswe.mining.output import open_output
from xswe.model.ensemble import load_single
from xswe.model.resolve import locate
from xswe.phrases.find import Hit, Place, find_phrases
from xswe.phrases.search import SpanConfig
from xswe.phrases.words import StaticWords, WordSource

MODES = ("phrases", "terms")
_SETTINGS = ("min_size", "max_size", "k", "min_score", "examples", "first_stage", "near")
_FILES = ("queries", "passages", "output")
_OTHER_FORMATS = (".jsonl", ".ndjson", ".json", ".parquet", ".csv")
_AROUND = 40  # characters of context on either side of an example


def run(values: dict[str, Any]) -> str:
    """Search the passages for all phrases of a file, write the hits, and say how it went."""
    if values["mode"] not in MODES:
        raise ConfigError(f"mode={values['mode']!r}: use one of {', '.join(MODES)}")
    terms = values["mode"] == "terms"
    threads = values["threads"] or available_threads()
    settings = {name: values[name] for name in _SETTINGS}
    config = build(SpanConfig, {**settings, "distinct": terms, "threads": threads}, "phrases")
    given = build(_Files, {"on_error": values["corpus"]["on_error"], **{n: str(values[n]) for n in _FILES}}, "corpus")
    queries = read_queries(given.queries)
    source = open_source(str(values["model"]), threads)
    lines, skipped, begun = count(), Skipped(), time.monotonic()
    found = find_phrases(
        source,
        queries,
        _passages(given, lines, skipped),
        config,
        checkpoint=given.checkpoint,
        passages_identity=given.identity,
    )
    seconds = time.monotonic() - begun
    write = write_terms if terms else write_hits
    with open_output(given.output) as stream:
        stream.writelines(f"{line}\n".encode() for line in write(queries, found))
    if given.checkpoint is not None:
        given.checkpoint.unlink(missing_ok=True)
    total, with_hits, passages_read = sum(map(len, found)), sum(map(bool, found)), next(lines)
    kind = "candidates" if terms else "hits"
    left_out = "".join(f", {number:,} skipped: {reason}" for reason, number in sorted(skipped.counts.items()))
    summary = (
        f"{passages_read:,} passages{left_out}, {len(queries):,} queries, {total:,} {kind} for {with_hits:,} of them, "
        f"{passages_read / max(seconds, 1e-9):,.0f} passages/s: {given.output}"
    )
    if given.output == "-":
        sys.stderr.write(f"{summary}\n")
        return ""
    return summary


@dataclass(frozen=True)
class _Files:
    """What is read and written.

    Attributes:
        queries: text file; ``-`` for standard input.
        passages: likewise.
        output: file; ``-`` for standard output.
        on_error: what a damaged line of the passages does.
    """

    queries: str
    passages: str
    output: str
    on_error: OnError

    def __post_init__(self) -> None:
        if self.queries == self.passages == "-":
            raise ConfigError("queries=- passages=-: one of them can be read from standard input")
        if Path(self.output).suffix in _OTHER_FORMATS:
            raise ConfigError(f"output={self.output}: hits are written as tab-separated text; call it .tsv or .tsv.gz")
        check_output(self.output, [self.queries, self.passages])
        if self.passages != "-":
            check_input(self.passages)

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
        return [*file_stamp(self.passages), self.on_error]


def read_queries(path: str) -> list[str]:
    """Read phrases, one a line; blank lines are left out.

    Raises:
        InputError: there is none.
    """
    found = [text.strip() for _, text in read_lines(path) if text and text.strip()]
    if not found:
        raise InputError(path, "no phrase in it", "give a file with one phrase a line")
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
    for _, text in read_lines(given.passages, on_error=given.on_error, skipped=skipped):
        next(lines)
        yield text or ""


def _cell(text: str) -> str:
    """Keep a text from breaking the table: blanks of every kind become single blanks."""
    return " ".join(text.split())


def write_hits(queries: list[str], found: list[list[Hit]]) -> Iterator[str]:
    """Yield ``query, score, line, start, end, text``, tab-separated; lines count from 1, characters from 0."""
    for query, hits in zip(queries, found, strict=True):
        for hit in hits:
            place = hit.places[0]
            where = f"{place.passage + 1}\t{place.start}\t{place.end}"
            yield f"{_cell(query)}\t{hit.score:.4f}\t{where}\t{_cell(place.text)}"


def write_terms(queries: list[str], found: list[list[Hit]]) -> Iterator[str]:
    """Yield ``term, score, times, candidate, example, …``, tab-separated; an example is ``line: … [candidate] …``."""
    for query, hits in zip(queries, found, strict=True):
        for hit in hits:
            examples = "\t".join(_example(place) for place in hit.places)
            yield f"{_cell(query)}\t{hit.score:.4f}\t{hit.times}\t{_cell(hit.places[0].text)}\t{examples}"


def _example(place: Place) -> str:
    before, after = place.context[: place.start], place.context[place.end :]
    left = ("…" if len(before) > _AROUND else "") + before[-_AROUND:]
    right = after[:_AROUND] + ("…" if len(after) > _AROUND else "")
    return _cell(f"{place.passage + 1}: {left}[{place.text}]{right}")
