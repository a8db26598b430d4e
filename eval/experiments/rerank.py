"""What a reranker adds to static vectors that have found the candidates, and how few lines it has to encode.

    python -m eval.experiments.rerank [model=mini] [reranker=use-multilingual] [languages=de,ja] [lines=5000]
        [output=FILE.json]

Planted pairs (:mod:`mining_quality`): 1 % and 10 % of the lines have a translation on the other side. Beside each other:
the static model alone, the reranker alone (every line encoded, full search), and ``xswe.mine(…, rerank=reranker)``; each
with the threshold that it finds by itself; and the reranker alone with the threshold that is best in hindsight. Results of
other rerankers and pairs stay in the file.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import xswe
from eval.experiments.baselines import open_encoder
from eval.experiments.bucc import best_threshold, precision_recall_f1
from eval.experiments.mining_quality import TATOEBA, planted_lines
from eval.settings import DATA, chosen, run_script
from xswe.io.results import table
from xswe.mining.pipeline import MineConfig, mine_vectors

DEFAULTS: dict[str, Any] = {
    **{"model": "mini", "reranker": "use-multilingual", "languages": "de,ja", "lines": 5000},
    **{"share": 0.05, "output": "eval/results/rerank.json"},
}
SHARES = (0.01, 0.1)
_BATCH = 256


class Remembering:
    """A reranker that encodes each text once, and counts what it was asked for."""

    def __init__(self, encoder: Any) -> None:
        self._encoder, self._known, self.asked = encoder, dict[str, np.ndarray](), 0

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Return unit vectors."""
        self.asked += len(texts)
        new = sorted(set(texts) - self._known.keys(), key=lambda text: (len(text), text))
        for start in range(0, len(new), _BATCH):
            part = new[start : start + _BATCH]
            self._known |= dict(zip(part, self._encoder.encode(part), strict=True))
        return np.stack([self._known[text] for text in texts])


def figures(source: np.ndarray, target: np.ndarray, total: int) -> dict[str, float]:
    """Return precision, recall and F1; the first ``total`` lines of both sides are the pairs."""
    right = int(((source == target) & (source < total)).sum())
    return dict(zip(("precision", "recall", "f1"), precision_recall_f1(len(source), right, total), strict=True))


def main(settings: dict[str, Any]) -> None:
    """Measure and print; write the figures."""
    model, reranker = xswe.load(settings["model"]), Remembering(open_encoder(settings["reranker"], 1))
    name = Path(settings["reranker"]).name
    rows: list[dict[str, Any]] = []
    for language in chosen(settings["languages"], "languages", list(TATOEBA)):
        for share in SHARES:
            pairs, *others = planted_lines(DATA, f"en-{language}", settings["lines"], share, "alike")
            sides = [[*(pair[k] for pair in pairs), *others[k]] for k in (0, 1)]
            lines = len(sides[0]) + len(sides[1])
            row = {"reranker": name, "model": settings["model"], "pair": f"en-{language}", "share": share, "lines": lines}
            alone = xswe.mine(model, *sides, threads=1)
            found = figures(alone.source_rows, alone.target_rows, len(pairs))
            rows.append({**row, "how": "static", "passes": 0.0, **found})
            reranker.asked = 0
            both = xswe.mine(model, *sides, rerank=reranker, rerank_share=settings["share"], threads=1)
            passes = reranker.asked / lines
            rows.append(
                {**row, "how": "reranked", "passes": passes, **figures(both.source_rows, both.target_rows, len(pairs))}
            )
            vectors = reranker.encode(sides[0]), reranker.encode(sides[1])
            full = mine_vectors(*vectors).pairs
            rows.append({**row, "how": "reranker", "passes": 1.0, **figures(full.source, full.target, len(pairs))})
            full = mine_vectors(*vectors, MineConfig(threshold=None)).pairs
            right = (full.source == full.target) & (full.source < len(pairs))
            full = full.take(np.flatnonzero(full.scores >= best_threshold(full.scores, right, len(pairs))))
            rows.append(
                {**row, "how": "reranker, best cut", "passes": 1.0, **figures(full.source, full.target, len(pairs))}
            )
    header = list(rows[0])
    print(table(header, [[row[key] for key in header] for row in rows]))
    if settings["output"]:
        path = Path(settings["output"])
        kept = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
        done = {(row["reranker"], row["pair"]) for row in rows}
        rows = [*(row for row in kept if (row["reranker"], row["pair"]) not in done), *rows]
        path.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    run_script(main, DEFAULTS, __doc__)
