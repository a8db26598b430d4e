"""Encoding of text files, line by line: streamed, resumable, by one process or many, into one file or one per shard."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from xswe.bitext.texts import TextSource
from xswe.errors import ConfigError
from xswe.io.arguments import file_names
from xswe.io.files import (
    check_output,
    file_stamp,
    fingerprint,
    is_special,
    read_json,
    remove_leftovers,
    scratch,
    write_json,
)
from xswe.io.inputs import Inputs
from xswe.io.lines import READ_LINES, Skipped, check_lines, left_out_of, read_blocks
from xswe.io.locks import locked
from xswe.io.parallel import available_threads
from xswe.io.ragged import Texts
from xswe.io.sources import check_here, expand, is_remote
from xswe.model.ensemble import AnyModel, load_any, locate, open_model, share_model
from xswe.model.vector_files import VectorFile, open_writer, part_of
from xswe.progress import bar, took
from xswe.version import __version__
from xswe.work.config import HOSTS, LOCAL, ExecutionConfig, Executor
from xswe.work.folder import work_folder
from xswe.work.kept import unrepeatable
from xswe.work.once import is_made, once
from xswe.work.parts import BEGINNING, PARTS, Part, Parts, PartsJob, parts_ahead
from xswe.work.plan import TextPlan, plan_identity
from xswe.work.run import run_shards
from xswe.work.stage import NOWHERE, Stage


@dataclass(frozen=True)
class EncodedFile:
    """The result of :func:`encode_file`.

    Attributes:
        path: the file of vectors.
        rows: its rows, one per line of text.
        kept: how many of them an earlier, unfinished run had written.
        dim: dimensions of a vector.
        dtype: type of its numbers.
        scales: the file with the scale of each row, for int8 ``.npy`` files; else None.
        seconds: how long it took.
        threads: how many were used.
        executor: who did it.
        left_out: counts of the parts of documents that are not text, such as navigation and footers.
    """

    path: Path
    rows: int
    kept: int
    dim: int
    dtype: str
    scales: Path | None
    seconds: float
    threads: int
    executor: Executor = "local"
    left_out: Mapping[str, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return self.rows

    def __str__(self) -> str:
        host = HOSTS[self.executor]
        where = host.does if host.has_workers else f"{self.threads} thread{'s' if self.threads > 1 else ''}"
        fast = f"{took(self.rows - self.kept, self.seconds, 'lines')} on {where}"
        again = f" ({self.kept:,} of them by an earlier run)" if self.kept else ""
        scales = f", scales: {self.scales}" if self.scales else ""
        line = f"{self.rows:,} lines{again}, {self.dim} dimensions, {self.dtype}, {fast}: {self.path}{scales}"
        return line + left_out_of(self.left_out)


def encode_file(
    model: AnyModel | str | Path,
    input: str | Path | Sequence[str | Path],
    output: str | Path,
    *,
    dtype: str = "float32",
    threads: int | None = None,
    execution: ExecutionConfig = LOCAL,
    split: bool | None = None,
    language: str | None = None,
) -> EncodedFile:
    r"""Encode the lines of text files, of any size, into a file of vectors; a killed run continues where it stopped.

    Args:
        model: a model, or its name.
        input: text file, plain or compressed, local or remote (``s3://…``); ``-`` for standard input. Several, or a
            pattern (``texts/*.txt``), are read one after the other.
        output: ``.npy``, ``.safetensors`` or ``.parquet``; it appears whole or not at all. ``FOLDER/*.npy`` (or another
            suffix) writes one file per shard of the text.
        dtype: ``float32``, ``float16`` or ``int8`` (with a float32 scale per row).
        threads: how many share the work; None for all processors.
        execution: who does it: this process, the tasks of a batch queue, or a cluster; the bytes are the same.
        split: split the texts into sentences; null splits any document, and no other file.
        language: of the text, to split it.

    Raises:
        ConfigError: the output is not a regular file, has another format, or is an input; or the language is missing.
        InputError: the input is missing, or a line is not UTF-8.
        Unfinished: other tasks of the array are not done yet.

    Example:
        >>> import pathlib, tempfile, numpy, xswe
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> _ = (folder / "a.txt").write_text("A cat sleeps.\n猫が寝ている。\n", encoding="utf-8")
        >>> len(xswe.encode_file(xswe.load("mini"), folder / "a.txt", folder / "a.npy"))
        2
        >>> numpy.load(folder / "a.npy").shape
        (2, 256)
    """
    names = file_names(input, "input", "texts are encoded by model.encode(texts)")
    check_here(output)
    files, target, threads, begun = expand(names), Path(output), available_threads(threads), time.monotonic()
    texts, left_out = [TextSource(name, language or "", split) for name in files], Skipped()
    if language is not None and not any(text.is_cut for text in texts):
        raise ConfigError("language does nothing without split=true: leave it out")
    execution.check_names(*files, output)
    here = execution.alone and "*" not in target.name
    if here:
        check_output(target, files)
        if is_special(target):
            raise ConfigError(f"output={target}: a pipe or a device, and vectors are not written in order; give a file")
    model = open_model(model, "encode_file(model, input, output)")
    if here:
        rows, kept = _encode_here(model, texts, target, dtype, threads, left_out)
    else:
        rows, kept = _encode_shards(model, texts, target, dtype, execution, threads, left_out)
    taken = time.monotonic() - begun
    return EncodedFile(
        target, rows, kept, model.dim, dtype, _scales(target, dtype), taken, threads, execution.kind, left_out.counts
    )


def _scales(path: Path, dtype: str) -> Path | None:
    """Return the path of the separate file of scales, None for vectors without one."""
    return path.with_name(f"{path.stem}.scales.npy") if dtype == "int8" and path.suffix == ".npy" else None


def _file(target: Path, model: AnyModel, dtype: str) -> VectorFile:
    return VectorFile(target.resolve() if target.is_symlink() else target, model.dim, dtype)


def _encode_here(
    model: AnyModel, texts: Sequence[TextSource], target: Path, dtype: str, threads: int, left_out: Skipped
) -> tuple[int, int]:
    """Encode the lines of files in this process; return the number of rows, and of those a killed run had written."""
    file = _file(target, model, dtype)
    with scratch() as folder:
        names = [text.name for text in texts]
        known = {name: file_stamp(name) for name in names if is_remote(name) or Path(name).is_file()}
        sources = tuple(text.lines(Path(folder), left_out) for text in texts)
        stamps = [[known.get(text.name) or unrepeatable(), text.is_cut, text.language] for text in texts]
        identity = fingerprint(__version__, model.identity, file.path.suffix, dtype, file.width, stamps)
        plan, inputs = TextPlan(sources, (None,) * len(sources), 1), Inputs(tuple(known), tuple(known.values()))
        stage = Stage(NOWHERE, "encode", plan.count, PARTS, EncodeJob(NOWHERE, NOWHERE, dtype), identity, inputs)
        with parts_ahead(stage, LOCAL, threads, (model, plan)) as parts, open_writer(file, identity) as writer:
            kept = writer.rows
            with bar("encode", unit="line", initial=kept) as progress:
                for place, part in parts(writer.place):
                    progress.update(writer.append(part))
                    writer.save(place)
    return writer.rows, kept


class BatchEncoder:
    """Adds a column of vectors to batches of a table.

    Make one per worker, from the model's name, and call it with each batch: a mapping of columns to numpy arrays, a
    pyarrow table or a pandas frame. It returns a batch of the same kind.

    Args:
        model: folder, name in this package, or repository on the hub; each worker loads it.
        text: name of the column of texts; a missing text (None) gives the zero vector.
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
        """Return the batch with the column of vectors."""
        names = list(batch) if isinstance(batch, Mapping) else list(getattr(batch, "column_names", batch.columns))
        if self._text not in names:
            raise ConfigError(f"text={self._text}: there is no such column; there are {', '.join(map(str, names))}")
        column = batch[self._text]
        given = column.to_pylist() if hasattr(column, "to_pylist") else column
        texts = ["" if _is_missing(text) else text for text in given]
        vectors = self._model.encode(texts)
        if isinstance(batch, Mapping):
            return {**batch, self._output: vectors}
        if hasattr(batch, "append_column"):
            import pyarrow

            flat = pyarrow.array(np.ascontiguousarray(vectors).reshape(-1))
            return batch.append_column(self._output, pyarrow.FixedSizeListArray.from_arrays(flat, self._model.dim))
        return batch.assign(**{self._output: list(vectors)})


def _is_missing(text: Any) -> bool:
    """Return True for a missing value of a table: None, NaN, or pandas' NA, which equals nothing."""
    return text is None or type(text).__name__ == "NAType" or bool(text != text)


@dataclass(frozen=True)
class TextJob(PartsJob):
    """Encode the lines of a text shard, for the stage in ``folder``, whose manifest contains the plan."""

    folder: Path
    model: Path
    lines: ClassVar[int] = READ_LINES  # of a part

    def open(self) -> tuple[AnyModel, TextPlan]:
        """Load the model and the plan."""
        return load_any(self.model), TextPlan.read(self.folder)

    def share(self, opened: tuple[AnyModel, TextPlan]) -> None:
        """Write the model for workers to load."""
        share_model(opened[0], self.model)

    def parts(self, opened: tuple[AnyModel, TextPlan], shard: int) -> Iterator[Callable[[], Part]]:
        """Yield functions that encode the blocks."""
        source, span = opened[1].shard(shard)
        for texts in read_blocks(source, self.lines, span):
            yield partial(self.part, opened[0], texts)

    def part(self, model: AnyModel, texts: Texts) -> Part:
        """Encode a block."""
        raise NotImplementedError


@dataclass(frozen=True)
class EncodeJob(TextJob):
    """Encode the lines of a shard of text to vectors."""

    dtype: str

    def part(self, model: AnyModel, texts: Texts) -> Part:
        """Encode a block."""
        vectors = np.empty((len(texts), model.dim), np.float32)
        model.encode_into(texts, vectors)
        return part_of(vectors, self.dtype)

    def run(self, opened: tuple[AnyModel, TextPlan], shard: int, output: Path) -> dict[str, Any]:
        """Write the vectors of a shard, as parts to be joined or as a final file."""
        if output.suffix == PARTS:
            return super().run(opened, shard, output)
        # Another process may be given the same shard.
        with open_writer(VectorFile(output, opened[0].dim, self.dtype, own=True)) as writer:
            for make in self.parts(opened, shard):
                writer.append(make())
        return {"lines": writer.rows}

    def files(self, output: Path) -> Sequence[Path]:
        """Return the file of vectors, and that of the scales, if separate."""
        scales = _scales(output, self.dtype)
        return [output, scales] if scales else [output]


def _encode_shards(
    model: AnyModel,
    texts: Sequence[TextSource],
    output: Path,
    dtype: str,
    execution: ExecutionConfig,
    threads: int,
    left_out: Skipped,
) -> tuple[int, int]:
    """Encode the lines of files, one after the other, in shards; return the number of rows, and of those made before.

    Output and errors are as for :func:`encode_file`: one file, with the same bytes, or one per shard.
    """
    many = output.name.startswith("*.")
    target = output.parent / f"0{output.suffix}" if many else output
    if output.name.count("*") != int(many):
        raise ConfigError(f"output={output}: for a file a shard give a folder and *, as in vectors/*.npy")
    file, begun, stays = _file(target, model, dtype), time.time(), output.suffix * many
    files = [text.name for text in texts]

    def planned(names: Sequence[str], folder: Path) -> tuple[Stage, TextPlan]:
        """Return the stage of some inputs, with the folder of its shards, and how they are cut."""
        plan, inputs = TextPlan.of(names, execution.shard)
        identity = fingerprint(__version__, model.identity, dtype, model.dim, stays, plan_identity(plan, inputs))
        place = folder.absolute() if many else folder.absolute() / f"encode-{identity}"
        job = EncodeJob(place, folder.absolute() / (".model" if many else "model") / "model", dtype)
        return Stage(place, "encode", plan.count, stays or PARTS, job, identity, inputs), plan

    def rows(stage: Stage) -> tuple[int, int]:
        records = [read_json(stage.side_car(shard)) for shard in range(stage.count)]
        lines = [(one["counts"]["lines"], one["begun"] < begun) for one in records]
        return sum(count for count, _ in lines), sum(count for count, before in lines if before)

    if not many:
        check_output(target, files)
        with work_folder(str(target), execution) as folder:
            stage, plan = planned([text.lines(folder, left_out) for text in texts], folder)
            done = folder / "done"

            def join(parts: Parts, place: Path) -> None:
                """Concatenate the shards."""
                remove_leftovers(file.path.parent, f".{file.path.name}.")
                # On a file system without locks, two tasks may join at once: each into its own file, with the same bytes.
                with open_writer(replace(file, own=True)) as writer:
                    for _, part in parts(BEGINNING):
                        writer.append(part)
                write_json(place / "encoded.json", rows(stage))

            if not is_made(done, stage.identity, [target]):
                with parts_ahead(stage, execution, threads, (model, plan), plan=asdict(plan)) as parts:
                    once(done, stage.identity, partial(join, parts), [target])
            count, kept = read_json(done / "encoded.json")
            return count, kept
    if any(text.is_cut for text in texts):
        hint = "cut them by  xswe split  first, or take their lines as they are with split=false"
        raise ConfigError(f"output={output}: texts are cut into sentences for one file of vectors; {hint}")
    for name in files:
        check_lines(name)
    folder = output.parent
    with locked(folder, f"{folder}: another run is at work there; wait for it", execution.has_peers):
        stage, plan = planned(files, folder)
        stage.begin(plan=asdict(plan))
        run_shards(stage, execution, threads, (model, plan))
        for name in (".model", "..model.making"):
            shutil.rmtree(folder / name, ignore_errors=True)
        return rows(stage)
