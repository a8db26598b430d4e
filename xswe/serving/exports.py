"""What was ticked in a page as a file: a translation memory, a term base, or a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xswe.io.results import Candidate, write_concepts, write_memory
from xswe.mining.output import one_line
from xswe.serving.messages import ExportRequest, Saying
from xswe.text.languages import LANGUAGES

KINDS = {"tmx": "application/x-tmx+xml", "tbx": "application/x-tbx+xml", "tsv": "text/tab-separated-values; charset=utf-8"}


def export(request: ExportRequest) -> bytes:
    """Return the file."""
    units = [[saying for saying in unit if saying.text.strip()] for unit in request.units]
    units = [unit for unit in units if unit]
    if request.format == "tsv":
        return _table(units).encode()
    if request.format == "tbx":
        return "".join(write_concepts(_concepts(units))).encode()
    return "".join(write_memory(_pairs(units))).encode()


def _pairs(units: Sequence[Sequence[Saying]]) -> Iterator[tuple[list[tuple[str, str]], dict[str, str]]]:
    for unit in units:
        notes = " ".join(dict.fromkeys(saying.note for saying in unit if saying.note))
        yield [(saying.language or "und", saying.text) for saying in unit], {"x-note": notes} if notes else {}


def _concepts(units: Sequence[Sequence[Saying]]) -> Iterator[dict[str, list[Candidate]]]:
    for unit in units:
        concept: dict[str, list[Candidate]] = {}
        for saying in unit:
            concept.setdefault(saying.language or "und", []).append(Candidate(saying.text, saying.context, saying.note))
        yield concept


def _table(units: Sequence[Sequence[Saying]]) -> str:
    """Lay units out with a column a language."""
    codes = [code for code in LANGUAGES if any(saying.language == code for unit in units for saying in unit)]
    others = sorted({saying.language for unit in units for saying in unit} - set(codes))
    columns = [*codes, *others]
    lines = [[*(code or "text" for code in columns), "note"]]
    for unit in units:
        said = (" | ".join(saying.text for saying in unit if saying.language == code) for code in columns)
        lines.append([*said, " ".join(dict.fromkeys(saying.note for saying in unit if saying.note))])
    return "".join("\t".join(map(one_line, line)) + "\n" for line in lines)
