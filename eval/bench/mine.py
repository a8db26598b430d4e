"""Mining speed, side by side in one run: this library against the field's two ways, on the same vectors.

    python -m eval.bench.mine model=DIR [sizes=10000,100000] [largest=1000000] [rounds=3] [threads=0] [output=FILE.json]

Every measurement is a process of its own (peak memory is its resident maximum, and that part of it which is not mapped
from files; imports and compilation are not timed);
rounds are interleaved and medians quoted. With ``model=`` the vectors are those of real sentences, found through
XSWE_DATA, half of each side translations of the other; without, synthetic ones with planted translations. ``largest`` is
mined approximately only, by this library alone. Run it on an idle machine.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from eval.bench.memory import memory, watched

DIM, K = 256, 4
DEFAULTS: dict[str, Any] = {"model": "", "sizes": "10000,100000", "largest": 1_000_000, "rounds": 3, "threads": 0}
DEFAULTS["output"] = ""
Pairs = tuple[np.ndarray, np.ndarray, np.ndarray]


def real_texts(root: Path) -> tuple[list[str], list[str]]:
    """Return distinct English sentences and their distinct translations, of all pairs and files, shuffled."""
    from eval.settings import pairs_of

    seen: tuple[set[str], set[str]] = (set(), set())
    rows = []
    for path in sorted(root.glob("train*/en-*/*.tsv.gz")):
        for a, b in pairs_of(path):
            if a and b and a not in seen[0] and b not in seen[1]:
                seen[0].add(a)
                seen[1].add(b)
                rows.append((a, b))
    order = np.random.default_rng(0).permutation(len(rows))
    return [rows[i][0] for i in order], [rows[i][1] for i in order]


def make_vectors(count: int, model: str, folder: Path) -> int:
    """Write ``a.npy`` and ``b.npy``, where row i of ``b`` translates row i + shift of ``a``; returns the shift."""
    if model:
        import xswe
        from eval.settings import DATA

        found = xswe.load(model)
        source, target = real_texts(DATA)
        if len(source) < count:
            raise SystemExit(f"{len(source):,} distinct pairs under XSWE_DATA, {count:,} wanted: set largest= lower")
        shift = min(count // 2, len(source) - count)
        np.save(folder / "a.npy", found.encode(source[:count], threads=2))
        np.save(folder / "b.npy", found.encode(target[shift : shift + count], threads=2))
        return shift
    generator = np.random.default_rng(0)
    spread = np.geomspace(1, 0.1, DIM).astype(np.float32)
    shift = count // 2
    a = generator.standard_normal((count, DIM), np.float32) * spread
    b = generator.standard_normal((count, DIM), np.float32) * spread
    b[: count - shift] = a[shift:] + 0.5 * b[: count - shift]
    for name, array in (("a", a), ("b", b)):
        np.save(folder / f"{name}.npy", array / np.linalg.norm(array, axis=1, keepdims=True))
    return shift


def margin_loop(x_ids: np.ndarray, x: np.ndarray, y_ids: np.ndarray, y: np.ndarray) -> Pairs:
    """The field's way from neighbours to pairs: a Python loop over all candidates, then one over the sorted pairs."""
    means_x, means_y = x.mean(1), y.mean(1)

    def scored(cosines: np.ndarray, ids: np.ndarray, own: np.ndarray, other: np.ndarray) -> np.ndarray:
        out = np.zeros(cosines.shape)
        for i in range(out.shape[0]):
            for j in range(out.shape[1]):
                out[i, j] = cosines[i, j] / ((own[i] + other[ids[i, j]]) / 2)
        return out

    forward, backward = scored(x, x_ids, means_x, means_y), scored(y, y_ids, means_y, means_x)
    best_x = x_ids[np.arange(len(x)), forward.argmax(1)]
    best_y = y_ids[np.arange(len(y)), backward.argmax(1)]
    source = np.concatenate([np.arange(len(x)), best_y])
    target = np.concatenate([best_x, np.arange(len(y))])
    scores = np.concatenate([forward.max(1), backward.max(1)])
    used_x: set[int] = set()
    used_y: set[int] = set()
    kept = []
    for i in np.argsort(-scores):
        a, b = int(source[i]), int(target[i])
        if a not in used_x and b not in used_y:
            used_x.add(a)
            used_y.add(b)
            kept.append(i)
    return source[kept], target[kept], scores[kept]


def with_faiss(threads: int, approximate: bool, a: np.ndarray, b: np.ndarray) -> Pairs:
    """Two searches and the loop: a flat index (LASER), or inverted lists as in sentence-transformers' example."""
    import faiss

    faiss.omp_set_num_threads(threads)

    def neighbours(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        index = faiss.IndexFlatIP(y.shape[1])
        if approximate:
            index = faiss.IndexIVFFlat(index, y.shape[1], max(1, len(y) // 1000), faiss.METRIC_INNER_PRODUCT)
            index.nprobe = 3
            index.train(y)
        index.add(y)
        cosines, ids = index.search(x, K)
        return ids, cosines

    return margin_loop(*neighbours(a, b), *neighbours(b, a))


def with_xswe(threads: int, method: str, a: np.ndarray, b: np.ndarray) -> Pairs:
    """The same result by this library."""
    from xswe.mining.pipeline import MineConfig, mine_vectors
    from xswe.search.lists import SearchConfig

    search = SearchConfig(method=method, threads=threads, memory=1.0)  # type: ignore[arg-type]
    pairs = mine_vectors(a, b, MineConfig(threshold=None, neighbours=search)).pairs
    return pairs.source, pairs.target, pairs.scores


def product_alone(threads: int, a: np.ndarray, b: np.ndarray) -> Pairs:
    """The ceiling: the blocks of the score matrix by BLAS, looked at by nobody."""
    from xswe.io.parallel import over_blocks, single_threaded_blas

    def work(start: int, stop: int) -> None:
        scratch = np.empty((512, 512), np.float32)
        for r in range(start, stop, 512):
            left = a[r : min(r + 512, stop)]
            for c in range(0, len(b), 512):
                right = b[c : c + 512]
                np.matmul(left, right.T, out=scratch[: len(left), : len(right)] if len(right) == 512 else None)

    with single_threaded_blas():
        over_blocks(work, len(a), threads)
    return np.zeros(0, int), np.zeros(0, int), np.zeros(0)


METHODS: dict[str, Callable[[int], Callable[[np.ndarray, np.ndarray], Pairs]]] = {
    "product": lambda threads: partial(product_alone, threads),
    "xswe exact": lambda threads: partial(with_xswe, threads, "exact"),
    "xswe clusters": lambda threads: partial(with_xswe, threads, "clusters"),
    "faiss flat + loop": lambda threads: partial(with_faiss, threads, False),
    "faiss IVF + loop": lambda threads: partial(with_faiss, threads, True),
}


def worker(name: str, folder: Path, threads: int) -> None:
    """Run one method once; print seconds and peak memory, and leave the pairs in ``folder``."""
    method = METHODS[name](threads)
    small = np.eye(DIM, dtype=np.float32)[:64]
    if not name.startswith("faiss IVF"):
        method(small, small)  # imports and compilation
    mapped = name.startswith("xswe")  # the others want their vectors in memory
    a, b = (np.load(folder / f"{side}.npy", mmap_mode="r" if mapped else None) for side in "ab")
    with watched() as own:
        started = time.perf_counter()
        source, target, _ = method(a, b)
        seconds = time.perf_counter() - started
    np.save(folder / "found.npy", np.stack([source, target]).astype(np.int64))
    print(json.dumps({"seconds": seconds, "peak_gib": memory("VmHWM") / 2**30, "peak_anonymous_gib": own[0] / 2**30}))


def call(name: str, folder: Path, threads: int) -> tuple[dict[str, float], set[tuple[int, int]]]:
    """Run a method in a process of its own."""
    env = {key: value for key, value in os.environ.items() if not key.endswith("_NUM_THREADS")}
    env |= {"XSWE_PROGRESS": "0", "OMP_WAIT_POLICY": "PASSIVE"}
    command = [sys.executable, "-m", "eval.bench.mine", "worker", name, str(folder), str(threads)]
    done = subprocess.run(command, env=env, check=True, capture_output=True, text=True)
    found = np.load(folder / "found.npy")
    return json.loads(done.stdout), set(zip(*found.tolist(), strict=True))


def measure(
    names: list[str], folder: Path, threads: int, rounds: int, shift: int, count: int
) -> dict[str, dict[str, float]]:
    """Interleave the methods; medians, and how the pairs compare with the first method that has any."""
    times: dict[str, list[float]] = {name: [] for name in names}
    peaks: dict[str, dict[str, float]] = {name: {} for name in names}
    pairs: dict[str, set[tuple[int, int]]] = {}
    for _ in range(rounds):
        for name in names:
            measured, pairs[name] = call(name, folder, threads)
            times[name].append(measured["seconds"])
            for what in ("peak_gib", "peak_anonymous_gib"):
                peaks[name][what] = max(peaks[name].get(what, 0.0), measured[what])
    exact = pairs.get("xswe exact")
    out = {}
    for name in names:
        row = {"seconds": statistics.median(times[name]), "min": min(times[name]), "max": max(times[name])}
        row |= peaks[name]
        if found := pairs[name]:
            true = sum((i + shift, i) in found for i in range(count - shift))
            row["pairs"], row["translations_found"] = len(found), true / (count - shift)
            if exact:
                row["of_exact_pairs"] = len(found & exact) / len(exact)
        out[name] = row
    return out


def show(size: int, found: dict[str, dict[str, float]]) -> None:
    """Print one size's table."""
    print(f"{size:,} x {size:,}")
    base = found.get("faiss flat + loop", {}).get("seconds")
    ceiling = found.get("product", {}).get("seconds")
    for name, row in found.items():
        line = f"  {name:<20} {row['seconds']:9.2f} s  {row['peak_gib']:5.2f} GiB"
        line += f"  x{base / row['seconds']:5.2f}" if base else ""
        if ceiling and name == "xswe exact":
            row["of_ceiling"] = ceiling / row["seconds"]
            line += f"  {100 * row['of_ceiling']:.0f} % of the product's speed"
        line += f"  translations {row['translations_found']:.4f}" if "translations_found" in row else ""
        line += f"  of the exact pairs {row['of_exact_pairs']:.4f}" if "of_exact_pairs" in row else ""
        print(line, flush=True)


def main(settings: dict[str, Any]) -> None:
    """Measure and print; write the figures."""
    sizes = [int(size) for size in settings["sizes"].split(",")]
    largest, rounds = settings["largest"], settings["rounds"]
    threads = settings["threads"] or len(os.sched_getaffinity(0))
    report: dict[str, object] = {
        "dim": DIM,
        "k": K,
        "threads": threads,
        "vectors": "real" if settings["model"] else "synthetic",
    }
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        for size in [*sizes, *([largest] if largest else [])]:
            shift = make_vectors(size, settings["model"], folder)
            names = [*METHODS] if size in sizes else ["xswe clusters"]
            found = measure(names, folder, threads, rounds if size in sizes else 1, shift, size)
            show(size, found)
            report[str(size)] = found
    if settings["output"]:
        Path(settings["output"]).parent.mkdir(parents=True, exist_ok=True)
        Path(settings["output"]).write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    if sys.argv[1:2] == ["worker"]:
        worker(sys.argv[2], Path(sys.argv[3]), int(sys.argv[4]))
    else:
        from eval.settings import run_script  # not in a worker, whose memory is measured

        run_script(main, DEFAULTS, __doc__)
