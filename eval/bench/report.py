"""What a page of many pairs weighs, and how long it takes to make and to show in a real browser.

    python -m eval.bench.report [sizes=10000,1000000] [rounds=7] [output=eval/results/report.json]

The pairs are made of the sample corpus: English sentences beside German ones, the first fifth right, the rest drawn, with
scores to match. ``report mined=`` makes the page; the browser opens it over ``file://``, every other request aborted and
counted. ``shown_ms`` is from the start of the navigation to the end of its load event, scripts included, ``painted_ms`` to
the first contents on the screen; the least and the median of ``rounds``, since other work on the machine only adds.
"""

from __future__ import annotations

import os
import random
import shutil
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import xswe
from eval.settings import numbers, run_script
from xswe.corpus.cards import sample_sentences
from xswe.errors import ConfigError
from xswe.io.files import write_json
from xswe.io.results import table

DEFAULTS = {"sizes": "10000,1000000", "rounds": 7, "browser": "", "output": ""}
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]
TIMES = """() => [performance.getEntriesByType("navigation")[0].loadEventEnd,
    performance.getEntriesByName("first-contentful-paint")[0].startTime]"""


def write_pairs(path: Path, size: int) -> None:
    """Write pairs with scores: a fifth of them right."""
    sides = sample_sentences()
    rows = list(zip(sides["en"], sides["de"], strict=True))
    draw, noise = random.Random(0), np.random.default_rng(0).normal(0, 0.12, size)
    with path.open("w", encoding="utf-8") as stream:
        for k in range(size):
            english, german = rows[k % len(rows)]
            right = k % 5 == 0
            other = german if right else draw.choice(rows)[1]
            stream.write(f"{(1.6 if right else 1.1) + noise[k]:.6f}\t{english} ({k})\t{other}\n")


def shown(path: Path, rounds: int, chromium: Any) -> tuple[list[list[float]], int]:
    """Open a page again and again; returns the times of each, and how often anything but the page was asked for."""
    asked, found = [], []

    def only_the_page(route: Any) -> None:
        if route.request.url == path.as_uri():
            route.continue_()
        else:
            asked.append(route.request.url)
            route.abort()

    for _ in range(rounds):
        context = chromium.new_context(viewport={"width": 1400, "height": 900})
        page = context.new_page()
        page.route("**/*", only_the_page)
        page.goto(path.as_uri(), wait_until="load")
        page.wait_for_timeout(200)  # the first paint may come after the load
        found.append(page.evaluate(TIMES))
        context.close()
    return found, len(asked)


def measure(size: int, rounds: int, chromium: Any) -> dict[str, float]:
    """Make a page of so many pairs, and open it."""
    with tempfile.TemporaryDirectory() as name:
        pairs, page = Path(name) / "pairs.tsv", Path(name) / "pairs.html"
        write_pairs(pairs, size)
        clock, processor = time.perf_counter(), time.process_time()
        xswe.write_report(pairs, page, languages=("en", "de"))
        made = {"made_s": time.perf_counter() - clock, "made_processor_s": time.process_time() - processor}
        times, asked = shown(page, rounds, chromium)
        seen, painted = ([row[k] for row in times] for k in (0, 1))
        told = {"pairs": size, "bytes": page.stat().st_size, **made, "shown_ms": min(seen)}
        told |= {"shown_median_ms": statistics.median(seen), "painted_ms": min(painted), "requests": asked}
        return {key: round(value, 2) for key, value in told.items()}


def main(settings: dict[str, Any]) -> None:
    """Measure each size, print a table, and write the record."""
    from playwright.sync_api import sync_playwright

    browser = settings["browser"] or shutil.which("chromium")
    if not browser:
        raise ConfigError("there is no chromium: give browser=PATH")
    with sync_playwright() as playwright, threadpool_limits(1):
        chromium = playwright.chromium.launch(executable_path=browser, args=ARGUMENTS)
        rows = [measure(size, settings["rounds"], chromium) for size in numbers(settings["sizes"], "sizes")]
        version = chromium.version
        chromium.close()
    print(table(list(rows[0]), [[str(value) for value in row.values()] for row in rows]))
    if settings["output"]:
        record = {"processors": os.cpu_count(), "load": round(os.getloadavg()[0], 1), "browser": version, "rows": rows}
        write_json(settings["output"], record)


if __name__ == "__main__":
    run_script(main, DEFAULTS, __doc__)
