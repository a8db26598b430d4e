"""The blocks of the README and of the pages do what they say, in the order of the site's contents.

What a block of Python prints stands under it as comments, and is checked; what a command prints stands under it in a
block of text marked ``<!-- printed -->``, and is checked but for rates and seconds.

Blocks under a comment ``<!-- not run -->`` name files of the reader's own, or need the network; those under
``<!-- needs: MODULE -->`` are run where the module is installed.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
DOCS = ROOT / "docs"
pytestmark = pytest.mark.skipif(not DOCS.is_dir(), reason="docs/ is not in this installation")
_BLOCK = re.compile(
    r"(?:<!-- (?P<mark>not run|needs: \w+) -->\n)?```(?P<language>sh|python)\n(?P<code>.*?)```\n"
    r"(?:\n<!-- printed -->\n```text\n(?P<printed>.*?)```\n)?",
    re.DOTALL,
)


class Block(NamedTuple):
    """One block of a page; what it prints is None where the page does not show it."""

    page: str
    language: str
    code: str
    printed: str | None


def pages() -> list[Path]:
    """The README, the pages in the order of the site's contents, and those that it does not name yet."""

    def named(entries: list) -> Iterator[Path]:
        for entry in entries:
            value = next(iter(entry.values())) if isinstance(entry, dict) else entry
            if isinstance(value, list):
                yield from named(value)
            elif (DOCS / value).is_file():
                yield DOCS / value

    contents = list(named(yaml.safe_load((ROOT / "mkdocs.yml").read_text("utf-8"))["nav"]))
    return list(dict.fromkeys([README, *contents, *sorted(DOCS.rglob("*.md"))]))


def blocks() -> list[Block]:
    """The blocks that are to be run."""
    found = []
    for page in pages():
        for block in _BLOCK.finditer(page.read_text("utf-8")):
            mark = block["mark"] or ""
            if mark == "not run" or (mark and importlib.util.find_spec(mark.removeprefix("needs: ")) is None):
                continue
            said = re.findall(r"(?m)^# (.*)$", block["code"]) if block["language"] == "python" else []
            shown = "\n".join(said) if said else block["printed"]
            found.append(Block(page.relative_to(ROOT).as_posix(), block["language"], block["code"], shown))
    return found


def settled(text: str) -> str:
    """A text without its rates and seconds."""
    return re.sub(r",? ?[\d,.]+ (?:\w+/)?s\b", "", text).strip()


def test_the_readme_has_the_blocks_a_reader_needs():
    text = README.read_text("utf-8")
    assert "pip install -c constraints.txt" in text
    assert "python -m pytest" in text
    assert any("xswe train pair=en-ja" in block.code for block in blocks())
    assert any(block.language == "python" and "xswe.load" in block.code for block in blocks())


def test_the_blocks_run_in_order(tmp_path):
    if not shutil.which("bash"):
        pytest.skip("the README's commands are for a POSIX shell")
    shutil.copy(README, tmp_path)
    for folder in ("corpora", "eval", "examples"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    env = {**os.environ, "XSWE_PROGRESS": "0", "HF_HUB_OFFLINE": "1"}
    env["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{env['PATH']}"
    env["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), env.get("PYTHONPATH", "")]))
    for page, language, code, printed in blocks():
        command = ["bash", "-euo", "pipefail", "-c", code] if language == "sh" else [sys.executable, "-c", code]
        done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True)
        assert done.returncode == 0, f"{page}: {code}\n{done.stdout}\n{done.stderr}"
        if printed is not None:
            assert settled(done.stdout) == settled(printed), f"{page}: {code}"


def test_links_between_pages_lead_somewhere():
    for page in [*ROOT.glob("*.md"), *DOCS.rglob("*.md")]:
        for link in re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text("utf-8")):
            assert (page.parent / link).exists(), f"{page.name}: {link}"


def test_the_readme_stays_short():
    assert len(README.read_text("utf-8").splitlines()) <= 130
