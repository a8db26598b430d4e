"""Make the pictures of the documentation: reports of the sample and of a story, and the application, in a real browser.

    python -m eval.report.screenshots [output=docs/pictures] [run=runs/quickstart] [browser=/usr/bin/chromium]
        [only=reports,story,serve]

Needs the extras ``serve`` and ``dev``, chromium, and fonts for Chinese and Japanese. Without a run folder one is trained,
in some minutes.
"""

from __future__ import annotations

import shutil
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import xswe
from eval.settings import chosen, run_script
from xswe.corpus.cards import sample_sentences
from xswe.errors import ConfigError

ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]
PHRASES = ("train", "supplier", "election", "doctor's appointment", "contract")
DEFAULTS = {"output": "docs/pictures", "run": "", "browser": "", "only": "reports,story,serve"}
COLOURS = 48  # enough for text, and a fifth of the bytes


def make_pages(folder: Path, run: str) -> dict[str, tuple[Path, str]]:
    """Write the reports; returns of each the file, and where its picture begins."""
    sides, model = sample_sentences(), xswe.load("mini")
    english, japanese = sides["en"][:1500], sides["ja"][500:]
    mined = xswe.mine(model, english, japanese, evidence=True, languages=("en", "ja"))
    (folder / "phrases.txt").write_text("\n".join(PHRASES), encoding="utf-8")
    (folder / "bitext.tsv").write_text(
        "".join(f"{a}\t{b}\n" for a, b in zip(sides["en"], sides["ja"], strict=True)), encoding="utf-8"
    )
    names = [folder / name for name in ("phrases.txt", "bitext.tsv", "terms.tsv")]
    terms = xswe.search_phrases(model, *names, mode="terms", languages=("en", "ja"))
    if not run:
        xswe.train("sample", ["en", "ja"], output=folder / "run")
    return {
        "pairs": (xswe.write_report(mined, folder / "pairs.html", model=model), "#scores"),
        "terms": (xswe.write_report(terms, folder / "terms.html"), "article.term"),
        "training": (xswe.write_report(run or folder / "run", folder / "training.html"), "#steps"),
    }


def make_story(folder: Path) -> dict[str, tuple[Path, str]]:
    """Write the page of the tutorial's story and its translation."""
    books, page = [f"corpora/sample/kiln.{code}.txt" for code in ("en", "de")], folder / "story.html"
    aligned = xswe.align_files("mini", *books, folder / "story.csv", languages=("en", "de"), split=True)
    return {"aligned": (xswe.write_report(aligned, page), "#map")}


def shoot_pages(pages: dict[str, tuple[Path, str]], output: Path, chromium: Any) -> None:
    """Take a picture of each page."""
    for name, (path, place) in pages.items():
        page = chromium.new_page(viewport={"width": 960, "height": 640}, color_scheme="light")
        page.goto(path.as_uri())
        page.evaluate("Object.assign(document.documentElement.style, {scrollBehavior: 'auto', scrollPaddingTop: 0})")
        page.evaluate("document.querySelectorAll('nav, .keep').forEach(e => { e.style.position = 'static'; })")
        page.evaluate(f"document.querySelector('{place}').scrollIntoView()")
        save(page, output / f"report-{name}.png")


@contextmanager
def application(folder: Path) -> Iterator[str]:
    """Serve the sample corpus as a translation memory; yields the address."""
    import uvicorn

    from xswe.bitext.memories import write_memory

    memory, sides = folder / "sample.tmx", sample_sentences()
    units = ((list(zip(sides, row, strict=True)), {}) for row in zip(*sides.values(), strict=True))
    memory.write_text("".join(write_memory(units, "en")), "utf-8")
    server = uvicorn.Server(
        uvicorn.Config(xswe.make_app("mini", [memory], keep=False), port=0, ws="none", log_level="error")
    )
    threading.Thread(target=server.run, daemon=True).start()
    while not server.started:
        time.sleep(0.05)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    server.should_exit = True


def shoot_application(address: str, output: Path, chromium: Any) -> None:
    """Take pictures of the concordance and of the comparison."""
    page = chromium.new_page(viewport={"width": 1100, "height": 720})
    page.goto(f"{address}/?q=temple")
    page.wait_for_selector("#sentences section")
    page.locator(".lines input").first.check()
    save(page, output / "serve.png")
    page.goto(f"{address}/?view=compare&left=A cat sleeps on the roof.&right=屋根の上で猫が寝ている。")
    page.wait_for_selector(".words")
    save(page, output / "compare.png")


def save(page: Any, target: Path) -> None:
    """Take a picture of a page, in few colours."""
    from PIL import Image

    page.screenshot(path=target)
    few = Image.open(target).convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
    few.save(target, optimize=True)


def main(settings: dict[str, Any]) -> None:
    """Make and shoot."""
    from playwright.sync_api import sync_playwright

    browser, wanted = (
        settings["browser"] or shutil.which("chromium"),
        chosen(settings["only"], "only", ["reports", "story", "serve"]),
    )
    if not browser:
        raise ConfigError("there is no chromium: give browser=PATH")
    output = Path(settings["output"])
    output.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        folder = Path(name)
        chromium = playwright.chromium.launch(executable_path=browser, args=ARGUMENTS)
        if "reports" in wanted:
            shoot_pages(make_pages(folder, settings["run"]), output, chromium)
        if "story" in wanted:
            shoot_pages(make_story(folder), output, chromium)
        if "serve" in wanted:
            with application(folder) as address:
                shoot_application(address, output, chromium)
        chromium.close()


if __name__ == "__main__":
    run_script(main, DEFAULTS, __doc__)
