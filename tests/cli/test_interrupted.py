"""Ctrl-C: what is said of where the same command goes on is so, of every verb that keeps something and of some that do not.

A process runs a verb and stops at a place in the library, told by a function and how often it is called; there it waits
for the signal. The same command is then given again, without a stop, and must do only the rest, or all.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
from typing import NamedTuple

import pytest

from xswe.work import kept

# Checkpoints are written as often as they can be, a search has several shards, and an index is built in several pieces.
# Calls are counted of the function that does the work.
PROGRAM = """
import faulthandler, importlib, json, os, signal, sys, time
import xswe.progress, xswe.search.building, xswe.search.exact, xswe.work.kept
from xswe.__main__ import main

stop, times, work, *arguments = json.loads(sys.argv[1])
xswe.progress._CHECKPOINT_SECONDS = xswe.work.kept.BRIEF = 0.0
xswe.search.exact._TILE_ROWS, xswe.search.building._PIECE = 1024, 16_384
faulthandler.dump_traceback_later(120, exit=True)  # rather than to wait for ever
counts, signals = dict.fromkeys(filter(None, (stop, work)), 0), []

def interrupt(*given):
    signals.append(given[0])
    signal.default_int_handler(*given)

def watch(name):
    module, _, path = name.partition(":")
    *names, attribute = path.split(".")
    owner = importlib.import_module(module)
    for part in names:
        owner = getattr(owner, part)
    ask = getattr(owner, attribute)

    def watched(*given, **more):
        counts[name] += 1
        if name == stop and counts[name] == times:
            print(os.getpid(), flush=True)
            while not signals:  # of an Event this thread could hold the lock when it is interrupted
                time.sleep(0.01)
        return ask(*given, **more)

    setattr(owner, attribute, watched)

signal.signal(signal.SIGINT, interrupt)
for name in counts:
    watch(name)
status = main(arguments)
print(json.dumps(counts.get(work, 0)), file=sys.stderr)
sys.exit(status)
"""


class Case(NamedTuple):
    """What is run, at which call of a function it is interrupted, and what is said.

    Then the same command is given again, and ``work`` is called as often as ``rest`` says; not where there is none.
    """

    words: str
    stop: str
    times: int
    said: str
    work: str = ""
    rest: int = 0


NOTHING = "nothing was kept: the same command starts over"
ENCODE = "encode model=mini input=long.txt output=v.npy threads=1"
ARRAY = " execution=array execution.index=0 execution.count=1 execution.shard=1000000"
WRITE = "xswe.model.vector_files:VectorWriter.append"
PART = "xswe.model.encode_file:EncodeJob.part"
MINE = "mine model=mini source=en.txt target=de.txt output=pairs.tsv threads=1"
READ, STRIP = "xswe.mining.side:_write", "xswe.search.exact:sweep"
DEDUP = "dedup input=en.txt output=unique.txt threads=1"
LETTERS = "xswe.mining.dedup:_by_letters"
FILTER, COMPARED = (
    "filter model=mini input=pairs.tsv output=clean.tsv threads=1",
    "xswe.mining.verdicts:PairFilter.compared",
)
PHRASES = "phrases model=mini queries=terms.txt input=long.txt output=hits.tsv threads=1"
SEARCH = "search model=mini input=long.txt queries=terms.txt index=made threads=1"
NUMBERS = "xswe.search.numbers:numbers_of"
PASSAGES = "xswe.phrases.search:Search.add"
TRAIN = (
    "train pair=en-de teacher=none pca.dim=64 refine.max_steps=9 refine.batch_size=64 corpus.limit=400 threads=1 output=run"
)
CORPUS = "corpus corpus.paths=[pairs.tsv,more.tsv] pair=en-de output=made threads=1"
FOLDERS = "align model=mini source=english target=german output=beads/ languages=[en,de] threads=1"
CLEAN, ALIGN = "xswe.corpus.cleaning:Cleaner.__call__", "xswe.alignment.documents:align"
STEP, PREPARE = "xswe.training.refine:Trainer.step", "xswe.training.corpus_stage:prepare"
CASES = {
    "encode, some lines": Case(ENCODE, WRITE, 3, "goes on after 8,192 lines", WRITE, 15),
    "encode, no line": Case(ENCODE, WRITE, 1, NOTHING, WRITE, 17),
    "encode by shards": Case(ENCODE + ARRAY, PART, 9, "goes on after 2 of 6 shards of encode", PART, 12),
    "mine, one side read": Case(MINE, READ, 2, "goes on after the step source", READ, 1),
    "mine, in the search": Case(MINE, STRIP, 1, "goes on after the step target", READ, 0),
    "mine, a shard sought": Case(MINE, STRIP, 6, "goes on after 1 of 4 shards of neighbours", STRIP, 10),
    "mine, nothing read": Case(MINE, READ, 1, NOTHING),
    "dedup, lines read": Case(DEDUP, STRIP, 1, "goes on after the step lines", LETTERS, 0),
    "dedup, nothing read": Case(DEDUP, LETTERS, 1, NOTHING),
    "filter, all compared": Case(FILTER, "xswe.mining.filter:_second_pass", 1, "goes on after 1,717 records", COMPARED, 0),
    "filter, nothing compared": Case(FILTER, COMPARED, 1, NOTHING),
    "phrases, some passages": Case(PHRASES, PASSAGES, 3, "goes on after 53,982 passages", PASSAGES, 1),
    "phrases, no passage": Case(PHRASES, PASSAGES, 1, NOTHING),
    "search, an index half built": Case(SEARCH, NUMBERS, 6, "goes on after 32,768 sentences", NUMBERS, 5),
    "search, an index begun": Case(SEARCH, NUMBERS, 2, NOTHING, NUMBERS, 9),
    "train, in the refinement": Case(TRAIN, STEP, 4, "goes on after step 3 of the refinement", STEP, 6),
    "train, before it": Case(TRAIN, STEP, 1, "goes on after the stage bags", PREPARE, 0),
    "corpus, one file read": Case(CORPUS, CLEAN, 2, "goes on after 1,717 pairs of en-de", CLEAN, 1),
    "align, one pair done": Case(FOLDERS, ALIGN, 2, "goes on after 1 of 2 pairs of documents", ALIGN, 1),
    "link": Case("link model=mini input=pairs.tsv output=links.txt", "xswe.alignment.words:_linked", 1, NOTHING),
    "split": Case("split input=en.txt language=en output=s.txt", "xswe.text.sentences:split_sentences", 9, NOTHING),
    "compare": Case("compare models=[mini] tasks=[pairs.tsv]", "xswe.evaluation.tasks:score_vectors", 1, NOTHING),
}


@pytest.fixture
def folder(tmp_path, sample):
    for code in ("en", "de"):
        (tmp_path / f"{code}.txt").write_text("".join(f"{text}\n" for text in sample[code]), "utf-8")
    pairs = zip(sample["en"], sample["de"], strict=True)
    (tmp_path / "pairs.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in pairs), "utf-8")
    (tmp_path / "long.txt").write_text("".join(f"{text}\n" for text in sample["en"]) * 40, "utf-8")
    (tmp_path / "more.tsv").write_text("A cat.\tEine Katze.\n", "utf-8")
    for language, texts in (("english", sample["en"]), ("german", sample["de"])):
        (tmp_path / language).mkdir()
        for number in range(2):
            lines = texts[20 * number : 20 * number + 20]
            (tmp_path / language / f"{number}.txt").write_text("".join(f"{text}\n" for text in lines), "utf-8")
    (tmp_path / "terms.txt").write_text("train\nlibrary\n", "utf-8")
    return tmp_path


def run(python, case, folder, stop, given=b""):
    """Run a verb in a process of its own, to its end or until it is interrupted; returns status, words and calls."""
    told = json.dumps([case.stop if stop else "", case.times, case.work, *case.words.split()])
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen([python / "python", "-c", PROGRAM, told], cwd=folder, **pipes) as process:
        process.stdin.write(given)
        process.stdin.close()
        if stop:
            number = process.stdout.readline()
            assert number, process.stderr.read().decode()
            os.kill(int(number), signal.SIGINT)
        *said, calls = process.stderr.read().decode().splitlines()
    assert calls.isdigit(), "\n".join(said)
    return process.returncode, "\n".join(said), int(calls)


# A file that grows, steps, and nothing that is kept; the others take six times as long.
QUICK = {"encode, some lines", "search, an index half built", "split"}


@pytest.mark.parametrize(
    "case",
    [pytest.param(case, id=name, marks=[] if name in QUICK else [pytest.mark.slow]) for name, case in CASES.items()],
)
def test_what_ctrl_c_says_is_so(case, folder, warm_python):
    status, said, _ = run(warm_python, case, folder, stop=True)
    assert status == 130, said
    (told,) = (line for line in said.splitlines() if line.startswith("xswe: interrupted; "))
    assert case.said in told
    assert case.said != NOTHING or told == f"xswe: interrupted; {NOTHING}"
    if case.work:
        status, said, calls = run(warm_python, case, folder, stop=False)
        assert (status, calls) == (0, case.rest), said


@pytest.mark.parametrize(
    "words", [MINE.replace("en.txt", "-"), pytest.param(DEDUP.replace("en.txt", "-"), marks=pytest.mark.slow)]
)
def test_nothing_is_gone_on_from_that_was_read_from_standard_input(words, folder, warm_python):
    case = Case(words, STRIP, 1, NOTHING)
    status, said, _ = run(warm_python, case, folder, True, (folder / "en.txt").read_bytes())
    assert (status, said.splitlines()[-1]) == (130, f"xswe: interrupted; {NOTHING}")


def test_what_is_gone_is_not_told(tmp_path):
    kept.begin()
    assert kept.going_on() == ""
    for name in ("a", "b"):
        (tmp_path / name).touch()
        kept.keep(tmp_path / name, f"after {name}")
    assert kept.going_on() == "after b"
    (tmp_path / "b").unlink()
    assert kept.going_on() == "after a"
    kept.unrepeatable()
    assert kept.going_on() == ""
    kept.begin()


def test_notes_of_files_that_are_gone_are_forgotten(tmp_path):
    kept.begin()
    (tmp_path / "here").touch()
    kept.keep(tmp_path / "here", "after here")
    for number in range(5000):
        kept.keep(tmp_path / str(number), "after nothing")
        kept.unrepeatable()
    assert len(kept._kept) < 2000
    assert len(kept._streams) == 1
    assert tmp_path / "here" in kept._kept
    kept.begin()
