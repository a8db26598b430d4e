"""Precisions of a matrix: float32, float16, int8, and rows shared by product quantisation.

A float16 row has half the size of a float32 one, and is exact to three digits for numbers as small as those of vectors. An
int8 row has a quarter: its largest magnitude becomes 127, and a float32 scale is the value of 1. In the folder, an int8 row
may be smaller still: if units share the rows of parts, it has one byte per part (product quantisation; Jégou et al. 2011).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, get_args

import numpy as np

from xswe.errors import ModelError
from xswe.io.settings import check_choice, for_all

Precision = Literal["float32", "float16", "int8"]
PRECISIONS: tuple[str, ...] = get_args(Precision)


def check_precision(dtype: str) -> str:
    """Return the name of a known precision, or raise a ConfigError that lists them."""
    check_choice("dtype", dtype, Precision)
    return dtype


def quantise(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Quantise float32 (n, d), finite, to int8 (n, d) within ±127 and scales, float32 (n,).

    Row ``i`` is about ``numbers[i] * scales[i]``, off by at most half a scale in each dimension. The scale of a zero row
    is 0.
    """
    scales = np.maximum(rows.max(axis=1, initial=0.0), -rows.min(axis=1, initial=0.0)) / np.float32(127.0)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        numbers = rows / scales[:, None]
    # A row whose scale underflows becomes zero.
    np.nan_to_num(numbers, copy=False, nan=0.0, posinf=127.0, neginf=-127.0)
    np.rint(numbers, out=numbers)
    return np.clip(numbers, -127, 127, out=numbers).astype(np.int8), scales.astype(np.float32)


_SAMPLE, _ROUNDS = 16_384, 12  # rows for k-means, and its iterations
SHARED = 256  # rows of a part
WIDEST = 8  # largest number of dimensions of a part: as int8, they make one 64-bit integer


def share_rows(rows: np.ndarray, width: int, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Quantise rows like :func:`quantise`, but to at most 256 different ones in each part of ``width`` dimensions.

    The last part has the remaining dimensions. ``weights``, float (n,), not negative, are the importance of each row. All
    scales are equal, and zero rows stay zero.
    """
    made = np.empty(rows.shape, np.float32)
    for start in range(0, rows.shape[1], width):
        made[:, start : start + width] = _nearest_centres(rows[:, start : start + width], weights, start)
    scale = max(float(np.abs(made).max(initial=0.0)) / 127.0, float(np.finfo(np.float32).tiny))
    return np.rint(made / np.float32(scale)).astype(np.int8), np.full(len(rows), scale, np.float32)


def _nearest_centres(rows: np.ndarray, weights: np.ndarray, seed: int) -> np.ndarray:
    """Replace each row by the nearest of 256 centres, which k-means finds in rows sampled by their weight."""
    generator = np.random.default_rng([37, seed])
    size = min(_SAMPLE, 4 * len(rows))
    sample = np.ascontiguousarray(rows[generator.choice(len(rows), size, p=weights / weights.sum())])
    centres = np.unique(sample, axis=0)
    if len(centres) > SHARED:
        centres = sample[generator.choice(len(sample), SHARED, replace=False)]
        for _ in range(_ROUNDS):
            nearest = _nearest(sample, centres)
            counts = np.bincount(nearest, minlength=SHARED)
            sums = np.stack([np.bincount(nearest, column, SHARED) for column in sample.T], axis=1)
            centres[counts > 0] = (sums[counts > 0] / counts[counts > 0, None]).astype(np.float32)
    if not rows.any(axis=1).all():
        centres[np.abs(centres).sum(axis=1).argmin()] = 0.0
    return centres[_nearest(rows, centres)]


def _nearest(rows: np.ndarray, centres: np.ndarray) -> np.ndarray:
    """Return the index of the nearest centre to each row, int64 (n,)."""
    from xswe.io.products import products  # compiled: loading a model does without

    offsets, step = 0.5 * (centres**2).sum(axis=1), 1 << 13
    blocks = (products(rows[start : start + step], centres) - offsets for start in range(0, len(rows), step))
    return np.concatenate([block.argmax(axis=1) for block in blocks])


def pack(matrix: np.ndarray, scale: float, width: int) -> dict[str, np.ndarray]:
    """Return the tensors of an int8 matrix whose units share rows; ModelError: a part has over 256 different rows.

    ``codes``, uint8 (units, parts), is the row of each part of a unit; ``rows``, int8 (parts, 256, width), is padded with
    zeros; ``scale``, float32 (1,), multiplies all rows.
    """
    parts = range(0, matrix.shape[1], width)
    codes, rows = np.empty((len(matrix), len(parts)), np.uint8), np.zeros((len(parts), SHARED, width), np.int8)
    for part, start in enumerate(parts):
        wide = np.zeros((len(matrix), WIDEST), np.int8)
        block = matrix[:, start : start + width]
        wide[:, : block.shape[1]] = block
        found, code = np.unique(wide.view(np.int64)[:, 0], return_inverse=True)
        if len(found) > SHARED:
            raise ModelError(f"a part of the matrix has {len(found)} rows, {SHARED} can be shared: call share_rows first")
        codes[:, part], rows[part, : len(found)] = code, found.view(np.int8).reshape(-1, WIDEST)[:, :width]
    return {"codes": codes, "rows": rows, "scale": np.array([scale], np.float32)}


def unpack(tensors: dict[str, np.ndarray], dim: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the matrix and scales that :func:`pack` stored; ValueError: tensors do not fit each other, or ``dim``."""
    codes, rows, scale = (tensors[name] for name in ("codes", "rows", "scale"))
    if codes.dtype != np.uint8 or codes.ndim != 2 or rows.dtype != np.int8 or rows.shape[:2] != (codes.shape[1], SHARED):
        raise ValueError(f"codes are {codes.dtype} {codes.shape}, rows {rows.dtype} {rows.shape}")
    if not 0 <= codes.shape[1] * rows.shape[2] - dim < rows.shape[2] or scale.shape != (1,) or not is_finite(scale):
        raise ValueError(f"{codes.shape[1]} parts of {rows.shape[2]} dimensions are not {dim}, or the scale is no number")
    matrix, width = np.empty((len(codes), dim), np.int8), rows.shape[2]
    for part, start in enumerate(range(0, dim, width)):
        block = matrix[:, start : start + width]
        block[:] = rows[part, codes[:, part], : block.shape[1]]
    return matrix, np.full(len(codes), scale[0], np.float32)


def convert(rows: np.ndarray, dtype: str) -> tuple[np.ndarray, np.ndarray | None]:
    """Convert float32 rows to another precision; return the rows, C-contiguous, and for ``int8`` their scales, else None.

    ConfigError: the precision is unknown. ModelError: a number is beyond float16's range.
    """
    return _CONVERTERS[check_precision(dtype)](rows)


def _as_float16(rows: np.ndarray) -> tuple[np.ndarray, None]:
    if len(rows) and max(float(rows.max()), -float(rows.min())) > float(np.finfo(np.float16).max):
        raise ModelError("the vectors hold numbers above 65504, which float16 cannot: scale them, or use float32 or int8")
    return rows.astype(np.float16), None


_CONVERTERS: dict[str, Callable[[np.ndarray], tuple[np.ndarray, np.ndarray | None]]] = for_all(
    Precision,
    {"float32": lambda rows: (np.ascontiguousarray(rows, np.float32), None), "float16": _as_float16, "int8": quantise},
)


def restore(rows: np.ndarray, scales: np.ndarray | None) -> np.ndarray:
    """Return rows of any precision as float32; the same array if they are float32 already."""
    wide = rows.astype(np.float32, copy=False)
    return wide if scales is None else wide * scales[:, None]


def is_finite(rows: np.ndarray) -> bool:
    """Return True if all numbers are finite; unlike numpy's test, without an array of booleans."""
    if rows.dtype == np.int8 or rows.size == 0:
        return True
    if rows.dtype == np.float16:
        step = 1 << 12
        blocks = (rows[start : start + step].view(np.uint16) & 0x7FFF for start in range(0, len(rows), step))
        return all(int(block.max()) < 0x7C00 for block in blocks)
    return bool(np.isfinite(rows.min()) and np.isfinite(rows.max()))
