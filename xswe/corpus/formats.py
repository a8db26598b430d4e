"""The format and columns of a bitext file, and detection of columns that are not text.

Public bitexts come as ``score, a, b`` or ``site, site, score, a, b``; read by the first two columns they would train
without an error. The rule looks for what no translation has: in nearly every line of a file's beginning one side is
nothing but a number, where the other side is not the same number, or nothing but an address. Numbers in some lines, and
tables whose numbers are on both sides, are text.
"""

from __future__ import annotations

import glob
import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import zip_longest
from pathlib import Path
from typing import Any, Literal

from xswe.corpus.rows import Fields, HubSet
from xswe.errors import ConfigError, InputError
from xswe.io.sources import PACKED, is_remote, is_tar, is_zip, member_names, suffix_of, without_packing
from xswe.text.languages import LANGUAGES

logger = logging.getLogger(__name__)
# What data sets and spreadsheets call the columns of a bitext.
_COLUMN = re.compile(
    r"(?:source|src|target|tgt|trg)(?:[ _-]?(?:text|sentence|segment|lang|language))?|(?:sentence|text)[ _-]?[12ab]"
    rf"|anchor|positive|translation|(?:{'|'.join(LANGUAGES)})(?:[_-]\w{{2,4}})?"
    rf"|{'|'.join(one.name for one in LANGUAGES.values())}",
    re.IGNORECASE,
)
JUDGED = 1000  # lines, at a file's beginning
_LEAST = 10  # fewer lines say too little
_SHARE = 0.9
_KINDS = {
    "a number": re.compile(r"[+-]?\.?\d[\d.,]*(?:e[+-]?\d+)?\s?%?", re.IGNORECASE),
    "a web address": re.compile(r"(?:[a-z]+://)?(?:[\w-]+\.)+[a-z]{2,}(?::\d+)?(?:/\S*)?", re.IGNORECASE),
}


def check_columns_are_text(
    path: Path,
    columns: tuple[int, int],
    languages: tuple[str, str],
    lines: Sequence[tuple[int, str]],
    in_corpus: bool = True,
) -> None:
    """Raise InputError if a column to be read is a number or a web address in nearly every one of a file's first ``lines``.

    A header, one pair among many, is only warned of, and stays. ``lines`` have their numbers, and all have these 0-based
    ``columns``; an unknown language is "". ``in_corpus`` says that the file is of ``corpus.paths``; else ``columns=``
    names others.
    """
    rows = [[field.strip() for field in line.split("\t")] for _, line in lines]
    if rows and lines[0][0] == 1 and all(_COLUMN.fullmatch(rows[0][column]) for column in columns):
        _warn_of_header(path, *(rows[0][column] for column in columns))
    found = _no_text([row[columns[0]] for row in rows], [row[columns[1]] for row in rows])
    if found is None:
        return
    side, kind, bad = found
    raise InputError(
        path,
        f"column {columns[side]} (counted from 0), read as {_language(languages, side)} text, is {kind} in {len(bad)} of "
        f"the first {len(lines)} lines",
        _cure(path, rows, in_corpus),
        lines[bad[0]][0],
    )


@lru_cache
def _warn_of_header(path: Path, source: str, target: str) -> None:
    """Warn of a header, once even if a file is read several times."""
    what = "names of columns, and are read as a pair; if they are, call the file .csv, or take them away"
    logger.warning("%s:1: %s and %s look like %s:  tail -n +2 %s", path, source, target, what, path)


def check_sides_are_text(
    where: str | Path,
    languages: tuple[str, str],
    source: Sequence[str],
    target: Sequence[str],
    *,
    cure: str = "name the files, or the fields, that hold the two texts",
    lines: Sequence[int] = range(1, JUDGED + 1),
) -> None:
    """Raise InputError if one side of line-aligned files or records is a number or a web address in nearly every line.

    The first texts of both are looked at, of the lines with these numbers.
    """
    found = _no_text(source, target)
    if found is not None:
        side, kind, bad = found
        problem = f"its {_language(languages, side)} side is {kind} in {len(bad)} of the first {len(source)} lines"
        raise InputError(where, problem, cure, lines[bad[0]])


def _language(languages: tuple[str, str], side: int) -> str:
    code = languages[side]
    return LANGUAGES[code].name if code in LANGUAGES else ("source", "target")[side]


def _kind_of(text: str) -> str | None:
    return next((kind for kind, pattern in _KINDS.items() if pattern.fullmatch(text)), None)


def _no_text(source: Sequence[str], target: Sequence[str]) -> tuple[int, str, list[int]] | None:
    """Return which side is not text, what it is, and in which rows; None if both are text."""
    if len(source) < _LEAST:
        return None
    for side, (own, other) in enumerate(((source, target), (target, source))):
        kinds = [_kind_of(text) for text in own]
        for kind in _KINDS:
            rows = [row for row, k in enumerate(kinds) if k == kind and not _same_number(own[row], other[row])]
            if len(rows) > _SHARE * len(source):
                return side, kind, rows
    return None


def _same_number(text: str, other: str) -> bool:
    """Return True if two texts are one number, however each language writes it."""
    if not all(_KINDS["a number"].fullmatch(one) for one in (text, other)):
        return False
    return re.sub(r"\D", "", text) == re.sub(r"\D", "", other)


def _cure(path: Path, rows: list[list[str]], in_corpus: bool) -> str:
    """Name the columns that are text, where that is obvious."""
    texts, numbers = [], []
    for column, fields in enumerate(zip_longest(*rows, fillvalue="")):
        kinds = [_kind_of(field) for field in fields if field]
        if kinds.count(None) > _SHARE * len(rows):
            texts.append(column)
        elif kinds.count("a number") > _SHARE * len(rows):
            numbers.append(column)
    columns, score = (texts, numbers) if len(texts) == 2 else ([3, 4], [2])
    entry = f"{{path: {path.name}, columns: {columns}{f', score: {score[0]}' if len(score) == 1 else ''}}}"
    named = f"corpus.paths=[{entry}]" if in_corpus else f"columns=[{columns[0]},{columns[1]}]"
    return f"name the columns of the two texts, the source's first, as in {named}"


# Translation pairs from files of any known format: what a path stands for.


PairFormat = Literal["tsv", "moses", "csv", "tmx", "catalogue", "xliff", "jsonl", "parquet", "hub"]
_BY_SUFFIX: dict[str, PairFormat] = {
    ".csv": "csv",
    ".tmx": "tmx",
    ".po": "catalogue",
    ".mo": "catalogue",
    ".xlf": "xliff",
    ".xliff": "xliff",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
}


@dataclass(frozen=True)
class PairFile:
    """A source of translation pairs: its files, and how to read them."""

    source: Path  # the file, or the source side's file
    target: Path | None = None  # the target side's file (Moses), None for one file of both
    columns: tuple[int, int] = (0, 1)  # 0-based columns of source and target in a tab-separated file
    format: PairFormat = "tsv"  # how the file is laid out
    # in an archive, the names (or patterns) of the member, or of the source's and the target's
    members: tuple[str, ...] = ()
    # the 0-based column, or in an archive the member, that holds the corpus's own score; None for none
    score: int | str | None = None
    # names of the source's and the target's field in records; None for the language codes
    fields: tuple[str, str] | None = None
    hub: HubSet | None = None  # for ``hub``, the data set
    languages: tuple[str, str] = ("", "")  # source and target language; the same one twice for pairs of one language
    min_score: float | None = None  # pairs of this file with a lower score are dropped; None for ``corpus.min_score``
    # 0-based columns, or names of fields, of texts that say something else than the source
    negatives: tuple[int | str, ...] = ()

    @property
    def record(self) -> Fields:
        """The fields of records to read."""
        return Fields(self.languages, self.fields, tuple(map(str, self.negatives)))

    @property
    def with_negatives(self) -> bool:
        """True if negatives are read where there are any."""
        records = self.format in ("csv", "jsonl", "parquet", "hub")
        return self.record.with_negatives if records else bool(self.negatives)

    @property
    def files(self) -> list[Path]:
        """The files read."""
        if self.hub is not None:
            return []
        return [self.source] if self.target is None else [self.source, self.target]


def find_pairs(
    paths: Sequence[str | Path | Mapping[str, Any]], languages: tuple[str, str], columns: tuple[int, ...] = (0, 1)
) -> list[PairFile]:
    """Resolve what a user typed to files of pairs.

    Each path is a tab-separated file, one side of a Moses pair (``news.en``: its other side ``news.ja`` is found beside
    it), an archive of such, a file of another format known by its suffix, a folder of these, or a glob pattern; or a
    mapping ``{path: …, columns: [3, 4]}`` for files with other columns (``score``, ``fields``, ``members``) and another
    ``min_score``. ``columns`` are those of tab-separated files. InputError: nothing is there. ConfigError: no path is
    given, or a Moses file lacks its other side.
    """
    if not paths:
        raise ConfigError("the corpus has no files: set corpus.paths=[a.tsv.gz,...]")
    out: list[PairFile] = []
    for entry in paths:
        if isinstance(entry, Mapping) and "hub" in entry:
            out.append(_hub_set(entry, languages))
            continue
        given, own = (entry["path"], entry.get("columns", columns)) if isinstance(entry, Mapping) else (entry, columns)
        own = check_columns(own, "corpus.columns")
        for file in _resolve(given):
            pair = _pair_file(file, languages, (own[0], own[1]))
            if pair.format == "tsv":
                pair = replace(pair, negatives=own[2:])
            if isinstance(entry, Mapping):
                pair = _with_entry(pair, entry)
            if pair not in out:
                out.append(pair)
    return out


def check_columns(columns: Any, where: str) -> tuple[int, ...]:
    """Return two 0-based columns, and those of negatives after them; raise ConfigError for anything else."""
    if isinstance(columns, Sequence) and len(columns) >= 2 and all(type(c) is int and c >= 0 for c in columns):
        return tuple(columns)
    raise ConfigError(
        f"{where}={columns!r}: name two columns counted from 0, as in {where}=[0,1] (further ones are of negatives)"
    )


def _resolve(given: str | Path) -> list[Path]:
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


def _pair_file(file: Path, languages: tuple[str, str], columns: tuple[int, int]) -> PairFile:
    """Return the format of a file by its name, and for one side of a Moses pair the other side."""
    if is_zip(file) or is_tar(file):
        return _archive(file, languages, columns)
    kind = _BY_SUFFIX.get(suffix_of(file))
    if kind is not None:
        return PairFile(file, None, columns, kind, languages=languages)
    language = without_packing(file).suffix.lstrip(".")
    if language not in languages or languages[0] == languages[1]:
        return PairFile(file, None, columns, languages=languages)
    other = languages[1 - languages.index(language)]
    stem = without_packing(file).with_suffix("")
    partner = next((p for end in ("", *PACKED) if (p := Path(f"{stem}.{other}{end}")).exists()), None)
    if partner is None:
        raise ConfigError(f"{file}: the other side, {stem.name}.{other}, is not beside it")
    sides = (file, partner) if language == languages[0] else (partner, file)
    return PairFile(*sides, format="moses", languages=languages)


def _archive(file: Path, languages: tuple[str, str], columns: tuple[int, int]) -> PairFile:
    """Return the contents of an archive: a Moses pair, or one tab-separated file."""
    names = member_names(file)
    sides = [[name for name in names if name.endswith(f".{language}")] for language in languages]
    if all(len(side) == 1 for side in sides) and languages[0] != languages[1]:
        return PairFile(file, None, columns, "moses", (sides[0][0], sides[1][0]), languages=languages)
    texts = [name for name in names if name.endswith((".tsv", ".txt")) and "readme" not in name.lower()]
    if len(texts) == 1:
        return PairFile(file, None, columns, "tsv", (texts[0],), languages=languages)
    wanted = f"*.{languages[0]} and *.{languages[1]}, or one .tsv or .txt"
    raise InputError(file, f"it holds {', '.join(names[:6]) or 'nothing'}", f"an archive must hold {wanted}; or unpack it")


def _hub_set(entry: Mapping[str, Any], languages: tuple[str, str]) -> PairFile:
    """Return the data set that a mapping in ``corpus.paths`` describes."""
    known = ("hub", "config", "split", "revision", "streaming", "fields")
    if unknown := sorted(set(entry) - set(known)):
        raise ConfigError(f"corpus.paths: {unknown[0]!r} is no setting of a data set; they are {', '.join(known)}")
    settings = {name: entry[name] for name in known[1:-1] if name in entry}
    data = HubSet(str(entry["hub"]), **settings)
    fields, negatives = _fields(entry.get("fields"))
    return PairFile(Path(data.repo), format="hub", fields=fields, hub=data, languages=languages, negatives=negatives)


def _fields(fields: Any) -> tuple[tuple[str, str] | None, tuple[str, ...]]:
    """Return the fields of source and target that an entry names, and those of negatives."""
    if fields is None:
        return None, ()
    if isinstance(fields, str) or len(fields) < 2:
        raise ConfigError(f"corpus.paths: fields={fields!r} must name source and target, and any negatives after them")
    return (str(fields[0]), str(fields[1])), tuple(map(str, fields[2:]))


def _with_entry(pair: PairFile, entry: Mapping[str, Any]) -> PairFile:
    """Apply a mapping in ``corpus.paths`` to a file."""
    known = ("path", "columns", "score", "fields", "members", "min_score")
    if unknown := sorted(set(entry) - set(known)):
        raise ConfigError(f"corpus.paths: {unknown[0]!r} is no setting of a file; they are {', '.join(known)}")
    fields, negatives = _fields(entry.get("fields"))
    return replace(
        pair,
        score=entry.get("score", pair.score),
        fields=fields,
        negatives=negatives or pair.negatives,
        members=tuple(entry.get("members", pair.members)),
        min_score=least_score(entry),
    )


def least_score(entry: Mapping[str, Any]) -> float | None:
    """Return the ``min_score`` of an entry of ``corpus.paths``, None without one; it must be a number."""
    value = entry.get("min_score")
    if value is None or (isinstance(value, (int, float)) and not isinstance(value, bool)):
        return None if value is None else float(value)
    raise ConfigError(f"corpus.paths: min_score={value!r} must be a number")
