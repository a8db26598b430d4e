"""Draw the pictures of docs/explanation from measured results and from the models in the package.

    python tools/pictures.py [FOLDER]      # docs/pictures by default; the same bytes every time

``margin.svg`` is computed with the model ``mini`` on the sample corpus, the others show eval/results.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

import xswe
from xswe.corpus.cards import sample_sentences

ROOT = Path(__file__).resolve().parents[1]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from eval.report.figures import INK, svg_axes  # noqa: E402

RESULTS = ROOT / "eval" / "results"
PICTURES = ROOT / "docs" / "pictures"
COLOURS = ("#5c6bc0", "#e08a00", "#2e8b57", "#d0507f")  # to be seen on white and on black
STEPS = ("extraction", "pca-without-abtt", "pca-with-abtt", "refinement")


def draw_states(path: Path) -> None:
    """Extraction: a word's states in its sentences, and their mean, which is its vector."""
    (record,) = [one for one in measured("components.json") if one["teacher"] == "e5-small"]
    with svg_axes(path, 1, (6.4, 4.0)) as (axes,):
        for k, one in enumerate(record["words"]):
            x, y = np.array(one["places"]).T
            look = {"marker": "o^s"[k % 3], "color": COLOURS[k // 3]}
            axes.scatter(x, y, s=16, alpha=0.4, linewidths=0, **look)
            axes.scatter(x.mean(), y.mean(), s=90, edgecolors=INK, linewidths=0.7, **look)
            group = np.array([np.mean(other["places"], 0) for other in record["words"][k - k % 3 : k - k % 3 + 3]])
            away = group[k % 3] - group.mean(0)  # names stand around the three means
            how = {"textcoords": "offset points", "ha": "center", "va": "center", "fontsize": 11}
            axes.annotate(one["word"], group[k % 3], xytext=26 * away / np.hypot(*away), **how)
        axes.set(
            xticks=[],
            yticks=[],
            xlabel="small: the teacher's state of the word in one sentence; large: the mean, its vector",
        )


def measured(name: str) -> Any:
    """Return a result."""
    return json.loads((RESULTS / name).read_text(encoding="utf-8"))


def draw_components(path: Path) -> None:
    """Sentence PCA: which components of sentence vectors hold the language."""
    found = measured("components.json")
    with svg_axes(path, len(found), (6.4, 2.6)) as axes:
        for one, teacher in zip(axes, sorted(found, key=lambda t: t["teacher"]), strict=True):
            shares = [100 * component["languages"] for component in teacher["components"]]
            bars = one.bar(range(1, len(shares) + 1), shares, color=COLOURS[0])
            one.bar_label(bars, [f"{share:.0f}" for share in shares], fontsize=8)
            one.set(ylim=(0, 105), title=teacher["teacher"], xlabel="principal component of sentence vectors")
        axes[0].set_ylabel("% of its variance\nthat lies between languages")


def draw_steps(path: Path) -> None:
    """What each step is worth: the recipe of the paper with a real encoder, and the teacher in the package."""
    runs = {"e5-small, recipe=paper": "e5-small-100000-paper", "mini, default recipe": "mini-100000"}
    with svg_axes(path, 2, (6.4, 2.8)) as axes:
        for one, pair in zip(axes, ("en-ja", "en-zh"), strict=True):
            for (name, run), colour in zip(runs.items(), COLOURS, strict=False):
                if (RESULTS / "main" / f"{pair}-{run}.json").is_file():
                    values = step_values(measured(f"main/{pair}-{run}.json"))
                    one.plot(range(len(values)), values, marker="o", color=colour, label=name)
                    for at in enumerate(values):
                        one.annotate(f"{at[1]:.1f}", at, xytext=(0, 6), textcoords="offset points", ha="center", fontsize=8)
            one.set(
                ylim=(0, 108),
                title=f"WMT 2023, {pair}",
                xticks=range(4),
                xticklabels=["extract", "PCA", "+ ABTT", "refine"],
            )
        axes[0].set_ylabel("F1 x 100")
        axes[0].legend(fontsize=8, frameon=False, loc="center left", bbox_to_anchor=(0, 0.62))


def step_values(record: dict[str, Any]) -> list[float]:
    """Return F1 on WMT 2023 after each step, times 100."""
    wanted = [
        [row for row in record["rows"][step] if row["subset"].startswith("wmt23") and row["metric"] == "f1"]
        for step in STEPS
    ]
    return [100 * float(row["value"]) for (row,) in wanted]


def draw_margin(path: Path) -> None:
    """Margin and hubs: what cosine and ratio margin say of lines with and without a translation."""
    model = xswe.load("mini")
    english, _, _, japanese = sample_sentences().values()
    half = len(english) // 2
    cosines = model.similarity(english, japanese[:half])  # the second half of the English lines has no translation
    near = [
        np.sort(cosines, axis)[(slice(None), slice(-4, None)) if axis else slice(-4, None)].mean(axis) for axis in (1, 0)
    ]
    margins = cosines / ((near[0][:, None] + near[1]) / 2)
    with svg_axes(path, 2, (6.4, 2.8)) as axes:
        for one, scores, name in zip(axes, (cosines, margins), ("cosine", "ratio margin"), strict=True):
            best = scores.max(1)
            right = np.r_[scores[:half].argmax(1) == np.arange(half), np.zeros(len(best) - half, bool)]
            f1, cut = best_threshold(best, right, half)
            bins = np.linspace(best.min(), best.max(), 40)
            one.hist(best[half:], bins, color=COLOURS[1], alpha=0.7, label="without a translation")
            one.hist(best[:half], bins, color=COLOURS[0], alpha=0.7, label="with a translation")
            one.axvline(cut, color=INK, linewidth=0.8)
            one.set(xlabel=f"{name} of the best neighbour", title=f"best F1 {100 * f1:.1f}, at {cut:.2f}")
        axes[0].set_ylabel("English lines")
        axes[1].legend(fontsize=8, frameon=False)


def best_threshold(scores: np.ndarray, right: np.ndarray, wanted: int) -> tuple[float, float]:
    """Return the best F1 of any threshold, and that threshold."""
    order = np.argsort(-scores, kind="stable")
    hits = np.cumsum(right[order])
    f1 = 2 * hits / (np.arange(1, len(order) + 1) + wanted)
    return float(f1.max()), float(scores[order][f1.argmax()])


DRAWN = {"states": draw_states, "components": draw_components, "steps": draw_steps, "margin": draw_margin}


def main() -> None:
    """Draw all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=PICTURES)
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    for name, draw in DRAWN.items():
        draw(folder / f"{name}.svg")


if __name__ == "__main__":
    main()
