"""Step 1 of the papers: static vectors as means of a teacher's token states over real sentences (EN paper 3.1).

Every sentence is encoded once and harvested for all the units it was chosen for, whereas the reference implementation
encodes it again for each (unit, sentence) pair. Units and the teacher's tokens are matched by character offsets: a unit's
state in a sentence is the mean over the tokens that overlap its first occurrence there, whatever the two tokenisations.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numba import njit

from xswe.corpus.contexts import Contexts
from xswe.io.compiler import LEAN
from xswe.io.files import fingerprint, write_json
from xswe.io.parallel import alongside
from xswe.io.ragged import Texts
from xswe.io.settings import check_choice, for_all
from xswe.model.folder import load_units
from xswe.progress import bar
from xswe.teacher.protocol import States, Teacher
from xswe.text.units import Units
from xswe.training.shared_teacher import SharedTeacher
from xswe.training.stages import OMIT_DEFAULT
from xswe.work.config import LOCAL, ExecutionConfig
from xswe.work.once import once
from xswe.work.run import OPENED, map_shards
from xswe.work.stage import Advancing, Job, Made, Stage

logger = logging.getLogger(__name__)
Merge = Literal["average", "frequency", "separate"]
_BY_FREQUENCY = for_all(Merge, {"average": False, "frequency": True, "separate": False})
SEPARATE = for_all(Merge, {"average": False, "frequency": False, "separate": True})
Shared = Literal["contexts", "vocabulary"]
BY_VOCABULARY = for_all(Shared, {"contexts": False, "vocabulary": True})


@dataclass(frozen=True)
class ExtractConfig:
    """Settings of the extraction.

    Attributes:
        merge: a unit shared by several languages gets the ``average`` of its means in each language (the reference code),
            their mean weighted by the unit's ``frequency`` in each language, or a separate vector in each language
            (``separate``).
        shared: for ``merge``, a word belongs to the languages that have ``contexts`` of it, or to those that have it among
            the most frequent words of their own ``vocabulary`` (the reference code); other languages then give it no
            contexts. Sub-words have only one vocabulary, so their contexts decide.
        isolated: a unit without any context sentence gets the teacher's state of the unit alone; otherwise it stays zero.
    """

    merge: Merge = "frequency"
    shared: Shared = field(default="contexts", metadata=OMIT_DEFAULT)
    isolated: bool = True

    def __post_init__(self) -> None:
        check_choice("extract.merge", self.merge, Merge)
        check_choice("extract.shared", self.shared, Shared)


@dataclass(frozen=True, eq=False)
class LanguageSample:
    """The input of the extraction for one language."""

    code: str  # the language
    texts: Texts  # the chosen sentences only, in the order of ``contexts.sentences``
    contexts: Contexts  # which units each sentence represents
    counts: np.ndarray  # int64 (units,), occurrences of each unit in the language's corpus


@dataclass(frozen=True, eq=False)
class Extraction:
    """The result of the extraction."""

    # float32 (units, d), the mean states; zero for a unit that was not found. With ``separate`` the languages' tables are
    # stacked; a unit missing in a language gets the mean of the others
    matrix: np.ndarray
    contexts: np.ndarray  # int64 (rows,), number of sentences that each row is the mean of
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
    places: np.ndarray,
    sums: np.ndarray,
    counts: np.ndarray,
) -> None:
    """Add the state of each wanted unit's first occurrence to its sum; sentences, tokens and units are in text order.

    ``done``, uint8 zeros, one for each wanted unit of each sentence, is set to 1 for units found; ``places`` has the row of
    each unit in ``sums``.
    """
    width = hidden.shape[1]
    for i in range(len(offsets) - 1):
        first = offsets[i]
        for u in range(unit_offsets[i], unit_offsets[i + 1]):
            slot, high = wanted_offsets[i], wanted_offsets[i + 1]
            while slot < high:  # by hand: numpy's search takes as long to compile as the rest of this function
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
                continue  # beyond the teacher's maximum input length
            done[slot] = 1
            share, place = np.float32(1.0 / (last - first)), places[units[u]]
            for t in range(first, last):
                for j in range(width):
                    sums[place, j] += hidden[t, j] * share
            counts[place] += 1


class _Harvest:
    """Sums of the states of ``wanted_units``, distinct int32.

    ``arrays``: ``units``; ``sums``, float32 (n, width); ``counts``, int64 (n,), the number of sentences in each sum.
    """

    def __init__(self, wanted_units: np.ndarray, units: Units, width: int) -> None:
        self._units, self._places = units, np.zeros(len(units.tokens), np.int32)
        self._places[wanted_units] = np.arange(len(wanted_units), dtype=np.int32)
        self.arrays = {
            "units": wanted_units,
            "sums": np.zeros((len(wanted_units), width), np.float32),
            "counts": np.zeros(len(wanted_units), np.int64),
        }

    def harvest(self, states: States, texts: Texts, contexts: Contexts) -> int:
        """Add the states of a batch, and return its number of sentences."""
        located = self._units.exact.locate(texts.take(states.rows))
        wanted = contexts.bags.take(states.rows)
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
            self._places,
            self.arrays["sums"],
            self.arrays["counts"],
        )
        return len(states.rows)


_MIN_SHARD_SENTENCES, _MAX_SHARDS = 8192, 256  # minimum sentences per shard, and maximum shards per language


def shards_of(batches: Sequence[np.ndarray]) -> list[tuple[int, int]]:
    """Divide a language's batches into shards: (first, one past the last) batch of each.

    Each shard is summed separately, and the shards' sums are added in order, whoever computed them, so the vectors do not
    depend on who shared the work. Up to a few thousand sentences are one shard; the number of shards is bounded, because
    each may hold a sum for every unit.
    """
    ends = np.cumsum([len(rows) for rows in batches])
    if not len(ends):
        return []
    size = max(_MIN_SHARD_SENTENCES, -(-int(ends[-1]) // _MAX_SHARDS))
    wanted = np.arange(size, int(ends[-1]) + size, size)
    bounds = np.unique(np.minimum(np.searchsorted(ends, wanted) + 1, len(ends))).tolist()
    return list(pairwise([0, *bounds]))


@dataclass
class _Opened(Advancing):
    """The state of a worker: teacher, units, and each language's sentences with their contexts."""

    teacher: Teacher
    units: Units
    samples: Sequence[tuple[Texts, Contexts]]

    @cached_property
    def shards(self) -> list[tuple[int, list[np.ndarray]]]:
        """The language and the batches of each shard."""
        batches = [self.teacher.batches(texts) for texts, _ in self.samples]
        return [(n, each[first:last]) for n, each in enumerate(batches) for first, last in shards_of(each)]


@dataclass(frozen=True)
class ExtractJob(Job):
    """Sum the states of a shard's sentences."""

    folder: Path  # of the stage
    teacher: SharedTeacher
    languages: int
    heavy = True

    def open(self) -> _Opened:
        """Load the teacher and the units, and memory-map the sentences."""
        place = self.folder / OPENED
        samples = [(Texts.open(place, f"{n}-texts"), Contexts.open(place, f"{n}-contexts")) for n in range(self.languages)]
        return _Opened(self.teacher.load(), load_units(place), samples)

    def share(self, opened: _Opened) -> None:
        """Write the units and the sentences."""
        self.teacher.check()

        def write(place: Path) -> None:
            """Save what every worker needs: the units, and the samples with their contexts."""
            opened.units.save(place)
            write_json(place / "config.json", {"units": opened.units.settings})
            for number, (texts, contexts) in enumerate(opened.samples):
                texts.save(place, f"{number}-texts")
                contexts.save(place, f"{number}-contexts")

        once(self.folder / OPENED, self.teacher.identity, write)

    def compute(self, opened: _Opened, shard: int) -> Made:
        """Return the sums and counts of the units in the shard."""
        language, batches = opened.shards[shard]
        texts, contexts = opened.samples[language]
        rows = np.concatenate(batches)
        sums = _Harvest(np.unique(contexts.bags.take(rows).ids), opened.units, opened.teacher.dim)
        # A batch is harvested while the teacher encodes the next one.
        encoded = opened.teacher.states(texts, batches)
        with closing(alongside(lambda states: sums.harvest(states, texts, contexts), encoded)) as harvested:
            for sentences in harvested:
                opened.advance(sentences)
        made = {"language": np.full(1, language), **sums.arrays}
        return made, {"lines": len(rows), "sentences": len(rows)}


def sums_by_shard(
    teacher: Teacher,
    units: Units,
    samples: Sequence[LanguageSample],
    config: ExtractConfig,
    folder: Path,
    execution: ExecutionConfig = LOCAL,
) -> Sums:
    """Return the sums of the shards, language by language, for :func:`averaged`; long work is kept in the folder.

    With ``array`` all are complete when this returns, otherwise they are computed on demand. ConfigError: the workers of a
    cluster cannot load the teacher. Unfinished: with an array, the other tasks are not done yet.
    """
    folder, shared = folder.absolute(), SharedTeacher.of(teacher, execution)
    opened = _Opened(teacher, units, [(sample.texts, sample.contexts) for sample in samples])

    languages = [language for language, _ in opened.shards]
    # Batches come shortest first, so a language's last shard takes several times as long as its first.
    costs = [
        sum(int(opened.samples[language][0].sizes[rows].sum()) for rows in batches) for language, batches in opened.shards
    ]
    codes = [sample.code for sample in samples]
    sizes = [[int(sample.texts.offsets[-1]), len(sample.contexts.units)] for sample in samples]
    cut = [languages.count(number) for number in range(len(samples))]
    identity = fingerprint(teacher.identity, units.identity, codes, sizes, cut)
    job = ExtractJob(folder, shared, len(samples))
    stage = Stage(folder, "extract", len(costs), ".safetensors", job, identity)
    sentences = "sentence", sum(len(sample.texts) for sample in samples)
    means = _Means(len(units.tokens), teacher.dim, len(samples) if SEPARATE[config.merge] else 1)
    found = map_shards(stage, execution, opened=opened, progress=sentences, costs=costs, state=vars(means))
    return Sums(means, found)


_ROWS = 4096  # rows of a shard's sums added at a time


class _Means:
    """The sums of the current language, and the weighted means of the languages before it."""

    def __init__(self, units: int, width: int, tables: int = 1) -> None:
        self.sums, self.counts = np.zeros((units, width), np.float32), np.zeros(units, np.int64)
        self.total, self.weight = np.zeros((tables * units, width), np.float32), np.zeros(tables * units, np.float64)
        self.contexts = np.zeros(tables * units, np.int64)
        self.language = np.zeros((), np.int64)

    def add(self, units: np.ndarray, sums: np.ndarray, counts: np.ndarray) -> None:
        """Add the sums of a shard of the current language."""
        for start in range(0, len(units), _ROWS):
            block = slice(start, start + _ROWS)
            self.sums[units[block]] += sums[block]
        self.counts[units] += counts

    def close_language(self, corpus_counts: np.ndarray, merge: Merge) -> None:
        """Fold the current language's means into the total."""
        found = self.counts > 0
        weight = np.where(found, np.maximum(corpus_counts, 1) if _BY_FREQUENCY[merge] else 1.0, 0.0)
        share = (weight / np.maximum(self.counts, 1)).astype(np.float32)
        first = int(self.language) * len(self.sums) if SEPARATE[merge] else 0
        table = slice(first, first + len(self.sums))
        self.sums *= share[:, None]
        self.total[table] += self.sums
        self.weight[table] += weight
        self.contexts[table] += self.counts
        self.sums[:], self.counts[:] = 0.0, 0
        self.language += 1


class Sums(NamedTuple):
    """The sums of shards, and the totals to add them to."""

    means: _Means
    shards: Iterable[Mapping[str, np.ndarray]]


def averaged(
    teacher: Teacher,
    units: Units,
    samples: Sequence[LanguageSample],
    config: ExtractConfig,
    sums: Sums,
) -> Extraction:
    """Average the teacher's states of every unit over its context sentences, given the sums of all shards.

    The same inputs give the same bytes, interrupted or not, whoever did the work.
    """
    state = sums.means
    for arrays in sums.shards:
        while state.language < arrays["language"]:
            state.close_language(samples[int(state.language)].counts, config.merge)
        state.add(*(arrays[name] for name in ("units", "sums", "counts")))
    while state.language < len(samples):
        state.close_language(samples[int(state.language)].counts, config.merge)
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
    logger.info("extraction: %d sentences encoded once; one pass per (unit, sentence) pair would be %d", passes, reference)
    return Extraction(matrix, state.contexts, passes, reference)


def _fill_isolated(teacher: Teacher, units: Units, tables: np.ndarray, found: Any) -> None:
    """Set units without a context, in all tables, to the teacher's mean state of the unit alone."""
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
