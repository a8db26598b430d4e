"""What a model tells apart: 300 minimal pairs in each of four languages, whose words alone say little.

    python -m eval.experiments.probe [models=mini,wordllama,teacher:minilm,teacher:E5-SMALL]
        [output=eval/results/probe.json]

``minimal_pairs.tsv`` (CC0, written for this project) has one fact a line: in each language a sentence, a paraphrase of it,
and another sentence that differs in a number, a name, a negation, who does what to whom (``roles``), or a word with a near
neighbour. The lines are translations of each other. Three questions, each the share of lines where the right one is
strictly nearer by cosine (all the same vector: not told apart):

- ``translation``: an English sentence (for English: the German one), its translation or that of the other sentence;
- ``paraphrase``: a paraphrase, the sentence it says again or the other sentence;
- ``strict``: a sentence, its paraphrase or the other sentence, which shares more of its words.

Chance is one half in the first two; where surface decides, the third is near zero. A model is asked in its own languages.
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np

from eval.settings import RESULTS, run_script
from xswe.evaluation.encoders import SentenceEncoder
from xswe.evaluation.models import open_encoder
from xswe.io.files import write_json
from xswe.io.products import row_products
from xswe.io.results import table

PAIRS = Path(__file__).parent / "minimal_pairs.tsv"
LANGUAGES = ("en", "de", "zh", "ja")
ENGLISH = ("wordllama", "teacher:minilm")  # what knows no other language
KINDS = ("numbers", "names", "negation", "roles", "neighbours")
DEFAULTS: dict[str, Any] = {
    "models": "mini,wordllama,teacher:minilm",
    "threads": 1,
    "output": str(RESULTS / "probe.json"),
}


def read_pairs() -> list[dict[str, str]]:
    """Return the lines by column: ``kind``, and of each language ``en``, ``en_paraphrase``, ``en_other``."""
    with open(PAIRS, encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream, delimiter="\t", quoting=csv.QUOTE_NONE))


def shares(right: np.ndarray, wrong: np.ndarray, kinds: list[str]) -> dict[str, float]:
    """Return the share of lines whose right cosine is above the wrong one: of each kind, and of all."""
    apart = right > wrong + 1e-6  # equal vectors differ by rounding alone
    found = {kind: float(apart[[kind == own for own in kinds]].mean()) for kind in KINDS}
    return {**found, "all": float(apart.mean())}


def probe(encoder: SentenceEncoder, lines: list[dict[str, str]]) -> list[dict[str, Any]]:
    """Ask a model all questions in its languages."""
    kinds = [line["kind"] for line in lines]
    known = [code for code in LANGUAGES if code in encoder.languages]
    unit = {
        column: encoder.encode([line[column] for line in lines])
        for code in known
        for column in (code, f"{code}_paraphrase", f"{code}_other")
    }
    rows = []
    for code in known:
        own, again, other = unit[code], unit[f"{code}_paraphrase"], unit[f"{code}_other"]
        questions = {"paraphrase": (again, own, again, other), "strict": (own, again, own, other)}
        foreign = unit.get("de" if code == "en" else "en")
        if foreign is not None:
            questions = {"translation": (foreign, own, foreign, other), **questions}
        for question, (a, b, c, d) in questions.items():
            told = shares(row_products(a, b), row_products(c, d), kinds)
            rows.append({"model": encoder.name, "dims": encoder.dim, "language": code, "question": question, **told})
    return rows


def main(settings: dict[str, Any]) -> None:
    """Probe each model, and write one JSON."""
    lines, rows = read_pairs(), []
    for name in settings["models"].split(","):
        languages = ("en",) if name in ENGLISH else None
        rows += probe(open_encoder({"path": name, "languages": languages}, settings["threads"]), lines)
    print(table(list(rows[0]), [list(row.values()) for row in rows]))
    write_json(Path(settings["output"]), {"lines": len(lines), "rows": rows})


if __name__ == "__main__":
    run_script(main, DEFAULTS, __doc__)
