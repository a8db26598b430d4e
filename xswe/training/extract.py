"""Step 1 of the papers: static vectors as means of a teacher's token states over real sentences (EN paper 3.1).

Every sentence is encoded once and harvested for all the units it was chosen for, where the reference implementation
encodes each (unit, sentence) pair anew. Units and the teacher's tokens meet by character offsets: a unit's state in a
sentence is the mean over the tokens that overlap its first occurrence there, whatever the two tokenisations are.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numba import njit

from xswe.corpus.contexts import Contexts
from xswe.io.compiler import LEAN
from xswe.io.parallel import alongside
from xswe.io.ragged import Bags, Texts
from xswe.io.settings import check_choice, for_all
from xswe.progress import bar, every
from xswe.teacher.protocol import States, Teacher
from xswe.text.units import Units
from xswe.training.stages import OFF
from xswe.work.checkpoint import load_checkpoint, save_checkpoint

logger = logging.getLogger(__name__)
Merge = Literal["average", "frequency", "separate"]
_WEIGHTED = for_all(Merge, {"average": False, "frequency": True, "separate": False})
SEPARATE = for_all(Merge, {"average": False, "frequency": False, "separate": True})
Shared = Literal["contexts", "vocabulary"]
BY_VOCABULARY = for_all(Shared, {"contexts": False, "vocabulary": True})


@dataclass(frozen=True)
class ExtractConfig:
    """Settings of the extraction.

    Attributes:
        merge: a unit that several languages share gets the ``average`` of its language means (the reference code),
            their mean weighted by the unit's ``frequency`` in each language, or a vector of its own in each language
            (``separate``).
        shared: for ``merge``, a word is one of those languages that have ``contexts`` of it, or whose own
            ``vocabulary`` of most frequent words it is in (the reference code); the others then give it no contexts.
            Sub-words have but one vocabulary, and are shared by their contexts.
        isolated: a unit without any context sentence gets the teacher's state of the unit alone; otherwise zero.
    """

    merge: Merge = "frequency"
    shared: Shared = field(default="contexts", metadata=OFF)
    isolated: bool = True

    def __post_init__(self) -> None:
        check_choice("extract.merge", self.merge, Merge)
        check_choice("extract.shared", self.shared, Shared)


@dataclass(frozen=True, eq=False)
class LanguageSample:
    """What extraction needs of one language."""

    code: str  # the language
    texts: Texts  # the chosen sentences only, in the order of ``contexts.sentences``
    contexts: Contexts  # which units each of them stands for
    counts: np.ndarray  # int64 (units,), how often each unit occurs in the language's corpus


@dataclass(frozen=True, eq=False)
class Extraction:
    """The outcome."""

    # float32 (units, d), the mean states; zero for a unit that was nowhere found. With ``separate`` the languages'
    # tables one under the other; a unit that a language lacks has the mean of the others there
    matrix: np.ndarray
    contexts: np.ndarray  # int64 (units,) or as many as the matrix has rows, sentences each vector is the mean of
    passes: int  # sentences encoded
    reference_passes: int  # sentences the reference implementation would encode for the same vectors


@njit(**LEAN)
def _harvest(
    hidden: np.ndarray,
    offsets: np.ndarray,
    starts: np.ndarray,
    ends: np.ndarray,
    units: np.ndarray,
    unit_offsets: np.ndarray,
    unit_starts: np.ndarray,
    unit_ends: np.ndarray,
    wanted: np.ndarray,
    wanted_offsets: np.ndarray,
    done: np.ndarray,
    sums: np.ndarray,
    counts: np.ndarray,
) -> None:
    """Add the state of each wanted unit's first occurrence to its sum; sentences, tokens and units in text order.

    ``done``, uint8 zeros, one a wanted unit of each sentence, receives 1 for those found.
    """
    width = hidden.shape[1]
    for i in range(len(offsets) - 1):
        first = offsets[i]
        for u in range(unit_offsets[i], unit_offsets[i + 1]):
            slot, high = wanted_offsets[i], wanted_offsets[i + 1]
            while slot < high:  # numpy's search takes as long to compile as all else here
                middle = (slot + high) // 2
                if wanted[middle] < units[u]:
                    slot = middle + 1
                else:
                    high = middle
            if slot == wanted_offsets[i + 1] or wanted[slot] != units[u] or done[slot]:
                continue
            while first < offsets[i + 1] and ends[first] <= unit_starts[u]:
                first += 1
            last = first
            while last < offsets[i + 1] and starts[last] < unit_ends[u]:
                last += 1
            if last == first:
                continue  # beyond the teacher's longest input
            done[slot] = 1
            share = np.float32(1.0 / (last - first))
            for t in range(first, last):
                for j in range(width):
                    sums[units[u], j] += hidden[t, j] * share
            counts[units[u]] += 1


def harvest_batch(
    states: States, units: Units, texts: Texts, contexts: Contexts, sums: np.ndarray, counts: np.ndarray
) -> None:
    """Harvest one batch of token states."""
    located = units.exact.locate(texts.take(states.rows))
    wanted = Bags(contexts.units, contexts.offsets).take(states.rows)
    _harvest(
        states.hidden,
        states.offsets,
        states.starts,
        states.ends,
        located.bags.ids,
        located.bags.offsets,
        located.starts,
        located.ends,
        wanted.ids,
        wanted.offsets,
        np.zeros(len(wanted.ids), np.uint8),
        sums,
        counts,
    )


_LEAST, _MOST = 8192, 256  # sentences of a shard, and shards of a language


def shards_of(batches: Sequence[np.ndarray]) -> list[tuple[int, int]]:
    """Cut a language's batches into shards: (first, one past the last) batch of each.

    The states of a shard are summed by themselves, and the shards' sums in order, whoever made them: so the vectors do not
    depend on how many shared the work. Up to a few thousand sentences are one shard; beyond, the number is bounded, for
    each may leave a sum a unit.
    """
    ends = np.cumsum([len(rows) for rows in batches])
    if not len(ends):
        return []
    size = max(_LEAST, -(-int(ends[-1]) // _MOST))
    wanted = np.arange(size, int(ends[-1]) + size, size)
    bounds = np.unique(np.minimum(np.searchsorted(ends, wanted) + 1, len(ends))).tolist()
    return list(pairwise([0, *bounds]))


class _Progress:
    """The state of an extraction: sums of the current shard and language, and the weighted means of those before it."""

    def __init__(self, units: int, width: int, tables: int = 1) -> None:
        self.sums, self.counts = np.zeros((units, width), np.float32), np.zeros(units, np.int64)
        self.earlier = np.zeros((units, width), np.float32)  # of the language's shards before this one
        self.total, self.weight = np.zeros((tables * units, width), np.float32), np.zeros(tables * units, np.float64)
        self.contexts = np.zeros(tables * units, np.int64)
        self.language, self.batch = 0, 0

    def close_shard(self) -> None:
        """Add the sums of the current shard to those of the language."""
        self.earlier += self.sums
        self.sums[:] = 0.0

    def close_language(self, corpus_counts: np.ndarray, merge: Merge) -> None:
        """Fold the current language's means into the total."""
        found = self.counts > 0
        weight = np.where(found, np.maximum(corpus_counts, 1) if _WEIGHTED[merge] else 1.0, 0.0)
        share = (weight / np.maximum(self.counts, 1)).astype(np.float32)
        first = self.language * len(self.sums) if SEPARATE[merge] else 0
        table = slice(first, first + len(self.sums))
        self.total[table] += self.earlier * share[:, None]
        self.weight[table] += weight
        self.contexts[table] += self.counts
        self.earlier[:], self.counts[:] = 0.0, 0
        self.language, self.batch = self.language + 1, 0

    def save(self, path: Path, identity: str) -> None:
        tensors = {name: getattr(self, name) for name in ("sums", "earlier", "counts", "total", "weight", "contexts")}
        where = f"after batch {self.batch:,} of language {self.language + 1} of the extraction"
        save_checkpoint(path, identity, tensors, {"language": self.language, "batch": self.batch}, where)

    def restore(self, path: Path | None, identity: str) -> None:
        if (found := load_checkpoint(path, identity)) is None:
            return
        for name, value in found[0].items():
            setattr(self, name, value)
        self.language, self.batch = found[1]["language"], found[1]["batch"]
        logger.info("resuming the extraction in language %d at batch %d", self.language, self.batch)


def extract(
    teacher: Teacher,
    units: Units,
    samples: Sequence[LanguageSample],
    config: ExtractConfig,
    *,
    checkpoint: Path | None = None,
    identity: str = "",
) -> Extraction:
    """Average the teacher's states of every unit over its context sentences, in this process.

    Args:
        teacher: the encoder.
        units: what gets a vector.
        samples: the context sentences of each language.
        config: the settings.
        checkpoint: a file to save the sums to now and then, and to resume from.
        identity: names the inputs; a checkpoint of another identity is not resumed.

    Returns:
        The vectors. The same inputs give the same bytes, interrupted or not, and as by
        :func:`xswe.training.extract_shards.extract_by_shards`.
    """
    state = _Progress(len(units.tokens), teacher.dim, len(samples) if SEPARATE[config.merge] else 1)
    state.restore(checkpoint, identity)
    due = every()
    while state.language < len(samples):
        sample = samples[state.language]
        batches = teacher.batches(sample.texts)
        done = sum(len(rows) for rows in batches[: state.batch])
        ends = {last for _, last in shards_of(batches)}

        def harvest(states: States, sample: LanguageSample = sample, ends: set[int] = ends) -> int:
            harvest_batch(states, units, sample.texts, sample.contexts, state.sums, state.counts)
            state.batch += 1
            if state.batch in ends:
                state.close_shard()
            if checkpoint is not None and due():
                state.save(checkpoint, identity)
            return len(states.rows)

        # The teacher is never kept waiting: a batch is harvested, and a checkpoint written, while it works on the next.
        encoded = teacher.states(sample.texts, batches[state.batch :])
        with (
            bar(f"extract {sample.code}", len(sample.texts), "sentence", done) as progress,
            closing(alongside(harvest, encoded)) as harvested,
        ):
            for sentences in harvested:
                progress.update(sentences)
        state.close_language(sample.counts, config.merge)
    return _finished(state, teacher, units, samples, config)


def summed(
    teacher: Teacher,
    units: Units,
    samples: Sequence[LanguageSample],
    config: ExtractConfig,
    partial: Callable[[int], Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]],
) -> Extraction:
    """Make the vectors of the sums that others made of the shards.

    Args:
        teacher: for the units without contexts.
        units: what gets a vector.
        samples: the context sentences of each language.
        config: the settings.
        partial: given the number of a language, (units, sums, counts) of each of its shards, in order.
    """
    state = _Progress(len(units.tokens), teacher.dim, len(samples) if SEPARATE[config.merge] else 1)
    for number, sample in enumerate(samples):
        for found, sums, counts in partial(number):
            state.earlier[found] += sums
            state.counts[found] += counts
        state.close_language(sample.counts, config.merge)
    return _finished(state, teacher, units, samples, config)


def _finished(
    state: _Progress, teacher: Teacher, units: Units, samples: Sequence[LanguageSample], config: ExtractConfig
) -> Extraction:
    """Turn the sums of all languages into vectors, and fill up what has none."""
    separate = SEPARATE[config.merge]
    matrix = state.total / np.maximum(state.weight, 1e-30).astype(np.float32)[:, None]
    tables = matrix.reshape(-1, len(units.tokens), teacher.dim)
    found = (state.contexts > 0).reshape(tables.shape[:2])
    if separate:
        others = tables.sum(0) / np.maximum(found.sum(0), 1).astype(np.float32)[:, None]
        for table, own in zip(tables, found, strict=True):
            table[~own] = others[~own]
    if config.isolated:
        _fill_isolated(teacher, units, tables, np.any(found, axis=0))
    passes, reference = sum(len(s.texts) for s in samples), sum(s.contexts.reference_passes for s in samples)
    logger.info("extraction: %d sentences encoded once; one pass a (unit, sentence) pair would be %d", passes, reference)
    return Extraction(matrix, state.contexts, passes, reference)


def _fill_isolated(teacher: Teacher, units: Units, tables: np.ndarray, found: Any) -> None:
    """Give units without a context, in all tables, the teacher's mean state of the unit alone."""
    tokens = units.tokens
    missing = np.array([i for i in np.flatnonzero(~found) if tokens[i].replace("▁", " ").strip()], np.int64)
    texts = Texts.of(tokens[i].replace("▁", " ").strip() for i in missing)
    with bar("extract units alone", len(texts), "unit") as progress:
        for states in teacher.states(texts, teacher.batches(texts)):
            for k, row in enumerate(states.rows):
                own = states.hidden[states.offsets[k] : states.offsets[k + 1]]
                if len(own):
                    tables[:, missing[row]] = own.mean(0)
            progress.update(len(states.rows))


_TELLING = 100_000  # texts whose vectors tell the mean of all
_NARROW = 0.5  # mean cosine of two texts from which on a table that imitates it was seen to lose


@dataclass(frozen=True, eq=False)
class RowVectors:
    """Vectors of many texts of which some are equal."""

    vectors: np.ndarray  # float16 (distinct texts, e), unit vectors
    index: np.ndarray  # int64 (n,), which of them each text has
    # float32 (e,), what is taken off each vector before it is given norm 1 again; None for nothing
    centre: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.index)

    def __getitem__(self, rows: np.ndarray) -> np.ndarray:
        found = np.asarray(self.vectors[self.index[rows]], np.float32)
        if self.centre is None:
            return found
        found -= self.centre
        found /= np.maximum(np.linalg.norm(found, axis=1, keepdims=True), np.float32(1e-12))
        return found

    def mean(self) -> np.ndarray:
        """Return the mean of the distinct texts' vectors, or of evenly spread ones of very many, float32 (e,)."""
        step = -(-len(self.vectors) // _TELLING) or 1
        return np.asarray(np.mean(self.vectors[::step], axis=0, dtype=np.float64), np.float32)


def as_imitated(vectors: Mapping[str, Sequence[RowVectors]], centred: bool) -> dict[str, list[RowVectors]]:
    """Return a teacher's vectors as they are imitated: with their mean taken off, if ``centred``.

    Args:
        vectors: by part of the corpus; all share one array.
        centred: see :class:`~xswe.training.objective.Objective`.
    """
    if not (some := next((one for part in vectors.values() for one in part), None)):
        return {}
    mean = some.mean()
    if not centred:
        if (cosine := float(mean @ mean)) > _NARROW:
            logger.warning(
                "the imitated encoder finds any two sentences alike (cosine %.2f on average); so will the table, and be "
                "the worse for it: try objective.distillation_centred=true",
                cosine,
            )
        return {part: list(of_part) for part, of_part in vectors.items()}
    return {part: [replace(one, centre=mean) for one in of_part] for part, of_part in vectors.items()}
