"""The search of passages, block by block, for blocks of queries, and its state.

Words and their vectors come from static models, or are the token states of encoders.
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
from xswe.phrases.kernels.scoring import NONE, SLACK, Task, is_closed, search_block
from xswe.phrases.kernels.top import Distinct, Top, distinct_words, merge
from xswe.teacher.protocol import Teacher
from xswe.text.spans import Cut, cut_texts, make_cutter, places_of, words_at
from xswe.work.checkpoint import load_checkpoint, save_checkpoint


class WordSource(Protocol):
    """Turns texts into words with vectors."""

    @property
    def identity(self) -> list[object]:
        """All that decides the results, as JSON values."""

    def cut(self, texts: Sequence[str], threads: int) -> tuple[np.ndarray, Cut]:
        """Cut texts; returns the float32 (rows, d) table that the cut's ids point into, and the cut."""

    def places(self, texts: Sequence[str]) -> list[np.ndarray]:
        """Return where the words of each text stand: int32 (words, 2), first character and one past the last."""

    def queries(self, texts: Sequence[str]) -> np.ndarray:
        """Unit vectors of phrases, float32 (n, d); zero where nothing is known."""


def open_words(model: AnyModel | WordSource) -> WordSource:
    """Return a model as a source of words; ModelError: it is an ensemble, whose parts cut texts each in its own way."""
    if isinstance(model, Ensemble):
        raise ModelError("an ensemble, where one table of vectors is needed; give one of its parts, as in model.parts[0]")
    return StaticWords(model) if isinstance(model, StaticModel) else model


def load_words(which: str, threads: int) -> WordSource:
    """Load a model by its name as a source of words; ``teacher:NAME`` is an encoder, whose token states are then used."""
    if not which.startswith("teacher:"):
        return StaticWords(load_single(locate(which)))
    from xswe.teacher.protocol import TeacherConfig
    from xswe.teacher.transformer import load_teacher

    return TeacherWords(load_teacher(TeacherConfig.named(which.removeprefix("teacher:"), threads)))


class StaticWords:
    """The words of a static embedding."""

    def __init__(self, model: StaticModel) -> None:
        # Bigrams do not count in a span: it is the sum of its words.
        self.matrix = np.ascontiguousarray(model.vectors[: len(model.units)], np.float32)
        self._cutter = make_cutter(model.units)
        self.model = model

    def words(self) -> list[str]:
        """Return the model's units that are words, as they are looked up: how they are shown decides no result."""
        return list(self.model.plain_words)

    @property
    def identity(self) -> list[object]:
        """The model's."""
        return [self.model.identity]

    def cut(self, texts: Sequence[str], threads: int = 1) -> tuple[np.ndarray, Cut]:
        """Cut texts; the table is the model's."""
        return self.matrix, cut_texts(self._cutter, texts, threads)

    def places(self, texts: Sequence[str]) -> list[np.ndarray]:
        """Return where the words of each text stand, int32 (words, 2)."""
        return self._cutter.places(texts)

    def queries(self, texts: Sequence[str]) -> np.ndarray:
        """Unit vectors of phrases, float32 (n, d)."""
        return pool(self.matrix, self.cut(texts)[1].bags, normalise=True)


class TeacherWords:
    """The words of a teacher's single pass (SLICE 3): a word's vector is the sum of its token states."""

    block_characters = 100_000  # a state a token is kept, so blocks are smaller than a static model's
    in_context = True

    def __init__(self, teacher: Teacher) -> None:
        self.teacher = teacher
        self._places: dict[str, np.ndarray] = {}  # of the last texts cut, to save them a second pass

    @property
    def identity(self) -> list[object]:
        """The teacher."""
        return ["tokens", self.teacher.identity]

    def cut(self, texts: Sequence[str], threads: int = 1) -> tuple[np.ndarray, Cut]:
        """Run the teacher once over each text; every token's state is a row of the table."""
        rows: list[np.ndarray] = [np.zeros((0, self.teacher.dim), np.float32)] * len(texts)
        groups: list[list[tuple[int, int]]] = [[] for _ in texts]
        self._places = {}
        for row, hidden, found in self._words(texts):
            self._places[texts[row]] = places_of(found)
            kept = [t for first, last, _, _ in found for t in range(first, last)]
            rows[row], groups[row] = hidden[kept], [(first, last) for first, last, _, _ in found]
        words = bounds_of([last - first for group in groups for first, last in group])
        ends = bounds_of([len(group) for group in groups])
        matrix = np.concatenate(rows) if rows else np.zeros((0, self.teacher.dim), np.float32)
        return np.ascontiguousarray(matrix), Cut(np.arange(len(matrix), dtype=np.int32), words, ends)

    def places(self, texts: Sequence[str]) -> list[np.ndarray]:
        """Return where the words of each text stand, int32 (words, 2)."""
        found = {text: self._places[text] for text in texts if text in self._places}
        rest = [text for text in texts if text not in found]
        found |= {rest[row]: places_of(words) for row, _, words in self._words(rest)}
        return [found.get(text, places_of([])) for text in texts]

    def queries(self, texts: Sequence[str]) -> np.ndarray:
        """Mean token states of phrases, scaled to norm 1, float32 (n, d)."""
        matrix, cut = self.cut(texts)
        return (
            pool(matrix, cut.bags, normalise=True) if len(matrix) else np.zeros((len(texts), self.teacher.dim), np.float32)
        )

    def _words(self, texts: Sequence[str]) -> Iterator[tuple[int, np.ndarray, list[tuple[int, int, int, int]]]]:
        """Yield the row, the token states, and the words (see :func:`words_at`) of each text that is not blank."""
        filled = [i for i, text in enumerate(texts) if text.strip()]
        some = [texts[i] for i in filled]
        for states in self.teacher.states(some, self.teacher.batches(some)) if some else ():
            for k, place in enumerate(states.rows.tolist()):
                a, b = states.offsets[k], states.offsets[k + 1]
                yield filled[place], states.hidden[a:b], words_at(some[place], states.starts[a:b], states.ends[a:b])


MOST_WORDS = 1000  # of a span: the room that a thread measures spans in grows with the square
_MOST_BYTES = 1 << 34  # of all lists together
_CHARACTERS = 2_000_000  # of passages a block, at spans of up to 20 words; what is kept of each span bounds the memory


@dataclass(frozen=True)
class SpanConfig:
    """Settings of the search of spans.

    Attributes:
        min_size: words of the shortest span.
        max_size: words of the longest.
        k: hits a query.
        min_score: least cosine of a hit; None for 0, and where terms are sought for what random phrases reach.
        distinct: one hit for equal phrases, with a count; else every place is a hit of its own.
        examples: with ``distinct``, places kept of each phrase.
        threads: how many threads share the passages.
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
            raise ConfigError(f"max_size={self.max_size}: spans of up to {MOST_WORDS} words can be searched for")
        if min(self.k, self.examples, self.threads) < 1:
            raise ConfigError("k, examples and threads are at least 1")
        if not -1 <= (self.min_score or 0.0) <= 1:
            raise ConfigError(f"min_score={self.min_score}: a cosine is between -1 and 1")


class Search:
    """A search of passages, given in blocks, for a set of queries.

    Args:
        source: cuts texts into words with vectors.
        queries: float32 (n, d), unit vectors; a zero vector finds nothing.
        config: the settings.

    Raises:
        ConfigError: the lists would be too large, or ``distinct`` is asked of words whose vectors depend on their context.

    Attributes:
        top: the best hits so far.
        texts: the passages that hold one, by their number.
        done: how many passages have been searched.
        spans: how many spans were scored or ruled out, counted once for each query.
        pairs: how many pairs of a passage's tile and a query were looked at.
        scored: in how many of them spans were scored.
    """

    def __init__(self, source: WordSource, queries: np.ndarray, config: SpanConfig) -> None:
        self.source, self.config = source, config
        self.queries = np.ascontiguousarray(queries, np.float32)
        if config.distinct and getattr(source, "in_context", False):
            raise ConfigError(
                "equal phrases are counted where their vectors are equal, in a static model; an encoder gives each place "
                "its own vector: search for places (mode=phrases)"
            )
        if (size := len(queries) * config.k * (40 + 16 * config.examples)) > _MOST_BYTES:
            raise ConfigError(f"k={config.k}: the lists of {len(queries)} queries would take {size >> 30} GiB")
        self.top = Top.empty(len(queries), config.k, config.examples if config.distinct else 1)
        self.texts: dict[int, str] = {}
        self.done = self.spans = self.pairs = self.scored = 0
        # The least float32 that counts as min_score or more; nothing enters a list at or below the number before it.
        self._floor = np.nextafter(np.float32(config.min_score or 0.0), np.float32(-4.0)) - np.float32(1e-7)

    def read(self, passages: Iterable[str]) -> Iterator[int]:
        """Search the passages after the first :attr:`done`; yields the number done after each block."""
        size = min(getattr(self.source, "block_characters", _CHARACTERS), 20 * _CHARACTERS // self.config.max_size)
        for block in _blocks(islice(iter(passages), self.done, None), size):
            self.add(block, self.done)
            self.texts |= {self.done + i: text for i, text in enumerate(block)}
            self.only_wanted()
            self.done += len(block)
            yield len(block)

    def only_wanted(self) -> None:
        """Drop the passages that hold no hit."""
        wanted = set(self.top.places["passage"].tolist())
        self.texts = {number: text for number, text in self.texts.items() if number in wanted}

    def save(self, path: Path, identity: str) -> None:
        """Write the state atomically; ``identity`` identifies the search."""
        packed = Texts.of(self.texts.values())
        arrays = {name: getattr(self.top, name).view(np.uint8) for name in ("hits", "places", "used")}
        arrays |= {"numbers": np.array(list(self.texts), np.int64), "bytes": packed.data, "offsets": packed.offsets}
        where = f"after {self.done:,} passages" if identity else ""  # that of a shard is no place to go on from
        save_checkpoint(path, identity, arrays, {"done": self.done}, where)

    def restore(self, path: Path, identity: str) -> None:
        """Load what :meth:`save` wrote, if it is there and of the same search."""
        if (found := load_checkpoint(path, identity)) is None:
            return
        arrays, self.done = found[0], found[1]["done"]
        for name in ("hits", "places", "used"):
            getattr(self.top, name).view(np.uint8)[:] = arrays[name]
        texts = Texts(arrays["bytes"], arrays["offsets"])
        self.texts = dict(zip(arrays["numbers"].tolist(), texts, strict=True))

    def merge(self, part: Search) -> None:
        """Add the hits of a search of the passages that follow; its settings may keep more."""
        for numbers in (part.top.places["passage"], part.top.hits["latest"]):
            numbers[numbers >= 0] += self.done
        merge(self.top, part.top, np.arange(len(self.queries)), self.config.distinct)
        self.texts |= {self.done + number: text for number, text in part.texts.items()}
        self.only_wanted()
        self.done += part.done

    def add(self, texts: Sequence[str], base: int) -> None:
        """Search a block of passages, whose first one has the number ``base``; blocks come in order."""
        self.add_cut(*self.source.cut(texts, self.config.threads), base)

    def add_cut(self, matrix: np.ndarray, cut: Cut, base: int) -> None:
        """The same for passages that are cut already."""
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
            some = open_[start : start + LANES]
            pieces = products(used, self.queries[some], threads=config.threads)
            table = np.empty((len(codes), len(some)), np.float32)
            words = partial(spell, pieces, found.ids, found.offsets, block.row_inverse, table, codes)
            over_blocks(words, len(codes), config.threads)
            task = Task(
                len(some),
                floors[some],
                np.full(len(some), NONE, np.float32),
                config.min_size,
                config.max_size,
                config.distinct,
                base,
            )
            self._offer(table, codes, block, parts, task, some)

    def _floors(self) -> np.ndarray:
        """Return the score that a span must exceed to enter each query's list, float32 (n,); 4 for a zero vector."""
        full = self.top.used == self.config.k
        # Of equal scores the earlier passage wins, so a later one must be above; to be counted, it may be as high.
        last = self.top.of_hits("score")[:, -1] - (SLACK if self.config.distinct else np.float32(0.0))
        floors = np.where(full, np.maximum(last, self._floor), self._floor).astype(np.float32)
        floors[~self.queries.any(1)] = np.float32(4.0)
        return floors

    def _prepare(self, matrix: np.ndarray, cut: Cut) -> tuple[Distinct, Block]:
        """Return the distinct words, and the block before it is measured."""
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
        block.inverse[-TILE:] = 0.0  # read, but of no consequence
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
        """Search a block of passages for some queries; each thread fills lists of its own, put together after."""
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
    """Cut a stream into lists of about ``characters`` characters, at places that depend on the passages only."""
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
    """Cut passages into at most ``parts`` runs of about as many words."""
    bounds = np.searchsorted(texts, texts[-1] * np.arange(1, parts) / parts)
    edges = [0, *bounds.tolist(), len(texts) - 1]
    return [(a, b) for a, b in pairwise(edges) if a < b]


def _count_spans(texts: np.ndarray, min_size: int, max_size: int) -> int:
    words = np.diff(texts)
    most = np.minimum(words, max_size)
    sizes = np.maximum(most - min_size + 1, 0)
    return int((sizes * (words + 1) - sizes * (min_size + np.maximum(most, min_size)) // 2).sum())
