"""Translation pairs from files: tab-separated columns, or two line-aligned (Moses) files."""

from __future__ import annotations

import glob
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

from xswe.corpus.streams import OnError, Skipped, read_lines
from xswe.errors import ConfigError, InputError

_COMPRESSED = (".gz", ".xz", ".bz2", ".zst", ".zstd")


@dataclass(frozen=True)
class PairFile:
    """Where translation pairs come from.

    Attributes:
        source: the file, or the source side's file.
        target: the target side's file (Moses), None for a tab-separated file.
        columns: 0-based columns of source and target in a tab-separated file.
    """

    source: Path
    target: Path | None = None
    columns: tuple[int, int] = (0, 1)

    @property
    def files(self) -> list[Path]:
        """The files read."""
        return [self.source] if self.target is None else [self.source, self.target]


def _bare(path: Path) -> Path:
    return path.with_suffix("") if path.suffix in _COMPRESSED else path


def find_pairs(
    paths: Sequence[str | Path | Mapping[str, Any]], languages: tuple[str, str], columns: tuple[int, int] = (0, 1)
) -> list[PairFile]:
    """Resolve what a user typed to files of pairs.

    Args:
        paths: each a tab-separated file, one side of a Moses pair (``news.en``: its other side ``news.ja`` is
            found beside it), a folder of such files, or a glob pattern; or a mapping ``{path: …, columns: [3, 4]}``
            for files whose columns are others.
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
        given, own = (entry["path"], entry.get("columns", columns)) if isinstance(entry, Mapping) else (entry, columns)
        for file in _resolve(given):
            pair = _pair_file(file, languages, (own[0], own[1]))
            if pair not in out:
                out.append(pair)
    return out


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
    """Decide by its name whether a file is one side of a Moses pair, and find the other side."""
    language = _bare(file).suffix.lstrip(".")
    if language not in languages:
        return PairFile(file, None, columns)
    other = languages[1 - languages.index(language)]
    stem = _bare(file).with_suffix("")
    partner = next((p for end in ("", *_COMPRESSED) if (p := Path(f"{stem}.{other}{end}")).exists()), None)
    if partner is None:
        raise ConfigError(f"{file}: the other side, {stem.name}.{other}, is not beside it")
    return PairFile(*((file, partner) if language == languages[0] else (partner, file)))


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
    if file.target is None:
        yield from _read_columns(file, on_error, skipped)
        return
    sides = (read_lines(path, on_error=on_error, skipped=skipped) for path in file.files)
    for source, target in zip_longest(*sides):
        if source is None or target is None:
            short, number = (file.source, target[0]) if source is None else (file.target, source[0])
            if on_error == "raise":
                other = file.target if source is None else file.source
                cure = "the two files must be aligned line by line: fetch both again, or set corpus.on_error=skip"
                raise InputError(short, f"ends before line {number}, where {other} goes on", cure, number)
            skipped.add("unequal length")
            return
        if source[1] is not None and target[1] is not None:
            yield source[1].strip(), target[1].strip()


def _read_columns(file: PairFile, on_error: OnError, skipped: Skipped) -> Iterator[tuple[str, str]]:
    need = max(file.columns) + 1
    for number, line in read_lines(file.source, on_error=on_error, skipped=skipped):
        if line is None or not line.strip():
            continue
        fields = line.split("\t")
        if len(fields) < need:
            if on_error == "raise":
                found = f"{len(fields)} tab-separated columns where columns {file.columns} need {need}"
                cure = "set corpus.columns (counted from 0), or corpus.on_error=skip to leave such lines out"
                raise InputError(file.source, found, cure, number)
            skipped.add("too few columns")
            continue
        yield fields[file.columns[0]].strip(), fields[file.columns[1]].strip()
