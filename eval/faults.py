"""What becomes of work by shards when something breaks: killed workers and drivers, damaged and lost files, a full disk.

    python eval/faults.py times=20 [faults=worker,node,driver,damage,vanish,disk] [seed=0] output=eval/results/faults.json

Each time ``encode execution=ray`` runs on a Ray of two nodes with a processor each, and at a random moment one thing
breaks. Then the same command runs until it ends well. What is checked: the bytes are those of a run in one process, shards
that were done before are not done again (but for those that were damaged), and whatever is said to the user is one line.
"""

from __future__ import annotations

import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from settings import chosen, run_script

import xswe
from xswe.io.files import read_json, write_json
from xswe.io.files import resource as part_of

FAULTS = ("worker", "node", "driver", "damage", "vanish", "disk")
SETTINGS = {"times": 20, "faults": ",".join(FAULTS), "seed": 0, "output": ""}
SHARD = 200_000
NODE = {"num_cpus": 1, "object_store_memory": 100 << 20}


def command(source: Path, output: Path, address: str) -> list[str]:
    """Return the command that is given again and again."""
    how = ["execution=ray", f"execution.address={address}", f"execution.shard={SHARD}", "execution.workers=2"]
    return [sys.executable, "-m", "xswe", "encode", "model=mini", f"input={source}", f"output={output}", *how]


def side_cars(output: Path) -> dict[str, float]:
    """Return when each shard that is done was begun."""
    found = {}
    for path in Path(f"{output}.work").glob("encode-*/*[0-9].json"):
        try:
            found[path.name] = read_json(path)["begun"]
        except (OSError, ValueError, KeyError):
            continue
    return found


def workers(address: str) -> list[int]:
    """Return the processes of the workers that this cluster, and no other, has at work."""
    listed = subprocess.run(["ps", "-eo", "pid,ppid,args"], capture_output=True, text=True, check=True).stdout
    found = {int(line.split()[0]): line.split(None, 2)[1:] for line in listed.splitlines()[1:]}
    ours = {pid for pid, (_, what) in found.items() if "raylet" in what and address in what}
    return [pid for pid, (parent, what) in found.items() if what.startswith("ray::attempt") and int(parent) in ours]


def small_files() -> None:
    """Let no file grow as large as the output, as where no space is left."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (12_000_000, 12_000_000))


def once(fault: str, source: Path, expected: bytes, nodes: Any, chance: random.Random) -> dict[str, Any]:
    """Run, break something, and go on; returns what was seen."""
    address = nodes.address
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "a.npy"
        given = command(source, output, address)
        started = time.monotonic()
        limit = small_files if fault == "disk" else None  # of the driver, which joins the shards
        first = subprocess.Popen(given, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=limit)
        wanted = chance.randint(1, 6)
        while first.poll() is None and len(side_cars(output)) < wanted:
            time.sleep(0.02)
        before, broken = side_cars(output), set()
        hit = first.poll() is None
        if fault == "worker":
            found = workers(address)
            hit = bool(found)
            if hit:
                os.kill(chance.choice(found), signal.SIGKILL)
        elif fault == "node":
            nodes.remove_node(sorted(nodes.worker_nodes, key=id)[0], allow_graceful=False)
            nodes.add_node(**NODE)
        elif fault in ("driver", "damage", "vanish"):
            first.send_signal(signal.SIGKILL)
        said = first.communicate()[1].strip()
        if fault in ("damage", "vanish") and before:
            shards = sorted(Path(f"{output}.work").glob("encode-*/0*.npy"))
            doomed = chance.choice(shards)
            if fault == "vanish":
                doomed.unlink()
            else:
                data = bytearray(doomed.read_bytes())
                data[chance.randrange(len(data))] ^= 0xFF
                doomed.write_bytes(data)
            broken.add(f"{doomed.stem}.json")
        runs, kept = 1, side_cars(output)
        while not output.exists() and runs < 4:
            again = subprocess.run([*given], capture_output=True, text=True, check=False)
            runs, said = runs + 1, again.stderr.strip() or said
        after = first.returncode
        return {
            "fault": fault,
            "hit_while_at_work": hit,
            "shards_done_when_it_broke": len(before),
            "kept_for_the_next_run": len([name for name in kept if name not in broken]),
            "first_exit": after,
            "runs": runs,
            "same_bytes": output.exists() and output.read_bytes() == expected,
            "lines_said": len(said.splitlines()) if after not in (0, -9) else 0,
            "seconds": round(time.monotonic() - started, 1),
        }


def main(settings: dict[str, Any]) -> None:
    """Break things, and print and write what came of it."""
    from ray.cluster_utils import Cluster

    chance, faults = random.Random(settings["seed"]), chosen(settings["faults"], "faults", FAULTS)
    os.environ.update(RAY_USAGE_STATS_ENABLED="0", XSWE_PROGRESS="0")
    nodes = Cluster(initialize_head=True, head_node_args=NODE)
    nodes.add_node(**NODE)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        source, local = Path(folder) / "a.txt", Path(folder) / "a.npy"
        lines = (part_of("corpora") / "sample" / "sentences.tsv").read_text(encoding="utf-8").replace("\t", "\n")
        source.write_text(lines * 4, encoding="utf-8")
        xswe.encode_file(xswe.load("mini"), source, local, threads=1)
        for _ in range(settings["times"]):
            for fault in faults:
                rows.append(once(fault, source, local.read_bytes(), nodes, chance))
                print(rows[-1], flush=True)
    nodes.shutdown()
    good = sum(row["same_bytes"] for row in rows)
    print(f"{good} of {len(rows)} runs ended with the bytes of one process")
    if settings["output"]:
        write_json(settings["output"], {"settings": {"times": settings["times"], "seed": settings["seed"]}, "runs": rows})


if __name__ == "__main__":
    run_script(main, SETTINGS, __doc__)
