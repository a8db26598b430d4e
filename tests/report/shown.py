"""What the sections of pages show of their results, worked out once more.

Of each section it is a sequence of texts and figures, in order; or the name of the test that looks at its drawing, or at an
example that was worked out by hand.
"""

from __future__ import annotations

import csv
import html
import json
import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from xswe.phrases.terms import Term
from xswe.report import page
from xswe.report.comparison import read_comparison

HERE, ROOM = Path(__file__).parent, Path(page.__file__).parent
TESTS = {name for file in HERE.glob("test_*.py") for name in re.findall(r"^def (test_\w+)", file.read_text("utf-8"), re.M)}
MARKUP = re.compile(r"(?s)\{\{.*?\}\}|\{%.*?%\}|\{#.*?#\}|<[^>]*>")


PAIRS: dict[str, Any] = {
    "": "test_the_overview_says_what_is_known",
    "scores": "test_the_histogram_holds_all_pairs_over_the_expected_mismatches",
    "marks": "test_marks_become_gold_pairs_that_mine_takes",
    "samples": "test_a_group_is_named_by_where_it_lies_and_its_texts_are_cut",
    "texts": "test_drawings_of_hubs_and_lengths",
}
COMPARISON: dict[str, Any] = {
    "cost": "test_what_no_other_beats_on_both_is_joined",
    "languages": "test_bars_are_in_per_cent_and_of_what_has_a_value",
}
_PLANE = "test_the_plane_of_two_components_tells_their_shares_and_how_far_languages_lie_apart"
TRAINING: dict[str, Any] = {
    "curves": "test_curves_are_drawn_from_two_looks_on",
    "space": _PLANE,
    "words": "test_words_are_shown_with_their_nearest_of_the_training_text",
    "worst": "test_the_worst_pairs_are_furthest_behind_the_best_other_sentence",
}
SPACE = {
    "": _PLANE,
    "clouds": _PLANE,
    "components": "test_what_language_and_length_explain_of_a_component",
    "neighbours": "test_neighbours_are_counted_in_both_directions",
    "norms": "test_norms_of_words_by_their_frequency",
}
SWEEP = dict.fromkeys(("", "table", "cost", "languages", "tests"), "test_what_the_page_of_a_sweep_says")
VIEW = dict.fromkeys(("", "found", "nothing"), "test_a_table_of_phrases_or_terms_is_read_row_by_row")


class Among(tuple):
    """Some of what a section shows; any other sequence has all its figures, and the texts that have figures in them."""


@cache
def prose() -> list[str]:
    """The sentences of the templates that have figures."""
    parts = (part for file in (ROOM / "templates").glob("*.html") for part in MARKUP.split(file.read_text("utf-8")))
    return sorted({" ".join(part.split()) for part in parts if re.search(r"\d", part)}, key=len, reverse=True)


def sections(text: str) -> dict[str, str]:
    """The texts of the sections, and what stands before them, without drawings."""
    main = re.sub(r"(?s)<svg.*?</svg>", "", text[text.index("</nav>") : text.index("</main>")])
    names, bodies = zip(*re.findall(r'(?s)<section id="([\w-]+)">(.*?)</section>', main), strict=True)
    found = {"": main.partition("<section")[0], **dict(zip(names, bodies, strict=True))}
    return {name: plain(body) for name, body in found.items() if name != "settings"}


def plain(body: str) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", body)).split())


def where(wanted: object) -> re.Pattern[str]:
    """Where a text stands, with marks between its letters that have become blanks; a number as a whole."""
    letters = "".join(str(wanted).split())
    first, last = (r"(?<![\d.,])" if letters[:1].isdigit() else ""), (r"(?!\d)" if letters[-1:].isdigit() else "")
    return re.compile(first + r"\s*".join(map(re.escape, letters)) + last)


def unlike(text: str, shown: Iterable[object] | str) -> list[str]:
    """What a section does not show; or, if this is all of it, its other figures."""
    if isinstance(shown, str):
        return [] if shown in TESTS else [f"there is no test {shown}"]
    rest, place = [], 0
    for wanted in shown:
        if not (at := where(wanted).search(text, place)):
            return [f"no {wanted} in {text[place : place + 300]}"]
        rest.append(text[place : at.start()])
        place = at.end()
    between = " ".join([*rest, text[place:]])
    for sentence in prose():
        between = between.replace(sentence, " ")
    return [] if isinstance(shown, Among) else re.findall(r"\d[\d.,]*", between)


def best(pairs: Iterable[tuple[float, str, str]]) -> Among:
    """The twenty pairs with the highest scores."""
    return Among(one for score, *texts in sorted(pairs, key=lambda pair: -pair[0])[:20] for one in (f"{score:.4f}", *texts))


def by_count(left_out: Mapping[str, int]) -> list[str]:
    return [f"{reason} {count}" for reason, count in sorted(left_out.items(), key=lambda one: -one[1])]


def of_mined(mined: Any) -> dict[str, Any]:
    report, cut = mined.report, mined.threshold
    sides = report.source, report.target
    return PAIRS | {
        "": Among((f"{sum(side.read for side in sides):,}", f"kept {len(mined)}", f"{cut.value:.4f} {cut.origin}")),
        "samples": best(row[:3] for row in mined.records()),
        "removed": Among(one for side in sides for one in by_count(side.dropped)),
        "hubs": Among([f"{100 * mined.evidence.reciprocity:.1f} %"]),
        "run": [report],
    }


def of_filtered(found: Any) -> dict[str, Any]:
    left_out = {reason: count for reason, count in found.counts.items() if reason != "kept"}
    return PAIRS | {
        "": Among((f"read {len(found)}", f"kept {found.kept.sum()}", f"{found.threshold.value:.4f}")),
        "removed": Among(by_count(left_out)),
        "run": [found],
    }


def of_file(path: Path) -> dict[str, Any]:
    lines = path.read_text("utf-8").splitlines()
    rows = [(float(score), *texts) for score, *texts in csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)]
    return PAIRS | {"": [f"before the cut {len(rows)}", f"kept {len(rows)}"], "samples": best(rows)}


def of_aligned(found: Any) -> dict[str, Any]:
    pairs = [row for row in range(len(found)) if found[row].source and found[row].target]
    alone = next(bead.source for bead in found if not bead.target)
    return {
        "scores": PAIRS["scores"],
        "": [f"{len(found.source) + len(found.target)} lines", f"the cut {len(pairs)}", f"kept {len(pairs)}"],
        "map": Among(["without a counterpart", alone]),
        "review": Among(f"{score:.2f}" for score in sorted(found.scores[pairs])),
        "run": [found.summary()],
    }


def of_search(found: Any) -> dict[str, Any]:
    """Of a search for phrases or terms."""
    shown, hits = [], list(zip(found.queries, found.found, strict=True))
    for hit in (hit for _, own in hits for hit in own):
        shown.append(f"{hit.score:.3f}")
        shown += [f"· {hit.times}× in {hit.passages} passage", *hit.variants] if isinstance(hit, Term) else []
        for place in hit.places:
            left, right = place.around(90)
            shown += [left, place.text, right, place.passage + 1, found.other.get(place.passage, "")[:400]]
    empty = [query for query, own in hits if not own]
    counts = (len(hits), len(hits) - len(empty), f"{len(empty)} without", sum(len(own) for own in found.found))
    return {"": [*counts, found.passages], "found": shown, "run": [found]} | ({"nothing": empty} if empty else {})


def of_comparison(found: Any) -> dict[str, Any]:
    keys = dict.fromkeys((row.task, row.subset) for model in found.models for row in model.rows)
    table, tests = list[object](), list[object]()
    for one in found.models:
        table += [one.name, one.dim, f"{one.size / 1e6:.1f}", f"{one.rate:,.0f}"]
        table += [f"{100 * row.value:.1f}" for key in keys for row in one.rows if (row.task, row.subset) == key]
    for test in found.tests:
        tests += [f"{test.task} {test.subset} {test.best} {test.other}", f"{100 * test.difference:+.1f}"]
        tests += [f"{100 * test.low:+.1f}", f"{100 * test.high:+.1f}", f"{test.p:.3f}", f"{test.corrected:.3f}"]
    return COMPARISON | {
        "": [len(found.models), len(keys), found.threads],
        "table": [*table, "0.05", f"for {len(found.tests)} tests"],
        "tests": tests,
    }


def of_run(folder: Path) -> dict[str, Any]:
    results = json.loads((folder / "results.json").read_text("utf-8"))
    stages = {name: next(folder.glob(f"stages/{name}-*/stage.json")) for name in ("corpus", "units", "bags", "refine")}
    measured = {row["metric"]: f"{100 * row['value']:.1f}" for row in results["rows"]}
    return TRAINING | {
        "": Among(("training pairs", results["report"]["corpus"]["en-ja"]["train"])),
        "steps": Among(measured[name] for name in ("accuracy", "margin_accuracy", "f1")),
        "pipeline": Among(f"{name} {json.loads(file.read_text('utf-8'))['identity']}" for name, file in stages.items()),
    }


# By the entry of a page, what its sections show; "" is what stands before the first.
SHOWN: dict[str, Callable[[Any], Mapping[str, Any]]] = {
    "MinedPairs": of_mined,
    "Filtered": of_filtered,
    "mined": of_file,
    "AlignedTexts": of_aligned,
    "FoundInFiles": of_search,
    "FoundInFiles of terms": of_search,
    "TermView": lambda _: VIEW,
    "hits": lambda _: VIEW,
    "Comparison": of_comparison,
    "compare": lambda path: of_comparison(read_comparison(path)),
    "Sweep": lambda _: SWEEP,
    "TrainResult": lambda result: of_run(result.folder),
    "run": of_run,
    "space": lambda _: SPACE,
}
