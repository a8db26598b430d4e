"""Compiled code: deferred compilation, and processor instructions that numba does not expose."""

from __future__ import annotations

import ctypes
import functools
import gc
import logging
import mmap
import re
from pathlib import Path
from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils, event
from numba.core.caching import IndexDataCacheFile
from numba.core.registry import cpu_target
from numba.extending import intrinsic

# For hot functions that allocate nothing: ``njit(**LEAN)``. Otherwise numba updates an array's reference count wherever it
# is unpacked from a tuple, passed on or sliced: an atomic update, some 5 ns, and more if two threads hold the same array.
#
# To keep compilation short: pass numbers as ``np.int64(0)``, not ``0``, for which numba would compile the callee anew; make
# arrays in Python; fill slices in a loop (numba's slice assignment brings in its code for error messages); and use
# ``inline="always"``, which copies a function's code to each call before it is compiled, for a few lines only.
LEAN: dict[str, Any] = {"nogil": True, "cache": True, "_nrt": False, "no_cfunc_wrapper": True}
# The same for functions called by compiled code only. The wrapper for calls from Python, which unpacks tuples of arrays,
# takes as long to compile as a small function; without it, a call from Python crashes the process.
INNER: dict[str, Any] = {**LEAN, "no_cpython_wrapper": True}

LINE = 64  # bytes that memory moves at a time
_STEPS_WORTH_COMPILING = 200_000  # fewer run faster in Python than a function compiles
_steps: dict[Any, int] = {}  # run in Python so far, of functions that are not compiled yet
_INT = ir.IntType(32)
_SIXTEEN = ir.VectorType(ir.IntType(8), 16).as_pointer()
_pread = types.ExternalFunction("pread", types.intp(types.int32, types.uintp, types.uintp, types.int64))


logger = logging.getLogger(__name__)


class _Announcer(event.Listener):
    """Logs once that functions of this package are being compiled; those loaded from the cache are not mentioned."""

    _told = False

    def on_start(self, event: Any) -> None:
        if not self._told and event.data["dispatcher"].py_func.__module__.startswith("xswe."):
            self._told = True
            logger.info("compiling, once for this version: it takes some seconds")

    def on_end(self, event: Any) -> None:
        pass


event.register("numba:compile", _Announcer())


_TARGET = cpu_target.target_context  # made here, as making it takes the compiler's lock, too


class _Starter(event.Listener):
    """Starts numba without scipy when the first function is loaded or compiled.

    To learn whether compiled code may call BLAS for a covariance, numba imports scipy if it is installed. That takes
    longer than loading all functions of a command, none of which needs a covariance; without BLAS numba computes one
    itself. Garbage collection, which finds nothing to free among a thousand new modules, is paused meanwhile.
    """

    _done = False

    def on_start(self, event: Any) -> None:
        """Import numba's linear algebra as if scipy were not installed."""
        if self._done:
            return
        _Starter._done = True
        from numba.np import linalg

        def no_blas() -> None:
            raise ImportError

        if (ensure_blas := getattr(linalg, "ensure_blas", None)) is None:
            return  # another version of numba, which may import scipy
        collects = gc.isenabled()
        gc.disable()
        linalg.ensure_blas = no_blas
        try:
            _TARGET.refresh()
        finally:
            linalg.ensure_blas = ensure_blas
            if collects:
                gc.enable()

    def on_end(self, event: Any) -> None:
        pass


event.register("numba:compiler_lock", _Starter())  # held while a function is loaded or compiled


def _load_index(cache: IndexDataCacheFile) -> Any:
    """Return numba's cache index of a function; empty if another version of this package wrote it.

    numba unpickles the argument types before it checks whether the source has changed. They may be of a class that is gone:
    after an upgrade, the function could not be called.
    """
    try:
        return _load_any_index(cache)
    except (AttributeError, ImportError):
        return {}


_load_any_index = IndexDataCacheFile._load_index
IndexDataCacheFile._load_index = _load_index


def is_compiled(function: Any) -> bool:
    """Return True if a function is compiled already: in this process, or in the cache."""
    if function.overloads:
        return True
    source = Path(function.py_func.__code__.co_filename)
    kept = Path(function.stats.cache_path).glob(f"{source.stem}.{function.__name__}-*.nbi")
    return any(index.stat().st_mtime > source.stat().st_mtime for index in kept)


def for_steps(function: Any, steps: int) -> Any:
    """Return a compiled function, or its Python original as long as all calls together are not worth compiling it.

    ``steps`` estimates how often its innermost loop runs; in Python each step takes some microseconds. The function
    takes arrays and numbers, and calls no compiled function.
    """
    looked = function in _steps  # in the cache on the disk, which takes longer than some calls
    if function.overloads or (not looked and is_compiled(function)):
        return function
    _steps[function] = _steps.get(function, 0) + steps
    return function.py_func if _steps[function] < _STEPS_WORTH_COMPILING else function


@functools.cache
def start_compiler() -> None:
    """Start the loader of compiled functions, and release the memory that only its start needs.

    To start, LLVM walks through its own code: some 60 MB that would count towards every process for good, though hardly
    any of it runs again when functions come from the cache on the disk. The system keeps those pages for all processes,
    and maps one again if it is run after all. Call it before large tables are built, to keep peak memory low.
    """
    from numba.core.runtime import rtsys

    _release_code()  # of the import
    # numba compiles its own run time in each process, which is when LLVM runs; loading the first function would trigger
    # that, too, and add numba's library to the peak.
    rtsys.initialize(_TARGET)
    _release_code()
    _nothing()
    _release_code()


@njit(cache=True)
def _nothing() -> None:
    """Do nothing: the first function to be loaded."""


def _release_code() -> None:
    """Release the unmodified pages of LLVM's library to the system; a no-op except on Linux."""
    try:
        maps = Path("/proc/self/smaps").read_text(encoding="utf-8", errors="replace")
        madvise = ctypes.CDLL(None).madvise
    except (OSError, AttributeError):
        return
    madvise.argtypes = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
    # Each mapping: its addresses and file, then its statistics; only mappings without written pages match.
    clean = re.compile(r"^([0-9a-f]+)-([0-9a-f]+) r-.p .*llvmlite.*\n(?:[A-Z]\w+:.*\n)*?Anonymous: +0 kB$", re.MULTILINE)
    for start, stop in clean.findall(maps):
        madvise(int(start, 16), int(stop, 16) - int(start, 16), mmap.MADV_DONTNEED)


def _make_array(kind: Any) -> Any:
    """Return numba's ``make_array`` of a type; its module loads slowly, so only compiling code imports it."""
    from numba.np.arrayobj import make_array

    return make_array(kind)


def _element(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Return a pointer to an element, by its flat index, of a C-contiguous array or a bare pointer."""
    first, kind = arguments[0], signature.args[0]
    if isinstance(kind, types.Array):
        first = _make_array(kind)(context, builder, first).data
    return builder.gep(first, [context.cast(builder, arguments[1], signature.args[1], types.intp)])


@intrinsic
def address_of(_: Any, array: Any, place: Any) -> Any:
    """Return the memory address (uintp) of the element with a flat index in a C-contiguous array."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ptrtoint(_element(context, builder, signature, arguments), ir.IntType(64))

    return types.uintp(array, place), generate


@intrinsic
def prefetch(_: Any, array: Any, place: Any) -> Any:
    """Prefetch the cache line of the element with a flat index, which may be out of range, in a C-contiguous array."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = builder.bitcast(_element(context, builder, signature, arguments), ir.IntType(8).as_pointer())
        kind = ir.FunctionType(ir.VoidType(), [pointer.type, _INT, _INT, _INT])
        function = builder.module.declare_intrinsic("llvm.prefetch", [pointer.type], kind)
        builder.call(function, [pointer, _INT(0), _INT(3), _INT(1)])  # to read, to keep, data
        return context.get_dummy_value()

    return types.void(array, place), generate


@intrinsic
def at(_: Any, records: Any, place: Any) -> Any:
    """Return a record of a C-contiguous array or bare pointer, whose fields can be read and written."""
    return records.dtype(records, place), _element


def _is_bare(kind: Any) -> bool:
    """Return True if a type is an array that :func:`bare` turns into a pointer."""
    return isinstance(kind, types.Array) and isinstance(kind.dtype, types.Number | types.Record)


@intrinsic
def bare(_: Any, arrays: Any) -> Any:
    """Return a pointer to the elements of a C-contiguous array; for a named tuple, the tuple of such pointers.

    A bare pointer takes flat indices from 0 and has neither length nor slices. An access compiles to three instructions
    instead of thirty-five, and the tuples of a function's arguments to a seventh. Records are read with :func:`at`.
    """
    several = isinstance(arrays, types.NamedTuple)
    kinds = [types.CPointer(kind.dtype) if _is_bare(kind) else kind for kind in (arrays.types if several else [arrays])]
    bared = types.NamedTuple(kinds, arrays.instance_class) if several else kinds[0]

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        def data(kind: Any, value: Any) -> Any:
            return _make_array(kind)(context, builder, value).data if _is_bare(kind) else value

        if not several:
            return data(arrays, arguments[0])
        values = cgutils.unpack_tuple(builder, arguments[0])
        return context.make_tuple(builder, bared, [data(*one) for one in zip(arrays.types, values, strict=True)])

    return bared(arrays), generate


@njit(nogil=True, cache=True, inline="always")
def prefetch_row(matrix: np.ndarray, row: int) -> None:
    """Prefetch a whole row of a C-contiguous matrix."""
    size = matrix.shape[1]
    for column in range(0, size, LINE // matrix.itemsize):
        prefetch(matrix, row * size + column)


@intrinsic
def stand_alone(_: Any) -> Any:
    """Keep the calling function from being inlined, so that it is not compiled again at each call."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        builder.function.attributes.add("noinline")
        return context.get_dummy_value()

    return types.void(), generate


@intrinsic
def load_word(_: Any, address: Any) -> Any:
    """Read eight bytes at ``address`` (uintp), wherever they start, as a little-endian uint64."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.load(builder.inttoptr(arguments[0], ir.IntType(64).as_pointer()), align=1)

    return types.uint64(types.uintp), generate


@intrinsic
def store_word(_: Any, address: Any, word: Any) -> Any:
    """Write a uint64 as eight bytes at ``address`` (uintp), wherever they start."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        builder.store(arguments[1], builder.inttoptr(arguments[0], ir.IntType(64).as_pointer()), align=1)
        return context.get_dummy_value()

    return types.void(types.uintp, types.uint64), generate


@intrinsic
def trailing_zeros(_: Any, word: Any) -> Any:
    """Return the number of trailing zero bits of a uint64; 64 for 0."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.IntType(1)(0))

    return types.uint64(types.uint64), generate


def _elements_at(builder: Any, first: Any, second: Any, places: list[int]) -> Any:
    """Return the elements at some places of the concatenation of two vectors."""
    return builder.shuffle_vector(first, second, ir.Constant(ir.VectorType(_INT, len(places)), places))


def _even_and_odd(builder: Any, first: Any, second: Any, size: int) -> Any:
    """Return the sums of adjacent pairs among the first ``size`` elements of two concatenated vectors."""
    even, odd = (_elements_at(builder, first, second, list(range(start, size, 2))) for start in (0, 1))
    return builder.add(even, odd)


@intrinsic
def eight_products(_: Any, rows: Any, others: Any, width: Any, out: Any, step: Any) -> Any:
    """Write the inner products of two int8 rows with four others to ``out``: twice four int32, ``step`` elements apart.

    ``rows`` and ``others`` (uintp) are the addresses of arrays of row addresses, ``out`` (uintp) is an address. All rows
    have ``width`` (intp) elements, a multiple of 16; ``step`` is an intp. Written out, because LLVM fills only a part of
    each register in a loop over 8-bit numbers.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        """Emit a loop over sixteen elements at a time, and the sums of the eight products."""
        rows, others, width, out, step = arguments

        def pointers(place: Any, count: int) -> list[Any]:
            first = builder.inttoptr(place, _SIXTEEN.as_pointer())
            return [builder.load(builder.gep(first, [ir.Constant(width.type, k)])) for k in range(count)]

        each = [*pointers(rows, 2), *pointers(others, 4)]
        sums = [cgutils.alloca_once_value(builder, ir.Constant(ir.VectorType(_INT, 8), [0] * 8)) for _ in range(8)]
        with cgutils.for_range(builder, builder.udiv(width, ir.Constant(width.type, 16))) as loop:
            wide = [
                builder.sext(builder.load(builder.gep(pointer, [loop.index]), align=1), ir.VectorType(_INT, 16))
                for pointer in each
            ]
            for k, total in enumerate(sums):
                product = builder.mul(wide[k // 4], wide[2 + k % 4])
                added = builder.add(builder.load(total), _even_and_odd(builder, product, product, 16))
                builder.store(added, total)
        found = [builder.load(total) for total in sums]
        halves = [builder.add(*(_elements_at(builder, one, one, [*range(k, k + 4)]) for k in (0, 4))) for one in found]
        pairs = [_even_and_odd(builder, halves[k], halves[k + 1], 8) for k in (0, 2, 4, 6)]
        for place, k in ((out, 0), (builder.add(out, builder.mul(step, ir.Constant(step.type, 4))), 2)):
            four = _even_and_odd(builder, pairs[k], pairs[k + 1], 8)
            builder.store(four, builder.inttoptr(place, four.type.as_pointer()), align=4)
        return context.get_dummy_value()

    return types.void(types.uintp, types.uintp, types.intp, types.uintp, types.intp), generate


@intrinsic
def _load(_: Any, address: Any) -> Any:
    """Read the int64 at ``address`` from memory, where other threads may have changed it."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = builder.inttoptr(arguments[0], ir.IntType(64).as_pointer())
        return builder.load_atomic(pointer, "acquire", 8)

    return types.int64(types.uintp), generate


@njit(nogil=True, cache=True)
def changes(cell: np.ndarray, value: int, turns: int) -> bool:
    """Poll ``cell[0]`` (int64) until it is not ``value``; return False if it still is after ``turns`` reads."""
    address = np.uintp(cell.ctypes.data)
    while turns > 0 and _load(address) == value:
        turns -= 1
    return turns > 0


@njit(nogil=True, cache=True)
def read_spans(file: int, starts: np.ndarray, places: np.ndarray, out: np.ndarray) -> bool:
    """Read bytes from ``starts[i]`` of a file into ``out[places[i]:places[i + 1]]``; return False if the file is short."""
    for i in range(len(starts)):
        done, size = 0, places[i + 1] - places[i]
        while done < size:
            address = np.uintp(out.ctypes.data) + np.uintp(places[i] + done)
            count = _pread(np.int32(file), address, np.uintp(size - done), np.int64(starts[i] + done))
            if count <= 0:
                return False
            done += count
    return True
