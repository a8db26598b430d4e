"""Golden bytes: the digests of what the documented commands write, to tell a change of the code from a change of results.

    python -m eval.report.golden output=golden.json [jobs=quickstart,pairs,encode,mine,phrases,corpus] [work=runs/golden]
    python -m eval.report.golden check=golden.json [jobs=…] [work=…]

Runs each command as a user would, on one thread, and writes (or compares) the SHA-256 of every file that counts. ``pairs``
trains on 40,000 pairs and needs ``XSWE_DATA``, as ``mine``, ``phrases`` and ``corpus`` do. Of a model's ``config.json`` all
counts but the record of the run's settings, which every new setting is added to. Digests hold for one machine and
one set of libraries: record them on the machine on which they are checked. With a3820a1 taken back
(the lone mark), ``pairs`` gave the weights that v0.1 gives on the same machine, byte for byte. Eight minutes on two cores.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from eval.settings import DATA, chosen, run_script
from xswe.errors import ConfigError

JOBS = ("quickstart", "pairs", "encode", "mine", "phrases", "corpus")
DEFAULTS: dict[str, Any] = {"output": "", "check": "", "jobs": ",".join(JOBS), "work": "runs/golden"}
MODEL_FILES = ("config.json", "model.safetensors", "tokenizer.json", "modules.json")


def texts(work: Path, name: str, column: int, most: int) -> Path:
    """Write one side of the WMT 2023 development bitext as a plain file."""
    path = work / name
    lines = (DATA / "dev" / "wmt23.en-ja.tsv").read_text(encoding="utf-8").splitlines()[:most]
    path.write_text("".join(line.split("\t")[column] + "\n" for line in lines), encoding="utf-8")
    return path


def command(job: str, work: Path) -> tuple[list[str], list[Path]]:
    """Return the command line of a job, and the files it leaves."""
    out = work / job
    if job == "quickstart":
        return ["train", f"output={out}", "seed=0"], [out / "model" / name for name in MODEL_FILES]
    if job == "pairs":
        paths = f"corpus.paths=[{DATA}/train/en-ja]"
        settings = ["pair=en-ja", "corpus=local", paths, "corpus.limit=40000", "teacher=mini", f"output={out}", "seed=0"]
        return ["train", *settings, "refine.max_steps=300"], [out / "model" / name for name in MODEL_FILES]
    if job == "corpus":
        table = DATA / "train" / "en-zh" / "tatoeba.tsv.gz"
        return ["corpus", f"corpus.paths=[{table}]", "pair=en-zh", f"output={out}"], [out]
    source, target = texts(work, f"{job}.en.txt", 0, 2074), texts(work, f"{job}.ja.txt", 1, 2074)
    if job == "encode":
        return ["encode", "model=mini", f"input={target}", f"output={out}.npy"], [work / f"{job}.npy"]
    if job == "mine":
        return ["mine", "model=mini", f"source={source}", f"target={target}", f"output={out}.tsv"], [work / "mine.tsv"]
    queries = texts(work, "phrases.queries.txt", 0, 100)
    return ["phrases", "model=mini", f"queries={queries}", f"input={target}", f"output={out}.tsv"], [work / "phrases.tsv"]


def digests(job: str, work: Path) -> dict[str, str]:
    """Run a job and return the digests of its files; of a folder, those of its arrays."""
    asked, files = command(job, work)
    environment = os.environ | {"XSWE_PROGRESS": "0", "HF_HUB_OFFLINE": "1"}
    subprocess.run([sys.executable, "-m", "xswe", *asked, "threads=1"], check=True, env=environment)
    found = [path for file in files for path in (sorted(file.rglob("*.npy")) if file.is_dir() else [file])]
    return {str(path.relative_to(work)): hashlib.sha256(_content(path)).hexdigest() for path in found}


def _content(path: Path) -> bytes:
    """Return what counts of a file."""
    data = path.read_bytes()
    if path.name != "config.json":
        return data
    return json.dumps({name: value for name, value in json.loads(data).items() if name != "settings"}).encode()


def main(settings: dict[str, Any]) -> None:
    """Record the digests, or compare them."""
    jobs, work = chosen(settings["jobs"], "jobs", JOBS), Path(settings["work"]).resolve()
    if bool(settings["output"]) == bool(settings["check"]):
        raise ConfigError("give output=FILE to record, or check=FILE to compare")
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    made = {job: digests(job, work) for job in jobs}
    if settings["output"]:
        Path(settings["output"]).write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")
        return
    known = json.loads(Path(settings["check"]).read_text(encoding="utf-8"))
    wrong = [
        name for job in jobs for name in sorted({*made[job], *known[job]}) if made[job].get(name) != known[job].get(name)
    ]
    print(f"{sum(map(len, made.values()))} files, {len(wrong)} differ" + "".join(f"\n  {name}" for name in wrong))
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    run_script(main, DEFAULTS, __doc__)
