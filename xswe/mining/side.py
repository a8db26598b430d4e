"""One side of a search: a text file of any size, read once, filtered and encoded into flat files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from xswe.bitext.seen import KeySet, text_hashes
from xswe.corpus.near_duplicates import NearDuplicates
from xswe.errors import InputError
from xswe.io.files import file_stamp, fingerprint, read_json, write_json
from xswe.io.lines import RAISES, OnError, Skipped, read_lines
from xswe.io.ragged import GrowingArray, Texts, append_texts, text_writer
from xswe.mining.hard_rules import FilterConfig, Traits, identity_key, number_key, reason_to_drop
from xswe.mining.samples import Reservoir
from xswe.progress import bar
from xswe.search.vectors import Storage, Vectors, VectorWriter
from xswe.work.kept import unrepeatable
from xswe.work.once import once

Encode = Callable[[Sequence[str]], np.ndarray]
_BLOCK = 16_384
_EXAMPLE_LENGTH = 500  # characters shown of a dropped line
_FORMAT = 3
# Arrays kept beside the texts: line numbers, keys of the text without case and blanks, keys of the numbers it holds.
_COLUMNS = {"numbers": np.int64, "identities": np.uint64, "figures": np.uint64}


@dataclass(frozen=True, eq=False)
class Side:
    """The lines of one side, memory-mapped."""

    texts: Texts
    numbers: np.ndarray  # line numbers in the file from 1, int64 (n,)
    ids: Texts | None  # None if the file has no ids
    vectors: Vectors  # unit vectors
    traits: Traits  # for the pair filters
    read: int  # lines of the file
    dropped: dict[str, int]  # number of lines left out, by reason
    examples: dict[str, list[str]] = field(default_factory=dict)  # a random sample of the lines left out
    near: float = 0.0  # share of near-duplicates of earlier lines among the first lines kept
    left_out: Mapping[str, int] = field(default_factory=dict)  # counts of the parts of documents left out of their text

    def __len__(self) -> int:
        return len(self.texts)

    def names(self, rows: np.ndarray) -> Iterable[str]:
        """Return the ids of lines, or their line numbers if the file has no ids."""
        return self.ids.take(rows) if self.ids is not None else map(str, self.numbers[rows].tolist())


@dataclass(frozen=True)
class SideConfig:
    """How a side is read.

    Attributes:
        path: text file, plain or compressed; ``-`` for standard input.
        ids: lines are ``id<TAB>text`` (as in BUCC) instead of text.
        language: code of its language, if the script is checked.
        filters: which lines are left out.
        storage: type of the vectors.
        on_error: what to do with a line that is not UTF-8: ``raise``, or ``skip`` (and count).
    """

    path: str
    ids: bool = False
    language: str | None = None
    filters: FilterConfig = field(default_factory=FilterConfig)
    storage: Storage = "float32"
    on_error: OnError = "raise"

    def identity(self, model: str) -> str:
        """Return a fingerprint of the folder's content: settings, stamp of the file, identity of the model."""
        if self.path == "-":
            return fingerprint(unrepeatable())
        return fingerprint(_FORMAT, {**asdict(self), "path": file_stamp(self.path)}, model)


def _lines(
    config: SideConfig, given: Sequence[str] | None, dropped: Reservoir, read: list[int]
) -> Iterator[tuple[int, str, str]]:
    """Yield (number, id, text) of each line that passes the line filters."""
    language = config.filters.language(config.language, config.path)
    skipped = Skipped()
    lines = enumerate(given, 1) if given is not None else read_lines(config.path, on_error=config.on_error, skipped=skipped)
    for number, line in lines:
        read[0] = number
        if line is None:
            continue
        name = ""
        if config.ids:
            name, tab, line = line.partition("\t")
            if not tab or not name:
                if RAISES[config.on_error]:
                    hint = "mend the line, or set ids=false if the lines have no ids"
                    raise InputError(config.path, "no id<TAB>text", hint, number)
                skipped.add("no id")
                continue
        text = line.strip()
        if reason := reason_to_drop(text, config.filters, language):
            dropped.offer(reason, text[:_EXAMPLE_LENGTH] or None)
            continue
        yield number, name, text
    for reason, count in skipped.counts.items():
        dropped.counts[reason] = dropped.counts.get(reason, 0) + count
    if read[0] and dropped.counts.get("no id") == read[0]:
        raise InputError(config.path, "not one line is id<TAB>text", "set ids=false; the output then has line numbers")


def _write(
    folder: Path, config: SideConfig, given: Sequence[str] | None, encode: Encode, dim: int, description: str
) -> dict[str, Any]:
    """Read, filter and encode the file into ``folder``; return its counts."""
    dropped, read, seen, near = Reservoir(), [0], KeySet(), NearDuplicates()
    with ExitStack() as stack:
        texts = stack.enter_context(text_writer(folder, "texts"))
        ids = stack.enter_context(text_writer(folder, "ids")) if config.ids else None
        numbers, identities, figures = (
            stack.enter_context(closing(GrowingArray(folder / f"{name}.npy", kind))) for name, kind in _COLUMNS.items()
        )
        vectors = stack.enter_context(closing(VectorWriter(folder / "vectors.npy", dim, config.storage)))
        progress = stack.enter_context(bar(f"encode {description}", unit="line"))
        lines = _lines(config, given, dropped, read)
        while block := list(islice(lines, _BLOCK)):
            begun = Texts.of([text for _, _, text in block])
            new = np.ones(len(block), bool)
            if config.filters.duplicates:
                new = seen.add(text_hashes(begun))
                for place in np.flatnonzero(~new).tolist():
                    dropped.offer("duplicate", block[place][2][:_EXAMPLE_LENGTH])
            kept = [line for line, fresh in zip(block, new, strict=True) if fresh]
            strings = [text for _, _, text in kept]
            stay = begun.take(np.flatnonzero(new))
            near.add(stay)
            append_texts(texts, stay)
            numbers.append(np.array([number for number, _, _ in kept], np.int64))
            if ids is not None:
                append_texts(ids, Texts.of([name for _, name, _ in kept]))
            if config.filters.identical:
                identities.append(np.array([identity_key(text) for text in strings], np.uint64))
            if config.filters.numbers:
                figures.append(np.array([number_key(text) for text in strings], np.uint64))
            vectors.append(encode(strings) if strings else np.zeros((0, dim), np.float32))
            progress.update(len(block))
    return {"read": read[0], "dropped": dropped.counts, "examples": dropped.kept, "near": near.share}


def prepare_side(
    folder: Path,
    config: SideConfig,
    encode: Encode,
    dim: int,
    model: str,
    description: str,
    given: Sequence[str] | None = None,
) -> Side:
    """Read and encode a file into a folder, unless the folder already holds the undamaged result; open the folder.

    ``encode`` turns texts into float32 (n, dim) unit vectors; ``given`` are lines to use instead of a file's, with ``-`` as
    ``config.path``. InputError: the file is missing, or (unless skipping) a line is damaged.
    """
    identity = config.identity(model)

    def write(place: Path) -> None:
        """Write the side and its counts."""
        write_json(place / "side.json", {"identity": identity, **_write(place, config, given, encode, dim, description)})

    once(folder, identity, write)
    report = read_json(folder / "side.json")
    texts = Texts.open(folder, "texts")
    numbers, identities, figures = (np.load(folder / f"{name}.npy", mmap_mode="r") for name in _COLUMNS)
    return Side(
        texts,
        numbers,
        Texts.open(folder, "ids") if config.ids else None,
        Vectors.open(folder / "vectors.npy"),
        Traits(texts.sizes, identities, figures, texts),
        report["read"],
        report["dropped"],
        report.get("examples", {}),
        report["near"],
    )
