"""Span search in passages, block by block, for blocks of queries, and its state.

Words and their vectors come from static models, or from the token states of encoders.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice, pairwise
from pathlib import Path
from typing import Protocol

import numpy as np

from xswe.errors import ConfigError, ModelError
from xswe.io.parallel import over_blocks, parallel_for, run
from xswe.io.products import products
from xswe.io.ragged import Texts, bounds_of
from xswe.model.ensemble import AnyModel, Ensemble, load_single, locate
from xswe.model.static import StaticModel, pool
from xswe.phrases.kernels.bound import LANES, TILE, spell, words_of_part
from xswe.phrases.kernels.norms import Block, measure_spans, tiles_of
from xswe.phrases.kernels.scoring import NONE, SLACK, STEP, Task, is_closed, search_block
from xswe.phrases.kernels.top import HIT, PLACE, Distinct, Top, distinct_words, merge
from xswe.teacher.protocol import Teacher
from xswe.text.spans import Cut, cut_texts, make_cutter, places_of, words_at
from xswe.work.checkpoint import load_checkpoint, save_checkpoint


class WordSource(Protocol):
    """A source of words with vectors, from texts."""

    @property
    def identity(self) -> list[object]:
        """Everything that decides the results, as JSON values."""

    def cut(self, texts: Sequence[str], threads: int) -> tuple[np.ndarray, Cut]:
        """Cut texts; return the float32 (rows, d) table indexed by the cut's ids, and the cut."""

    def places(self, texts: Sequence[str]) -> list[np.ndarray]:
        """Return the places of each text's words: int32 (words, 2), first character and one past the last."""

    def queries(self, texts: Sequence[str]) -> np.ndarray:
        """Return unit vectors of phrases, float32 (n, d); zero for phrases without known units."""


def open_words(model: AnyModel | WordSource) -> WordSource:
    """Return a model as a source of words; ModelError: it is an ensemble, whose parts cut texts differently."""
    if isinstance(model, Ensemble):
        raise ModelError("an ensemble has no single table of vectors; give one of its parts, as in model.parts[0]")
    return StaticWords(model) if isinstance(model, StaticModel) else model


def load_words(which: str, threads: int) -> WordSource:
    """Load a model by name as a source of words; ``teacher:NAME`` loads an encoder, to use its token states."""
    if not which.startswith("teacher:"):
        return StaticWords(load_single(locate(which)))
    from xswe.teacher.protocol import TeacherConfig
    from xswe.teacher.transformer import load_teacher

    return TeacherWords(load_teacher(TeacherConfig.named(which.removeprefix("teacher:"), threads)))


class StaticWords:
    """The words of a static embedding."""

    def __init__(self, model: StaticModel) -> None:
        # Spans are sums of word vectors, without bigrams.
        self.matrix = np.ascontiguousarray(model.vectors[: len(model.units)], np.float32)
        self._cutter = make_cutter(model.units)
        self.model = model

    def words(self) -> list[str]:
        """Return the model's units that are words, in the form of the look-up; the displayed form affects no result."""
        return list(self.model.plain_words)

    @property
    def identity(self) -> list[object]:
        """The model's identity."""
        return [self.model.identity]

    def cut(self, texts: Sequence[str], threads: int = 1) -> tuple[np.ndarray, Cut]:
        """Cut texts; the table is the model's matrix."""
        return self.matrix, cut_texts(self._cutter, texts, threads)

    def places(self, texts: Sequence[str]) -> list[np.ndarray]:
        """Return where the words of each text stand, int32 (words, 2)."""
        return self._cutter.places(texts)

    def queries(self, texts: Sequence[str]) -> np.ndarray:
        """Unit vectors of phrases, float32 (n, d)."""
        return pool(self.matrix, self.cut(texts)[1].bags, normalise=True)


class TeacherWords:
    """The words of one pass of a teacher (SLICE 3): a word's vector is the sum of its token states."""

    block_characters = 100_000  # smaller than with a static model, because every token's state is kept
    in_context = True

    def __init__(self, teacher: Teacher) -> None:
        self.teacher = teacher
        self._places: dict[str, np.ndarray] = {}  # of the last texts cut, to save a second pass

    @property
    def identity(self) -> list[object]:
        """The teacher's identity."""
        return ["tokens", self.teacher.identity]

    def cut(self, texts: Sequence[str], threads: int = 1) -> tuple[np.ndarray, Cut]:
        """Run the teacher once over each text; every token's state is a row of the table."""
        none = np.zeros((0, self.teacher.dim), np.float32)
        rows = [none] * len(texts)
        groups: list[list[tuple[int, int]]] = [[] for _ in texts]
        self._places = {}
        for row, hidden, found in self._words(texts):
            self._places[texts[row]] = places_of(found)
            kept = [t for first, last, _, _ in found for t in range(first, last)]
            rows[row], groups[row] = hidden[kept], [(first, last) for first, last, _, _ in found]
        words = bounds_of([last - first for group in groups for first, last in group])
        ends = bounds_of([len(group) for group in groups])
        matrix = np.concatenate([none, *rows])
        return matrix, Cut(np.arange(len(matrix), dtype=np.int32), words, ends)

    def places(self, texts: Sequence[str]) -> list[np.ndarray]:
        """Return where the words of each text stand, int32 (words, 2)."""
        found = {text: self._places[text] for text in texts if text in self._places}
        rest = [text for text in texts if text not in found]
        found |= {rest[row]: places_of(words) for row, _, words in self._words(rest)}
        return [found.get(text, places_of([])) for text in texts]

    def queries(self, texts: Sequence[str]) -> np.ndarray:
        """Return the mean token states of phrases, scaled to norm 1, float32 (n, d)."""
        matrix, cut = self.cut(texts)
        return (
            pool(matrix, cut.bags, normalise=True) if len(matrix) else np.zeros((len(texts), self.teacher.dim), np.float32)
        )

    def _words(self, texts: Sequence[str]) -> Iterator[tuple[int, np.ndarray, list[tuple[int, int, int, int]]]]:
        """Yield the row, the token states and the words (see :func:`words_at`) of each non-blank text."""
        filled = [i for i, text in enumerate(texts) if text.strip()]
        batch = [texts[i] for i in filled]
        for states in self.teacher.states(batch, self.teacher.batches(batch)) if batch else ():
            for k, place in enumerate(states.rows.tolist()):
                a, b = states.offsets[k], states.offsets[k + 1]
                yield filled[place], states.hidden[a:b], words_at(batch[place], states.starts[a:b], states.ends[a:b])


MOST_WORDS = 1000  # of a span; a thread's workspace grows with its square
_MAX_BYTES = 1 << 34  # of all lists together
_BLOCK_SIZE = 2_000_000  # characters, at spans of up to 20 words; fewer for longer spans, as memory grows with their number


@dataclass(frozen=True)
class SpanConfig:
    """Settings of the span search.

    Attributes:
        min_size: words of the shortest span.
        max_size: words of the longest span.
        k: hits a query.
        min_score: minimum cosine of a hit; None for 0, or in a search for terms, what random phrases reach.
        distinct: count equal spans as one hit; otherwise every place is a hit of its own.
        examples: with ``distinct``, number of places kept for each span.
        threads: number of threads.
    """

    min_size: int = 1
    max_size: int = 20
    k: int = 5
    min_score: float | None = None
    distinct: bool = False
    examples: int = 3
    threads: int = 1

    def __post_init__(self) -> None:
        if not 1 <= self.min_size <= self.max_size:
            raise ConfigError(f"min_size={self.min_size} max_size={self.max_size}: give 1 <= min_size <= max_size")
        if self.max_size > MOST_WORDS:
            raise ConfigError(f"max_size={self.max_size}: spans have up to {MOST_WORDS} words")
        if min(self.k, self.examples, self.threads) < 1:
            raise ConfigError("k, examples and threads must be at least 1")
        if not -1 <= (self.min_score or 0.0) <= 1:
            raise ConfigError(f"min_score={self.min_score}: a cosine is between -1 and 1")


class Search:
    """A search for a set of queries in passages, which are given in blocks.

    Args:
        source: the source of words and vectors.
        queries: float32 (n, d), unit vectors; a zero vector finds nothing.
        config: the settings.

    Raises:
        ConfigError: the lists would be too large, or ``distinct`` is set for words whose vectors depend on their context.

    Attributes:
        top: the best hits so far.
        texts: the passages with hits, by number.
        done: number of passages searched.
        spans: number of spans scored or ruled out, counted once for each query.
        pairs: number of pairs of a tile and a query.
        scored: number of pairs in which spans were scored.
    """

    def __init__(self, source: WordSource, queries: np.ndarray, config: SpanConfig) -> None:
        self.source, self.config = source, config
        self.queries = np.ascontiguousarray(queries, np.float32)
        if config.distinct and getattr(source, "in_context", False):
            raise ConfigError(
                "equal phrases can only be counted with a static model; an encoder gives each place its own vector: "
                "search for places (mode=phrases)"
            )
        if (size := len(queries) * config.k * (HIT.itemsize + PLACE.itemsize * config.examples)) > _MAX_BYTES:
            raise ConfigError(f"k={config.k}: the lists of {len(queries)} queries would take {size >> 30} GiB")
        self.top = Top.empty(len(queries), config.k, config.examples if config.distinct else 1)
        self.texts: dict[int, str] = {}
        self.done = self.spans = self.pairs = self.scored = 0
        # Only scores above this enter a list: half a step below the minimum, rounded like the scores.
        self._floor = np.float32((np.rint((config.min_score or 0.0) / STEP) - 0.5) * STEP)

    def read(self, passages: Iterable[str]) -> Iterator[int]:
        """Search the passages after the first :attr:`done`; yield the number of passages in each block."""
        size = min(getattr(self.source, "block_characters", _BLOCK_SIZE), 20 * _BLOCK_SIZE // self.config.max_size)
        for block in _blocks(islice(iter(passages), self.done, None), size):
            self.add(block, self.done)
            self.texts |= {self.done + i: text for i, text in enumerate(block)}
            self.only_wanted()
            self.done += len(block)
            yield len(block)

    def only_wanted(self) -> None:
        """Drop the passages without hits."""
        wanted = set(self.top.places["passage"].tolist())
        self.texts = {number: text for number, text in self.texts.items() if number in wanted}

    def save(self, path: Path, identity: str) -> None:
        """Write the state atomically; ``identity`` identifies the search."""
        packed = Texts.of(self.texts.values())
        arrays = {name: getattr(self.top, name).view(np.uint8) for name in ("hits", "places", "used")}
        arrays |= {"numbers": np.array(list(self.texts), np.int64), "bytes": packed.data, "offsets": packed.offsets}
        where = f"after {self.done:,} passages" if identity else ""  # a shard's state is not one to resume from
        save_checkpoint(path, identity, arrays, {"done": self.done}, where)

    def restore(self, path: Path, identity: str) -> None:
        """Load the state written by :meth:`save`, if there is one of the same search."""
        if (found := load_checkpoint(path, identity)) is None:
            return
        arrays, self.done = found[0], found[1]["done"]
        for name in ("hits", "places", "used"):
            getattr(self.top, name).view(np.uint8)[:] = arrays[name]
        texts = Texts(arrays["bytes"], arrays["offsets"])
        self.texts = dict(zip(arrays["numbers"].tolist(), texts, strict=True))

    def merge(self, part: Search) -> None:
        """Add the hits of a search of the next passages; its lists may be longer."""
        for numbers in (part.top.places["passage"], part.top.hits["latest"]):
            numbers[numbers >= 0] += self.done
        merge(self.top, part.top, np.arange(len(self.queries)), self.config.distinct)
        self.texts |= {self.done + number: text for number, text in part.texts.items()}
        self.only_wanted()
        self.done += part.done

    def add(self, texts: Sequence[str], base: int) -> None:
        """Search a block of passages numbered from ``base``; blocks come in order."""
        self.add_cut(*self.source.cut(texts, self.config.threads), base)

    def add_cut(self, matrix: np.ndarray, cut: Cut, base: int) -> None:
        """Search passages that are already cut, like :meth:`add`."""
        config = self.config
        floors = self._floors()
        open_ = np.flatnonzero(~is_closed.py_func(floors, config.distinct))
        self.spans += _count_spans(cut.texts, config.min_size, config.max_size) * len(self.queries)
        if not len(open_):
            return
        found, block = self._prepare(matrix, cut)
        used, parts = matrix[found.pieces], _even_parts(cut.texts, config.threads)

        def measure(start: int, stop: int) -> None:
            measure_spans(matrix, block, start, stop, config.min_size, config.max_size)

        parallel_for(measure, len(cut), max(1, len(cut) // (8 * config.threads)), config.threads)
        codes = np.empty((len(block.row_inverse), LANES), np.uint8)
        for start in range(0, len(open_), LANES):
            batch = open_[start : start + LANES]
            pieces = products(used, self.queries[batch], threads=config.threads)
            table = np.empty((len(codes), len(batch)), np.float32)
            words = partial(spell, pieces, found.ids, found.offsets, block.row_inverse, table, codes)
            over_blocks(words, len(codes), config.threads)
            task = Task(
                len(batch),
                floors[batch],
                np.full(len(batch), NONE, np.float32),
                config.min_size,
                config.max_size,
                config.distinct,
                base,
            )
            self._offer(table, codes, block, parts, task, batch)

    def _floors(self) -> np.ndarray:
        """Return the score that a span must exceed to enter each query's list, float32 (n,); 4 for a zero vector."""
        # Ties go to the earlier passage, so a later one must score higher; to be counted only, it may score the same.
        last = self.top.of_hits("score")[:, -1] - (SLACK if self.config.distinct else np.float32(0.0))
        floors = np.maximum(last, self._floor)  # a list that is not full ends in scores below all others
        floors[~self.queries.any(1)] = np.float32(4.0)
        return floors

    def _prepare(self, matrix: np.ndarray, cut: Cut) -> tuple[Distinct, Block]:
        """Return the distinct words, and the block, not yet measured."""
        config, words, tiles = self.config, len(cut.words) - 1, tiles_of(cut.texts)
        found = distinct_words(cut.ids, cut.words, len(matrix))
        block = Block(
            names=cut.ids,
            words=cut.words,
            rows=found.rows,
            texts=cut.texts,
            tiles=tiles,
            inverse=np.empty(words * (config.max_size - config.min_size + 1) + TILE, np.float32),
            row_inverse=np.zeros(len(found.offsets) - 1, np.float32),
            row_lengths=np.zeros(len(found.offsets) - 1, np.float32),
            levels=np.empty((int(tiles[-1]), -(-TILE // words_of_part(config.max_size))), np.uint8),
        )
        block.inverse[-TILE:] = 0.0  # read without effect
        return found, block

    def _offer(
        self,
        table: np.ndarray,
        codes: np.ndarray,
        block: Block,
        parts: list[tuple[int, int]],
        task: Task,
        queries: np.ndarray,
    ) -> None:
        """Search a block of passages for some queries; each thread fills its own lists, which are then merged."""
        config = self.config
        found = [Top.empty(len(queries), config.k, self.top.examples) for _ in parts]
        tasks: list[Callable[[], tuple[int, int]]] = [
            partial(search_block, table, codes, block, a, b, task, own) for (a, b), own in zip(parts, found, strict=True)
        ]
        for seen, scored in run(tasks, config.threads):
            self.pairs += seen
            self.scored += scored
        for own in found:
            merge(self.top, own, queries, config.distinct)


def _blocks(passages: Iterator[str], characters: int) -> Iterator[list[str]]:
    """Cut a stream into lists of about ``characters`` characters, at places that depend only on the passages."""
    block: list[str] = []
    collected = 0
    for passage in passages:
        block.append(passage)
        collected += len(passage) + 1
        if collected >= characters:
            yield block
            block, collected = [], 0
    if block:
        yield block


def _even_parts(texts: np.ndarray, parts: int) -> list[tuple[int, int]]:
    """Cut passages into at most ``parts`` runs with about the same number of words."""
    bounds = np.searchsorted(texts, texts[-1] * np.arange(1, parts) / parts)
    edges = [0, *bounds.tolist(), len(texts) - 1]
    return [(a, b) for a, b in pairwise(edges) if a < b]


def _count_spans(texts: np.ndarray, min_size: int, max_size: int) -> int:
    words = np.diff(texts)
    most = np.minimum(words, max_size)
    sizes = np.maximum(most - min_size + 1, 0)
    return int((sizes * (words + 1) - sizes * (min_size + np.maximum(most, min_size)) // 2).sum())
