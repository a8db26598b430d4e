"""What MkDocs is told beside mkdocs.yml: pages from the code, files from outside ``docs/``, and each page as Markdown.

The README is the first page. A link from a page to a file of the repository that is no page (``eval/results/…``,
``examples/…``) leads to a copy of it in the site; a Markdown file so linked is a page of its own.
"""

from __future__ import annotations

import json
import os
import posixpath
import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files, InclusionLevel

ROOT = Path(__file__).resolve().parents[1]
for _place in (ROOT, ROOT / "tools"):
    if str(_place) not in sys.path:
        sys.path.insert(0, str(_place))

import reference  # noqa: E402

_LINK = re.compile(r"(\]\()(?!\w+:|#)([^)#\s]+)(#[^)\s]*)?(\))")
_PLAIN: dict[str, tuple[str, str]] = {}  # path in the site without its suffix: title, Markdown


def on_config(config: Any) -> Any:
    """Add the generated pages to the contents, and those of ``docs/`` that they do not name."""
    entries = {title: value for entry in config.nav if isinstance(entry, dict) for title, value in entry.items()}
    named, docs = {uri for entry in config.nav for uri in _uris(entry)}, ROOT / "docs"
    there = sorted(path.relative_to(docs).as_posix() for path in docs.rglob("*.md"))
    entries["How to"] += [uri for uri in there if uri not in named]
    pages = entries["Reference"]
    for title, folder, names in (("Verbs", "verbs", reference.VERBS), ("API", "api", reference.parts())):
        pages.append({title: [f"reference/{folder}/{name}.md" for name in ("index", *names)]})
    return config


def on_files(files: Files, config: Any) -> Files:
    """Add the README, the generated pages, and what pages link to outside ``docs/``."""
    _PLAIN.clear()
    files.append(File.generated(config, "index.md", content=(ROOT / "README.md").read_text("utf-8")))
    for uri, text in reference.pages().items():
        files.append(File.generated(config, uri, content=text))
    waiting = list(files.documentation_pages())
    while waiting:
        page = waiting.pop()
        for found in _LINK.finditer(page.content_string):
            target = _target(page.src_uri, found[2])
            uri = _uri(target)
            if target.is_file() and files.get_file_from_path(uri) is None:
                added = File.generated(config, uri, abs_src_path=str(target), inclusion=InclusionLevel.NOT_IN_NAV)
                files.append(added)
                if target.suffix == ".md":
                    waiting.append(added)
    return files


def _home(uri: str) -> Path:
    """Return the file of the repository that a page of the site is made from."""
    if uri != "index.md" and not uri.startswith("project/"):
        return ROOT / "docs" / uri
    path = ROOT / uri.removeprefix("project/")
    return path.with_name("README.md") if path.name == "index.md" else path


def _uri(path: Path) -> str:
    """Return the path in the site of a file of the repository."""
    if path.is_relative_to(ROOT / "docs"):
        return path.relative_to(ROOT / "docs").as_posix()
    named = path.with_name("index.md") if path.name == "README.md" else path
    return "index.md" if path.parent == ROOT and named != path else f"project/{named.relative_to(ROOT).as_posix()}"


def _target(uri: str, link: str) -> Path:
    return Path(os.path.normpath(_home(uri).parent / link))


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Let links out of ``docs/`` lead to their copies; keep the text for the plain copy of the page."""
    uri = page.file.src_uri

    def moved(found: re.Match[str]) -> str:
        target = _target(uri, found[2])
        if not target.is_file() or not target.is_relative_to(ROOT):
            return found[0]
        return f"{found[1]}{posixpath.relpath(_uri(target), posixpath.dirname(uri) or '.')}{found[3] or ''}{found[4]}"

    text = _LINK.sub(moved, markdown)
    _PLAIN[uri] = (str(page.title), text)
    return text


# British words of the pages, as Americans look them up.
_AMERICAN = (
    (re.compile(r"(?i)\b(neighb|col|behavi|fav|lab)our"), r"\1or"),
    (re.compile(r"(?i)\b((?:token|normal|optim|quant|organ|recogn|summar|capital|initial|general)i)s(?=[aei])"), r"\1z"),
    (re.compile(r"(?i)\blicence"), "license"),
    (re.compile(r"(?i)\bcentre"), "center"),
    (re.compile(r"(?i)\bcatalogue"), "catalog"),
)


def american(text: str) -> list[str]:
    """Return the words of a text that Americans write otherwise, as they do, each once."""
    words = dict.fromkeys(re.findall(r"[a-z]+", text.lower()))
    out = []
    for word in words:
        other = word
        for british, there in _AMERICAN:
            other = british.sub(there, other)
        out += [other] if other != word else []
    return out


def on_post_build(config: Any) -> None:
    """Write each page's Markdown beside it, and ``llms.txt``, which lists them; let American spellings find a page."""
    site = Path(config.site_dir)
    found = site / "search" / "search_index.json"
    index = json.loads(found.read_text("utf-8"))
    for part in index["docs"]:
        part["text"] = " ".join([part["text"], *american(f"{part['title']} {part['text']}")])
    found.write_text(json.dumps(index, ensure_ascii=False, separators=(",", ":")), encoding="utf-8")
    for uri, (_, text) in _PLAIN.items():
        (site / uri).write_text(re.sub(r"<!-- .*? -->\n", "", text), encoding="utf-8")
    lines = [f"# {config.site_name}", "", f"> {config.site_description}", ""]
    for entry in config.nav:
        ((title, value),) = entry.items() if isinstance(entry, dict) else (("Start", entry),)
        lines += [f"## {title}", "", *(_listed(uri) for uri in _uris(value)), ""]
    (site / "llms.txt").write_text("\n".join(lines), encoding="utf-8")


def _uris(value: Any) -> list[str]:
    """Return the pages below an entry of the contents."""
    if isinstance(value, dict):
        return [uri for own in value.values() for uri in _uris(own)]
    return [uri for one in value for uri in _uris(one)] if isinstance(value, list) else [value]


def _listed(uri: str) -> str:
    """Return a page's line in ``llms.txt``: its title, its address, the first sentence below its heading."""
    title, text = _PLAIN[uri]
    body = re.sub(r"(?s)```.*?```|<!--.*?-->|^#.*?$", "", text, flags=re.MULTILINE)
    paragraph = " ".join(body.strip().split("\n\n")[0].split())
    first = re.split(r"(?<=[.?!])\s", paragraph, maxsplit=1)[0].rstrip(":")
    return f"- [{title}]({uri})" + (f": {first}" if first and not first.startswith("|") else "")
