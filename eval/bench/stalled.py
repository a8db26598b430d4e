"""What clients that do not read, or hardly send, cost the server in memory, and honest clients in time.

    python -m eval.bench.stalled output=eval/results/stalled.json [checkout=.] [sockets=200] [only="NAME;…"] [hold=12]
        [longest=40] [seconds=10]

Of each attack so many ``sockets`` are opened at once, and kept until the server has closed them, ``hold`` to ``longest``
seconds; where the attack says so, a socket that was closed is opened again, for ``hold`` seconds. Meanwhile three honest
clients ask one question after the other, each on a new connection: for one text, for 64 and for 2,000. Told are the
server's memory before, and its most beside that (``VmHWM``); after how many seconds all sockets were closed, null where
some were left; and of the honest clients how many answers they got, how many failures, and their longest wait.
``checkout`` is the code that serves. The server is that of ``python -m xswe serve`` with its defaults but for
``seconds``, so that a run is short.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import resource
import socket
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from eval.bench.serve import free_port, request_of, resident_mb, served
from eval.settings import run_script
from xswe.corpus.cards import sample_sentences
from xswe.io.files import write_json
from xswe.io.results import table

SETTINGS: dict[str, Any] = {"output": "", "checkout": ".", "sockets": 200, "only": "", "hold": 12.0, "longest": 40.0}
SETTINGS["seconds"] = 10.0
_GET = "{method} {path} HTTP/1.1\r\nHost: localhost\r\n\r\n"


def words(count: int) -> list[str]:
    """So many texts of two characters, the shortest that are strings of their own in memory."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    return ["".join(pair) for pair in itertools.islice(itertools.cycle(itertools.product(letters, letters)), count)]


def get(path: str, method: str = "GET") -> bytes:
    """A request without a body."""
    return _GET.format(method=method, path=path).encode()


@dataclass(frozen=True)
class Attack:
    """What each socket does.

    Attributes:
        request: the bytes that it sends.
        pause: seconds between two pieces of it; 0 for all at once.
        piece: bytes of a piece.
        reads: bytes of the answer that it reads a second.
        again: whether a socket that was closed is opened again.
        addresses: of how many addresses they are, beginning with 127.0.0.2; 0 for that of the honest clients.
    """

    request: bytes
    pause: float = 0.0
    piece: int = 1
    reads: int = 0
    again: bool = False
    addresses: int = 0


def attacks() -> dict[str, Attack]:
    """The attacks, by name."""
    big = request_of("/v1/embeddings", {"input": words(14_000)})
    packed = request_of("/v1/embeddings", {"input": words(14_000), "encoding_format": "base64"})
    medium = request_of("/v1/embeddings", {"input": words(500)})
    one = request_of("/v1/embeddings", {"input": "A cat sleeps."})
    lines = [f"{word} {number}" for number, word in enumerate(words(5_000))]
    units = [[{"language": "en", "text": word}, {"language": "de", "text": word}] for word in words(1_500)]
    passages = ["a cat and the cats " * 5000]
    compared = {"left": words(1000), "right": words(1000)}
    declared = b"POST /v1/embeddings HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    declared += b"Content-Length: 16000000\r\n\r\n"
    body = json.dumps({"input": ["a" * 800] * 19_000}).encode()
    chunk = b"".join(b"10000\r\n" + body[start : start + 0x10000] + b"\r\n" for start in range(0, 8 << 20, 0x10000))
    return {
        "embeddings": Attack(big),
        "embeddings, again and again": Attack(big, again=True),
        "embeddings, many addresses": Attack(big, again=True, addresses=100),
        "embeddings, base64": Attack(packed),
        "embeddings, a byte a second read": Attack(big, reads=1),
        "embeddings, 10 kB a second read": Attack(big, reads=10_000),
        "embeddings, bytes one by one": Attack(big[:400], pause=0.02),
        "500 texts, ten pipelined": Attack(medium * 10),
        "one text, 2,000 pipelined": Attack(one * 2000),
        "GET /info, 20,000 pipelined": Attack(get("/info") * 20_000),
        "HEAD /search, 2,000 pipelined": Attack(get("/search?query=cat&k=1000", "HEAD") * 2000),
        "search, k=1000": Attack(get("/search?query=cat&k=1000") * 5),
        "phrases, k=1000 lines=1000": Attack(get("/phrases?query=cat&k=1000&lines=1000&min_score=0.1") * 5),
        "phrases in one passage of 100 kB": Attack(
            request_of("/phrases", {"query": "cat", "k": 1000, "lines": 1000, "min_score": 0.0, "passages": passages})
        ),
        "compare": Attack(request_of("/compare", compared)),
        "mine": Attack(request_of("/mine", {"source": lines, "target": lines})),
        "export": Attack(request_of("/export", {"format": "tmx", "units": units}) * 5),
        "bodies of 16 MB, half sent": Attack(declared + body[: 8 << 20]),
        "bodies of 16 MB in chunks, half sent": Attack(
            declared.replace(b"Content-Length: 16000000", b"Transfer-Encoding: chunked") + chunk
        ),
        "bodies of 16 MB": Attack(request_of("/v1/embeddings", {"input": ["a" * 800] * 19_000})),
        "heads of tiny lines": Attack(b"GET / HTTP/1.1\r\nHost: localhost\r\n" + b"a:b\r\n" * 12_000),
        "silent": Attack(b""),
    }


@dataclass
class Honest:
    """A client that asks, reads, and asks again."""

    request: bytes
    waits: list[float] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    async def ask(self, port: int) -> None:
        """Ask for ever; every question on a connection of its own, as one who just came."""
        while True:
            started = time.perf_counter()
            try:
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.write(self.request.replace(b"\r\n", b"\r\nConnection: close\r\n", 1))
                answer = await asyncio.wait_for(reader.read(), 60)
                writer.close()
                if not answer.startswith(b"HTTP/1.1 200"):
                    self.failures.append(answer[:400].decode("utf-8", "replace"))
                elif not answer.rstrip().endswith((b"}", b"0")):
                    self.failures.append("an answer that is cut off")
            except (OSError, TimeoutError) as error:
                self.failures.append(repr(error))
            self.waits.append(time.perf_counter() - started)
            await asyncio.sleep(0.02)


async def answered(port: int, request: bytes) -> None:
    """Send what an attack sends once, and read all that comes, until nothing came for some seconds."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    with contextlib.suppress(OSError, TimeoutError):
        writer.write(request)
        while await asyncio.wait_for(reader.read(1 << 16), 3):
            pass
    writer.close()


async def hostile(port: int, attack: Attack, number: int) -> None:
    """Run one socket of an attack."""
    while True:
        with contextlib.suppress(OSError), socket.socket() as one:
            one.setblocking(False)
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if attack.addresses:
                one.bind((f"127.0.0.{2 + number % attack.addresses}", 0))
            await asyncio.get_running_loop().sock_connect(one, ("127.0.0.1", port))
            sending = asyncio.ensure_future(send(one, attack))
            try:
                await until_closed(one, attack.reads)
            finally:
                sending.cancel()
                await asyncio.wait([sending])  # or the loop would go on to watch what is closed
        if not attack.again:
            return


async def send(one: socket.socket, attack: Attack) -> None:
    """Send the request of an attack, as far as the server takes it."""
    step = attack.piece if attack.pause else len(attack.request) + 1
    with contextlib.suppress(OSError):
        for start in range(0, len(attack.request), step):
            await asyncio.get_running_loop().sock_sendall(one, attack.request[start : start + step])
            await asyncio.sleep(attack.pause)


async def until_closed(one: socket.socket, reads: int) -> None:
    """Keep a socket, reading so many bytes a second, until the other side has closed it."""
    while True:
        await asyncio.sleep(0.25 if not reads else 1.0)
        state = one.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0]
        if state not in (1, 2, 3):  # established, or being so
            return
        if reads:
            with contextlib.suppress(BlockingIOError):
                if not one.recv(reads):
                    return


def open_sockets(process: int) -> int:
    """How many sockets a process has."""
    count = 0
    for entry in Path(f"/proc/{process}/fd").iterdir():
        with contextlib.suppress(OSError):
            count += os.readlink(entry).startswith("socket:")
    return count


def most_mb(process: int) -> float:
    """The most memory that a process has had since this was reset, MB."""
    line = next(line for line in Path(f"/proc/{process}/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024 / 1e6


async def attacked(port: int, process: int, attack: Attack, settings: dict[str, Any]) -> dict[str, Any]:
    """Run one attack, with honest clients beside it."""
    texts = [text for row in zip(*sample_sentences().values(), strict=True) for text in row]
    honest = {
        size: Honest(request_of("/v1/embeddings", {"input": texts[:size], "encoding_format": form}))
        for size, form in ((1, "float"), (64, "base64"), (2000, "float"))
    }
    await answered(port, attack.request)  # what it takes to load and compile is no cost of the attack
    asking = [asyncio.ensure_future(client.ask(port)) for client in honest.values()]
    await asyncio.sleep(2)
    calm = {size: max(client.waits[1:], default=client.waits[0]) for size, client in honest.items()}
    for client in honest.values():
        client.waits.clear()
    Path(f"/proc/{process}/clear_refs").write_text("5")
    idle, sockets = resident_mb(process), open_sockets(process)
    storm = [asyncio.ensure_future(hostile(port, attack, number)) for number in range(settings["sockets"])]
    started = time.perf_counter()
    closed: float | None = None
    while time.perf_counter() - started < (settings["hold"] if attack.again else settings["longest"]):
        await asyncio.sleep(0.25)
        if time.perf_counter() - started > settings["hold"] and open_sockets(process) <= sockets + len(honest):
            closed = round(time.perf_counter() - started, 1)
            break
    most = most_mb(process)
    left = {*storm, *asking}
    while left:  # a task that is cancelled in the moment of an answer goes on, before Python 3.12
        for one in left:
            one.cancel()
        _, left = await asyncio.wait(left, timeout=1)
    return {
        "idle_mb": round(idle, 1),
        "above_mb": round(most - idle, 1),
        "closed_s": closed,
        "honest": {
            str(size): {
                "answers": len(client.waits) - len(client.failures),
                "failures": len(client.failures),
                "longest_s": round(max(client.waits, default=0.0), 2),
                "calm_s": round(calm[size], 3),
                "first_failure": client.failures[0][:200] if client.failures else "",
            }
            for size, client in honest.items()
        },
    }


def main(settings: dict[str, Any]) -> None:
    """Run all attacks, print, and write."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    found = attacks()
    wanted = [name for name in found if not settings["only"] or name in settings["only"].split(";")]
    sides, rows = sample_sentences(), []
    with tempfile.TemporaryDirectory() as folder:
        corpus = Path(folder) / "sample.en-ja.tsv"
        corpus.write_text("".join(f"{a}\t{b}\n" for a, b in zip(sides["en"], sides["ja"], strict=True)), "utf-8")
        for name in wanted:
            port = free_port()
            command = [sys.executable, "-m", "xswe", "serve", "model=mini", f"corpora=[{corpus}]", f"port={port}"]
            command += [f"seconds={settings['seconds']}", "keep=false"]
            with served(command, port, settings["checkout"]) as process:
                row = {"attack": name, "bytes": len(found[name].request)}
                row |= asyncio.run(attacked(port, process, found[name], settings))
            rows.append(row)
            print(row, flush=True)
    columns = ["attack", "idle_mb", "above_mb", "closed_s"]
    print(table(columns, [[str(row[column]) for column in columns] for row in rows]))
    if settings["output"]:
        own = {name: settings[name] for name in ("sockets", "hold", "longest", "seconds")}
        write_json(settings["output"], {"model": "mini", **own, "rows": rows})


if __name__ == "__main__":
    run_script(main, SETTINGS, __doc__)
