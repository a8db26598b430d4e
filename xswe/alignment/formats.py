"""Output formats of beads: tables for people, memories for their tools, ladders, and pages to read."""

from __future__ import annotations

import html
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast, get_args

from xswe.alignment.docx import write_docx
from xswe.bitext.memories import Unit, moment
from xswe.bitext.output import MEMORIES, USUAL_SUFFIXES, Format, Row, output_format, write_rows
from xswe.errors import ConfigError
from xswe.io.results import write_table, write_text
from xswe.io.settings import check_choice, for_all
from xswe.io.sources import suffix_of
from xswe.text.scripts import has_cjk

BeadFormat = Literal[Format, "docx", "html", "ladder"]
# Formats that only beads have, or that beads write in their own way.
_OWN = {"docx": ".docx", "html": ".html", "jsonl": ".jsonl", "ladder": ".ladder"}
SUFFIX_OF = USUAL_SUFFIXES | _OWN
_TABLES = {"csv": ".csv", "xlsx": ".xlsx"}
for_all(BeadFormat, dict.fromkeys((*get_args(Format), *_OWN)))
COLUMNS = ("source", "target", "score", "status", "notes", "source_lines", "target_lines")


class Written(NamedTuple):
    """A bead as written, or part of one that a person split.

    Attributes:
        score: None for lines without a counterpart.
        source: text.
        target: text.
        source_lines: line numbers, from 0.
        target_lines: likewise.
        status: ``right`` if given by a person, ``moved`` if out of order, else empty.
        notes: a person's notes.
        places: places of the sentences of both sides in running text; None if lines were given.
        before: prefixes of the line numbers on both sides, such as document names.
    """

    score: float | None
    source: str
    target: str
    source_lines: tuple[int, ...]
    target_lines: tuple[int, ...]
    status: str = ""
    notes: str = ""
    places: tuple[list[list[int]] | None, list[list[int]] | None] = (None, None)
    before: tuple[str, str] = ("", "")


@dataclass(frozen=True)
class Manner:
    """How beads are written.

    Attributes:
        languages: of source and target, with the locales if given.
        gaps: write lines without a counterpart, beside an empty text.
        bom: begin ``.csv`` with a byte-order mark.
        date: of the units of a memory: ``now``, or in ISO 8601; None for none.
        original: file name of the source.
    """

    languages: tuple[str, ...] = ()
    gaps: bool = True
    bom: bool = False
    date: str | None = None
    original: str = ""

    def __post_init__(self) -> None:
        moment(self.date)


def bead_format(wanted: str, output: str, languages: tuple[str, ...]) -> BeadFormat:
    """Return the wanted format, or for ``auto`` the one of the file's suffix.

    ConfigError: there is no such format, or it needs the languages. DependencyError: the library that writes it is not
    installed.
    """
    check_choice("format", wanted, BeadFormat)
    suffix = ".html" if suffix_of(output) == ".htm" else suffix_of(output)
    if wanted in _OWN or (wanted == "auto" and suffix in _OWN.values()):
        return cast(BeadFormat, wanted if wanted in _OWN else next(name for name, own in _OWN.items() if own == suffix))
    if wanted == "bucc":
        raise ConfigError("format=bucc is for pairs of ids, but beads have line numbers: use ladder")
    return output_format(wanted, output, languages, _OWN.values())


def write_beads(path: str | Path, kind: str, beads: Iterable[Written], manner: Manner) -> None:
    """Write beads atomically in a format of :func:`bead_format`."""
    shown = (bead for bead in beads if manner.gaps or (bead.source and bead.target))
    if kind in _TABLES:
        rows = map(_row, shown)
        write_table(path, _TABLES[kind], COLUMNS, rows, bom=manner.bom and kind == "csv")
    elif kind in MEMORIES:
        more = {"original": manner.original} if kind.startswith("xliff") else {}
        write_text(path, MEMORIES[kind](map(_unit, shown), manner.languages, manner.date, **more))
    elif kind == "html":
        write_text(path, _page(shown, manner))
    elif kind == "docx":
        write_docx(path, map(_printed, shown), manner.languages)
    elif kind in _OWN:
        write_text(path, map({"jsonl": _object, "ladder": _rung}[kind], shown))
    else:
        write_rows(str(path), kind, map(_pair, shown), manner.languages)


def joined(texts: Sequence[str]) -> str:
    """Join lines into one text, with a space between them except in Chinese and Japanese."""
    out = ""
    for text in texts:
        blank = " " if out and text and not (has_cjk(text) and (has_cjk(out[-1]) or out[-1] in "。！？」』”）")) else ""
        out = f"{out}{blank}{text}"
    return out


def _numbers(bead: Written) -> tuple[str, str]:
    """Return the line numbers of both sides, from 1, each with its prefix."""
    both = zip(bead.before, (bead.source_lines, bead.target_lines), strict=True)
    source, target = (" ".join(f"{name}{line + 1}" for line in lines) for name, lines in both)
    return source, target


def _printed(bead: Written) -> tuple[str, str, str, str]:
    number = str(bead.source_lines[0] + 1) if bead.source_lines else "–"
    return number, bead.source, bead.target, bead.notes


def _row(bead: Written) -> tuple[Any, ...]:
    score = None if bead.score is None else round(bead.score, 6)
    return bead.source, bead.target, score, bead.status, bead.notes, *_numbers(bead)


def _pair(bead: Written) -> Row:
    return Row(round(bead.score or 0.0, 6), bead.source, bead.target, *_numbers(bead), 1)


def _unit(bead: Written) -> Unit:
    return Unit(bead.score, bead.source, bead.target, " | ".join(_numbers(bead)), bead.status, bead.notes)


def _rung(bead: Written) -> str:
    """Return ``[0]:[0,1]:score``, with line numbers from 0; one side of a gap is empty."""
    sides = (",".join(map(str, lines)) for lines in (bead.source_lines, bead.target_lines))
    return ":".join(f"[{side}]" for side in sides) + f":{bead.score or 0.0:.6f}\n"


def _object(bead: Written) -> str:
    """Return a line with an object; for running text, with the character offsets of its sentences."""
    value: dict[str, Any] = {"score": round(bead.score or 0.0, 6)}
    value |= {name: getattr(bead, name) for name in ("source", "target", "source_lines", "target_lines")}
    value |= {name: given for name in ("status", "notes") if (given := getattr(bead, name))}
    for name, places in zip(("source", "target"), bead.places, strict=True):
        if places is not None:
            value[f"{name}_places"] = places
    return json.dumps(value, ensure_ascii=False) + "\n"


_STYLE = """
:root { color-scheme: light dark; --rule: #8884; --faint: #8881; }
body { margin: 2rem auto; max-width: 76rem; padding: 0 1rem; font: 1rem/1.55 Georgia, "Noto Serif", serif; }
table { border-collapse: collapse; width: 100%; table-layout: fixed; }
td { padding: .35rem .8rem; vertical-align: top; border-top: 1px solid var(--rule); overflow-wrap: anywhere; }
td.n { width: 3rem; padding: .35rem 0; opacity: .6; font: .75rem/2 system-ui, sans-serif; text-align: right; }
td:empty { background: var(--faint); }
tr.moved td { border-left: 3px solid #c06a2b; }
p.note { margin: .2rem 0 0; opacity: .75; font: .8rem system-ui, sans-serif; }
@media (max-width: 40rem) { td.n { display: none; } td { padding: .35rem; } }
@media print { body { margin: 0; max-width: none; } tr { break-inside: avoid; } }
"""


def _page(beads: Iterable[Written], manner: Manner) -> Iterator[str]:
    """Yield a page with both texts side by side, to read or print."""
    languages = [f' lang="{html.escape(code)}"' for code in manner.languages] if len(manner.languages) == 2 else ["", ""]
    title = html.escape(manner.original or "Parallel texts")
    yield f'<!doctype html>\n<html><head><meta charset="utf-8"><title>{title}</title>\n'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield f"<style>{_STYLE}</style></head>\n<body><table>\n"
    for bead in beads:
        number = bead.source_lines[0] + 1 if bead.source_lines else "–"
        moved = ' class="moved" title="out of order"' if bead.status == "moved" else ""
        notes = f'<p class="note">{html.escape(bead.notes)}</p>' if bead.notes else ""
        yield f'<tr{moved}><td class="n">{number}</td><td{languages[0]}>{html.escape(bead.source)}</td>'
        yield f"<td{languages[1]}>{html.escape(bead.target)}{notes}</td></tr>\n"
    yield "</table></body></html>\n"
