"""Real pages in a real browser, which may ask for nothing but the file it opens."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import xswe

pytest.importorskip("jinja2", reason="pages need Jinja2: pip install 'xswe[report]'")
PHRASES = ["train", "council", "the last train", "zzqx"]


def axe() -> str:
    """The source of axe-core: the file that XSWE_AXE names."""
    path = os.environ.get("XSWE_AXE", "")
    return Path(path).read_text(encoding="utf-8") if path and Path(path).is_file() else ""


class Opened:
    """A page in the browser, and what it asked for or complained of."""

    def __init__(self, page) -> None:
        self.page, self.requests, self.messages = page, [], []
        page.on("console", lambda message: self.messages.append(message.text))
        page.on("pageerror", lambda error: self.messages.append(str(error)))
        page.route("**/*", self._abort)

    def _abort(self, route) -> None:
        if route.request.url.startswith("file:") and route.request.is_navigation_request():
            route.continue_()
        else:
            self.requests.append(route.request.url)
            route.abort()

    def saved(self, click: Callable[[], None], folder: Path) -> Path:
        """Do what starts a download, and return the file."""
        with self.page.expect_download() as waiting:
            click()
        path = folder / waiting.value.suggested_filename
        waiting.value.save_as(path)
        return path

    def widest(self) -> int:
        """How many pixels the page is wider than the window."""
        return self.page.evaluate("document.documentElement.scrollWidth - innerWidth")


@pytest.fixture
def visit(browser) -> Iterator[Callable[..., Opened]]:
    """Open a file at a width; at the end nothing was asked for and nothing complained of."""
    visited = []

    def go(path: Path, width: int = 1400, scheme: str = "light") -> Opened:
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        opened = Opened(context.new_page())
        visited.append((context, opened))
        opened.page.goto(path.as_uri())
        return opened

    yield go
    for context, opened in visited:
        context.close()
        assert opened.requests == []
        assert opened.messages == []


@pytest.fixture(scope="session")
def mini():
    return xswe.load("mini")


@pytest.fixture(scope="session")
def mined(mini, sample):
    source, target = [*sample["en"][:700], *sample["en"][:9], ""], [*sample["ja"][200:900], "</script><b>x</b>"]
    return xswe.mine(mini, source, target, evidence=True, languages=("en", "ja"), threads=1)


@pytest.fixture(scope="session")
def filtered(mini, sample):
    english, german = sample["en"], sample["de"]
    pairs = [*zip(english[:400], german[:400], strict=True), *zip(english[400:480], german[500:580], strict=True)]
    pairs += [(text, text) for text in english[600:620]] + pairs[:7] + [("<img src=x onerror=alert(1)>", "")]
    return xswe.filter(mini, pairs, evidence=True, languages=("en", "de"), threads=1)


@pytest.fixture(scope="session")
def run_folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("report") / "run"
    few = {"refine.max_steps": 30, "refine.batch_size": 64, "refine.eval_steps": 10, "pca.dim": 64}
    few |= {"objective.prefixes": (64, 32), "corpus.limit": 600}
    xswe.train("sample", ["en", "ja"], recipe="static", output=folder, threads=1, **few)
    return folder


@pytest.fixture(scope="session")
def pages(tmp_path_factory, mini, mined, filtered, sample) -> dict[str, Path]:
    """One page of each kind that is quickly made."""
    folder = tmp_path_factory.mktemp("pages")
    (folder / "queries.txt").write_text("\n".join(PHRASES), encoding="utf-8")
    rows = zip(sample["en"][:150], sample["ja"][:150], strict=True)
    (folder / "passages.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in rows), encoding="utf-8")
    given = str(folder / "queries.txt"), str(folder / "passages.tsv")
    found = {}
    for mode in ("terms", "phrases"):
        how = {"mode": mode, "languages": ("en", "ja"), "threads": 1}
        found[mode] = xswe.search_phrases(mini, *given, folder / f"{mode}.tsv", **how)
    models = [mini, mini.truncate(64)]
    rows = [np.array([1.0, 1.0, 0.0, 1.0] * 20), np.array([1.0, 0.0, 0.0, 1.0] * 20)]
    made = {"mined": mined, "filtered": filtered, **found, "compare": comparison(models, rows)}
    return {name: xswe.write_report(one, folder / f"{name}.html", settings={"a": {"b": 1}}) for name, one in made.items()}


def comparison(models, items):
    """A comparison of made-up figures, by the library's own tests."""
    from xswe.evaluation.evaluate import Comparison, Measured, significance
    from xswe.evaluation.metrics import Bootstrap, Row, with_intervals

    measured = []
    for k, (model, own) in enumerate(zip(models, items, strict=True)):
        rows = [Row(t, s, "f1", float(own.mean()), 80, items=own) for t in ("tatoeba", "news") for s in ("en-de", "en-ja")]
        size = model.matrix.nbytes
        rows = tuple(with_intervals(rows, Bootstrap(200)))
        measured.append(Measured(f"model {k}", model.dim, size, 1, ("en", "de"), 1000.0 + k, rows, 60.0 - k))
    return Comparison(tuple(measured), tuple(significance(measured, Bootstrap(200))), 1)
