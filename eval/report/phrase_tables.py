"""Tables of phrases, terms, alignment and word links, for tables.py: one function a table, JSON in, Markdown out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from xswe.io.results import markdown

# How often the encoder reads a passage: in published.yaml's words, and in those of the table.
METHODS = {
    "none": "full context",
    "one, whole context": "full context",
    "one a phrase": "each n-gram",
    "one": "single pass",
}


def published_phrases() -> Iterator[tuple[str, str, float, float]]:
    """Yield (model, method, Pearson, Spearman) of the published figures, as fractions."""
    text = (Path(__file__).parent / "published.yaml").read_text(encoding="utf-8")
    for entry in yaml.safe_load(text)["phrase_mining"]:
        yield entry["model"], METHODS[entry["passes"]], entry["pearson"] / 100, entry["spearman"] / 100


def _lines(record: Mapping[str, Any]) -> dict[tuple[str, str], dict[tuple[str, str], Mapping[str, Any]]]:
    """Group a file's rows: (model, method) to (subset, metric) to row."""
    out: dict[tuple[str, str], dict[tuple[str, str], Mapping[str, Any]]] = {}
    for row in record["rows"]:
        out.setdefault((row["model"], row["method"]), {})[row["subset"], row["metric"]] = row
    return out


def english(record: Mapping[str, Any]) -> str:
    """English beside the published figures, in the shape of SLICE's Table 1 (eval/experiments/phrases.py)."""
    rows: list[list[Any]] = []
    for (model, method), line in _lines(record).items():
        found = [line.get(("en", metric)) for metric in ("pearson", "spearman", "iou", "found")]
        if found[0] is not None:
            cells = [None if row is None else f"{100 * row['value']:.1f}" for row in found]
            rows.append([model, method, "measured here", *cells, f"{found[0]['n']:,}"])
    for model, method, pearson, spearman in published_phrases():
        origin = "published, on STS-B-Context"
        rows.append([model, method, origin, f"{100 * pearson:.1f}", f"{100 * spearman:.1f}", None, None, None])
    titles = ["Pearson", "Spearman", "overlap (IoU)", "% found", "phrases"]
    return markdown(["model", "method", "figures", *titles], rows)


def languages(record: Mapping[str, Any]) -> str:
    """Spearman, and % of the phrases found, in each language and across languages."""
    subsets = list(dict.fromkeys(row["subset"] for row in record["rows"]))
    rows: list[list[Any]] = []
    for (model, method), line in _lines(record).items():
        if method != "each n-gram":  # measured on fewer phrases
            cells = []
            for subset in subsets:
                rank, found = line.get((subset, "spearman")), line.get((subset, "found"))
                cells.append(None if rank is None else f"{100 * rank['value']:.1f}")
                if found is not None:
                    cells[-1] = f"{cells[-1]} / {100 * found['value']:.0f}"
            rows.append([model, method, *cells])
    return markdown(["model", "method", *subsets], rows)


def speed(record: Mapping[str, Any]) -> str:
    """Passages and spans a second beside an encoder's single pass (eval/bench/phrases.py)."""
    rows = []
    for row in record["side by side"]:
        rate = f"{row['passages_per_second']:,.1f}", f"{row['spans_per_second']:,.0f}"
        cells = [f"{row['queries']:,}", row["what"], f"{row['passages']:,}", *rate, f"{100 * row['scored']:.1f}"]
        rows.append([*cells, f"{row['times']:,.0f}" if "times" in row else None])
    titles = ["passages", "passages/s", "query-span pairs/s", "% of them scored", "times the encoder's passages/s"]
    return markdown(["queries", "what", *titles], rows)


def terms(record: list[Mapping[str, Any]]) -> str:
    """Where the right translation of a term stands (eval/experiments/terms.py)."""
    facts, shares = ("language", "order", "terms", "n", "further"), ("first", "five", "silent")
    rows = [[*(str(row.get(name, "")) for name in facts), *(_share(row.get(name)) for name in shares)] for row in record]
    titles = ["right one first", "among five", "nothing shown"]
    return markdown(["language", "ranked by", "terms", "how many", "with further answers", *titles], rows)


def terms_in_short(mini: list[Mapping[str, Any]], base: list[Mapping[str, Any]]) -> str:
    """Where the right translation of a term stands, by what is known of it, of mini and of models/base."""
    rows: list[list[Any]] = []
    for model, record in (("mini", mini), ("base", base)):
        for order, known in (("cosine", "cosine"), ("evidence", "passages"), ("bitext", "passages, bitext")):
            found = [row for row in record if row["order"] == order and row["terms"] == "all"]
            for figure, place in (("first", "first"), ("five", "among five")):
                by_language = {row["language"]: _share(row[figure]) for row in found}
                if by_language:
                    rows.append([model, known, place, *(by_language.get(code) for code in ("de", "ja", "zh"))])
    silent = {
        row["language"]: _share(row["silent"]) for row in mini if row["terms"] == "absent" and row["order"] == "evidence"
    }
    rows.append(
        ["mini", "passages", "not in the texts, and nothing listed", *(silent[code] for code in ("de", "ja", "zh"))]
    )
    return markdown(["model", "known", "the right one is", "de", "ja", "zh"], rows)


def _share(value: float | None) -> str | None:
    return None if value is None else f"{100 * value:.1f}"


_KINDS = ("edited", "half missing", "moved", "novels")
_BEST = 10  # rows of settings that are shown
_WHICH = {"former": "former defaults", "best": "best", "chosen": "chosen"}
_EACH = ("aer", "precision", "recall", "function", "other")


def sentences(record: Mapping[str, Any]) -> str:
    """F1 of beads, strict and lax, by what was done to the documents (eval/experiments/align_quality.py)."""
    kinds = [kind for kind in _KINDS if kind in record["f1"]["xswe"]]
    rows = []
    for method, found in record["f1"].items():
        for measure in ("strict", "lax"):
            figures = (f"{100 * found[name][measure]:.1f}" for name in (*kinds, "mean"))
            rows.append([method, measure, *figures])
    return markdown(["method", "F1", *kinds, "mean of bitexts"], rows)


def growth(record: Mapping[str, Any]) -> str:
    """What it costs to align ever longer texts (eval/experiments/align_quality.py)."""
    rows = []
    for row in record["growth"]:
        other = [row.get("vecalign encode"), row.get("vecalign align"), row.get("ratio")]
        rows.append(
            [
                f"{row['lines']:,}",
                f"{row['seconds']:.1f}",
                f"{row['MiB']:,.0f}",
                f"{100 * row['share of lines right']:.1f}",
                *(None if value is None else f"{value:.1f}" for value in other),
            ]
        )
    titles = ["lines a side", "s", "MiB beside the texts", "% of lines right"]
    return markdown([*titles, "s, vecalign: encode", "align", "times"], rows)


def settings(record: Mapping[str, Any]) -> str:
    """What settings do on translations aligned by hand (eval/experiments/align_settings.py)."""
    names, rows = list(record["former"]), []
    for place, row in enumerate(record["rows"]):
        own = {name: row[name] for name in names}
        if place < _BEST or own in (record["former"], record["chosen"]):
            figures = (f"{100 * row[measure][k]:.1f}" for k in (0, 1) for measure in ("strict", "lax"))
            low, high = (f"{100 * value:+.1f}" for value in row["interval"])
            adds = f"{100 * row['adds']:+.1f} ({low} to {high})" if own != record["former"] else ""
            short = f"{100 * row['short']:.2f} ± {100 * row['error']:.2f}" if own != record["best"] else ""
            which = [name for key, name in _WHICH.items() if own == record[key]]
            rows.append([*map(str, own.values()), *figures, adds, short, ", ".join(which)])
    titles = [f"{name}, {measure}" for name in record["sets"] for measure in ("strict", "lax")]
    return markdown([*names, *titles, "strict, beside the former defaults", "below the best", ""], rows)


def reported(record: Mapping[str, Any]) -> str:
    """The reported sets with the former defaults, and with what the translations aligned by hand choose."""
    rows = []
    for which, name in _WHICH.items():
        for k, measure in enumerate(("strict", "lax")):
            figures = (f"{100 * found[which][k]:.1f}" for found in record["reported"].values())
            rows.append([name, measure, *figures])
    return markdown(["settings", "F1", *record["reported"]], rows)


def weights(record: Mapping[str, Any]) -> str:
    """Strict F1 by what beads of several lines count and cost, mean of the sets (eval/experiments/align_weights.py)."""
    grid = {(row["weight"], row["merge"]): sum(row[name][0] for name in record["sets"]) for row in record["rows"]}
    counts, costs = (sorted({key[place] for key in grid}) for place in (0, 1))
    rows = [[str(one), *(f"{100 * grid[one, cost] / len(record['sets']):.1f}" for cost in costs)] for one in counts]
    return markdown(["a further line counts", *(f"merge={cost}" for cost in costs)], rows)


def weights_reported(record: Mapping[str, Any]) -> str:
    """The reported sets with the former weight, and with that which translations aligned by hand choose."""
    rows = []
    for which in ("former", "best"):
        for k, measure in enumerate(("strict", "lax")):
            figures = (f"{100 * found[which][k]:.1f}" for found in record["reported"].values())
            rows.append(["{} more, merge={}".format(*record[which]), measure, *figures])
    return markdown(["a further line counts", "F1", *record["reported"]], rows)


def running(record: Mapping[str, Any]) -> str:
    """What is found of running text (eval/experiments/align_hard.py)."""
    names = ("precision", "recall", "f1", "strict")
    rows = [[row["documents"], *(f"{100 * row[name]:.1f}" for name in names)] for row in record["running"]]
    return markdown(["bitext", "precision", "recall", "F1", "F1, one bead"], rows)


def links(record: list[Mapping[str, Any]]) -> str:
    """Alignment error rate of word links (eval/experiments/link_quality.py)."""
    rows = []
    for row in sorted(record, key=lambda row: (row["pair"], -row["sentences"])):
        figures = (f"{100 * row[name]:.1f}" for name in _EACH)
        rows.append([row["pair"], f"{row['sentences']:,}", row["method"], *figures])
    names = ["error rate", "precision", "recall", "of frequent words", "of others"]
    return markdown(["pair", "sentences", "method", *names], rows)


PHRASES: dict[str, tuple[str, Callable[[Any], str]]] = {
    "align": ("align.json", sentences),
    "align.growth": ("align.json", growth),
    "align.running": ("align_hard.json", running),
    "align.settings": ("align_settings.json", settings),
    "align.settings.reported": ("align_settings.json", reported),
    "align.weights": ("align_weights.json", weights),
    "align.weights.reported": ("align_weights.json", weights_reported),
    "links": ("links.json", links),
    "phrases": ("phrases.json", english),
    "phrases.languages": ("phrases.json", languages),
    "terms": ("terms.json", terms),
    "terms.in_short": ("terms.json terms_base.json", terms_in_short),
    "speed.phrases": ("bench_phrases.json", speed),
}
