"""A release refuses what cannot be one, and names its version everywhere."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

import xswe

TOOLS = Path(__file__).parents[1] / "tools"


def tool(name):
    if not TOOLS.is_dir():
        pytest.skip("tools/ is not in this installation")
    spec = importlib.util.spec_from_file_location(name, TOOLS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def release():
    return tool("release")


@pytest.fixture
def checkout(tmp_path):
    (tmp_path / "xswe").mkdir()
    (tmp_path / "xswe" / "version.py").write_text('__version__ = "0.9.0"\n', encoding="utf-8")
    (tmp_path / "CHANGELOG.md").write_text("# Changes\n\n## 0.10.0 (not released)\n\n- All of it.\n", encoding="utf-8")
    (tmp_path / "CITATION.cff").write_text(
        "title: x\ntype: software\nversion: 0.9.0\ndate-released: 2020-01-01\n", encoding="utf-8"
    )
    return tmp_path


def test_every_file_names_the_version(release, checkout):
    texts = release.written(checkout, "0.10.0", "2026-11-23")
    assert '__version__ = "0.10.0"' in texts["xswe/version.py"]
    assert "## 0.10.0 (2026-11-23)\n" in texts["CHANGELOG.md"]
    assert texts["CITATION.cff"] == "title: x\ntype: software\nversion: 0.10.0\ndate-released: 2026-11-23\n"
    assert {"mine", "mine score", "score=csls", ".tmx", "German"} <= set(texts["tests/released.txt"].splitlines())


@pytest.mark.parametrize(
    ("version", "said"),
    [("0.9.0", "not newer"), ("0.11.0", "no heading"), ("1.0", "is no version"), ("v1.0.0", "is no version")],
)
def test_what_is_no_release_is_refused(release, checkout, version, said):
    with pytest.raises(SystemExit, match=said):
        release.written(checkout, version, "2026-11-23")


def test_this_checkout_is_a_release_or_could_be_one(release):
    root = TOOLS.parent
    heading = next(line for line in (root / "CHANGELOG.md").read_text("utf-8").splitlines() if line.startswith("## "))
    version, told = re.fullmatch(r"## (\S+) \((.+)\)", heading).groups()
    if told == "not released":
        assert release.written(root, version, "2026-11-23")
    else:
        assert version == xswe.__version__
        assert f"version: {version}\ndate-released: {told}\n" in (root / "CITATION.cff").read_text("utf-8")


def test_links_of_the_description_hold_away_from_the_repository():
    pytest.importorskip("hatchling")
    described = tool("description").description
    page = "![Scores](docs/a.png) [use](docs/use.md#top), [paper](https://x.org/a), [below](#licence)"
    home = "https://code.example/xswe/"
    assert described(page, home) == (
        "![Scores](https://code.example/xswe/raw/HEAD/docs/a.png) "
        "[use](https://code.example/xswe/blob/HEAD/docs/use.md#top), "
        "[paper](https://x.org/a), [below](#licence)"
    )
    assert described(page, None) == " use, [paper](https://x.org/a), [below](#licence)"
    assert not re.search(r"\]\((?!https?:|#)", described((TOOLS.parent / "README.md").read_text("utf-8"), None))
