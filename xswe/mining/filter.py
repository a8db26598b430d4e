"""Filter bitext: drop records that are not sentence pairs, and pairs that are not translations.

Two passes. The first gives every record a reason to drop it, or a cosine and features. A classifier of right and wrong
pairs is then trained on the file itself (:mod:`xswe.mining.learning`). If names come back in it in other scripts, pairs
with a name are read once more (:mod:`xswe.mining.names`). With the cosine alone, the threshold comes from
decoys, each source paired with the next record's target: these score like pairs that are not translations, and show how
many of the real pairs above any score are wrong (:mod:`xswe.mining.threshold`). The second pass copies the kept records,
with all their columns and properties.

An average of word vectors does not see word order, a negation, or a changed number: scrambled sentences score like sound
ones, and numbers have a filter of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, Unpack

import numpy as np

from xswe.bitext.formats import FORMATS, format_by_name
from xswe.bitext.output import Row, format_of, output_format, write_rows
from xswe.bitext.records import Record
from xswe.bitext.rows import Rows
from xswe.bitext.source import Source
from xswe.corpus.near_duplicates import share_among
from xswe.errors import ConfigError
from xswe.io.arguments import check_reranker, pairs_or_names
from xswe.io.files import arrays_digest, check_apart, check_output, fingerprint, open_output, scratch
from xswe.io.parallel import available_threads
from xswe.io.ragged import Texts
from xswe.io.results import Result
from xswe.io.settings import changed, refuse_unused
from xswe.mining.evidence import Evidence, Removed
from xswe.mining.features import NAMES, unusual, usual
from xswe.mining.gold import GoldCheck, check_gold, read_gold
from xswe.mining.learning import LEAST_RECORDS, Learner, Learnt, Noise, Sample, sample_rows
from xswe.mining.names import NameUsage, has_names
from xswe.mining.rerank import rerank_bitext
from xswe.mining.samples import Reservoir, Shown, draw_groups, shown_rows, with_texts
from xswe.mining.threshold import Threshold, estimate_from_decoys, near_duplicate_note, wrong_fraction
from xswe.mining.verdicts import BLOCK, COPY, DROPPED, KEPT, LOW, WINDOW, BitextFilter, FilterSteps, PairFilter
from xswe.model.ensemble import AnyModel, open_model
from xswe.search.rerank import Encoder
from xswe.work.config import LOCAL, ExecutionConfig
from xswe.work.folder import work_folder
from xswe.work.once import written_once
from xswe.work.plan import TextPlan
from xswe.work.steps import Arrays, two_steps

if TYPE_CHECKING:
    from xswe.settings import FilterSettings


class FilteredRecord(NamedTuple):
    """The verdict on a record: its number, from 1; ``kept``, or why it was dropped; and the score of its pair."""

    record: int
    reason: str
    score: float


@dataclass(frozen=True, eq=False)
class Filtered(Result[FilteredRecord], row=FilteredRecord):
    """A filter's verdicts on all records; a sequence of :class:`FilteredRecord`.

    Attributes:
        scores: of each pair, float32 (n,): its cosine or, with a trained classifier, the probability that it is right; NaN
            where another reason was found first.
        reasons: uint8 (n,), 0 for kept, else an index into :attr:`names`.
        threshold: the threshold, and the precision and recall expected above it.
        names: names of the reasons, ``kept`` first.
        evidence: what a report shows of how the pairs were judged; None unless ``evidence=True``.
        languages: of source and target; empty if unknown.
        noise: the estimated shares of the kinds of wrong pairs; None by the cosine alone.
        note: why the filter fell back to the cosine; empty if it did not.
        features: uint8 (n, features), see :data:`xswe.mining.features.NAMES`; None unless ``explain=True``.
        near: the share of near-duplicates of earlier pairs among the first twenty thousand kept pairs.
        gold: the kept pairs compared with ``gold=``; None without it.
    """

    scores: np.ndarray
    reasons: np.ndarray
    threshold: Threshold
    names: tuple[str, ...] = (KEPT, *DROPPED)
    evidence: Evidence | None = None
    languages: tuple[str, ...] = ()
    noise: Noise | None = None
    note: str = ""
    features: np.ndarray | None = None
    near: float = 0.0
    gold: GoldCheck | None = None

    def __len__(self) -> int:
        return len(self.reasons)

    @property
    def kept(self) -> np.ndarray:
        """Which records are kept, bool (n,)."""
        return self.reasons == 0

    @property
    def counts(self) -> dict[str, int]:
        """The number of records per reason, ``kept`` first; reasons without records are left out."""
        counts = np.bincount(self.reasons, minlength=len(self.names))
        return {name: int(count) for name, count in zip(self.names, counts, strict=True) if count}

    def records(self) -> Iterator[FilteredRecord]:
        """Return one row per record, counted from 1."""
        for number, (reason, score) in enumerate(zip(self.reasons.tolist(), self.scores.tolist(), strict=True), 1):
            yield FilteredRecord(number, self.names[reason], score)

    def __repr__(self) -> str:
        return f"Filtered({int(self.kept.sum()):,} of {len(self):,} pairs kept, {self.threshold.sentence()})"

    def __str__(self) -> str:
        counts = self.counts
        kept = counts.pop(KEPT, 0)
        dropped = ", ".join(f"{count:,} {reason}" for reason, count in counts.items()) or "none"
        more = [str(self.noise)] if self.noise else [f"judged by the cosine alone: {self.note}"] if self.note else []
        if self.noise is None and self.threshold.precision is not None:  # estimated from decoys of other pairs
            more.append("not judged: translations that are truncated, extended or changed, and the order of words")
        first = f"{len(self):,} pairs read, {kept:,} kept; dropped: {dropped}"
        first += near_duplicate_note(self.near, "pairs") if kept else ""
        more += [str(self.gold)] if self.gold else []
        return "\n".join([first, self.threshold.sentence(), *more])

    def unusual(self, row: int) -> str:
        """Describe how a pair differs from the kept ones; needs ``explain=True``."""
        if self.features is None:
            raise ConfigError("unusual() needs the features: filter with explain=True")
        if not np.isfinite(self.scores[row]):
            return ""
        return unusual(self.features[row], *self._usual)

    @cached_property
    def _usual(self) -> tuple[np.ndarray, np.ndarray]:
        assert self.features is not None
        return usual(self.features[self.kept] if self.kept.any() else self.features)


class Found(NamedTuple):
    """The results of :meth:`xswe.mining.verdicts.PairFilter.compared` for all records."""

    reasons: np.ndarray
    scores: np.ndarray
    decoys: np.ndarray
    features: np.ndarray
    keys: np.ndarray

    @classmethod
    def of(cls, parts: Iterable[Arrays]) -> Found:
        """Join the results of the parts of a bitext."""
        kept = [part for part in parts if part]
        return cls(
            *(
                np.concatenate([empty, *(part[name] for part in kept if name in part)])
                for name, empty in zip(cls._fields, _EMPTY, strict=True)
            )
        )


_EMPTY = (
    *(np.zeros(0, kind) for kind in (np.uint8, np.float32, np.float32)),
    np.zeros((0, len(NAMES)), np.uint8),
    np.zeros(0, np.uint64),
)


def filter_bitext(
    model: AnyModel | str | Path,
    input: str | Path | Sequence[str | Path] | Sequence[tuple[str, str]],
    output: str | Path | None = None,
    *,
    rejects: str | Path | None = None,
    threads: int | None = None,
    config: BitextFilter | None = None,
    rerank: Encoder | None = None,
    execution: ExecutionConfig = LOCAL,
    **settings: Unpack[FilterSettings],
) -> Filtered:
    """Drop pairs that are not translations.

    Args:
        model: the model, or its name.
        input: a list of pairs; a file of any bitext, plain or packed, ``-`` for standard input; or two line-aligned files.
        output: file for the kept records, unchanged or, if its format differs from the bitext's, as pairs with scores;
            ``-`` for standard output. A killed run resumes from ``<output>.work``.
        rejects: file for the dropped records: ``reason<TAB>score<TAB>record``.
        threads: None for all processors.
        config: which pairs to keep.
        rerank: a slower and better encoder, whose ``encode(texts)`` returns unit vectors: it scores the pairs near the
            threshold, and encodes at most ``rerank_share`` of the texts.
        execution: who cleans and compares: this process, the tasks of a batch queue, or a cluster, all with the same
            result; the latter two need a file and an ``output``. Unpacked tab-separated text is cut into shards; any
            other bitext is one shard.
        settings: single fields of ``config``: ``threshold``, ``columns``, ``languages``, …; see :class:`BitextFilter`.

    Returns:
        The reason and score of every record, and the threshold.

    Raises:
        ConfigError: a setting is unknown or impossible.
        InputError: a file is missing or damaged.
        Unfinished: with an array, the tasks with the other shards are not done yet.

    Example:
        >>> import xswe
        >>> pairs = [("The train is late.", "Der Zug hat Verspätung."), ("A cat sleeps.", "Wir kaufen Brot."), ("x", "")]
        >>> found = xswe.filter(xswe.load("mini"), pairs, threshold=0.5)
        >>> found.kept.tolist(), found.counts
        ([True, False, False], {'kept': 1, 'blank': 1, 'low similarity': 1})
    """
    check_reranker(rerank, named=True)
    config = changed(config or BitextFilter(), settings, "filter")
    refuse_unused(config, {"without rerank=": () if rerank else ("rerank_share",)})
    pairs, names = pairs_or_names(input)
    for name, path in (("output", output), ("rejects", rejects)):
        if path is not None:
            check_output(path, [one for one in (*names, config.gold) if one and one != "-"], name)
    if output is not None:
        output_format("auto", str(output), ("", ""))  # fail before any work is done
    model = open_model(model, "filter(model, input)")
    config = replace(config, columns=tuple(config.columns), languages=tuple(config.languages) or model.pair)
    gold = read_gold(config.gold, config.languages) if config.gold else []
    threads = available_threads(threads)
    execution.check_names(*(names or (None,)), output)
    if not names:
        if output is not None or rejects is not None:
            raise ConfigError("a list of pairs is filtered in memory; output= and rejects= are for files")
        made = _Filter(model, config.resolved(rerank is not None), rerank, gold, threads)
        return made.decided(made._in_memory(pairs), pairs)
    file = Source(tuple(names), config.columns, config.languages, config.on_error)
    config = replace(config, languages=file.languages).resolved(rerank is not None)
    work = _Filter(model, config, rerank, gold, threads)
    if output is not None:
        return work.to_file(file, str(output), rejects, execution)
    with scratch("xswe-filter-") as folder:
        return work.of_file(file.spooled(Path(folder)))


@dataclass(frozen=True)
class _Filter:
    """The steps shared by all ways of filtering: comparison and decision."""

    model: AnyModel
    config: BitextFilter
    rerank: Encoder | None
    gold: list[tuple[str, str]]
    threads: int

    def __post_init__(self) -> None:
        if self.rerank is not None and self.config.threshold != "auto":
            raise ConfigError("rerank= scores the pairs near an automatic threshold: set threshold=auto")

    def of_file(self, file: Source) -> Filtered:
        """Filter a file without writing an output."""
        return self.decided(self._in_memory(file), file)

    def _in_memory(self, given: Source | list[tuple[str, str]]) -> Found:
        """Compare the sides of all records in memory."""
        opened = PairFilter(self.model, self.config, self.threads)
        return Found.of(two_steps(FilterSteps(given, self.config), None, threads=self.threads, opened=opened))

    def to_file(self, file: Source, output: str, rejects: str | Path | None, execution: ExecutionConfig) -> Filtered:
        """Filter a file into another, with any execution."""
        if rejects is not None:
            check_apart("rejects", rejects, output)
        with work_folder(output, execution, leave=None) as work:
            file = file.spooled(work, execution)
            languages = self.config.languages
            if not languages and FORMATS[format_by_name(output)].names_languages:
                languages = file.with_detected_languages().languages
            kind: str | None = output_format("auto", output, languages)
            kind = None if kind == format_of(file) else kind
            plan, inputs = TextPlan.of(file.paths, max(execution.shard, WINDOW), WINDOW)
            file = replace(file, paths=plan.files)
            if file.kind != "tsv":  # no other format is cut into shards
                plan = replace(plan, files=plan.files[:1], sizes=(None,))
            config = replace(
                self.config, threshold=None, precision=None, gold=None, explain=False, evidence=False, rerank_share=1.0
            )
            steps = FilterSteps(file, config, plan, work.absolute() / "model" / "model")
            identity = fingerprint([self.model.identity, asdict(config), inputs.stamps, plan.shard_bytes, WINDOW])
            opened = PairFilter(self.model, self.config, self.threads if execution.alone else 1)  # shards are on threads
            how: dict[str, Any] = {"execution": execution, "threads": self.threads, "opened": opened}
            found = two_steps(steps, work.absolute(), identity, inputs, plan.count, **how)
            made = self.decided(Found.of(found), file)
            what = identity, arrays_digest(made.reasons, made.scores), kind, output, str(rejects)
            written = [path for path in (output, rejects) if path is not None]

            def write() -> None:
                """Write the kept and the dropped records."""
                _second_pass(file, made, output, kind, languages, rejects)

            written_once(work / "written", fingerprint(what), write, written, execution)
        return made

    def decided(self, found: Found, given: Source | list[tuple[str, str]]) -> Filtered:
        """Decide on every record, and gather the evidence for a report."""
        learnt, note = self._learnt(found, given)
        made = _decide(found, self.config) if learnt is None else _by_learning(found, learnt, self.config)
        made = replace(made, note=note, features=found.features if learnt is not None and self.config.explain else None)
        if self.rerank is not None:
            made = _reranked(made, found, partial(_records, given), self.rerank, self.config.rerank_share)
        made = replace(made, near=share_among(made.kept, partial(self._texts, given)))
        if self.gold:
            rows = (block.rows for block in FilterSteps(given, self.config).blocks(None))
            made = replace(made, gold=check_gold(self.gold, rows, made.kept))
        return _shown(made, _records(given) if self.config.evidence else (), self.config.languages)

    def _texts(self, given: Source | list[tuple[str, str]], rows: np.ndarray) -> list[tuple[str, str]]:
        """Return both sides of some records, given ascending rows; reading stops after the last."""
        if isinstance(given, list):
            return [given[row] for row in rows.tolist()]
        return [pair for found, _ in self._some(given, rows) for pair in zip(found.source, found.target, strict=True)]

    def _some(self, given: Source | list[tuple[str, str]], rows: np.ndarray) -> Iterator[tuple[Rows, np.ndarray]]:
        """Iterate over the texts of some records and their rows, block by block, given ascending rows."""
        start = last = 0
        for block in FilterSteps(given, self.config).blocks(None):
            low, last = np.searchsorted(rows, (start, start + len(block))).tolist()
            if last > low:
                yield block.take(rows[low:last] - start), rows[low:last]
            start += len(block)
            if last == len(rows):
                return

    def _look_up_names(
        self,
        usage: NameUsage,
        features: np.ndarray,
        rows: np.ndarray,
        sample: np.ndarray,
        given: Source | list[tuple[str, str]],
    ) -> None:
        """Write the features of names into those of some records, given ascending rows, and those of the sample."""
        for texts, places in self._some(given, rows):
            found = features[places]
            usage.write((texts.source, texts.target), found, np.isin(places, sample), threads=self.threads)
            features[places] = found

    def _learnt(self, found: Found, given: Source | list[tuple[str, str]]) -> tuple[Learnt | None, str]:
        """Train a classifier and apply it to all pairs; or return why that is impossible."""
        if self.config.method != "learned":
            return None, ""
        alive = np.flatnonzero(np.isfinite(found.scores))
        if len(alive) < LEAST_RECORDS:
            return None, f"{len(alive):,} pairs are too few to learn from" if len(alive) else ""
        places = sample_rows(found.keys[alive])
        wanted = alive[places]
        rows = np.sort(wanted)  # only these texts are held in memory
        texts = self._texts(given, rows)
        pairs = [texts[place] for place in np.searchsorted(rows, wanted).tolist()]
        usage = NameUsage.of(pairs)
        if usage:
            self._look_up_names(usage, found.features, alive[has_names(found.features)[alive]], rows, given)
        learner = Learner(self.model, self.config.languages, found.features[alive], Sample(pairs, places, usage))
        learnt = learner.learn()
        return (None, learnt.doubt) if learnt.doubt else (learnt, "")


def _records(given: Source | list[tuple[str, str]]) -> Iterator[Record]:
    """Iterate over the records of a file, or of pairs in memory."""
    return given.read() if isinstance(given, Source) else (Record(b"", b"", pair) for pair in given)


def _by_learning(found: Found, learnt: Learnt, config: BitextFilter) -> Filtered:
    """Decide by the classifier's probabilities."""
    reasons, alive = found.reasons.copy(), np.flatnonzero(np.isfinite(found.scores))
    scores = np.full(len(reasons), np.nan, np.float32)
    scores[alive] = learnt.probabilities
    expected = learnt.expected()
    threshold = Threshold(-np.inf, "none")
    if config.threshold == "auto":
        threshold = expected.threshold("learnt from this bitext", config.precision)
        threshold = replace(threshold, aside=learnt.unseen(threshold.value))
    elif config.threshold is not None:
        threshold = Threshold(float(config.threshold), "given")
    low = ~(learnt.probabilities >= np.float32(threshold.value))
    reasons[alive[low]] = LOW + learnt.kinds[low]
    evidence = None
    if config.evidence:
        evidence = Evidence(expected.falling, expected, draw_groups(scores, threshold.value))
    noise = learnt.noise(threshold.value)
    return Filtered(scores, reasons, threshold, evidence=evidence, noise=noise)


def _decide(found: Found, config: BitextFilter) -> Filtered:
    reasons, scores, decoys = found.reasons, found.scores, found.decoys
    alive = scores[np.isfinite(scores)]
    threshold, expected = Threshold(-np.inf, "none"), None
    if config.threshold == "auto" or config.evidence:
        expected = estimate_from_decoys(alive, decoys[np.isfinite(decoys)], len(alive))
    if config.threshold == "auto" and expected is not None:
        threshold = expected.threshold("the next pair's other side", config.precision)
    elif config.threshold is not None:
        threshold = Threshold(float(config.threshold), "given")
    reasons = reasons.copy()
    reasons[(reasons == 0) & ~(scores >= np.float32(threshold.value))] = LOW
    evidence = None
    if config.evidence and expected is not None:
        evidence = Evidence(expected.falling, expected, draw_groups(scores, threshold.value))
    return Filtered(scores, reasons, threshold, evidence=evidence)


def _reranked(
    found: Filtered, compared: Found, records: Callable[[], Iterable[Record]], encoder: Encoder, share: float
) -> Filtered:
    """Let the reranker decide which pairs near the threshold are kept."""
    reasons, scores, decoys = compared.reasons, compared.scores, compared.decoys
    candidates = np.flatnonzero(np.isfinite(scores) | (reasons == COPY))
    value, most = np.inf if found.threshold.unsure else found.threshold.value, int(share * 2 * len(scores) / 4)
    alive, wrong = scores[np.isfinite(scores)], decoys[np.isfinite(decoys)]
    weight = None if found.threshold.unsure else wrong_fraction(alive, wrong)
    rows, kept = rerank_bitext(scores, candidates, decoys, value, records, encoder, most, weight)
    again, origin = found.reasons.copy(), f"{found.threshold.origin}; {most:,} pairs reranked"
    again[rows] = np.where(kept, 0, LOW)
    return replace(found, reasons=again, threshold=Threshold(found.threshold.value, origin))


def _shown(found: Filtered, records: Iterable[Record], languages: tuple[str, ...]) -> Filtered:
    """Add the texts to the report's samples, and sample the pairs that each filter dropped."""
    found = replace(found, languages=languages)
    if found.evidence is None:
        return found
    wanted, texts, dropped = shown_rows(found.evidence.groups), {}, Reservoir()
    for row, (record, reason) in enumerate(zip(records, found.reasons.tolist(), strict=True)):
        if row in wanted and record.texts:
            texts[row] = Shown(row, float(found.scores[row]), *record.texts, str(row + 1), str(row + 1))
        if reason:
            dropped.offer(found.names[reason], record.texts)
    removed = [
        Removed(reason, "pairs", count, tuple(dropped.kept.get(reason, ()))) for reason, count in dropped.counts.items()
    ]
    groups = with_texts(found.evidence.groups, texts)
    return replace(found, evidence=replace(found.evidence, groups=groups, removed=tuple(removed)))


def _second_pass(
    file: Source,
    found: Filtered,
    output: str,
    kind: str | None,
    languages: tuple[str, ...],
    rejects: str | Path | None,
) -> None:
    """Write the kept and the dropped records."""
    blocks = file.raw_blocks(BLOCK) if kind is None else None
    with ExitStack() as stack:
        other = None if rejects is None else stack.enter_context(open_output(str(rejects)))
        if blocks is not None:
            stream = stack.enter_context(open_output(output))
            _copy_lines(blocks, found, stream, other)
            return
        _write_kept(file, _kept_records(file.read(), found, other), output, kind, languages)


def _copy_lines(blocks: Iterator[Texts], found: Filtered, output: BinaryIO, rejects: BinaryIO | None) -> None:
    """Copy the kept lines, block by block, and write the dropped ones."""
    place = 0
    for lines in blocks:
        reasons = found.reasons[place : place + len(lines)]
        kept = lines.take(np.flatnonzero(reasons == 0)).data.tobytes()
        output.write(kept if not kept or kept.endswith(b"\n") else kept + b"\n")
        for row in np.flatnonzero(reasons).tolist():
            if rejects is None:
                break
            raw = lines.data[lines.offsets[row] : lines.offsets[row + 1]].tobytes()
            _reject(rejects, found, place + row, raw.removesuffix(b"\n").removesuffix(b"\r"))
        place += len(lines)


def _reject(rejects: BinaryIO, found: Filtered, row: int, raw: bytes) -> None:
    score = found.scores[row]
    shown = "" if np.isnan(score) else f"{score:.6f}"
    reason = found.names[found.reasons[row]]
    if found.features is not None and (why := found.unusual(row)):
        reason = f"{reason} ({why})"
    rejects.write(f"{reason}\t{shown}\t".encode() + raw.replace(b"\n", b" ") + b"\n")


def _kept_records(records: Iterator[Record], found: Filtered, rejects: BinaryIO | None) -> Iterator[tuple[Record, float]]:
    """Yield the kept records with their scores, and write the dropped ones."""
    for row, record in enumerate(records):
        if not found.reasons[row]:
            yield record, float(found.scores[row])
        elif rejects is not None:
            _reject(rejects, found, row, record.raw)


def _write_kept(
    file: Source, kept: Iterator[tuple[Record, float]], output: str, kind: str | None, languages: tuple[str, ...]
) -> None:
    if kind is not None:
        rows = (Row(round(score, 6), *(record.texts or ("", "")), "", "", 1) for record, score in kept)
        write_rows(output, kind, rows, languages)
        return
    file.write(output, kept)
