"""A file of lines encoded into a file of vectors, streamed and resumable."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from xswe.errors import ConfigError
from xswe.io.execution import LOCAL, ExecutionConfig
from xswe.io.files import check_output, file_stamp, fingerprint, is_special
from xswe.io.lines import read_blocks
from xswe.io.parallel import available_threads, in_order
from xswe.io.ragged import Texts
from xswe.io.remote import expand, is_remote
from xswe.model.encode_shards import encode_shards
from xswe.model.ensemble import AnyModel, load_any, locate
from xswe.model.vector_files import VectorFile, VectorWriter, open_writer
from xswe.progress import bar
from xswe.text.sentences import as_lines, is_document
from xswe.version import __version__


@dataclass(frozen=True)
class EncodedFile:
    """What :func:`encode_file` wrote.

    Attributes:
        path: the file of vectors.
        rows: its rows, one a line of text.
        kept: how many of them an earlier, unfinished run had written.
        dim: dimensions of a vector.
        dtype: type of its numbers.
        scales: the file with the scale of each row, for ``.npy`` files of int8; else None.
        seconds: how long it took.
        threads: how many worked.
    """

    path: Path
    rows: int
    kept: int
    dim: int
    dtype: str
    scales: Path | None
    seconds: float
    threads: int

    def __len__(self) -> int:
        return self.rows


def encode_file(
    model: AnyModel,
    input: str | Path | Sequence[str | Path],
    output: str | Path,
    *,
    dtype: str = "float32",
    threads: int | None = None,
    execution: ExecutionConfig = LOCAL,
    split: bool | None = None,
    language: str | None = None,
) -> EncodedFile:
    r"""Encode the lines of text files, of any size, into a file of vectors; a killed run goes on where it stopped.

    Args:
        model: what encodes.
        input: text file, plain or compressed, here or remote (``s3://…``); ``-`` for standard input. Several, or a pattern
            (``texts/*.txt``), are read one after the other.
        output: ``.npy``, ``.safetensors`` or ``.parquet``; it appears whole or not at all. ``FOLDER/*.npy`` (or another of
            these) is a file a shard of the text.
        dtype: ``float32``, ``float16`` or ``int8`` (with a float32 scale a row).
        threads: how many share the work; None for all processors.
        execution: who does it: this process, the tasks of a batch queue, or a Ray cluster, to the same bytes.
        split: cut the text into sentences, and encode these; None for documents only (HTML, EPUB,
            DOCX, PDF). ``xswe.split_text`` gives the same sentences. Of one file and in this process only.
        language: of the text, to cut it.

    Raises:
        ConfigError: the output is no regular file, of another format, or one of the inputs; or no language is named.
        InputError: the input is missing, or a line is not UTF-8.
        Unfinished: with an array, the tasks that have other shards are not done yet.

    Example:
        >>> import pathlib, tempfile, numpy, xswe
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> _ = (folder / "a.txt").write_text("A cat sleeps.\n猫が寝ている。\n", encoding="utf-8")
        >>> len(xswe.encode_file(xswe.load("mini"), folder / "a.txt", folder / "a.npy"))
        2
        >>> numpy.load(folder / "a.npy").shape
        (2, 256)
    """
    if threads is not None and threads < 1:
        raise ConfigError(f"threads={threads}: give at least 1, or null for all processors")
    files, target, threads = expand(input), Path(output), threads or available_threads()
    if execution.kind != "local" or len(files) != 1 or "*" in target.name:
        if split or (split is None and any(map(is_document, files))):
            raise ConfigError("split=true is for one file and execution.kind=local: cut the others by  xswe split  first")
        made = encode_shards(model, files, target, dtype, execution, threads)
        beside = target.with_name(f"{target.stem}.scales.npy") if dtype == "int8" and target.suffix == ".npy" else None
        return EncodedFile(made.path, made.rows, made.kept, model.dim, dtype, beside, made.seconds, threads)
    source = files[0]
    check_output(target, [source])
    if is_special(target):
        raise ConfigError(f"output={target}: a pipe or a device, and vectors are not written in order; give a file")
    file = VectorFile(target.resolve() if target.is_symlink() else target, model.dim, dtype)
    begun = time.monotonic()
    with as_lines(source, split, language, target) as lines, open_writer(file, _signature(model, lines, file)) as writer:
        kept = writer.kept
        _encode(model, lines, writer, threads)
    scales = file.scales if file.dtype == "int8" and file.path.suffix == ".npy" else None
    return EncodedFile(file.path, writer.rows, kept, model.dim, file.dtype, scales, time.monotonic() - begun, threads)


def _encode(model: AnyModel, source: str, writer: VectorWriter, threads: int) -> None:
    """Encode what is still to be encoded; several blocks at a time."""

    def blocks() -> Iterator[tuple[Texts, int, str]]:
        for texts in read_blocks(source):
            if (place := writer.admit(texts, source)) is not None:
                yield texts, *place

    def work(block: tuple[Texts, int, str]) -> tuple[int, int, str]:
        texts, first, digest = block
        out = np.empty((len(texts), model.dim), np.float32)
        model.encode_into(texts, out)
        writer.write(first, out)
        return len(texts), first + len(texts), digest

    with bar("encode", unit="line", initial=writer.kept) as progress:
        for lines, rows, digest in in_order(work, blocks(), threads):
            progress.update(lines)
            writer.save(rows, digest)


def _signature(model: AnyModel, source: str, file: VectorFile) -> str:
    """Name all that the output's bytes depend on; of standard input only the lines themselves can tell."""
    text = file_stamp(source) if is_remote(source) or Path(source).is_file() else None
    return fingerprint(__version__, model.identity, file.path.suffix, file.dtype, file.width, text)


class BatchEncoder:
    """Adds a column of vectors to batches of a table.

    It is made once a worker, from the model's name, and called with each batch: a mapping of columns to numpy arrays, a
    pyarrow table or a pandas frame. What it returns is of the same kind.

    Args:
        model: folder, name in this package, or repository on the hub; each worker loads it.
        text: name of the column of texts; a missing text (None) is the zero vector.
        output: name of the column of vectors, float32.

    Raises:
        ConfigError: when called: there is no such column.

    Example:
        >>> encode = BatchEncoder("mini")
        >>> encode({"text": ["A cat sleeps.", "猫が寝ている。"]})["embedding"].shape
        (2, 256)
    """

    def __init__(self, model: str | Path, text: str = "text", output: str = "embedding") -> None:
        self._model, self._text, self._output = load_any(locate(model)), text, output

    def __call__(self, batch: Any) -> Any:
        """Return the batch with its vectors."""
        names = list(batch) if isinstance(batch, Mapping) else list(getattr(batch, "column_names", batch.columns))
        if self._text not in names:
            raise ConfigError(f"text={self._text}: there is no such column; there are {', '.join(map(str, names))}")
        column = batch[self._text]
        given = column.to_pylist() if hasattr(column, "to_pylist") else column
        texts = ["" if text is None or text != text else text for text in given]  # pandas' missing text is a NaN
        vectors = self._model.encode(texts)
        if isinstance(batch, Mapping):
            return {**batch, self._output: vectors}
        if hasattr(batch, "append_column"):
            import pyarrow

            flat = pyarrow.array(np.ascontiguousarray(vectors).reshape(-1))
            return batch.append_column(self._output, pyarrow.FixedSizeListArray.from_arrays(flat, self._model.dim))
        return batch.assign(**{self._output: list(vectors)})
