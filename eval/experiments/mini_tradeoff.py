"""How small may a model be? Dimensions x vocabulary x precision against bytes, for a float32 model of four languages.

    python -m eval.experiments.mini_tradeoff model=runs/en-de-zh-ja/…/model output=eval/results/mini_tradeoff.json
    python -m eval.experiments.mini_tradeoff model=MODEL dims=128,192,256 units=16000,24000,32000 dtypes=float16,int8

``units=0`` keeps all, ``turned`` turns the vectors before dimensions are cut (0, 1 or both), ``limit`` takes so many pairs
of each set, to try the script out.

Choose by the development columns (WMT23, STS-B); the Tatoeba test is there to be reported. All figures are means over
de, ja and zh: accuracy of the nearest neighbour by cosine, both directions, and Spearman's correlation across languages.
Bytes are those of ``model.safetensors`` and ``tokenizer.json``, and of both as a wheel packs them (deflate).
"""

from __future__ import annotations

import json
import os
import tempfile
import zlib
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

import xswe
from eval.settings import REQUIRED, chosen, numbers, run_script
from xswe.corpus.formats import find_pairs, read_pairs
from xswe.evaluation.metrics import bitext_items, similarity_correlation
from xswe.io.files import write_json
from xswe.io.lines import read_lines
from xswe.io.results import table
from xswe.model.export import ExportConfig, reshape
from xswe.model.static import StaticModel
from xswe.progress import track
from xswe.text.languages import LANGUAGES

DATA = Path(os.environ.get("XSWE_DATA", "../shared/data"))
OTHERS = ("de", "ja", "zh")
FIGURES = ["wmt23 dev", "wmt23 dev, margin", "stsb-xling dev", "tatoeba test", "tatoeba test, margin"]
COLUMNS = ["dims", "turned", "units", "dtype", "MB", "MB deflated", *FIGURES]
DTYPES = ("float32", "float16", "int8")
DEFAULTS: dict[str, Any] = {
    "model": REQUIRED,
    "dims": "64,128,192,256",
    "units": "16000,24000,0",
    "dtypes": ",".join(DTYPES),
}
DEFAULTS |= {"turned": "0,1", "limit": 0, "threads": 1, "output": ""}


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
        out["stsb-xling dev"].append(similarity_correlation(encode(left), encode(right), scores)["spearman"])
    return [float(np.mean(out[figure])) for figure in FIGURES]


def sizes(model: StaticModel) -> list[float]:
    """Return megabytes on the disk, and deflated."""
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "model")
        files = [(Path(folder) / "model" / name).read_bytes() for name in ("model.safetensors", "tokenizer.json")]
    return [sum(map(len, files)) / 1e6, sum(len(zlib.compress(raw, 6)) for raw in files) / 1e6]


def main(settings: dict[str, Any]) -> None:
    """Measure and print the table."""
    model = xswe.load(settings["model"])
    cut = slice(settings["limit"] or None)
    sets: dict[str, list] = {
        "wmt23 dev": [(a[cut], b[cut]) for a, b in bitexts("wmt23")],
        "tatoeba test": [(a[cut], b[cut]) for a, b in bitexts("tatoeba")],
        "stsb-xling dev": [tuple(column[cut] for column in columns) for columns in scored()],
    }
    rows = []
    ranges = (numbers(settings[name], name, least) for name, least in (("units", 0), ("dims", 1), ("turned", 0)))
    choices = list(product(*ranges, chosen(settings["dtypes"], "dtypes", DTYPES)))
    for units, dim, turned, dtype in track(choices, "trade-off"):
        if dim > model.dim or (dim == model.dim and turned) or units > len(model.matrix):
            continue  # turning alone changes nothing
        config = ExportConfig(dtype=dtype, dim=dim, rotate=bool(turned), keep=units)
        small = reshape(model, config)
        rows.append(
            [dim, bool(turned), len(small.matrix), dtype, *sizes(small), *measure(small, sets, settings["threads"])]
        )
    shown = [[*row[:4], *(f"{size:.2f}" for size in row[4:6]), *row[6:]] for row in rows]
    print(table(COLUMNS, shown))
    if settings["output"]:
        write_json(
            Path(settings["output"]),
            {"model": settings["model"], "rows": [dict(zip(COLUMNS, row, strict=True)) for row in rows]},
        )


if __name__ == "__main__":
    run_script(main, DEFAULTS, __doc__)
