"""Translation pairs from files of any known format: what a path stands for, and its pairs one by one."""

from __future__ import annotations

import glob
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice, zip_longest
from pathlib import Path
from typing import Any, Literal

from xswe.corpus.archives import is_tar, is_zip, member_names
from xswe.corpus.catalogues import read_catalogue
from xswe.corpus.layout import JUDGED, check_columns_are_text
from xswe.corpus.memories import read_tmx, read_xliff
from xswe.corpus.packing import PACKED, without_packing
from xswe.corpus.rows import Rows
from xswe.corpus.streams import OnError, Skipped, read_lines, too_few_columns, unequal_sides
from xswe.corpus.tables import Fields, HubSet, read_hub, read_jsonl, read_parquet
from xswe.errors import ConfigError, InputError

PairFormat = Literal["tsv", "moses", "tmx", "catalogue", "xliff", "jsonl", "parquet", "hub"]
_BY_SUFFIX: dict[str, PairFormat] = {
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
    """Where translation pairs come from.

    Attributes:
        source: the file, or the source side's file.
        target: the target side's file (Moses), None for one file of both.
        columns: 0-based columns of source and target in a tab-separated file.
        format: how the file is laid out.
        members: in an archive, the names (or patterns) of the member, or of the source's and the target's.
        score: the 0-based column, or in an archive the member, that holds the corpus's own score; None for none.
        fields: names of the source's and the target's field in records; None for the language codes.
        hub: for ``hub``, the data set.
        languages: source and target language; the same one twice for pairs of one language.
        min_score: pairs of this file with a lower score are dropped; None for ``corpus.min_score``.
        negatives: 0-based columns, or names of fields, of texts that say something else than the source.
    """

    source: Path
    target: Path | None = None
    columns: tuple[int, int] = (0, 1)
    format: PairFormat = "tsv"
    members: tuple[str, ...] = ()
    score: int | str | None = None
    fields: tuple[str, str] | None = None
    hub: HubSet | None = None
    languages: tuple[str, str] = ("", "")
    min_score: float | None = None
    negatives: tuple[int | str, ...] = ()

    @property
    def record(self) -> Fields:
        """Which fields of records are read."""
        return Fields(self.languages, self.fields, tuple(map(str, self.negatives)))

    @property
    def with_negatives(self) -> bool:
        """Whether negatives are read where there are any."""
        records = self.format in ("jsonl", "parquet", "hub")
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

    Args:
        paths: each a tab-separated file, one side of a Moses pair (``news.en``: its other side ``news.ja`` is
            found beside it), an archive of such, a file of another format known by its suffix, a folder of these, or a
            glob pattern; or a mapping ``{path: …, columns: [3, 4]}`` for files whose columns (``score``, ``fields``,
            ``members``) are others, and whose scores are bounded otherwise (``min_score``).
        languages: source and target language.
        columns: of tab-separated files.

    Raises:
        InputError: nothing is there.
        ConfigError: no path is given, or a Moses file lacks its other side.
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
    """Return two columns counted from 0, and those of negatives after them.

    Raises:
        ConfigError: they are anything else.
    """
    if isinstance(columns, Sequence) and len(columns) >= 2 and all(type(c) is int and c >= 0 for c in columns):
        return tuple(columns)
    raise ConfigError(
        f"{where}={columns!r}: name two columns counted from 0, as in {where}=[0,1] (further ones are of negatives)"
    )


def _resolve(given: str | Path) -> list[Path]:
    """Return the files that a path, folder or pattern stands for."""
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
    """Decide by its name what a file is; of one side of a Moses pair, find the other side."""
    if is_zip(file) or is_tar(file):
        return _archive(file, languages, columns)
    kind = _BY_SUFFIX.get(without_packing(file).suffix.lower())
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
    """Decide what an archive holds: a Moses pair, or one tab-separated file."""
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
    """Apply what a mapping in ``corpus.paths`` says of a file."""
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
    """Return the ``min_score`` of an entry of ``corpus.paths``, None where it has none.

    Raises:
        ConfigError: it is no number.
    """
    value = entry.get("min_score")
    if value is None or (isinstance(value, (int, float)) and not isinstance(value, bool)):
        return None if value is None else float(value)
    raise ConfigError(f"corpus.paths: min_score={value!r} must be a number")


def read_pairs(file: PairFile, *, on_error: OnError = "raise", skipped: Skipped | None = None) -> Iterator[tuple[str, str]]:
    """Stream the pairs of one file, stripped of blanks at both ends; a side may be empty.

    Args:
        file: what to read.
        on_error: ``raise`` at the first damaged line, or ``skip`` and count it.
        skipped: counts what was skipped.

    Raises:
        InputError: with file and line: bad UTF-8, too few columns, sides of unequal length, a truncated archive.
    """
    skipped = skipped if skipped is not None else Skipped()
    if file.members:
        raise ConfigError(f"{file.source}: members of archives are read by blocks (xswe.corpus.blocks)")
    if file.format == "tsv":
        yield from _read_columns(file, on_error, skipped)
    elif file.format == "moses":
        yield from _read_moses(file, on_error, skipped)
    elif file.format == "catalogue":
        yield from read_catalogue(file.source, file.languages, on_error=on_error, skipped=skipped)
    elif file.format == "jsonl":
        yield from ((a, b) for a, b, *_ in read_records(file, on_error=on_error, skipped=skipped))
    elif file.format in ("tmx", "xliff"):
        read = read_tmx if file.format == "tmx" else read_xliff
        yield from read(file.source, file.languages, on_error=on_error, skipped=skipped)
    else:
        for rows in read_tables(file):
            yield from zip(rows.source, rows.target, strict=True)


def read_tables(file: PairFile) -> Iterator[Rows]:
    """Stream the blocks of a Parquet file or a data set of the hub."""
    if file.hub is not None:
        return read_hub(file.hub, file.record)
    return read_parquet(file.source, file.record)


def read_records(file: PairFile, *, on_error: OnError, skipped: Skipped) -> Iterator[tuple[str, ...]]:
    """Stream the pairs of a file of JSON lines, each followed by its negatives."""
    return read_jsonl(file.source, file.record, on_error=on_error, skipped=skipped)


def _read_moses(file: PairFile, on_error: OnError, skipped: Skipped) -> Iterator[tuple[str, str]]:
    sides = (read_lines(path, on_error=on_error, skipped=skipped) for path in file.files)
    for source, target in zip_longest(*sides):
        if source is None or target is None:
            short, number = (file.files[0], target[0]) if source is None else (file.files[1], source[0])
            if on_error == "raise":
                other = file.files[1] if source is None else file.files[0]
                raise unequal_sides(short, other, number)
            skipped.add("unequal length")
            return
        if source[1] is not None and target[1] is not None:
            yield source[1].strip(), target[1].strip()


def _read_columns(file: PairFile, on_error: OnError, skipped: Skipped) -> Iterator[tuple[str, str]]:
    lines = _lines_with_columns(file, on_error, skipped)
    first = list(islice(lines, JUDGED))
    check_columns_are_text(file.source, file.columns, file.languages, first)
    for _, line in chain(first, lines):
        fields = line.split("\t")
        yield fields[file.columns[0]].strip(), fields[file.columns[1]].strip()


def _lines_with_columns(file: PairFile, on_error: OnError, skipped: Skipped) -> Iterator[tuple[int, str]]:
    need = max(file.columns) + 1
    for number, line in read_lines(file.source, on_error=on_error, skipped=skipped):
        if line is None or not line.strip():
            continue
        if (found := line.count("\t") + 1) >= need:
            yield number, line
            continue
        if on_error == "raise":
            raise too_few_columns(file.source, found, file.columns, number)
        skipped.add("too few columns")
