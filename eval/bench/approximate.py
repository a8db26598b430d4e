"""How many of the ten nearest an index finds, and in which time, beside faiss.

    python -m eval.bench.approximate data=$XSWE_DATA/train questions=$XSWE_DATA/dev output=eval/results/approximate.json

puts so many distinct sentences of the bitexts under ``data`` into an index, and asks it for sentences that it does not
hold: ``outside`` of the WMT 23 bitexts under ``questions``, which are of another kind, and as many ``inside`` ones of the
same bitexts as the index. Each is asked alone, by its vector, on one thread: milliseconds of processor, with the texts that
xswe answers with (``texts_ms`` of them) and the numbers alone that faiss does, the least of ``rounds`` over all questions;
and the share of the exact ten that are found. Building is measured from vectors on; xswe's also encodes, and writes texts
and vectors to the disk. Rows of other sizes that ``output`` holds stay. ``picture=docs/pictures/approximate.svg`` draws
what is found against the time.
"""

from __future__ import annotations

import gc
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import xswe
from eval.bench.search import sentences
from eval.report.figures import svg_figure
from eval.settings import REQUIRED, run_script
from xswe.io.files import read_json, write_json
from xswe.io.results import table

SETTINGS = {
    "data": REQUIRED,
    "questions": REQUIRED,
    "model": "mini",
    "sizes": "320000,1000000",
    "asked": 200,
    "rounds": 5,
    "hnsw_most": 1_000_000,  # sentences; to build its graph takes long
    "output": "",
    "picture": "",
}
RESCORED = (50, 100, 200, 400, 800, 1600)
PROBES = (4, 8, 16, 32, 64, 128)
EFS = (16, 32, 64, 128, 256, 512)
Ask = Callable[[np.ndarray], set[int]]


def clocked(work: Callable[[], Any]) -> tuple[Any, float]:
    """Call a function; returns its result and its seconds of processor."""
    started = time.process_time()
    found = work()
    return found, time.process_time() - started


def least(work: Callable[[], Any], rounds: int) -> tuple[Any, float]:
    """Call a function so often; returns its result and the least of its seconds of processor.

    What is read has come into memory after the first round, and Python looks for no garbage in between.
    """
    gc.collect()
    gc.disable()
    try:
        found = [clocked(work) for _ in range(rounds)]
    finally:
        gc.enable()
    return found[0][0], min(seconds for _, seconds in found)


def asked(ask: Ask, queries: dict[str, np.ndarray], truth: dict[str, list[set[int]]], rounds: int) -> dict[str, float]:
    """Ask for each vector alone; returns milliseconds of processor, and the share of the exact ten that are found."""
    found, seconds = least(lambda: {name: [ask(query[None]) for query in own] for name, own in queries.items()}, rounds)
    out = {"ms": 1000 * seconds / sum(map(len, queries.values()))}
    for name, right in truth.items():
        out[f"recall_{name}"] = float(np.mean([len(a & b) / len(b) for a, b in zip(found[name], right, strict=True)]))
    return out


def of_xswe(index: Any, rescored: int | None) -> Ask:
    """Return what asks an index for texts."""
    how = {} if rescored is None else {"rescored": rescored}
    return lambda query: {hit.row for hit in index.search(query, threads=1, **how)[0]}


def of_faiss(index: Any) -> Ask:
    """Return what asks an index of faiss for numbers."""
    return lambda query: set(index.search(query, 10)[1][0].tolist())


def faiss_indexes(
    vectors: np.ndarray, most: int
) -> Iterator[tuple[str, float, str, Any, tuple[int, ...], Callable[[Any, int], None]]]:
    """Yield the name, the seconds to build, and the index of each method of faiss, with the values of its setting."""
    import faiss

    faiss.omp_set_num_threads(1)
    dim, lists = vectors.shape[1], 2 ** round(np.log2(4 * np.sqrt(len(vectors))))

    def inverted() -> Any:
        index = faiss.IndexIVFFlat(faiss.IndexFlatIP(dim), dim, lists, faiss.METRIC_INNER_PRODUCT)
        index.cp.max_points_per_centroid = 64
        index.train(vectors)
        index.add(vectors)
        return index

    def graph() -> Any:
        index = faiss.IndexHNSWFlat(dim, 32, faiss.METRIC_INNER_PRODUCT)
        index.hnsw.efConstruction = 80
        index.add(vectors)
        return index

    index, seconds = clocked(inverted)
    yield f"faiss IVF{lists}", seconds, "nprobe", index, PROBES, lambda one, value: setattr(one, "nprobe", value)
    del index
    if len(vectors) <= most:
        index, seconds = clocked(graph)
        yield "faiss HNSW32", seconds, "efSearch", index, EFS, lambda one, value: setattr(one.hnsw, "efSearch", value)


def measure(model: Any, texts: list[str], queries: dict[str, np.ndarray], most: int, rounds: int) -> list[dict[str, Any]]:
    """Measure all methods on some sentences."""
    rows: list[dict[str, Any]] = []

    def note(method: str, built: float, setting: str, value: int | None, figures: dict[str, float]) -> None:
        rows.append(
            {"method": method, "sentences": len(texts), "build_cpu_s": round(built, 1), "setting": setting, "value": value}
        )
        rows[-1] |= {name: round(figure, 4) for name, figure in figures.items()}
        print(table(list(rows[-1]), [[str(one) for one in rows[-1].values()]]), flush=True)

    with tempfile.TemporaryDirectory() as place:
        for method in ("exact", "binary"):  # what is compiled is compiled now
            xswe.index(model, texts[:20_000], folder=Path(place) / f"first {method}", method=method, threads=1)
        truth: dict[str, list[set[int]]] = {}
        for method in ("exact", "binary"):
            folder = Path(place) / method
            index, built = clocked(lambda: xswe.index(model, texts, folder=folder, method=method, threads=1))  # noqa: B023
            if method == "exact":
                truth = {
                    name: [{hit.row for hit in hits} for hits in index.search(own, threads=1)]
                    for name, own in queries.items()
                }
            hits = [index.search(query[None], threads=1)[0] for query in queries["outside"]]
            take = index._sentences.take
            taken, seconds = least(lambda: [take([hit.row for hit in one]) for one in hits], rounds)  # noqa: B023
            for rescored in (None, *RESCORED) if method == "binary" else (None,):
                figures = asked(of_xswe(index, rescored), queries, truth, rounds)
                note(f"xswe {method}", built, "rescored", rescored, figures | {"texts_ms": 1000 * seconds / len(taken)})
        vectors = np.load(Path(place) / "exact" / "vectors.npy")
    for method, built, setting, index, values, change in faiss_indexes(vectors, most):
        for value in values:
            change(index, value)
            note(method, built, setting, value, asked(of_faiss(index), queries, truth, rounds))
    return rows


def draw(rows: list[dict[str, Any]], path: Path) -> None:
    """Draw, for each method and size, what is found from outside against the milliseconds."""
    groups: dict[tuple[str, int], list[tuple[float, float]]] = {}
    for row in rows:
        if row["value"] is not None:
            groups.setdefault((row["method"], row["sentences"]), []).append((row["ms"], 100 * row["recall_outside"]))
    with svg_figure(path, "milliseconds of processor a question", "of the exact ten, %") as axes:
        axes.set_xscale("log")
        for (method, size), points in groups.items():
            axes.plot(*zip(*sorted(points), strict=True), marker="o", markersize=3, label=f"{method}, {size:,}")
        axes.set_ylim(bottom=max(50, axes.get_ylim()[0]))
        axes.set_xticks(
            ticks := [x for x in (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50) if axes.get_xlim()[0] <= x <= axes.get_xlim()[1]]
        )
        axes.set_xticklabels([f"{x:g}" for x in ticks])
        axes.minorticks_off()


def main(settings: dict[str, Any]) -> None:
    """Measure all sizes, and print and write the figures."""
    model, count = xswe.load(settings["model"]), settings["asked"]
    sizes = [int(size) for size in str(settings["sizes"]).split(",")]
    texts = sentences(Path(settings["data"]), max(sizes) + count)
    questions = {"outside": sentences(Path(settings["questions"]), count, "wmt23.*"), "inside": texts[:count]}
    queries = {name: model.encode(own, threads=1) for name, own in questions.items()}
    kept = [text for text in texts[count:] if text not in set(questions["outside"])]
    rows = [
        row for size in sizes for row in measure(model, kept[:size], queries, settings["hnsw_most"], settings["rounds"])
    ]
    if settings["output"] and Path(settings["output"]).exists():
        rows = [row for row in read_json(settings["output"])["rows"] if row["sentences"] not in sizes] + rows
    if settings["picture"]:
        draw(rows, Path(settings["picture"]))
    if settings["output"]:
        about = {
            "model": settings["model"],
            "asked": count,
            "rounds": settings["rounds"],
            "threads": 1,
            "load": os.getloadavg()[0],
        }
        write_json(settings["output"], {**about, "rows": rows})


if __name__ == "__main__":
    run_script(main, SETTINGS, __doc__)
