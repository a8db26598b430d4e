"""The page of aligned texts: lines without a counterpart, and pairs to review, the worst first."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from xswe.alignment.sentences import AlignedTexts
from xswe.report.page import number, render, shortened
from xswe.report.pairs import pairs_context, view_of_aligned

_REVIEWED, _CONTEXT = 120, 2  # pairs to review, and beads shown on either side of each
_TEXT_CHARACTERS = 320  # shown of a text
_MAP_SHAPES = 600  # at most
_MAX_LISTED = 60


class Stretch(NamedTuple):
    """Consecutive lines of one kind: aligned, moved, or on one side only."""

    kind: str  # "aligned", "moved", "source", "target"
    source: tuple[int, int]  # begin and end
    target: tuple[int, int]  # likewise

    @property
    def size(self) -> int:
        """The number of lines on the longer side."""
        return max(self.source[1] - self.source[0], self.target[1] - self.target[0])


def aligned_page(found: AlignedTexts, settings: dict[str, Any] | None = None) -> str:
    """Return the page of two aligned texts, with the settings of their run."""
    context = pairs_context(view_of_aligned(found), None, settings)
    runs = list(stretches(found))
    worst = _worst(found)
    lost = sorted((run for run in runs if run.kind != "aligned"), key=lambda run: -run.size)
    if found.moved.any():
        context["overview"].append(("out of order", number(int(found.moved.sum())), "more pairs"))
    context |= {
        "map": _map(runs, len(found.source), len(found.target)),
        "stretches": [_listed(found, run) for run in sorted(lost[:_MAX_LISTED], key=lambda run: (run.source, run.target))],
        "more": max(0, len(lost) - _MAX_LISTED),
        "worst": worst,
    }
    data = (context.pop("data") or {}) | {"setting": "min_score", "rungs": [one["rungs"] for one in worst]}
    return render("aligned.html", scripts=["cut.js", "marks.js", "aligned.js"], data=data, **context)


def stretches(found: AlignedTexts) -> Iterator[Stretch]:
    """Yield runs of consecutive beads of the same kind, in source order."""
    kinds = np.where(found.moved, 1, np.where(found.is_pair, 0, np.where(np.diff(found.spans)[:, 0] > 0, 2, 3)))
    names = ("aligned", "moved", "source", "target")
    run: Stretch | None = None
    for kind, (a, b, c, d) in zip(kinds.tolist(), found.spans.tolist(), strict=True):
        goes_on = run is not None and run.kind == names[kind] and (kind == 3 or run.source[1] == a)
        if run and goes_on and (kind == 2 or run.target[1] == c):
            run = run._replace(source=(run.source[0], max(b, run.source[1])), target=(run.target[0], max(d, run.target[1])))
            continue
        if run:
            yield run
        run = Stretch(names[kind], (a, b), (c, d))
    if run:
        yield run


def _map(runs: list[Stretch], n: int, m: int) -> Any:
    """Draw both texts as bars, translations joined, lines without a counterpart in another colour."""
    from markupsafe import Markup

    least = (n + m) / 2 / _MAP_SHAPES
    parts = [
        '<rect class="whole" x="0" y="0" width="1000" height="14"/>',
        '<rect class="whole" x="0" y="106" width="1000" height="14"/>',
    ]
    for run in sorted(_coarse(runs, least), key=lambda run: run.kind == "moved"):
        (a, b), (c, d) = run.source, run.target
        left, right = (1000 * a / max(1, n), 1000 * b / max(1, n)), (1000 * c / max(1, m), 1000 * d / max(1, m))
        title = f"<title>{_place_of(run)}</title>"
        if run.kind in ("aligned", "moved"):
            corners = f"{left[0]:.1f},14 {left[1]:.1f},14 {right[1]:.1f},106 {right[0]:.1f},106"
            parts.append(f'<polygon class="{run.kind}" points="{corners}">{title}</polygon>')
        else:
            begin, end = left if run.kind == "source" else right
            y = 0 if run.kind == "source" else 106
            width = max(1.5, end - begin)
            parts.append(f'<rect class="alone" x="{begin:.1f}" y="{y}" width="{width:.1f}" height="14">{title}</rect>')
    label = f"Source above, {number(n)} lines, and target below, {number(m)}: what belongs together, and what is alone"
    inside = "".join(parts)
    return Markup(
        f'<svg class="map" role="img" aria-label="{label}" viewBox="0 0 1000 120" preserveAspectRatio="none">{inside}</svg>'
    )


def _coarse(runs: list[Stretch], least: float) -> Iterator[Stretch]:
    """Yield the runs without one-sided ones too small to see, and with aligned ones merged across small gaps."""
    before: Stretch | None = None
    for run in runs:
        if run.kind in ("source", "target"):
            if run.size >= least:
                yield run
        elif run.kind == "moved":
            yield run
        elif before and run.source[0] - before.source[1] <= least and 0 <= run.target[0] - before.target[1] <= least:
            before = before._replace(source=(before.source[0], run.source[1]), target=(before.target[0], run.target[1]))
        else:
            if before:
                yield before
            before = run
    if before:
        yield before


def _place_of(run: Stretch) -> str:
    """Return the line numbers of a run, from 1, in words."""
    source, target = (
        f"{begin + 1:,} to {end:,}" if end - begin > 1 else f"{begin + 1:,}" for begin, end in (run.source, run.target)
    )
    if run.kind == "source":
        return f"source {source}, without a counterpart"
    if run.kind == "target":
        return f"target {target}, without a counterpart"
    return f"source {source}, target {target}" + (", out of order" if run.kind == "moved" else "")


def _listed(found: AlignedTexts, run: Stretch) -> dict[str, Any]:
    side = 1 if run.kind == "target" else 0
    texts, (begin, end) = (found.source, found.target)[side], (run.source, run.target)[side]
    first, last = (shortened(texts[line], 160) for line in (begin, end - 1))
    languages_of_side = found.languages[side : side + 1]
    return {
        "where": _place_of(run),
        "lines": run.size,
        "first": first,
        "last": last if end - begin > 1 else "",
        "languages": languages_of_side,
    }


def _worst(found: AlignedTexts) -> list[dict[str, Any]]:
    """Return the unconfirmed pairs with the lowest scores, each with the beads around it."""
    rows = np.flatnonzero(found.is_pair & ~found.fixed)
    rows = rows[np.argsort(found.scores[rows], kind="stable")][:_REVIEWED]
    out = []
    for row in rows.tolist():
        around = range(max(0, row - _CONTEXT), min(len(found), row + _CONTEXT + 1))
        beads = [_shown(found, place, place == row) for place in around]
        out.append({"row": row, "score": float(found.scores[row]), "beads": beads, "rungs": _rungs(found, row)})
    return out


def _shown(found: AlignedTexts, place: int, is_it: bool) -> dict[str, Any]:
    bead = found[place]
    sides = [
        {"text": shortened(text, _TEXT_CHARACTERS), "languages": found.languages[side : side + 1]}
        for side, text in enumerate((bead.source, bead.target))
    ]
    lines = " · ".join(", ".join(str(line + 1) for line in side) or "–" for side in (bead.source_lines, bead.target_lines))
    return {"sides": sides, "lines": lines, "is_it": is_it, "moved": bead.status == "moved"}


def _rungs(found: AlignedTexts, row: int) -> dict[str, list[Any]]:
    """Return, for each mark that has an effect, its lines on both sides and the status that they get."""
    a, b, c, d = found.spans[row].tolist()
    out: dict[str, list[Any]] = {"right": [[a, b, c, d], ""], "wrong": [[a, b, c, d], "rejected"]}
    if b - a > 1 or d - c > 1:
        out["split"] = [[a, b, c, d], "rejected"]
    if row + 1 < len(found):
        e, f, g, h = found.spans[row + 1].tolist()
        follows = (e in (b, f)) and (g in (d, h))
        if follows and max(f - a, h - c) <= 5:
            out["merge"] = [[a, max(b, f), c, max(d, h)], ""]
    return out
