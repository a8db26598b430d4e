"""Many files of lines encoded into one file of vectors, or into a file a shard, by as many processes as there are."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from xswe.errors import ConfigError
from xswe.io.execution import ExecutionConfig, once, run_shards, shard_folder
from xswe.io.files import check_output, fingerprint, held, read_json, write_json
from xswe.io.lines import READ_LINES, read_blocks
from xswe.io.ragged import Texts
from xswe.io.shards import Stage, TextPlan, plan_identity
from xswe.model.ensemble import AnyModel, load_any
from xswe.model.vector_files import VectorFile, open_writer
from xswe.version import __version__


@dataclass(frozen=True)
class EncodeJob:
    """Encode the lines of a shard of text.

    Attributes:
        folder: of the stage, whose manifest holds the plan.
        model: folder of the model.
        dtype: of the vectors.
    """

    folder: Path
    model: Path
    dtype: str
    heavy = False

    def open(self) -> tuple[AnyModel, TextPlan]:
        """Load the model and the plan."""
        return load_any(self.model), TextPlan.read(self.folder)

    def run(self, opened: tuple[AnyModel, TextPlan], shard: int, output: Path) -> dict[str, Any]:
        """Write the vectors of a shard."""
        model, plan = opened
        source, span = plan.shard(shard)
        file = VectorFile(output, model.dim, self.dtype)
        out = np.empty((READ_LINES, model.dim), np.float32)
        with open_writer(file, "shard") as writer:
            for texts in read_blocks(source, span=span):
                model.encode_into(texts, out[: len(texts)])
                writer.write(writer.rows, out[: len(texts)])
                writer.rows += len(texts)
        return {"lines": writer.rows}

    def files(self, output: Path) -> Sequence[Path]:
        """Return the vectors, and the scales that some have beside them."""
        scales = output.with_name(f"{output.stem}.scales.npy")
        return [output, scales] if self.dtype == "int8" and output.suffix == ".npy" else [output]


@dataclass(frozen=True)
class EncodedShards:
    """What :func:`encode_shards` wrote: see :class:`xswe.model.encode_file.EncodedFile`."""

    path: Path
    rows: int
    kept: int
    shards: int
    seconds: float


def encode_shards(
    model: AnyModel, files: Sequence[str], output: Path, dtype: str, execution: ExecutionConfig, threads: int | None = None
) -> EncodedShards:
    """Encode the lines of files, one after the other, by shards.

    Args:
        model: what encodes.
        files: text files, plain or packed, here or remote.
        output: as for :func:`xswe.model.encode_file.encode_file`: the same bytes. Or ``FOLDER/*.npy`` (``.safetensors``,
            ``.parquet``): a file a shard, which stay as they are.
        dtype: of the vectors.
        execution: who does it.
        threads: of this process.

    Raises:
        ConfigError: the output is none, or other runs are at work on it.
        InputError: an input is missing.
        Unfinished: with ``execution=array``, the others are not done yet.
    """
    begun = time.time()
    many = output.name.startswith("*.")
    target = output.parent / f"0{output.suffix}" if many else output
    if output.name.count("*") != int(many):
        raise ConfigError(f"output={output}: for a file a shard give a folder and *, as in vectors/*.npy")
    file = VectorFile(target.resolve() if target.is_symlink() else target, model.dim, dtype)
    plan, stamps = TextPlan.of(files, execution.shard)
    identity = fingerprint(__version__, model.identity, dtype, model.dim, output.suffix * many, plan_identity(plan, stamps))
    with ExitStack() as stack:
        if many:
            folder = output.parent
            shared = execution.kind == "array"
            stack.enter_context(held(folder, f"{folder}: another run is at work there; wait for it", shared))
            stage_folder = folder
        else:
            check_output(target, files)
            folder = stack.enter_context(shard_folder(str(target), execution))
            stage_folder = folder / f"encode-{identity}"
        done = folder / "done"
        if not many and execution.kind == "array" and (made := _made(done, identity, target)):
            return made
        models = folder / (".model" if many else "model")
        if execution.kind == "ray":
            once(models, model.identity, lambda place: model.save(place / "model"))
        stage_folder = stage_folder.absolute()
        job = EncodeJob(stage_folder, models.absolute() / "model", dtype)
        stage = Stage(stage_folder, "encode", plan.count, output.suffix if many else ".npy", job, identity)
        stage.begin(plan=asdict(plan))
        run_shards(stage, execution, threads, (model, plan))

        def join(place: Path) -> None:
            """Make the output of the shards."""
            if not many:
                with open_writer(file, "joined") as writer:
                    for shard in range(plan.count):
                        writer.append(VectorFile(stage.path(shard), model.dim, dtype))
            rows, kept = _rows(stage, begun)
            write_json(place / "encoded.json", {"identity": identity, "rows": rows, "kept": kept, "shards": plan.count})

        if many:
            for path in (models, models.with_name(f".{models.name}.making")):
                shutil.rmtree(path, ignore_errors=True)
            return EncodedShards(output, *_rows(stage, begun), plan.count, time.time() - begun)
        if not target.is_file():  # an earlier one, which was moved away since
            shutil.rmtree(done, ignore_errors=True)
        once(done, identity, join)
        made = _made(done, identity, target)
        assert made is not None
    return EncodedShards(made.path, made.rows, made.kept, made.shards, time.time() - begun)


def _rows(stage: Stage, begun: float) -> tuple[int, int]:
    """Return the rows of all shards, and of those that were done before."""
    rows = kept = 0
    for shard in range(stage.count):
        told = read_json(stage.side_car(shard))
        rows += told["counts"]["lines"]
        kept += told["counts"]["lines"] if told["begun"] < begun else 0
    return rows, kept


def _made(done: Path, identity: str, target: Path) -> EncodedShards | None:
    """Return what an earlier process of the same array made of all shards."""
    record = done / "encoded.json"
    if not record.is_file() or not target.is_file() or (told := read_json(record))["identity"] != identity:
        return None
    return EncodedShards(target, told["rows"], told["kept"], told["shards"], 0.0)


def read_encoded(folder: Path, lines: int) -> Iterator[tuple[Texts, np.ndarray]]:
    """Iterate over blocks of the texts that were encoded into ``FOLDER/*.npy``, and their vectors, float32 (n, d)."""
    plan = TextPlan.read(folder)
    for shard in range(plan.count):
        (source, span), row = plan.shard(shard), 0
        vectors = np.load(folder / f"{shard:06d}.npy", mmap_mode="r")
        for texts in read_blocks(source, lines, span):
            yield texts, np.array(vectors[row : row + len(texts)])
            row += len(texts)
