"""Sources of bitext: from file names to pairs, as texts or as raw records."""

from __future__ import annotations

import glob
import json
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np

from xswe.bitext import kernels
from xswe.bitext.catalogues import catalogue_units
from xswe.bitext.checks import CHECKED, check_languages_of, check_sides_are_text, detected_languages
from xswe.bitext.formats import BY_SUFFIX, FORMATS, Described, HubSet, PairFormat, format_by_name
from xswe.bitext.lines import Job, Spans, bodies, line_blocks, line_job
from xswe.bitext.memories import languages_of, tmx_units, xliff_units
from xswe.bitext.records import WRITERS, Record, RecordBlock, frame_of, raw_of, side_by_side
from xswe.bitext.rows import Rows, one_line, pack
from xswe.bitext.tables import (
    batch_units,
    column_names,
    csv_separator,
    fields_within,
    hub_blocks,
    jsonl_units,
    parquet_blocks,
    row_units,
)
from xswe.errors import ConfigError, InputError
from xswe.io.files import open_output, whole_file
from xswe.io.lines import (
    BLOCK_LINES,
    MAX_LINE_BYTES,
    RAISES,
    OnError,
    Skipped,
    lines_counted,
    open_binary,
    read_lines,
    unbroken,
)
from xswe.io.ragged import Texts
from xswe.io.sources import PACKED, is_remote, is_tar, is_zip, member_names, packing_of, parted, suffix_of, without_packing
from xswe.work.config import LOCAL, ExecutionConfig
from xswe.work.folder import spooled

logger = logging.getLogger(__name__)
_BY_LINES: tuple[PairFormat, ...] = ("tsv", "moses")
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
# Readers by format; they yield (number, the reader's own object, the texts or the reason for having none).
_UNITS: dict[str, Callable[..., Iterator[tuple[int, Any, tuple[str, ...] | str]]]] = {
    "catalogue": catalogue_units,
    "csv": row_units,
    "jsonl": jsonl_units,
    "parquet": batch_units,
    "tmx": tmx_units,
    "xliff": xliff_units,
    "xlsx": row_units,
}


@dataclass(frozen=True)
class Source(Described):
    """A bitext: its files, and how to read them."""

    def __post_init__(self) -> None:
        paths = tuple(map(str, self.paths))
        if len(paths) == 1 and _is_archive(paths[0]):
            paths = _members(paths[0], self.languages)
        object.__setattr__(self, "paths", paths)
        if len(self.columns) < 2 or not all(isinstance(c, str) or (type(c) is int and c >= 0) for c in self.columns):
            raise ConfigError(f"columns={list(self.columns)!r}: name two columns, the source's first, counted from 0")
        if len(self.languages) != 2 and FORMATS[self.kind].names_languages:
            object.__setattr__(self, "languages", languages_of(self.paths[0]))
        if self.kind == "jsonl" and not self.by_name and len(self.languages) != 2:
            object.__setattr__(self, "columns", _fields_of(self.paths[0]))
        if self.span and not self.is_cut:
            raise ConfigError(f"{self.name}: only lines of text that are not packed are read by spans; read it whole")
        if self.kind == "tsv" and not all(isinstance(column, int) for column in self.columns):
            raise ConfigError(f"columns={list(self.columns)}: columns of tab-separated text are counted from 0")

    @property
    def files(self) -> list[Path]:
        """The files read; archives, not their members."""
        return list(dict.fromkeys(parted(path)[0] for path in self.paths))

    @property
    def is_cut(self) -> bool:
        """True if it can be read by spans: its pairs are lines, and it is neither packed nor in an archive."""
        return self.kind in _BY_LINES and not any(packing_of(path) or parted(path)[1] for path in self.paths)

    @property
    def layout(self) -> list[Any]:
        """The settings that, together with the bytes of the files, decide what is read."""
        members = tuple(member for path in self.paths if (member := parted(path)[1]))
        two, named = self.columns[:2], self.by_name
        out: list[Any] = [self.kind, (0, 1) if named else two, members, self.score, two if named else None]
        out += [] if self.min_score is None else [self.min_score]
        return out + ([{"negatives": self.columns[2:]}] if self.columns[2:] else [])

    def with_detected_languages(self) -> Source:
        """Return the same bitext; if it has no languages, detect those of its first texts, and log them."""
        if len(self.languages) == 2 or "-" in self.paths:
            return self
        first = [record.texts for record in islice(replace(self, on_error="skip").read(), CHECKED) if record.texts]
        if languages := detected_languages([pair[0] for pair in first], [pair[1] for pair in first]):
            logger.info("%s: languages=[%s,%s], detected in its texts", self.name, *languages)
        return replace(self, languages=languages)

    def spooled(self, folder: Path, execution: ExecutionConfig = LOCAL) -> Source:
        """Return the same bitext with standard input saved to a folder, see :func:`xswe.work.folder.spooled`."""
        return replace(self, paths=tuple(spooled(path, folder, execution) for path in self.paths))

    # Reading texts.

    def jobs(self, *, scores: bool = False, spans: Spans | None = None, in_place: bool = False) -> Iterator[Job]:
        """Yield jobs, which any thread may run, that make the pairs, in order; the n-th one is always the same.

        ``scores`` asks for the corpus's own scores. If it :attr:`is_cut`, ``spans`` (one per file, with equally many lines)
        select the lines that begin in them; errors then count lines from the span's beginning, see
        :func:`xswe.io.lines.lines_counted`. ``Rows.skipped`` counts what is left out; with ``in_place`` a pair without
        texts takes its place, so that all others keep their numbers. InputError, with file and line, in a job or between
        jobs, unless skipping: a line is not UTF-8, columns are missing, sides have unequal lengths, or an archive is
        truncated.
        """
        skipped = Skipped()
        if self.kind in _BY_LINES:
            paths, score = self.paths, self.score if scores else None
            if isinstance(score, str):
                if self.kind == "tsv":
                    raise ConfigError(f"{self.name}: the score of tab-separated text is a column, counted from 0")
                paths, score = (*paths, f"{parted(paths[0])[0]}!{score}"), None
            columns, score = tuple(map(int, self.columns)), score if self.kind == "tsv" else None
            for block in line_blocks(paths, spans=spans, on_error=self.on_error, skipped=skipped):
                yield line_job(block, columns, self.languages, self.on_error, score, in_place)
        else:
            for number, rows in enumerate(self._rows(skipped, in_place)):
                if not number:
                    first = list(rows.source[:CHECKED]), list(rows.target[:CHECKED])
                    check_sides_are_text(self.name, self.languages, *first)
                    check_languages_of(self.name, self.languages, *first)
                yield _ready(replace(rows, skipped=dict(skipped.counts)))
                skipped.counts.clear()
        if skipped.counts:
            yield _ready(Rows(Texts.of([]), Texts.of([]), None, dict(skipped.counts)))

    def _rows(self, skipped: Skipped, in_place: bool) -> Iterator[Rows]:
        """Yield the pairs of a format whose pairs are not lines."""
        if self.kind in ("hub", "parquet"):
            for _, (a, b), negatives in hub_blocks(self) if self.hub else parquet_blocks(self):
                yield Rows(one_line(a), one_line(b), negatives=negatives)
            return
        yield from pack(self._texts(skipped, in_place), self.with_negatives)

    def _texts(self, skipped: Skipped, in_place: bool) -> Iterator[tuple[str, ...]]:
        """Yield the pairs, each followed by its negatives, and count records without a pair; see :meth:`jobs`."""
        translated = self.kind in ("catalogue", "xliff")
        for _, _, texts in _UNITS[self.kind](self, False, skipped):
            if isinstance(texts, tuple) and (not translated or all(texts)):
                yield texts
                continue
            if texts:
                skipped.add(texts if isinstance(texts, str) else "not translated")
            if in_place:
                yield "", ""

    # Its records.

    def read(self, left_out: Skipped | None = None) -> Iterator[Record]:
        """Stream the records, and count the reasons why some have no texts.

        InputError, with file and line: a record is damaged (unless skipping), or sides have unequal lengths.
        """
        if self.kind in _BY_LINES:
            yield from (record for block in self.blocks(left_out=left_out) for record in block.records())
            return
        records = self._read(Skipped() if left_out is None else left_out)
        first = list(islice(records, CHECKED))
        if self.columns[0] != self.columns[1]:
            whole = [(number, record.texts) for number, record in first if record.texts]
            sides = [texts[0] for _, texts in whole], [texts[1] for _, texts in whole]
            check_sides_are_text(self.name, self.languages, *sides, hint=self._hint, lines=[number for number, _ in whole])
            check_languages_of(self.name, self.languages, *sides)
        yield from (record for _, record in chain(first, records))

    def _read(self, left_out: Skipped) -> Iterator[tuple[int, Record]]:
        self._check_two()
        kind, separator, end = self.kind, self.separator, self._end
        for number, beside, texts in self.units(left_out):
            pair = None if isinstance(texts, str) else (texts[0], texts[1])
            raw, row = raw_of(kind, number, beside, pair, separator)
            yield number, Record(raw, beside[1] if kind == "jsonl" else end, pair, row)

    def _hint(self) -> str:
        names = column_names(self)
        return f"name two of its columns, as in columns=[{','.join(names[-2:])}]: {', '.join(names)}"

    def _check_two(self) -> None:
        if len(self.columns) > 2:
            raise ConfigError(f"columns={list(self.columns)}: name two columns, the source's first")

    def units(self, left_out: Skipped) -> Iterator[tuple[int, Any, tuple[str, ...] | str]]:
        """Stream the records of formats other than lines: number, the reader's own object, and texts of each.

        The object is valid until the next record only. If the texts are missing, the reason takes their place, and is
        counted.
        """
        for number, beside, texts in _UNITS[self.kind](self, True, left_out):
            if isinstance(texts, str):
                left_out.add(texts or "blank")
            yield number, beside, texts

    def blocks(self, most: int = BLOCK_LINES, window: int = 0, left_out: Skipped | None = None) -> Iterator[RecordBlock]:
        """Stream the records in blocks; columns of text are cut by compiled code.

        Args:
            most: records a block.
            window: bytes. Blocks of tab-separated text also end every so many bytes, counted from the file's beginning:
                spans of whole windows have the same blocks as the file.
            left_out: counts the damaged records.

        Raises:
            InputError: as :meth:`read`.
        """
        self._check_two()
        if self.kind not in _BY_LINES:
            records = self.read(left_out)
            while block := list(islice(records, most)):
                yield RecordBlock.of([record.texts for record in block])
            return
        columns = tuple(map(int, self.columns))
        with lines_counted(self.paths[0], self.span[0] if self.span else 0):
            for lines in line_blocks(self.paths, most, window, [self.span] if self.span else None, exact=True):
                found, states = lines.cut(columns)
                if self.kind == "tsv":
                    _mark_blank(lines.lines[0], states[0], max(columns))
                if RAISES[self.on_error]:
                    lines.complain(states, columns)
                if left_out is not None:
                    lines.count(states, left_out)
                damaged = np.maximum.reduce(states) != kernels.FINE
                for one, texts in zip(found, lines.lines if len(lines.lines) > 1 else lines.lines * 2, strict=True):
                    if lines.begins and texts.data[: len(BYTE_ORDER_MARK)].tobytes() == BYTE_ORDER_MARK and one[0, 0] == 0:
                        one[0, 0] = min(len(BYTE_ORDER_MARK), one[0, 1])
                if lines.begins and (self.kind == "moses" or columns[0] != columns[1]):
                    lines.check(columns, self.languages, np.flatnonzero(~damaged), False)
                spans = np.concatenate(found, 1)
                spans[damaged] = 0
                data = lines.lines[0].data, lines.lines[-1].data
                yield RecordBlock(data, spans, damaged, lines.lines, lines.place)

    def blocks_at(self, places: np.ndarray, spans: np.ndarray) -> Iterator[RecordBlock]:
        """Read blocks of a file again without parsing its lines; none counts as damaged.

        ``places``, int64 (blocks, 3), are the :attr:`RecordBlock.places` of the blocks, ``spans``, int (records, 4), the
        spans of all their records. InputError: the file became shorter.
        """
        with open_binary(self.paths[0]) as stream:
            row = 0
            for begin, size, count in places.tolist():
                stream.seek(begin)
                data = np.frombuffer(stream.read(size), np.uint8)
                if len(data) < size:
                    problem = "became shorter while it was read"
                    raise InputError(self.paths[0], problem, "start again, with a file that stays")
                yield RecordBlock((data, data), spans[row : row + count], np.zeros(count, bool))
                row += count

    def read_raw(self) -> Iterator[Record]:
        """Stream the records a second time, without parsing the texts of lines."""
        blocks = self.raw_blocks()
        if blocks is None:
            return self.read()
        return (Record(body, end, None) for lines in blocks for body, end in bodies(lines))

    def raw_blocks(self, most: int = BLOCK_LINES) -> Iterator[Texts] | None:
        """Stream the records with their line ends, without parsing their texts; None if they are not lines."""
        if self.kind not in (*_BY_LINES, "jsonl"):
            return None
        spans = [self.span] if self.span else None
        return (side_by_side(block.lines) for block in line_blocks(self.paths, most, spans=spans, exact=True))

    # Writing records.

    def write(self, output: str, records: Iterable[tuple[Record, float]], scored: bool = False) -> None:
        """Write some of the records unchanged, in order and atomically; with their scores if ``scored``."""
        if self.kind in WRITERS:
            with whole_file(output) as temporary:
                WRITERS[self.kind](self.paths[0], temporary, records, scored)
            return
        before, after = self.frame(scored)
        with open_output(output) as stream:
            stream.write(before)
            rest = iter(records)
            while block := list(islice(rest, BLOCK_LINES)):
                if scored:
                    stream.write(b"".join(self.scored(record, score) + record.end for record, score in block))
                else:
                    stream.write(b"".join(record.raw + (record.end or b"\n") for record, _ in block))
            stream.write(after)

    def frame(self, scored: bool = False) -> tuple[bytes, bytes]:
        """Return the bytes before and after the records: a header of column names (with the score's), or of a memory."""
        if self.kind == "csv":
            names = self._header.rstrip(b"\r\n")
            return (names + f"{self.separator}score".encode() if scored else names) + self._end, b""
        return frame_of(self.kind, self.paths[0])

    def scored(self, record: Record, score: float) -> bytes:
        """Return a record with a score added: a column, a field, a property."""
        if self.kind == "jsonl":
            value = None if score != score else round(score, 6)
            line = json.dumps({**json.loads(record.raw or b"{}"), "score": value}, ensure_ascii=False)
            return line.encode("utf-8", "backslashreplace")  # a lone surrogate, as it was written
        if self.kind == "tmx":
            start = record.raw.index(b">") + 1
            return b'%s<prop type="x-score">%.6f</prop>%s' % (record.raw[:start], score, record.raw[start:])
        if self.kind == "catalogue":
            return b"#. score %.6f\n" % score + record.raw
        return record.raw + (self.separator.encode() if self.kind == "csv" else b"\t") + b"%.6f" % score

    @cached_property
    def _header(self) -> bytes:
        """The line of column names of comma-separated values; empty for other formats."""
        if self.kind != "csv":
            return b""
        with open_binary(self.paths[0]) as stream, unbroken(self.paths[0]):
            return stream.readline(MAX_LINE_BYTES)

    @property
    def _end(self) -> bytes:
        return b"\r\n" if self._header.endswith(b"\r\n") else b"\n"

    @cached_property
    def separator(self) -> str:
        """The separator between the columns of a ``.csv``."""
        return csv_separator(self._header.decode("utf-8", "replace"))


def read_pairs(
    source: Source,
    *,
    whole: bool = False,
    in_place: bool = False,
    on_error: OnError = "raise",
    skipped: Skipped | None = None,
) -> Iterator[tuple[str, str]]:
    """Yield the pairs of a source, each side a line without blanks at its ends; unless ``whole``, a side may be empty.

    What is left out is counted in ``skipped``, or else logged. ``in_place`` and InputError: as :meth:`Source.jobs`.
    """
    found = Skipped() if skipped is None else skipped
    for job in replace(source, on_error=on_error).jobs(in_place=in_place):
        rows = job()
        found.update(rows.skipped)
        pairs = list(zip(rows.source, rows.target, strict=True))
        kept = list(filter(all, pairs)) if whole else pairs
        found.add("blank", len(pairs) - len(kept))
        yield from kept
    if skipped is None:
        found.tell(source.name)


def _ready(rows: Rows) -> Job:
    return lambda: rows


def _mark_blank(lines: Texts, states: np.ndarray, last: int) -> None:
    """Mark blank lines as valid if they have enough tabs (their columns are empty), else as lacking columns."""
    for row in np.flatnonzero(states == kernels.EMPTY).tolist():
        tabs = int((lines.data[lines.offsets[row] : lines.offsets[row + 1]] == 0x09).sum())
        states[row] = kernels.FINE if tabs >= last else kernels.FEW


def _fields_of(path: str) -> tuple[str, ...]:
    """Return the two text fields of the first object, or ``source`` and ``target`` if there are more; else raise."""
    first = next((line for _, line in read_lines(path, on_error="skip") if line and line.strip()), "{}")
    try:
        found = tuple(name for name, value in fields_within(json.loads(first)).items() if isinstance(value, str))
    except (ValueError, RecursionError) as error:
        raise InputError(path, f"not JSON ({error})", "give a JSON object a line", 1) from None
    if {"source", "target"} <= set(found):
        return "source", "target"
    if len(found) != 2:
        names = f"its first object has {', '.join(found) or 'none'}"
        raise ConfigError(f"{path}: which texts are source and target? {names}: name two, as in columns=[source,target]")
    return found


# Resolving names.


def find_pairs(
    paths: Sequence[str | Path | Mapping[str, Any]], languages: tuple[str, ...], columns: tuple[int, ...] = (0, 1)
) -> list[Source]:
    """Resolve names and patterns to sources of pairs.

    Each path is a tab-separated file, one side of a Moses pair (``news.en``: its other side ``news.ja`` is found beside
    it), an archive of these, a file of another format known by its suffix, a folder of these, or a glob pattern; or a
    mapping ``{path: …, columns: [3, 4]}`` with settings of its own (also ``score``, ``fields``, ``members`` and
    ``min_score``). ``columns`` are those of tab-separated files. InputError: no such file. ConfigError: no path is given,
    or a Moses file lacks its other side.
    """
    if not paths:
        raise ConfigError("the corpus has no files: set corpus.paths=[a.tsv.gz,...]")
    out: list[Source] = []
    for entry in paths:
        if isinstance(entry, Mapping) and "hub" in entry:
            out.append(_hub_set(entry, languages))
            continue
        given: Mapping[str, Any] = entry if isinstance(entry, Mapping) else {"path": entry}
        _check_known(given, ("path", "columns", "score", "fields", "members", "min_score"), "a file")
        own_columns = check_columns(given.get("columns", columns), "corpus.columns")
        fields = _fields(given.get("fields"))
        for file in files_of(given["path"]):
            paths_of = tuple(f"{file}!{name}" for name in given.get("members", ())) or _sides(file, languages)
            kind = "moses" if len(paths_of) == 2 else "tsv" if _is_archive(paths_of[0]) else format_by_name(paths_of[0])
            columns_of = fields or (own_columns if kind == "tsv" else own_columns[:2])
            found = Source(paths_of, columns_of, languages, score=given.get("score"), min_score=least_score(given))
            if found not in out:
                out.append(found)
    return out


def check_columns(columns: Any, where: str) -> tuple[int, ...]:
    """Return two 0-based columns, and any columns of negatives after them; raise ConfigError for anything else."""
    if isinstance(columns, Sequence) and len(columns) >= 2 and all(type(c) is int and c >= 0 for c in columns):
        return tuple(columns)
    raise ConfigError(
        f"{where}={columns!r}: name two columns counted from 0, as in {where}=[0,1] (further ones are of negatives)"
    )


def files_of(given: str | Path) -> list[Path]:
    """Return the files that a path, folder or pattern stands for."""
    if is_remote(given):
        raise InputError(given, "not on this machine, and a corpus is made of files here only", "fetch it first")
    path = Path(given)
    if path.is_dir():
        found = sorted(p for p in path.iterdir() if p.is_file() and not p.name.startswith("."))
    elif path.exists() or not glob.has_magic(str(given)):
        found = [path]
    else:
        found = sorted(map(Path, glob.glob(str(given), recursive=True)))
    if not found:
        raise InputError(path, "no file there", "check corpus.paths (relative paths start at the working directory)")
    return found


def _sides(file: Path, languages: tuple[str, ...]) -> tuple[str, ...]:
    """Return a file, or, if it is one side of a Moses pair, both, the source first."""
    language = without_packing(file).suffix.lstrip(".")
    if language not in languages or languages[0] == languages[1] or parted(file)[1]:
        return (str(file),)
    other = languages[1 - languages.index(language)]
    stem = without_packing(file).with_suffix("")
    partner = next((p for end in ("", *PACKED) if (p := Path(f"{stem}.{other}{end}")).exists()), None)
    if partner is None:
        raise ConfigError(f"{file}: the other side, {stem.name}.{other}, is not beside it")
    return (str(file), str(partner)) if language == languages[0] else (str(partner), str(file))


def _is_archive(path: str) -> bool:
    return not parted(path)[1] and suffix_of(path) != ".epub" and (is_zip(Path(path)) or is_tar(Path(path)))


def _members(archive: str, languages: Sequence[str]) -> tuple[str, ...]:
    """Return the members of an archive to read: a Moses pair, or one file of pairs, preferably tab-separated."""
    names = member_names(Path(archive))
    sides = [[name for name in names if name.endswith(f".{language}")] for language in languages]
    if len(sides) == 2 and all(len(side) == 1 for side in sides) and languages[0] != languages[1]:
        return f"{archive}!{sides[0][0]}", f"{archive}!{sides[1][0]}"
    kinds = {name: BY_SUFFIX.get(suffix_of(name)) for name in names if "readme" not in name.lower()}
    for family in ("tsv", *(kind for kind, one in FORMATS.items() if one.packed)):
        if len(texts := [name for name, kind in kinds.items() if kind == family]) == 1:
            return (f"{archive}!{texts[0]}",)
        if texts:
            break
    wanted = f"{' and '.join(f'*.{code}' for code in languages)}{', or ' * bool(languages)}one .tsv or .txt"
    problem = f"it holds {', '.join(names[:6]) or 'nothing'}"
    raise InputError(archive, problem, f"an archive must hold {wanted}; or name one, as in {Path(archive).name}!NAME")


def _hub_set(entry: Mapping[str, Any], languages: tuple[str, ...]) -> Source:
    """Return the hub data set that a mapping in ``corpus.paths`` describes."""
    known = ("hub", "config", "split", "revision", "streaming", "fields")
    _check_known(entry, known, "a data set")
    data = HubSet(str(entry["hub"]), **{name: entry[name] for name in known[1:-1] if name in entry})
    return Source((), _fields(entry.get("fields")) or (0, 1), languages, hub=data)


def _check_known(entry: Mapping[str, Any], known: Sequence[str], what: str) -> None:
    if unknown := sorted(set(entry) - set(known)):
        raise ConfigError(f"corpus.paths: {unknown[0]!r} is no setting of {what}; they are {', '.join(known)}")


def _fields(fields: Any) -> tuple[str, ...]:
    """Return the fields that an entry names: source, target, and any of negatives; () for None."""
    if fields is None:
        return ()
    if isinstance(fields, str) or len(fields) < 2:
        raise ConfigError(f"corpus.paths: fields={fields!r} must name source and target, and any negatives after them")
    return tuple(map(str, fields))


def least_score(entry: Mapping[str, Any]) -> float | None:
    """Return the ``min_score`` of an entry of ``corpus.paths``, None without one; raise ConfigError if it is no number."""
    value = entry.get("min_score")
    if value is None or (isinstance(value, (int, float)) and not isinstance(value, bool)):
        return None if value is None else float(value)
    raise ConfigError(f"corpus.paths: min_score={value!r} must be a number")
