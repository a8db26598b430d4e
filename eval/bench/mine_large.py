"""How mining by clusters grows with the number of lines, in a stated memory, killed now and then and gone on with.

    python -m eval.bench.mine_large sizes=100000,300000,1000000,10000000 [kills=2] [threads=2]
        [methods=xswe,faiss,stopes] [folder=/tmp/large] output=eval/results/mine_large.json

The vectors are made of the model's own, of real translations found through XSWE_DATA: a line is the sum of a sentence and
0.6 of another, the vector of a text of both, with noise. Every hundredth line of either side is the translation of one on
the other side, with noise of its own; no other line has one, but most share a sentence with some. They are stored as int8.

A run is a process of its own. Its memory is looked at from outside, all of it (with the pages of mapped files that it has
touched) and the part that is its own. So many ``kills`` strike the largest size at random moments; the same command
then goes on, and all processor time counts. Two other ``methods`` are inverted lists of product-quantised vectors by faiss,
in memory, of the same vectors, by the same margin and selection: few lists (``faiss``: IVF4096,PQ64 of a million lines, of
which 32 are looked at), and as stopes has them (``stopes``: OPQ64,IVF16384,PQ64 of a million, 128 looked at). Rows of other
sizes and methods that ``output`` holds stay.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from eval.bench.memory import memory

K, DIM = 4, 256
SHARE, SECOND, NOISE = 100, 0.6, 0.3
SETTINGS = {"sizes": "100000,300000,1000000", "model": "mini", "kills": 2, "threads": 2, "seed": 0}
SETTINGS |= {"methods": "xswe", "folder": "/tmp/mine-large", "output": ""}
BLOCK = 1 << 17


def make_vectors(count: int, model: str, folder: Path) -> None:
    """Write ``a.npy`` and ``b.npy``, int8; row ``i`` of both is the same text for every hundredth ``i``."""
    import xswe
    from eval.bench.mine import real_texts
    from xswe.search.vectors import VectorWriter

    base = folder.parent / "base.npz"
    if not base.is_file():
        from eval.settings import DATA

        found = xswe.load(model)
        sides = real_texts(DATA)
        base.parent.mkdir(parents=True, exist_ok=True)
        np.savez(base, a=found.encode(sides[0], threads=2), b=found.encode(sides[1], threads=2))
    with np.load(base) as stored:
        real = stored["a"], stored["b"]
    folder.mkdir(parents=True, exist_ok=True)
    generator = np.random.default_rng(count)
    with ExitStack() as stack:
        writers = [stack.enter_context(closing(VectorWriter(folder / f"{name}.npy", DIM, "int8"))) for name in "ab"]
        for start in range(0, count, BLOCK):
            rows = min(BLOCK, count - start)
            texts = generator.integers(0, len(real[0]), (2, rows, 2))
            same = np.arange(start, start + rows) % SHARE == 0
            texts[1][same] = texts[0][same]
            for side, own, writer in zip(real, texts, writers, strict=True):
                vectors = side[own[:, 0]] + np.float32(SECOND) * side[own[:, 1]]
                vectors += generator.standard_normal(vectors.shape, np.float32) * np.float32(NOISE / DIM**0.5)
                writer.append(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))


def by_xswe(folder: Path, threads: int) -> Any:
    """Mine, or go on with it."""
    from xswe.mining.pipeline import MineConfig, mine_vectors
    from xswe.search.lists import SearchConfig

    config = MineConfig(threshold=None, neighbours=SearchConfig(method="clusters", threads=threads))
    return mine_vectors(folder / "a.npy", folder / "b.npy", config, folder / "work").pairs


def few_lists(lines: int) -> tuple[str, int]:
    """Return faiss' name of an index of that many vectors, and how many lists a search looks at."""
    return f"IVF{2 ** round(np.log2(4 * lines**0.5))},PQ64", 32


def lists_of_stopes(lines: int) -> tuple[str, int]:
    """Return the same as stopes has it."""
    known = ((10_000_000, 65536), (4_000_000, 32768), (700_000, 16384), (250_000, 8192), (160_000, 4096), (80_000, 2048))
    return f"OPQ64,IVF{next((lists for least, lists in known if lines > least), 1024)},PQ64", 128


def by_faiss(lists: Callable[[int], tuple[str, int]], folder: Path, threads: int) -> Any:
    """Mine with inverted lists of product-quantised vectors (``pip install 'xswe[baselines]'``)."""
    import faiss

    from xswe.mining.margin import score_candidates, select
    from xswe.search.lists import Neighbours
    from xswe.search.vectors import Vectors

    faiss.omp_set_num_threads(threads)
    sides = [Vectors.open(folder / f"{name}.npy") for name in "ab"]
    name, probes = lists(len(sides[0]))

    def neighbours(here: Vectors, there: Vectors) -> tuple[np.ndarray, np.ndarray]:
        index = faiss.index_factory(DIM, name)
        inverted = faiss.downcast_index(faiss.extract_index_ivf(index))
        inverted.do_polysemous_training = False  # minutes, for a way to search that is not used, nor trained on a card
        inverted.nprobe = probes
        index.train(there.take(np.arange(len(there))))
        for _, block in there.blocks(BLOCK):
            index.add(block)
        found = [index.search(block, K) for _, block in here.blocks(BLOCK)]
        distances = np.concatenate([squares for squares, _ in found])
        return 1 - distances / 2, np.concatenate([ids for _, ids in found]).astype(np.int32)

    both = [*neighbours(*sides), *neighbours(*sides[::-1])]
    return select(score_candidates(Neighbours(*both), "ratio", K))


METHODS = {"xswe": by_xswe, "faiss": partial(by_faiss, few_lists), "stopes": partial(by_faiss, lists_of_stopes)}


def worker(name: str, folder: Path, threads: int) -> None:
    """Run a method once and leave what it found."""
    pairs = METHODS[name](folder, threads)
    np.savez(folder / f"{name}.npz", scores=pairs.scores, source=pairs.source, target=pairs.target)
    (folder / f"{name}.peak").write_text(str(memory("VmHWM")), encoding="ascii")


def resident(pid: int) -> tuple[int, int]:
    """Return the memory of a process, all and its own, in bytes; nothing once it has ended."""
    try:
        told = Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0, 0
    found = {line.split(":")[0]: int(line.split()[1]) << 10 for line in told if line.startswith(("VmHWM", "RssAnon"))}
    return found.get("VmHWM", 0), found.get("RssAnon", 0)


def disk(folder: Path) -> int:
    """Return the bytes of all files in a folder, some of which may just be going."""
    total = 0
    for where, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.lstat(os.path.join(where, name)).st_size
            except OSError:
                continue
    return total


def attempt(name: str, folder: Path, threads: int, kill_after: float | None) -> dict[str, Any]:
    """Run a method in a process of its own, and perhaps kill it after so many seconds of its processor time."""
    env = {key: value for key, value in os.environ.items() if not key.endswith("_NUM_THREADS")}
    env |= {"XSWE_PROGRESS": "0", "OMP_WAIT_POLICY": "PASSIVE", "OMP_NUM_THREADS": str(threads)}
    started = time.monotonic()
    child = subprocess.Popen(
        [sys.executable, "-m", "eval.bench.mine_large", "worker", name, str(folder), str(threads)], env=env
    )
    peaks, over = [0, 0, 0], threading.Event()

    def watch() -> None:
        turn = 0
        while not over.wait(0.2):
            peaks[:2] = map(max, peaks, resident(child.pid))
            if turn % 25 == 0 and name == "xswe":  # faiss has all in memory
                peaks[2] = max(peaks[2], disk(folder / "work"))
            turn += 1
            if kill_after and processor_seconds(child.pid) > kill_after:
                child.send_signal(signal.SIGKILL)

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    _, status, usage = os.wait4(child.pid, 0)
    over.set()
    watcher.join()
    return {
        "exit": os.waitstatus_to_exitcode(status),
        "seconds": round(time.monotonic() - started, 1),
        "processor_seconds": round(usage.ru_utime + usage.ru_stime, 1),
        "peak_gib": round(peaks[0] / 2**30, 3),
        "peak_own_gib": round(peaks[1] / 2**30, 3),
        "work_disk_gib": round(peaks[2] / 2**30, 3),
    }


def processor_seconds(pid: int) -> float:
    """Return what a process has taken so far."""
    try:
        told = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(told[11]) + int(told[12])) / os.sysconf("SC_CLK_TCK")


def quality(name: str, folder: Path, count: int) -> dict[str, float]:
    """Return how many of the planted pairs were found, and the best F1 that a threshold could have."""
    with np.load(folder / f"{name}.npz") as found:
        right = (found["source"] == found["target"]) & (found["source"] % SHARE == 0)
    planted = -(-count // SHARE)
    hits = np.cumsum(right)  # pairs come best first
    f1 = 2 * hits / (np.arange(1, len(right) + 1) + planted)
    return {"pairs": len(right), "planted": planted, "recall": float(hits[-1] / planted), "best_f1": float(f1.max())}


def main(settings: dict[str, Any]) -> None:
    """Measure all sizes; write the figures after each."""
    from eval.settings import chosen, numbers
    from xswe.io.files import read_json, write_json

    sizes, chance = numbers(settings["sizes"], "sizes"), random.Random(settings["seed"])
    methods, rows = chosen(settings["methods"], "methods", tuple(METHODS)), []
    if settings["output"] and Path(settings["output"]).is_file():
        told = read_json(settings["output"])["rows"]
        rows = [row for row in told if row["lines"] not in sizes or row["method"] not in methods]
    for size in sizes:
        folder = Path(settings["folder"]) / str(size)
        if not (folder / "made").is_file():
            make_vectors(size, settings["model"], folder)
            (folder / "made").touch()
        for name in methods:
            runs = []
            kills = settings["kills"] if size == max(sizes) and name == "xswe" else 0
            while not runs or runs[-1]["exit"] != 0:
                if len(runs) > kills:  # of other causes than ours, as where memory is short
                    raise SystemExit(f"{name} was killed, {runs[-1]['peak_gib']} GiB resident at most")
                # Roughly what a thread takes: a kill should come while there is still something to do.
                after = chance.uniform(0.05, 0.4) * 1e-7 * size**1.5 + 20 if len(runs) < kills else None
                runs.append(attempt(name, folder, settings["threads"], after))
                print(size, name, runs[-1], flush=True)
                if runs[-1]["exit"] > 0:
                    raise SystemExit(f"{name} failed")
            total = {key: round(sum(run[key] for run in runs), 1) for key in ("seconds", "processor_seconds")}
            peaks = {key: max(run[key] for run in runs) for key in ("peak_gib", "peak_own_gib", "work_disk_gib")}
            rows.append({"lines": size, "method": name, "kills": len(runs) - 1, **total, **peaks, "runs": runs})
            rows[-1] |= quality(name, folder, size)
            print(json.dumps({key: value for key, value in rows[-1].items() if key != "runs"}), flush=True)
            if settings["output"]:
                told = {key: settings[key] for key in ("model", "threads")} | {"k": K, "storage": "int8"}
                write_json(settings["output"], {"settings": told, "rows": rows})


if __name__ == "__main__":
    if sys.argv[1:2] == ["worker"]:
        worker(sys.argv[2], Path(sys.argv[3]), int(sys.argv[4]))
    else:
        from eval.settings import run_script  # not in a worker, whose memory is measured

        run_script(main, SETTINGS, __doc__)
