"""How small may a model be? Dimensions x vocabulary x precision x shared rows against bytes, for models of four languages.

    python -m eval.experiments.mini_tradeoff model=runs/en-de-zh-ja/…/model output=eval/results/mini_tradeoff.json
    python -m eval.experiments.mini_tradeoff model=MODEL dims=128,192,256 units=16000,24000,32000 dtypes=float16,int8
    python -m eval.experiments.mini_tradeoff model=mini,models/base dims=256 units=0 dtypes=int8 shared=0,2,3,4,8 turned=0
        output=eval/results/shared.json

``units=0`` keeps all, ``turned`` turns the vectors before dimensions are cut (0, 1 or both), ``shared`` lets units of int8
share rows in parts of so many dimensions (0: no), ``limit`` takes so many pairs of each set, to try the script out. Several
models have commas between them. What the output has stays there and is not measured again.

Choose by the development columns (WMT23, STS-B); the Tatoeba test is there to be reported. All figures are means over
de, ja and zh: accuracy of the nearest neighbour by cosine, both directions, and Spearman's correlation across languages.
``without bitext`` is the accuracy between de, ja and zh in the sample corpus, as in ``static_levers.py``. Bytes are those
of the vectors and of ``tokenizer.json``, and of both as a wheel packs them (deflate).
"""

from __future__ import annotations

import json
import tempfile
import zlib
from collections.abc import Iterator
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np

import xswe
from eval.settings import DATA, REQUIRED, chosen, numbers, run_script
from xswe.bitext.source import find_pairs, read_pairs
from xswe.corpus.cards import sample_sentences
from xswe.evaluation.metrics import bitext_items, spearman
from xswe.io.files import write_json
from xswe.io.lines import read_lines
from xswe.io.products import row_products
from xswe.io.results import table
from xswe.model.export import ExportConfig, reshape
from xswe.model.static import StaticModel
from xswe.progress import track
from xswe.text.languages import LANGUAGES

OTHERS = ("de", "ja", "zh")
FIGURES = ["wmt23 dev", "wmt23 dev, margin", "stsb-xling dev", "tatoeba test", "tatoeba test, margin", "without bitext"]
CHOICE = ["model", "dims", "turned", "units", "dtype", "shared"]
COLUMNS = [*CHOICE, "MB", "MB deflated", *FIGURES]
DTYPES = ("float32", "float16", "int8")
DEFAULTS: dict[str, Any] = {
    "model": REQUIRED,
    "dims": "64,128,192,256",
    "units": "16000,24000,0",
    "dtypes": ",".join(DTYPES),
}
DEFAULTS |= {"turned": "0,1", "shared": "0", "limit": 0, "threads": 1, "output": ""}


def bitexts(name: str) -> Iterator[tuple[list[str], list[str]]]:
    """Read an evaluation bitext of each language with English."""
    for other in OTHERS:
        if name == "wmt23":
            (file,) = find_pairs([one(DATA / "dev", f"wmt23.en-{other}.*")], ("en", other))
            pairs = list(read_pairs(file))
        else:
            folder = DATA / "mteb-local" / "mteb" / "tatoeba-bitext-mining"
            pairs = tatoeba(folder, LANGUAGES[other].iso3)
        yield [a for a, _ in pairs], [b for _, b in pairs]


def one(folder: Path, pattern: str) -> str:
    """Return the one file that matches."""
    found = sorted(folder.glob(pattern))
    if not found:
        raise SystemExit(f"{folder}/{pattern}: there is no such file; set XSWE_DATA")
    return str(found[0])


def tatoeba(folder: Path, code: str) -> list[tuple[str, str]]:
    """Read the Tatoeba test of a language and English."""
    rows = [json.loads(line or "{}") for _, line in read_lines(one(folder / "test", f"{code}-eng.jsonl"))]
    return [(row["sentence1"], row["sentence2"]) for row in rows]


def scored() -> Iterator[tuple[np.ndarray, list[str], list[str]]]:
    """Read the cross-lingual STS-B development sets."""
    for other in OTHERS:
        path = one(DATA / "dev", f"stsb-xling.en-{other}.*")
        fields = [(line or "").split("\t") for _, line in read_lines(path)]
        yield np.array([float(f[0]) for f in fields]), [f[1] for f in fields], [f[2] for f in fields]


def measure(model: StaticModel, sets: dict[str, list], threads: int) -> list[float]:
    """Return the figures, in the order of ``FIGURES``."""

    def encode(texts: list[str]) -> np.ndarray:
        return model.encode(texts, threads=threads)

    out: dict[str, list[float]] = {figure: [] for figure in FIGURES}
    for name in ("wmt23 dev", "tatoeba test"):
        for source, target in sets[name]:
            a, b = encode(source), encode(target)
            out[name].append(float(bitext_items(a, b)["accuracy"].mean()))
            out[f"{name}, margin"].append(float(bitext_items(a, b, margin=True)["accuracy"].mean()))
    for scores, left, right in sets["stsb-xling dev"]:
        out["stsb-xling dev"].append(spearman(row_products(encode(left), encode(right)), scores))
    unit = {code: encode(texts) for code, texts in sample_sentences().items()}
    for a, b in combinations(OTHERS, 2):
        out["without bitext"].append(float(bitext_items(unit[a], unit[b])["accuracy"].mean()))
    return [float(np.mean(out[figure])) for figure in FIGURES]


def sizes(model: StaticModel) -> list[float]:
    """Return megabytes on the disk, and deflated."""
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "model")
        names = ("codes.safetensors" if model.shared else "model.safetensors", "tokenizer.json")
        files = [(Path(folder) / "model" / name).read_bytes() for name in names]
    return [sum(map(len, files)) / 1e6, sum(len(zlib.compress(raw, 6)) for raw in files) / 1e6]


def main(settings: dict[str, Any]) -> None:
    """Measure and print the table."""
    cut = slice(settings["limit"] or None)
    sets: dict[str, list] = {
        "wmt23 dev": [(a[cut], b[cut]) for a, b in bitexts("wmt23")],
        "tatoeba test": [(a[cut], b[cut]) for a, b in bitexts("tatoeba")],
        "stsb-xling dev": [tuple(column[cut] for column in columns) for columns in scored()],
    }
    output = Path(settings["output"]) if settings["output"] else None
    rows = json.loads(output.read_text())["rows"] if output and output.exists() else []
    ranges = (
        numbers(settings[name], name, least) for name, least in (("units", 0), ("dims", 1), ("turned", 0), ("shared", 0))
    )
    choices = list(product(settings["model"].split(","), *ranges, chosen(settings["dtypes"], "dtypes", DTYPES)))
    for name, units, dim, turned, shared, dtype in track(choices, "trade-off"):
        model = xswe.load(name)
        if dim > model.dim or (dim == model.dim and turned) or units > len(model.matrix) or (shared and dtype != "int8"):
            continue  # turning alone changes nothing
        choice = [name, dim, bool(turned), units or len(model.matrix), dtype, shared]
        if any([row.get(key) for key in CHOICE] == choice for row in rows):
            continue
        small = reshape(model, ExportConfig(dtype=dtype, dim=dim, rotate=bool(turned), keep=units, shared=shared))
        figures = [*choice, *sizes(small), *measure(small, sets, settings["threads"])]
        rows.append(dict(zip(COLUMNS, figures, strict=True)))
        if output:
            write_json(output, {"model": settings["model"], "rows": rows})
    shown = [[f"{row[key]:.2f}" if key.startswith("MB") else row[key] for key in COLUMNS] for row in rows]
    print(table(COLUMNS, shown))


if __name__ == "__main__":
    run_script(main, DEFAULTS, __doc__)
