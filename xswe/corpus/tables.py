"""Tables of records: JSON lines, Parquet files, and data sets of the hub."""

from __future__ import annotations

import json
import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from xswe.corpus.rows import Negatives, Rows, one_line, one_line_each
from xswe.errors import DependencyError, InputError
from xswe.io.files import check_input
from xswe.io.lines import OnError, Skipped, read_lines
from xswe.io.ragged import Texts

logger = logging.getLogger(__name__)
_BATCH = 16_384


@dataclass(frozen=True)
class HubSet:
    """A data set of the hub.

    Attributes:
        repo: its name, or a local folder or file that ``datasets.load_dataset`` reads.
        config: its configuration, or "".
        split: its split.
        revision: the commit, tag or branch; None for the newest.
        streaming: read while it downloads, and keep nothing of it on the disk.
    """

    repo: str
    config: str = ""
    split: str = "train"
    revision: str | None = None
    streaming: bool = True

    def __str__(self) -> str:
        return "/".join(filter(None, (self.repo, self.config, self.split)))


@dataclass(frozen=True)
class Fields:
    """Which fields of a record are read.

    Attributes:
        languages: source and target language; the same one twice for pairs of one language.
        pair: names of the source's and the target's field; None for the language codes, or in pairs of one language for
            ``anchor`` (or ``query``) and ``positive``.
        negatives: names of the fields of the negatives, which hold a text, a list of texts, or null. Of pairs of one
            language whose fields are not named, all whose names start with ``negative``.
    """

    languages: tuple[str, str]
    pair: tuple[str, str] | None = None
    negatives: tuple[str, ...] = ()

    @property
    def with_negatives(self) -> bool:
        """Whether negatives are read where there are any."""
        return bool(self.negatives) or (self.pair is None and self.languages[0] == self.languages[1])

    def among(self, names: Collection[str]) -> tuple[tuple[str, str], list[str]]:
        """Return the fields of source and target, and those of the negatives, in a record with the fields ``names``."""
        if self.pair is not None or self.languages[0] != self.languages[1]:
            return self.pair or self.languages, list(self.negatives)
        anchor = "query" if "query" in names and "anchor" not in names else "anchor"
        return (anchor, "positive"), sorted(name for name in names if name.startswith("negative"))

    @property
    def cure(self) -> str:
        """What to do where they are not there."""
        example = self.among(())[0]
        return f"name its fields, as in {{path: ..., fields: [{example[0]}, {example[1]}]}}"


def _listed(value: Any) -> list[str] | None:
    """Return the texts of a field of negatives; None if it holds something else."""
    texts = [] if value is None else [value] if isinstance(value, str) else value
    return list(texts) if isinstance(texts, list) and all(isinstance(text, str) for text in texts) else None


def read_jsonl(path: Path, fields: Fields, *, on_error: OnError, skipped: Skipped) -> Iterator[tuple[str, ...]]:
    """Stream pairs of a file of one JSON object a line, each followed by its negatives.

    An object has the two texts under the fields named, else under the language codes, else under those within
    ``translation``.
    """
    for number, line in read_lines(path, on_error=on_error, skipped=skipped):
        if line is None or not line.strip():
            continue
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            problem = f"not JSON ({' '.join(str(error).split())})"
        else:
            texts, problem = _texts_of(record, fields)
            if not problem:
                yield tuple(texts)
                continue
        if on_error == "raise":
            raise InputError(path, problem, f"{fields.cure}, or set on_error=skip", number)
        skipped.add(problem.partition(" (")[0])


def _texts_of(record: Any, fields: Fields) -> tuple[list[str], str]:
    """Return the texts of a record, or what is wrong with it."""
    record = record.get("translation", record) if isinstance(record, Mapping) else {}
    record = record if isinstance(record, Mapping) else {}
    keys, negatives = fields.among(record)
    texts = [record.get(key) for key in keys]
    if not all(isinstance(text, str) for text in texts):
        return [], f"no text under {keys[0]!r} and {keys[1]!r}"
    for key in negatives:
        found = _listed(record[key]) if key in record else None
        if found is None:
            return [], f"no text, nor list of texts, under {key!r}"
        texts += found
    return texts, ""


def read_parquet(path: Path, fields: Fields) -> Iterator[Rows]:
    """Stream the pairs of a Parquet file by row groups; texts go from its columns to ours without Python strings.

    Raises:
        InputError: the file is damaged, or has no such columns of text.
    """
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise DependencyError("pyarrow", "corpora", "reading Parquet") from None
    check_input(path)
    try:
        with pq.ParquetFile(path) as table:
            names = table.schema_arrow.names
            keys, negatives = fields.among(names)
            nested = "translation" in names and not set(keys) <= set(names)
            if not set(negatives) <= set(names) or (not nested and not set(keys) <= set(names)):
                raise InputError(path, f"it has the columns {', '.join(names)}", fields.cure)
            wanted = ["translation"] if nested else list(keys)
            for batch in table.iter_batches(_BATCH, columns=[*wanted, *negatives]):
                columns = batch.column("translation").flatten() if nested else None
                if columns is not None:
                    kind = batch.schema.field("translation").type
                    inner = [kind.field(i).name for i in range(kind.num_fields)]
                    sides = [columns[inner.index(key)] for key in keys]
                else:
                    sides = [batch.column(key) for key in keys]
                source, target = (one_line(_texts(side.cast(pa.large_string()))) for side in sides)
                further = [batch.column(key).to_pylist() for key in negatives]
                yield Rows(source, target, negatives=_negatives(further, path, fields))
    except (pa.ArrowException, OSError, ValueError) as error:
        problem = " ".join(str(error).split())
        raise InputError(path, f"not a Parquet file of texts ({problem[:200]})", "fetch it again") from None


def _negatives(columns: Sequence[Sequence[Any]], source: str | Path, fields: Fields) -> Negatives | None:
    """Return the negatives of a block of records, given their fields one by one; None where none are asked for."""
    if not columns:
        return None
    lists: list[list[str]] = []
    for values in zip(*columns, strict=True):
        found = [_listed(value) for value in values]
        if None in found:
            raise InputError(source, "a negative is neither a text nor a list of texts", fields.cure)
        lists.append([text for one in found for text in one or ()])
    return one_line_each(Negatives.of(lists))


def _texts(column: Any) -> Texts:
    """Take the buffers of an Arrow ``large_string`` column; a missing value is an empty text."""
    import pyarrow.compute as pc

    if column.null_count:
        column = pc.fill_null(column, "")
    _, offsets, data = column.buffers()
    bounds = np.frombuffer(offsets, np.int64)[column.offset : column.offset + len(column) + 1]
    raw = np.frombuffer(data, np.uint8) if data is not None else np.zeros(0, np.uint8)
    return Texts(raw[bounds[0] : bounds[-1]], bounds - bounds[0])


def read_hub(data: HubSet, fields: Fields) -> Iterator[Rows]:
    """Stream the pairs of a data set by ``datasets``, without remote code.

    Raises:
        InputError: it cannot be had, or has no such fields.
    """
    try:
        import datasets
    except ImportError:
        raise DependencyError("datasets", "corpora", "reading data sets of the hub") from None
    try:
        opened = datasets.load_dataset(
            data.repo, data.config or None, split=data.split, revision=data.revision, streaming=data.streaming
        )
        for batch in opened.iter(batch_size=_BATCH):
            keys, negatives = fields.among(batch)
            there = set(keys) <= set(batch)
            if not set(negatives) <= set(batch) or not (there or "translation" in batch):
                raise InputError(str(data), f"it has the fields {', '.join(batch)}", fields.cure)
            if there:
                sides = [[text or "" for text in batch[key]] for key in keys]
            else:
                sides = [[record.get(key) or "" for record in batch["translation"]] for key in keys]
            further = _negatives([batch[key] for key in negatives], str(data), fields)
            yield Rows(one_line(Texts.of(sides[0])), one_line(Texts.of(sides[1])), negatives=further)
    except (OSError, ValueError, RuntimeError) as error:
        problem = " ".join(str(error).split())
        cure = "see that the network and the name are right, or fetch its files by hand and give corpus.paths=[...]"
        raise InputError(str(data), f"cannot be read ({type(error).__name__}: {problem[:200]})", cure) from None
