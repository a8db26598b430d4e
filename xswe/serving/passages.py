"""The passages of corpora by language, with their translations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from xswe.bitext.memories import read_memory
from xswe.bitext.source import find_pairs
from xswe.bitext.texts import TextSource
from xswe.errors import ConfigError
from xswe.io.files import scratch
from xswe.io.lines import Skipped, read_blocks
from xswe.io.ragged import Texts, concatenate
from xswe.io.sources import suffix_of
from xswe.progress import bar
from xswe.text.languages import LANGUAGES, check_languages, languages_in_name

_UNITS_PER_BLOCK = 8192

Entry = str | Path | Mapping[str, Any]


@dataclass(frozen=True)
class Corpus:
    """A file of passages."""

    entry: Entry  # as given, in the form that :func:`xswe.bitext.source.find_pairs` takes
    path: Path  # the file
    name: str  # the name shown, without its folder
    languages: tuple[str, ...]  # one for plain text, two for pairs; none for a translation memory, which names its own

    @classmethod
    def of(cls, entry: Entry) -> Corpus:
        """Determine the kind and languages of a corpus: ``news.en-de.tsv`` has pairs, ``manual.ja.txt`` Japanese text."""
        if isinstance(entry, Mapping):
            given = {key: value for key, value in entry.items() if key not in ("languages", "name")}
            if "path" not in given:
                raise ConfigError(f"corpora: {dict(entry)} names no file; write {{path: a.tsv, languages: [en, de]}}")
            path, codes = Path(given["path"]), tuple(entry.get("languages", ()))
            name = str(entry.get("name", path.name))
            entry = given if len(given) > 1 else path
        else:
            path, codes, name = Path(entry), (), Path(entry).name
        memory = suffix_of(path) == ".tmx"
        codes = codes or (() if memory else languages_in_name(path.name))
        if codes:
            check_languages(codes)
        if memory:
            return cls(entry, path, name, ())
        if len(codes) not in (1, 2):
            raise ConfigError(
                f"corpora: {path.name} does not say its languages; call it news.en-de.tsv or manual.ja.txt, or write "
                f"{{path: {path.name}, languages: [en, de]}}"
            )
        return cls(entry, path, name, codes)

    def blocks(self, left_out: Skipped) -> Iterator[dict[str, Texts]]:
        """Yield blocks of passages by language, aligned, "" where a unit lacks a language; count those left out.

        InputError: the file is missing, or one of its lines is damaged.
        """
        if not self.languages:
            units = read_memory(self.path)
            while some := list(islice(units, _UNITS_PER_BLOCK)):
                yield {code: Texts.of([unit.get(code, "") for unit in some]) for code in LANGUAGES}
        elif len(self.languages) == 1:
            with scratch("xswe-passages-") as folder:
                lines = TextSource(str(self.path), *self.languages).lines(Path(folder), left_out)
                yield from ({self.languages[0]: texts} for texts in read_blocks(lines))
        else:
            a, b = self.languages
            given = self.entry if isinstance(self.entry, Mapping) else str(self.entry)
            for file in find_pairs([given], (a, b)):
                for job in file.jobs(in_place=True):
                    rows = job()
                    left_out.update(rows.skipped)
                    yield {a: rows.source, b: rows.target}


@dataclass(frozen=True, eq=False)
class Passages:
    """The passages of one language."""

    texts: Texts  # n passages
    units: np.ndarray  # int32 (n,), ascending: passages of different languages with the same number translate each other
    corpora: np.ndarray  # uint16 (n,), the corpus of each
    lines: np.ndarray  # int32 (n,), its line, unit or pair in the corpus, from 1

    def __len__(self) -> int:
        return len(self.texts)

    def row_of(self, unit: int) -> int | None:
        """Return the row of a unit's passage, or None."""
        row = int(np.searchsorted(self.units, np.int32(unit)))  # another type would convert the whole array
        return row if row < len(self.units) and self.units[row] == unit else None


def read_corpora(corpora: Sequence[Corpus], languages: Sequence[str]) -> dict[str, Passages]:
    """Read the passages of corpora in the given languages, by language.

    InputError: a file is missing or damaged. ConfigError: there are no passages.
    """
    found: dict[str, list[Texts]] = {code: [] for code in languages}
    numbers: dict[str, list[np.ndarray]] = {code: [] for code in languages}  # unit, corpus, line
    base = 0
    with bar("read", unit="passage") as progress:
        for number, corpus in enumerate(corpora):
            first, left_out = base, Skipped()
            for texts in corpus.blocks(left_out):
                for code in found.keys() & texts:
                    column = texts[code]
                    kept = np.flatnonzero(column.sizes > 0)
                    found[code].append(column if len(kept) == len(column) else column.take(kept))
                    numbers[code].append(np.stack([base + kept, np.full_like(kept, number), base - first + 1 + kept]))
                    progress.update(len(kept))
                base += len(next(iter(texts.values())))
            left_out.tell(corpus.name)
    out = {}
    for code, own in found.items():
        if any(map(len, own)):
            units, places, lines = np.concatenate(numbers[code], axis=1)
            out[code] = Passages(concatenate(own), units.astype(np.int32), places.astype(np.uint16), lines.astype(np.int32))
    if corpora and not out:
        names = ", ".join(corpus.name for corpus in corpora)
        raise ConfigError(f"corpora: no passages in {', '.join(languages)} in {names}")
    return out
