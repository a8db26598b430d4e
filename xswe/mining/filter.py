"""Noisy bitext in, clean bitext out: what is no pair of sentences, and what is no translation, is left out.

Two passes. The first finds, for every record, a reason to drop it or its cosine; the threshold is then found from the file
itself: each source beside the next record's target scores as pairs do that are not translations, and these decoys say how
many of the real pairs above any score are wrong (:mod:`xswe.mining.threshold`). The second pass copies the records that
stay, with all their columns and properties.

An average of word vectors does not see the order of words, a negation, or a number that was changed: scrambled sentences
score as sound ones do, and numbers have a filter of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, Unpack

import numpy as np

from xswe.bitext.output import Row, format_of, output_format, write_rows
from xswe.bitext.records import Record, RecordFile
from xswe.errors import ConfigError
from xswe.io.files import arrays_digest, check_apart, fingerprint, open_output
from xswe.io.parallel import available_threads
from xswe.io.ragged import Texts
from xswe.io.results import Result
from xswe.io.settings import changed
from xswe.mining.cascade import judge_bitext
from xswe.mining.side import Reservoir, Shown, draw_groups, shown_rows, with_texts
from xswe.mining.threshold import Evidence, Removed, Threshold, from_mismatches, wrong_fraction
from xswe.mining.verdicts import BLOCK, COPY, DROPPED, KEPT, LOW, WINDOW, BitextFilter, FilterSteps, Judge
from xswe.model.ensemble import AnyModel
from xswe.search.types import Encoder
from xswe.work.config import LOCAL, ExecutionConfig
from xswe.work.folder import work_folder
from xswe.work.once import once
from xswe.work.plan import TextPlan
from xswe.work.steps import Arrays, two_steps

if TYPE_CHECKING:
    from xswe.settings import FilterSettings


@dataclass(frozen=True, eq=False)
class Filtered(Result):
    """What a filter decided of every record.

    Attributes:
        scores: cosine of each pair, float32 (n,); NaN where another reason was found first.
        reasons: uint8 (n,), 0 for kept, else a place in :attr:`names`.
        threshold: the threshold, and what is expected above it.
        names: of the reasons; the first is ``kept``.
        evidence: what a report shows of how they were judged; None unless ``evidence=True`` asked for it.
        languages: of source and target; empty if they are not known.
    """

    scores: np.ndarray
    reasons: np.ndarray
    threshold: Threshold
    names: tuple[str, ...] = (KEPT, *DROPPED)
    evidence: Evidence | None = None
    languages: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.reasons)

    @property
    def kept(self) -> np.ndarray:
        """Which records stay, bool (n,)."""
        return self.reasons == 0

    @property
    def counts(self) -> dict[str, int]:
        """Records by reason, the kept ones first; reasons that never held are left out."""
        counts = np.bincount(self.reasons, minlength=len(self.names))
        return {name: int(count) for name, count in zip(self.names, counts, strict=True) if count}

    def columns(self) -> tuple[str, ...]:
        """Return the names of the columns: one row a record."""
        return ("record", "reason", "score")

    def records(self) -> Iterator[tuple[int, str, float]]:
        """Return a row a record, counted from 1."""
        for number, (reason, score) in enumerate(zip(self.reasons.tolist(), self.scores.tolist(), strict=True), 1):
            yield number, self.names[reason], score

    def __repr__(self) -> str:
        return f"Filtered({int(self.kept.sum()):,} of {len(self):,} pairs kept, {self.threshold.sentence()})"

    def __str__(self) -> str:
        counts = self.counts
        kept = counts.pop(KEPT, 0)
        dropped = ", ".join(f"{count:,} {reason}" for reason, count in counts.items()) or "none"
        return f"{len(self):,} pairs read, {kept:,} kept; dropped: {dropped}\n{self.threshold.sentence()}"


class Found(NamedTuple):
    """What was found of all records: reasons uint8 (n,), cosines float32 (n,), those of decoys, one a pair compared."""

    reasons: np.ndarray
    scores: np.ndarray
    decoys: np.ndarray

    @classmethod
    def of(cls, parts: Iterable[Arrays]) -> Found:
        """Put together what was found of the parts of a bitext."""
        kept = [[part[name] for name in cls._fields] for part in parts if part]
        columns = zip(*kept, strict=True) if kept else ((), (), ())
        return cls(*(np.concatenate([np.zeros(0, kind), *column]) for kind, column in zip(_KINDS, columns, strict=True)))


_KINDS = (np.uint8, np.float32, np.float32)


def filter_bitext(
    model: AnyModel,
    bitext: str | Path | Sequence[str | Path] | Sequence[tuple[str, str]],
    output: str | Path | None = None,
    *,
    rejects: str | Path | None = None,
    threads: int | None = None,
    config: BitextFilter | None = None,
    rerank: Encoder | None = None,
    execution: ExecutionConfig = LOCAL,
    **settings: Unpack[FilterSettings],
) -> Filtered:
    """Leave out what is no translation.

    Args:
        model: what encodes.
        bitext: a list of pairs; a file (tab-separated, ``.csv``, ``.jsonl``, ``.tmx``, packed or not, ``-`` for standard
            input); or two line-aligned files.
        output: a file for the records that stay, as they stand. In another format than the bitext's it receives the pairs
            and their scores; ``-`` for standard output. A killed run goes on from ``<output>.work``.
        rejects: a file for the others: ``reason<TAB>score<TAB>record``.
        threads: None for all processors.
        config: which pairs stay.
        rerank: anything with ``encode(texts)`` to unit vectors, a slower and better encoder: it judges the pairs near the
            threshold, and encodes at most ``rerank_share`` of the texts.
        execution: who cleans and compares: this process, the tasks of a batch queue, or a Ray cluster, to the same bytes;
            the latter two need a file and an ``output``. Tab-separated text that is not packed is cut into shards, any
            other bitext is one.
        settings: single fields of it: ``threshold``, ``columns``, ``languages``, …; see :class:`BitextFilter`.

    Returns:
        The reason and score of every record, and the threshold.

    Raises:
        ConfigError: a setting is unknown or impossible.
        InputError: a file is missing or damaged.
        Unfinished: with an array, the tasks that have other shards are not done yet.

    Example:
        >>> import xswe
        >>> pairs = [("The train is late.", "Der Zug hat Verspätung."), ("A cat sleeps.", "Wir kaufen Brot."), ("x", "")]
        >>> found = xswe.filter(xswe.load("mini"), pairs, threshold=0.5)
        >>> found.kept.tolist(), found.counts
        ([True, False, False], {'kept': 1, 'blank': 1, 'low similarity': 1})
    """
    config = changed(config or BitextFilter(), settings, "filter")
    config = replace(config, columns=tuple(config.columns), languages=tuple(config.languages) or model.pair)
    work = _Filter(model, config, rerank, threads or available_threads())
    given = [bitext] if isinstance(bitext, (str, Path)) else list(bitext)
    pairs = [one for one in given if not isinstance(one, (str, Path))]
    if pairs and not len(pairs) == len(given) == sum(len(pair) == 2 for pair in pairs):
        raise ConfigError("bitext: give pairs, each of two texts, or names of files")
    odd = next((row for row, pair in enumerate(pairs) if not all(isinstance(side, str) for side in pair)), None)
    if odd is not None:
        raise ConfigError(f"bitext: pair {odd} is {tuple(pairs[odd])}; give two texts, '' for one that is missing")
    execution.check_names(*(given or [None]), output)
    if pairs or not given:
        if output is not None or rejects is not None:
            raise ConfigError("a list of pairs is filtered in memory; output= and rejects= are for files")
        return work.of_list(pairs)
    paths = tuple(map(str, given))
    file = RecordFile(paths, config.columns, config.languages, config.on_error)
    work = replace(work, config=replace(config, languages=file.languages))
    return work.of_file(file) if output is None else work.to_file(file, str(output), rejects, execution)


@dataclass(frozen=True)
class _Filter:
    """What all ways through a bitext have in common: what compares, and what decides."""

    model: AnyModel
    config: BitextFilter
    rerank: Encoder | None
    threads: int

    def __post_init__(self) -> None:
        if self.rerank is not None and self.config.threshold != "auto":
            raise ConfigError("rerank= judges the pairs near a threshold that is found: set threshold=auto")

    def of_list(self, pairs: Sequence[tuple[str, str]]) -> Filtered:
        """Filter pairs in memory."""
        given = [Record(b"", b"", (a.strip(), b.strip())) for a, b in pairs]
        return self.decided(self._in_memory(given), lambda: given)

    def of_file(self, file: RecordFile) -> Filtered:
        """Filter a file, and write nothing."""
        if (self.config.evidence or self.rerank is not None) and "-" in file.paths:
            raise ConfigError("a report and rerank= read once more than standard input can be: give a file, or output=")
        return self.decided(self._in_memory(file), file.read)

    def _in_memory(self, given: RecordFile | list[Record]) -> Found:
        """Compare the sides of all records, and keep nothing."""
        judge = Judge(self.model, self.config, self.threads)
        return Found.of(two_steps(FilterSteps(given, self.config), None, threads=self.threads, opened=judge))

    def to_file(self, file: RecordFile, output: str, rejects: str | Path | None, execution: ExecutionConfig) -> Filtered:
        """Filter a file into another, by whoever takes part."""
        if rejects is not None:
            check_apart("rejects", rejects, output)
        kind: str | None = output_format("auto", output, self.config.languages)
        kind = None if kind == format_of(file) else kind
        with work_folder(output, execution, keep=execution.has_peers) as work:
            file = file.spooled(work, execution)
            plan, inputs = TextPlan.of(file.paths, max(execution.shard, WINDOW), WINDOW)
            file = replace(file, paths=plan.files)
            if file.kind != "tsv":  # records that are no lines, and two files in step, are read from the beginning
                plan = replace(plan, files=plan.files[:1], sizes=(None,))
            config = replace(self.config, threshold=None, precision=None, evidence=False, rerank_share=1.0)
            steps = FilterSteps(file, config, plan, work.absolute() / "model" / "model")
            identity = fingerprint([self.model.identity, asdict(config), inputs.stamps, plan.shard_bytes, WINDOW])
            judge = Judge(self.model, self.config, self.threads if execution.alone else 1)  # shards are on threads
            how: dict[str, Any] = {"execution": execution, "threads": self.threads, "opened": judge}
            found = two_steps(steps, work.absolute(), identity, inputs, plan.count, **how)
            made = self.decided(Found.of(found), file.read)
            what = identity, arrays_digest(made.reasons, made.scores), kind, output, str(rejects)
            written = [path for path in (output, rejects) if path is not None]

            def write(_: Path) -> None:
                """Copy what stays, and the others."""
                _second_pass(file, made, output, kind, self.config.languages, rejects)

            once(work / "written", fingerprint(what), write, written)  # of the tasks of an array one does it
        return made

    def decided(self, found: Found, records: Callable[[], Iterable[Record]]) -> Filtered:
        """Decide on every record, and gather what a report shows."""
        made = _decide(found, self.config)
        if self.rerank is not None:
            made = _judged(made, found, records, self.rerank, self.config.rerank_share)
        return _shown(made, records() if self.config.evidence else (), self.config.languages)


def _decide(found: Found, config: BitextFilter) -> Filtered:
    reasons, scores, decoys = found
    alive = scores[np.isfinite(scores)]
    threshold, expected = Threshold(-np.inf, "none"), None
    if config.threshold == "auto" or config.evidence:
        expected = from_mismatches(alive, decoys[np.isfinite(decoys)], len(alive))
    if config.threshold == "auto" and expected is not None:
        value = expected.choose(None, config.precision)
        threshold = Threshold(value, "the next pair's other side", *expected.between(value, None), expected.unsure)
    elif config.threshold is not None:
        threshold = Threshold(float(config.threshold), "given")
    reasons = reasons.copy()
    reasons[(reasons == 0) & ~(scores >= np.float32(threshold.value))] = LOW
    evidence = None
    if config.evidence and expected is not None:
        evidence = Evidence(expected.falling, expected, draw_groups(scores, threshold.value))
    return Filtered(scores, reasons, threshold, evidence=evidence)


def _judged(
    found: Filtered, held: Found, records: Callable[[], Iterable[Record]], encoder: Encoder, share: float
) -> Filtered:
    """Let an encoder judge the pairs near the threshold: which of them stay."""
    reasons, scores, decoys = held
    compared = np.flatnonzero(np.isfinite(scores) | (reasons == COPY))
    value, most = np.inf if found.threshold.unsure else found.threshold.value, int(share * 2 * len(scores) / 4)
    alive, wrong = scores[np.isfinite(scores)], decoys[np.isfinite(decoys)]
    weight = None if found.threshold.unsure else wrong_fraction(alive, wrong)
    rows, kept = judge_bitext(scores, compared, decoys, value, records, encoder, most, weight)
    again, origin = found.reasons.copy(), f"{found.threshold.origin}; {most:,} pairs judged by the encoder"
    again[rows] = np.where(kept, 0, LOW)
    return replace(found, reasons=again, threshold=Threshold(found.threshold.value, origin))


def _shown(found: Filtered, records: Iterable[Record], languages: tuple[str, ...]) -> Filtered:
    """Give a report's samples their texts, and draw some of what each filter dropped."""
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
    file: RecordFile,
    found: Filtered,
    output: str,
    kind: str | None,
    languages: tuple[str, ...],
    rejects: str | Path | None,
) -> None:
    """Write the records that stay, and the others."""
    blocks = file.raw_blocks(BLOCK) if kind is None else None
    with ExitStack() as stack:
        other = None if rejects is None else stack.enter_context(open_output(str(rejects)))
        if blocks is not None:
            stream = stack.enter_context(open_output(output))
            _copy_lines(blocks, found, stream, other)
            return
        _write_kept(file, _without(file.read(), found, other), output, kind, languages)


def _copy_lines(blocks: Iterator[Texts], found: Filtered, output: BinaryIO, rejects: BinaryIO | None) -> None:
    """Write the lines that stay, a block at a time, and the others."""
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
    rejects.write(f"{found.names[found.reasons[row]]}\t{shown}\t".encode() + raw.replace(b"\n", b" ") + b"\n")


def _without(records: Iterator[Record], found: Filtered, rejects: BinaryIO | None) -> Iterator[tuple[Record, float]]:
    """Pass on what stays, with its score, and write what does not."""
    for row, record in enumerate(records):
        if not found.reasons[row]:
            yield record, float(found.scores[row])
        elif rejects is not None:
            _reject(rejects, found, row, record.raw)


def _write_kept(
    file: RecordFile, kept: Iterator[tuple[Record, float]], output: str, kind: str | None, languages: tuple[str, ...]
) -> None:
    if kind is not None:
        rows = (Row(round(score, 6), *(record.texts or ("", "")), "", "", 1) for record, score in kept)
        write_rows(output, kind, rows, languages)
        return
    file.write(output, kept)
