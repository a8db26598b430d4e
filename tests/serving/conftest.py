"""An application over a few small corpora, in process and as a real server on a free port."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.sax.saxutils import escape

import pytest

import xswe
from tests.conftest import SAMPLE
from xswe.serving.app import listening
from xswe.serving.config import ServeConfig

uvicorn = pytest.importorskip("uvicorn", reason="the extra serve is not installed")
for needed in ("starlette", "msgspec", "httptools", "httpx2"):
    pytest.importorskip(needed, reason="the extra serve, or dev, is not installed")

from xswe.serving.connections import Server  # noqa: E402

HOSTILE = "<script>alert(1)</script> & \u202etxet\u202c"


@pytest.fixture(scope="session")
def mini() -> xswe.types.StaticModel:
    return xswe.load("mini")


@pytest.fixture(scope="session")
def corpora(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """A memory of four languages, pairs of two, and plain text; one of the lines is hostile."""
    folder = tmp_path_factory.mktemp("corpora")
    rows = [line.split("\t") for line in SAMPLE.read_text("utf-8").splitlines()]
    codes = ("en", "de", "zh", "ja")
    units = "".join(
        "<tu>"
        + "".join(f'<tuv xml:lang="{c}"><seg>{escape(t)}</seg></tuv>' for c, t in zip(codes, row, strict=True))
        + "</tu>"
        for row in rows[:1200]
    )
    (folder / "memory.tmx").write_text(f'<tmx version="1.4"><header srclang="en"/><body>{units}</body></tmx>', "utf-8")
    pairs = [f"{row[0]}\t{row[1]}" for row in rows[1200:]]
    pairs.append(f"The tapir says {HOSTILE}\tDer Tapir sagt {HOSTILE}")
    (folder / "news.en-de.tsv").write_text("\n".join(pairs) + "\n", "utf-8")
    (folder / "manual.ja.txt").write_text("\n".join(row[3] for row in rows[1200:]) + "\n", "utf-8")
    return [str(folder / name) for name in ("memory.tmx", "news.en-de.tsv", "manual.ja.txt")]


@pytest.fixture(scope="session")
def app(corpora: list[str]) -> object:
    return xswe.make_app("mini", corpora, threads=1, seconds=2.0, keep=False)


@pytest.fixture(scope="session")
def in_process(app: object) -> Iterator[Any]:
    """One who asks the application itself, in its process."""
    from starlette.testclient import TestClient

    with TestClient(app, base_url="http://localhost") as client:
        yield client


@pytest.fixture(scope="session")
def client(in_process: Any) -> Any:
    return in_process


@pytest.fixture(scope="session")
def bare(mini: xswe.types.StaticModel) -> Iterator[Any]:
    """Without corpora, with a key and small limits."""
    from starlette.testclient import TestClient

    limits = ServeConfig(api_key="secret", max_bytes=4096, max_texts=8, max_characters=200, threads=1)
    with TestClient(xswe.make_app(mini, config=limits), base_url="http://localhost") as client:
        client.headers["authorization"] = "Bearer secret"
        yield client


@contextlib.contextmanager
def running(app: object, config: ServeConfig) -> Iterator[SimpleNamespace]:
    """An application as ``serve`` runs it, on a free port."""
    place = listening(config)
    server = Server(app, config)
    thread = threading.Thread(target=server.run, args=([place],), daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    port = place.getsockname()[1]
    yield SimpleNamespace(port=port, address=f"http://127.0.0.1:{port}", connections=server.server_state.connections)
    server.should_exit = True
    thread.join(10)


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@contextlib.contextmanager
def started(command: list[str], port: int, folder: Path | None = None, **how: Any) -> Iterator[subprocess.Popen[str]]:
    """Run a command until its server takes connections, and kill it at the end."""
    command = [sys.executable, "-m", *command]
    pipe = subprocess.PIPE
    own = {"stdout": pipe, "stderr": pipe, "text": True, "cwd": folder, "start_new_session": True}
    with subprocess.Popen(command, **own, **how) as process:
        try:
            deadline = time.monotonic() + 60
            while True:
                with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
                    break
                assert process.poll() is None, process.stderr.read()
                assert time.monotonic() < deadline
                time.sleep(0.05)
            yield process
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # with the workers that it has started


def resident(process: int, all_of_it: bool = False) -> float:
    """Megabytes of memory that a process takes; with all that it has started."""
    try:
        pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
        children = Path(f"/proc/{process}/task/{process}/children").read_text().split() if all_of_it else []
    except OSError:
        pytest.skip("/proc is not here")
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6 + sum(resident(int(child), True) for child in children)


# The commands that the guide names; an application in app.py for all but the first.
SERVERS = {
    "xswe": "xswe serve model=mini threads=1 keep=false port={port} corpora={corpora} {settings}",
    "uvicorn": "uvicorn app:app --port {port}",
    "hypercorn": "hypercorn app:app --bind 127.0.0.1:{port}",
    "granian": "granian --interface asgi app:app --port {port}",
}


@contextlib.contextmanager
def served_by(name: str, folder: Path, corpora: list[str], **settings: Any) -> Iterator[SimpleNamespace]:
    """The application behind a server, as its users run it."""
    if importlib.util.find_spec(name) is None:
        pytest.skip(f"{name} is not installed")
    own = {"threads": 1, "keep": False} | settings
    (folder / "app.py").write_text(f"import xswe\n\napp = xswe.make_app('mini', {corpora}, **{own})\n", "utf-8")
    port = free_port()
    given = " ".join(f"{key}={value}" for key, value in settings.items())
    command = SERVERS[name].format(port=port, settings=given, corpora=f"[{','.join(corpora)}]").split()
    with started(command, port, folder) as process:
        yield SimpleNamespace(port=port, address=f"http://127.0.0.1:{port}", process=process)


@pytest.fixture(scope="session")
def server(mini: xswe.types.StaticModel, corpora: list[str]) -> Iterator[SimpleNamespace]:
    config = ServeConfig(port=0, threads=1, seconds=1.0, keep=False)
    with running(xswe.make_app(mini, corpora, config=config), config) as server:
        yield server
