"""Tables of the levers of training, a line a variation, and of what models tell apart (levers.py, probe.py)."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from xswe.evaluation.metrics import corrected
from xswe.io.results import markdown

_SETS = ("tatoeba", "wmt23", "stsb-xling", "without bitext")
QUESTIONS = ("translation", "paraphrase", "strict")
SURE = 0.05  # a difference of a lower p is no chance
_PAIR = " | "  # what stands between a set and the pair or language that one figure is of


def lay_out(report: Mapping[str, Any]) -> tuple[list[str], list[list[Any]]]:
    """Return the header and the lines of means over pairs; models that were cut short stand under their own."""
    metrics = list(dict.fromkeys(metric for row in report["rows"].values() for metric in row["figures"]))
    metrics = [metric for metric in metrics if _PAIR not in metric]
    lines: list[list[Any]] = []
    for name, row in report["rows"].items():
        lines.append([name, *(row["figures"].get(metric) for metric in metrics), f"{row['refine_seconds']:.0f}"])
        for key in row:
            if key.startswith("figures at "):
                cut = key.removeprefix("figures at ")
                lines.append([f"  cut to {cut} dimensions", *(row[key].get(metric) for metric in metrics), ""])
    return ["variation", *metrics, "s"], lines


def means(report: Mapping[str, Any]) -> str:
    """Lay the means over pairs out in Markdown."""
    header, lines = lay_out(report)
    return markdown(header, [[_percent(cell) for cell in line] for line in lines])


def pairs(report: Mapping[str, Any], sets: tuple[str, ...]) -> str:
    """Lay the figures of each pair out in Markdown.

    Args:
        report: the file.
        sets: which sets' figures.
    """
    first = next(iter(report["rows"].values()))["figures"]
    columns = [name for wanted in sets for name in first if name.startswith(wanted + _PAIR)]
    lines = [[name, *(_percent(row["figures"].get(c)) for c in columns)] for name, row in report["rows"].items()]
    return markdown(["variation", *(c.replace(_PAIR, " ") for c in columns)], lines)


def probe(report: Mapping[str, Any], question: str) -> str:
    """Lay out which share of the minimal pairs each model tells apart (eval/experiments/probe.py).

    Args:
        report: the file.
        question: of which of the questions.
    """
    kinds = ("numbers", "names", "negation", "roles", "neighbours", "all")
    rows = [row for row in report["rows"] if row["question"] == question]
    lines = [[row["model"], row["language"], *(f"{100 * row[kind]:.0f}" for kind in kinds)] for row in rows]
    return markdown(["model", "language", *kinds], lines)


STATIC = {
    "wmt23": "WMT23",
    "wmt23 margin": "by margin",
    "sample": "without bitext",
    "stsb-xling": "STS-B across",
    **{f"stsb.{code}": f"STS-B {code}" for code in ("en", "de", "zh", "ja")},
    **{
        f"mining{which} {kind}": f"{name}, by {kind}"
        for which, name in (("", "mined F1"), (" unseen", "among unseen lines"))
        for kind in ("ratio", "cosine")
    },
    **{"tatoeba": "Tatoeba test", "tatoeba margin": "the same by margin"},
    **{
        f"{question} {kind}": f"{kind}{', strict' if question == 'strict' else ''}"
        for kind in ("negation", "roles")
        for question in ("translation", "strict")
    },
}


def static(report: Mapping[str, Any]) -> str:
    """Lay out what was done to one table: means over seeds, and their deviation (eval/experiments/static_levers.py)."""
    lines, there = [], {key for row in report["rows"].values() for run in row["seeds"].values() for key in run["figures"]}
    columns = {key: title for key, title in STATIC.items() if key in there}
    for name, row in report["rows"].items():
        runs = list(row["seeds"].values())
        cells: list[Any] = []
        for key in columns:
            values = [100 * run["figures"][key] for run in runs if key in run["figures"]]
            spread = f" ± {statistics.stdev(values):.2f}" if len(values) > 1 else ""
            cells.append(f"{statistics.mean(values):.1f}{spread}" if values else None)
        seconds = statistics.mean(run["seconds"] for run in runs)
        lines.append([name, *cells, len(runs), f"{seconds:.1f}"])
    return markdown(["variation", *columns.values(), "seeds", "processor seconds"], lines)


JOINT = {"wmt23.en-ja": "WMT23", "wmt23.en-ja margin": "by margin", "stsb-xling.en-ja": "STS-B across"}
JOINT |= {"stsb.en": "STS-B en", "stsb.ja": "STS-B ja"}


def joint(report: Mapping[str, Any]) -> str:
    """Lay out what teachers give alone and together: after the PCA, and means after the refinement (joint_teachers.py)."""
    lines: list[list[Any]] = []
    for name, row in report["rows"].items():
        lines.append([name, "PCA with ABTT", *(_percent(row["PCA with ABTT"][key]) for key in JOINT), None])
        runs = list(row["refinement"].values())
        values = [[100 * run[key] for run in runs] for key in JOINT]
        cells = [f"{statistics.mean(own):.1f} ± {statistics.stdev(own):.2f}" for own in values]
        lines.append([name, "refinement", *cells, len(runs)])
    return markdown(["teachers", "after", *JOINT.values(), "seeds"], lines)


EXACT = {"wmt23": "WMT23", "stsb-xling": "STS-B across", "stsb.en": "STS-B en", "stsb": "STS-B de, ja"}


def exact(report: Mapping[str, Any]) -> str:
    """Lay out figures before and after contexts were exact, a star where they differ (experiments/exact_contexts.py)."""
    keys, lines = ("teacher", "pair", "step", "kind"), {}
    rows = {tuple(row[key] for key in (*keys, "subset")): row for row in report["rows"]}
    for (*line, kind, subset), row in rows.items():
        if kind != "exact":
            column = EXACT[subset if subset in EXACT else subset.partition(".")[0]]
            means = " → ".join(f"{100 * one['mean']:.1f}" for one in (row, rows[*line, "exact", subset]))
            lines.setdefault((*line, kind), {})[column] = means + (" *" if row["p"] < SURE else "")
    body: list[list[Any]] = []
    for (teacher, pair, step, kind), cells in lines.items():
        counts = [one for one in report["contexts"] if (one["teacher"], one["pair"], one["kind"]) == (teacher, pair, kind)]
        shares = " / ".join(f"{100 * one['contexts_without'] / one['contexts']:.1f}" for one in counts)
        body.append([teacher, pair, step, kind, shares, *map(cells.get, EXACT.values())])
    return markdown(["teacher", "pair", "after", "found before by", "% without the word", *EXACT.values()], body)


DETAILS = ("contexts.length", "extract.isolated", "extract.shared", "pca.sample_from")
DETAILS += ("refine.duplicates", "refine.sample_from")


def details(*records: Mapping[str, Any]) -> str:
    """Lay out what another value of a setting gives than the recipe's, and whether chance could (paper_details.py).

    The test is that of two shares, each of so many held-out pairs, corrected for all that the table makes (Holm).
    """
    body: list[list[Any]] = []
    tests: list[float] = []
    for record in records:
        rows = [row for row in record["rows"] if row["step"] == "refinement"]
        recipe, other = dict.fromkeys(row["variant"] for row in rows)
        cells = []
        for metric in ("accuracy", "margin_accuracy"):
            one = {row["variant"]: row for row in rows if row["metric"] == metric}
            before, after = (one[name]["value"] for name in (recipe, other))
            spread = math.sqrt(sum(row["value"] * (1 - row["value"]) / row["n"] for row in one.values()))
            tests.append(math.erfc(abs(after - before) / spread / math.sqrt(2)))
            cells.append(f"{100 * before:.1f} → {100 * after:.1f}")
        body.append([record["setting"], recipe, other, *cells])
    sure = [p < SURE for p in corrected(tests)]
    for line, both in zip(body, zip(sure[::2], sure[1::2], strict=True), strict=True):
        line.append("yes" if all(both) else "no")
    return markdown(["setting", "recipe", "instead", "by cosine", "by margin", "decided"], body)


def _percent(cell: Any) -> Any:
    return f"{100 * cell:.1f}" if isinstance(cell, float) else cell


LEVERS: dict[str, tuple[str, Callable[..., str]]] = {
    "levers": ("levers.json", means),
    "family": ("family.json", means),
    "family.pairs": ("family.json", partial(pairs, sets=_SETS)),
    "family.large": ("family_large.json", means),
    "family.large.pairs": ("family_large.json", partial(pairs, sets=_SETS)),
    "family.larger": ("family_larger.json", means),
    "family.similar": ("family_similar.json", means),
    "details": (" ".join(f"details/{name}.json" for name in DETAILS), details),
    "exact": ("exact_contexts.json", exact),
    "static": ("static_levers.json", static),
    "static64": ("static_levers_64k.json", static),
    "joint": ("joint_teachers.json", joint),
    "static.pairs": ("static_pairs.json", static),
    "static.pairs.base": ("static_pairs_base.json", static),
    **{f"probe.{question}": ("probe.json", partial(probe, question=question)) for question in QUESTIONS},
    "family.similar.pairs": ("family_similar.json", partial(pairs, sets=_SETS)),
}
