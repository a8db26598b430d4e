"""A tokenised corpus for the trainer: translation pairs, or sentences of one language, and which are equal or similar.

Also which pairs a refinement samples, and how often each word occurs in each language's text.
"""

from __future__ import annotations

import logging
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numba import njit
from safetensors.numpy import load_file

from xswe.bitext.kernels import hash_texts
from xswe.corpus.contexts import Contexts
from xswe.corpus.splits import RowSet
from xswe.errors import ModelError
from xswe.io.files import save_tensors
from xswe.io.ragged import Bags, Spans, Texts, bounds_of
from xswe.text.words import own_words
from xswe.training.loop import PairTexts
from xswe.training.teacher_vectors import RowVectors

logger = logging.getLogger(__name__)
_ROWS = 8192
_PROJECTED_DIM = 48  # dimensions of the random projection for finding near pairs
_FILE = "counts.safetensors"
_BAGS_AT_A_TIME = 1 << 18  # bags read at a time when reading all
_SHARE = 1 << 21  # more bags than this are numbered in shares
_MAX_RESIDENT = 1 << 30  # largest mapped side, in bytes, to keep in memory; a larger one is read bag by bag, half as fast


@njit(nogil=True, cache=True)
def _ends(offsets: np.ndarray, rows: np.ndarray, out: np.ndarray) -> None:
    """Write the offsets of the bags ``rows``, placed one after the other, starting from ``out[0]``."""
    for k in range(len(rows)):
        out[k + 1] = out[k] + offsets[rows[k] + 1] - offsets[rows[k]]


@njit(nogil=True, cache=True)
def _copy(ids: np.ndarray, starts: np.ndarray, places: np.ndarray, out: np.ndarray) -> None:
    """Copy the ids that begin at ``starts[k]`` to ``out[places[k]:places[k + 1]]``."""
    for k in range(len(starts)):
        shift = starts[k] - places[k]
        for t in range(places[k], places[k + 1]):
            out[t] = ids[shift + t]


@dataclass(frozen=True, eq=False)
class ParallelBags:
    """A tokenised bitext: ``source`` and ``target`` are translations of each other, row by row.

    ``teacher``, float (n, e), are a teacher's unit vectors of the sentences, for distillation. ``alike``: both sides are in
    the same language, so a text may be on either side. ``negatives``, m bags, are not translations of the source of their
    pair.
    """

    source: Bags  # n bags
    target: Bags | None = None  # n bags; None for sentences of one language
    teacher: np.ndarray | RowVectors | None = None
    alike: bool = False
    negatives: Bags | None = None
    bounds: np.ndarray | None = None  # int64 (n + 1,), pair ``i`` has the negatives ``bounds[i]`` to ``bounds[i + 1]``
    same_source: np.ndarray = field(init=False, repr=False)
    same_target: np.ndarray = field(init=False, repr=False)
    same_negative: np.ndarray = field(init=False, repr=False)
    readers: list[Spans | None] = field(init=False, repr=False)  # for sides too large to stay in memory

    def __post_init__(self) -> None:
        columns = [self.source, *(side for side in (self.target, self.negatives) if side is not None)]
        # Columns with texts that can be equal are numbered together.
        groups = [columns] if self.alike or self.target is None else [columns[:1], columns[1:]]
        numbers = [one for group in groups for one in numbered_together(group)]
        object.__setattr__(self, "same_source", numbers[0])
        object.__setattr__(self, "same_target", numbers[0] if self.target is None else numbers[1])
        none = np.zeros(0, np.int32)
        object.__setattr__(self, "same_negative", none if self.negatives is None else numbers[-1])
        if self.negatives is not None:
            self.same_negative[self.negatives.lengths == 0] = -1  # no known unit, so not a negative
        readers = [Spans.of(side.ids) if side.ids.nbytes > _MAX_RESIDENT else None for side in columns]
        object.__setattr__(self, "readers", readers)

    def __len__(self) -> int:
        return len(self.source)

    @property
    def sides(self) -> list[Bags]:
        """The source, and the target if there is one."""
        return [self.source] if self.target is None else [self.source, self.target]

    def negatives_of(self, rows: np.ndarray) -> np.ndarray:
        """Return the negatives of the pairs ``rows``, one pair after the other, without any that has no known unit."""
        if self.bounds is None:
            return np.zeros(0, np.int64)
        found = Bags(np.arange(len(self.same_negative)), np.asarray(self.bounds)).take(rows).ids
        return found[self.same_negative[found] >= 0].astype(np.int64)

    def batch(self, rows: np.ndarray) -> Bags:
        """Return the bags of a batch: the sources of ``rows``, then their targets, then their negatives."""
        rows = np.asarray(rows, np.int64)
        parts = [(side, rows) for side in self.sides]
        if self.negatives is not None:
            parts.append((self.negatives, self.negatives_of(rows)))
        offsets = np.zeros(sum(len(chosen) for _, chosen in parts) + 1, np.int64)
        first, firsts = 0, []
        for side, chosen in parts:
            firsts.append(first)
            _ends(np.asarray(side.offsets), chosen, offsets[first:])
            first += len(chosen)
        ids = np.empty(offsets[-1], np.int32)
        for (side, chosen), first, reader in zip(parts, firsts, self.readers, strict=True):
            places = offsets[first : first + len(chosen) + 1]
            starts = np.asarray(side.offsets)[chosen]
            if reader is None:
                _copy(np.asarray(side.ids), starts, places, ids)
            else:
                read = np.empty(places[-1] - places[0], side.ids.dtype)
                reader.read(starts, places - places[0], read)
                ids[places[0] : places[-1]] = read
        return Bags(ids, offsets)

    def same(self, rows: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return numbers that mark equal texts of a batch, for :class:`~xswe.training.objective.Objective`."""
        source, target = self.same_source[rows], self.same_target[rows]
        if self.negatives is not None:
            target = np.concatenate([target, self.same_negative[self.negatives_of(rows)]])
        return (source, target, source) if self.alike else (source, target)

    def texts(self) -> PairTexts:
        """Return which texts are equal, for :class:`~xswe.training.loop.Schedule`."""
        bounds = np.zeros(len(self) + 1, np.int64) if self.bounds is None else np.asarray(self.bounds)
        # Sentences of one language get distinct targets, so that their only text does not exclude itself.
        target = np.arange(len(self), dtype=np.int32) if self.target is None else self.same_target
        return PairTexts(self.same_source, target, self.same_negative, bounds, self.alike and self.target is not None)

    def teacher_of(self, rows: np.ndarray) -> np.ndarray | None:
        """Return the teacher's vectors of a batch, float32 (k, e), if there are any."""
        return None if self.teacher is None else np.ascontiguousarray(self.teacher[rows], np.float32)


def equal_bags(bags: Bags) -> np.ndarray:
    """Number the bags, int32 (n,), with the same number for equal ones (the same ids in the same order)."""
    return numbered_together([bags])[0]


def numbered_together(columns: Sequence[Bags]) -> list[np.ndarray]:
    """Number the bags of several columns, int32 (n,) each, with the same number for equal ones."""
    if len(columns) == 1:
        return [_numbered(columns[0])]
    keys = np.concatenate([_keys(bags) for bags in columns])
    numbers = np.unique(keys, return_inverse=True)[1].astype(np.int32)
    return np.split(numbers, np.cumsum([len(bags) for bags in columns])[:-1])


def _keys(bags: Bags) -> np.ndarray:
    """Return keys, uint64 (n,), that are equal for equal bags."""
    keys = np.empty(len(bags), np.uint64)
    for start in range(0, len(bags), _BAGS_AT_A_TIME):
        _hash(bags.block(start, start + _BAGS_AT_A_TIME), keys[start : start + _BAGS_AT_A_TIME])
        bags.release()
    return keys


def _hash(block: Bags, keys: np.ndarray) -> None:
    ids = np.ascontiguousarray(block.ids)
    hash_texts(*Texts(ids.view(np.uint8), ids.itemsize * block.offsets).frozen, keys)


def distinct_rows(*bags: Bags) -> np.ndarray:
    """Return the first row of each distinct bag, ascending, int64.

    If the same texts are given as bags of several kinds, a row is kept if it is distinct in any of them.
    """
    first = RowSet(len(bags[0]))
    for kind in bags:
        for rows, keys in _by_key(kind):
            first.set(rows[np.unique(keys, return_index=True)[1]], True)
    return first.rows(_array_for(bags[0], len(first), np.int64))


def _array_for(bags: Bags, size: int, dtype: type[np.generic]) -> np.ndarray:
    """Return an uninitialised array, for very many mapped bags in a hidden file beside them."""
    if size <= _SHARE or (beside := _folder_of(bags)) is None:
        return np.empty(size, dtype)
    with tempfile.TemporaryFile(dir=beside) as stream:
        return np.memmap(stream, dtype, "w+", shape=(size,))


def _folder_of(bags: Bags) -> Path | None:
    """Return the folder that bags are mapped from, None for those in memory."""
    name = bags.offsets.filename if isinstance(bags.offsets, np.memmap) else None
    return Path(name).parent if name is not None else None


def _numbered(bags: Bags) -> np.ndarray:
    numbers, before = _array_for(bags, len(bags), np.int32), 0
    for rows, keys in _by_key(bags):
        distinct, inverse = np.unique(keys, return_inverse=True)
        numbers[rows] = inverse + before
        before += len(distinct)
    return numbers


def _by_key(bags: Bags) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the rows of bags and their keys, by ascending ranges of keys, with rows ascending in each range.

    For more than a few million bags the keys are spooled to a file (beside mapped bags, which are as large), so that only
    one range is in memory.
    """
    shares = 1 << (len(bags) // _SHARE).bit_length()
    if shares == 1:
        yield np.arange(len(bags)), _keys(bags)
        return
    with tempfile.TemporaryFile(dir=_folder_of(bags)) as stream:
        kind = np.dtype([("key", np.uint64), ("row", np.uint32)])
        # The bounds of each share in each block: a share is read block by block, which keeps its rows in order.
        bounds = []
        for start in range(0, len(bags), _BAGS_AT_A_TIME):
            block = bags.block(start, start + _BAGS_AT_A_TIME)
            keys = np.empty(len(block), np.uint64)
            _hash(block, keys)
            bags.release()
            share = (keys >> np.uint64(65 - shares.bit_length())).astype(np.int64)
            order = np.argsort(share, kind="stable")
            entries = np.empty(len(keys), kind)
            entries["key"], entries["row"] = keys[order], start + order
            bounds.append(start + bounds_of(np.bincount(share, minlength=shares)))
            stream.write(entries.tobytes())
        stream.flush()
        for share_number in range(shares):
            parts = []
            for bound in bounds:
                low, high = bound[share_number] * kind.itemsize, bound[share_number + 1] * kind.itemsize
                stream.seek(low)
                parts.append(stream.read(high - low))
            entries = np.frombuffer(b"".join(parts), kind)
            yield entries["row"].astype(np.int64), np.ascontiguousarray(entries["key"])


def grouped(
    vectors: Callable[[Bags], tuple[np.ndarray, np.ndarray]], bitext: ParallelBags, size: int, seed: int
) -> np.ndarray:
    """Return an order of the pairs of a bitext, int64 (n,), in which each run of ``size`` pairs is a neighbourhood."""
    points = np.empty((len(bitext), _PROJECTED_DIM), np.float32)
    projection: np.ndarray | None = None
    for start in range(0, len(bitext), _ROWS):
        rows = np.arange(start, min(start + _ROWS, len(bitext)))
        unit, _ = vectors(bitext.batch(rows))
        if projection is None:
            shape = unit.shape[1], _PROJECTED_DIM
            projection = np.random.default_rng([seed, 23]).normal(0, shape[0] ** -0.5, shape).astype(np.float32)
        both = unit[: len(rows)] + unit[len(rows) : 2 * len(rows)] if len(unit) > len(rows) else unit
        points[rows] = both @ projection
    return tree_order(points, size, seed)


def tree_order(points: np.ndarray, size: int, seed: int) -> np.ndarray:
    """Return an order of points, int64 (n,), in which each run of ``size`` of them is a neighbourhood.

    The points are halved recursively at a multiple of ``size``, each time along the direction between two of them drawn at
    random (as in Annoy): n log n steps, where comparing all pairs would take n squared.
    """
    generator = np.random.default_rng([seed, 29])
    out = np.arange(len(points), dtype=np.int64)
    parts = [(0, len(points))]
    while parts:
        start, stop = parts.pop()
        if stop - start <= size:
            continue
        rows = out[start:stop]
        first, second = rows[generator.integers(0, len(rows), 2)]
        direction = points[first] - points[second]
        if not direction.any():
            direction = np.asarray(generator.normal(size=points.shape[1]), np.float32)
        middle = max(1, (stop - start) // size // 2) * size
        out[start:stop] = rows[np.argpartition(points[rows] @ direction, middle - 1)]
        parts += [(start, start + middle), (start + middle, stop)]
    return out


@dataclass(frozen=True, eq=False)
class WordCounts:
    """The counts of a vocabulary of words."""

    counts: np.ndarray  # int64 (languages, words), of each language's own words in its training text; 0 for others
    own: np.ndarray  # bool (languages, words), True for the language's own most frequent words

    @classmethod
    def of(cls, counts: Mapping[str, Counter[str]], sizes: Mapping[str, int], words: Sequence[str]) -> WordCounts:
        """Arrange counts by language and word; ``sizes`` is the length of each language's own word list."""
        index, lists = {word: i for i, word in enumerate(words)}, own_words(counts, sizes)
        own = np.zeros((len(counts), len(words)), bool)
        for row, code in zip(own, counts, strict=True):
            row[[index[word] for word in lists[code]]] = True
        table = np.array([[counter[word] for word in words] for counter in counts.values()], np.int64)
        return cls(table.reshape(own.shape), own)

    def save(self, folder: Path) -> None:
        """Write ``counts.safetensors`` into ``folder``."""
        save_tensors(folder / _FILE, {"counts": self.counts, "own": self.own})

    @classmethod
    def open(cls, folder: Path) -> WordCounts:
        """Read what :meth:`save` wrote; ModelError: the folder has no counts, as in earlier versions."""
        if not (folder / _FILE).is_file():
            raise ModelError(
                f"{folder}: there is no {_FILE}, which this version needs; remove {folder} and give the same command again"
            )
        found = load_file(folder / _FILE)
        return cls(found["counts"], found["own"])


@dataclass(frozen=True, eq=False)
class PairRows:
    """A split of some pairs of a bitext, or sentences of one language, as ascending rows."""

    train: np.ndarray  # training pairs
    development: np.ndarray  # development pairs


def draw_pairs(
    pairs: Sequence[Sequence[str]],
    bitexts: Sequence[Sequence[Bags]],
    contexts: Mapping[str, Contexts],
    per_unit: int,
    development: Callable[[int], int],
    seed: int,
) -> list[PairRows]:
    """Sample the pairs of each bitext that have a side chosen as a context of some unit (EN paper 3.3).

    ``pairs`` are the languages of each bitext, two or one; the rows in ``contexts`` of each language number its sides in
    all bitexts, one after the other. Each unit draws pairs by at most ``per_unit`` of its contexts, 0 for all;
    ``development`` returns the number of development pairs to take from a number of pairs.
    """
    sizes, made = [len(sides[0]) for sides in bitexts], []
    drawn = {code: one.sampled(per_unit, [seed, 23, k]) for k, (code, one) in enumerate(contexts.items())}
    for k, (codes, sides) in enumerate(zip(pairs, bitexts, strict=True)):
        chosen, sampled = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        for code in codes:
            first = sum(size for size, other in zip(sizes[:k], pairs, strict=False) if code in other)
            for rows, out in ((contexts[code].sentences, chosen), (drawn[code], sampled)):
                low, high = np.searchsorted(rows, [first, first + sizes[k]])
                out.append(rows[low:high] - first)
        found, wanted = np.unique(np.concatenate(chosen)), np.unique(np.concatenate(sampled))
        cut = _cut(sides, found, wanted, development(len(found)), [seed, 29, k])
        what = "%s: %d pairs with a context sentence, %d of them for training and %d for development"
        logger.info(what, "-".join(codes), len(found), len(cut.train), len(cut.development))
        made.append(cut)
    return made


def _cut(sides: Sequence[Bags], chosen: np.ndarray, sampled: np.ndarray, development: int, seed: Sequence[int]) -> PairRows:
    """Split off random development pairs, and drop training pairs that share a side with one of them.

    ``chosen`` are the ascending rows from which development pairs are sampled, ``sampled`` those to train on.
    """
    apart = np.sort(np.random.default_rng(seed).permutation(chosen)[:development])
    rows = np.union1d(apart, sampled)
    is_apart = np.isin(rows, apart)
    train = np.isin(rows, sampled) & ~is_apart
    for side in sides:
        same = equal_bags(side.take(rows))
        train &= ~np.isin(same, same[is_apart])
    return PairRows(rows[train], apart)
