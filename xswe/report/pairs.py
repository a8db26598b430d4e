"""The page of pairs: mined, filtered, or from a file of scored pairs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from xswe.alignment.sentences import AlignedTexts
from xswe.alignment.words import align_words
from xswe.bitext.convert import read_units
from xswe.bitext.memories import Unit
from xswe.bitext.source import BYTE_ORDER_MARK, Source
from xswe.bitext.tables import column_names
from xswe.errors import InputError
from xswe.io.files import arrays_digest
from xswe.io.lines import Skipped
from xswe.mining.evidence import Evidence, Removed
from xswe.mining.filter import Filtered
from xswe.mining.gold import GoldCheck
from xswe.mining.learning import Noise
from xswe.mining.mined import MinedPairs
from xswe.mining.samples import Group, Reservoir, Shown, draw_groups, shown_rows, with_texts
from xswe.mining.threshold import Threshold, bounds
from xswe.model.ensemble import AnyModel
from xswe.model.static import StaticModel
from xswe.report import figures
from xswe.report.page import figure, number, percent, render, shortened
from xswe.text.scripts import cjk_runs, has_kana

_HISTOGRAM_BINS, _SLIDER_STEPS = 60, 400
_PROBED_LINES, _NUMBER = 100, re.compile(rb"\s*-?(?:\d+(?:\.\d+)?(?:e[+-]?\d+)?|nan)\s*")  # lines to find the score
_MIN_ABOVE = 30  # pairs above a threshold, for its precision to be shown
_MAX_SHOWN = 600  # characters of a text
_SCRIPTS = {"latin": "Latin", "han": "Han", "kana": "with Kana", "other": "other"}
_NAMES = {
    "above": "Just above the cut",
    "below": "Just below the cut",
    "top": "The very top",
    "random": "At random, of those kept",
}


@dataclass(frozen=True, eq=False)
class PairsView:
    """The content of a page of pairs."""

    title: str  # of the page
    about: str  # one sentence under it
    evidence: Evidence  # scores, samples, and pairs left out
    threshold: Threshold  # the one applied
    kept: int  # pairs kept
    score: str  # the kind of score, in words
    languages: tuple[str, ...] = ()  # of source and target; empty if unknown
    summary: str = ""  # the summary of the run
    seconds: tuple[tuple[str, float], ...] = ()  # of each step
    read: int = 0  # records or lines read
    noise: Noise | None = None  # a filter's estimate of the wrong pairs
    gold: GoldCheck | None = None  # the check of the kept pairs against gold pairs

    @property
    def cut(self) -> float | None:
        """The threshold; None if all pairs are kept."""
        return self.threshold.value if np.isfinite(self.threshold.value) else None


def view_of_mined(mined: MinedPairs) -> PairsView:
    """Return the view of mined pairs; without evidence, it shows the kept pairs only."""
    evidence = mined.evidence or _of_arrays(mined.scores, lambda row: _pair(mined, row), mined.threshold.value)
    report = mined.report
    sides = [] if report is None else [side for side in (report.source, report.target) if side]
    return PairsView(
        "Mined pairs",
        "The scores of the pairs, the precision and recall to expect at each threshold, and samples.",
        evidence,
        mined.threshold,
        len(mined),
        "score",
        mined.languages,
        "" if report is None else str(report),
        () if report is None else tuple(report.seconds.items()),
        sum(side.read for side in sides),
    )


def _pair(mined: MinedPairs, row: int) -> Shown:
    a, b = int(mined.source_rows[row]), int(mined.target_rows[row])
    source, target = ("", "") if mined.source is None or mined.target is None else (mined.source[row], mined.target[row])
    return Shown(row, float(mined.scores[row]), source, target, str(a + 1), str(b + 1))


def view_of_aligned(found: AlignedTexts) -> PairsView:
    """Return the view of two aligned texts: their beads, and the lines without a counterpart."""
    beads = np.flatnonzero(found.is_pair & ~found.moved)  # the scores of mismatches tell how many of these are right
    scores = found.scores[beads].astype(np.float64)
    evidence = _of_arrays(scores, lambda row: _bead(found, int(beads[row]), row), found.threshold.value)
    if found.expected is not None:
        evidence = replace(evidence, scores=found.expected.falling, expected=found.expected)
    alone = Reservoir()
    for side, name, texts in ((0, "source", found.source), (1, "target", found.target)):
        for line in found.spans[~found.is_pair & (np.diff(found.spans)[:, 2 * side] > 0), 2 * side].tolist():
            alone.offer(name, (texts[line],))
    removed = [Removed("no counterpart", name, count, tuple(alone.kept[name])) for name, count in alone.counts.items()]
    about = "Which lines are aligned, how they score, and which lines have no counterpart."
    view = PairsView(
        "Aligned texts", about, replace(evidence, removed=tuple(removed)), found.threshold, len(beads), "score"
    )
    read = len(found.source) + len(found.target)
    return replace(view, languages=found.languages, summary=found.summary(), read=read)


def _bead(found: AlignedTexts, place: int, row: int) -> Shown:
    bead = found[place]
    lines = (", ".join(str(line + 1) for line in side) for side in (bead.source_lines, bead.target_lines))
    return Shown(row, bead.score, bead.source, bead.target, *lines)


def view_of_filtered(found: Filtered) -> PairsView:
    """Return the view of a filter's decisions."""
    evidence = found.evidence
    if evidence is None:
        scores = found.scores[np.isfinite(found.scores)]
        evidence = Evidence(np.sort(scores.astype(np.float64))[::-1], None)
    kept = int(found.kept.sum())
    about = f"{len(found):,} pairs were read and {kept:,} kept. What each filter left out, and the pairs around the cut."
    score = "cosine" if found.noise is None else "probability"
    view = PairsView("Filtered bitext", about, evidence, found.threshold, kept, score, found.languages, str(found))
    return replace(view, read=len(found), noise=found.noise, gold=found.gold)


def view_of_file(path: str | Path, languages: Sequence[str] = ()) -> PairsView:
    """Return the view of a file of scored pairs, which is read twice: for the scores, then for the texts of the samples.

    The file was written by ``mine``, or scored by ``mine mode=score``: tab-separated text with the score in its first or
    last column, a table with a column score, or a translation memory; packed or not.

    ConfigError: the fields or languages of the two texts are unknown. InputError: the file is missing, or a record
    has no score.
    """
    file = _scored(str(path), tuple(languages))
    scores = np.fromiter((_score(file, unit, n) for n, unit in enumerate(read_units(file, Skipped()), 1)), np.float32)
    if not len(scores):
        raise InputError(path, "no pair in it", "give a file of pairs, as mine writes it")
    groups = draw_groups(scores, -np.inf)
    wanted = shown_rows(groups)
    records = ((row, record.texts or ("", "")) for row, record in enumerate(file.read()) if row in wanted)
    texts = {row: Shown(row, float(scores[row]), *pair) for row, pair in records}
    evidence = Evidence(np.sort(scores.astype(np.float64))[::-1], None, with_texts(groups, texts))
    about = f"The {len(scores):,} pairs of {Path(path).name}: their scores, and samples."
    return PairsView("Scored pairs", about, evidence, Threshold(-np.inf, "none"), len(scores), "score", tuple(languages))


_SCORED = "give what mine wrote, or add scores with  python -m xswe mine mode=score"


def _scored(path: str, languages: tuple[str, ...]) -> Source:
    """Return a file of scored pairs with the columns of its texts and, if tab-separated, of the score (-1: the last)."""
    file = Source((path,), languages=languages)
    if file.kind == "tsv":
        first = [record.raw.removeprefix(BYTE_ORDER_MARK).split(b"\t") for record in islice(file.read_raw(), _PROBED_LINES)]
        if first and not (_NUMBER.fullmatch(first[0][0]) or _NUMBER.fullmatch(first[0][-1])):
            raise InputError(path, "no score", _SCORED, 1)
        last = all(_NUMBER.fullmatch(row[-1]) for row in first) and not all(_NUMBER.fullmatch(row[0]) for row in first)
        return replace(file, columns=(0, 1) if last else (1, 2), score=-last)
    if file.kind != "csv":
        return replace(file, languages=() if file.kind == "jsonl" else file.languages)
    header = column_names(file)
    texts = sorted({"source", "target"} & set(header)) or [name for name in header if name != "score"]
    if "score" not in header or len(texts) != 2:
        hint = f"name them score, source and target; or {_SCORED}"
        raise InputError(path, f"its columns are {', '.join(header)}", hint, 1)
    return replace(file, columns=tuple(texts))


def _score(file: Source, unit: Unit | None, line: int) -> float:
    if unit is None or (unit.score is None and not (unit.source and unit.target)):
        return np.nan
    if unit.score is None:
        raise InputError(file.paths[0], "no score", _SCORED, line)
    return unit.score


def _of_arrays(scores: np.ndarray, pair: Any, threshold: float) -> Evidence:
    groups = draw_groups(scores, threshold)
    texts = {row: pair(row) for row in shown_rows(groups)}
    return Evidence(np.sort(scores.astype(np.float64))[::-1], None, with_texts(groups, texts))


def mined_page(mined: MinedPairs, model: AnyModel | None = None, settings: dict[str, Any] | None = None) -> str:
    """Return the page of mined pairs."""
    return pairs_page(view_of_mined(mined), model, settings)


def filtered_page(found: Filtered, model: AnyModel | None = None, settings: dict[str, Any] | None = None) -> str:
    """Return the page of a filtered bitext."""
    return pairs_page(view_of_filtered(found), model, settings)


def pairs_page(view: PairsView, model: AnyModel | None = None, settings: dict[str, Any] | None = None) -> str:
    """Return the page of a view, with the settings of its run; with a model, the words of the pairs are linked."""
    return render("pairs.html", scripts=["cut.js", "marks.js", "pairs.js"], **pairs_context(view, model, settings))


def pairs_context(view: PairsView, model: AnyModel | None, settings: dict[str, Any] | None) -> dict[str, Any]:
    """Return the template context for a page of pairs."""
    evidence, threshold = view.evidence, view.threshold
    scores = evidence.scores[np.isfinite(evidence.scores)]
    links = _links(evidence.groups, model)
    groups = [_group(group, view.languages, threshold, links) for group in evidence.groups if group.pairs]
    return {
        "data": _data(view, scores) if len(scores) else None,
        "title": view.title,
        "about": view.about,
        "view": view,
        "evidence": evidence,
        "overview": _overview(view),
        "histogram": _histogram(view, scores) if len(scores) else "",
        "curve": _curve(view),
        "groups": groups,
        "linked": bool(links),
        "removed": _removed(view),
        "noise": _noise(view),
        "degrees": [(hubs, _degrees(view, hubs)) for hubs in evidence.hubs if any(hubs.chosen)],
        "lengths": _lengths(view),
        "scripts_of": _scripts(view),
        "settings": settings,
    }


def _overview(view: PairsView) -> list[tuple[str, str, str]]:
    found = [("read", number(view.read), "lines or records")] if view.read else []
    found.append(("pairs before the cut", number(len(view.evidence.scores)), ""))
    found.append(("pairs kept", number(view.kept), ""))
    if np.isfinite(view.threshold.value):
        found.append(("threshold", figure(view.threshold.value), view.threshold.origin))
    if view.threshold.precision is not None:
        within = "" if view.threshold.within is None else f", {bounds(*view.threshold.within)}"
        aside = f", but for {' and '.join(view.threshold.aside)}" if view.threshold.aside else ""
        found.append(("expected precision", percent(view.threshold.precision, 0), f"of the kept pairs{within}{aside}"))
    elif view.threshold.within is not None:
        found.append(("expected precision", bounds(*view.threshold.within), "of the kept pairs: cannot be narrowed down"))
    if view.threshold.recall is not None and view.threshold.origin == "gold pairs":
        found.append(("recall", percent(view.threshold.recall, 0), "measured on gold"))
    elif view.threshold.recall is not None:
        within = "" if view.threshold.recall_within is None else f", {bounds(*view.threshold.recall_within)}"
        found.append(("expected recall", percent(view.threshold.recall, 0), f"of the right pairs{within}"))
    if view.threshold.share is not None:
        part, *between = view.threshold.share
        found.append(("lines with a translation", percent(part, 0 if part > 0.1 else 1), f"estimated, {bounds(*between)}"))
    if view.gold is not None and view.gold.checked:
        found.append(("precision on gold", percent(view.gold.precision), f"of {number(view.gold.checked)} kept pairs"))
    if view.gold is not None and view.gold.pairs:
        found.append(("recall on gold", percent(view.gold.recall), f"of {number(view.gold.pairs)} gold pairs"))
    if view.noise is not None:
        found.append(("estimated noise", percent(view.noise.share, 0), f"of the pairs compared: {view.noise.by_kind}"))
    if view.evidence.reciprocity is not None:
        found.append(("reciprocity", percent(view.evidence.reciprocity), "nearest neighbours both ways"))
    if total := sum(seconds for _, seconds in view.seconds):
        found.append(("seconds", figure(total, 1), ", ".join(f"{name} {taken:.1f}" for name, taken in view.seconds)))
    return found


def _span(scores: np.ndarray, others: np.ndarray) -> tuple[float, float]:
    """Return the range of a histogram: from the 0.1st to the 99.9th percentile."""
    every = np.concatenate([scores, others])
    low, high = np.quantile(every, [0.001, 0.999])
    return (float(low), float(high)) if high > low else (float(low) - 0.5, float(high) + 0.5)


def _mismatches(view: PairsView) -> np.ndarray:
    return np.zeros(0) if view.evidence.expected is None else view.evidence.expected.mismatches.astype(np.float64)


def _histogram(view: PairsView, scores: np.ndarray) -> Any:
    others = _mismatches(view)
    low, high = _span(scores, others)
    edges = np.linspace(low, high, _HISTOGRAM_BINS + 1)
    series = {"pairs": np.histogram(np.clip(scores, low, high), edges)[0]}
    if view.evidence.expected is not None and len(others):
        weight = view.evidence.expected.weight
        series["mismatches, as many as are expected among the pairs"] = (
            weight * np.histogram(np.clip(others, low, high), edges)[0]
        )
    label = f"Histogram of the scores of {len(scores):,} pairs" + (" over that of mismatches" if len(others) else "")
    return figures.histogram(edges, series, view.score, label, low if view.cut is None else view.cut, "pairs")


def _data(view: PairsView, scores: np.ndarray) -> dict[str, Any]:
    """Return the data of the slider: for each step, the pairs at or above it, their expected precision and recall."""
    low, high = _span(scores, _mismatches(view))
    steps, value = np.linspace(low, high, _SLIDER_STEPS), view.threshold.value
    if np.isfinite(value):
        steps = np.unique(np.append(steps, value))
    steps[0] = min(steps[0], scores[-1])  # the lowest step keeps all pairs
    above = np.searchsorted(-scores, -steps, "right")
    expected = view.evidence.expected
    estimates = [] if expected is None else [expected.threshold("", None, float(step)) for step in steps]
    at = int(np.abs(steps - value).argmin()) if np.isfinite(value) else 0
    return {
        "id": arrays_digest(scores.astype(np.float32))[:16],
        "low": low,
        "high": high,
        "steps": steps.round(6).tolist(),
        "above": above.tolist(),
        "precision": [_expected(one.precision, one.within) for one in estimates],
        "recall": [_expected(one.recall, one.recall_within) for one in estimates],
        "unsure": "" if expected is None else expected.unsure,
        "at": at,
        "languages": list(view.languages),
        "groups": [
            {"name": _named(g), "kind": g.name, "size": g.size, "low": g.low} for g in view.evidence.groups if g.pairs
        ],
        "value": view.cut,
    }


def _expected(share: float | None, within: tuple[float, float] | None) -> str:
    """Return a share with its bounds, the bounds alone if the share is too uncertain, or a dash if neither is known."""
    if share is None or within is None:
        return percent(share, 0) if within is None else bounds(*within)
    return f"{percent(share, 0)} ({bounds(*within)})"


def _curve(view: PairsView) -> Any:
    """Draw expected precision and recall by threshold."""
    expected = view.evidence.expected
    if expected is None or expected.unsure or not len(expected.falling):
        return ""
    span = low, high = _span(view.evidence.scores, _mismatches(view))  # the range of the histogram above it
    high = min(high, float(expected.falling[min(_MIN_ABOVE, len(expected.falling)) - 1]))
    points = [(float(step), *expected.between(float(step), None)) for step in np.linspace(low, high, 120)]
    names = ("expected precision", "expected recall")
    series = {name: [(p[0], 100 * (p[k] or 0.0)) for p in points if p[k] is not None] for k, name in enumerate(names, 1)}
    if min(map(len, series.values())) < 2:
        return ""
    label = "Expected precision rises and expected recall falls with the threshold"
    return figures.lines(series, view.score, "%", label, zero=True, mark=view.cut, span=span)


def _named(group: Group) -> str:
    return f"Band {group.low:.4f} to {group.high:.4f}" if group.name == "band" else _NAMES[group.name]


def _links(groups: Sequence[Group], model: AnyModel | None) -> dict[int, tuple[list[Part], list[Part]]]:
    """Return the parts of the texts of each pair shown, linked words with equal numbers; empty without a model."""
    pairs = {pair.row: (pair.source[:_MAX_SHOWN], pair.target[:_MAX_SHOWN]) for group in groups for pair in group.pairs}
    return {} if model is None else dict(zip(pairs, linked(model, list(pairs.values())), strict=True))


def _group(
    group: Group, languages: tuple[str, ...], threshold: Threshold, links: dict[int, tuple[list[Part], list[Part]]]
) -> dict[str, Any]:
    """Return the template data of a group, with long texts cut."""
    name = _named(group)
    if group.name == "band" and np.isfinite(threshold.value):
        name += ", kept" if group.low >= np.float32(threshold.value) else ", below the cut"
    pairs = []
    for pair in group.pairs:
        sides = [_side(text, k, languages) for k, text in enumerate((pair.source, pair.target))]
        for side, parts in zip(sides, links.get(pair.row, ()), strict=False):
            side["parts"] = [*parts, ("…", -1)] if side["text"].endswith("…") else parts
        where = f"{pair.source_line} · {pair.target_line}" if pair.source_line else ""
        cut = len(pair.source) > _MAX_SHOWN or len(pair.target) > _MAX_SHOWN
        pairs.append({"row": pair.row, "score": pair.score, "lines": where, "cut": cut, "sides": sides})
    folded = group.name not in ("above", "below", "top")
    return {"name": name, "kind": group.name, "size": group.size, "pairs": pairs, "open": not folded}


def _removed(view: PairsView) -> list[dict[str, Any]]:
    """Return the template data of lines and pairs left out, the most frequent reason first."""
    out = []
    for removed in sorted(view.evidence.removed, key=lambda one: -one.count):
        languages_of_side = {"source": view.languages[:1], "target": view.languages[1:2]}.get(removed.side)
        examples = [
            [_side(text, k, view.languages, languages_of_side) for k, text in enumerate(e)] for e in removed.examples
        ]
        out.append({"reason": removed.reason, "side": removed.side, "count": removed.count, "examples": examples})
    return out


def _noise(view: PairsView) -> list[tuple[str, str, str, str]]:
    """Return each kind of wrong pairs, the most frequent first: its share, the number dropped, and the share kept."""
    if view.noise is None:
        return []
    dropped = {removed.reason: removed.count for removed in view.evidence.removed}
    kinds = sorted(view.noise.kinds, key=lambda one: -one[1])
    return [(kind, percent(share), number(dropped.get(kind, 0)), percent(kept, 0)) for kind, share, kept in kinds]


def _side(
    text: str, place: int, languages: tuple[str, ...], languages_of_side: tuple[str, ...] | None = None
) -> dict[str, Any]:
    """Return the template data of a text, cut if it is long, with its possible languages."""
    shown = shortened(text, _MAX_SHOWN)
    return {
        "text": shown,
        "parts": [(shown, -1)],
        "languages": languages[place : place + 1] if languages_of_side is None else languages_of_side,
    }


def _degrees(view: PairsView, hubs: Any) -> Any:
    """Draw how many lines are chosen how often as a nearest neighbour."""
    edges = np.arange(len(hubs.chosen) + 1, dtype=float) - 0.5
    label = f"How many {hubs.side} lines are among the nearest of how many lines of the other side"
    title = f"times among the nearest (the last: {len(hubs.chosen) - 1} and more)"
    return figures.histogram(edges, {"lines": np.array(hubs.chosen, float)}, title, label, y_title="lines")


def _drawn(view: PairsView) -> Iterator[tuple[bool, Shown]]:
    """Yield the pairs of the bands, each with whether it is kept."""
    for group in view.evidence.groups:
        if group.name == "band" or not any(g.name == "band" for g in view.evidence.groups):
            for pair in group.pairs:
                yield bool(pair.score >= np.float32(view.threshold.value)), pair


def _lengths(view: PairsView) -> Any:
    """Draw the lengths of the two sides against each other."""
    series: dict[str, list[tuple[float, float, str]]] = {"kept": [], "below the cut": []}
    for kept, pair in _drawn(view):
        sizes = [len(text.encode("utf-8", "replace")) for text in (pair.source, pair.target)]
        if all(sizes):
            series["kept" if kept else "below the cut"].append((sizes[0], sizes[1], pair.source[:60]))
    series = {name: points for name, points in series.items() if points}
    if not series:
        return ""
    label = "Bytes of the target against bytes of the source, of the pairs drawn from the bands"
    how: dict[str, Any] = {"log": (True, True), "texts": dict.fromkeys(series, view.languages[:1]), "height": 280}
    return figures.dots(series, "bytes of the source", "bytes of the target", label, **how)


def _scripts(view: PairsView) -> str:
    """Draw the share of each script among the sampled texts of each side."""
    pairs = [pair for _, pair in _drawn(view)]
    groups: dict[str, dict[str, figures.Bar]] = {}
    for side, texts in (("source", [pair.source for pair in pairs]), ("target", [pair.target for pair in pairs])):
        if kinds := [_script(text) for text in texts if text]:
            groups[side] = {name: (100 * kinds.count(kind) / len(kinds), None, None) for kind, name in _SCRIPTS.items()}
    return figures.bars(groups, "% of the texts", "Scripts of the pairs drawn from the bands") if groups else ""


def _script(text: str) -> str:
    if has_kana(text):
        return "kana"
    letters = sum(map(str.isalpha, text))
    if 2 * sum(stop - start for start, stop in cjk_runs(text)) >= max(1, letters):
        return "han"
    return "latin" if 2 * sum(c.isalpha() and c < "ɐ" for c in text) >= max(1, letters) else "other"


_MIN_LINK_COSINE = 0.45  # of linked words: well above that of words drawn at random
Part = tuple[str, int]  # a part of a text, and the number of its link; -1 for none


def linked(model: AnyModel, pairs: Sequence[tuple[str, str]]) -> list[tuple[list[Part], list[Part]]]:
    """Split both sides of pairs into parts, linked words with equal numbers; with an ensemble, no words are linked.

    Returns the parts of both sides of each pair, which concatenate to the texts.
    """
    if not isinstance(model, StaticModel):
        return [([(source, -1)], [(target, -1)]) for source, target in pairs]
    sources, targets = ([pair[side] for pair in pairs] for side in (0, 1))
    out = []
    for pair in align_words(model, sources, targets, method="intersection", min_score=_MIN_LINK_COSINE):
        left = _parts(pair.source, pair.source_words, {i: n for n, (i, _) in enumerate(pair.links)})
        out.append((left, _parts(pair.target, pair.target_words, {j: n for n, (_, j) in enumerate(pair.links)})))
    return out


def _parts(text: str, places: Sequence[tuple[int, int]], links: dict[int, int]) -> list[Part]:
    out, done = [], 0
    for k, (start, end) in enumerate(places):
        if k in links:
            out += [(text[done:start], -1), (text[start:end], links[k])]
            done = end
    return [part for part in [*out, (text[done:], -1)] if part[0]]
