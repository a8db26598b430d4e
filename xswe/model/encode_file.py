"""Files of lines encoded into a file of vectors, or into a file a shard: streamed, resumable, by one process or many."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from xswe.errors import ConfigError
from xswe.io.arguments import check_model, several
from xswe.io.files import check_output, file_stamp, fingerprint, held, is_special, read_json, remove_leftovers, write_json
from xswe.io.inputs import Inputs
from xswe.io.lines import READ_LINES, check_lines, read_blocks
from xswe.io.parallel import available_threads, in_order
from xswe.io.ragged import Texts
from xswe.io.sources import check_here, expand, is_remote
from xswe.model.ensemble import AnyModel, load_any, locate, open_model, share_model
from xswe.model.vector_files import VectorFile, VectorWriter, open_writer
from xswe.progress import bar, took
from xswe.text.sentences import as_lines, is_document, write_sentences
from xswe.version import __version__
from xswe.work.config import LOCAL, ExecutionConfig
from xswe.work.folder import work_folder
from xswe.work.once import is_made, once
from xswe.work.plan import TextPlan, plan_identity
from xswe.work.run import run_shards
from xswe.work.stage import Job, Stage

_SENTENCES = "sentences.txt"


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
        executor: who did it.
    """

    path: Path
    rows: int
    kept: int
    dim: int
    dtype: str
    scales: Path | None
    seconds: float
    threads: int
    executor: str = "local"

    def __len__(self) -> int:
        return self.rows

    def __str__(self) -> str:
        where = "Ray" if self.executor == "ray" else f"{self.threads} thread{'s' if self.threads > 1 else ''}"
        fast = f"{took(self.rows - self.kept, self.seconds, 'lines')} on {where}"
        again = f" ({self.kept:,} of them by an earlier run)" if self.kept else ""
        scales = f", scales: {self.scales}" if self.scales else ""
        return f"{self.rows:,} lines{again}, {self.dim} dimensions, {self.dtype}, {fast}: {self.path}{scales}"


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
    r"""Encode the lines of text files, of any size, into a file of vectors; a killed run goes on where it stopped.

    Args:
        model: what encodes, or its name.
        input: text file, plain or compressed, here or remote (``s3://…``); ``-`` for standard input. Several, or a pattern
            (``texts/*.txt``), are read one after the other.
        output: ``.npy``, ``.safetensors`` or ``.parquet``; it appears whole or not at all. ``FOLDER/*.npy`` (or another of
            these) is a file a shard of the text.
        dtype: ``float32``, ``float16`` or ``int8`` (with a float32 scale a row).
        threads: how many share the work; None for all processors.
        execution: who does it: this process, the tasks of a batch queue, or a Ray cluster, to the same bytes.
        split: cut the texts into sentences; null for documents only (Markdown, HTML, EPUB, DOCX, PDF).
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
    check_model(model, "encode_file(model, input, output)", named=True)
    input = input if isinstance(input, (str, Path)) else several(input, "input", "the name of a file, or several")
    if threads is not None and threads < 1:
        raise ConfigError(f"threads={threads}: give at least 1, or null for all processors")
    check_here(output)
    files, target, threads, begun = expand(input), Path(output), threads or available_threads(), time.monotonic()
    if language is not None and not any(split or (split is None and name != "-" and is_document(name)) for name in files):
        raise ConfigError("language does nothing without split=true: leave it out")
    if not execution.alone or "*" in target.name:
        model = open_model(model)
        rows, kept = encode_shards(model, files, target, dtype, execution, threads, split, language)
        return EncodedFile(
            target, rows, kept, model.dim, dtype, _scales(target, dtype), time.monotonic() - begun, threads, execution.kind
        )
    check_output(target, files)
    if is_special(target):
        raise ConfigError(f"output={target}: a pipe or a device, and vectors are not written in order; give a file")
    model = open_model(model)
    file = VectorFile(target.resolve() if target.is_symlink() else target, model.dim, dtype)
    with ExitStack() as stack:
        sources = [stack.enter_context(as_lines(name, split, language, target)) for name in files]
        writer = stack.enter_context(open_writer(file, _signature(model, sources, file)))
        kept = writer.kept
        _encode(model, sources, writer, threads)
    taken = time.monotonic() - begun
    return EncodedFile(file.path, writer.rows, kept, model.dim, dtype, _scales(file.path, dtype), taken, threads)


def _scales(path: Path, dtype: str) -> Path | None:
    """Return where the scales are that some files of vectors have beside them."""
    return path.with_name(f"{path.stem}.scales.npy") if dtype == "int8" and path.suffix == ".npy" else None


def _encode(model: AnyModel, sources: Sequence[str], writer: VectorWriter, threads: int) -> None:
    """Encode what is still to be encoded; several blocks at a time."""

    def blocks() -> Iterator[tuple[Texts, int, str]]:
        for source in sources:
            for texts in read_blocks(source):
                if (place := writer.admit(texts, source)) is not None:
                    yield texts, *place

    def work(block: tuple[Texts, int, str]) -> tuple[int, tuple[int, str, int]]:
        texts, first, digest = block
        out = np.empty((len(texts), model.dim), np.float32)
        model.encode_into(texts, out)
        return len(texts), (first + len(texts), digest, writer.write(first, out))

    with bar("encode", unit="line", initial=writer.kept) as progress:
        for lines, written in in_order(work, blocks(), threads):
            progress.update(lines)
            writer.save(*written)


def _signature(model: AnyModel, sources: Sequence[str], file: VectorFile) -> str:
    """Name all that the output's bytes depend on; of standard input only the lines themselves can tell."""
    texts = [file_stamp(name) if is_remote(name) or Path(name).is_file() else None for name in sources]
    return fingerprint(__version__, model.identity, file.path.suffix, file.dtype, file.width, texts)


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
    """Tell whether a value of a table is none: pandas has a NaN for it, or an object that is not equal to anything."""
    return text is None or type(text).__name__ == "NAType" or bool(text != text)


@dataclass(frozen=True)
class EncodeJob(Job):
    """Encode the lines of a shard of text, of the stage in ``folder``, whose manifest holds the plan."""

    folder: Path
    model: Path
    dtype: str

    def open(self) -> tuple[AnyModel, TextPlan]:
        """Load the model and the plan."""
        return load_any(self.model), TextPlan.read(self.folder)

    def share(self, opened: tuple[AnyModel, TextPlan]) -> None:
        """Write the model for others to load."""
        share_model(opened[0], self.model)

    def run(self, opened: tuple[AnyModel, TextPlan], shard: int, output: Path) -> dict[str, Any]:
        """Write the vectors of a shard."""
        model, plan = opened
        source, span = plan.shard(shard)
        file = VectorFile(output, model.dim, self.dtype, own=True)  # another may be given the same shard
        out = np.empty((READ_LINES, model.dim), np.float32)
        with open_writer(file, "shard") as writer:
            for texts in read_blocks(source, span=span):
                model.encode_into(texts, out[: len(texts)])
                writer.write(writer.rows, out[: len(texts)])
                writer.rows += len(texts)
        return {"lines": writer.rows}

    def files(self, output: Path) -> Sequence[Path]:
        """Return the vectors, and the scales that some have beside them."""
        scales = _scales(output, self.dtype)
        return [output, scales] if scales else [output]


class _Shards(NamedTuple):
    """What the lines of files are encoded by, shard by shard, and by whom."""

    model: AnyModel
    plan: TextPlan
    file: VectorFile
    inputs: Inputs
    identity: str
    execution: ExecutionConfig
    threads: int | None
    begun: float

    def encoded(self, folder: Path, models: Path, suffix: str) -> Stage:
        """Do all shards, in a folder; workers find the model in another."""
        job = EncodeJob(folder.absolute(), models.absolute() / "model", self.file.dtype)
        stage = Stage(job.folder, "encode", self.plan.count, suffix, job, self.identity, self.inputs)
        stage.begin(plan=asdict(self.plan))
        run_shards(stage, self.execution, self.threads, (self.model, self.plan))
        return stage

    def rows(self, stage: Stage) -> tuple[int, int]:
        """Return the rows of all shards, and of those that were done before."""
        told = [read_json(stage.side_car(shard)) for shard in range(stage.count)]
        lines = [(one["counts"]["lines"], one["begun"] < self.begun) for one in told]
        return sum(count for count, _ in lines), sum(count for count, before in lines if before)

    def joined(self, folder: Path, target: Path) -> tuple[int, int]:
        """Do all shards, and make the output of them, once for all processes; returns the rows, and those kept."""
        done = folder / "done"
        if not is_made(done, self.identity, [target]):
            self._join(folder, done, target)
        told = read_json(done / "encoded.json")
        return told["rows"], told["kept"]

    def _join(self, folder: Path, done: Path, target: Path) -> None:
        stage = self.encoded(folder / f"encode-{self.identity}", folder / "model", ".npy")

        def join(place: Path) -> None:
            """Put the shards one after the other."""
            remove_leftovers(self.file.path.parent, f".{self.file.path.name}.")
            # Where locks do nothing two tasks may join at once: each into a file of its own, to the same bytes.
            with open_writer(replace(self.file, own=True), "joined") as writer:
                for shard in range(stage.count):
                    part = VectorFile(stage.path(shard), self.file.width, self.file.dtype)
                    stage.check_read(shard, writer.append(part))
            rows, kept = self.rows(stage)
            write_json(place / "encoded.json", {"rows": rows, "kept": kept})

        once(done, self.identity, join, [target])


def _cut(files: Sequence[str], split: bool | None, language: str | None, folder: Path) -> list[str]:
    """Cut files of running text into sentences, once for all processes; returns the names of what is encoded."""
    out = []
    for name in files:
        if name == "-" or split is False or (split is None and not is_document(name)):
            check_lines(name)
            out.append(name)
        else:
            out.append(cut_once(name, language, folder))
    return out


def cut_once(name: str, language: str | None, folder: Path) -> str:
    """Cut a file of running text into sentences, a line each, once for all processes; returns the file of them."""
    made = folder / f"sentences-{fingerprint(file_stamp(name), language)}"

    def write(place: Path) -> None:
        """Write the sentences."""
        write_sentences(name, language, place / _SENTENCES)

    once(made, made.name, write)
    return str(made / _SENTENCES)


def encode_shards(
    model: AnyModel,
    files: Sequence[str],
    output: Path,
    dtype: str,
    execution: ExecutionConfig,
    threads: int | None = None,
    split: bool | None = False,
    language: str | None = None,
) -> tuple[int, int]:
    """Encode the lines of files, one after the other, by shards; returns the rows, and those that were there before.

    The output and the errors are those of :func:`encode_file`: the same bytes, or a file a shard, which stay as they are.
    """
    many = output.name.startswith("*.")
    target = output.parent / f"0{output.suffix}" if many else output
    if output.name.count("*") != int(many):
        raise ConfigError(f"output={output}: for a file a shard give a folder and *, as in vectors/*.npy")
    file = VectorFile(target.resolve() if target.is_symlink() else target, model.dim, dtype)
    begun, suffix = time.time(), output.suffix * many  # of shards that stay as they are

    def planned(texts: Sequence[str]) -> _Shards:
        plan, inputs = TextPlan.of(texts, execution.shard)
        identity = fingerprint(__version__, model.identity, dtype, model.dim, suffix, plan_identity(plan, inputs))
        return _Shards(model, plan, file, inputs, identity, execution, threads, begun)

    if not many:
        check_output(target, files)
        with work_folder(str(target), execution) as folder:
            return planned(_cut(files, split, language, folder)).joined(folder, target)
    if split or (split is None and any(map(is_document, files))):
        cure = "cut them by  xswe split  first, or take their lines as they are with split=false"
        raise ConfigError(f"output={output}: texts are cut into sentences for one file of vectors; {cure}")
    for name in files:
        check_lines(name)
    folder, models = output.parent, output.parent / ".model"
    with held(folder, f"{folder}: another run is at work there; wait for it", execution.has_peers):
        shards = planned(files)
        stage = shards.encoded(folder, models, output.suffix)
        for path in (models, models.with_name(f".{models.name}.making")):
            shutil.rmtree(path, ignore_errors=True)
        return shards.rows(stage)
