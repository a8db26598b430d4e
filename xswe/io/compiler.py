"""What compiled code can say to a processor's memory and to the system, and the language of numba alone cannot."""

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
from numba.core.registry import cpu_target
from numba.extending import intrinsic

# How hot functions that allocate nothing are compiled: ``njit(**LEAN)``. Otherwise numba counts the references to an array
# wherever it is taken out of a tuple, handed on or sliced, and to count is to lock a line of memory: some 5 ns, and more
# where two threads hold the same array.
#
# What keeps compiling short: a number that is handed on is ``np.int64(0)``, not ``0``, for which numba would compile the
# callee anew; arrays are made in Python; a slice is filled by a loop (numba's own way brings its code for error messages);
# and ``inline="always"``, which copies a function's code to each place before it is compiled, is for few lines only.
LEAN: dict[str, Any] = {"nogil": True, "cache": True, "_nrt": False, "no_cfunc_wrapper": True}
# The same for functions that only compiled code calls. The way in from Python, which takes tuples of arrays apart, takes as
# long to compile as a small function itself; without it there is none, and a call from Python ends the process.
INNER: dict[str, Any] = {**LEAN, "no_cpython_wrapper": True}

LINE = 64  # bytes that memory moves at a time
_LITTLE = 200_000  # steps that Python takes in less time than to compile a function
_steps: dict[Any, int] = {}  # that Python has taken for functions that are not compiled yet
_INT = ir.IntType(32)
_pread = types.ExternalFunction("pread", types.intp(types.int32, types.uintp, types.uintp, types.int64))


logger = logging.getLogger(__name__)


class _Announcer(event.Listener):
    """Says once that functions of this package are compiled; those that come from the cache are not."""

    _told = False

    def on_start(self, event: Any) -> None:
        if not self._told and event.data["dispatcher"].py_func.__module__.startswith("xswe."):
            self._told = True
            logger.info("compiling, once for this version: it takes some seconds")

    def on_end(self, event: Any) -> None:
        pass


event.register("numba:compile", _Announcer())


_TARGET = cpu_target.target_context  # to make it takes the compiler's lock as well


class _Starter(event.Listener):
    """Starts numba without scipy, when the first function is loaded or compiled.

    To learn whether compiled code may call BLAS for a covariance, numba imports scipy where it is installed. That takes
    longer than to load all functions of a verb, and none of them asks for a covariance; without BLAS numba computes one
    itself. The collector of garbage, which finds none among a thousand new modules, waits as well.
    """

    _done = False

    def on_start(self, event: Any) -> None:
        if self._done:
            return
        _Starter._done = True
        from numba.np import linalg

        def no_blas() -> None:
            raise ImportError

        if (ensure_blas := getattr(linalg, "ensure_blas", None)) is None:
            return  # a numba that asks in another way starts as it likes
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


def is_compiled(function: Any) -> bool:
    """Tell whether a function was compiled already: here, or by an earlier process, which left it in the cache."""
    if function.overloads:
        return True
    source = Path(function.py_func.__code__.co_filename)
    kept = Path(function.stats.cache_path).glob(f"{source.stem}.{function.__name__}-*.nbi")
    return any(index.stat().st_mtime > source.stat().st_mtime for index in kept)


def for_steps(function: Any, steps: int) -> Any:
    """Return a compiled function, or its source where it is not compiled yet and there was little to do so far.

    Args:
        function: takes arrays and numbers, and calls no compiled function.
        steps: about how often its innermost loop runs; in Python each takes some microseconds.
    """
    if function.overloads or is_compiled(function):
        return function
    _steps[function] = _steps.get(function, 0) + steps
    return function.py_func if _steps[function] < _LITTLE else function


@functools.cache
def start_compiler() -> None:
    """Start what loads compiled functions, and give back the memory that only its start takes.

    To start, LLVM walks through its own code: some 60 MB that would be counted to every process for good, and of which
    next to nothing is run again where functions come from the cache on the disk. The system keeps those pages for all
    processes, and brings one back should it be run after all. Called before large tables are built, it keeps the peak low.
    """
    from numba.core.runtime import rtsys

    _give_back_code()  # what the import ran
    # numba compiles its own run time anew in each process, which is when LLVM runs; loading the first function would do
    # so too, and add numba's library to the peak.
    rtsys.initialize(_TARGET)
    _give_back_code()
    _nothing()
    _give_back_code()


@njit(cache=True)
def _nothing() -> None:
    """Be the first function that is loaded."""


def _give_back_code() -> None:
    """Give back the pages of LLVM's library that are as they are in its file; elsewhere than on Linux, do nothing."""
    try:
        maps = Path("/proc/self/smaps").read_text(encoding="utf-8", errors="replace")
        madvise = ctypes.CDLL(None).madvise
    except (OSError, AttributeError):
        return
    madvise.argtypes = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
    # Each mapping: its addresses and its file, then what it holds; it holds no page that was ever written to.
    clean = re.compile(r"^([0-9a-f]+)-([0-9a-f]+) r-.p .*llvmlite.*\n(?:[A-Z]\w+:.*\n)*?Anonymous: +0 kB$", re.MULTILINE)
    for start, stop in clean.findall(maps):
        madvise(int(start, 16), int(stop, 16) - int(start, 16), mmap.MADV_DONTNEED)


def _make_array(kind: Any) -> Any:
    """Return numba's ``make_array`` of a type, whose module is loaded only where code is compiled: it takes a while."""
    from numba.np.arrayobj import make_array

    return make_array(kind)


def _element(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Return a pointer to an element of a C-contiguous array, counted through all rows; or of what is bare."""
    first, kind = arguments[0], signature.args[0]
    if isinstance(kind, types.Array):
        first = _make_array(kind)(context, builder, first).data
    return builder.gep(first, [context.cast(builder, arguments[1], signature.args[1], types.intp)])


@intrinsic
def address_of(_: Any, array: Any, place: Any) -> Any:
    """Return where an element of a C-contiguous array stands in memory (uintp), counted through all rows."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ptrtoint(_element(context, builder, signature, arguments), ir.IntType(64))

    return types.uintp(array, place), generate


@intrinsic
def prefetch(_: Any, array: Any, place: Any) -> Any:
    """Ask memory for the line with an element of a C-contiguous array, so that it is there when its turn comes.

    Args:
        array: of any type and shape.
        place: of the element, counted through all rows; wherever that is, asking never fails.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = builder.bitcast(_element(context, builder, signature, arguments), ir.IntType(8).as_pointer())
        kind = ir.FunctionType(ir.VoidType(), [pointer.type, _INT, _INT, _INT])
        function = builder.module.declare_intrinsic("llvm.prefetch", [pointer.type], kind)
        builder.call(function, [pointer, _INT(0), _INT(3), _INT(1)])  # to read, to keep, data
        return context.get_dummy_value()

    return types.void(array, place), generate


@intrinsic
def at(_: Any, records: Any, place: Any) -> Any:
    """Return a record of a C-contiguous array, bare or not, whose fields can be read and written."""
    return records.dtype(records, place), _element


def _is_bare(kind: Any) -> bool:
    """Tell whether a type is an array, of which :func:`bare` makes a pointer."""
    return isinstance(kind, types.Array) and isinstance(kind.dtype, types.Number | types.Record)


@intrinsic
def bare(_: Any, arrays: Any) -> Any:
    """Return where the elements of a C-contiguous array stand; of a named tuple, the tuple with that for each array.

    What is bare is indexed like an array of one dimension, through all rows, never from the end; it has no length and no
    slices. An element costs three instructions to be compiled, not thirty-five, and the tuples of a function's arguments a
    seventh. Records are taken out by :func:`at`.
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
    """Ask memory for a whole row of a C-contiguous matrix."""
    size = matrix.shape[1]
    for column in range(0, size, LINE // matrix.itemsize):
        prefetch(matrix, row * size + column)


@intrinsic
def stand_alone(_: Any) -> Any:
    """Keep the function that calls this out of its callers' code, where it would be compiled again at each call."""

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
    """Return how many of the lowest bits of a uint64 are 0; 64 for 0."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.IntType(1)(0))

    return types.uint64(types.uint64), generate


@intrinsic
def _load(_: Any, address: Any) -> Any:
    """Read the int64 at ``address`` as other threads leave it, each time anew."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = builder.inttoptr(arguments[0], ir.IntType(64).as_pointer())
        return builder.load_atomic(pointer, "acquire", 8)

    return types.int64(types.uintp), generate


@njit(nogil=True, cache=True)
def changes(cell: np.ndarray, value: int, turns: int) -> bool:
    """Look at ``cell[0]`` (int64) again and again until it is not ``value``; False if it still is after ``turns`` looks."""
    address = np.uintp(cell.ctypes.data)
    while turns > 0 and _load(address) == value:
        turns -= 1
    return turns > 0


@njit(nogil=True, cache=True)
def read_spans(file: int, starts: np.ndarray, places: np.ndarray, out: np.ndarray) -> bool:
    """Read bytes from ``starts[i]`` of a file on into ``out[places[i]:places[i + 1]]``; False if the file ends before."""
    for i in range(len(starts)):
        done, size = 0, places[i + 1] - places[i]
        while done < size:
            address = np.uintp(out.ctypes.data) + np.uintp(places[i] + done)
            count = _pread(np.int32(file), address, np.uintp(size - done), np.int64(starts[i] + done))
            if count <= 0:
                return False
            done += count
    return True
