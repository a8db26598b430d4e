"""Make the pictures of the pages in the documentation: reports of the sample corpus, in a browser.

python eval/screenshots.py [output=docs/pictures] [run=runs/quickstart] [browser=/usr/bin/chromium]

Needs playwright, Pillow, chromium and fonts for Chinese and Japanese. Without a run folder one is trained, in some minutes.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

from settings import run_script

import xswe
from xswe.errors import ConfigError
from xswe.phrases.in_files import PhraseFiles, find_in_files
from xswe.phrases.search import SpanConfig

ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]
PHRASES = ("train", "supplier", "election", "doctor's appointment", "contract")


DEFAULTS = {"output": "docs/pictures", "run": "", "browser": ""}


def make_pages(folder: Path, run: str) -> dict[str, tuple[Path, str]]:
    """Write the reports; returns of each the file, and where its picture begins."""
    sample = Path(__file__).parents[1] / "corpora" / "sample" / "sentences.tsv"
    rows = [line.split("\t") for line in sample.read_text(encoding="utf-8").splitlines()]
    model = xswe.load("mini")
    english, japanese = [row[0] for row in rows[:1500]], [row[3] for row in rows[500:]]
    mined = xswe.mine(model, english, japanese, evidence=True, languages=("en", "ja"))
    (folder / "phrases.txt").write_text("\n".join(PHRASES), encoding="utf-8")
    (folder / "bitext.tsv").write_text("".join(f"{row[0]}\t{row[3]}\n" for row in rows), encoding="utf-8")
    names = [str(folder / name) for name in ("phrases.txt", "bitext.tsv", "terms.tsv")]
    terms = find_in_files(model, PhraseFiles(*names, "terms", ("en", "ja")), SpanConfig(distinct=True))
    if not run:
        xswe.train("sample", ["en", "ja"], output=folder / "run")
    return {
        "pairs": (xswe.write_report(mined, folder / "pairs.html", model=model), "#scores"),
        "terms": (xswe.write_report(terms, folder / "terms.html"), "article.term"),
        "training": (xswe.write_report(run or folder / "run", folder / "training.html"), "#steps"),
    }


def shoot(pages: dict[str, tuple[Path, str]], output: Path, browser: str) -> None:
    """Take a picture of each page, in few colours."""
    from PIL import Image
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=browser, args=ARGUMENTS)
        for name, (path, place) in pages.items():
            page = chromium.new_page(viewport={"width": 960, "height": 640}, color_scheme="light")
            page.goto(path.as_uri())
            page.evaluate("Object.assign(document.documentElement.style, {scrollBehavior: 'auto', scrollPaddingTop: 0})")
            page.evaluate("document.querySelectorAll('nav, .keep').forEach(e => { e.style.position = 'static'; })")
            page.evaluate(f"document.querySelector('{place}').scrollIntoView()")
            target = output / f"report-{name}.png"
            page.screenshot(path=target)
            Image.open(target).convert("RGB").quantize(48).save(target, optimize=True)
        chromium.close()


def main(settings: dict[str, Any]) -> None:
    """Make and shoot."""
    browser = settings["browser"] or shutil.which("chromium")
    if not browser:
        raise ConfigError("there is no chromium: give browser=PATH")
    output = Path(settings["output"])
    output.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        shoot(make_pages(Path(folder), settings["run"]), output, browser)


if __name__ == "__main__":
    run_script(main, DEFAULTS, __doc__)
