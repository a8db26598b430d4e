"""Inner products in one order: against exact arithmetic, in all shapes, and as other processors compute them."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xswe.errors import ConfigError
from xswe.io.products import COLUMNS, ROWS, largest, norms, pack, products, row_products


def rounded(value: Fraction) -> np.float32:
    """The float32 next to a number, of two equally near ones the even one."""
    near = np.float32(float(value))
    around = (np.nextafter(near, np.float32(-np.inf)), near, np.nextafter(near, np.float32(np.inf)))
    return min(around, key=lambda one: (abs(Fraction(float(one)) - value), int(one.view(np.uint32)) & 1))


def chain(a, b) -> np.float32:
    total = np.float32(0)
    for x, y in zip(a.tolist(), b.tolist(), strict=True):
        total = rounded(Fraction(x) * Fraction(y) + Fraction(float(total)))
    return total


def matrices(n: int, m: int, dim: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    draw = np.random.default_rng(seed)
    return draw.standard_normal((n, dim)).astype(np.float32), draw.standard_normal((m, dim)).astype(np.float32)


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 5), st.integers(1, 5), st.integers(1, 40), st.integers(0, 99))
def test_a_product_is_one_chain_of_fused_multiply_adds(n, m, dim, seed):
    left, right = matrices(n, m, dim, seed)
    found = products(left, right)
    assert found.tolist() == [[chain(a, b) for b in right] for a in left]


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 70), st.integers(0, 130), st.integers(1, 70), st.integers(0, 99), st.integers(1, 3))
def test_no_shape_changes_a_product(n, m, dim, seed, threads):
    left, right = matrices(n, m, dim, seed)
    whole = products(left, right, threads=threads)
    assert whole.shape == (n, m)
    for i, row in enumerate(left):
        assert np.array_equal(whole[i], row_products(right, row))
    assert np.array_equal(products(right, left).T, whole)
    some = min(n, m)
    assert np.array_equal(row_products(left[:some], right[:some], threads=threads), np.diagonal(whole))
    assert np.array_equal(products(left[1:], right[2:]), whole[1:, 2:])
    assert np.array_equal(norms(left), np.sqrt(np.diagonal(products(left, left))))


@pytest.mark.parametrize("shift", range(0, 17, 3))
def test_no_alignment_changes_a_product(shift):
    left, right = matrices(50, 70, 33, 7)
    moved = [np.zeros(side.size + 32, np.float32)[shift : shift + side.size].reshape(side.shape) for side in (left, right)]
    for place, side in zip(moved, (left, right), strict=True):
        place[:] = side
    into = np.zeros(50 * 70 + 32, np.float32)[shift : shift + 50 * 70].reshape(50, 70)
    assert np.array_equal(products(*moved, out=into), products(left, right))
    assert into.any()
    assert np.array_equal(products(np.asfortranarray(left), right[::-1]), products(left, right)[:, ::-1])


def test_packed_rows_are_the_rows():
    rows, _ = matrices(2 * COLUMNS + 5, 0, 37, 1)
    for width in (ROWS, COLUMNS):
        tiles = pack(rows, width).reshape(-1, 37, width).transpose(0, 2, 1).reshape(-1, 37)
        assert np.array_equal(tiles[: len(rows)], rows)
        assert not tiles[len(rows) :].any()


@given(st.lists(st.integers(0, 4), max_size=30), st.integers(0, 12))
def test_the_largest_are_found_with_ties_by_row(numbers, k):
    wanted = sorted(range(len(numbers)), key=lambda i: (-numbers[i], i))[:k]
    assert largest(np.array(numbers, np.float32), k).tolist() == sorted(wanted)


def test_infinities_and_nan_are_kept_and_vectors_of_another_width_refused():
    left = np.array([[np.inf, 1], [np.nan, 1], [3e38, 3e38]], np.float32)
    assert np.array_equal(products(left, left[2:]), [[np.inf], [np.nan], [np.inf]], equal_nan=True)
    with pytest.raises(ConfigError, match="vectors of 2 dimensions with vectors of 3"):
        products(left, np.zeros((1, 3), np.float32))


PROGRAM = """
import hashlib, numpy as np
from xswe.io.products import COLUMNS, products, row_products
draw = np.random.default_rng(3)
left, right = (draw.standard_normal((n, 67)).astype(np.float32) for n in (45, 101))
found = products(left, right), row_products(right, left[0]), row_products(left, right[:45])
print(COLUMNS, hashlib.sha256(b"".join(part.tobytes() for part in found)).hexdigest())
"""


@pytest.mark.slow
@pytest.mark.parametrize(("name", "features", "columns"), [("haswell", "+sse2,+avx,+avx2,+fma", 24), ("generic", "", 12)])
def test_other_processors_compute_the_same(name, features, columns, tmp_path):
    """Compiled for a processor with narrower vectors, and for one that has no fused multiply-add at all."""
    draw = np.random.default_rng(3)
    left, right = (draw.standard_normal((n, 67)).astype(np.float32) for n in (45, 101))
    found = products(left, right), row_products(right, left[0]), row_products(left, right[:45])
    other = {"NUMBA_CPU_NAME": name, "NUMBA_CPU_FEATURES": features, "NUMBA_CACHE_DIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, env={**os.environ, **other})
    assert done.returncode == 0, done.stderr
    wide, digest = done.stdout.split()
    assert int(wide) == columns
    assert digest == hashlib.sha256(b"".join(part.tobytes() for part in found)).hexdigest()
