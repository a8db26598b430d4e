"""Which settings of ``align`` do best on translations that people aligned by hand, and by how much.

    python -m eval.experiments.align_settings mac=FOLDER alpine=FOLDER [model=mini] [encoder=use-multilingual]
        [reported=FOLDER] [rounds=1000] [output=FILE.json]

``mac`` has MAC-Dev in InterText's XML (Zhu 2021: a chapter each of six Chinese novels, and its English translation), and
``alpine`` Text+Berg (Volk et al. 2010: ``de/001``, ``fr/001``, ``gold/001``, …, articles of an Alpine club's yearbook in
German and French); both aligned by hand, and cut into lines by others. The former is aligned with the vectors of the
model, the latter with those of an encoder that knows French. From the former defaults on, which edited documents had
chosen, one setting after the other takes the value with the highest mean of both sets' strict F1, until none changes.
``best`` is where this ends. ``chosen`` are those settings, of all that were tried, that lie nearest to the former defaults
(in values of the lists below), and fall short of the best by no more than one standard error of this difference: thirteen
documents do not tell them apart. Errors and intervals are of draws of whole documents, in which both settings see the same
ones. Nothing here has its texts or its maker in common with the documents that ``align_quality.py`` edits; ``reported``
(MAC-Test: other chapters of the same novels) and those documents are measured with all three, and choose nothing. Beads
of several lines count what they did when this was chosen; ``align_weights.py`` has what they count now.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import xswe
from eval.experiments.align_gold import Document, beads_of, counts, f1
from eval.experiments.align_quality import documents, novels
from eval.experiments.baselines import open_encoder
from eval.settings import DATA, REQUIRED, RESULTS, run_script
from xswe.alignment import beads
from xswe.alignment.beads import AlignConfig, Lines, align_lines, line_sums
from xswe.io.files import write_json
from xswe.io.results import table
from xswe.model.ensemble import AnyModel

DEFAULTS: dict[str, Any] = {"mac": REQUIRED, "alpine": REQUIRED, "model": "mini", "encoder": "use-multilingual"}
DEFAULTS |= {"reported": "", "rounds": 1000, "output": str(RESULTS / "align_settings.json")}
FORMER = {"gap": 0.2, "merge": 0.2, "length": 0.05, "prior": 2.0}
TRIED = {
    "gap": (0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3),
    "merge": (0.1, 0.15, 0.2, 0.25, 0.3),
    "length": (0.0, 0.02, 0.05, 0.1, 0.15, 0.2),
    "prior": (1.0, 1.5, 2.0, 3.0),
}
FORMER_WEIGHT = 0.5  # what a bead counts more for each line beyond one a side; see align_weights.py
Prepared = tuple[Lines, Lines, Document]
Values = tuple[float, ...]  # of the settings, in their order


def alpine(folder: Path) -> list[Document]:
    """Read the articles of Text+Berg."""
    found = []
    for path in sorted((folder / "gold").iterdir()):
        sides = [(folder / code / path.name).read_text(encoding="utf-8").rstrip("\n").split("\n") for code in ("de", "fr")]
        rows = [[json.loads(side) for side in line.split(":")] for line in path.read_text().split("\n") if line]
        found.append(Document(sides[0], sides[1], [(tuple(a), tuple(b)) for a, b in rows if a and b]))
    return found


def by_model(model: AnyModel, found: Sequence[Document]) -> list[Prepared]:
    """Encode the lines of documents by a model."""
    return [(line_sums(model, document.source), line_sums(model, document.target), document) for document in found]


def by_encoder(name: str, found: Sequence[Document]) -> list[Prepared]:
    """Encode the lines of documents by an encoder; a line counts as often as it has characters."""
    encoder = open_encoder(name, 1)

    def lines(texts: list[str]) -> Lines:
        sizes = np.fromiter(map(len, texts), np.float32, len(texts))
        return Lines(encoder.encode(texts) * sizes[:, None], sizes)

    return [(lines(document.source), lines(document.target), document) for document in found]


def measured(prepared: Sequence[Prepared], config: AlignConfig, weight: float = FORMER_WEIGHT) -> np.ndarray:
    """Align documents; return what :func:`~eval.experiments.align_gold.counts` counts, int64 (documents, 5)."""
    totals, beads._LINE_WEIGHT = [], weight
    for source, target, document in prepared:
        sides = (Lines(side.sums.copy(), side.sizes.copy()) for side in (source, target))  # which it centres
        totals.append(counts(beads_of(align_lines(*sides, config)[0]), document.beads))
    return np.array(totals)


def added(ours: Sequence[np.ndarray], others: Sequence[np.ndarray], rounds: int) -> np.ndarray:
    """Return what others add to our strict F1, mean of the sets, in draws of whole documents, float64 (rounds,)."""
    draw, found = np.random.default_rng(0), []
    for _ in range(rounds):
        more = []
        for own, other in zip(ours, others, strict=True):
            rows = draw.integers(0, len(own), len(own))
            more.append(f1(other[rows].sum(0))[0] - f1(own[rows].sum(0))[0])
        found.append(np.mean(more))
    return np.array(found)


def strict(totals: Sequence[np.ndarray]) -> float:
    """Return the mean of the sets' strict F1."""
    return float(np.mean([f1(total.sum(0))[0] for total in totals]))


def choose(totals: Mapping[Values, Sequence[np.ndarray]], rounds: int) -> Values:
    """Return the values nearest to the former ones among those at most one standard error below the best ones.

    The error is that of the difference from the best ones; of several that are as near, the best are returned.
    """
    best = max(totals, key=lambda values: strict(totals[values]))

    def is_as_good(values: Values) -> bool:
        short = strict(totals[best]) - strict(totals[values])
        return short <= float(added(totals[best], totals[values], rounds).std())

    def away(values: Values) -> int:
        grid = zip(TRIED.values(), values, FORMER.values(), strict=True)
        return sum(abs(tried.index(value) - tried.index(former)) for tried, value, former in grid)

    return min(filter(is_as_good, totals), key=lambda values: (away(values), -strict(totals[values])))


def main(settings: dict[str, Any]) -> None:
    """Try all, choose, compare, print and write."""
    model = xswe.load(settings["model"])
    by_hand = {
        "MAC-Dev": by_model(model, [one for *_, one in novels(Path(settings["mac"]))]),
        "Text+Berg": by_encoder(settings["encoder"], alpine(Path(settings["alpine"]))),
    }
    names, former = list(TRIED), tuple(FORMER.values())
    totals: dict[Values, list[np.ndarray]] = {}

    def score(values: Values) -> float:
        if values not in totals:
            totals[values] = [measured(one, config_of(values)) for one in by_hand.values()]
        return strict(totals[values])

    best, before = former, None
    while best != before:
        before = best
        for k, name in enumerate(names):
            others = [(*best[:k], value, *best[k + 1 :]) for value in TRIED[name]]
            best = max([best, *others], key=score)
    which = {"former": former, "best": best, "chosen": choose(totals, settings["rounds"])}
    rows: list[dict[str, Any]] = []
    for values in sorted(totals, key=score, reverse=True):
        scores = np.array([f1(total.sum(0)) for total in totals[values]])
        row = {**dict(zip(names, values, strict=True)), "strict": scores[:, 0].tolist(), "lax": scores[:, 1].tolist()}
        row["adds"] = score(values) - score(former)
        row["interval"] = np.percentile(added(totals[former], totals[values], settings["rounds"]), [2.5, 97.5]).tolist()
        row["short"] = score(best) - score(values)
        row["error"] = float(added(totals[best], totals[values], settings["rounds"]).std())
        rows.append(row)
    result: dict[str, Any] = {
        **{"model": settings["model"], "encoder": settings["encoder"]},
        "sets": {
            name: {"documents": len(one), "beads": sum(len(d.beads) for *_, d in one)} for name, one in by_hand.items()
        },
        **{key: dict(zip(names, values, strict=True)) for key, values in which.items()},
        **{"rows": rows, "reported": {}},
    }
    reported: dict[str, list[Document]] = {}
    for *_, kind, _, document in documents(DATA):
        reported.setdefault(kind, []).append(document)
    if settings["reported"]:
        reported["novels"] = [one for *_, one in novels(Path(settings["reported"]))]
    for kind, found in reported.items():
        prepared = by_model(model, found)
        result["reported"][kind] = {key: f1(measured(prepared, config_of(values)).sum(0)) for key, values in which.items()}
    header = [*names, *by_hand, "adds", "from", "to", "short", "error"]
    figures = [[*row["strict"], row["adds"], *row["interval"], row["short"], row["error"]] for row in rows]
    print(table(header, [[*(row[n] for n in names), *one] for row, one in zip(rows, figures, strict=True)]))
    print(which, result["reported"], sep="\n")
    write_json(Path(settings["output"]), result)


def config_of(values: Values) -> AlignConfig:
    """Return the settings with these values."""
    return AlignConfig(**dict(zip(TRIED, values, strict=True)))


if __name__ == "__main__":
    run_script(main, DEFAULTS, __doc__)
