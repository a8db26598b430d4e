"""Fewer bits a number: float16, and int8 with one scale a row.

A float16 row is half of a float32 one and, of numbers as small as vectors' are, exact to three digits. An int8 row is a
quarter: its largest magnitude becomes 127, and a float32 scale says what 1 is worth.
"""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np

from xswe.errors import ConfigError, ModelError

Precision = Literal["float32", "float16", "int8"]
PRECISIONS: tuple[str, ...] = get_args(Precision)


def check_precision(dtype: str) -> str:
    """Return the name of a known precision.

    Raises:
        ConfigError: it is none; the message lists them.
    """
    if dtype not in PRECISIONS:
        raise ConfigError(f"dtype={dtype}: use one of {', '.join(PRECISIONS)}")
    return dtype


def quantise(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Quantise rows to int8.

    Args:
        rows: float32 (n, d), finite.

    Returns:
        int8 (n, d) within ±127, and float32 (n,): row ``i`` is about ``numbers[i] * scales[i]``, off by at most half a
        scale in each dimension. A zero row has the scale 0.
    """
    scales = np.maximum(rows.max(axis=1, initial=0.0), -rows.min(axis=1, initial=0.0)) / np.float32(127.0)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        numbers = rows / scales[:, None]
    # A row whose scale underflows is as good as zero.
    np.nan_to_num(numbers, copy=False, nan=0.0, posinf=127.0, neginf=-127.0)
    np.rint(numbers, out=numbers)
    return np.clip(numbers, -127, 127, out=numbers).astype(np.int8), scales.astype(np.float32)


def convert(rows: np.ndarray, dtype: str) -> tuple[np.ndarray, np.ndarray | None]:
    """Convert float32 rows to another precision.

    Returns:
        The rows, C-contiguous, and for ``int8`` their scales, else None.

    Raises:
        ConfigError: the precision is unknown.
        ModelError: a number is beyond float16's range.
    """
    check_precision(dtype)
    if dtype == "int8":
        return quantise(rows)
    if dtype == "float32":
        return np.ascontiguousarray(rows, np.float32), None
    if len(rows) and max(float(rows.max()), -float(rows.min())) > float(np.finfo(np.float16).max):
        raise ModelError("the vectors hold numbers above 65504, which float16 cannot: scale them, or use float32 or int8")
    return rows.astype(np.float16), None


def restore(rows: np.ndarray, scales: np.ndarray | None) -> np.ndarray:
    """Return rows of any precision as float32; the very array if they are that already."""
    wide = rows.astype(np.float32, copy=False)
    return wide if scales is None else wide * scales[:, None]


def is_finite(rows: np.ndarray) -> bool:
    """Tell whether all numbers are finite, without an array of answers."""
    if rows.dtype == np.int8 or rows.size == 0:
        return True
    if rows.dtype == np.float16:
        step = 1 << 12
        blocks = (rows[start : start + step].view(np.uint16) & 0x7FFF for start in range(0, len(rows), step))
        return all(int(block.max()) < 0x7C00 for block in blocks)
    return bool(np.isfinite(rows.min()) and np.isfinite(rows.max()))
