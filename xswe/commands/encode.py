"""``python -m xswe encode``: one vector a line of text."""

from __future__ import annotations

import time
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

import xswe
from xswe.corpus.streams import read_lines
from xswe.errors import ConfigError
from xswe.files import whole_file
from xswe.parallel import available_threads
from xswe.progress import bar

_BLOCK = 16_384


def run(values: dict[str, Any]) -> str:
    """Encode the lines of a file into a ``.npy`` of float32 (lines, d), streamed, whole or not at all."""
    model = xswe.load(values["model"])
    threads = values["threads"] or available_threads()
    output = Path(values["output"])
    if output.suffix != ".npy":
        raise ConfigError(f"output={output}: give a name that ends in .npy")
    lines = (text or "" for _, text in read_lines(values["input"]))
    start, total = time.monotonic(), 0
    with whole_file(output) as temporary, open(temporary, "wb") as stream, bar("encode", unit="line") as progress:
        _write_header(stream, 0, model.dim)
        while block := list(islice(lines, _BLOCK)):
            stream.write(model.encode(block, threads=threads).tobytes())
            total += len(block)
            progress.update(len(block))
        _write_header(stream, total, model.dim)
    seconds = time.monotonic() - start
    return f"{total:,} lines, {model.dim} dimensions, {total / max(seconds, 1e-9):,.0f} lines/s: {output}"


def _write_header(stream: Any, rows: int, width: int) -> None:
    """Write (or write again, now that the number of rows is known) the header; numpy leaves room for it to grow."""
    stream.seek(0)
    np.lib.format.write_array_header_1_0(stream, {"descr": "<f4", "fortran_order": False, "shape": (rows, width)})
