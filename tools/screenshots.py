"""The pictures of the local application in ``docs/pictures``, taken by a real browser over the sample corpus.

    python tools/screenshots.py

Needs the extras ``serve`` and ``dev``, and chromium; ``CHROMIUM`` names it where it is not on the path.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
import time
from io import BytesIO
from pathlib import Path
from xml.sax.saxutils import escape

import uvicorn
from PIL import Image
from playwright.sync_api import sync_playwright

import xswe
from xswe.io.files import resource

PICTURES = Path(__file__).parents[1] / "docs" / "pictures"
SIZE = {"width": 1100, "height": 720}
_COLOURS = 48  # enough for text, and a fifth of the bytes


def memory(folder: str) -> str:
    """Write the sample corpus as a translation memory; returns its name."""
    rows = [line.split("\t") for line in (resource("corpora") / "sample" / "sentences.tsv").read_text("utf-8").splitlines()]
    units = (
        "".join(
            f'<tuv xml:lang="{c}"><seg>{escape(t)}</seg></tuv>' for c, t in zip(("en", "de", "zh", "ja"), row, strict=True)
        )
        for row in rows
    )
    path = Path(folder) / "sample.tmx"
    body = "".join(f"<tu>{unit}</tu>" for unit in units)
    path.write_text(f'<tmx version="1.4"><header srclang="en"/><body>{body}</body></tmx>', "utf-8")
    return str(path)


def main() -> None:
    """Take the pictures."""
    with tempfile.TemporaryDirectory() as folder:
        app = xswe.make_app("mini", [memory(folder)])
    server = uvicorn.Server(uvicorn.Config(app, port=0, ws="none", log_level="error"))
    threading.Thread(target=server.run, daemon=True).start()
    while not server.started:
        time.sleep(0.05)
    address = f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium")
    with sync_playwright() as running:
        browser = running.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport=SIZE)
        page.goto(f"{address}/?q=temple")
        page.wait_for_selector("#sentences section")
        page.locator(".lines input").first.check()
        save(page.screenshot(), "serve.png")
        page.goto(f"{address}/?view=compare&left=A cat sleeps on the roof.&right=屋根の上で猫が寝ている。")
        page.wait_for_selector(".words")
        save(page.screenshot(), "compare.png")
        browser.close()
    server.should_exit = True


def save(picture: bytes, name: str) -> None:
    """Write a picture with few colours."""
    few = Image.open(BytesIO(picture)).convert("RGB").quantize(_COLOURS, dither=Image.Dither.NONE)
    few.save(PICTURES / name, optimize=True)


if __name__ == "__main__":
    main()
