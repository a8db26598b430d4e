"""The pages in a real browser: search in four languages, export, errors, hostile input, no message of the console."""

from __future__ import annotations

import csv
import random
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from tests.report.conftest import axe
from tests.serving.conftest import HOSTILE


@pytest.fixture
def page(browser: Any, server: Any, request: pytest.FixtureRequest) -> Iterator[Any]:
    """A page whose console must stay silent, and which may ask nobody but the server."""
    context = browser.new_context(viewport={"width": getattr(request, "param", 1400), "height": 900}, accept_downloads=True)
    page, said, elsewhere = context.new_page(), [], []
    allowed = "favicon", "status of 4", "ERR_FAILED"  # what the browser itself says of an answer that a test provokes
    page.on("console", lambda message: None if any(a in message.text for a in allowed) else said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("dialog", lambda dialog: (said.append(f"dialog: {dialog.message}"), dialog.dismiss()))
    own = (server.address, "blob:", "data:")
    page.on("request", lambda asked: None if asked.url.startswith(own) else elsewhere.append(asked.url))
    page.goto(server.address)
    yield page
    context.close()
    assert not said
    assert not elsewhere


def until(page, expression):
    """Wait in Python: the policy of the pages lets nobody make code of a text in them."""
    deadline = time.monotonic() + 30
    while not page.evaluate(expression):
        assert time.monotonic() < deadline, expression
        time.sleep(0.02)


def search(page, text):
    page.fill("#query", text)
    page.press("#query", "Enter")
    until(page, "!document.querySelector('#results[aria-busy]') && document.querySelector('#summary').textContent")


def saved(page, selector):
    with page.expect_download() as download:
        page.click(selector)
    return Path(download.value.path())


@pytest.mark.parametrize(
    ("page", "query"),
    [
        (380, "snow"),
        pytest.param(1400, "電車", marks=pytest.mark.slow),
    ],
    indirect=["page"],
)
def test_search_in_four_languages(page, query):
    search(page, query)
    languages = page.locator(".language h2").all_inner_texts()
    assert set(languages) >= {"English", "German", "Japanese"}
    marks = page.locator(".lines mark").all_inner_texts()
    assert any(word in mark for mark in marks for word in ("snow", "Snow", "train"))
    assert any(word in mark for mark in marks for word in ("雪", "電車", "列車"))
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.slow
def test_links_can_be_shared(page, browser):
    search(page, "snow")
    page.locator("#languages input[value=en]").uncheck()
    until(page, "!location.search.includes('en') && !document.querySelector('#results[aria-busy]')")
    other = browser.new_page()
    other.goto(page.url)
    other.wait_for_selector(".language")
    assert other.locator(".language h2").all_inner_texts() == page.locator(".language h2").all_inner_texts()
    assert "English" not in other.locator(".language h2").all_inner_texts()
    assert other.input_value("#query") == "snow"
    other.close()
    page.go_back()
    until(page, "[...document.querySelectorAll('.language h2')].some((one) => one.textContent === 'English')")


@pytest.mark.slow
def test_a_direction_is_kept_in_the_address_and_in_what_is_exported(page):
    page.select_option("#from", "en")
    search(page, "snow")
    assert page.locator(".language h2").all_inner_texts() == ["German", "Chinese", "Japanese"]
    assert page.locator(".language").first.locator(".lines .code").first.inner_text() == "en"
    for terms in page.locator(".language").all():
        shares = [int(share.split()[0]) for share in terms.locator(".share").all_inner_texts()]
        assert 95 <= sum(shares) <= 105
    for terms in page.locator(".language").all():
        terms.locator(".variant > input").first.check()
    memory = ElementTree.parse(saved(page, "[data-export=tmx]")).getroot()
    units = [[segment.text for segment in unit.iter("seg")] for unit in memory.iter("tu")]
    assert [unit[0] for unit in units] == ["snow"] * 3
    assert all(len(unit) == 2 for unit in units)
    base = ElementTree.parse(saved(page, "[data-export=tbx]")).getroot()
    terms = [term.text for term in base.iter("term")]
    assert len(terms) == 4
    assert terms.count("snow") == 1
    page.reload()
    page.wait_for_selector(".language")
    assert page.input_value("#from") == "en"


@pytest.mark.slow
def test_a_string_is_found_with_what_its_translations_say(page):
    page.select_option("#match", "exact")
    page.select_option("#from", "en")
    search(page, "snow")
    assert page.locator(".language h2").all_inner_texts() == ["English"]
    assert page.locator(".variant").count() == 1
    said = page.locator(".said-as")
    assert said.locator("dt").all_inner_texts() == ["de", "zh", "ja"]
    assert "雪" in said.locator("dd").last.inner_text()
    assert re.search(r"Schnee \d+\s×\s\d+\s%", said.locator("dd").first.inner_text())
    page.locator(".variant > input").check()
    memory = ElementTree.parse(saved(page, "[data-export=tmx]")).getroot()
    assert [[one.text.lower() for one in unit.iter("seg")][:2] for unit in memory.iter("tu")] == [["snow", "schnee"]]
    page.select_option("#match", "fuzzy")
    until(page, "document.querySelectorAll('.variant').length > 1")
    assert "match=fuzzy" in page.url


@pytest.mark.slow
@pytest.mark.parametrize("page", [390, 1400], indirect=True)
def test_keywords_stand_in_context_in_the_order_of_their_neighbours(page):
    search(page, "snow")
    page.select_option("#lines", "kwic")
    english = page.locator(".language", has=page.locator("h2", has_text="English")).locator(".variant").first
    for side, place in (("left", 0), ("right", 1)):
        page.select_option("#sort", side)
        rows = english.locator(".kwic")
        assert rows.count() > 1
        parts = [row.locator("bdi").nth(place).inner_text().strip() for row in rows.all()]
        keys = [" ".join(reversed(part.split())) if side == "left" else part for part in parts]
        compare = "(keys) => keys.every((key, k) => !k || keys[k - 1].localeCompare(key, 'en') <= 0)"
        assert page.evaluate(compare, keys), keys
        assert all("snow" in mark.lower() for mark in english.locator(".kwic mark").all_inner_texts())
        boxes = [mark.bounding_box() for mark in english.locator(".kwic mark").all()]
        middles = [box["x"] + box["width"] / 2 for box in boxes]
        assert max(middles) - min(middles) <= 1
    assert "lines=kwic" in page.url
    assert "sort=right" in page.url
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_passages_that_say_the_same_are_shown_once(page):
    passage = {"text": "Snow falls.", "language": "en", "corpus": "a", "spans": [[0, 4]]}
    lines = [{"score": 1, "passage": {**passage, "line": line}, "translations": []} for line in (1, 2)]
    form = {"text": "snow", "language": "en", "score": 1, "count": 3, "more": False, "forms": [], "lines": lines}
    found = {"query": "snow", "seconds": 0, "variants": [form]}
    page.route("**/phrases", lambda route: route.fulfill(json=found))
    search(page, "snow")
    assert page.locator("#results .lines li").count() == 1
    assert page.locator("#results .folded").inner_text() == "2 ×"


@pytest.mark.slow
def test_keys_move_between_the_forms(page):
    search(page, "snow")
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("x")
    assert page.locator(".variant > input").nth(1).is_checked()
    page.keyboard.press("k")
    page.keyboard.press("x")
    assert page.locator(".variant > input").nth(0).is_checked()
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "query"


@pytest.mark.slow
def test_what_is_ticked_is_exported(page):
    search(page, "snow")
    page.locator(".lines input").first.check()
    for terms in page.locator(".language").all():
        terms.locator(".variant > input").first.check()
    assert int(page.inner_text("#ticks")) >= 4
    memory = ElementTree.parse(saved(page, "[data-export=tmx]")).getroot()
    first = [segment.text for segment in next(memory.iter("tu")).iter("seg")]
    assert len(first) >= 2
    base = ElementTree.parse(saved(page, "[data-export=tbx]")).getroot()
    assert any(term.text.lower() == "snow" for term in base.iter("term"))
    rows = list(csv.reader(saved(page, "[data-export=tsv]").open(encoding="utf-8"), delimiter="\t", quoting=csv.QUOTE_NONE))
    assert rows[0][-1] == "note"
    assert len(rows) - 1 == int(page.inner_text("#ticks"))
    page.click("#untick")
    assert page.locator("input:checked").count() == page.locator("fieldset input").count()
    page.wait_for_timeout(100)


@pytest.mark.slow
def test_more_passages_of_a_form(page):
    search(page, "snow")
    shown = "document.querySelector('.variant .lines').children.length"
    before = page.evaluate(shown)
    assert before
    page.locator(".variant").first.get_by_text("More passages").click()
    until(page, f"{shown} > {before}")


def test_a_hostile_corpus_is_text(page):
    search(page, "tapir")
    passage = page.locator(".lines .side", has_text="The tapir says").first
    assert HOSTILE in passage.text_content()
    assert page.locator(".lines script").count() == 0


def hostile(number):
    draw = random.Random(number)
    pool = [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        '"><svg onload=alert(1)>',
        "'; DROP TABLE",
        "${alert(1)}",
    ]
    pool += [
        "\u202e\u2066abc\u2069",
        "\u200f\u200e",
        "😀👩‍👩‍👧",
        "\U00020000雪",
        "e\u0301",
        "a" * 5000,
        "猫" * 3000,
        "%00",
        "../../etc/passwd",
    ]
    pool += ["{{7*7}}", "javascript:alert(1)", "&lt;b&gt;", "\\", "\t", "snow", "Zug"]
    text = "".join(draw.choice(pool) + draw.choice(["", " "]) for _ in range(draw.randrange(1, 5)))
    return text + "".join(chr(draw.choice([draw.randrange(32, 0xD800), draw.randrange(0xE000, 0x30000)])) for _ in range(5))


ANSWER = """async (text) => {
  const asked = { query: text, lines: 1, k: 2, passages: [text, text + " snow"] };
  const answer = await (await app.ask("/phrases", asked)).json();
  const texts = answer.variants.map(({ lines: [{ passage }] }) => app.el("p", {}, app.marked(passage.text, passage.spans)));
  const place = document.getElementById("sentences");
  place.replaceChildren(...texts);
  return place.querySelectorAll("script, img, svg").length;
}"""


@pytest.mark.parametrize("count", [5, pytest.param(50, marks=pytest.mark.slow)])
def test_hostile_inputs(page, count):
    """All go through the page's own functions, every other one at first through its box; nothing runs, nothing breaks."""
    page.evaluate("window.ran = 0; window.alert = () => { window.ran += 1; }; 0")
    for number in range(count):
        text = hostile(number)
        if number in (0, 2, 4, 6, 8):
            search(page, text)
        else:
            shown = page.evaluate(ANSWER, text)
            assert shown == 0
    assert page.evaluate("window.ran") == 0
    page.fill("#query", "x" * 200_000)
    page.press("#query", "Enter")
    page.wait_for_selector("#summary[data-failed]")
    assert "at most" in page.inner_text("#summary")
    search(page, "snow")
    assert page.locator(".lines li").count() > 0


@pytest.mark.slow
def test_compare_and_its_words(page):
    page.click("[data-view=compare]")
    page.fill("#left", "A cat sleeps on the roof.\nWe buy bread.")
    page.fill("#right", "屋根の上で猫が寝ている。\nWir kaufen Brot.\n<b>bread</b>")
    page.locator("#comparing button").click()
    page.wait_for_selector(".matrix")
    assert page.locator(".matrix td button").count() == 6
    page.locator(".matrix td button").nth(4).click()
    until(page, "document.querySelectorAll('.matrix [aria-pressed=true]').length === 1")
    page.wait_for_selector(".word >> text=Brot")
    page.reload()
    page.wait_for_selector(".matrix")
    assert "buy" in page.input_value("#left")


@pytest.mark.slow
def test_mining_moves_its_threshold(page, sample, tmp_path):
    page.click("[data-view=mine]")
    (tmp_path / "source.txt").write_text("\n".join(sample["en"][:150]), "utf-8")
    page.set_input_files("input[data-for=source]", str(tmp_path / "source.txt"))
    page.fill("#target", "\n".join(sample["de"][50:200]))
    page.click("#mining button[type=submit]")
    page.wait_for_selector("#pairs .pair")
    kept = int(page.inner_text("#kept"))
    assert kept > 60
    assert page.input_value("#target-language") == "de"
    page.evaluate("const t = document.getElementById('threshold'); t.value = t.max; t.dispatchEvent(new Event('input'))")
    assert int(page.inner_text("#kept")) < kept
    page.evaluate("const t = document.getElementById('threshold'); t.value = t.min; t.dispatchEvent(new Event('input'))")
    every = int(page.inner_text("#kept"))
    rows = saved(page, "[data-save=tsv]").read_text("utf-8").splitlines()
    assert rows[0] == "en\tde\tnote"
    assert len(rows) == every + 1
    page.wait_for_timeout(100)


@pytest.mark.slow
def test_errors_are_shown_where_they_belong(page, server):
    page.route("**/phrases", lambda route: route.abort())
    page.fill("#query", "snow")
    page.press("#query", "Enter")
    page.wait_for_selector("#summary[data-failed]")
    assert "does not answer" in page.inner_text("#summary")
    page.unroute("**/phrases")
    search(page, "snow")
    assert page.locator(".lines li").count() > 0


@pytest.mark.parametrize("page", [380, 1400], indirect=True)
def test_pages_are_accessible(page, server, sample):
    if not axe():
        pytest.skip("XSWE_AXE does not name the file axe.min.js")
    search(page, "snow")
    page.locator(".lines input").first.check()

    def check():
        page.evaluate(axe())
        found = page.evaluate("async () => (await axe.run(document, {resultTypes: ['violations']})).violations")
        assert not [(one["id"], [node["html"] for node in one["nodes"]][:2]) for one in found]
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")

    check()
    if page.viewport_size["width"] < 1000:
        return
    page.goto(f"{server.address}/?view=compare&left=A cat.%0AWe buy bread.&right=Eine Katze.")
    page.wait_for_selector(".matrix")
    check()
    page.goto(f"{server.address}/?view=mine")
    page.fill("#source", "\n".join(sample["en"][:20]))
    page.fill("#target", "\n".join(sample["de"][:20]))
    page.click("#mining button[type=submit]")
    page.wait_for_selector("#pairs .pair")
    check()
    page.goto(f"{server.address}/api")
    page.wait_for_selector("#operations section")
    check()
