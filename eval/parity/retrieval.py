"""Tatoeba's F1 and STS's correlations: mteb's, run on small sets in its layout, beside ours on the same vectors."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import xswe
from eval.parity.figures import Figures, Inputs, figure
from xswe.corpus.cards import sample_sentences
from xswe.evaluation.encoders import StaticEncoder
from xswe.evaluation.metrics import CORRELATIONS, search, weighted_f1
from xswe.evaluation.mteb_bridge import run_task
from xswe.io.products import row_products

NEEDS = ("mteb", "datasets")
CODES = {"en-de": "deu", "en-zh": "cmn", "en-ja": "jpn"}
_CARD = "---\nconfigs:\n- config_name: default\n  data_files:\n  - split: test\n    path: test/*.jsonl\n---\n"


def write_set(root: Path, name: str, subset: str, rows: Iterable[dict[str, Any]]) -> None:
    """Write a data set as the hub has it: a card, and a file of JSON lines a subset."""
    folder = root / name
    (folder / "test").mkdir(parents=True, exist_ok=True)
    (folder / "README.md").write_text(_CARD, encoding="utf-8")
    lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    (folder / "test" / f"{subset}.jsonl").write_text(lines, encoding="utf-8")


def write_tatoeba(root: Path, sides: Mapping[str, tuple[Sequence[str], Sequence[str]]]) -> None:
    """Write Tatoeba's pairs with English, by the other language's code there."""
    for code, (other, english) in sides.items():
        rows = zip(other, english, strict=True)
        lines = ({"sentence1": a, "sentence2": b, "lang": f"{code}-eng"} for a, b in rows)
        write_set(root, "mteb/tatoeba-bitext-mining", f"{code}-eng", lines)


def measure(inputs: Inputs) -> Figures:
    """Compare the model of the package on pairs of the sample corpus, and on scores drawn around its cosines."""
    model, sample = xswe.load("mini"), sample_sentences()
    en, n = sample["en"], 600 if inputs.small else None  # of fewer all translations are found
    others = {subset: sample[subset.removeprefix("en-")] for subset in CODES}
    sides = {CODES[subset]: (other[:n], en[:n]) for subset, other in others.items()}
    first, second = en[:n], en[1:n] + en[:1]
    generator = np.random.default_rng(0)
    cosines = row_products(model.encode(first), model.encode(second)).astype(np.float64)
    scores = cosines + generator.normal(0, cosines.std(), len(cosines))
    with tempfile.TemporaryDirectory() as folder:
        root, encoder = Path(folder), StaticEncoder(model, "mini")
        write_tatoeba(root, sides)
        pairs = zip(first, second, scores.tolist(), strict=True)
        write_set(root, "mteb/sts12-sts", "en", ({"sentence1": a, "sentence2": b, "score": s} for a, b, s in pairs))
        rows = [row for task in ("tatoeba", "sts12") for row in run_task(encoder, task, root, root / "results")]
    found = {(row.task, row.subset, row.metric): row.value for row in rows}
    for subset, code in CODES.items():
        f1 = weighted_f1(search(*map(model.encode, sides[code])).nearest)
        yield figure("Tatoeba", "mteb", f"F1, {subset}", f1, found["tatoeba", subset, "f1"], 1e-6)
    for metric, correlate in CORRELATIONS.items():
        theirs = found["sts12", "en", f"cosine_{metric}"]
        yield figure("STS", "mteb", f"{metric}'s correlation", correlate(cosines, scores), theirs, 1e-5)
