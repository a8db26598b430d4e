"""Which settings of ``align`` do best on translations that people aligned by hand, and by how much.

    python -m eval.experiments.align_settings mac=FOLDER alpine=FOLDER [model=mini] [encoder=use-multilingual]
        [reported=FOLDER] [rounds=1000] [output=FILE.json]

``mac`` has MAC-Dev in InterText's XML (Zhu 2021: a chapter each of six Chinese novels, and its English translation), and
``alpine`` Text+Berg (Volk et al. 2010: ``de/001``, ``fr/001``, ``gold/001``, …, articles of an Alpine club's yearbook in
German and French); both aligned by hand, and cut into lines by others. The former is aligned with the vectors of the
model, the latter with those of an encoder that knows French. From the defaults on, one setting after the other takes the
value with the highest mean of both sets' strict F1, until none changes; what was tried is compared with the defaults by
draws of whole documents, in which both see the same ones. Nothing here has its texts or its maker in common with the
documents that ``align_quality.py`` edits; ``reported`` (MAC-Test: other chapters of the same novels) and those documents
are measured with the defaults and with what was chosen, and choose nothing.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import xswe
from eval.experiments.align_gold import Document, beads_of, counts, f1
from eval.experiments.align_quality import documents, novels
from eval.experiments.baselines import open_encoder
from eval.settings import DATA, REQUIRED, RESULTS, run_script
from xswe.alignment.beads import AlignConfig, Lines, align_lines, line_sums
from xswe.io.files import write_json
from xswe.io.results import table
from xswe.model.ensemble import AnyModel

DEFAULTS: dict[str, Any] = {"mac": REQUIRED, "alpine": REQUIRED, "model": "mini", "encoder": "use-multilingual"}
DEFAULTS |= {"reported": "", "rounds": 1000, "output": str(RESULTS / "align_settings.json")}
TRIED = {
    "gap": (0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3),
    "merge": (0.1, 0.15, 0.2, 0.25, 0.3),
    "length": (0.0, 0.02, 0.05, 0.1, 0.15, 0.2),
    "prior": (1.0, 1.5, 2.0, 3.0),
}
Prepared = tuple[Lines, Lines, Document]


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


def measured(prepared: Sequence[Prepared], config: AlignConfig) -> np.ndarray:
    """Align documents; return what :func:`~eval.experiments.align_gold.counts` counts, int64 (documents, 5)."""
    totals = []
    for source, target, document in prepared:
        sides = (Lines(side.sums.copy(), side.sizes.copy()) for side in (source, target))  # which it centres
        totals.append(counts(beads_of(align_lines(*sides, config)[0]), document.beads))
    return np.array(totals)


def interval(ours: Sequence[np.ndarray], others: Sequence[np.ndarray], rounds: int) -> tuple[float, float]:
    """Return the 95 % interval of what others add to our strict F1, mean of the sets, over draws of whole documents."""
    draw, found = np.random.default_rng(0), []
    for _ in range(rounds):
        added = []
        for own, other in zip(ours, others, strict=True):
            rows = draw.integers(0, len(own), len(own))
            added.append(f1(other[rows].sum(0))[0] - f1(own[rows].sum(0))[0])
        found.append(np.mean(added))
    low, high = np.percentile(found, [2.5, 97.5])
    return float(low), float(high)


def main(settings: dict[str, Any]) -> None:
    """Try all, choose, compare, print and write."""
    model = xswe.load(settings["model"])
    by_hand = {
        "MAC-Dev": by_model(model, [one for *_, one in novels(Path(settings["mac"]))]),
        "Text+Berg": by_encoder(settings["encoder"], alpine(Path(settings["alpine"]))),
    }
    names, usual = list(TRIED), tuple(getattr(AlignConfig(), name) for name in TRIED)
    totals: dict[tuple[float, ...], list[np.ndarray]] = {}

    def strict(values: tuple[float, ...]) -> list[float]:
        """Return each set's strict F1."""
        if values not in totals:
            config = AlignConfig(**dict(zip(names, values, strict=True)))
            totals[values] = [measured(one, config) for one in by_hand.values()]
        return [f1(total.sum(0))[0] for total in totals[values]]

    best, before = usual, None
    while best != before:
        before = best
        for k, name in enumerate(names):
            others = [(*best[:k], value, *best[k + 1 :]) for value in TRIED[name]]
            best = max([best, *others], key=lambda values: float(np.mean(strict(values))))
    rows = []
    for values in sorted(totals, key=lambda values: -float(np.mean(strict(values)))):
        row = {**dict(zip(names, values, strict=True)), "strict": strict(values)}
        row["lax"] = [f1(total.sum(0))[1] for total in totals[values]]
        row["adds"] = float(np.mean(strict(values)) - np.mean(strict(usual)))
        row["interval"] = interval(totals[usual], totals[values], settings["rounds"])
        rows.append(row)
    result: dict[str, Any] = {
        **{"model": settings["model"], "encoder": settings["encoder"]},
        "sets": {
            name: {"documents": len(one), "beads": sum(len(d.beads) for *_, d in one)} for name, one in by_hand.items()
        },
        **{"defaults": dict(zip(names, usual, strict=True)), "best": dict(zip(names, best, strict=True))},
        **{"rows": rows, "reported": {}},
    }
    reported: dict[str, list[Document]] = {}
    for *_, kind, _, document in documents(DATA):
        reported.setdefault(kind, []).append(document)
    if settings["reported"]:
        reported["novels"] = [one for *_, one in novels(Path(settings["reported"]))]
    for kind, found in reported.items():
        prepared = by_model(model, found)
        result["reported"][kind] = {
            which: f1(measured(prepared, AlignConfig(**dict(zip(names, values, strict=True)))).sum(0))
            for which, values in (("defaults", usual), ("best", best))
        }
    header = [*names, *by_hand, "adds", "from", "to"]
    print(table(header, [[*(row[n] for n in names), *row["strict"], row["adds"], *row["interval"]] for row in rows]))
    print(result["best"], result["reported"], sep="\n")
    write_json(Path(settings["output"]), result)


if __name__ == "__main__":
    run_script(main, DEFAULTS, __doc__)
