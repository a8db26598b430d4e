"""How conversion, cutting in three, counting, the choice of contexts and an epoch scale with the size of a corpus.

    python -m eval.bench.corpus sizes=2,5,10,20 [phases=convert,split,…] [words=13] folder=/tmp/bench
        output=eval/results/corpus.json

makes, for each size in millions of pairs, a zip in the form of CCMatrix (two line-aligned members and one of scores, sorted
by score) from shuffled words of the en-de files under XSWE_DATA, half of the sentences of at most ``words`` words, and
measures each phase in a process of its own: seconds, pairs a second, peak memory (all of it, and the part that is not
mapped from files), bytes on the disk. ``kill=1`` kills each phase of the first size several times and compares what it
leaves in the end. The corpora are removed afterwards, and rows of other sizes that ``output`` has stay there.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable
from functools import partial
from operator import call
from pathlib import Path
from typing import Any

import numpy as np

from eval.bench.memory import memory, watched
from eval.settings import chosen, run_script
from xswe.bitext.kernels import copy_spans
from xswe.bitext.source import Source, find_pairs
from xswe.corpus.bitext import Bitext, CorpusConfig
from xswe.corpus.contexts import ContextConfig, choose_contexts
from xswe.corpus.convert import convert
from xswe.corpus.splits import split_rows
from xswe.io.files import file_digest, read_json, write_json
from xswe.io.parallel import available_threads, in_order
from xswe.io.ragged import Bags, Texts, bag_writer
from xswe.text.subwords import SubwordUnits
from xswe.text.tokenizers import load_tokenizer, train_subwords
from xswe.training.pairs import ParallelBags, distinct_rows

PAIR = ("en", "de")
PHASES = ("convert", "split", "count", "contexts", "epoch")
KEPT = {"convert": "converted", "count": "bags"}  # folders that phases write
BLOCK = 100_000
BATCH = 512
DEFAULTS: dict[str, Any] = {"sizes": "2,5,10,20", "folder": "bench-corpus", "tokenizer": "", "pieces": 32_000, "threads": 0}
DEFAULTS |= {"output": "corpus.json", "kill": 0, "phase": "", "phases": ",".join(PHASES), "words": 13.0}


def words_of(files: list[Source], most: int = 2_000_000) -> list[Texts]:
    """Return the running words of both sides, each with a blank after it: drawn at random they keep their frequencies."""
    sides: tuple[list[str], list[str]] = ([], [])
    for file in files:
        bitext = _converted(file)
        for words, side in zip(sides, (bitext.source, bitext.target), strict=True):
            for text in side:
                words.extend(f"{word} " for word in text.split())
                if len(words) > most:
                    break
    return [Texts.of(words) for words in sides]


def _converted(file: Source) -> Bitext:
    with tempfile.TemporaryDirectory() as folder:  # whose files, mapped, stay as long as they are in use
        return convert([file], PAIR, CorpusConfig(on_error="skip"), Path(folder) / "bitext")[0]


def sentences(words: Texts, seed: list[int], count: int, middle: float) -> bytes:
    """Return ``count`` lines of shuffled words, half of at most ``middle``; the last hundredth repeats the first."""
    generator, repeats = np.random.default_rng(seed), count // 100
    count -= repeats
    lengths = np.clip(generator.lognormal(np.log(middle), 0.6, count), 2, 80).astype(np.int64)
    rows = generator.integers(0, len(words), lengths.sum())
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(words.sizes[rows])])
    out = np.empty(offsets[-1], np.uint8)
    copy_spans(words.data, words.offsets[rows], offsets, out)
    out[offsets[np.cumsum(lengths)] - 1] = 0x0A
    repeated = offsets[lengths[:repeats].sum()]
    return out.tobytes() + out[:repeated].tobytes()


def generate(path: Path, pairs: int, words: list[Texts], middle: float) -> None:
    """Write a corpus in the form of CCMatrix's zip, member by member."""
    block = min(BLOCK, pairs)
    blocks = max(1, pairs // block)
    stem = "-".join(sorted(PAIR))
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for side, code in enumerate(PAIR):
            with archive.open(f"CCMatrix.{stem}.{code}", "w", force_zip64=True) as member:
                for number in range(blocks):
                    member.write(sentences(words[side], [number, side], block, middle))
        with archive.open(f"CCMatrix.{stem}.scores", "w", force_zip64=True) as member:
            total = blocks * block
            for start in range(0, total, BLOCK):
                place = np.arange(start, min(start + BLOCK, total))
                member.write("".join(f"{score:.7f}\n" for score in 1.25 - 0.19 * place / total).encode())


def phase_convert(folder: Path, threads: int, _: Path) -> dict[str, Any]:
    """Convert the zip; pairs read."""
    files = find_pairs([folder / "corpus.zip"], PAIR)
    _, report = convert(files, PAIR, CorpusConfig(on_error="skip"), folder / "converted", threads=threads)
    return {"pairs": report.read, "kept": report.kept, "bytes": _size(folder / "converted")}


def phase_split(folder: Path, _: int, __: Path) -> dict[str, Any]:
    """Cut the corpus in three."""
    bitext = Bitext.open(folder / "converted", PAIR)
    rows = split_rows(bitext, CorpusConfig(), 0)
    training, seen = 0, hashlib.sha256(rows.development.tobytes() + rows.held_out.tobytes())
    for block in rows.training.blocks():
        training += len(block)
        seen.update(block.tobytes())
    return {"pairs": len(bitext), "training": training, "digest": seen.hexdigest()}


def phase_count(folder: Path, threads: int, tokenizer: Path) -> dict[str, Any]:
    """Look every text up and write its bag; count the units."""
    bitext = Bitext.open(folder / "converted", PAIR)
    units = SubwordUnits(load_tokenizer(tokenizer), "subwords", PAIR)
    (folder / "bags").mkdir(exist_ok=True)
    counts = np.zeros(len(units.tokens), np.int64)
    for name, side in (("source", bitext.source), ("target", bitext.target)):
        jobs = (partial(units.bags, side[start : start + 8192]) for start in range(0, len(side), 8192))
        with bag_writer(folder / "bags", name, len(counts)) as out:
            for bags in in_order(call, jobs, threads):
                counts += bags.counts(len(counts))
                out.append(bags.ids, bags.offsets)
                side.release()
    np.save(folder / "bags" / "counts.npy", counts)
    return {"pairs": len(bitext), "units": int(counts.sum()), "bytes": _size(folder / "bags")}


def phase_contexts(folder: Path, _: int, __: Path) -> dict[str, Any]:
    """Choose up to 100 contexts a unit among the distinct sentences of the source side."""
    bags = Bags.open(folder / "bags", "source")
    distinct = distinct_rows(bags)
    size = len(np.load(folder / "bags" / "counts.npy"))
    chosen = choose_contexts(bags, size, ContextConfig(), among=distinct)
    digest = hashlib.sha256(chosen.sentences.tobytes() + chosen.units.tobytes()).hexdigest()
    return {"pairs": len(bags), "sentences": len(chosen.sentences), "contexts": len(chosen.units), "digest": digest}


def phase_epoch(folder: Path, _: int, __: Path) -> dict[str, Any]:
    """Draw every pair once, in random batches, as the refinement does."""
    bitext = ParallelBags(Bags.open(folder / "bags", "source"), Bags.open(folder / "bags", "target"))
    order = np.random.default_rng(0).permutation(len(bitext))
    units, seen = 0, hashlib.sha256()
    for start in range(0, len(order), BATCH):
        ids = bitext.batch(order[start : start + BATCH]).ids
        seen.update(ids[:8].tobytes())  # of each batch only the first, for hashing is no part of what is measured
        units += len(ids)
    return {"pairs": len(bitext), "units": units, "digest": seen.hexdigest()}


RUN: dict[str, Callable[[Path, int, Path], dict[str, Any]]] = {
    "convert": phase_convert,
    "split": phase_split,
    "count": phase_count,
    "contexts": phase_contexts,
    "epoch": phase_epoch,
}


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.iterdir())


def measure(phase: str, folder: Path, threads: int, tokenizer: Path) -> dict[str, Any]:
    """Run a phase in this process and measure it."""
    with watched() as own:
        begun, used = time.monotonic(), time.process_time()
        found = RUN[phase](folder, threads, tokenizer)
        seconds, used = time.monotonic() - begun, time.process_time() - used
    return {
        **found,
        "seconds": round(seconds, 2),
        "core_seconds": round(used, 2),
        "pairs_per_second": round(found["pairs"] / seconds),
        "pairs_per_core_second": round(found["pairs"] / max(used, 1e-9)),
        "peak_mib": memory("VmHWM") >> 20,
        "peak_anonymous_mib": own[0] >> 20,
    }


def command_of(phase: str, folder: Path, threads: int, tokenizer: Path) -> list[str]:
    """Return the command line of a phase."""
    words = [f"phase={phase}", f"folder={folder}", f"threads={threads}", f"tokenizer={tokenizer}"]
    return [sys.executable, "-m", "eval.bench.corpus", *words]


def in_process_of_its_own(phase: str, folder: Path, threads: int, tokenizer: Path) -> dict[str, Any]:
    """Run a phase as its own process, so that its peak memory is its own."""
    command = command_of(phase, folder, threads, tokenizer)
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def kills(folder: Path, threads: int, tokenizer: Path, rows: list[dict[str, object]]) -> dict[str, object]:
    """Kill each phase at several moments, let it end, and compare what it leaves with what an undisturbed one left."""
    report: dict[str, object] = {}
    for row in rows:
        phase = str(row["phase"])
        command = command_of(phase, folder, threads, tokenizer)
        undisturbed = left_by(folder, row)
        if phase in KEPT:
            shutil.rmtree(folder / KEPT[phase])
        killed = 0
        for share in (0.2, 0.5, 0.8):
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
            time.sleep(share * (2.0 + float(str(row["seconds"]))))  # two seconds to start, about
            process.send_signal(signal.SIGKILL)
            killed += process.wait() == -signal.SIGKILL
        again = {"phase": phase, **in_process_of_its_own(phase, folder, threads, tokenizer)}
        report[phase] = {"killed": killed, "identical": left_by(folder, again) == undisturbed}
    return report


def left_by(folder: Path, row: dict[str, object]) -> object:
    """Return digests of the files that a phase wrote, or of what it found."""
    phase = str(row["phase"])
    if phase not in KEPT:
        return row["digest"]
    return {path.name: file_digest(path) for path in (folder / KEPT[phase]).glob("*.npy")}


def main(settings: dict[str, Any]) -> None:
    """Measure, print a table and write the figures."""
    place, threads = Path(settings["folder"]), settings["threads"] or available_threads()
    tokenizer = Path(settings["tokenizer"] or place / "tokenizer.json")
    if settings["phase"]:  # of a process that this script has started
        print(json.dumps(measure(settings["phase"], place, threads, tokenizer)))
        return
    words = words_of(find_pairs([Path(os.environ["XSWE_DATA"]) / "train" / "en-de"], PAIR))
    place.mkdir(parents=True, exist_ok=True)
    if not settings["tokenizer"]:
        sample = (line for side in (0, 1) for line in sentences(words[side], [0, side], 30_000, 13.0).decode().splitlines())
        train_subwords(sample, PAIR, settings["pieces"], threads).save(str(tokenizer))
    phases, sizes, output = (
        chosen(settings["phases"], "phases", PHASES),
        settings["sizes"].split(","),
        Path(settings["output"]),
    )
    before = read_json(output) if output.is_file() else {"rows": [], "killed": {}}
    rows: list[dict[str, object]] = [row for row in before["rows"] if f"{row['millions']:g}" not in sizes]
    killed: dict[str, object] = {} if settings["kill"] else before["killed"]
    for size in map(float, sizes):
        folder = place / f"{size:g}"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        generate(folder / "corpus.zip", int(size * 1e6), words, settings["words"])
        zipped = (folder / "corpus.zip").stat().st_size
        for phase in phases:
            found = in_process_of_its_own(phase, folder, threads, tokenizer)
            rows.append({"phase": phase, "millions": size, "words": settings["words"], "zip_bytes": zipped, **found})
            print(json.dumps(rows[-1]), flush=True)
        if settings["kill"] and not killed:
            killed = kills(folder, threads, tokenizer, rows[-len(phases) :])
            print(json.dumps(killed), flush=True)
        shutil.rmtree(folder)
    if not settings["tokenizer"]:
        tokenizer.unlink()
    write_json(output, {"threads": threads, "rows": rows, "killed": killed})


if __name__ == "__main__":
    run_script(main, DEFAULTS, __doc__)
