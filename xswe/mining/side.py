"""One side of a search: a text file of any size read once into flat files, its lines filtered and encoded on the way."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from xswe.corpus.rows import text_hashes
from xswe.corpus.seen import KeySet
from xswe.corpus.streams import OnError, Skipped, read_lines
from xswe.errors import InputError
from xswe.files import file_stamp, fingerprint, read_json, whole_folder, write_json
from xswe.language.texts import Texts
from xswe.mining.filters import FilterConfig, Traits, identity_key, number_key, reason_to_drop
from xswe.mining.vectors import Storage, Vectors, VectorWriter
from xswe.progress import bar

logger = logging.getLogger(__name__)
Encode = Callable[[Sequence[str]], np.ndarray]
_BLOCK = 16_384
_FORMAT = 1


@dataclass(frozen=True, eq=False)
class Side:
    """The lines of one side that are searched, memory-mapped.

    Attributes:
        texts: their texts.
        numbers: their line numbers in the file from 1, int64 (n,).
        ids: their ids, None if the file has none.
        vectors: their unit vectors.
        traits: what the pair filters need.
        read: lines of the file.
        dropped: how many lines were left out, by reason.
    """

    texts: Texts
    numbers: np.ndarray
    ids: Texts | None
    vectors: Vectors
    traits: Traits
    read: int
    dropped: dict[str, int]

    def __len__(self) -> int:
        return len(self.texts)

    def name(self, row: int) -> str:
        """Return the id of a line: the file's own, or else the line number."""
        return self.ids[row] if self.ids is not None else str(self.numbers[row])


@dataclass(frozen=True)
class SideConfig:
    """How a side is read.

    Attributes:
        path: text file, plain or compressed; ``-`` for standard input.
        ids: lines are ``id<TAB>text`` (as in BUCC) instead of text.
        language: its language's code, where the script is checked.
        filters: which lines are left out.
        storage: of the vectors.
        on_error: what a line that is not UTF-8 does: ``raise``, or ``skip`` (and count).
    """

    path: str
    ids: bool = False
    language: str | None = None
    filters: FilterConfig = field(default_factory=FilterConfig)
    storage: Storage = "float32"
    on_error: OnError = "raise"

    def identity(self, model: str) -> str:
        """Return what decides the content of the folder; the file is known by its stamp, the model by its identity."""
        if self.path == "-":
            return fingerprint(time.time_ns())
        return fingerprint(_FORMAT, {**asdict(self), "path": file_stamp(self.path)}, model)


class _Column:
    """A flat file of numbers or bytes that grows."""

    def __init__(self, stack: ExitStack, folder: Path, name: str, kind: type) -> None:
        self._stream: BinaryIO = stack.enter_context((folder / name).open("wb"))
        self._kind = kind

    def write(self, values: Any) -> None:
        self._stream.write(np.ascontiguousarray(values, self._kind).tobytes())


def _open_column(folder: Path, name: str, kind: type) -> np.ndarray:
    path = folder / name
    return np.memmap(path, kind, "r") if path.stat().st_size else np.zeros(0, kind)


class _TextColumn:
    """Texts that grow: their bytes, and where each ends."""

    def __init__(self, stack: ExitStack, folder: Path, name: str) -> None:
        self._bytes, self._ends = (
            _Column(stack, folder, f"{name}.bytes", np.uint8),
            _Column(stack, folder, f"{name}.ends", np.int64),
        )
        self._size = 0
        self._ends.write([0])

    def write(self, texts: Texts) -> None:
        self._bytes.write(texts.data)
        self._ends.write(texts.offsets[1:] + self._size)
        self._size += int(texts.offsets[-1])


def _open_texts(folder: Path, name: str) -> Texts:
    return Texts(_open_column(folder, f"{name}.bytes", np.uint8), _open_column(folder, f"{name}.ends", np.int64))


def _lines(config: SideConfig, dropped: dict[str, int], read: list[int]) -> Iterator[tuple[int, str, str]]:
    """Iterate over (number, id, text) of the lines that pass the filters on single lines."""
    language = config.filters.language(config.language, config.path)
    skipped = Skipped()
    for number, line in read_lines(config.path, on_error=config.on_error, skipped=skipped):
        read[0] = number
        if line is None:
            continue
        name = ""
        if config.ids:
            name, tab, line = line.partition("\t")
            if not tab or not name:
                if config.on_error == "raise":
                    cure = "mend the line, or set ids=false if the lines have no ids"
                    raise InputError(config.path, "no id<TAB>text", cure, number)
                skipped.add("no id")
                continue
        text = line.strip()
        if reason := reason_to_drop(text, config.filters, language):
            dropped[reason] = dropped.get(reason, 0) + 1
            continue
        yield number, name, text
    for reason, count in skipped.counts.items():
        dropped[reason] = dropped.get(reason, 0) + count


def _write(folder: Path, config: SideConfig, encode: Encode, dim: int, description: str) -> dict[str, Any]:
    """Read, filter and encode the file into ``folder``; returns the report."""
    dropped: dict[str, int] = {}
    read, seen = [0], KeySet()
    with ExitStack() as stack:
        texts = _TextColumn(stack, folder, "texts")
        ids = _TextColumn(stack, folder, "ids") if config.ids else None
        numbers = _Column(stack, folder, "numbers", np.int64)
        identities = _Column(stack, folder, "identities", np.uint64)
        figures = _Column(stack, folder, "figures", np.uint64)
        vectors = VectorWriter(stack.enter_context(open(folder / "vectors.npy", "wb")), dim, config.storage)
        progress = stack.enter_context(bar(f"encode {description}", unit="line"))
        lines = _lines(config, dropped, read)
        while block := list(islice(lines, _BLOCK)):
            begun = Texts.of([text for _, _, text in block])
            new = np.ones(len(block), bool)
            if config.filters.duplicates:
                new = seen.add(text_hashes(begun))
                dropped["duplicate"] = dropped.get("duplicate", 0) + int((~new).sum())
            kept = [line for line, fresh in zip(block, new, strict=True) if fresh]
            strings = [text for _, _, text in kept]
            texts.write(begun.take(np.flatnonzero(new)))
            numbers.write([number for number, _, _ in kept])
            if ids is not None:
                ids.write(Texts.of([name for _, name, _ in kept]))
            if config.filters.identical:
                identities.write(np.array([identity_key(text) for text in strings], np.uint64))
            if config.filters.numbers:
                figures.write(np.array([number_key(text) for text in strings], np.uint64))
            vectors.write(encode(strings) if strings else np.zeros((0, dim), np.float32))
            progress.update(len(block))
        vectors.close()
    return {"read": read[0], "dropped": {reason: count for reason, count in dropped.items() if count}}


def prepare_side(folder: Path, config: SideConfig, encode: Encode, dim: int, model: str, description: str) -> Side:
    """Read and encode a file into a folder, unless the folder already holds just that; open it.

    Args:
        folder: written whole or not at all.
        config: what to read and what to leave out.
        encode: texts to float32 (n, dim) unit vectors.
        dim: dimensions.
        model: the model's identity.
        description: for the progress bar.

    Raises:
        InputError: the file is missing, or (unless skipping) a line is damaged.
    """
    identity = config.identity(model)
    record = folder / "side.json"
    if not record.is_file() or read_json(record)["identity"] != identity:
        with whole_folder(folder) as temporary:
            report = _write(temporary, config, encode, dim, description)
            write_json(temporary / "side.json", {"identity": identity, **report})
    report = read_json(record)
    texts = _open_texts(folder, "texts")
    return Side(
        texts,
        _open_column(folder, "numbers", np.int64),
        _open_texts(folder, "ids") if config.ids else None,
        Vectors.open(folder / "vectors.npy"),
        Traits(texts.sizes, _open_column(folder, "identities", np.uint64), _open_column(folder, "figures", np.uint64)),
        report["read"],
        report["dropped"],
    )
