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
import tempfile
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
    """A text without its rates and seconds, and one blank for several."""
    return re.sub(r"\s+(:?)", r"\1 ", re.sub(r",? ?[\d,.]+ (?:\w+/)?s\b", "", text)).strip()


def test_the_readme_has_the_blocks_a_reader_needs():
    text = README.read_text("utf-8")
    assert "pip install -c constraints.txt" in text
    assert "python -m pytest" in text
    assert any("xswe train pair=en-ja" in block.code for block in blocks())
    assert any(block.language == "python" and "xswe.load" in block.code for block in blocks())


def prepare(folder: Path, python: Path = Path(sys.executable).parent) -> dict[str, str]:
    """Put into a folder what the blocks find beside them in a checkout; returns their environment.

    Args:
        folder: where they run.
        python: the folder of the command ``python``.
    """
    shutil.copy(README, folder)
    for name in ("corpora", "eval", "examples"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True)
    if made := os.environ.get("XSWE_QUICKSTART"):  # what the first of the two commands left, which it then goes on from
        shutil.copytree(made, folder / "runs" / "quickstart")
    env = {**os.environ, "XSWE_PROGRESS": "0", "HF_HUB_OFFLINE": "1"}
    env["PATH"] = f"{python}{os.pathsep}{env['PATH']}"
    env["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), env.get("PYTHONPATH", "")]))
    return env


def run(block: Block, folder: Path, env: dict[str, str]) -> str:
    """Run a block; returns what it prints."""
    command = (
        ["bash", "-euo", "pipefail", "-c"] if block.language == "sh" else [shutil.which("python", path=env["PATH"]), "-c"]
    )
    done = subprocess.run([*command, block.code], cwd=folder, env=env, capture_output=True, text=True)
    assert done.returncode == 0, f"{block.page}: {block.code}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["README", "all pages"])
def test_the_blocks_run_in_order(every, tmp_path, warm_python):
    """The training of the README, a minute, is the first of its two commands, and among the blocks of all pages."""
    if not shutil.which("bash"):
        pytest.skip("the README's commands are for a POSIX shell")
    env = prepare(tmp_path, warm_python)
    for block in blocks():
        if not every and (block.page != README.name or "xswe train" in block.code):
            continue
        printed = run(block, tmp_path, env)
        if block.printed is not None:
            assert settled(printed) == settled(block.printed), f"{block.page}: {block.code}"


def test_links_between_pages_lead_somewhere():
    for page in [*ROOT.glob("*.md"), *DOCS.rglob("*.md")]:
        for link in re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text("utf-8")):
            assert (page.parent / link).exists(), f"{page.name}: {link}"


def test_every_file_that_the_glossary_names_is_there():
    named = re.findall(r"(?m)^\|.* `([\w/]+\.py)` \|$", (DOCS / "reference" / "glossary.md").read_text("utf-8"))
    assert len(named) >= 60
    assert not [name for name in named if not (ROOT / "xswe" / name).is_file()]


def test_the_readme_stays_short():
    assert len(README.read_text("utf-8").splitlines()) <= 130


def fill(page: Path, folder: Path) -> None:
    """Put what the blocks of a page print into it; the folder is where the pages before it were run."""
    env, text = prepare(folder), page.read_text("utf-8")
    for block in (one for one in blocks() if ROOT / one.page == page.resolve()):
        printed = run(block, folder, env)
        if block.printed is not None and settled(printed) != settled(block.printed):
            old = (
                "".join(f"# {line}\n" for line in block.printed.split("\n"))
                if block.language == "python"
                else block.printed
            )
            new = "".join(f"# {line}\n" for line in printed.splitlines()) if block.language == "python" else printed
            start = text.index(block.code)
            text = text[:start] + text[start:].replace(old, new, 1)
    page.write_text(text, "utf-8")


if __name__ == "__main__":  # python -m tests.test_readme [docs/how-to/mine.md FOLDER], by default all pages, in order
    with tempfile.TemporaryDirectory() as scratch:
        for page in [Path(sys.argv[1])] if sys.argv[1:] else pages():
            fill(page, Path(sys.argv[2] if sys.argv[2:] else scratch))
