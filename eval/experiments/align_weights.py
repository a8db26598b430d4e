"""What a bead of several lines is to count for each line beyond one a side, and to cost (``merge``).

    python -m eval.experiments.align_weights mac=FOLDER alpine=FOLDER reported=FOLDER [model=mini]
        [encoder=use-multilingual] [chosen=eval/results/align_settings.json] [output=FILE.json]

The translations aligned by hand, and what is measured on them, are those of ``align_settings.py``; the other settings are
those that it chose with the former weight. The weight and the cost with the highest mean of both sets' strict F1 are the
defaults. The novels of ``reported`` (MAC-Test) and the documents that ``align_quality.py`` edits choose nothing.
"""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import xswe
from eval.experiments.align_gold import Document, f1
from eval.experiments.align_quality import documents, novels
from eval.experiments.align_settings import FORMER_WEIGHT, alpine, by_encoder, by_model, measured
from eval.settings import DATA, REQUIRED, RESULTS, run_script
from xswe.alignment.beads import AlignConfig
from xswe.io.files import write_json
from xswe.io.results import table

DEFAULTS: dict[str, Any] = {"mac": REQUIRED, "alpine": REQUIRED, "reported": REQUIRED, "model": "mini"}
DEFAULTS |= {"encoder": "use-multilingual", "chosen": str(RESULTS / "align_settings.json")}
DEFAULTS |= {"output": str(RESULTS / "align_weights.json")}
WEIGHTS = (0.0, 0.0625, 0.125, 0.1875, 0.25, 0.375, FORMER_WEIGHT)
COSTS = (0.0, 0.05, 0.1, 0.15, 0.2, 0.25)


def main(settings: dict[str, Any]) -> None:
    """Try all, choose the best, compare, print and write."""
    model, rows = xswe.load(settings["model"]), []
    chosen = json.loads(Path(settings["chosen"]).read_text(encoding="utf-8"))["chosen"]
    by_hand = {
        "MAC-Dev": by_model(model, [one for *_, one in novels(Path(settings["mac"]))]),
        "Text+Berg": by_encoder(settings["encoder"], alpine(Path(settings["alpine"]))),
    }
    for weight, merge in itertools.product(WEIGHTS, COSTS):
        config = AlignConfig(**chosen | {"merge": merge})
        scores = [f1(measured(one, config, weight).sum(0)) for one in by_hand.values()]
        rows.append({"weight": weight, "merge": merge, **dict(zip(by_hand, scores, strict=True))})
        print(rows[-1], flush=True)
    best = max(rows, key=lambda row: sum(row[name][0] for name in by_hand))
    which = {"former": (FORMER_WEIGHT, chosen["merge"]), "best": (best["weight"], best["merge"])}
    sets: dict[str, list[Document]] = {}
    for *_, kind, _, document in documents(DATA):
        sets.setdefault(kind, []).append(document)
    sets["novels"] = [one for *_, one in novels(Path(settings["reported"]))]
    reported: dict[str, dict[str, Any]] = {}
    for kind, found in sets.items():
        prepared = by_model(model, found)
        reported[kind] = {
            name: f1(measured(prepared, AlignConfig(**chosen | {"merge": merge}), weight).sum(0))
            for name, (weight, merge) in which.items()
        }
    figures = [[name, *(value for one in reported.values() for value in one[name])] for name in which]
    print(table(["", *(f"{kind}, {measure}" for kind in reported for measure in ("strict", "lax"))], figures))
    write_json(Path(settings["output"]), {"rows": rows, "sets": list(by_hand), **which, "reported": reported})


if __name__ == "__main__":
    run_script(main, DEFAULTS, __doc__)
