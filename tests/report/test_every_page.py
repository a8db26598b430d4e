"""What every page keeps, whoever adds it: texts of any length, results with nothing in them, and languages."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass, replace
from functools import cache, partial
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from markupsafe import Markup

import xswe
from tests.cli.verbs import commands, returned
from tests.report.conftest import ENTRIES, Pages
from xswe.corpus.cards import sample_sentences
from xswe.errors import XsweError
from xswe.report import OF_RESULTS, write
from xswe.report.page import environment
from xswe.text.scripts import has_cjk, has_kana

ROOM = Path(write.__file__).parent
VOID = {"meta", "link", "input", "br", "img", "hr"}
SHOWN = {"table", "ul", "ol", "dl", "svg", "pre", "article"}  # what a section can show beside sentences
# Inputs with (nearly) nothing in them, by what is made of a text of lines.
LITTLE = {
    "no line": lambda text: "",
    "blank lines": lambda text: re.sub(r"[^\n\t]+", "", text),
    "no letter": lambda text: re.sub(r"[^\n\t]+", "?!", text),
    "one line": lambda text: text.partition("\n")[0] + "\n",
}


class Element:
    """An element of a page: its name, attributes, what is in it, and the language that holds there."""

    def __init__(self, name: str, attributes: dict[str, str], parent: Element | None) -> None:
        self.name, self.attributes, self.parent, self.inside = name, attributes, parent, list[Any]()
        self.language: str = attributes.get("lang") or (parent.language if parent else "")

    def all(self, *names: str) -> Iterator[Element]:
        """The elements in it, of these names."""
        for one in self.inside:
            if isinstance(one, Element):
                if one.name in names or not names:
                    yield one
                yield from one.all(*names)

    def texts(self) -> Iterator[tuple[str, str]]:
        """What can be read or heard in it, each with its language."""
        for name in ("aria-label", "title", "placeholder"):
            if name in self.attributes:
                yield self.language, self.attributes[name]
        for one in self.inside if self.name not in ("style", "script") else ():
            if isinstance(one, str):
                yield self.language, one
            else:
                yield from one.texts()

    @property
    def text(self) -> str:
        return " ".join(" ".join(text for _, text in self.texts()).split())


class Tree(HTMLParser):
    """A page as elements."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.root = self.at = Element("", {}, None)
        self.feed(page)

    def handle_starttag(self, tag, attrs) -> None:
        element = Element(tag, {name: value or "" for name, value in attrs}, self.at)
        self.at.inside.append(element)
        if tag not in VOID:
            self.at = element

    def handle_startendtag(self, tag, attrs) -> None:
        self.at.inside.append(Element(tag, {name: value or "" for name, value in attrs}, self.at))

    def handle_endtag(self, tag) -> None:
        assert self.at.name == tag, f"</{tag}> in <{self.at.name}>"
        self.at = self.at.parent

    def handle_data(self, data) -> None:
        if data.strip():
            self.at.inside.append(data)


def unsound(page: str) -> list[str]:
    """What no page should show: a figure that is none, an empty table, list or drawing, a section that says nothing."""
    root, wrong = Tree(page).root, []
    code = " ".join(one for script in root.all("script") for one in script.inside)
    (main,) = root.all("main")
    for element in (main, *main.all()):
        own = [*element.attributes.values(), *(one for one in element.inside if isinstance(one, str))]
        wrong += [text[:90] for text in own if re.search(r"(?<!\w)-?(nan|NaN|inf|Infinity|undefined)(?!\w)", text)]
    for element in main.all("tbody", "ul", "ol", "dl", "thead"):
        holder = element.parent if element.name == "tbody" else element
        if not [*element.all("tr", "li", "dt")] and f"#{holder.attributes.get('id')} {element.name}" not in code:
            wrong.append(f"an empty {element.name}: {holder.text[:90]}")
    for element in main.all("svg"):
        if "plot" in element.attributes.get("class", "") and not [*element.all("rect", "circle", "polyline", "polygon")]:
            wrong.append(f"an empty drawing: {element.text[:90]}")
    for section in main.all("section"):
        if not [*section.all(*SHOWN)] and not any(re.match("No |Nothing ", p.text) for p in section.all("p")):
            wrong.append(f"a section with nothing in it, and without a sentence that says so: {section.text[:200]}")
    return wrong


def emptied(value: Any) -> Any:
    """A result whose texts, arrays and tables have nothing in them; of several records, each."""
    if is_dataclass(value):
        return replace(value, **{one.name: emptied(getattr(value, one.name)) for one in fields(value) if one.init})
    if isinstance(value, np.ndarray):
        return value[:0]
    if isinstance(value, tuple) and value and all(map(is_dataclass, value)):
        return tuple(map(emptied, value))
    return type(value)() if isinstance(value, (tuple, list, dict)) else value


def with_little(path: Path, folder: Path) -> Iterator[tuple[str, Path]]:
    """Copies of a file with little in it: lists in JSON without entries, few or blank lines of any other text."""
    if path.is_dir() or path.suffix == ".json":
        for file in sorted(path.glob("*.json")) if path.is_dir() else [path]:
            record = json.loads(file.read_text("utf-8"))
            lists = [name for name, value in record.items() if isinstance(value, list)] if isinstance(record, dict) else []
            for names in [lists, *([name] for name in lists if len(lists) > 1)]:
                copy = folder / "-".join([file.stem, *names]) / path.name
                shutil.copytree(path, copy) if path.is_dir() else copy.parent.mkdir(exist_ok=True)
                inside = copy / file.name if path.is_dir() else copy
                inside.write_text(json.dumps(record | {name: [] for name in names}), "utf-8")
                yield f"no {', '.join(names)} in {file.name}", copy
    else:
        for name, change in LITTLE.items():
            (copy := folder / name / path.name).parent.mkdir()
            copy.write_text(change(path.read_text("utf-8")), "utf-8")
            yield name, copy


def pages_of_little(kind: str, foreign: Pages, folder: Path) -> Iterator[tuple[str, Callable[[], Path]]]:
    """How the pages of an entry are made of little, each with a function that makes it.

    By the verb's command, on inputs with little in them; of what no verb returns, itself emptied; of a file, copies of it.
    """
    if kind in OF_RESULTS and kind in commands():

        def of_verb(own: Path, change: Callable[[str], str]) -> Path:
            own.mkdir()
            returned(kind, own, "report=page.html", change=change)
            return own / "page.html"

        for name, change in LITTLE.items():
            yield name, partial(of_verb, folder / name, change)
    elif kind in OF_RESULTS:
        yield "emptied", partial(xswe.write_report, emptied(foreign.result(kind)), folder / "page.html")
    elif kind in write._PAGES:
        for name, copy in with_little(foreign.result(kind), folder):
            yield name, partial(xswe.write_report, copy, copy.with_name("page.html"), **foreign.given(kind))


@pytest.mark.parametrize("kind", ENTRIES)
def test_a_page_of_nothing_says_so(foreign, tmp_path, kind):
    """Or what would be on it is refused, in one of the library's own errors."""
    page = foreign[kind].read_text("utf-8")
    assert unsound(page) == []
    assert len(page.encode()) < 2 * 2**20  # also of long texts
    told = {}
    for name, make in pages_of_little(kind, foreign, tmp_path):
        try:
            told[name] = unsound(make().read_text("utf-8"))
        except XsweError as error:
            told[name] = [] if str(error) else ["an error without a word"]
    assert [f"{name}: {what}" for name, wrong in told.items() for what in wrong] == []


@cache
def apart() -> tuple[set[str], set[str]]:
    """Words that only the German texts have, and such that only the English ones and the room itself have."""
    sides, word = sample_sentences(), re.compile(r"[^\W\d_]{3,}")
    prose = [file.read_text("utf-8") for file in ROOM.rglob("*.*") if file.suffix in (".py", ".html", ".js")]
    german, english = ({*word.findall(" ".join(texts))} for texts in (sides["de"], sides["en"] + prose))
    return german - english, english - german


def misplaced(language: str, text: str) -> bool:
    """Whether a text stands in an element of another language: by its script, or by words of German or English alone."""
    if has_kana(text) or has_cjk(text):
        return language != "ja"
    found = {*re.findall(r"[^\W\d_]{3,}", text)}
    german, english = (bool(found & own) for own in apart())
    return (german and language != "de") or (english and not german and language != "en")


@pytest.mark.parametrize("kind", ENTRIES)
def test_texts_stand_in_elements_of_their_language(foreign, kind):
    (body,) = Tree(foreign[kind].read_text("utf-8")).root.all("body")
    texts = [(language, text) for language, text in body.texts() if text.strip()]
    assert sorted({(language, text[:100]) for language, text in texts if misplaced(language, text)}) == []


LENGTHEN = """(letter) => {
    document.querySelectorAll("details").forEach((fold) => { fold.open = true; });
    const times = {}, walker = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
        let place = "";
        for (let one = walker.currentNode.parentElement; one.id !== "main"; one = one.parentElement)
            place += `${one.localName} ${one.getAttribute("class")} ${one.id},`;
        times[place] = (times[place] || 0) + 1;
        if (walker.currentNode.data.trim() && times[place] < 3) walker.currentNode.data = letter.repeat(2000);
    }
}"""
# The elements that are wider than the window, and the texts that go beyond their drawing, to say what is wrong.
WIDE = """() => [...document.body.querySelectorAll("*")].filter((one) => one.getBoundingClientRect().right > innerWidth + 1
    && !one.closest(".scroll, nav, .unseen, .skip, option")).slice(0, 6).map((one) => one.outerHTML.slice(0, 120))"""


def test_no_template_shows_all_of_a_long_text():
    made = environment().from_string("{{ text }}<p title='{{ text }}'>{% for one in parts %}{{ one }}{% endfor %}")
    page = made.render(text="<" * 10**6, parts=["y" * 10**6, "z" * 1000, Markup("<b>" + "w" * 2000)])
    counts = {"&lt;": 2000, "y": 1000, "z": 1000, "w": 2000, "…": 3}
    assert {mark: page.count(mark) for mark in counts} == counts


@pytest.mark.parametrize(
    "kind", [kind if kind == "TermView" else pytest.param(kind, marks=pytest.mark.slow) for kind in ENTRIES]
)
def test_no_text_is_too_long_for_a_page(visit, foreign, kind):
    """Each text of the page becomes 2,000 letters without a blank between them, Latin ones or such that end no line."""
    opened = visit(foreign[kind], 380)
    assert opened.widest() <= 0
    for letter in "xー":
        opened.page.evaluate(LENGTHEN, letter)
        for width in (380, 1400):
            opened.page.set_viewport_size({"width": width, "height": 900})
            assert opened.widest() <= 0, (letter, width, opened.page.evaluate(WIDE))


def test_the_guide_has_a_section_for_each_page():
    """Its heading names the module or template, and asks what the page answers, as in "Pairs: which threshold?"."""
    guide = (ROOM.parents[1] / "docs" / "how-to" / "reports.md").read_text("utf-8")
    sections = re.findall(r"(?ms)^## ([^:\n]*): [^\n]*\?\n(.*?)(?=^## |\Z)", guide)
    told = " ".join(topic for topic, body in sections if len(body.split()) > 30).lower().split()
    templates = {file.stem for file in (ROOM / "templates").glob("*.html") if "{% extends" in file.read_text("utf-8")}
    pages = templates | {name.partition(":")[0] for name in OF_RESULTS.values()}
    assert not pages - {*told}, "docs/how-to/reports.md has no section for them"
