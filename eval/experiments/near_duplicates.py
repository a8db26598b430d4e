"""Which near-duplicates dedup finds in languages without blanks, beside a MinHash of characters and the exact truth.

    python -m eval.experiments.near_duplicates [model=mini] [lines=4000] [output=eval/results/near_duplicates.json]

The truth is exact: a line is a near-duplicate if it shares at least .8 of its character bigrams (Jaccard, NFKC, lower case)
with an earlier one. Lines are real ones of ``XSWE_DATA``, as they follow each other, each text once, so that their
near-duplicates are those of everyday sentences and of software documentation. Judged are lines: of those that a method
drops, how many are near-duplicates, or at least share .7; of the near-duplicates, how many it drops. ``dedup`` compares
shingles of four bytes, a character of Han or Kana and a third; ``digits=ignore``, as bigrams of digits are bigrams, too.
Its semantic duplicates (cosine of .9 and more) say the same with other characters as well: of these the recall alone tells.
MinHash is datasketch's (128 permutations of character bigrams, LSH and the estimate at .8), where it is installed.
"""

from __future__ import annotations

import gzip
import time
import unicodedata
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array

import xswe
from eval.settings import DATA, RESULTS, run_script
from xswe.io.files import write_json
from xswe.io.results import table

DEFAULTS: dict[str, Any] = {"model": "mini", "lines": 4000, "output": str(RESULTS / "near_duplicates.json")}
NEAR, NEARLY = 0.8, 0.7
SETS = {  # a file, and the column
    "en software": ("en-de/msdocs", 0),
    "de software": ("en-de/msdocs", 1),
    "ja software": ("en-ja/msdocs", 1),
    "ja everyday": ("en-ja/tanaka", 1),
    "zh software": ("en-zh/msdocs", 1),
    "zh everyday": ("en-zh/tatoeba", 1),
}


def lines_of(name: str, column: int, most: int) -> list[str]:
    """Read the first different lines that have two characters and more."""
    with gzip.open(DATA / "train" / f"{name}.tsv.gz", "rt", encoding="utf-8") as stream:
        texts = (line.rstrip("\n").split("\t")[column].strip() for line in stream)
        found: dict[str, None] = {}
        for text in texts:
            if len(text) > 1:
                found[text] = None
            if len(found) == most:
                break
    return list(found)


def bigrams(text: str) -> set[str]:
    """Return the character bigrams of a text."""
    plain = unicodedata.normalize("NFKC", text).lower()
    return {plain[place : place + 2] for place in range(len(plain) - 1)} or {plain}


def most_alike(sets: list[set[str]]) -> np.ndarray:
    """Return the largest Jaccard similarity of each line with an earlier one, float64 (n,)."""
    places: dict[str, int] = {}
    columns = [places.setdefault(one, len(places)) for own in sets for one in sorted(own)]
    sizes = np.array([len(own) for own in sets])
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    counts = csr_array((np.ones(len(columns), np.int32), columns, offsets), shape=(len(sets), len(places)))
    best = np.zeros(len(sets))
    for start in range(0, len(sets), 500):
        stop = min(start + 500, len(sets))
        shared = (counts[start:stop] @ counts[:stop].T).toarray()
        alike = shared / (sizes[start:stop, None] + sizes[None, :stop] - shared)
        alike[np.arange(stop)[None, :] >= np.arange(start, stop)[:, None]] = 0
        best[start:stop] = alike.max(axis=1)
    return best


def by_minhash(sets: list[set[str]]) -> np.ndarray:
    """Return the largest similarity with an earlier line that datasketch finds and estimates, 0 for none."""
    from datasketch import MinHash, MinHashLSH

    index, best, hashes = MinHashLSH(threshold=NEAR, num_perm=128), np.zeros(len(sets)), {}
    for row, own in enumerate(sets):
        hashes[row] = made = MinHash(num_perm=128)
        made.update_batch([one.encode() for one in sorted(own)])
        best[row] = max((made.jaccard(hashes[other]) for other in index.query(made)), default=0.0)
        index.insert(row, made)
    return best


def judged(dropped: np.ndarray, truth: np.ndarray, seconds: float) -> dict[str, Any]:
    """Compare what a method drops with the truth."""
    near, right = truth >= NEAR, truth[dropped]
    return {
        "dropped": int(dropped.sum()),
        "near-duplicates": int(near.sum()),
        "precision": float((right >= NEAR).mean()) if len(right) else None,
        "precision at .7": float((right >= NEARLY).mean()) if len(right) else None,
        "recall": float(dropped[near].mean()) if near.any() else None,
        "seconds": round(seconds, 3),
    }


def main(settings: dict[str, Any]) -> None:
    """Measure, print and write."""
    rows: list[dict[str, Any]] = []
    model = xswe.load(settings["model"])
    xswe.dedup(model, ["one", "two"])  # compiles
    for name, (file, column) in SETS.items():
        texts = lines_of(file, column, int(settings["lines"]))
        sets = [bigrams(text) for text in texts]
        truth, started = most_alike(sets), time.process_time()
        found = xswe.dedup(None, texts, threshold=None, near=NEAR, digits="ignore")
        own = judged(~found.kept, truth, time.process_time() - started)
        rows.append({"set": name, "lines": len(texts), "method": "dedup, near", **own})
        started = time.process_time()
        found = xswe.dedup(model, texts, near=NEAR, digits="ignore")
        own = judged(~found.kept, truth, time.process_time() - started)
        rows.append({"set": name, "lines": len(texts), "method": "dedup, near and semantic", **own})
        try:
            started = time.process_time()
            alike = by_minhash(sets)
        except ImportError:
            print("datasketch is not installed: MinHash is left out")
        else:
            other = judged(alike >= NEAR, truth, time.process_time() - started)
            rows.append({"set": name, "lines": len(texts), "method": "datasketch", **other})
    header = list(rows[0])
    print(table(header, [[row[key] for key in header] for row in rows]))
    if settings["output"]:
        write_json(Path(settings["output"]), rows)


if __name__ == "__main__":
    run_script(main, DEFAULTS, __doc__)
