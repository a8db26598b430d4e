"""What the application answers under load, beside sentence-transformers' StaticEmbedding behind the same kind of server.

    python -m eval.bench.serve data=$XSWE_DATA/train output=eval/results/serve.json

All servers are Starlette on uvicorn with the same parser, loop and JSON, in processes of their own; the other library
encodes with ``SentenceTransformer.encode`` on threads, from the same table and tokenizer, in two ways: as its documentation
has it, where torch and tokenizers work on all processors for each request; and set up for many requests, of which as many
are worked on at once as there are processors, each on one of them. Ours is compared with whichever does better. A load
generator on the loopback keeps so many clients busy, for ``seconds`` a turn, the servers by turns. Told are requests and
texts a second, the median and the 99th percentile of the wait, and milliseconds of the server's processors a request, which
other work on the machine changes least. Then ``requests`` requests, and how much memory they leave; and for ``passages``
passages of ``data``, milliseconds of processor and clock that a question to the concordance and to the search takes.
``load`` is the machine's load before and after: above about 1 the clock tells little, and the ratio of processor times is
what holds.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import uvloop

import xswe
from eval.settings import run_script
from xswe.corpus.cards import sample_sentences
from xswe.io.files import write_json
from xswe.io.results import table
from xswe.serving.config import ServeConfig
from xswe.serving.messages import EmbeddingsRequest, PhrasesRequest, SearchRequest
from xswe.serving.service import Service

SETTINGS = {"data": "", "seconds": 3.0, "rounds": 2, "requests": 100_000, "passages": 1_000_000, "output": ""}
CLIENTS, SIZES = (1, 8, 64), (1, 64)
PEERS = ("sentence-transformers", "sentence-transformers, a thread a request")
QUESTIONS = [
    "train",
    "supply chain",
    "Verspätung",
    "寺",
    "データベース",
    "install the program",
    "temple",
    "bank",
    "火车",
    "security",
]


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def run_peer(port: int, alone: int) -> None:
    """Serve the other library: the same interface, as one would write it with a thread pool."""
    processors = len(os.sched_getaffinity(0))
    os.environ["TOKENIZERS_PARALLELISM"] = "false" if alone else "true"
    import anyio.to_thread
    import msgspec
    import torch
    import uvicorn
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding
    from starlette.applications import Starlette
    from starlette.concurrency import run_in_threadpool
    from starlette.responses import PlainTextResponse, Response
    from starlette.routing import Route

    mini = xswe.load("mini")
    torch.set_num_threads(1 if alone else processors)
    module = StaticEmbedding(mini.units.tokenizer, embedding_weights=mini.vectors)
    model = SentenceTransformer(modules=[module], device="cpu")
    decoder = msgspec.json.Decoder(EmbeddingsRequest)

    def encode(texts: list[str]) -> bytes:
        vectors = model.encode(texts, batch_size=1024, show_progress_bar=False, normalize_embeddings=True)
        data = [{"index": i, "embedding": base64.b64encode(row).decode()} for i, row in enumerate(vectors)]
        return msgspec.json.encode({"data": data, "model": "peer", "object": "list"})

    async def embeddings(request: Any) -> Any:
        if alone:
            anyio.to_thread.current_default_thread_limiter().total_tokens = processors
        asked = decoder.decode(await request.body())
        return Response(await run_in_threadpool(encode, asked.input), media_type="application/json")

    async def health(request: Any) -> Any:
        return PlainTextResponse("ok")

    app = Starlette(routes=[Route("/v1/embeddings", embeddings, methods=["POST"]), Route("/healthz", health)])
    uvicorn.run(app, port=port, log_level="error", access_log=False)


@contextlib.contextmanager
def served(arguments: list[str], port: int, checkout: str = ".") -> Iterator[int]:
    """Run a server, from a checkout; gives its process."""
    path = str(Path(checkout).resolve())
    running = subprocess.Popen(arguments, env={**os.environ, "XSWE_PROGRESS": "0", "PYTHONPATH": path}, cwd=path)
    try:
        for _ in range(600):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
                break
            time.sleep(0.2)
        yield running.pid
    finally:
        running.terminate()
        running.wait(20)


def processor_seconds(process: int) -> float:
    """Seconds that a process has worked, all threads together."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_mb(process: int) -> float:
    """Megabytes of memory that a process holds."""
    return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


async def client(port: int, bodies: list[bytes], first: int, until: float, waits: list[float]) -> None:
    """Ask one question after the other on one connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 20)
    number = first
    while time.perf_counter() < until:
        started = time.perf_counter()
        writer.write(bodies[number % len(bodies)])
        head = await reader.readuntil(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 200"):
            raise RuntimeError(head.decode())
        size = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
        await reader.readexactly(size)
        waits.append(time.perf_counter() - started)
        number += 7
    writer.close()


def load(port: int, bodies: list[bytes], clients: int, seconds: float, process: int) -> dict[str, float]:
    """Keep some clients busy, and measure."""
    waits: list[float] = []

    async def everybody() -> None:
        until = time.perf_counter() + seconds
        await asyncio.gather(*(client(port, bodies, 13 * n, until, waits) for n in range(clients)))

    clock, processor = time.perf_counter(), processor_seconds(process)
    uvloop.run(everybody())  # what asks runs on the same processors: it should take little of them
    clock = time.perf_counter() - clock
    processor = processor_seconds(process) - processor
    return {
        "requests": len(waits),
        "seconds": clock,
        "p50_ms": 1000 * float(np.quantile(waits, 0.5)),
        "p99_ms": 1000 * float(np.quantile(waits, 0.99)),
        "processor_s": processor,
    }


def request_of(path: str, body: dict[str, Any]) -> bytes:
    """A request as it goes over the wire."""
    content = json.dumps(body, ensure_ascii=False).encode()
    kind = f"Content-Type: application/json\r\nContent-Length: {len(content)}"
    return f"POST {path} HTTP/1.1\r\nHost: localhost\r\n{kind}\r\n\r\n".encode() + content


def joined(turns: list[dict[str, float]]) -> dict[str, float]:
    """Put the turns of one server together; waits are those of the median turn."""
    requests, seconds = sum(turn["requests"] for turn in turns), sum(turn["seconds"] for turn in turns)
    return {
        "requests_per_s": round(requests / seconds, 1),
        "p50_ms": round(float(np.median([turn["p50_ms"] for turn in turns])), 2),
        "p99_ms": round(float(np.median([turn["p99_ms"] for turn in turns])), 2),
        "processor_ms": round(1000 * sum(turn["processor_s"] for turn in turns) / requests, 3),
    }


def under_load(settings: dict[str, Any]) -> dict[str, Any]:
    """Measure the servers by turns, then the search, then the memory."""
    sides = sample_sentences()
    texts = [text for row in zip(*sides.values(), strict=True) for text in row]
    np.random.default_rng(0).shuffle(texts)
    own, rows = free_port(), []
    with tempfile.TemporaryDirectory() as folder:
        corpus = Path(folder) / "sample.en-ja.tsv"
        corpus.write_text("".join(f"{a}\t{b}\n" for a, b in zip(sides["en"], sides["ja"], strict=True)), "utf-8")
        ours = [sys.executable, "-m", "xswe", "serve", "model=mini", f"corpora=[{corpus}]", f"port={own}"]
        with contextlib.ExitStack() as running:
            first = running.enter_context(served(ours, own))
            servers = {"xswe": (own, first)}
            for number, name in enumerate(PEERS):
                port = free_port()
                theirs = [sys.executable, "-m", "eval.bench.serve", f"peer={port}", f"alone={number}"]
                servers[name] = port, running.enter_context(served(theirs, port))
            for clients in CLIENTS:
                for size in SIZES:
                    groups = chunks(texts, size)[:500]
                    bodies = [request_of("/v1/embeddings", {"input": g, "encoding_format": "base64"}) for g in groups]
                    taken: dict[str, list[dict[str, float]]] = {name: [] for name in servers}
                    for port, process in servers.values():
                        load(port, bodies, clients, 0.5, process)  # warm
                    for _ in range(settings["rounds"]):
                        for name, (port, process) in servers.items():
                            taken[name].append(load(port, bodies, clients, settings["seconds"], process))
                    for name, turns in taken.items():
                        found = joined(turns)
                        rows.append({"server": name, "what": "embeddings", "clients": clients, "texts": size, **found})
                        rows[-1]["texts_per_s"] = round(size * found["requests_per_s"], 1)
                        print(rows[-1], flush=True)
            bodies = [request_of("/search", {"query": text, "k": 5}) for text in texts[:200]]
            for clients in CLIENTS:
                found = joined([load(own, bodies, clients, settings["seconds"], first)])
                rows.append({"server": "xswe", "what": "search", "clients": clients, "texts": 1, **found})
                print(rows[-1], flush=True)
            memory = flat(own, first, settings["requests"], texts)
    return {"rows": rows, "ratios": ratios(rows), "memory": memory}


def chunks(texts: list[str], size: int) -> list[list[str]]:
    """Texts by so many."""
    return [texts[k : k + size] for k in range(0, len(texts) - size, size)]


def ratios(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """How many times the texts a second of the other that does best, and how many times less processor a request."""
    found = {(row["server"], row["clients"], row["texts"]): row for row in rows if row["what"] == "embeddings"}
    out = []
    for clients in CLIENTS:
        for size in SIZES:
            own, *others = (found[name, clients, size] for name in ("xswe", *PEERS))
            by = {
                "clock": own["texts_per_s"] / max(other["texts_per_s"] for other in others),
                "processor": min(other["processor_ms"] for other in others) / own["processor_ms"],
            }
            out.append({"clients": clients, "texts": size, **{name: round(value, 2) for name, value in by.items()}})
    return out


def flat(port: int, process: int, requests: int, texts: list[str]) -> dict[str, Any]:
    """Ask very often, and measure the memory meanwhile."""
    bodies = [request_of("/v1/embeddings", {"input": text}) for text in texts[:1000]]
    bodies += [request_of("/search", {"query": text, "k": 3}) for text in texts[:20]]
    done, seen = 0, []
    while done < requests:
        done += int(load(port, bodies, 8, 2.0, process)["requests"])
        seen.append(round(resident_mb(process), 1))
    places = np.linspace(0, len(seen) - 1, min(6, len(seen))).astype(int)
    return {"requests": done, "resident_mb": [seen[place] for place in places]}


def questions(settings: dict[str, Any]) -> list[dict[str, Any]]:
    """Measure questions to the concordance and the search over many passages."""
    entries, total = [], 0
    with tempfile.TemporaryDirectory() as folder:
        for path in sorted(Path(settings["data"]).rglob("*.tsv*")):
            languages = path.parent.name.split("-")
            if total >= settings["passages"] or len(languages) != 2:
                continue
            from xswe.io.lines import read_lines

            own = Path(folder) / f"{len(entries)}.{path.parent.name}.tsv"
            lines = [line for _, line in read_lines(path) if line and line.count("\t") == 1]
            lines = lines[: (settings["passages"] - total + 1) // 2]
            own.write_text("\n".join(lines) + "\n", "utf-8")
            entries.append(str(own))
            total += 2 * len(lines)
        clock, processor = time.monotonic(), time.process_time()
        service = Service(xswe.load("mini"), "mini", entries, ServeConfig())
        built = {
            "build_s": round(time.monotonic() - clock, 1),
            "build_processor_s": round(time.process_time() - processor, 1),
        }
        corpora, rows = service.corpora, []
        assert corpora is not None
        for what, ask in (
            ("phrases", lambda text: corpora.phrases(PhrasesRequest(text))),
            ("exact", lambda text: corpora.phrases(PhrasesRequest(text, match="exact"))),
            ("fuzzy", lambda text: corpora.phrases(PhrasesRequest(text, match="fuzzy"))),
            ("search", lambda text: corpora.search(SearchRequest(text))),
        ):
            used, waits = [], []
            for text in QUESTIONS * 3:
                clock, processor = time.perf_counter(), time.process_time()
                ask(text)
                waits.append(1000 * (time.perf_counter() - clock))
                used.append(1000 * (time.process_time() - processor))
            row: dict[str, Any] = {"what": what, "passages": len(corpora), **built}
            row |= {"processor_ms": round(float(np.median(used)), 1), "most_processor_ms": round(max(used), 1)}
            rows.append({**row, "median_ms": round(float(np.median(waits)), 1), "least_ms": round(min(waits), 1)})
            print(rows[-1], flush=True)
    return rows


def main(settings: dict[str, Any]) -> None:
    """Measure, print, and write."""
    before = os.getloadavg()[0]
    about: dict[str, Any] = {"processors": len(os.sched_getaffinity(0)), "model": "mini", "seconds": settings["seconds"]}
    about |= under_load(settings)
    if settings["data"]:
        about["questions"] = questions(settings)
    about["load"] = {"before": round(before, 1), "after": round(os.getloadavg()[0], 1)}
    about["idle"] = before < 0.5
    columns = list(about["ratios"][0])
    print(table(columns, [[str(row[name]) for name in columns] for row in about["ratios"]]))
    if settings["output"]:
        write_json(settings["output"], about)


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[1].startswith("peer="):
        run_peer(*(int(given.partition("=")[2]) for given in sys.argv[1:]))
    else:
        run_script(main, SETTINGS, __doc__)
