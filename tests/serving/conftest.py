"""An application over a few small corpora, in process and as a real server on a free port."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any
from xml.sax.saxutils import escape

import pytest

import xswe
from tests.conftest import SAMPLE
from xswe.serving.app import listening, server_of
from xswe.serving.config import ServeConfig

uvicorn = pytest.importorskip("uvicorn", reason="the extra serve is not installed")
for needed in ("starlette", "msgspec", "httptools", "httpx2"):
    pytest.importorskip(needed, reason="the extra serve, or dev, is not installed")

HOSTILE = "<script>alert(1)</script> & \u202etxet\u202c"


@pytest.fixture(scope="session")
def mini() -> xswe.StaticModel:
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
def app(mini: xswe.StaticModel, corpora: list[str]) -> object:
    return xswe.make_app(mini, corpora, threads=1, seconds=2.0, keep=False)


@pytest.fixture(scope="session")
def client(app: object) -> Iterator[Any]:
    from starlette.testclient import TestClient

    with TestClient(app, base_url="http://localhost") as client:
        yield client


@pytest.fixture(scope="session")
def bare(mini: xswe.StaticModel) -> Iterator[Any]:
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
    server = server_of(app, config)
    thread = threading.Thread(target=server.run, args=([place],), daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    port = place.getsockname()[1]
    yield SimpleNamespace(port=port, address=f"http://127.0.0.1:{port}", connections=server.server_state.connections)
    server.should_exit = True
    thread.join(10)


@pytest.fixture(scope="session")
def server(mini: xswe.StaticModel, corpora: list[str]) -> Iterator[SimpleNamespace]:
    config = ServeConfig(port=0, threads=1, seconds=1.0, keep=False)
    with running(xswe.make_app(mini, corpora, config=config), config) as server:
        yield server
