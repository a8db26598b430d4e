"""The speed of one checkout against another's: the same work by both, in turns.

    python -m eval.bench.before_after before=CHECKOUT [after=.] [output=before_after.json] [rounds=7] [lines=20000]
        [steps=400] [work=] [tasks=encode,step,exact,clusters,phrases,conversion,filter,dedup,index,first.encode,…]

Each task is a process of its own, once with each checkout and then again. Printed are the medians, and the median of the
ratios of neighbouring runs (below 1: after is faster), of the clock and of the processor; they are written as soon as a
task is done, beside what ``output`` holds of others. ``git worktree add FOLDER
4bcfff5`` makes the checkout of v0.1. Lines are those of the development data (``XSWE_DATA``), else of the sample corpus.

- ``encode``: ``xswe.load("mini").encode`` of twice ``lines`` texts, the least of nine calls after a first one;
- ``step``: ``train`` for ``steps`` steps of refinement, all stages before it being there;
- ``exact``, ``clusters``: ``mine`` on ``lines`` lines of each side;
- ``phrases``: 100 phrases in ``lines`` passages;
- ``conversion``: ``corpus`` on ``lines`` pairs;
- ``filter``: ``filter`` on as many pairs, by cosine; ``dedup``: on the lines of one side; ``index``: building one of them;
- ``extraction``: ``train`` up to the extracted vectors, with no refinement;
- ``first.encode``, ``first.mine``, ``first.score``, ``first.phrases``, ``first.corpus``, ``first.train``: whole commands,
  from the start of Python on, nothing compiled yet: of 2,000 lines, and of the sample corpus by ``train`` as it is.

Modules are read as bytecode from the second round on, as those of an installed package are, whatever the environment says.
One thread; first uses have two processors (the first that this process may use) and no further settings. Run it on an idle
machine: with the usual sizes it takes twenty minutes.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from eval.settings import DATA, chosen, pairs_of, run_script
from xswe.corpus.cards import sample_sentences
from xswe.errors import ConfigError
from xswe.io.results import markdown

WARM = ("encode", "step", "exact", "clusters", "phrases", "conversion", "filter", "dedup", "index", "extraction")
FIRST = ("first.encode", "first.mine", "first.score", "first.phrases", "first.corpus", "first.train")
TASKS = (*WARM, *FIRST)
FEW = 2000  # lines of a first use
DEFAULTS: dict[str, Any] = {"before": None, "after": ".", "output": "before_after.json", "rounds": 7, "lines": 20_000}
DEFAULTS |= {"steps": 400, "work": "", "tasks": ",".join(TASKS)}
_BYTECODE = {"PYTHONDONTWRITEBYTECODE": ""}
_ENCODE = """
import sys, time, xswe
texts = [line.rstrip("\\n") for name in sys.argv[1:] for line in open(name, encoding="utf-8")]
model = xswe.load("mini")
model.encode(texts, threads=1)
took = []
for _ in range(9):
    start, spent = time.perf_counter(), time.process_time()
    model.encode(texts, threads=1)
    took.append((time.perf_counter() - start, time.process_time() - spent))
print("\\ntook", *map(min, zip(*took)))
"""
_VERB = """
import sys, time
import numba, xswe.__main__
start, spent = time.perf_counter(), time.process_time()
status = xswe.__main__.main(sys.argv[1:])
print("\\ntook", time.perf_counter() - start, time.process_time() - spent)
sys.exit(status)
"""


def lines_of(lines: int) -> list[tuple[str, str]]:
    """Return pairs of English and Japanese."""
    data = DATA / "train" / "en-ja"
    files = sorted(data.glob("*.tsv.gz"))
    found: list[tuple[str, str]] = []
    for path in files:
        found += pairs_of(path, lines // len(files) + 1)
    if not files:
        sides = sample_sentences()
        found = list(zip(sides["en"], sides["ja"], strict=True))
    return found[:lines]


def prepare(work: Path, lines: int) -> None:
    """Write what the tasks read: all lines, and a few of them."""
    pairs = lines_of(lines)
    for few, some in (("", pairs), ("few-", pairs[:: max(1, len(pairs) // FEW)][:FEW])):
        (work / f"{few}pairs.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in some), encoding="utf-8")
        for name, column in (("en.txt", 0), ("ja.txt", 1)):
            (work / f"{few}{name}").write_text("".join(f"{pair[column]}\n" for pair in some), encoding="utf-8")
    phrases = [" ".join(pair[0].split()[:3]) for pair in pairs[:: max(1, len(pairs) // 100)][:100]]
    (work / "queries.txt").write_text("".join(f"{phrase}\n" for phrase in phrases), encoding="utf-8")


def words_of(task: str, checkout: Path, own: Path, steps: int) -> list[str]:
    """Return the words of a task's verb; what it writes lies in ``own``."""
    mine = ["mine", "model=mini", "source=en.txt", "target=ja.txt", f"output={own}/mined.tsv"]
    if task == "exact":
        return mine
    if task == "clusters":
        return [*mine, "neighbours.method=clusters"]
    if task == "phrases":
        return ["phrases", "model=mini", "queries=queries.txt", "input=ja.txt", f"output={own}/hits.tsv"]
    if task == "conversion":
        return ["corpus", "corpus.paths=[pairs.tsv]", "pair=en-ja", f"output={own}/corpus"]
    if task == "filter":
        return ["filter", "model=mini", "input=pairs.tsv", f"output={own}/kept.tsv"]
    if task == "dedup":
        return ["dedup", "input=ja.txt", f"output={own}/distinct.txt"]
    if task == "index":
        texts = "documents" if (checkout / "conf" / "search.yaml").exists() else "input"  # the name in v0.2
        return [
            "search",
            "model=mini",
            f"{texts}=ja.txt",
            "queries=queries.txt",
            f"index={own}/index",
            f"output={own}/found.tsv",
        ]
    if task.startswith("first."):
        return _first_words(task.removeprefix("first."), own)
    renamed = "max_steps" in (checkout / "xswe" / "training" / "refine.py").read_text(encoding="utf-8")
    names = ("max_steps", "eval_steps") if renamed else ("steps", "evaluate_every")
    corpus = ["pair=en-ja", "corpus=local", "corpus.paths=[pairs.tsv]", "teacher=mini"]
    if task == "extraction":
        return ["train", *corpus, f"output={own}/extracted", f"refine.{names[0]}=0"]
    how = [f"refine.{names[0]}={steps}", f"refine.{names[1]}=100000"]
    return ["train", *corpus, f"output={own}/run", *how]


def _first_words(verb: str, own: Path) -> list[str]:
    """Return the words of a first use."""
    sides = ["model=mini", "source=few-en.txt", "target=few-ja.txt"]
    return {
        "encode": ["encode", "model=mini", "input=few-en.txt", f"output={own}/vectors.npy"],
        "mine": ["mine", *sides, f"output={own}/mined.tsv"],
        "score": ["mine", "model=mini", "mode=score", "input=few-pairs.tsv", f"output={own}/scored.tsv"],
        "phrases": ["phrases", "model=mini", "queries=queries.txt", "input=few-ja.txt", f"output={own}/hits.tsv"],
        "corpus": ["corpus", "corpus.paths=[few-pairs.tsv]", "pair=en-ja", f"output={own}/corpus"],
        "train": ["train", "pair=en-ja", f"output={own}/first"],
    }[verb]


def _first_use(words: list[str], checkout: Path, own: Path) -> tuple[float, float]:
    """Run a command with nothing compiled; returns seconds of the clock, and of the processor."""
    for made in ("compiled", "first"):
        shutil.rmtree(own / made, ignore_errors=True)
    ours = _BYTECODE | {"PYTHONPATH": str(checkout), "NUMBA_CACHE_DIR": str(own / "compiled"), "XSWE_PROGRESS": "0"}
    call = [sys.executable, "-m", "xswe", *words]
    two = sorted(os.sched_getaffinity(0))[:2]
    start, spent = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        call,
        cwd=own.parent,
        env=os.environ | ours | {"HF_HUB_OFFLINE": "1"},
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: os.sched_setaffinity(0, two),
    )
    clock, now = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise SystemExit(f"{' '.join(words)} with {checkout}:\n{done.stdout[-1000:]}{done.stderr[-2000:]}")
    return clock, now.ru_utime + now.ru_stime - spent.ru_utime - spent.ru_stime


def timed(task: str, checkout: Path, own: Path, steps: int) -> tuple[float, float]:
    """Run a task, whose output goes to a folder of its own; returns seconds of the clock, and of the processor."""
    own.mkdir(exist_ok=True)
    for made in ("corpus", "index", "extracted"):
        shutil.rmtree(own / made, ignore_errors=True)
    for name in ("mined.tsv", "kept.tsv", "distinct.txt", "found.tsv"):
        (own / name).unlink(missing_ok=True)
    if task in FIRST:
        return _first_use(words_of(task, checkout, own, steps), checkout, own)
    program = [_ENCODE, "en.txt", "ja.txt"]
    if task != "encode":
        program = [_VERB, *words_of(task, checkout, own, steps), "threads=1"]
    ours = _BYTECODE | {"PYTHONPATH": str(checkout), "XSWE_PROGRESS": "0", "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    call = [sys.executable, "-c", *program]
    done = subprocess.run(call, cwd=own.parent, env=os.environ | ours, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{task} with {checkout}:\n{done.stdout[-1000:]}{done.stderr[-2000:]}")
    clock, processor = done.stdout.split("took")[-1].split()[:2]
    return float(clock), float(processor)


def main(settings: dict[str, Any]) -> None:
    """Time the tasks, and print and write medians and ratios."""
    tasks, rounds, steps = chosen(settings["tasks"], "tasks", TASKS), settings["rounds"], settings["steps"]
    checkouts = [Path(settings[name]).resolve() for name in ("before", "after")]
    for checkout in checkouts:
        if not (checkout / "xswe" / "__init__.py").is_file():
            raise ConfigError(f"{checkout}: no checkout of this library")
    output = Path(settings["output"])
    found: dict[str, Any] = json.loads(output.read_text(encoding="utf-8")) if output.is_file() else {}
    found |= {"lines": settings["lines"], "steps": steps}
    with tempfile.TemporaryDirectory(dir=settings["work"] or None) as folder:
        work = Path(folder)
        prepare(work, settings["lines"])
        sides = list(zip(checkouts, (work / "before", work / "after"), strict=True))
        for task in tasks:
            for side in sides if task in WARM else ():
                timed(task, *side, steps - 1)  # compiles; of a run, makes the stages before refinement
            runs = [[timed(task, *side, steps + n) for side in sides] for n in range(rounds)]
            found[task] = {
                name: {
                    "before": median(before[k] for before, _ in runs),
                    "after": median(after[k] for _, after in runs),
                    "ratio": median(after[k] / before[k] for before, after in runs),
                }
                for k, name in enumerate(("clock", "processor"))
            } | {"rounds": rounds}
            output.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
            print(f"{task}: {found[task]['clock']['ratio']:.3f}", flush=True)
    columns = [(name, which) for name in ("clock", "processor") for which in ("before", "after", "ratio")]
    rows = [[task, *(f"{found[task][name][which]:.3f}" for name, which in columns)] for task in tasks]
    print(markdown(["", "before", "after", "ratio", "processor before", "after", "ratio"], rows))


if __name__ == "__main__":
    run_script(main, DEFAULTS, __doc__)
