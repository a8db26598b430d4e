"""How long 200 clients wait who ask for ten minutes, and what memory that leaves.

    python -m eval.bench.endurance output=eval/results/endurance.json [seconds=600] [clients=200] [pause=0.2] [checkout=.]

Of ten clients seven ask for the vector of one text, one for 64, one searches, and one asks the concordance for a word; each
on a connection that it keeps, with a ``pause`` of so many seconds between an answer and its next question. Told are, for
each kind and for each tenth of the time, requests, the median, the 99th percentile and the longest wait in milliseconds;
answers that were none; the server's memory at the end of each tenth, its most, and its threads and open files at the
beginning and at the end; and the machine's load before and after: above about 1 the waits are those of a busy machine.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import uvloop

from eval.bench.serve import QUESTIONS, free_port, request_of, resident_mb, served
from eval.bench.stalled import most_mb
from eval.settings import run_script
from xswe.corpus.cards import sample_sentences
from xswe.io.files import write_json
from xswe.io.results import table

SETTINGS: dict[str, Any] = {"output": "", "checkout": ".", "seconds": 600.0, "clients": 200, "pause": 0.2}
_PARTS = 10
_MIX = ("one text",) * 7 + ("64 texts", "search", "phrases")


def requests_of(texts: list[str]) -> dict[str, list[bytes]]:
    """What is asked, by kind."""
    some = [texts[k : k + 64] for k in range(0, 6400, 64)]
    return {
        "one text": [request_of("/v1/embeddings", {"input": text}) for text in texts[:1000]],
        "64 texts": [request_of("/v1/embeddings", {"input": group, "encoding_format": "base64"}) for group in some],
        "search": [request_of("/search", {"query": text, "k": 5}) for text in texts[:200]],
        "phrases": [request_of("/phrases", {"query": text}) for text in QUESTIONS],
    }


async def client(
    port: int, bodies: list[bytes], settings: dict[str, Any], waits: list[tuple[float, float]], bad: Any
) -> None:
    """Ask, read, pause; note when each answer came and how long it took, and what was no answer."""
    draw, started = random.Random(id(waits) + len(bodies)), time.perf_counter()
    await asyncio.sleep(draw.uniform(0, settings["pause"] + 1))  # not all at once
    while time.perf_counter() - started < settings["seconds"]:
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 20)
            while time.perf_counter() - started < settings["seconds"]:
                asked = time.perf_counter()
                writer.write(draw.choice(bodies))
                head = await reader.readuntil(b"\r\n\r\n")
                body = await reader.readexactly(int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0]))
                if head.startswith(b"HTTP/1.1 200") and body.endswith(b"}"):
                    waits.append((asked - started, time.perf_counter() - asked))
                else:
                    bad[head.split(b"\r\n")[0].decode()] += 1
                await asyncio.sleep(settings["pause"])
            writer.close()
        except (OSError, EOFError) as error:
            bad[repr(error)] += 1


def counts(process: int) -> dict[str, int]:
    """Threads and open files of a process."""
    return {
        name: len(list(Path(f"/proc/{process}/{place}").iterdir()))
        for name, place in (("threads", "task"), ("files", "fd"))
    }


async def under_load(port: int, process: int, settings: dict[str, Any]) -> dict[str, Any]:
    """Ask for so long, and measure."""
    texts = [text for row in zip(*sample_sentences().values(), strict=True) for text in row]
    bodies, bad = requests_of(texts), Counter[str]()
    waits: dict[str, list[tuple[float, float]]] = {kind: [] for kind in bodies}
    kinds = [_MIX[number % len(_MIX)] for number in range(settings["clients"])]
    before = {"mb": round(resident_mb(process), 1), **counts(process)}
    clients = [asyncio.ensure_future(client(port, bodies[kind], settings, waits[kind], bad)) for kind in kinds]
    memory = []
    for _ in range(_PARTS):
        await asyncio.sleep(settings["seconds"] / _PARTS)
        memory.append(round(resident_mb(process), 1))
        print(memory[-1], "MB", flush=True)
    await asyncio.gather(*clients)
    rows = []
    for kind, found in waits.items():
        ends = np.array([when for when, _ in found])
        took = 1000 * np.array([wait for _, wait in found])
        for part in range(_PARTS):
            own = took[(ends * _PARTS / settings["seconds"]).astype(int) == part]
            if len(own):
                median, most = np.quantile(own, [0.5, 0.99])
                own_row = {"kind": kind, "part": part + 1, "requests": len(own), "p50_ms": round(float(median), 1)}
                rows.append({**own_row, "p99_ms": round(float(most), 1), "longest_ms": round(float(own.max()), 1)})
        whole = np.quantile(took, [0.5, 0.99])
        whole_row = {"kind": kind, "part": 0, "requests": len(took), "p50_ms": round(float(whole[0]), 1)}
        rows.append({**whole_row, "p99_ms": round(float(whole[1]), 1), "longest_ms": round(float(took.max()), 1)})
    after = {"mb": memory[-1], "most_mb": round(most_mb(process), 1), **counts(process)}
    return {"rows": rows, "no_answers": dict(bad), "memory_mb": memory, "before": before, "after": after}


def main(settings: dict[str, Any]) -> None:
    """Measure, print, and write."""
    load, sides, port = os.getloadavg()[0], sample_sentences(), free_port()
    about: dict[str, Any] = {"model": "mini", "processors": len(os.sched_getaffinity(0))}
    about |= {name: settings[name] for name in ("seconds", "clients", "pause")}
    with tempfile.TemporaryDirectory() as folder:
        corpus = Path(folder) / "sample.en-ja.tsv"
        corpus.write_text("".join(f"{a}\t{b}\n" for a, b in zip(sides["en"], sides["ja"], strict=True)), "utf-8")
        command = [sys.executable, "-m", "xswe", "serve", "model=mini", f"corpora=[{corpus}]", f"port={port}", "keep=false"]
        with served(command, port, settings["checkout"]) as process:
            about |= uvloop.run(under_load(port, process, settings))
    about["load"] = {"before": round(load, 1), "after": round(os.getloadavg()[0], 1)}
    columns = ["kind", "requests", "p50_ms", "p99_ms", "longest_ms"]
    print(table(columns, [[str(row[name]) for name in columns] for row in about["rows"] if not row["part"]]))
    print(json.dumps({name: about[name] for name in ("no_answers", "memory_mb", "before", "after", "load")}, indent=1))
    if settings["output"]:
        write_json(settings["output"], about)


if __name__ == "__main__":
    run_script(main, SETTINGS, __doc__)
