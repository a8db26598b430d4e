"""What large jobs cost on machines of a given size, computed from what was measured on a small one.

    python -m eval.report.cluster_costs [page=docs/how-to/several-machines.md]

reads ``results/bench_encode.json`` and ``results/bench_mine.json``, writes ``results/cluster_costs.json``, and fills the
table between ``<!-- costs -->`` and ``<!-- end -->`` of the page. Nothing of this was run: it is arithmetic, and all
numbers that were not measured here stand below under their names.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from statistics import harmonic_mean
from typing import Any

from eval.settings import RESULTS, run_script
from xswe.io.files import write_json
from xswe.io.results import markdown

SETTINGS = {"page": ""}
# What was not measured here.
SENTENCE_BYTES = 120  # of 20 words
DISK = 2e9  # bytes a second that a node reads or writes, of one file system that all share
CORES = 16  # of a node
CARD = {"name": "H200", "bf16": 990e12, "float32": 67e12, "share": 0.3}  # peaks of its data sheet, and how much is reached
MGTE = {"parameters": 113e6, "tokens": 30}  # of mGTE-base beside its embeddings, and a sentence's; 768 dimensions
DIM, K = 256, 6  # of the vectors, and the length of lists: 4, and 2 that calibration strikes


def constants() -> dict[str, float]:
    """Return what was measured: sentences and pairs a thread and second."""
    encode = json.loads((RESULTS / "bench_encode.json").read_text(encoding="utf-8"))
    rates = [row["rates"]["xswe sub-words"] for row in encode["rows"] if row["words"] == 20 and row["threads"] == 1]
    mine = json.loads((RESULTS / "bench_mine.json").read_text(encoding="utf-8"))
    return {
        "sentences_per_thread_second": harmonic_mean(rates),
        "exact_pairs_per_thread_second": 1e10 / mine["threads"] / mine["100000"]["xswe exact"]["seconds"],
        "clusters_thread_seconds_at_1e6": mine["threads"] * mine["1000000"]["xswe clusters"]["seconds"],
    }


def jobs(found: dict[str, float]) -> list[dict[str, Any]]:
    """Return every job: hours of a thread or card, and of a node's disk; the larger one on one node is what binds."""
    clusters = found["clusters_thread_seconds_at_1e6"] * 1000  # n sqrt(n) from 10^6 to 10^8
    partial = 256 * 0.4e9  # bytes of the sums that shards leave at most: 128,000 units of 768 numbers each
    flops = 2 * MGTE["parameters"] * MGTE["tokens"] * 1e8
    exact = 1e16 * 2 * DIM
    encoded = 1e10 / found["sentences_per_thread_second"]
    read = 1e10 * SENTENCE_BYTES
    lists = 2 * 1e8 * K * 8
    probes = 8
    return [
        job("encode 10^10 sentences, float32", encoded, 0, read + 1e10 * DIM * 4 * 3),  # joined: once more read and written
        job("the same, int8 in `vectors/*.npy`", encoded, 0, read + 1e10 * (DIM + 4)),
        job(
            "extract 10^8 sentences, mGTE-base",
            0,
            flops / CARD["bf16"] / CARD["share"],
            1e8 * SENTENCE_BYTES + 2 * partial,
        ),
        job("mine 10^8 x 10^8, clusters, int8", clusters, 0, 2 * 1e8 * DIM * (2 + probes) + 4 * probes * lists),
        job("mine 10^8 x 10^8, exact", 1e16 / found["exact_pairs_per_thread_second"], 0, 64 * 2 * 1e8 * DIM * 4),
        job("mine the same on cards, full float32", 0, exact / CARD["float32"] / CARD["share"], 64 * 2 * 1e8 * DIM * 4),
    ]


def job(name: str, threads: float, cards: float, moved: float) -> dict[str, Any]:
    """Return one job; seconds in, hours out."""
    disk = moved / DISK
    alone = threads / CORES or cards
    binds = (
        "storage"
        if disk > alone
        else "the teacher"
        if "extract" in name
        else "the product"
        if "mine" in name
        else "encoding"
    )
    return {
        "job": name,
        "thread_hours": threads / 3600,
        "card_hours": cards / 3600,
        "terabytes": moved / 1e12,
        "disk_hours": disk / 3600,
        "node_hours": max(alone, disk) / 3600,
        "binds": binds,
    }


def table(rows: list[dict[str, Any]]) -> str:
    """Return the table of the page."""
    card = f"{CARD['name']} hours"
    head = ["job", "thread hours", card, "TB read and written", "one node, hours", "what binds"]
    body = [
        [
            row["job"],
            *(f"{row[name]:,.1f}" if row[name] else "–" for name in ("thread_hours", "card_hours", "terabytes")),
            f"{row['node_hours']:,.1f}",
            row["binds"],
        ]
        for row in rows
    ]
    return markdown(head, body)


def main(settings: dict[str, Any]) -> None:
    """Compute, write the figures, and fill the page."""
    found = constants()
    rows = jobs(found)
    write_json(RESULTS / "cluster_costs.json", {"measured": found, "jobs": rows})
    text = table(rows)
    print(text)
    if settings["page"]:
        page = Path(settings["page"])
        filled = f"<!-- costs -->\n{text.strip()}\n<!-- end -->"
        before = page.read_text(encoding="utf-8")
        page.write_text(re.sub(r"<!-- costs -->.*?<!-- end -->", lambda _: filled, before, flags=re.DOTALL), "utf-8")


if __name__ == "__main__":
    run_script(main, SETTINGS, __doc__)
