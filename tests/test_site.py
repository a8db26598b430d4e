"""The site: built without a warning, links checked, every page as Markdown too, the reference as the code is."""

from __future__ import annotations

import importlib
import json
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

import xswe
from xswe.cli.main import main
from xswe.cli.verbs import VERBS

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The built site; a warning is an error."""
    for needed in ("mkdocs", "material", "griffe"):
        pytest.importorskip(needed)
    if not (ROOT / "mkdocs.yml").is_file():
        pytest.skip("docs/ is not in this installation")
    folder = tmp_path_factory.mktemp("site")
    env = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    command = [sys.executable, "-m", "mkdocs", "--quiet", "build", "--strict", "--site-dir", str(folder)]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder


class _Addresses(HTMLParser):
    """What a page links to, what it loads, and its anchors."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.links, self.loaded, self.anchors = [], [], set()
        self.feed(page.read_text("utf-8"))

    def handle_starttag(self, tag, attrs):
        held = dict(attrs)
        self.anchors.add(held.get("id"))
        if tag == "a" and held.get("href"):
            self.links.append(held["href"])
        elif held.get("rel") not in ("canonical", "next", "prev"):
            self.loaded += [held[name] for name in ("src", "href") if held.get(name)]


@pytest.mark.slow
def test_links_and_files_are_there_and_nothing_is_loaded_from_elsewhere(site):
    pages = {path: _Addresses(path) for path in site.rglob("*.html")}
    assert len(pages) > 30
    for page, found in pages.items():
        assert not [address for address in found.loaded if urlsplit(address).scheme not in ("", "data")], page
        for address in (*found.links, *found.loaded):
            parts = urlsplit(address)
            if parts.scheme or page.name == "404.html":
                continue
            target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            assert target.exists(), f"{page.relative_to(site)}: {address}"
            if parts.fragment and target in pages and not parts.fragment.startswith("__"):
                assert unquote(parts.fragment) in pages[target].anchors, f"{page.relative_to(site)}: {address}"


@pytest.mark.slow
def test_a_search_finds_four_languages_and_american_spellings(site):
    index = json.loads((site / "search" / "search_index.json").read_text("utf-8"))
    assert index["config"]["lang"] == ["en", "de", "ja", "zh"]
    for british, american in (("neighbours", "neighbors"), ("tokeniser", "tokenizer"), ("licence", "license")):
        found = [part["text"] for part in index["docs"] if re.search(rf"\b{british}\b", part["text"].lower())]
        assert found, british
        assert all(re.search(rf"\b{american}\b", text.lower()) for text in found)


@pytest.mark.slow
def test_every_setting_and_every_public_name_is_in_the_reference(site, capsys):
    for verb in VERBS:
        text = (site / "reference" / "verbs" / f"{verb}.md").read_text("utf-8")
        assert main([verb, "--help-all"]) == 0
        named = re.findall(r"(?m)^  ([\w./]+)=", capsys.readouterr().out)
        assert named
        assert named == re.findall(r"(?m)^\| `([\w./]+)` \|", text), verb
    api = "".join(path.read_text("utf-8") for path in (site / "reference" / "api").glob("*.md"))
    assert all(f"## {name} {{" in api for name in xswe.__all__ if not name.startswith("_"))
    assert "### StaticModel.encode {" in api
    assert "### InputError {" in api


def test_the_tables_of_formats_and_former_names_are_as_the_code_is(monkeypatch):
    pytest.importorskip("griffe")
    monkeypatch.syspath_prepend(ROOT / "tools")
    reference = importlib.import_module("reference")
    for page in reference.PAGES:
        text = page.read_text("utf-8")
        assert reference.filled(text) == text, "python tools/reference.py fills it"


@pytest.mark.slow
def test_the_pictures_are_those_of_the_results(monkeypatch, tmp_path):
    pytest.importorskip("matplotlib")
    monkeypatch.syspath_prepend(ROOT / "tools")
    pictures = importlib.import_module("pictures")
    for name, draw in pictures.DRAWN.items():
        draw(tmp_path / f"{name}.svg")
        drawn, kept = ((folder / f"{name}.svg").read_text("utf-8") for folder in (tmp_path, pictures.PICTURES))
        told = [re.findall(r">([^<>]*[\d.]+)</text>", text) for text in (drawn, kept)]  # figures and ticks
        assert told[0] == told[1], "python tools/pictures.py draws it"
        assert told[0] or name == "states"


@pytest.mark.slow
def test_every_page_is_there_as_markdown_and_listed(site):
    listed = re.findall(r"\]\(([^)]+)\)", (site / "llms.txt").read_text("utf-8"))
    assert "index.md" in listed
    for page in (path.relative_to(site) for path in site.rglob("*.html") if path.name != "404.html"):
        assert (site / page.with_suffix(".md")).is_file(), page
        assert page.with_suffix(".md").as_posix() in listed or page.parts[0] == "project", page
