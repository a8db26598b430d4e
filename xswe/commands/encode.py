"""``python -m xswe encode``: one vector a line of text."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from xswe.commands.config import build
from xswe.errors import ConfigError
from xswe.io.files import check_output, file_stamp, fingerprint, is_special
from xswe.io.lines import read_blocks
from xswe.io.parallel import available_threads, in_order
from xswe.io.ragged import Texts
from xswe.model.ensemble import AnyModel, load_any
from xswe.model.resolve import locate
from xswe.model.vector_files import VectorFile, VectorWriter, open_writer
from xswe.progress import bar
from xswe.version import __version__


@dataclass(frozen=True)
class EncodeConfig:
    """Settings of ``encode``; see ``conf/encode.yaml``."""

    model: str
    input: str
    output: str
    dtype: str = "float32"
    threads: int | None = None

    def __post_init__(self) -> None:
        if self.threads is not None and self.threads < 1:
            raise ConfigError(f"threads={self.threads}: give at least 1, or null for all processors")


def run(values: dict[str, Any]) -> str:
    """Encode the lines of a file, streamed, with a resumable output; returns what was done and how fast."""
    config = build(EncodeConfig, values, "encode")
    output = Path(config.output)
    check_output(output, [config.input])
    if is_special(output):
        raise ConfigError(f"output={output}: a pipe or a device, and vectors are not written in order; give a file")
    model = load_any(locate(config.model))
    file = VectorFile(output.resolve() if output.is_symlink() else output, model.dim, config.dtype)
    threads = config.threads or available_threads()
    begun = time.monotonic()
    with open_writer(file, _signature(model, config, file)) as writer:
        kept = writer.kept
        _encode(model, config.input, writer, threads)
    seconds, total = max(time.monotonic() - begun, 1e-9), writer.rows
    speed = f"{(total - kept) / seconds:,.0f} lines/s on {threads} thread{'s' if threads > 1 else ''}"
    again = f" ({kept:,} of them by an earlier run)" if kept else ""
    scales = f", scales: {file.scales}" if file.dtype == "int8" and file.path.suffix == ".npy" else ""
    return f"{total:,} lines{again}, {model.dim} dimensions, {file.dtype}, {speed}: {file.path}{scales}"


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


def _signature(model: AnyModel, config: EncodeConfig, file: VectorFile) -> str:
    """Name all that the output's bytes depend on; of standard input only the lines themselves can tell."""
    source = Path(config.input)
    text = file_stamp(source) if source.is_file() else None
    return fingerprint(__version__, model.identity, file.path.suffix, file.dtype, file.width, text)
