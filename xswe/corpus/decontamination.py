"""Texts of evaluation files, kept out of training: exactly, and as they read without case, width and punctuation."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from xswe.corpus.hashing import find_keys
from xswe.corpus.rows import text_hashes
from xswe.corpus.seen import KeySet
from xswe.corpus.sources import digest_of
from xswe.corpus.streams import read_lines
from xswe.errors import InputError
from xswe.language.texts import Texts

_NOT_WRITTEN = re.compile(r"[^\w\n]|_")
_SUFFIXES = (".tsv", ".txt", ".csv", ".jsonl", ".ndjson", ".parquet", ".en", ".de", ".zh", ".ja")
_PACKED = (".gz", ".xz", ".bz2", ".zst")


def normalised(texts: Texts) -> Texts:
    """Return texts as NFKC, lower-cased, letters and digits only."""
    if not len(texts):
        return texts
    joined = unicodedata.normalize("NFKC", "\n".join(texts)).lower()
    return Texts.of(_NOT_WRITTEN.sub("", joined).split("\n"))


def evaluation_files(paths: Sequence[str | Path]) -> list[Path]:
    """Return the files that evaluation paths stand for, in order.

    Raises:
        InputError: a path is not there, or is a folder without such a file.
    """
    return sorted({file for path in paths for file in _files(Path(path))})


def evaluation_identity(paths: Sequence[str | Path]) -> list[str]:
    """Return the checksums of evaluation files, whose texts need not be read for it."""
    return [digest_of(file) for file in evaluation_files(paths)]


class EvaluationTexts:
    """The texts of evaluation files.

    Every column of a tab-separated file, every string of a record, and every line of a text file that has a letter in it
    counts as a text.

    Args:
        paths: files or folders.

    Raises:
        InputError: a path is not there, is damaged, or holds no text.
    """

    def __init__(self, paths: Sequence[str | Path]) -> None:
        self.files = evaluation_files(paths)
        self._exact, self._normalised, self.count = KeySet(), KeySet(), 0
        for file in self.files:
            texts = Texts.of([text for text in _texts(file) if any(map(str.isalpha, text))])
            if not len(texts):
                raise InputError(file, "no text in it", "leave it out of corpus.decontaminate")
            self.count += len(texts)
            self._exact.add(text_hashes(texts))
            reduced = normalised(texts)
            self._normalised.add(text_hashes(reduced)[reduced.sizes > 0])

    def known(self, texts: Texts) -> tuple[np.ndarray, np.ndarray]:
        """Tell which texts are an evaluation text exactly, and which when normalised, bool (n,) each."""
        reduced = normalised(texts)
        found = np.zeros((2, len(texts)), bool)
        find_keys(self._exact.table, text_hashes(texts), found[0])
        find_keys(self._normalised.table, text_hashes(reduced), found[1])
        return found[0], found[1] & (reduced.sizes > 0)


def _files(path: Path) -> list[Path]:
    if path.is_dir():
        found = [p for p in path.rglob("*") if p.is_file() and _bare(p).suffix in _SUFFIXES]
        if not found:
            raise InputError(path, "no evaluation file in it", f"give files of {', '.join(_SUFFIXES[:6])}")
        return found
    if not path.is_file():
        raise InputError(path, "no such file", "check corpus.decontaminate (relative paths start at the working directory)")
    return [path]


def _bare(path: Path) -> Path:
    return path.with_suffix("") if path.suffix in _PACKED else path


def _texts(file: Path) -> Iterator[str]:
    kind = _bare(file).suffix
    if kind == ".parquet":
        import pyarrow.parquet as pq

        for batch in pq.ParquetFile(file).iter_batches():
            yield from _strings(batch.to_pylist())
        return
    for number, line in read_lines(file):
        if kind in (".jsonl", ".ndjson"):
            try:
                yield from _strings(json.loads(line or "null"))
            except ValueError as error:
                raise InputError(file, f"not JSON ({error})", "leave it out of corpus.decontaminate", number) from None
        else:
            yield from ((field.strip()) for field in (line or "").split("\t"))


def _strings(value: Any) -> Iterator[str]:
    """Iterate over all strings within a JSON value."""
    if isinstance(value, str):
        yield " ".join(value.split())
    elif isinstance(value, dict):
        for one in value.values():
            yield from _strings(one)
    elif isinstance(value, list):
        for one in value:
            yield from _strings(one)
