"""How well each kind of noise is separated from good pairs: area under the curve of scores, and what the filter drops.

    python -m eval.experiments.filter_quality [model=mini] [pairs=1500] [threads=1]
        [output=eval/results/filter_quality.json]

Good pairs are the WMT 2023 development bitext (``XSWE_DATA``), which no training has seen; every kind of noise is made of
the same pairs. The score is the cosine, by which the filter decides here (``method=cosine``); beside it the ratio of the
lengths in bytes. ``dropped`` is the share of a kind that the filter drops by its automatic threshold and default filters
(``with numbers``: and ``numbers=true``), where each kind is a tenth of a file of good pairs.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import xswe
from eval.experiments.mining_quality import read_rows
from eval.settings import DATA, RESULTS, run_script
from xswe.io.files import write_json
from xswe.io.results import table

DEFAULTS: dict[str, Any] = {"model": "mini", "pairs": 1500, "threads": 1, "output": str(RESULTS / "filter_quality.json")}
Pairs = list[tuple[str, str]]


def words(text: str) -> list[str]:
    """Cut a text into words, or, where it has no blanks, into twos of characters."""
    found = text.split()
    return found if len(found) > 3 else [text[i : i + 2] for i in range(0, len(text), 2)]


def joined(parts: list[str], text: str) -> str:
    """Put words together again as they were."""
    return (" " if len(text.split()) > 3 else "").join(parts)


def noise(pairs: Pairs, others: list[str], draw: random.Random) -> dict[str, Pairs]:
    """Return the same pairs with each kind of damage done to their targets; those it does not touch are left out."""

    def shuffled(text: str) -> str:
        parts = words(text)
        draw.shuffle(parts)
        return joined(parts, text)

    def renumbered(text: str) -> str:
        return re.sub(r"\d+", lambda found: str(int(found[0]) + draw.randint(1, 9)), text)

    kinds: dict[str, Callable[[int, str, str], str]] = {
        "misaligned": lambda i, a, b: pairs[(i + 1) % len(pairs)][1],
        "wrong language": lambda i, a, b: others[i % len(others)],
        "truncated": lambda i, a, b: joined(words(b)[: max(1, len(words(b)) // 2)], b),
        "extra sentence": lambda i, a, b: f"{b} {pairs[(i + 7) % len(pairs)][1]}",
        "copied": lambda i, a, b: a,
        "numbers changed": lambda i, a, b: renumbered(b),
        "scrambled": lambda i, a, b: shuffled(b),
    }
    made = {name: [(a, how(i, a, b)) for i, (a, b) in enumerate(pairs)] for name, how in kinds.items()}
    return {name: [new for new, old in zip(found, pairs, strict=True) if new != old] for name, found in made.items()}


def area(good: np.ndarray, bad: np.ndarray) -> float:
    """Return the probability that a good pair scores above a bad one."""
    order = np.sort(bad)
    below, not_above = np.searchsorted(order, good, "left"), np.searchsorted(order, good, "right")
    return float((below + not_above).mean() / 2 / len(bad))


def lengths(pairs: Pairs) -> np.ndarray:
    """Return how alike the sides are in length, 1 for the same number of bytes."""
    sizes = np.array([[len(text.encode()) for text in pair] for pair in pairs], float)
    return sizes.min(1) / np.maximum(sizes.max(1), 1)


def main(settings: dict[str, Any]) -> None:
    """Measure and write."""
    model = xswe.load(settings["model"])
    rows = []
    for language in (code for code in ("de", "ja", "zh") if code in model.languages):
        pairs = list(dict.fromkeys(read_rows(DATA / "dev" / f"wmt23.en-{language}.tsv")))[: settings["pairs"]]
        other = "de" if language != "de" else "ja"
        others = [b for _, b in read_rows(DATA / "dev" / f"wmt23.en-{other}.tsv")]
        good = xswe.score(model, *map(list, zip(*pairs, strict=True)))
        for name, bad in noise(pairs, others, random.Random(0)).items():
            row = {"pair": f"en-{language}", "noise": name, "pairs": len(bad)}
            row["cosine"] = area(good, xswe.score(model, *map(list, zip(*bad, strict=True))))
            row["length ratio"] = area(lengths(pairs), lengths(bad))
            part = bad[: len(pairs) // 9]
            how = {"languages": ("en", language), "method": "cosine", "threads": settings["threads"]}
            for title, numbers in (("dropped", False), ("with numbers", True)):
                found = xswe.filter(model, pairs + part, numbers=numbers, **how)
                row[title] = float(1 - found.kept[len(pairs) :].mean())
                row[f"good {title}"] = float(1 - found.kept[: len(pairs)].mean())
            rows.append(row)
    print(table(list(rows[0]), [list(row.values()) for row in rows]))
    write_json(Path(settings["output"]), rows)


if __name__ == "__main__":
    run_script(main, DEFAULTS, __doc__)
