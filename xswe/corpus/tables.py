"""Tables of records: JSON lines, Parquet files, and data sets of the hub."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from xswe.corpus.rows import Rows, one_line
from xswe.corpus.streams import OnError, Skipped, read_lines
from xswe.errors import DependencyError, InputError
from xswe.files import check_input
from xswe.language.texts import Texts

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


def _cure(languages: tuple[str, str]) -> str:
    return f"name its fields, as in {{path: ..., fields: [{languages[0]}, {languages[1]}]}}"


def read_jsonl(
    path: Path, languages: tuple[str, str], fields: tuple[str, str] | None, *, on_error: OnError, skipped: Skipped
) -> Iterator[tuple[str, str]]:
    """Stream pairs of a file of one JSON object a line.

    An object has the two texts under the fields named, else under the language codes, else under those within
    ``translation``.
    """
    keys = fields or languages
    for number, line in read_lines(path, on_error=on_error, skipped=skipped):
        if line is None or not line.strip():
            continue
        problem = ""
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            problem = f"not JSON ({' '.join(str(error).split())})"
        else:
            record = record.get("translation", record) if isinstance(record, Mapping) else {}
            pair = [record.get(key) if isinstance(record, Mapping) else None for key in keys]
            if all(isinstance(text, str) for text in pair):
                yield str(pair[0]), str(pair[1])
                continue
            problem = f"no text under {keys[0]!r} and {keys[1]!r}"
        if on_error == "raise":
            raise InputError(path, problem, f"{_cure(languages)}, or set corpus.on_error=skip", number)
        skipped.add(problem.partition(" (")[0])


def read_parquet(path: Path, languages: tuple[str, str], fields: tuple[str, str] | None) -> Iterator[Rows]:
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
    keys = fields or languages
    try:
        with pq.ParquetFile(path) as table:
            names = table.schema_arrow.names
            nested = "translation" in names and not set(keys) <= set(names)
            if not nested and not set(keys) <= set(names):
                raise InputError(path, f"it has the columns {', '.join(names)}", _cure(languages))
            for batch in table.iter_batches(_BATCH, columns=["translation"] if nested else list(keys)):
                columns = batch.column("translation").flatten() if nested else None
                if columns is not None:
                    kind = batch.schema.field("translation").type
                    inner = [kind.field(i).name for i in range(kind.num_fields)]
                    sides = [columns[inner.index(key)] for key in keys]
                else:
                    sides = [batch.column(key) for key in keys]
                source, target = (one_line(_texts(side.cast(pa.large_string()))) for side in sides)
                yield Rows(source, target)
    except (pa.ArrowException, OSError, ValueError) as error:
        problem = " ".join(str(error).split())
        raise InputError(path, f"not a Parquet file of texts ({problem[:200]})", "fetch it again") from None


def _texts(column: Any) -> Texts:
    """Take the buffers of an Arrow ``large_string`` column; a missing value is an empty text."""
    import pyarrow.compute as pc

    if column.null_count:
        column = pc.fill_null(column, "")
    _, offsets, data = column.buffers()
    bounds = np.frombuffer(offsets, np.int64)[column.offset : column.offset + len(column) + 1]
    raw = np.frombuffer(data, np.uint8) if data is not None else np.zeros(0, np.uint8)
    return Texts(raw[bounds[0] : bounds[-1]], bounds - bounds[0])


def read_hub(data: HubSet, languages: tuple[str, str], fields: tuple[str, str] | None) -> Iterator[Rows]:
    """Stream the pairs of a data set by ``datasets``, without remote code.

    Raises:
        InputError: it cannot be had, or has no such fields.
    """
    try:
        import datasets
    except ImportError:
        raise DependencyError("datasets", "corpora", "reading data sets of the hub") from None
    keys = fields or languages
    try:
        opened = datasets.load_dataset(
            data.repo, data.config or None, split=data.split, revision=data.revision, streaming=data.streaming
        )
        for batch in opened.iter(batch_size=_BATCH):
            if "translation" in batch and not set(keys) <= set(batch):
                sides = [[record.get(key) or "" for record in batch["translation"]] for key in keys]
            elif set(keys) <= set(batch):
                sides = [[text or "" for text in batch[key]] for key in keys]
            else:
                raise InputError(str(data), f"it has the fields {', '.join(batch)}", _cure(languages))
            yield Rows(one_line(Texts.of(sides[0])), one_line(Texts.of(sides[1])))
    except (OSError, ValueError, RuntimeError) as error:
        problem = " ".join(str(error).split())
        cure = "see that the network and the name are right, or fetch its files by hand and give corpus.paths=[...]"
        raise InputError(str(data), f"cannot be read ({type(error).__name__}: {problem[:200]})", cure) from None
