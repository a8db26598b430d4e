"""The blocks of the README and of the pages do what they say, in the order a reader meets them.

What a block of Python prints stands under it as comments, and is checked.

Blocks under a comment ``<!-- not run -->`` name files of the reader's own, or need the network.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
NAMES = ("use", "search", "mine", "phrases", "train", "corpora", "evaluate")
PAGES = [README, *(ROOT / "docs" / f"{name}.md" for name in NAMES)]
pytestmark = pytest.mark.skipif(not PAGES[-1].is_file(), reason="docs/ is not in this installation")
_BLOCK = re.compile(r"(<!-- not run -->\n)?```(sh|python)\n(.*?)```", re.DOTALL)


def blocks() -> list[tuple[str, str]]:
    """(language, code) of the blocks that are to be run."""
    found = [block for page in PAGES for block in _BLOCK.findall(page.read_text("utf-8"))]
    return [(language, code) for skipped, language, code in found if not skipped]


def test_the_readme_has_the_blocks_a_reader_needs():
    text = README.read_text("utf-8")
    assert "pip install -c constraints.txt" in text
    assert "python -m pytest" in text
    assert any("xswe train pair=en-ja" in code for _, code in blocks())
    assert any(language == "python" and "xswe.load" in code for language, code in blocks())


def test_the_blocks_run_in_order(tmp_path):
    if not shutil.which("bash"):
        pytest.skip("the README's commands are for a POSIX shell")
    shutil.copy(README, tmp_path)
    shutil.copytree(README.parent / "corpora", tmp_path / "corpora")
    env = {**os.environ, "XSWE_PROGRESS": "0", "HF_HUB_OFFLINE": "1"}
    env["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{env['PATH']}"
    for language, code in blocks():
        command = ["bash", "-euo", "pipefail", "-c", code] if language == "sh" else [sys.executable, "-c", code]
        done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True)
        assert done.returncode == 0, f"{code}\n{done.stdout}\n{done.stderr}"
        if language == "python" and (said := re.findall(r"(?m)^# (.*)$", code)):
            assert done.stdout.splitlines() == said


def test_links_between_pages_lead_somewhere():
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]:
        for link in re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text("utf-8")):
            assert (page.parent / link).exists(), f"{page.name}: {link}"


def test_the_readme_stays_short():
    assert len(README.read_text("utf-8").splitlines()) <= 130
