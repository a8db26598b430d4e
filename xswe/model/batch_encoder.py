"""Texts encoded batch by batch within another engine: Ray Data's ``map_batches``, pandas, or a loop of one's own."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from xswe.errors import ConfigError
from xswe.model.ensemble import load_any
from xswe.model.resolve import locate


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
