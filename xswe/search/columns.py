"""Typed columns of metadata, one number per sentence, for filters that are applied before a search.

A text is kept as a 64-bit hash, which makes tests of equality and membership as cheap as for numbers; a missing value is
represented by a reserved number.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence, Set
from hashlib import blake2b
from typing import Any, Literal, NamedTuple

import numpy as np

from xswe.errors import ConfigError
from xswe.io.settings import check_choice, for_all

ColumnType = Literal["int", "float", "str", "bool"]
Where = Mapping[str, Any]  # by column a value, a set or list of values, or a range (lowest, highest), None for no limit


class _Kind(NamedTuple):
    """How values of a type are stored."""

    numbers: type
    missing: Any
    accepts: tuple[type, ...]
    number: Callable[[Any], Any]


def _hash(text: str) -> int:
    """Return the hash of a text, never 0."""
    data = text.encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(data, digest_size=8).digest(), "little") or 1


_MISSING_INT = -(2**63)
_KINDS: dict[str, _Kind] = for_all(
    ColumnType,
    {
        "int": _Kind(np.int64, _MISSING_INT, (int,), int),
        "float": _Kind(np.float64, np.nan, (int, float), float),
        "str": _Kind(np.uint64, 0, (str,), _hash),
        "bool": _Kind(np.int8, -1, (bool,), int),
    },
)


class Columns:
    """The columns of an index: their types by metadata key, in the order of their files."""

    def __init__(self, types: Mapping[str, ColumnType] | None = None) -> None:
        self.types = dict(types or {})
        for name, kind in self.types.items():
            check_choice(f"columns: {name}", kind, ColumnType)

    @classmethod
    def of(cls, noted: str | None) -> Columns:
        """Return the columns recorded in a database."""
        return cls(dict(json.loads(noted)) if noted else None)

    def noted(self) -> str:
        """Return the columns in the form recorded in a database."""
        return json.dumps(list(self.types.items()), ensure_ascii=False)

    def files(self) -> dict[str, tuple[type, tuple[int, ...]]]:
        """Return the type and the row shape of each array by name."""
        return {f"column{place}": (_KINDS[kind].numbers, ()) for place, kind in enumerate(self.types.values())}

    def arrays(self, metadata: Sequence[Any] | None, count: int, first: int) -> dict[str, np.ndarray]:
        """Return the columns of the metadata of ``count`` sentences (None for no metadata) by array name.

        ConfigError: metadata is not an object, or a value has the wrong type; names the sentence, counted from ``first``.
        """
        out = {}
        for (name, kind), file in zip(self.types.items(), self.files(), strict=True):
            column: np.ndarray = np.full(count, _KINDS[kind].missing, _KINDS[kind].numbers)
            for place, one in enumerate(metadata or ()):
                if one is None:
                    continue
                if not isinstance(one, Mapping):
                    raise ConfigError(
                        f"metadata: {one!r} of sentence {first + place} has no {name}; give an object, or None"
                    )
                if (value := one.get(name)) is not None:
                    column[place] = _number(name, kind, value, f" of sentence {first + place}")
            out[file] = column
        return out

    def chosen(self, where: Where, column: Callable[[str], np.ndarray]) -> np.ndarray:
        """Return which sentences meet all conditions, bool (n,); ``column`` returns an array by name.

        ConfigError: a condition names no column, or its value has the wrong type.
        """
        masks = []
        places = dict(zip(self.types, self.files(), strict=True))
        for name, condition in where.items():
            if name not in places:
                known = ", ".join(self.types) or "none; give columns= when the index is built"
                raise ConfigError(f"where: no column {name!r}; there are {known}")
            masks.append(_meets(name, self.types[name], condition, column(places[name])))
        if not masks:
            raise ConfigError("where: no condition; give a column and a value, or None")
        return np.logical_and.reduce(masks)


def _number(name: str, kind: str, value: Any, place: str = "") -> Any:
    """Return the number that represents a value."""
    right = isinstance(value, _KINDS[kind].accepts) and isinstance(value, bool) == (kind == "bool") and value == value
    if not right or (kind == "int" and not _MISSING_INT < value < 2**63):
        raise ConfigError(f"{name}: {value!r}{place} is not of type {kind}, which the column has")
    return _KINDS[kind].number(value)


def _meets(name: str, kind: str, condition: Any, numbers: np.ndarray) -> np.ndarray:
    """Return which numbers meet a condition."""
    if isinstance(condition, tuple):
        return _within(name, kind, condition, numbers)
    if isinstance(condition, Set | list | np.ndarray):
        given = condition.tolist() if isinstance(condition, np.ndarray) else condition
        values = [_KINDS[kind].missing if one is None else _number(name, kind, one) for one in given]
        found = np.isin(numbers, np.array(values, _KINDS[kind].numbers))
        return found | np.isnan(numbers) if kind == "float" and None in given else found
    if condition is None:
        return np.isnan(numbers) if kind == "float" else numbers == _KINDS[kind].missing
    return numbers == _KINDS[kind].numbers(_number(name, kind, condition))


def _within(name: str, kind: str, condition: tuple[Any, ...], numbers: np.ndarray) -> np.ndarray:
    """Return which numbers are in a range, inclusive; missing values are not."""
    if len(condition) != 2 or kind not in ("int", "float"):
        raise ConfigError(f"where: {name}={condition!r}: a range is (lowest, highest) of numbers; give a set for choices")
    low, high = (None if end is None else _number(name, kind, end) for end in condition)
    found = numbers == numbers if kind == "float" else numbers != _MISSING_INT
    if low is not None:
        found &= numbers >= low
    if high is not None:
        found &= numbers <= high
    return found
