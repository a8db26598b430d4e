"""What the documented commands write as other processors, libraries and numbers of threads compute it: the same bytes.

    python -m eval.experiments.processors output=eval/results/processors.json [lines=1500] [only="two threads,…"] [work=…]

Each command runs once as this machine runs it, and once in each environment: with OpenBLAS's kernels for other processors
(``OPENBLAS_CORETYPE``), with MKL's and oneDNN's held to older instructions, with numpy's and numba's own for processors
with narrower vectors or without fused multiply-add, and with two threads. The digest of what it writes is compared.
Searches cut in other shards stand beside the same ones in one piece. Needs ``XSWE_DATA``; twenty minutes on two cores.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from eval.settings import DATA, REQUIRED, chosen, run_script
from xswe.io.files import write_json

NARROW = "AVX512F AVX512CD AVX512_SKX AVX512_CLX AVX512_CNL AVX512_ICL AVX512_SPR"
ENVIRONMENTS: dict[str, dict[str, str]] = {
    "two threads": {"threads": "2"},
    "OpenBLAS for Haswell": {"OPENBLAS_CORETYPE": "Haswell"},
    "OpenBLAS for SkylakeX": {"OPENBLAS_CORETYPE": "SkylakeX"},
    "OpenBLAS for Zen": {"OPENBLAS_CORETYPE": "Zen"},
    "MKL and oneDNN with AVX2": {"MKL_CBWR": "AVX2", "MKL_ENABLE_INSTRUCTIONS": "AVX2", "ONEDNN_MAX_CPU_ISA": "AVX2"},
    "numpy without AVX-512": {"NPY_DISABLE_CPU_FEATURES": NARROW},
    "numba for Haswell": {
        "NUMBA_CPU_NAME": "haswell",
        "NUMBA_CPU_FEATURES": "+sse2,+sse4.2,+avx,+avx2,+fma,+f16c,+bmi,+bmi2",
    },
    "numba without FMA": {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""},
}
DEFAULTS: dict[str, Any] = {"output": REQUIRED, "lines": 1500, "only": ",".join(ENVIRONMENTS), "work": "runs/processors"}


def prepare(work: Path, lines: int) -> dict[str, Path]:
    """Write what the commands read; some lines stand twice, so that there are equal scores."""
    rows = [line.split("\t") for line in (DATA / "dev" / "wmt23.en-ja.tsv").read_text("utf-8").splitlines()[:lines]]
    rows += rows[: lines // 10]
    sides = {"source": [a for a, _ in rows], "target": [b for _, b in rows], "queries": [a for a, _ in rows[:100]]}
    sides["bitext"] = ["\t".join(row) for row in rows]
    paths = {name: work / f"{name}.{'tsv' if name == 'bitext' else 'txt'}" for name in sides}
    for name, texts in sides.items():
        paths[name].write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    return paths


def commands(given: dict[str, Path], out: Path) -> Iterator[tuple[str, list[str], Path]]:
    """Yield the name of each command, its words and what it writes."""
    sides = [f"source={given['source']}", f"target={given['target']}"]
    queries = [f"queries={given['queries']}", f"input={given['target']}"]
    shards = ["execution=array", "execution.index=0", "execution.count=1", "execution.shard=20000"]
    searched = [f"input={given['target']}", f"queries={given['queries']}", "k=10"]
    yield "encode", ["encode", "model=mini", f"input={given['target']}", f"output={out}/e.npy"], out / "e.npy"
    for method in ("exact", "clusters"):
        words = ["mine", "model=mini", *sides, f"neighbours.method={method}", "threshold=null"]
        yield f"mine, {method}", [*words, f"output={out}/{method}.tsv"], out / f"{method}.tsv"
    words = ["mine", "model=mini", *sides, "storage=int8", "threshold=null", f"output={out}/int8.tsv"]
    yield "mine, int8", words, out / "int8.tsv"
    words = ["mine", "model=mini", "mode=score", f"input={given['bitext']}", f"output={out}/scored.tsv"]
    yield "mine, mode=score", words, out / "scored.tsv"
    yield "filter", ["filter", "model=mini", f"input={given['bitext']}", f"output={out}/kept.tsv"], out / "kept.tsv"
    for name, more in (("phrases", []), ("phrases, in shards", shards)):
        path = out / f"{name.partition(',')[2].strip() or 'whole'}.tsv"
        yield name, ["phrases", "model=mini", *queries, f"output={path}", *more], path
    yield "terms", ["phrases", "model=mini", "mode=terms", *queries, f"output={out}/terms.tsv"], out / "terms.tsv"
    for method in ("exact", "binary"):
        words = [
            "search",
            "model=mini",
            *searched,
            f"method={method}",
            f"index={out}/{method}",
            f"output={out}/{method}.hits.tsv",
        ]
        yield f"search, {method}", words, out / f"{method}.hits.tsv"


def digests(given: dict[str, Path], out: Path, changes: dict[str, str]) -> dict[str, str]:
    """Run all commands in an environment; returns the digest of what each wrote."""
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    changes, found = dict(changes), {}
    threads = changes.pop("threads", "1")
    environment = os.environ | {"XSWE_PROGRESS": "0", "HF_HUB_OFFLINE": "1"} | changes
    if any(name.startswith("NUMBA_CPU") for name in changes):
        environment |= {"NUMBA_CACHE_DIR": str(out / "compiled")}
    for name, words, path in commands(given, out):
        done = subprocess.run(
            [sys.executable, "-m", "xswe", *words, f"threads={threads}"], env=environment, capture_output=True, text=True
        )
        if done.returncode:
            raise SystemExit(f"{' '.join(words)}\n{done.stderr[-2000:]}")
        found[name] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


def main(settings: dict[str, Any]) -> None:
    """Compare all environments with this machine as it is."""
    names, work = chosen(settings["only"], "only", list(ENVIRONMENTS)), Path(settings["work"]).resolve()
    work.mkdir(parents=True, exist_ok=True)
    given = prepare(work, settings["lines"])
    own = digests(given, work / "own", {})
    report: dict[str, Any] = {"lines": settings["lines"], "commands": list(own), "environments": {}}
    report["in shards as in one piece"] = own["phrases"] == own["phrases, in shards"]
    for name in names:
        other = digests(given, work / "other", ENVIRONMENTS[name])
        wrong = [command for command in own if own[command] != other[command]]
        report["environments"][name] = {"same": len(own) - len(wrong), "differ": wrong}
        print(
            f"{name}: {len(own) - len(wrong)} of {len(own)} the same{''.join(f', not {one}' for one in wrong)}", flush=True
        )
        write_json(Path(settings["output"]), report)
    if not report["in shards as in one piece"] or any(each["differ"] for each in report["environments"].values()):
        sys.exit(1)


if __name__ == "__main__":
    run_script(main, DEFAULTS, __doc__)
