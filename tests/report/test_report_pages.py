"""Pages in a browser: nothing is asked for, everything can be used, and what is taken along can be read."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from types import SimpleNamespace
from xml.etree import ElementTree

import numpy as np
import pytest

import xswe
from tests.report.conftest import ENTRIES, axe, swept
from tests.report.shown import ROOM, SHOWN, plain, sections, unlike
from xswe.errors import ConfigError, InputError
from xswe.mining.gold import GoldCheck, read_gold
from xswe.mining.learning import Noise
from xswe.mining.samples import Group, Shown
from xswe.mining.threshold import bounds
from xswe.report.figures import language_silhouette
from xswe.report.page import percent, write_page
from xswe.report.pairs import _drawn, _group, linked, pairs_page, view_of_file, view_of_filtered
from xswe.report.space import export_space, open_space
from xswe.report.training import _words

ASKING = ("src", "href", "action", "data", "poster", "srcset")
WITH_AXE = """async () => (await axe.run(document, {resultTypes: ["violations"]})).violations.map(
    v => v.id + ": " + v.nodes.slice(0, 3).map(n => n.html.slice(0, 160)).join(" | "))"""


class Parsed(HTMLParser):
    """What of a page could ask for something, and what its links name."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.asking, self.styled, self.linked, self.names = [], [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs) -> None:
        for name, value in attrs:
            if name in ("src", "href", "action", "data", "poster", "srcset") and not (value or "").startswith(
                ("#", "data:,")
            ):
                self.asking.append((tag, name, value))
            if name == "href" and value.startswith("#"):
                self.linked.append(value[1:])
            if name == "id":
                self.names.append(value)
            if name == "style" or name.startswith("on"):
                self.styled.append((tag, name))


def check_accessible(opened) -> None:
    """Let axe-core judge a page, where it is there."""
    if source := axe():
        opened.page.evaluate(source)
        assert opened.page.evaluate(WITH_AXE) == []


@pytest.mark.parametrize("kind", ENTRIES)
def test_a_page_asks_for_nothing_and_is_small(pages, kind):
    text = pages[kind].read_text(encoding="utf-8")
    parsed = Parsed(text)
    assert parsed.asking == []
    assert parsed.styled == []  # which its own policy would forbid
    assert len(text.encode()) < 2 * 2**20
    assert "default-src &#39;none&#39;" in text
    assert not re.search(r"https?://(?!www\.w3\.org)", text)


WITHOUT_SETTINGS = {"TrainResult", "run", "space"}  # a run folder has its settings, a space those of its model


@pytest.mark.parametrize("kind", ENTRIES)
def test_a_page_lists_its_sections_and_shows_the_settings(pages, kind):
    text = pages[kind].read_text(encoding="utf-8")
    parsed, sections = Parsed(text), re.findall(r"<section([^>]*)>", text)
    assert {*parsed.linked} <= {*parsed.names}
    assert len({*parsed.names}) == len(parsed.names)
    assert [f' id="{name}"' for name in parsed.linked if name != "main"] == sections
    assert ("settings" in pages.given(kind)) == ("<dt>planted</dt><dd>4711</dd>" in text)
    assert "settings" in pages.given(kind) or kind in WITHOUT_SETTINGS


@pytest.mark.parametrize("kind", ENTRIES)
def test_a_page_shows_what_it_is_given_or_refuses_it(pages, tmp_path, kind):
    whole, page = pages[kind].read_bytes(), tmp_path / "a.html"
    how, made = pages.given(kind), pages.result(kind)
    for name, value in (("model", pages.mini), ("languages", ("en", "de")), ("settings", {"a": {"b": 1}})):
        if name not in how:
            with pytest.raises(ConfigError, match=rf"{name} does nothing for the page of \w+: leave it out"):
                xswe.write_report(made, page, **how, **{name: value})
        else:
            with contextlib.suppress(ConfigError):  # some cannot be made without
                xswe.write_report(made, page, **{key: given for key, given in how.items() if key != name})
                assert page.read_bytes() != whole, name


@pytest.mark.parametrize("kind", sorted({*ENTRIES, *SHOWN}))
def test_each_section_shows_what_the_result_says_and_no_other_figure(pages, kind):
    found = sections(pages[kind].read_text("utf-8"))
    assert kind in SHOWN, f"SHOWN of tests/report/shown.py does not say what the page of {kind} shows"
    shown = SHOWN[kind](pages.result(kind))
    assert found.keys() == shown.keys(), "the sections of the page, and those of tests/report/shown.py"
    assert not {name: told for name, text in found.items() if (told := unlike(text, shown[name]))}


@pytest.mark.parametrize("kind", ENTRIES)
def test_the_lead_has_no_other_figure_than_the_page(pages, kind):
    text = pages[kind].read_text("utf-8")
    lead = re.search(r'(?s)<p class="lead">(.*?)</p>', text)  # may say that figures are multiplied by 100
    assert lead, "about= of the page"
    known = {*re.findall(r"[\d.,]*\d", plain(text[text.index("</nav>") : text.index("</main>")]))}
    assert not [figure for figure in re.findall(r"[\d.,]*\d", plain(lead[1])) if figure not in known | {"100"}]


HEADED = re.compile(r'<section id="([\w-]+)">\s*<h2>([^<{]*)')


def test_no_section_is_of_a_result_that_no_page_here_has(pages):
    """As its figures, its languages and its long texts would not be looked at."""
    written = {found for file in (ROOM / "templates").glob("*.html") for found in HEADED.findall(file.read_text("utf-8"))}
    seen = {found for kind in ENTRIES for found in HEADED.findall(pages[kind].read_text("utf-8"))}
    assert not written - seen, "give a result that has them, in MADE of tests/report/conftest.py"


@pytest.mark.parametrize(
    "kind", [kind if kind in ("MinedPairs", "TermView") else pytest.param(kind, marks=pytest.mark.slow) for kind in ENTRIES]
)
def test_a_page_fits_its_window_and_is_silent(visit, pages, kind):
    opened = visit(pages[kind], 380)
    assert opened.page.locator("h1").count() == 1
    assert opened.widest() <= 0
    opened.page.set_viewport_size({"width": 1400, "height": 900})
    assert opened.widest() <= 0


@pytest.mark.parametrize(
    ("kind", "scheme"),
    [("TermView", "light"), ("MinedPairs", "dark")]
    + [pytest.param(kind, "light", marks=pytest.mark.slow) for kind in ENTRIES if kind != "TermView"],
)
def test_a_page_is_accessible(visit, pages, kind, scheme):
    opened = visit(pages[kind], 1400, scheme)
    if not axe():
        pytest.skip("XSWE_AXE names no axe.min.js: npm install axe-core, and set it")
    opened.page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true; })")
    check_accessible(opened)


def test_a_training_page_shows_the_run(visit, run_folder, tmp_path):
    path = xswe.write_report(run_folder, tmp_path / "train.html")
    for width in (380, 1400):
        opened = visit(path, width)
        assert opened.widest() <= 0
    said = opened.page.text_content("main")
    results = json.loads((run_folder / "results.json").read_text(encoding="utf-8"))
    accuracy = next(row["value"] for row in results["rows"] if row["metric"] == "accuracy")
    stage = json.loads(next(run_folder.glob("stages/refine-*/stage.json")).read_text(encoding="utf-8"))
    for part in (
        f"{100 * accuracy:.1f}",
        stage["identity"],
        "units without a vector",
        "Worst pairs",
        "numpy",
        "refinement",
    ):
        assert part in said
    assert opened.page.locator("#curves polyline").count() >= 3
    assert "development accuracy" in opened.page.inner_text("#curves")
    check_accessible(opened)


def test_the_slider_moves_the_cut_and_its_figures(visit, pages, mined):
    page = visit(pages["MinedPairs"]).page
    figures = page.inner_text("main")
    for told, between in (("of the right pairs", mined.threshold.recall_within), ("estimated", mined.threshold.share[1:])):
        assert f"{told}, {bounds(*between)}" in figures
    assert page.inner_text("#at-pairs") == f"{len(mined):,}"
    assert page.inner_text("#at-value") == f"{mined.threshold.value:.4f}"
    before = page.get_attribute("#scores .cut", "x1")
    page.focus("#cut")
    for _ in range(40):
        page.keyboard.press("ArrowRight")
    value, count = float(page.inner_text("#at-value")), int(page.inner_text("#at-pairs").replace(",", ""))
    assert value > mined.threshold.value
    assert count == pytest.approx(int((mined.evidence.scores >= value).sum()), abs=1)
    assert page.get_attribute("#scores .cut", "x1") != before
    assert page.locator("li.pair.out").count() > 20
    precision, recall = mined.evidence.expected.between(value, None)
    within = mined.evidence.expected.within(value)
    for name, share, between in zip(("precision", "recall"), (precision, recall), within, strict=True):
        told = page.inner_text(f"#at-{name}")
        assert float(re.match(r"[\d.]+", told)[0]) == pytest.approx(100 * share, abs=1)
        assert told.endswith(f" % ({bounds(*between)})")  # outwards, as in the summary
    page.click("#reset")
    assert page.inner_text("#at-pairs") == f"{len(mined):,}"


def test_marks_become_gold_pairs_that_mine_takes(visit, pages, mini, sample, tmp_path):
    opened = visit(pages["MinedPairs"])
    page = opened.page
    page.locator("li.pair").first.focus()
    for key in "1121131":
        page.keyboard.press(key)
    texts = page.locator("li.pair").first.locator(".side").all_inner_texts()
    gold = opened.saved(lambda: page.click("#gold"), tmp_path)
    pairs = read_gold(gold, ("en", "ja"))
    assert len(pairs) == 5
    assert pairs[0] == tuple(texts)
    assert "5 marked" not in page.inner_text("summary >> nth=0")
    assert "7 marked" in page.inner_text("summary >> nth=0")
    marks = opened.saved(lambda: page.click("#all-marks"), tmp_path).read_text(encoding="utf-8").splitlines()
    assert [line.split("\t")[0] for line in marks[1:]] == ["right", "right", "wrong", "right", "right", "skip", "right"]
    again = xswe.mine(mini, sample["en"][:700], sample["ja"][200:900], gold=str(gold), threads=1)
    assert again.threshold.origin == "gold pairs"
    page.reload()
    assert "7 marked" in page.inner_text("summary >> nth=0")  # kept by the browser
    page.click("#clear")
    assert page.locator("[data-marked=right]").count() == 0


@pytest.mark.slow
def test_bands_marked_in_full_give_one_precision_with_an_interval(visit, pages, mined):
    page = visit(pages["MinedPairs"]).page
    bands = [g for g in mined.evidence.groups if g.name == "band" and g.low >= mined.threshold.value]
    wrong = bands[-1].rows[:5]
    for group in bands:
        for row in group.rows:
            mark = "wrong" if row in wrong else "right"
            page.evaluate(f"document.querySelector('li.pair[data-row=\"{row}\"] [data-mark={mark}]').click()")
    last = page.locator("#precision tbody tr").last.locator("th, td").all_inner_texts()
    share = 1 - bands[-1].size * (5 / len(bands[-1].rows)) / sum(group.size for group in bands)
    assert last[0] == "All kept pairs, bands weighted"
    assert float(last[4].rstrip(" %")) == pytest.approx(100 * share, abs=1)
    low, high = (float(bound.rstrip(" %")) for bound in last[5].split(" to "))
    assert low < 100 * share < high


def test_texts_are_shown_as_texts_and_in_their_language(visit, pages):
    page = visit(pages["Filtered"]).page
    assert page.locator("img").count() == 0
    assert "<img src=x onerror=alert(1)>" in page.inner_text("body") or page.locator("#removed").count()
    page = visit(pages["MinedPairs"]).page
    assert page.evaluate("document.querySelector('li.pair .side:nth-of-type(2)').matches(':lang(ja)')")


def test_what_is_told_of_each_kind_of_wrong_pairs(filtered):
    reason, count = next((name, count) for name, count in filtered.counts.items() if name != "kept")
    noise = Noise((("other names", 0.02, 0.6), (reason, 0.24, None)))
    text = pairs_page(view_of_filtered(replace(filtered, noise=noise)))
    rows = re.findall(r'<tr><th scope="row">(.*?)</th>(.*?)</tr>', text[text.index('id="noise"') :])
    told = [(kind, *re.findall(r'<td class="n">(.*?)</td>', cells)) for kind, cells in rows[:2]]
    assert told == [(reason, "24.0 %", str(count), "–"), ("other names", "2.0 %", "0", "60 %")]
    assert 'id="noise"' not in pairs_page(view_of_filtered(filtered))


def test_what_gold_pairs_say_stands_beside_the_estimates(filtered):
    text = pairs_page(view_of_filtered(replace(filtered, gold=GoldCheck(1234, 0.9712, 2000, 0.95))))
    for name, value, note in (
        ("precision on gold", "97.1 %", "1,234 kept pairs"),
        ("recall on gold", "95.0 %", "2,000 gold pairs"),
    ):
        assert re.search(rf"{name}.{{0,200}}{value}.{{0,200}}of {note}", text, re.DOTALL)
    assert "on gold" not in pairs_page(view_of_filtered(filtered))


def test_what_each_filter_left_out_is_told(visit, pages, filtered):
    said = visit(pages["Filtered"]).page.inner_text("#removed")
    for reason, count in filtered.counts.items():
        if reason != "kept":
            assert reason in said
            assert f"{count:,} pairs" in said


@pytest.mark.slow
def test_no_cell_of_a_table_that_a_page_saves_is_run(visit, pages, tmp_path):
    """Gold pairs are read by ``mine``, and stay as they are."""
    opened = visit(pages["FoundInFiles of terms"])
    opened.page.evaluate("document.querySelector('article.term').dataset.phrase = '=1+1'")
    opened.page.evaluate("document.querySelector('li.candidate').dataset.text = ' @SUM(A1)'")
    opened.page.click("#first")
    table = opened.saved(lambda: opened.page.click("#tsv"), tmp_path).read_text(encoding="utf-8").splitlines()
    assert table[1].split("\t")[:2] == ["'=1+1", "' @SUM(A1)"]
    assert not table[2].startswith("'")
    opened = visit(pages["MinedPairs"])
    opened.page.evaluate("document.querySelector('li.pair .side').textContent = \"=cmd|' /C calc'!A0\"")
    opened.page.locator("li.pair").first.focus()
    opened.page.keyboard.press("1")
    marks = opened.saved(lambda: opened.page.click("#all-marks"), tmp_path).read_text(encoding="utf-8").splitlines()
    assert marks[1].split("\t")[2] == "'=cmd|' /C calc'!A0"
    assert opened.saved(lambda: opened.page.click("#gold"), tmp_path).read_text(encoding="utf-8").startswith("=cmd|")


@pytest.mark.slow
def test_ticks_become_glossaries_that_other_tools_read(visit, pages, tmp_path):
    opened = visit(pages["FoundInFiles of terms"])
    page = opened.page
    page.click("#first")
    boxes = page.locator("article.term").count()
    assert page.inner_text("#ticked") == f"{boxes} ticked"
    page.locator("li.candidate input").nth(1).check()
    rows = opened.saved(lambda: page.click("#tsv"), tmp_path).read_text(encoding="utf-8").splitlines()
    assert rows[0].split("\t") == ["phrase", "candidate", "note", "sentence", "other_side"]
    assert len(rows) == boxes + 2
    terms = ElementTree.parse(opened.saved(lambda: page.click("#tbx"), tmp_path)).getroot()
    assert [entry.find("langSet/tig/term").text for entry in terms.iter("termEntry")] == list(
        dict.fromkeys(row.split("\t")[0] for row in rows[1:])
    )
    from xswe.bitext.source import find_pairs, read_pairs

    memory = opened.saved(lambda: page.click("#tmx"), tmp_path)
    (file,) = find_pairs([str(memory)], ("en", "ja"))
    assert list(read_pairs(file)) == [tuple(row.split("\t")[:2]) for row in rows[1:]]
    page.fill("#only", rows[-1].split("\t")[3])
    assert 1 <= page.locator("article.term:visible").count() <= boxes
    page.fill("#only", "in no term at all")
    assert page.locator("article.term:visible").count() == 0
    page.fill("#only", "")
    page.select_option("#order", "right")
    right = page.locator("article.term:visible ol.kwic").first.locator(".right").all_inner_texts()
    assert right == sorted(right, key=lambda text: [ord(c) for c in text]) or len(right) > 1


@pytest.mark.slow
def test_terms_are_read_by_translate_toolkit(visit, pages, tmp_path):
    tbx = pytest.importorskip("translate.storage.tbx")
    opened = visit(pages["FoundInFiles of terms"])
    opened.page.click("#first")
    path = opened.saved(lambda: opened.page.click("#tbx"), tmp_path)
    with path.open("rb") as stream:
        units = tbx.tbxfile.parsefile(stream).units
    assert len(units) == opened.page.locator("article.term").count()


def test_phrases_without_a_hit_are_named(visit, pages):
    assert "zzqx" in visit(pages["FoundInFiles of terms"]).page.inner_text("#nothing")


def test_a_file_of_hits_gives_the_same_candidates(pages, tmp_path):
    for kind in ("FoundInFiles of terms", "FoundInFiles"):
        table = pages[kind].with_name("hits.tsv")
        again = xswe.write_report(table, tmp_path / "again.html", kind="hits", languages=("en", "ja")).read_text("utf-8")
        found = re.compile(r'<li class="candidate" data-text="([^"]*)" data-score="([0-9.]*)')
        of_file, of_result = found.findall(again), found.findall(pages[kind].read_text("utf-8"))
        assert [text for text, _ in of_file] == [text for text, _ in of_result]
        assert [float(a) for _, a in of_file] == pytest.approx([float(a) for _, a in of_result], abs=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("width", [380, 1400])
def test_labels_of_dots_never_overprint(visit, pages, width):
    page = visit(pages["Comparison"], width).page
    boxes = page.evaluate("""() => [...document.querySelectorAll("svg.plot")].map(p => [...p.querySelectorAll("text.name")]
        .filter(t => t.getAttribute("visibility") !== "hidden").map(t => t.getBoundingClientRect().toJSON()))""")
    assert any(boxes)
    for plot in boxes:
        for k, a in enumerate(plot):
            for b in plot[:k]:
                apart = (
                    a["right"] <= b["left"] or b["right"] <= a["left"] or a["bottom"] <= b["top"] or b["bottom"] <= a["top"]
                )
                assert apart, (a, b)


def test_the_theme_is_the_readers(visit, pages):
    page = visit(pages["MinedPairs"], scheme="dark").page
    colour = "getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(colour)
    page.click("#theme")
    assert page.evaluate(colour) != dark  # light, by hand
    page.click("#theme")
    assert page.evaluate(colour) == dark


@pytest.mark.slow
def test_folds_open_to_be_printed(visit, pages):
    page = visit(pages["MinedPairs"]).page
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator("details:not([open])").count() == 0
    page.emulate_media(media="print")
    assert not page.is_visible("#gold")
    assert page.is_visible("li.pair >> nth=-1")


@pytest.mark.slow
def test_many_pairs_are_sampled_and_drawn_at_once(visit, tmp_path):
    pairs = 10_000  # eval/bench/report.py takes a million
    scores = np.random.default_rng(0).normal(1.2, 0.2, pairs)
    file = tmp_path / "pairs.tsv"
    with file.open("w", encoding="utf-8") as stream:
        stream.writelines(f"{score:.6f}\tsentence {k} of many\tSatz {k} von vielen\n" for k, score in enumerate(scores))
    path = xswe.write_report(file, tmp_path / "report.html", languages=("en", "de"))
    assert path.stat().st_size < 2 * 2**20
    opened = visit(path)
    assert opened.page.inner_text("#at-pairs") == f"{pairs:,}"
    assert f"20 of {pairs:,} pairs" in opened.page.inner_text("#samples")
    timing = "performance.getEntriesByType('navigation')[0]"
    busy = opened.page.evaluate(f"{timing}.loadEventEnd - {timing}.responseEnd")
    assert busy < 10_000  # milliseconds, on a machine that may be busy; where it is not, a fraction of a second


def test_results_without_evidence_have_a_page_of_the_pairs(mini, sample, tmp_path):
    mined = xswe.mine(mini, sample["en"][:60], sample["ja"][:60], threshold=None, threads=1)
    text = xswe.write_report(mined, tmp_path / "a.html", model=mini).read_text("utf-8")
    assert mined.source[0].split()[0] in text
    vectors = xswe.mine(None, mini.encode(sample["en"][:60]), mini.encode(sample["ja"][:60]), evidence=True, threads=1)
    assert "Hubs" in xswe.write_report(vectors, tmp_path / "b.html").read_text("utf-8")
    few = xswe.mine(mini, ["A cat sleeps."], ["猫が寝ている。"], evidence=True, threads=1)
    assert "pairs are too few" in xswe.write_report(few, tmp_path / "c.html").read_text("utf-8")
    none = xswe.mine(mini, [""], ["猫が寝ている。"], evidence=True, threads=1)
    assert xswe.write_report(none, tmp_path / "d.html").is_file()


@pytest.mark.slow
def test_a_sweep_shows_its_choices(visit, tmp_path):
    path = xswe.write_report(swept(None, tmp_path), tmp_path / "sweep.html")
    opened = visit(path, 380)
    assert opened.widest() <= 0
    said = opened.page.inner_text("main")
    for part in ("80.5", "dim=256", "Quality against size", "Quality against training", "paired bootstrap"):
        assert part in said
    check_accessible(opened)


def test_words_are_linked_with_each_others_nearest(visit, mini, mined, tmp_path):
    parts = linked(mini, [("A cat sleeps on the roof.", "屋根の上で猫が寝ている。"), ("", "x")])
    words = {number: text for text, number in parts[0][0] if number >= 0}
    others = {number: text for text, number in parts[0][1] if number >= 0}
    assert {("cat", "猫"), ("roof", "屋根")} <= {(words[number], others[number]) for number in words}
    assert "".join(text for text, _ in parts[0][0]) == "A cat sleeps on the roof."
    opened = visit(xswe.write_report(mined, tmp_path / "a.html", model=mini))
    word = opened.page.locator("li.pair [data-l]").first
    word.hover()
    assert opened.page.locator(".lit").count() == 2
    shown = opened.page.locator("li.pair").first.locator(".side").all_text_contents()
    assert (shown[0], shown[1]) == mined.evidence.groups[0].pairs[0][2:4]


@pytest.mark.slow
def test_a_space_is_shown_and_exported(visit, mini, sample, tmp_path):
    pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    three = ("en", "de", "ja")
    rows = zip(*(sample[code][:120] for code in three), strict=True)
    (tmp_path / "a.tsv").write_text("".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")
    space = open_space(mini, tmp_path / "a.tsv", three)
    assert space.texts == {code: sample[code][:120] for code in three}
    path = xswe.write_report(tmp_path / "a.tsv", tmp_path / "a.html", kind="space", model=mini, languages=three)
    assert path.stat().st_size < 2 * 2**20
    opened = visit(path, 380)
    assert opened.widest() <= 0
    assert opened.page.locator("#clouds circle").count() >= 2 * 360
    said = opened.page.inner_text("#neighbours")
    assert "reciprocity" in said
    assert all(pair in said for pair in ("en-de", "en-ja", "de-ja"))
    tagged = [row.split()[:2] for row in opened.page.locator("#norms table").inner_text().splitlines()]
    for code, tagger, noun in (("en", "HanTa", "NN"), ("de", "HanTa", "NN"), ("ja", "fugashi", "名詞")):
        assert ([code, noun] in tagged) == (importlib.util.find_spec(tagger) is not None)
    check_accessible(opened)
    folder = export_space(space, tmp_path / "map")
    vectors = np.loadtxt(folder / "vectors.tsv", delimiter="\t")
    np.testing.assert_allclose(vectors, np.concatenate([space.vectors[code] for code in three]), atol=1e-6)
    assert len((folder / "metadata.tsv").read_text("utf-8").splitlines()) == 361
    atlas = pq.read_table(folder / "atlas.parquet").to_pylist()
    assert atlas[0]["text"] == sample["en"][0]
    assert atlas[0]["neighbors"]["ids"][0] == 0
    with pytest.raises(ConfigError, match="exists already"):
        export_space(space, folder)
    (tmp_path / "b.tsv").write_text("a\tb\n", encoding="utf-8")
    with pytest.raises(InputError, match="too few"):
        open_space(mini, tmp_path / "b.tsv", ("en", "ja"))


def test_only_a_text_that_is_longer_than_is_shown_is_cut():
    whole, longer = "x" * 600, "x" * 601
    shown = tuple(Shown(row, 0.5, *texts) for row, texts in enumerate([(whole, whole), (longer, "y"), ("y", longer)]))
    found = _group(Group("top", 0.5, 0.5, 3, (0, 1, 2), shown), ("en", "de"), SimpleNamespace(value=0.4), {})
    assert [pair["cut"] for pair in found["pairs"]] == [False, True, True]
    cut = whole + "…"
    texts = [[side["text"] for side in pair["sides"]] for pair in found["pairs"]]
    assert texts == [[whole, whole], [cut, "y"], ["y", cut]]
    assert [side["languages"] for side in found["pairs"][0]["sides"]] == [("en",), ("de",)]
    assert found["open"]
    bands = [Group("band", low, 1.0, 5, (0,), shown[:1]) for low in (0.4, 0.3)]
    found = [_group(band, ("en", "de"), SimpleNamespace(value=0.4), {}) for band in bands]
    assert [band["name"].rpartition(", ")[2] for band in found] == ["kept", "below the cut"]
    assert not any(band["open"] for band in found)


def test_lengths_and_scripts_are_drawn_of_the_bands_where_there_are_some():
    top = Group("top", 0.0, 1.0, 1, (1,), (Shown(1, 0.8, "a", "b"),))
    band = Group("band", 0.0, 1.0, 1, (0,), (Shown(0, 0.2, "a", "b"),))
    for groups, drawn in (((top, band), [(False, 0)]), ((top,), [(True, 1)]), ((), [])):
        view = SimpleNamespace(evidence=SimpleNamespace(groups=groups), threshold=SimpleNamespace(value=0.8))
        assert [(kept, pair.row) for kept, pair in _drawn(view)] == drawn


def test_the_silhouette_tells_languages_apart():
    generator = np.random.default_rng(0)
    together = {code: unit(generator.normal(size=(40, 8))) for code in ("en", "ja")}
    apart = {"en": together["en"], "ja": unit(together["ja"] + 5 * np.eye(8)[0])}
    assert abs(language_silhouette(together)) < 0.05
    assert language_silhouette(apart) > 0.2
    sklearn = pytest.importorskip("sklearn.metrics")
    both, codes = np.concatenate(list(apart.values())), [0] * 40 + [1] * 40
    assert language_silhouette(apart) == pytest.approx(sklearn.silhouette_score(both, codes, metric="cosine"), abs=1e-4)
    assert language_silhouette({"en": together["en"]}) is None


def unit(rows: np.ndarray) -> np.ndarray:
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def test_the_same_result_gives_the_same_bytes(mined, tmp_path):
    first = xswe.write_report(mined, tmp_path / "a.html").read_bytes()
    assert xswe.write_report(mined, tmp_path / "b.html").read_bytes() == first


def test_what_is_no_report_is_refused(mined, tmp_path):
    with pytest.raises(ConfigError, match=r"call it report\.html"):
        xswe.write_report(mined, tmp_path / "a.pdf")
    with pytest.raises(ConfigError, match="no report is made of int"):
        xswe.write_report(3, tmp_path / "a.html")
    with pytest.raises(InputError, match=r"no results\.json"):
        xswe.write_report(tmp_path, tmp_path / "a.html")
    (tmp_path / "a.tsv").write_text("no score\tx\ty\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"a\.tsv:1: no score"):
        xswe.write_report(tmp_path / "a.tsv", tmp_path / "a.html")
    (tmp_path / "a.csv").write_text("en,de\nx,y\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"a\.csv:1: its columns are en, de; name them score, .* mine mode=score"):
        xswe.write_report(tmp_path / "a.csv", tmp_path / "a.html")
    (tmp_path / "a.json").write_text("{}", encoding="utf-8")
    with pytest.raises(InputError, match="no comparison in it"):
        xswe.write_report(tmp_path / "a.json", tmp_path / "a.html")
    assert not (tmp_path / "a.html").exists()


@pytest.mark.parametrize("name", [f"a.{end}" for end in ("tsv", "csv", "jsonl", "tmx", "xliff", "po", "xlsx", "parquet")])
def test_a_page_of_scored_pairs_reads_what_mining_and_scoring_write(mini, tmp_path, name):
    pairs = [("A cat sleeps.", "Eine Katze schläft."), ("The train is late.", "Der Zug hat Verspätung.")]
    mined = xswe.mine(mini, *map(list, zip(*pairs, strict=True)), threshold=None, languages=("en", "de"))
    mined.write(tmp_path / name)
    bare = tmp_path / "bare.tsv"
    bare.write_text("".join(f"{a}\t{b}\n" for a, b in pairs), encoding="utf-8")
    if name.endswith("csv"):
        bare = tmp_path / "bare.csv"
        bare.write_text("".join(f"{a};{b}\n" for a, b in [("en", "de"), *pairs]), encoding="utf-8")
    xswe.score_file(mini, bare, tmp_path / f"scored{bare.suffix}")
    for file in (name, f"scored{bare.suffix}"):
        view = view_of_file(tmp_path / file)
        assert sorted({(one.source, one.target) for group in view.evidence.groups for one in group.pairs}) == pairs, file
        assert all(0.5 < score < 5 for score in view.evidence.scores)


def test_a_page_of_scored_pairs_holds_blank_ones_and_broken_characters(mini, tmp_path):
    records = [{"en": "A \ud800 cat.", "de": "Eine \ud800 Katze."}] * 3 + [{"en": "", "de": "x"}]
    scored = [{**record, "score": score} for record, score in zip(records, (0.7, 0.8, 0.9, None), strict=True)]
    (tmp_path / "scored.jsonl").write_text("".join(json.dumps(record) + "\n" for record in scored), "ascii")
    view = view_of_file(tmp_path / "scored.jsonl", ("en", "de"))
    assert np.isnan(view.evidence.scores).sum() == 1
    write_page(tmp_path / "a.html", pairs_page(view, mini))
    assert "A ? cat." in (tmp_path / "a.html").read_text("utf-8")


def test_contexts_are_joined_as_they_stand(visit, pages):
    """Nothing stands between a marked form and the rest of its word, and a blank between words is there."""
    widths = visit(pages["FoundInFiles of terms"]).page.evaluate(
        """[...document.querySelectorAll(".kwic li")].map((line) => {
            const [left, mark] = [".left bdi", "mark"].map((part) => line.querySelector(part).getBoundingClientRect());
            const right = document.createRange();
            right.selectNodeContents(line.querySelector(".right"));
            return [mark.left - left.right, right.toString() ? right.getBoundingClientRect().left - mark.right : 0];
        })"""
    )
    assert widths
    assert all(abs(width) < 1 for line in widths for width in line)


def test_nearly_all_is_not_told_as_all():
    assert [percent(share, 0) for share in (0.98, 0.999, 0.001, None)] == ["98 %", "99.9 %", "0.1 %", "–"]


def test_words_of_a_training_are_those_of_its_text(mini):
    """A vocabulary that was learnt elsewhere has words that no text of the training has."""
    counts = np.zeros_like(mini.counts)
    counts[:, ::3] = mini.counts[:, ::3]
    rows = {code: mini.words(code) for code in mini.languages}
    for code, word, near in _words(replace(mini, counts=counts)):
        assert rows[code][word] % 3 == 0
        assert all(rows[other][found] % 3 == 0 for other, words in near for found, _ in words)
