"""Real pages in a real browser, which may ask for nothing but the file it opens."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import xswe
from tests.cli.verbs import returned
from xswe.report import OF_RESULTS
from xswe.report.write import _PAGES, _maker, _taken

pytest.importorskip("jinja2", reason="pages need Jinja2: pip install 'xswe[report]'")
from xswe.report.terms import view_of_hits

PHRASES = {"en": ["train", "council", "the last train", "zzqx"], "de": ["Zug", "Rat", "der letzte Zug", "zzqx"]}
LONG = "x" * 2000


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


@pytest.fixture
def mined(pages):
    return pages.result("MinedPairs")


@pytest.fixture
def filtered(pages):
    return pages.result("Filtered")


@pytest.fixture
def run_folder(pages) -> Path:
    return pages.result("run")


def mine(pages: Pages, _: Path) -> Any:
    source, target = pages.texts
    given = [*source[:700], *source[:9], ""], [*target[200:900], "</script><b>x</b>"]
    return xswe.mine(pages.mini, *given, evidence=True, languages=pages.codes, threads=1)


def filter_pairs(pages: Pages, _: Path) -> Any:
    source, target = pages.texts
    pairs = [*zip(source[:400], target[:400], strict=True), *zip(source[400:480], target[500:580], strict=True)]
    pairs += [(text, text) for text in target[600:620]] + pairs[:7] + [(source[0] + " <img src=x onerror=alert(1)>", "")]
    return xswe.filter(pages.mini, pairs, evidence=True, languages=pages.codes, threads=1)


def train(pages: Pages, folder: Path) -> Any:
    few = {"refine.max_steps": 30, "refine.batch_size": 64, "refine.eval_steps": 10, "pca.dim": 64}
    few |= {"objective.prefixes": (64, 32), "corpus.limit": 600}
    return xswe.train("sample", pages.codes, recipe="static", output=folder / "run", threads=1, **few)


def bitext(pages: Pages, folder: Path, lines: int) -> Path:
    rows = list(zip(*pages.texts, strict=True))[:lines]
    (folder / "bitext.tsv").write_text("".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")
    return folder / "bitext.tsv"


def found(pages: Pages, folder: Path, mode: str) -> Any:
    (folder / "queries.txt").write_text("\n".join(PHRASES[pages.codes[0]]), encoding="utf-8")
    given = folder / "queries.txt", bitext(pages, folder, 150)
    how = {"mode": mode, "languages": pages.codes, "threads": 1}
    return xswe.search_phrases(pages.mini, *map(str, given), folder / "hits.tsv", **how)


def aligned(pages: Pages, _: Path) -> Any:
    source, target = (texts[:80] for texts in pages.texts)
    return xswe.align(pages.mini, source, target[:30] + target[40:], languages=pages.codes, evidence=True)


def compared(pages: Pages, _: Path) -> Any:
    rows = [np.array([1.0, 1.0, 0.0, 1.0] * 20), np.array([1.0, 0.0, 0.0, 1.0] * 20)]
    return comparison([pages.mini, pages.mini.truncate(64)], rows)


def swept(_: Pages | None, folder: Path) -> Any:
    pytest.importorskip("torch")
    from xswe.evaluation.metrics import Bootstrap, Row
    from xswe.training.sweep import Sweep, SweepPoint

    points = []
    for k, dim in enumerate((64, 128, 256)):
        folders = tuple(folder / f"{dim}-{seed}" for seed in (0, 1))
        for one in folders:
            (one / "model").mkdir(parents=True)
            (one / "model" / "model.safetensors").write_bytes(bytes(2**20 * (k + 1)))
            (one / "run.json").write_text(json.dumps({"seconds": {"refine": 10.0 + k}}), encoding="utf-8")
        items = [np.repeat([1.0, 0.0], [60 + 10 * k + seed, 40 - 10 * k - seed]) for seed in (0, 1)]
        rows = tuple((Row("held-out", "en-ja", "f1", float(own.mean()), 100, items=own),) for own in items)
        points.append(SweepPoint({"pca.dim": dim}, (0, 1), rows, folders))
    return Sweep(("pca.dim",), tuple(points), Bootstrap(200))


def written(result: Any, path: Path) -> Path:
    """The file that a result writes."""
    result.write(path)
    return path


def hits_of_terms(pages: Pages, _: Path) -> Path:
    return pages["FoundInFiles of terms"].with_name("hits.tsv")


# What a page is made of, by its entry in the tables of xswe/report, given the pages and a folder; of any other result, what
# a verb returns.
MADE: dict[str, Callable[[Pages, Path], Any]] = {
    "MinedPairs": mine,
    "Filtered": filter_pairs,
    "AlignedTexts": aligned,
    "FoundInFiles": lambda pages, folder: found(pages, folder, "phrases"),
    "FoundInFiles of terms": lambda pages, folder: found(pages, folder, "terms"),
    "TermView": lambda pages, folder: view_of_hits(hits_of_terms(pages, folder), pages.codes),
    "Comparison": compared,
    "Sweep": swept,
    "TrainResult": train,
    "run": lambda pages, _: pages.result("TrainResult").folder,
    "mined": lambda pages, folder: written(pages.result("MinedPairs"), folder / "pairs.tsv"),
    "hits": hits_of_terms,
    "compare": lambda pages, folder: written(compared(pages, folder), folder / "compare.json"),
    "space": lambda pages, folder: bitext(pages, folder, 60),
}
ENTRIES = sorted({*_PAGES, *OF_RESULTS, *MADE} - {"auto"})


class Pages(dict[str, Path]):
    """Pages by their entries, each made when a test first asks for it, of texts of two languages and the model."""

    def __init__(self, folder: Path, mini: Any, codes: tuple[str, str], texts: Iterable[list[str]]) -> None:
        self.folder, self.mini, self.codes, self.texts = folder, mini, codes, tuple(texts)
        self._results = dict[str, Any]()

    def __missing__(self, name: str) -> Path:
        result = self.result(name)
        return self.setdefault(name, xswe.write_report(result, self.folder / name / "page.html", **self.given(name)))

    def result(self, name: str) -> Any:
        """What a page is of."""
        if name not in self._results:
            (folder := self.folder / name).mkdir()
            own = MADE[name](self, folder) if name in MADE else returned(name, folder, codes=self.codes)
            self._results[name] = own
        return self._results[name]

    def given(self, name: str) -> dict[str, Any]:
        """What a page is given besides its content: all that it shows."""
        every = {"model": self.mini, "languages": self.codes, "settings": {"made up": {"planted": 4711}}}
        entry = name.partition(" ")[0]
        taken = _taken(_PAGES[entry] if entry in _PAGES else _maker(entry))
        return {"kind": name if name in _PAGES else "auto"} | {key: every[key] for key in taken}


@pytest.fixture(scope="session")
def pages(mini, sample, tmp_path_factory) -> Pages:
    return Pages(tmp_path_factory.mktemp("pages"), mini, ("en", "ja"), (sample["en"], sample["ja"]))


@pytest.fixture(scope="session")
def foreign(mini, sample, tmp_path_factory) -> Pages:
    """Pages in two languages that are not their own, some of whose texts are long."""
    texts = ([text + LONG * (row % 7 == 3) for row, text in enumerate(sample[code])] for code in ("de", "ja"))
    return Pages(tmp_path_factory.mktemp("foreign"), mini, ("de", "ja"), texts)


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


def of_spans(spans, moved=None):
    """Aligned texts of such spans, their lines named by their numbers from 1."""
    from xswe.alignment.beads import Prices
    from xswe.alignment.sentences import AlignedTexts
    from xswe.io.ragged import Texts

    spans = np.array(spans, np.int64).reshape(-1, 4)
    sizes = ("s", spans[:, 1].max(initial=0)), ("t", spans[:, 3].max(initial=0))
    source, target = (Texts.of([f"{side}{k + 1}" for k in range(size)]) for side, size in sizes)
    no = np.zeros(len(spans), bool)
    scores = np.full(len(spans), 0.5, np.float32)
    moved = no if moved is None else np.array(moved, bool)
    return AlignedTexts(np.zeros((1, 2), np.int64), spans, scores, no, moved, source, target, Prices(), ("en", "de"))
