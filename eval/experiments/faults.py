"""What becomes of work by shards when something breaks: killed workers and drivers, damaged and lost files, a full disk.

    python -m eval.experiments.faults times=20 [verb=encode]
        [faults=worker,node,driver,damage,vanish,disk,objects,busy] [seed=0] output=eval/results/faults.json

Each time ``encode`` (or ``mine``, ``phrases``) runs with ``execution=ray`` on a Ray of two nodes with a processor each, and
at a random moment one thing breaks: a worker, a node or the driver is killed; a shard's file is damaged or lost; the disk
is full; Ray's store of objects is full; or (``encode`` only) the text is in a storage of this machine that answers every
third question with 503. Then the same command runs until it ends well. What is checked: the bytes are those of a run in
one process, shards that were done before are not done again (but for those that were damaged), and whatever is said to
the user is one line. What ``output`` holds of other verbs and seeds stays.
"""

from __future__ import annotations

import glob
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, replace
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path
from typing import Any

from eval.settings import chosen, run_script
from xswe.errors import ConfigError
from xswe.io.files import read_json, write_json
from xswe.io.files import resource as part_of

FAULTS = ("worker", "node", "driver", "damage", "vanish", "disk", "objects", "busy")
SETTINGS = {"times": 20, "verb": "encode", "faults": ",".join(FAULTS), "seed": 0, "output": ""}
SHARD = 200_000
OBJECTS = 100 << 20
NODE = {"num_cpus": 1, "object_store_memory": OBJECTS}


@dataclass(frozen=True)
class Case:
    """A verb and what it is given.

    Attributes:
        words: of the command, but for where it is done.
        name: of the output.
        full: bytes that a file may have where the disk is full: fewer than the output, and more than a shard.
    """

    words: tuple[str, ...]
    name: str
    full: int

    def command(self, output: Path, *how: str) -> list[str]:
        """Return the command that is given again and again."""
        return [sys.executable, "-m", "xswe", *self.words, "threads=1", f"output={output}", *how]


def cases(place: Path) -> dict[str, Case]:
    """Write what the verbs read, and return them."""
    rows = (part_of("corpora") / "sample" / "sentences.tsv").read_text(encoding="utf-8").splitlines()
    sides = list(zip(*(row.split("\t") for row in rows), strict=True))[:2]
    for name, texts, copies in (("a.txt", sum(sides, ()), 8), ("en.txt", sides[0], 4), ("de.txt", sides[1], 4)):
        lines = [f"{text} {copy}\n" for copy in range(copies) for text in texts]
        (place / name).write_text("".join(lines), encoding="utf-8")
    (place / "queries.txt").write_text("".join(f"{text}\n" for text in sides[0][:20]), encoding="utf-8")
    encode = ("encode", "model=mini", f"input={place / 'a.txt'}")
    clusters = ("neighbours.method=clusters", "neighbours.clusters=40", "storage=int8", "filters.duplicates=false")
    mine = ("mine", "model=mini", f"source={place / 'en.txt'}", f"target={place / 'de.txt'}", *clusters)
    phrases = ("phrases", "model=mini", f"queries={place / 'queries.txt'}", f"passages={place / 'a.txt'}")
    return {
        "encode": Case(encode, "a.npy", 12_000_000),
        "mine": Case(mine, "a.tsv", 1_000_000),
        "phrases": Case(phrases, "a.tsv", 10_000),
    }


class Busy(BaseHTTPRequestHandler):
    """A storage that has too much to do: every third question is answered with 503."""

    protocol_version = "HTTP/1.1"
    asked = count(1)

    def __init__(self, folder: Path, *given: Any) -> None:
        self._folder = folder
        super().__init__(*given)

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def do_HEAD(self) -> None:
        """Answer as to a GET, without the text."""
        self.do_GET()

    def do_GET(self) -> None:
        """Give a file, or the span of it that is asked for."""
        data = (self._folder / Path(self.path).name).read_bytes()
        low, _, high = self.headers.get("Range", "bytes=0-").removeprefix("bytes=").partition("-")
        begin, end = int(low), min(int(high or len(data)), len(data) - 1)
        refused = next(self.asked) % 3 == 0
        body = b"" if refused else data[begin : end + 1]
        self.send_response(503 if refused else 206 if "Range" in self.headers else 200)
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("Content-Length", str(len(body)))
        if not refused and "Range" in self.headers:
            self.send_header("Content-Range", f"bytes {begin}-{end}/{len(data)}")
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)


def side_cars(output: Path) -> dict[str, float]:
    """Return when each shard that is done was begun."""
    found = {}
    for path in glob.glob(f"{glob.escape(str(output))}.work/**/*[0-9].json", recursive=True):  # folders may just be going
        try:
            found[path] = read_json(path)["begun"]
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return found


def workers(address: str) -> list[int]:
    """Return the processes of the workers that this cluster, and no other, has at work."""
    listed = subprocess.run(["ps", "-eo", "pid,ppid,args"], capture_output=True, text=True, check=True).stdout
    found = {int(line.split()[0]): line.split(None, 2)[1:] for line in listed.splitlines()[1:]}
    ours = {pid for pid, (_, what) in found.items() if "raylet" in what and address in what}
    return [pid for pid, (parent, what) in found.items() if what.startswith("ray::attempt") and int(parent) in ours]


def full_objects(address: str, until: threading.Event) -> None:
    """Fill Ray's store of objects, until the run is over."""
    script = f"import ray,sys; ray.init(address={address!r}, log_to_driver=False); held=[]\n"
    script += f"for _ in range({OBJECTS >> 20}): held.append(ray.put(b'x' * (1 << 20)))\nprint('full', flush=True)\ninput()"
    words = [sys.executable, "-c", script]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as filler:
        until.wait()
        filler.kill()


def broken_file(stage_files: list[Path], fault: str, chance: random.Random) -> Path:
    """Damage one of some files, or remove it."""
    doomed = chance.choice(stage_files)
    if fault == "vanish":
        doomed.unlink()
    else:
        data = bytearray(doomed.read_bytes())
        data[chance.randrange(len(data))] ^= 0xFF
        doomed.write_bytes(data)
    return doomed


def files_of(cars: dict[str, float]) -> list[Path]:
    """Return the files of shards that are done."""
    named = [(Path(car).parent, read_json(car)["files"]) for car in cars]
    return sorted(folder / name for folder, files in named for name, size, *_ in files if size)


def once(fault: str, case: Case, expected: bytes, nodes: Any, chance: random.Random) -> dict[str, Any]:
    """Run, break something, and go on; returns what was seen."""
    address = nodes.address
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / case.name
        how = ["execution=ray", f"execution.address={address}", f"execution.shard={SHARD}", "execution.workers=2"]
        given = case.command(output, *how)
        started, over = time.monotonic(), threading.Event()
        small = partial(resource.setrlimit, resource.RLIMIT_FSIZE, (case.full, case.full))
        limit = small if fault == "disk" else None  # of the driver, which joins the shards
        filler = threading.Thread(target=full_objects, args=(address, over), daemon=True)
        if fault == "objects":
            filler.start()
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
        after, runs, kept = first.returncode, 1, side_cars(output)
        if fault in ("damage", "vanish") and kept:
            broken.add(str(broken_file(files_of(kept), fault, chance)))
        while not output.exists() and runs < 4:
            again = subprocess.run(given, capture_output=True, text=True, check=False)
            runs, said = runs + 1, again.stderr.strip() or said
        over.set()
        if fault == "objects":
            filler.join()
        return {
            "verb": case.words[0],
            "fault": fault,
            "hit_while_at_work": hit,
            "shards_done_when_it_broke": len(before),
            "kept_for_the_next_run": len(kept) - len(broken),
            "first_exit": after,
            "runs": runs,
            "same_bytes": output.exists() and output.read_bytes() == expected,
            "lines_said": len(said.splitlines()) if after not in (0, -9) else 0,
            "seconds": round(time.monotonic() - started, 1),
        }


def main(settings: dict[str, Any]) -> None:
    """Break things, and print and write what came of it."""
    from ray.cluster_utils import Cluster

    faults, verb, seed = chosen(settings["faults"], "faults", FAULTS), settings["verb"], settings["seed"]
    chance, rows = random.Random(seed), []
    if settings["output"] and Path(settings["output"]).is_file():
        rows = [row for row in read_json(settings["output"])["runs"] if (row["verb"], row["seed"]) != (verb, seed)]
    os.environ.update(RAY_USAGE_STATS_ENABLED="0", XSWE_PROGRESS="0")
    nodes = Cluster(initialize_head=True, head_node_args=NODE)
    nodes.add_node(**NODE)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        known = cases(place)
        if verb not in known:
            raise ConfigError(f"verb={verb}: choose from {', '.join(known)}")
        case, local = known[verb], place / f"local-{known[verb].name}"
        subprocess.run(case.command(local), check=True, stdout=subprocess.DEVNULL)
        store = ThreadingHTTPServer(("127.0.0.1", 0), partial(Busy, place))  # type: ignore[arg-type]
        threading.Thread(target=store.serve_forever, daemon=True).start()
        remote = f"input=http://127.0.0.1:{store.server_port}/a.txt"
        busy = replace(case, words=(*case.words[:2], remote))
        for _ in range(settings["times"]):
            for fault in faults:
                if fault == "busy" and verb != "encode":
                    continue
                row = once(fault, busy if fault == "busy" else case, local.read_bytes(), nodes, chance)
                rows.append({**row, "seed": seed})
                print(rows[-1], flush=True)
                if settings["output"]:
                    write_json(settings["output"], {"runs": rows})
        store.shutdown()
    nodes.shutdown()
    good = sum(row["same_bytes"] for row in rows)
    print(f"{good} of {len(rows)} runs ended with the bytes of one process")


if __name__ == "__main__":
    run_script(main, SETTINGS, __doc__)
