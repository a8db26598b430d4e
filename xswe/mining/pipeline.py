"""The mining pipeline: from the sentences of two sides to pairs of translations, in resumable steps."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from xswe.bitext.output import Format
from xswe.bitext.texts import TextSource
from xswe.errors import ConfigError, InputError
from xswe.io.arguments import check_finite
from xswe.io.files import fingerprint, read_json
from xswe.io.lines import OnError, Skipped, left_out_of
from xswe.io.locks import locked
from xswe.io.settings import check_choice, refuse_unused
from xswe.mining.evidence import Evidence, evidence_of
from xswe.mining.gold import GoldSearch, gold_scores, on_gold, read_gold
from xswe.mining.hard_rules import FilterConfig, filter_candidates
from xswe.mining.margin import SCORINGS, Pairs, Score, Selection, score_candidates, select
from xswe.mining.rerank import rerank_pairs
from xswe.mining.share import Parallel, estimate_parallel
from xswe.mining.side import Side, SideConfig, prepare_side
from xswe.mining.threshold import (
    LEAST_PAIRS,
    PrecisionEstimate,
    Threshold,
    check_found,
    estimate_from_decoys,
    estimate_from_likelihoods,
    near_duplicate_note,
    with_limits,
)
from xswe.mining.twins import Twins
from xswe.model.ensemble import AnyModel
from xswe.progress import took
from xswe.search.kernels import merge
from xswe.search.lists import Neighbours, SearchConfig
from xswe.search.neighbours import find_neighbours, neighbours_within
from xswe.search.rerank import Encoder
from xswe.search.vectors import Storage, Vectors, as_vectors, check_storage
from xswe.text.numbers import check_numbers_in_words
from xswe.work.config import LOCAL, ExecutionConfig
from xswe.work.folder import discard
from xswe.work.once import is_made, once

logger = logging.getLogger(__name__)
Lines = str | Sequence[str]  # the name of a file, or the lines themselves
_NO_ROWS = np.zeros(0, np.int64)


@dataclass(frozen=True)
class MineConfig:
    """How translations are mined.

    Attributes:
        score: how candidates are scored; see :mod:`xswe.mining.margin`.
        k: number of neighbours in the neighbourhood of a margin.
        select: ``max`` (one-to-one, greedy), ``intersection``, ``forward``, ``backward`` or ``kbest``.
        best: length of the lists of ``kbest``.
        threshold: ``auto`` (see :mod:`xswe.mining.threshold`; by ``gold`` if given), a number, or None for none;
            ``kbest`` has none unless it is a number.
        precision: with ``auto``: take the lowest threshold with at least this expected precision, instead of the best F1.
        gold: file of ``source<TAB>target`` pairs to calibrate on.
        min_score: pairs below are left out, whatever the threshold.
        rerank_share: maximum share of the lines that the reranker (``rerank=``) encodes.
        max_score: pairs above are left out: hubs and boilerplate collect at the very top.
        storage: type of the vectors in the work folder: ``float32``, ``float16`` or ``int8``.
        ids: lines are ``id<TAB>text``.
        split: cut files into sentences; None cuts any document, and no other file.
        languages: of source and target, for ``split`` and ``filters.script``.
        format: of the output; ``auto``: by its name.
        on_error: what to do with a damaged line: ``raise``, or ``skip`` (and count).
        neighbours: settings of the search for neighbours.
        filters: which lines and pairs are left out.
        keep: keep the work folder.
        evidence: keep evidence of how the run decided, for a report.
        execution: who searches for neighbours: this process, the tasks of a batch queue, or a cluster.
    """

    score: Score = "ratio"
    k: int = 4
    select: Selection = "max"
    best: int = 5
    threshold: Any = "auto"
    precision: float | None = None
    gold: str | None = None
    min_score: float | None = None
    max_score: float | None = None
    rerank_share: float = 0.05
    storage: Storage = "float32"
    ids: bool = False
    split: bool | None = None
    languages: tuple[str, ...] = ()
    format: Format = "auto"
    on_error: OnError = "raise"
    neighbours: SearchConfig = field(default_factory=SearchConfig)
    filters: FilterConfig = field(default_factory=FilterConfig)
    keep: bool = False
    evidence: bool = False
    execution: ExecutionConfig = LOCAL

    def __post_init__(self) -> None:
        check_choice("score", self.score, Score)
        check_storage(self.storage)
        check_choice("select", self.select, Selection)
        check_found(self)
        for name in ("min_score", "max_score"):
            if getattr(self, name) != getattr(self, name):
                raise ConfigError(f"{name}=nan: give a number, or null for none")
        if self.k < 1 or self.best < 1:
            raise ConfigError("k and best must be at least 1")
        refuse_unused(self, {"without a margin as score": ("k",) if self.score == "cosine" else ()})
        refuse_unused(self, {"without select=kbest": () if self.select == "kbest" else ("best",)})
        if self.gold and not self.calibrates:
            raise ConfigError("gold= needs threshold=auto, and a selection other than kbest")
        if self.languages and len(self.languages) != 2:
            raise ConfigError(f"languages={list(self.languages)}: name the source's and the target's, as in [en,ja]")

    @property
    def calibrates(self) -> bool:
        """Whether the threshold is found automatically."""
        return self.threshold == "auto" and self.select != "kbest"

    @property
    def decoy_ranks(self) -> int:
        """How many times calibration selects decoys, each time leaving out one more of every line's best neighbours."""
        wanted = self.calibrates or (self.evidence and self.select != "kbest")
        return (2 if SCORINGS[self.score].decoy_correction else 1) if wanted else 0

    @property
    def depth(self) -> int:
        """Number of candidates of a line."""
        return max(self.k, self.best if self.select == "kbest" else 1)


@dataclass(frozen=True, eq=False)
class Mined:
    """The result of mining.

    Attributes:
        pairs: in output order, as rows of the sides.
        threshold: the threshold that was applied.
        selected: pairs before any threshold.
        ruled_out: candidate pairs that each pair filter ruled out.
        evidence: for a report; None unless requested.
    """

    pairs: Pairs
    threshold: Threshold
    selected: Pairs
    ruled_out: dict[str, int] = field(default_factory=dict)
    evidence: Evidence | None = None

    @property
    def quantiles(self) -> list[float]:
        """Scores of the pairs at 0, 5, 25, 50, 75, 95 and 100 %; empty without pairs."""
        points = (0, 0.05, 0.25, 0.5, 0.75, 0.95, 1)
        return [float(q) for q in np.quantile(self.pairs.scores, points)] if len(self.pairs) else []


@dataclass(frozen=True)
class SideReport:
    """Counts of one side: lines ``read`` and ``kept``, and lines ``dropped`` by reason.

    ``near`` is the share of near-duplicates of earlier lines among the first hundred thousand kept; ``left_out`` counts the
    parts of documents left out of their text.
    """

    read: int
    kept: int
    dropped: dict[str, int]
    near: float = 0.0
    left_out: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class MineReport:
    """The summary of a run.

    Attributes:
        source: lines of the source.
        target: lines of the target; None if lines of one side were mined.
        ruled_out: candidate pairs, counted from both sides, that each pair filter ruled out.
        selected: pairs before any threshold.
        kept: pairs returned.
        quantiles: scores of the kept pairs at 0, 5, 25, 50, 75, 95 and 100 %; empty without pairs.
        threshold: the threshold, or why there is none, as a sentence.
        seconds: time of each step.
    """

    source: SideReport
    target: SideReport | None
    ruled_out: dict[str, int]
    selected: int
    kept: int
    quantiles: list[float]
    threshold: str
    seconds: dict[str, float]

    def __str__(self) -> str:
        lines = []
        if self.target is None:
            lines.append("no target=: paraphrases and near-duplicates among the lines of source=, no translations")
        sides = {"lines": self.source} if self.target is None else {"source": self.source, "target": self.target}
        for name, side in sides.items():
            counts = f"{side.read:,} lines read, {side.kept:,} kept; dropped: {_listed(side.dropped) or 'none'}"
            counts += left_out_of(side.left_out) + (near_duplicate_note(side.near, "lines") if side.kept else "")
            lines.append(f"{name}: {counts}")
        if self.ruled_out:
            lines.append(f"candidate pairs ruled out: {_listed(self.ruled_out)}")
        lines += [self.threshold, f"pairs: {self.selected:,} selected, {self.kept:,} kept"]
        if self.quantiles:
            names = ("lowest", "5 %", "25 %", "median", "75 %", "95 %", "highest")
            shown = zip(names, self.quantiles, strict=True)
            lines.append("scores: " + ", ".join(f"{name} {value:.4f}" for name, value in shown))
        total = sum(self.seconds.values())
        steps = ", ".join(f"{name} {taken:.1f} s" for name, taken in self.seconds.items())
        fast = took(sum(side.read for side in sides.values()), total, "lines")
        return "\n".join([*lines, f"{fast} ({steps})"])


def _listed(counts: dict[str, int]) -> str:
    return ", ".join(f"{count:,} {reason}" for reason, count in sorted(counts.items()))


def report_of(sides: tuple[Side, Side], mined: Mined, seconds: dict[str, float]) -> MineReport:
    """Return the summary of a run."""
    source, other = (SideReport(side.read, len(side), side.dropped, side.near, side.left_out) for side in sides)
    target = None if sides[0] is sides[1] else other
    threshold = mined.threshold.sentence()
    if empty := [name for name, side in zip(("source", "target"), sides, strict=True) if not len(side)]:
        threshold = f"threshold: none, no lines of the {' and the '.join(empty)} are left"
        threshold = "threshold: none, no lines are left" if target is None else threshold
    elif not len(mined.selected):
        threshold = "threshold: none, no pairs are left"
    counts = len(mined.selected), len(mined.pairs)
    return MineReport(source, target, mined.ruled_out, *counts, mined.quantiles, threshold, seconds)


def _nearest(lists: Neighbours, count: int) -> Neighbours:
    arrays = (lists.forward, lists.forward_ids, lists.backward, lists.backward_ids)
    return Neighbours(*(array[:, :count] for array in arrays))


@dataclass(frozen=True, eq=False)
class _Selector:
    """Selects pairs among the neighbours of all lines, in both directions."""

    lists: Neighbours
    distinct: Neighbours  # the same without near-duplicates, for neighbourhoods and decoys
    config: MineConfig
    sides: tuple[Side, Side] | None  # None for no pair filters
    within: bool  # both sides are the same lines

    def select(self, how: Selection, skip: int = 0) -> tuple[Pairs, dict[str, int]]:
        """Select pairs without each line's best ``skip`` neighbours; also return how many candidates each filter drops."""
        lists, config = self.distinct if skip else self.lists, self.config
        part = _nearest(lists, config.depth + skip)
        candidates = score_candidates(part, config.score, config.k, skip, self.distinct)
        dropped: dict[str, int] = {}
        if self.sides is not None:
            source, target = (side.traits for side in self.sides)
            candidates, dropped = filter_candidates(candidates, config.filters, source, target)
        return select(candidates, how, config.best, self.within), dropped

    def pairs(self, how: Selection, skip: int = 0) -> Pairs:
        """Return the pairs of :meth:`select`."""
        return self.select(how, skip)[0]


def _estimated(pairs: Pairs, selector: _Selector, twins: Twins) -> tuple[PrecisionEstimate, Parallel | None]:
    """Estimate how many pairs are right from decoys."""
    config, lists = selector.config, selector.lists
    # One-to-one decoys resemble wrong pairs best, so the estimate uses one-to-one pairs whatever the selection.
    one_to_one = pairs if config.select == "max" else selector.pairs("max")
    decoys = [selector.pairs("max", rank) for rank in range(1, config.decoy_ranks + 1)]
    lines = min(len(lists.forward), len(lists.backward)) // (2 if selector.within else 1)  # maximum number of pairs
    scoring = SCORINGS[config.score]
    how = scoring.decoy_correction, scoring.margin, scoring.least_matched_share
    parallel = None if selector.within else estimate_parallel(one_to_one, decoys[0], lists, twins, lines)
    alone = None if parallel is None else parallel.alone
    estimate = estimate_from_decoys(one_to_one.scores, decoys[0].scores, lines, decoys[-1].scores, *how, alone)
    estimate = with_limits(estimate, 0.0 if parallel is None else parallel.doubt)
    if parallel is not None and estimate.unsure:
        estimate = estimate_from_likelihoods(one_to_one.scores, parallel, lines, decoys[0].scores)
    return estimate, parallel


def choose_pairs(
    lists: Neighbours,
    config: MineConfig,
    sides: tuple[Side, Side] | None = None,
    gold: np.ndarray | None = None,
    within: bool = False,
    reranker: Encoder | None = None,
    vectors: tuple[Vectors, Vectors] | None = None,
) -> Mined:
    """Choose pairs among the neighbours of each line, ``config.depth + config.decoy_ranks`` in both directions.

    Without ``sides`` there are no pair filters. ``gold`` are the scores of gold pairs to calibrate on; ``config.gold`` is
    ignored. ``within``: both sides are the same lines. ``reranker`` scores the pairs near the threshold, which needs
    ``sides`` and an automatic threshold. With the ``vectors`` of both sides near-duplicates are recognised: they count once
    in a neighbourhood, and are not taken for mismatches.
    """
    compared = vectors is not None and (config.decoy_ranks > 0 or SCORINGS[config.score].margin)
    near = _nearest(lists, config.k) if config.select == "kbest" else lists  # long lists: only the neighbourhoods
    twins = Twins.of(near, *vectors) if vectors is not None and compared else Twins.none(near)
    selector = _Selector(lists, twins.left_out(near) if compared else near, config, sides, within)
    pairs, ruled_out = selector.select(config.select)
    threshold, expected, parallel = Threshold(-np.inf, "none"), None, None
    if config.decoy_ranks:
        expected, parallel = _estimated(pairs, selector, twins)
    if isinstance(config.threshold, (int, float)):
        threshold = Threshold(float(config.threshold), "given")
    elif config.calibrates and expected is not None:
        threshold = _calibrated(expected, config, gold)
        if parallel is not None and len(expected.falling) >= LEAST_PAIRS:
            share = expected.share or (parallel.share, *parallel.between)
            threshold = replace(threshold, share=share)
    if reranker is not None and sides is not None and len(pairs):
        # If hardly any line has a translation, the threshold cannot be trusted: then rerank the best pairs.
        value = np.inf if expected is None or expected.unreliable else threshold.value
        weight = None if expected is None or expected.unsure else expected.weight_above(value)
        most = int(config.rerank_share * (len(sides[0]) + len(sides[1])) / 4)
        texts = (sides[0].texts.take, sides[1].texts.take)
        mask = rerank_pairs(pairs, selector.pairs("max", 1), value, texts, reranker, most, weight)
        origin = f"{threshold.origin}; {most:,} pairs reranked"
        threshold = Threshold(threshold.value, origin, share=threshold.share)
        kept = pairs.take(mask)
    else:
        kept = pairs.between(threshold.value, None)
    kept = kept.between(config.min_score, config.max_score)
    evidence = None
    if config.evidence:
        evidence = evidence_of(pairs, threshold.value, expected, lists, config.filters, sides)
    return Mined(kept, threshold, pairs, ruled_out, evidence)


def _calibrated(expected: PrecisionEstimate, config: MineConfig, gold: np.ndarray | None) -> Threshold:
    """Choose a threshold, with the precision and recall expected above it and within ``min_score`` and ``max_score``."""
    value = None if gold is None else on_gold(expected, gold, config.precision)
    origin = "mismatched neighbours" if expected.least_share < np.inf else "likelihood of each pair"
    least = -np.inf if config.min_score is None else config.min_score
    found = expected.threshold(origin, config.precision, value, least, config.max_score)
    if gold is None:
        return found
    least, most = max(found.value, least), np.inf if config.max_score is None else config.max_score
    return replace(found, origin="gold pairs", recall=float(((gold >= least) & (gold <= most)).mean()), recall_within=None)


def mine_vectors(source: Any, target: Any = None, config: MineConfig | None = None, folder: Path | None = None) -> Mined:
    """Mine translations among unit vectors: arrays (n, d), or paths of ``.npy`` files; without a target, paraphrases.

    Args:
        source: vectors.
        target: vectors of the other side.
        config: the settings.
        folder: work folder of a search in files of vectors: a killed call resumes from there, and others may help
            (``execution``). It must not hold the work of other vectors, and is not removed.

    Raises:
        ConfigError: ``gold`` is set, a folder is given with arrays, or a vector is not finite.
        Unfinished: with ``execution=array``, the other tasks are not done yet.

    Example:
        mined = mine_vectors(model.encode(english), model.encode(japanese))
        for score, i, j in zip(mined.pairs.scores, mined.pairs.source, mined.pairs.target):
            print(score, english[i], japanese[j])
    """
    config = config or MineConfig()
    if config.gold:
        raise ConfigError("gold needs the texts: mine lists or files")
    k, within = config.depth + config.decoy_ranks, target is None
    if within:
        _check_within(config)
    sides = [source] if within else [source, target]
    for name, side in zip(("source", "target"), sides, strict=False):
        for start, block in as_vectors(side).blocks():
            check_finite(block, name, start)
    lists, opened = _neighbours(sides, k, config, folder), [as_vectors(side) for side in sides]
    return choose_pairs(lists, config, within=within, vectors=(opened[0], opened[-1]))


def _neighbours(sides: Sequence[Any], k: int, config: MineConfig, work: Path | None) -> Neighbours:
    """Search for neighbours between two sides, or within one."""
    if len(sides) == 1:
        return both_ways(neighbours_within(sides[0], k, config.neighbours, config.execution, work))
    return find_neighbours(sides[0], sides[1], k, config.neighbours, config.execution, work)


def both_ways(within: Neighbours) -> Neighbours:
    """Merge each line's neighbours before and after it, and return them as the neighbours of both sides."""
    merge(within.forward, within.forward_ids, _NO_ROWS, within.backward, within.backward_ids, _NO_ROWS)
    return Neighbours(within.forward, within.forward_ids, within.forward, within.forward_ids)


def _check_within(config: MineConfig) -> None:
    """Refuse settings that make no sense when mining within one side."""
    if config.gold:
        raise ConfigError("gold= has a source and a target: give target= as well, or leave gold= out")
    if config.select == "backward":
        raise ConfigError("select=backward is the same as forward without target=: use forward")


def _stored_neighbours(folder: Path, names: Sequence[str], config: MineConfig, identity: str) -> Neighbours:
    """Search, unless an earlier run or another task of an array has finished the search; return its result."""
    done = folder / "neighbours"
    if is_made(done, identity):
        return Neighbours.open(done)
    work = folder / f"search-{identity}"
    lists = _neighbours([folder / name / "vectors.npy" for name in names], config.depth + config.decoy_ranks, config, work)
    once(done, identity, lists.save)
    discard(work, config.execution)
    return lists


def mine_sides(
    model: AnyModel, given: tuple[Lines, Lines | None], config: MineConfig, folder: Path, reranker: Encoder | None = None
) -> tuple[tuple[Side, Side], Mined, dict[str, float]]:
    """Read and encode both sides, find neighbours, choose pairs.

    ``given`` are source and target: the name of a text file, ``-`` for standard input, or the lines themselves; None as
    the target to mine within the source. ``reranker`` scores the pairs near the threshold. Return the sides (the source
    twice without a target), the pairs as rows of the sides, and the seconds of each step.
    """
    if given[1] is None:
        _check_within(config)
    config.execution.check_names(*(lines for lines in given if lines is not None))
    if reranker is not None and not config.calibrates:
        raise ConfigError("rerank= scores the pairs near an automatic threshold: set threshold=auto, not select=kbest")
    languages = config.languages or model.pair
    gold = read_gold(config.gold, languages) if config.gold and config.calibrates else None
    threads, seconds = config.neighbours.workers, {}

    def encode(texts: Any) -> np.ndarray:
        return model.encode(texts, threads=threads)

    start = time.monotonic()
    sides = []
    for n, (name, lines) in enumerate(zip(("source", "target"), given, strict=True)):
        if lines is None:
            break
        language = config.languages[n] if config.languages else None
        path, texts = (lines, None) if isinstance(lines, str) else ("-", lines)
        known = languages[n] if languages else None
        if config.filters.numbers and known:
            check_numbers_in_words((known,))
        with locked(folder / f".{name}"):  # other tasks of an array wait for the first one
            left_out = Skipped()
            if texts is None:
                path = TextSource(path, known or "", config.split).lines(folder, left_out)
            how = SideConfig(path, config.ids, language, config.filters, config.storage, config.on_error)
            side = prepare_side(folder / name, how, encode, model.dim, model.identity, name, texts)
            sides.append(replace(side, left_out=left_out.counts))
    if not any(side.read for side in sides):
        read = " and ".join(lines if isinstance(lines, str) else "the lines given" for lines in given if lines is not None)
        raise InputError(read, "no line in it", "give texts, one a line")
    both = (sides[0], sides[-1])
    seconds["read and encode"] = time.monotonic() - start
    start = time.monotonic()
    limits = replace(config.neighbours, threads=None, memory=1.0)  # neither changes the result
    names = ("source", "target")[: len(sides)]
    made = [read_json(folder / name / "side.json")["identity"] for name in names]
    identity = fingerprint(made, config.depth + config.decoy_ranks, vars(limits))
    lists = _stored_neighbours(folder, names, config, identity)
    seconds["neighbours"] = time.monotonic() - start
    start = time.monotonic()
    scores = None
    if gold:
        exact = SearchConfig(memory=config.neighbours.memory, threads=config.neighbours.threads)
        scores = gold_scores(gold, both, lists, encode, GoldSearch(exact, config.score, config.k, config.select))
        if not np.isfinite(scores).any():
            hint = "give source and target in this order, exactly as in the files"
            raise InputError(config.gold or "", f"none of its {len(scores):,} pairs is found among the lines", hint)
    vectors = (both[0].vectors, both[1].vectors)
    mined = choose_pairs(lists, config, both, scores, both[0] is both[1], reranker, vectors)
    seconds["select"] = time.monotonic() - start
    return both, mined, seconds
