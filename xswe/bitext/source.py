"""Files of pairs: what a path, a folder, a pattern or an archive stands for."""

from __future__ import annotations

import glob
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from xswe.bitext.formats import FORMATS, PairFormat, format_by_name
from xswe.bitext.tables import Fields, HubSet
from xswe.errors import ConfigError, InputError
from xswe.io.sources import PACKED, is_remote, is_tar, is_zip, member_names, without_packing


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
        return self.record.with_negatives if FORMATS[self.format].family == "table" else bool(self.negatives)

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
    kind = format_by_name(file)
    if kind != "tsv":
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
