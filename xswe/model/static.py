"""The static model: units, one vector a unit, and the mean of them for a text.

Averaging rows: a text's vector is the mean of its units' rows (EN paper 3.1).

Two implementations give the same bytes: the compiled one of :mod:`xswe.model.kernels`, and one in plain numpy for a
few texts in a process that has not loaded the compiler's run time yet, which takes longer than they do.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import count, islice, pairwise
from pathlib import Path
from typing import Any

import numpy as np

from xswe.errors import ConfigError, ModelError
from xswe.io.files import arrays_digest, fingerprint
from xswe.io.parallel import in_order, over_blocks, share
from xswe.io.ragged import Bags
from xswe.model import folder as storage
from xswe.model.folder import PRECISIONS, Precision, check_precision, convert, restore
from xswe.text.units import Units

_FEW = 20_000  # rows to gather for which loading the compiled code does not pay
_NO_SCALES = np.ones(1, np.float32)


def pool(
    matrix: np.ndarray,
    bags: Bags,
    *,
    normalise: bool,
    threads: int = 1,
    out: np.ndarray | None = None,
    scales: np.ndarray | None = None,
) -> np.ndarray:
    """Average the rows of each bag.

    Args:
        matrix: (units, d) float32, float16 or int8, C-contiguous; gathered from as it is, without a float32 copy.
        bags: n bags of row numbers below ``units``.
        normalise: scale each result to Euclidean norm 1 (an empty bag, or one whose rows cancel, stays zero).
        threads: how many threads share the bags.
        out: float32 (n, d) to write into; made anew if not given.
        scales: float32 (units,), what the rows of an int8 matrix are multiplied with.

    Returns:
        float32 (n, d).
    """
    out = np.empty((len(bags), matrix.shape[1]), np.float32) if out is None else out
    if "numba" not in sys.modules and len(bags.ids) < _FEW:
        pool_plainly(matrix, scales, bags, normalise, out)
        return out
    from xswe.model.kernels import pool_rows

    # numba has no float16 on processors: the kernel reads its bits.
    numbers = matrix.view(np.uint16) if matrix.dtype == np.float16 else matrix
    factors = _NO_SCALES if scales is None else scales

    def work(start: int, stop: int) -> None:
        squares = np.empty(out.shape[1], np.float32)
        pool_rows(numbers, factors, bags.ids, bags.offsets[start : stop + 1], normalise, out[start:stop], squares)

    over_blocks(work, len(bags), threads)
    return out


def pool_plainly(matrix: np.ndarray, scales: np.ndarray | None, bags: Bags, normalise: bool, out: np.ndarray) -> None:
    """Do what :func:`pool` does, in numpy, with the same additions in the same order."""
    ids = bags.ids.tolist()
    for i, (start, stop) in enumerate(pairwise(bags.offsets.tolist())):
        total = out[i]
        total[:] = 0.0
        for unit in ids[start:stop]:
            row = matrix[unit].astype(np.float32, copy=False)
            total += row if scales is None else row * scales[unit]
        divisor = np.sqrt(_fold(total * total)) if normalise else np.float32(stop - start)
        if divisor > 0:
            total *= np.float32(1.0) / divisor


def _fold(numbers: np.ndarray) -> np.float32:
    """Add up an array by folding it in halves, in place."""
    size = len(numbers)
    while size > 1:
        half = size // 2
        numbers[:half] += numbers[size - half : size]
        size -= half
    return np.float32(numbers[0])


# The model: units, one vector a unit, and ``encode``.


BLOCK = 4096  # texts that a thread looks up and pools before it takes the next ones
_WORTH_SHARING = 256  # texts up to which one thread encodes them all


def no_text(texts: Iterable[Any], start: int = 0) -> TypeError | None:
    """Return the error that names the first of the texts that is none, counted from ``start``; None if all are texts."""
    for row, text in enumerate(texts, start):
        if not isinstance(text, str):
            what = type(text).__name__
            return TypeError(f"texts[{row}] is {what}, not a str; leave it out, or give '' for it (the zero vector)")
    return None


@dataclass(frozen=True, eq=False)
class StaticModel:
    """Static word vectors that encode sentences.

    Attributes:
        units: the function from text to unit ids.
        matrix: (units, d) float32, float16 or int8, row ``i`` the vector of unit ``i``; zero for a unit without one.
        description: what else ``config.json`` says of the model (teacher, corpora, training), as plain JSON values.
        scales: float32 (units,), what each row of an int8 matrix is multiplied with; None for the others.

    Example:
        model = xswe.load("runs/en-ja/model")
        vectors = model.encode(["A cat sleeps.", "猫が寝ている。"])
        vectors[0] @ vectors[1]  # the cosine: rows have norm 1
    """

    units: Units
    matrix: np.ndarray
    description: dict[str, Any] = field(default_factory=dict)
    scales: np.ndarray | None = None

    def __post_init__(self) -> None:
        matrix, scales = self.matrix, self.scales
        if matrix.ndim != 2 or matrix.dtype.name not in PRECISIONS:
            raise ModelError(f"the matrix is {matrix.dtype} {matrix.shape}, expected float32, float16 or int8 (units, d)")
        if (scales is not None) != (matrix.dtype == np.int8):
            raise ModelError("an int8 matrix needs scales, and no other has any")
        if scales is not None and (scales.dtype != np.float32 or scales.shape != matrix.shape[:1]):
            raise ModelError(f"the scales are {scales.dtype} {scales.shape}, expected float32 ({len(matrix)},)")
        if len(matrix) != len(self.units):
            raise ModelError(f"{len(matrix)} vectors for {len(self.units)} units")

    @classmethod
    def load(cls, folder: str | Path) -> StaticModel:
        """Load a model folder.

        Raises:
            ModelError: naming the file that is missing, damaged, too new, or does not fit the others.
        """
        return cls(*storage.load(Path(folder)))

    def __repr__(self) -> str:
        kind, languages = self.units.kind, "-".join(self.languages)
        return f"StaticModel({kind}, {languages}, {len(self.matrix)} x {self.dim} {self.dtype})"

    @property
    def dim(self) -> int:
        """Dimensions of a vector."""
        return int(self.matrix.shape[1])

    @cached_property
    def identity(self) -> str:
        """A fingerprint of all that decides what :meth:`encode` returns: the units, and the numbers of the matrix.

        It is that of the folder's content, wherever the folder lies: of ``model.safetensors``, ``tokenizer.json`` (of a
        model of words: ``words.json`` and ``backoff.json``) and the units in ``config.json``; its description and the
        model card do not matter.
        """
        scales = () if self.scales is None else (self.scales,)
        return fingerprint(self.units.identity, arrays_digest(self.matrix, *scales))

    @property
    def dtype(self) -> Precision:
        """How the matrix is kept: float32, float16 or int8."""
        return self.matrix.dtype.name  # type: ignore[return-value]

    @property
    def vectors(self) -> np.ndarray:
        """The units' vectors as float32 (units, d), whatever the precision; the matrix itself where it is float32."""
        return restore(self.matrix, self.scales)

    @property
    def languages(self) -> tuple[str, ...]:
        """Codes of the model's languages."""
        return self.units.languages

    def encode(self, texts: str | Iterable[str], *, threads: int = 1) -> np.ndarray:
        """Encode texts; their languages need not be told.

        Args:
            texts: one text, or any number of them.
            threads: how many threads share the work, look-up included. All read one matrix.

        Returns:
            float32 (n, d), or (d,) for one text; rows have Euclidean norm 1. A text with no known unit (an empty one,
            say) is the zero vector. A text's vector does not depend on the others, nor on the number of threads.

        Raises:
            TypeError: one of the texts is no text; the message says which.
        """
        if isinstance(texts, str):
            return self.encode([texts])[0]
        rows = texts if isinstance(texts, Sequence) else list(texts)
        out = np.empty((len(rows), self.dim), np.float32)

        def work(start: int, stop: int) -> None:
            self.encode_into(rows[start:stop], out[start:stop])

        # As many blocks as make equal shares, but none so small that to hand it over takes longer than to encode it.
        threads = max(1, threads)
        rounds = -(-len(rows) // (BLOCK * threads))
        block = -(-len(rows) // (rounds * threads)) if len(rows) > _WORTH_SHARING else _WORTH_SHARING
        try:
            share(work, len(rows), block, threads)
        except (TypeError, AttributeError) as error:
            raise (no_text(rows) or error) from None
        return out

    def encode_into(self, texts: Sequence[str], out: np.ndarray) -> None:
        """Encode ``n`` texts on this thread into float32 (n, d); what :meth:`encode` calls for each block."""
        pool(self.matrix, self.units.bags(texts), normalise=True, out=out, scales=self.scales)

    def encode_stream(self, texts: Iterable[str], *, threads: int = 1, block: int = BLOCK) -> Iterator[np.ndarray]:
        """Encode texts as they come, with no more than a few blocks of them in memory.

        Args:
            texts: any number of texts, taken one after the other as they are needed.
            threads: how many threads share the work.
            block: texts a block.

        Returns:
            Of float32 (block, d), the last one shorter; together the rows of :meth:`encode`. No array is used again.

        Raises:
            TypeError: ``texts`` is one text, or one of them is no text; the message says which.
        """
        if isinstance(texts, str):
            raise TypeError("texts is one str, not several; give [text], or use encode")
        source = iter(texts)

        def blocks() -> Iterator[tuple[int, list[str]]]:
            for start in count(0, block):
                if not (rows := list(islice(source, block))):
                    return
                yield start, rows

        def work(part: tuple[int, list[str]]) -> np.ndarray:
            start, rows = part
            out = np.empty((len(rows), self.dim), np.float32)
            try:
                self.encode_into(rows, out)
            except (TypeError, AttributeError) as error:
                raise (no_text(rows, start) or error) from None
            return out

        return in_order(work, blocks(), threads)

    def astype(self, dtype: Precision) -> StaticModel:
        """Return the model with its matrix in another precision; it computes from it as it is.

        Args:
            dtype: ``float32``, ``float16`` or ``int8`` (with a float32 scale a row).

        Raises:
            ConfigError: the precision is unknown.
            ModelError: the vectors do not fit it.
        """
        if check_precision(dtype) == self.dtype:
            return self
        matrix, scales = convert(self.vectors, dtype)
        return StaticModel(self.units, matrix, self.description, scales)

    def truncate(self, dim: int) -> StaticModel:
        """Return the model with its first ``dim`` dimensions only; best where it was trained with ``objective.prefixes``.

        Raises:
            ConfigError: the model has fewer.
        """
        if not 0 < dim <= self.dim:
            raise ConfigError(f"dim={dim}: the model has {self.dim} dimensions; keep between 1 and as many")
        return replace(self, matrix=np.ascontiguousarray(self.matrix[:, :dim]))

    def save(self, folder: str | Path, *, dtype: Precision | None = None) -> None:
        """Write the model folder, whole or not at all; see :mod:`xswe.model.folder`.

        Args:
            folder: its name.
            dtype: precision of the stored matrix; None for the model's own.
        """
        model = self if dtype is None else self.astype(dtype)
        storage.save(storage.Contents(model.units, model.matrix, model.description, model.scales), Path(folder))
