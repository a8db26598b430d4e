"""Argument checks of the public functions: models, texts, vectors, rerankers."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from xswe.errors import ConfigError
from xswe.io.settings import sound
from xswe.io.sources import is_remote, parted

_PAIRS = "pairs of texts, or names of files"


def check_model(model: object, call: str) -> None:
    """Raise TypeError unless a model was given; ``call`` is the example call in the message."""
    if isinstance(model, (str, Path)):
        raise TypeError(
            f"model is the name {str(model)!r}: load it first, as in xswe.{call} with model = xswe.load({str(model)!r})"
        )
    if not (hasattr(model, "encode") or hasattr(model, "queries")):
        raise TypeError(f"model is {_kind(model)}: the first argument is what xswe.load returns, as in xswe.{call}")


def check_reranker(rerank: object, named: bool = False) -> None:
    """Raise TypeError unless the reranker is None, has ``encode``, or (if ``named``) is a name."""
    if named and isinstance(rerank, (str, Path)):
        return
    if rerank is not None and (isinstance(rerank, str) or not hasattr(rerank, "encode")):
        raise TypeError(f"rerank is {_kind(rerank)}: give an encoder, whose encode(texts) returns a vector a text")


def check_encoded(vectors: np.ndarray, texts: int) -> np.ndarray:
    """Return a reranker's vectors of texts; raise ConfigError unless there is one finite vector per text."""
    if vectors.ndim != 2 or len(vectors) != texts:
        raise ConfigError(
            f"rerank: encode() gave {vectors.shape} for {texts} texts; it must return one vector a text, (n, d)"
        )
    return check_finite(vectors, "rerank: encode()")


def check_finite(vectors: np.ndarray, name: str, start: int = 0) -> np.ndarray:
    """Return vectors; raise ConfigError if one, counted from ``start``, holds NaN or is infinite."""
    if not np.isfinite(vectors).all():
        row = start + int(np.flatnonzero(~np.isfinite(vectors).all(axis=1))[0])
        raise ConfigError(f"{name}: vector {row} (from 0) holds NaN or is infinite: leave it out")
    return vectors


def no_text(texts: Iterable[Any], start: int = 0, name: str = "texts") -> TypeError | None:
    """Return the error for the first item that is not a str, counted from ``start``; None if all are."""
    for row, text in enumerate(texts, start):
        if not isinstance(text, str):
            return TypeError(f"{name}[{row}] is {type(text).__name__}, not a str; leave it out, or give '' for it")
    return None


def is_texts(given: object) -> bool:
    """Return True for an array of strings: texts, not vectors."""
    return isinstance(given, np.ndarray) and given.dtype.kind in "UOT"


def several(
    given: Any, name: str, what: str = "texts, as a list of str", columns: Sequence[str] = ("text",)
) -> Sequence[Any]:
    """Return texts, or whatever ``what`` names, as a sequence: a sequence as it is, any other iterable as a list.

    A data frame gives its ``columns``, or all it has if there are as many: the values of one, rows of several.
    TypeError: it is one text, a file name, a mapping, bytes, a data frame with other columns, or no texts at all.
    """
    if isinstance(given, (list, tuple)):
        return given
    names = getattr(given, "column_names", getattr(given, "columns", None))  # of a frame of pandas, Polars or Arrow
    if names is not None and not callable(names):  # results have a method of that name
        names = list(names)
        wanted = columns if set(columns) <= set(names) else names
        if len(wanted) != len(columns):
            listed, called = ", ".join(map(repr, names)), " and ".join(columns)
            raise TypeError(f"{name} is a data frame of {listed}: name the wanted columns {called}, or drop all others")
        found = [_listed(given[column]) for column in wanted]
        return found[0] if len(found) == 1 else list(zip(*found, strict=True))
    if hasattr(given, "to_pylist"):
        return _listed(given)
    if isinstance(given, str):
        raise TypeError(f"{name} is one str, not several texts: give [text]")
    if isinstance(given, Path):
        raise TypeError(f"{name} is a Path, and texts are wanted: give the lines, as in Path.read_text().splitlines()")
    if isinstance(given, (bytes, bytearray)):
        raise TypeError(f"{name} is {_kind(given)}: decode it first, as in given.decode('utf-8')")
    if isinstance(given, Mapping):
        raise TypeError(f"{name} is {_kind(given)}: give a list of its texts, as in list(given.values())")
    if isinstance(given, np.ndarray) and (given.ndim != 1 or not is_texts(given)):
        raise TypeError(f"{name} is an array of {given.dtype} {given.shape}: give {what}")
    if isinstance(given, np.ndarray):
        return list(given.tolist())
    if not isinstance(given, Iterable):
        raise TypeError(f"{name} is {_kind(given)}: give {what}")
    return given if isinstance(given, Sequence) else list(given)


def texts_of(given: Any, name: str) -> Sequence[str]:
    """Return a sequence of texts, each a str; see :func:`several`."""
    texts = several(given, name)
    if problem := no_text(texts, name=name):
        raise problem
    return texts


def pairs_or_names(given: Any) -> tuple[list[tuple[str, str]], list[str]]:
    """Return the text pairs, without blanks at their ends, and the file names in ``input``, one of the two lists empty.

    ConfigError: it is neither, or a name is blank.
    """
    rows = [given] if isinstance(given, (str, Path)) else several(given, "input", _PAIRS, ("source", "target"))
    names = [str(one) for one in rows if isinstance(one, (str, Path))]
    pairs = [one for one in rows if not isinstance(one, (str, Path))]
    if pairs and not len(pairs) == len(rows) == sum(len(pair) == 2 for pair in pairs):
        raise ConfigError("input: give pairs, each of two texts, or names of files")
    odd = next((row for row, pair in enumerate(pairs) if not all(isinstance(side, str) for side in pair)), None)
    if odd is not None:
        raise ConfigError(f"input: pair {odd} is {tuple(pairs[odd])}; give two texts, '' for one that is missing")
    return [(a.strip(), b.strip()) for a, b in pairs], sound(names, "input")


def file_name(given: Any, name: str, instead: str) -> str:
    """Return a file name; raise TypeError for texts or a data frame, where ``instead`` says what accepts them."""
    if not isinstance(given, (str, Path)):
        raise TypeError(f"{name} is {_kind(given)}: give the name of a file; {instead}")
    return str(given)


def file_names(given: Any, name: str, instead: str, what: str = "the name of a file, or several") -> list[str]:
    """Return file names; TypeError: as :func:`file_name`; ConfigError: one is blank."""
    rows = [given] if isinstance(given, (str, Path)) else list(given) if isinstance(given, Iterator) else given
    if not isinstance(rows, (list, tuple)) or not all(isinstance(one, (str, Path)) for one in rows):
        raise TypeError(f"{name} is {_kind(given)}: give {what}; {instead}")
    texts = [one for one in map(str, rows) if " " in one and not (is_remote(one) or glob.has_magic(one))]
    if texts and not isinstance(given, (str, Path)) and not os.path.exists(parted(texts[0])[0]):
        raise TypeError(f"{name} has {texts[0][:40]!r}, and no such file is there: give {what}; {instead}")
    return sound(list(map(str, rows)), name)


def lines_of(given: Any, name: str) -> Any:
    """Return a file name as it is, or texts; see :func:`texts_of`."""
    return given if isinstance(given, (str, Path)) else texts_of(given, name)


def _listed(values: Any) -> list[Any]:
    """Return the values of a column as a list; Arrow values become Python objects."""
    return list(values.to_pylist() if hasattr(values, "to_pylist") else values)


def _kind(given: object) -> str:
    return "None" if given is None else f"of type {type(given).__name__}"
