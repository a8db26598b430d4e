"""What those who ask see of a server that is stopped while it works.

    python -m eval.bench.restarts output=eval/results/restarts.json [restarts=200] [checkout=.] [seed=0]

A server is started, asked by 20 clients, and ended by SIGTERM after .2 to .8 seconds, so many times. Eight clients ask for
one text and four for 64 on connections that they keep, two for 2,000 (an answer that is sent in parts), two mine 300 lines,
and four ask for one text on a connection of its own each. Told are how many requests were answered; how many were refused,
by a whole answer of an error; on how many connections, kept or new, nothing came back (a client may ask again); and how
many answers were broken: begun, but not whole. And how often the server's log had a traceback, how it exited, and the
seconds that it took to end.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import select
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from eval.bench.serve import free_port, request_of
from eval.settings import run_script
from xswe.corpus.cards import sample_sentences
from xswe.io.files import write_json

SETTINGS: dict[str, Any] = {"output": "", "checkout": ".", "restarts": 200, "seed": 0}


async def answer(reader: asyncio.StreamReader) -> tuple[str, bool]:
    """Read an answer; return what became of it, and whether the server keeps the connection."""
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
    except asyncio.IncompleteReadError as error:
        return ("broken" if error.partial else "unanswered"), False
    except ConnectionError:
        return "unanswered", False
    try:
        if b"transfer-encoding: chunked" in head:
            body = b""
            while size := int(await reader.readuntil(b"\r\n"), 16):
                body += (await reader.readexactly(size + 2))[:-2]
            await reader.readexactly(2)
        else:
            body = await reader.readexactly(int(head.partition(b"content-length:")[2].split(b"\r\n")[0]))
        json.loads(body)
    except (OSError, EOFError, ValueError):
        return "broken", False
    status = head.split()[1].decode()
    return ("answered" if status == "200" else f"refused {status}"), b"connection: close" not in head


async def client(port: int, body: bytes, keep: bool, found: Counter[str]) -> None:
    """Ask one question after the other until the server takes no more connections."""
    while True:
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 20)
        except ConnectionRefusedError:
            return
        except OSError:
            found["unanswered, new connection"] += 1
            continue
        kept, asked, place = True, 0, [writer.get_extra_info("socket").fileno()]
        while kept and not select.select(place, [], [], 0)[0]:  # clients look whether a connection was closed meanwhile
            try:
                writer.write(body)
                await writer.drain()
                what, kept = await answer(reader)
            except ConnectionError:
                what, kept = "unanswered", False
            found[f"{what}, {'kept' if asked else 'new'} connection" if what == "unanswered" else what] += 1
            kept, asked = kept and keep, asked + 1
        writer.close()
        await asyncio.sleep(0)


def bodies() -> list[tuple[bytes, bool]]:
    """What each client asks, and whether it keeps its connection."""
    texts = [text for row in zip(*sample_sentences().values(), strict=True) for text in row]
    one, some, many = (
        request_of("/v1/embeddings", {"input": texts[:size], "encoding_format": form})
        for size, form in ((1, "float"), (64, "base64"), (2000, "float"))
    )
    mine = request_of("/mine", {"source": texts[:300:4], "target": texts[1:300:4]})
    return [(one, True)] * 8 + [(some, True)] * 4 + [(many, True)] * 2 + [(mine, True)] * 2 + [(one, False)] * 4


def environment(checkout: str) -> dict[str, str]:
    """What a server of a checkout finds."""
    return {**os.environ, "XSWE_PROGRESS": "0", "PYTHONPATH": str(Path(checkout).resolve())}


def restart(settings: dict[str, Any], seconds: float, found: Counter[str]) -> dict[str, Any]:
    """Start, ask, end."""
    port = free_port()
    command = [sys.executable, "-m", "xswe", "serve", "model=mini", f"port={port}", "keep=false"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env=environment(settings["checkout"])) as process:

        async def ask() -> float:
            while True:
                try:
                    (await asyncio.open_connection("127.0.0.1", port))[1].close()
                    break
                except OSError:
                    await asyncio.sleep(0.05)
            clients = [asyncio.ensure_future(client(port, *one, found)) for one in bodies()]
            await asyncio.sleep(seconds)
            process.send_signal(signal.SIGTERM)
            started = time.perf_counter()
            await asyncio.wait_for(asyncio.gather(*clients), 60)
            while process.poll() is None:
                await asyncio.sleep(0.01)
            return time.perf_counter() - started

        took = asyncio.run(ask())
        said = "".join(process.communicate())
    return {"exit": process.returncode, "traceback": "Traceback" in said, "seconds": took, "said": said}


def main(settings: dict[str, Any]) -> None:
    """Restart, count, and write."""
    draw, found, runs = random.Random(settings["seed"]), Counter[str](), []
    for _ in range(settings["restarts"]):
        runs.append(restart(settings, draw.uniform(0.2, 0.8), found))
        if runs[-1]["traceback"]:
            print(runs[-1]["said"], flush=True)
    seconds = sorted(run["seconds"] for run in runs)
    told = {
        "restarts": len(runs),
        "requests": found.total(),
        "outcomes": dict(sorted(found.items())),
        "broken": found["broken"],
        "tracebacks": sum(run["traceback"] for run in runs),
        "exits": dict(sorted(Counter(str(run["exit"]) for run in runs).items())),
        "seconds_to_end": {"median": round(seconds[len(seconds) // 2], 2), "most": round(seconds[-1], 2)},
    }
    print(json.dumps(told, indent=1))
    if settings["output"]:
        write_json(settings["output"], told)


if __name__ == "__main__":
    run_script(main, SETTINGS, __doc__)
