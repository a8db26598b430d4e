"""What becomes of every verb, in one process, when something breaks at a random moment.

    python -m eval.experiments.local_faults times=10 [verbs="encode;filter"] [faults="killed;flipped"] [seed=0]
        output=eval/results/local_faults.json

Each time a verb runs in a folder of its own and one thing happens: it is killed, ended or interrupted; the disk is full (a
small one in memory, which only root can mount) or may only be read; an input is written again, with other bytes of the same
size; it is killed and what it left is damaged, cut off or lost, or was left by other settings, by another version, or by a
machine whose clock is three hours behind; two processes do the same at once, with locks or where locks do nothing; the
system knows no locks; or the process stands still for a while. Then the same command runs until it ends well. What an
interrupt says of whether it goes on is compared with what is left.

A run is good where a command that ends well has left the bytes of one that nothing happened to (of an input that was
written again: of the one or the other, whole), where one that does not says so in a line that begins with ``xswe:``, and
where nothing is left at the end that an undisturbed run does not leave. A command that refuses what was damaged is counted;
it is given again after all but the inputs was removed. Checkpoints are written as often as they can be, so that there is
something to go on from. The processes are forks of this one, which has loaded and compiled all, so that a run takes a
fraction of a second; they share its models, too, so that most moments are those of a verb's own work.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import random
import shutil
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tqdm import tqdm

import xswe.__main__
import xswe.progress
import xswe.work.kept
from eval.experiments.faults import AMPLE, disk, used
from eval.experiments.shared_models import shared_models
from eval.settings import run_script
from xswe.corpus.cards import sample_sentences
from xswe.errors import ConfigError
from xswe.io.files import write_json
from xswe.io.results import table
from xswe.search import building, clusters, exact, numbers
from xswe.work.stage import Stage

SETTINGS: dict[str, Any] = {"times": 10, "verbs": "", "faults": "", "seed": 0, "output": ""}
_INTERRUPTS = {signal.SIGINT}
_PATIENCE = 60.0  # seconds that a command may take
_HOURS = 3 * 3600.0
Prepare = Callable[[], None]


@dataclass(frozen=True)
class Case:
    """A verb and what it is given.

    Attributes:
        words: the command.
        outputs: what it writes, by which two runs are compared; patterns within its folder.
        changed: the input that is written again.
        other: a setting that makes other bytes.
    """

    words: str
    outputs: tuple[str, ...]
    changed: str
    other: str

    def content(self, folder: Path) -> str:
        """Return what tells the outputs in a folder from others; "" where one of them is lacking."""
        found = [[path for path in sorted(folder.glob(pattern)) if path.is_file()] for pattern in self.outputs]
        if not all(found):
            return ""
        files = [path for paths in found for path in paths]
        told = [(path.relative_to(folder).as_posix(), hashlib.sha256(path.read_bytes()).hexdigest()) for path in files]
        return hashlib.sha256(repr(told).encode()).hexdigest()


_MINE = "mine model=mini source=en.txt target=de.txt output=o.tsv threads=1"
_SCORE = "mine mode=score model=mini input=pairs.tsv output=o.tsv threads=1"
_TRAIN = "train pair=en-de teacher=none pca.dim=32 refine.max_steps=6 refine.batch_size=64 threads=1 output=o"
_FEW = "bootstrap.rounds=9"
_TABLES = ("o/model/model.safetensors", "o/model/tokenizer.json")
CASES = {
    "encode": Case(
        "encode model=mini input=en.txt output=o.npy dtype=int8 threads=1", ("o*.npy",), "en.txt", "dtype=float16"
    ),
    "encode, a file a shard": Case(
        "encode model=mini input=en.txt output=o/*.npy execution.shard=20000 threads=1",
        ("o/*.npy",),
        "en.txt",
        "dtype=float16",
    ),
    "mine, exact": Case(_MINE, ("o.tsv",), "en.txt", "k=8"),
    "mine, clusters": Case(
        f"{_MINE} neighbours.method=clusters neighbours.clusters=8", ("o.tsv",), "en.txt", "neighbours.clusters=9"
    ),
    "mine, scored": Case(f"{_SCORE} score=ratio", ("o.tsv",), "pairs.tsv", "k=8"),
    "mine, negatives": Case(_SCORE.replace("score", "negatives"), ("o.tsv",), "pairs.tsv", "negatives=2"),
    "filter": Case("filter model=mini input=pairs.tsv output=o.tsv threads=1", ("o.tsv",), "pairs.tsv", "ratio=1.2"),
    "dedup": Case("dedup model=mini input=twice.txt output=o.txt threads=1", ("o.txt",), "twice.txt", "near=null"),
    "corpus": Case(
        "corpus pair=en-de corpus.paths=[pairs.tsv,more.tsv] output=o threads=1",
        ("o/*.npy",),
        "pairs.tsv",
        "corpus.max_characters=60",
    ),
    "phrases": Case(
        "phrases model=mini queries=terms.txt input=en.txt output=o.tsv threads=1", ("o.tsv",), "en.txt", "k=3"
    ),
    "terms": Case(  # without min_score phrases of random words would be sought as well, for seconds
        "phrases mode=terms model=mini queries=terms.txt input=more.tsv languages=[de,en] min_score=0 output=o.tsv "
        "threads=1",
        ("o.tsv",),
        "more.tsv",
        "k=3",
    ),
    "search": Case(
        "search model=mini input=en.txt queries=terms.txt index=o output=found.tsv threads=1",
        ("found.tsv", "o/*.npy"),
        "en.txt",
        "storage=int8",
    ),
    "align": Case(
        "align model=mini source=en.txt target=de.txt languages=[en,de] output=o.tsv threads=1",
        ("o.tsv",),
        "en.txt",
        "gap=0.2",
    ),
    "align, folders": Case(
        "align model=mini source=english target=german languages=[en,de] output=o/ threads=1",
        ("o/*",),
        "english/0.txt",
        "gap=0.2",
    ),
    "link": Case("link model=mini input=pairs.tsv output=o.txt", ("o.txt",), "pairs.tsv", "what=lexicon"),
    "split": Case("split input=en.txt language=en output=o.tsv", ("o.tsv",), "en.txt", "language=de"),
    "lexicon": Case(
        "lexicon model=mini source=words.en target=words.de output=o.tsv threads=1", ("o.tsv",), "words.en", "best=3"
    ),
    "train": Case(f"{_TRAIN} corpus.paths=more.tsv", _TABLES, "more.tsv", "pca.dim=16"),
    "train, words": Case(f"{_TRAIN} corpus.paths=pairs.tsv units=words", _TABLES[:1], "pairs.tsv", "pca.dim=16"),
    "evaluate": Case("evaluate model=mini tasks=[more.tsv] output=o.csv threads=1", ("o.csv",), "more.tsv", _FEW),
    "compare": Case("compare models=[mini] tasks=[more.tsv] output=o.csv threads=1", ("o.csv",), "more.tsv", _FEW),
    "report": Case("report mined=mined.tsv languages=[en,de] output=o.html", ("o.html",), "mined.tsv", "model=mini"),
    "ensemble": Case(
        "ensemble models=[mini,mini] weights=[1,2] output=o", ("o/*/*.safetensors", "o/config.json"), "", "weights=[1,3]"
    ),
    "export": Case("export model=mini format=word2vec output=o.vec keep=8000 dim=16", ("o.vec",), "", "dim=8"),
    "import": Case("import pair=en-de input=vectors.txt output=o", ("o/*.safetensors",), "vectors.txt", "limit=100"),
}
APART = {"serve": "writes nothing but its cache", "status": "writes nothing"}  # verbs that are not tried, and why


def write_inputs(folder: Path) -> None:
    """Write what the verbs read."""
    sides = sample_sentences()
    english, german = sides["en"][:600], sides["de"][:600]
    pairs = [f"{a}\t{b}" for a, b in zip(english, german, strict=True)]
    words = {
        code: sorted({word for text in sides[code] for word in text.split() if word.isalpha()}) for code in ("en", "de")
    }
    written = {
        "en.txt": english,
        "de.txt": german,
        "twice.txt": [text for text in english for _ in range(2)],
        "pairs.tsv": pairs,
        "more.tsv": pairs[::-1][:200],
        "mined.tsv": [f"{1.5 - row / 1000:.4f}\t{pair}" for row, pair in enumerate(pairs)],
        "terms.txt": ["library", "the train", "a small house"],
        "vectors.txt": [f"{word} {row % 7 + 1} {row % 5} 1" for row, word in enumerate(words["en"][:500])],
        "words.en": words["en"][:500],
        "words.de": words["de"][:500],
        **{f"english/{number}.txt": english[30 * number : 30 * number + 30] for number in range(2)},
        **{f"german/{number}.txt": german[30 * number : 30 * number + 30] for number in range(2)},
    }
    for name, lines in written.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def write_again(path: Path) -> None:
    """Give a file its lines in another order: other bytes of the same size."""
    lines = path.read_bytes().splitlines(keepends=True)
    with path.open("r+b") as stream:
        stream.write(b"".join(lines[1:] + lines[:1]))


def begin(words: Sequence[str], folder: Path, said: Path, prepare: Sequence[Prepare] = ()) -> int:
    """Give a command in a process of its own; what it says goes to a file."""
    signal.pthread_sigmask(signal.SIG_BLOCK, _INTERRUPTS)  # an interrupt waits until what is said goes to the file
    process = os.fork()
    if process:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _INTERRUPTS)
        return process
    status = 70
    try:
        os.chdir(folder)
        os.dup2(os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        tqdm.set_lock(threading.RLock())  # not that of all these processes, one of which may have been killed with it
        for change in prepare:
            change()
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _INTERRUPTS)
        status = xswe.__main__.main(list(words))
    except KeyboardInterrupt:  # before the command began
        print("xswe: interrupted before it began", file=sys.stderr)
        status = 130
    except SystemExit as end:
        status = int(end.code or 0)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)


def wait_for(process: int, said: Path) -> tuple[int, str]:
    """Wait for the end of a command; returns its status, and what it said but for notes."""
    deadline = time.monotonic() + _PATIENCE
    while not (found := os.waitpid(process, os.WNOHANG))[0]:
        if time.monotonic() > deadline:
            os.kill(process, signal.SIGKILL)
        time.sleep(0.002)
    lines = said.read_text(encoding="utf-8", errors="replace").splitlines() if said.exists() else []
    told = [line for line in lines if line.strip() and not line.startswith(("INFO ", "WARNING "))]
    return os.waitstatus_to_exitcode(found[1]), "\n".join(told)


def often() -> None:
    """Let checkpoints be written as often as they can be, all shards be kept, a search have many, and an index pieces."""
    xswe.progress._CHECKPOINT_SECONDS = xswe.work.kept.BRIEF = 0.0
    exact._TILE_ROWS, clusters._MAX_GROUP_PAIRS = 256, 1 << 13
    building._PIECE = numbers.NumbersJob.lines = 64


def behind() -> None:
    """Set the clock back."""
    ask, ask_ns = time.time, time.time_ns
    time.time = lambda: ask() - _HOURS
    time.time_ns = lambda: ask_ns() - int(_HOURS * 1e9)


def another_version() -> None:
    """Let the package be of another version."""
    for name, module in list(sys.modules.items()):
        if name.startswith("xswe") and hasattr(module, "__version__"):
            module.__version__ = "0.0.1"
    given = Stage.__init__.__defaults__ or ()
    Stage.__init__.__defaults__ = (*given[:-1], "0.0.1")


def no_locks() -> None:
    """Let the system know no locks, as some storages do not."""
    import fcntl

    def refuse(*_: Any) -> None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))

    fcntl.flock = refuse
    fcntl.lockf = refuse


def idle_locks() -> None:
    """Let locks do nothing, as where each machine has its own."""
    import fcntl

    fcntl.flock = lambda *_: None
    fcntl.lockf = lambda *_: None


@dataclass
class Whole:
    """What a run leaves that nothing happens to."""

    content: str
    changed: str  # of the input that was written again
    names: set[str]
    seconds: float
    bytes: int


@dataclass
class Trial:
    """One verb, one fault, once."""

    case: Case
    whole: Whole
    folder: Path
    given: Path  # with the inputs
    chance: random.Random
    row: dict[str, Any] = field(default_factory=lambda: {"hit": False, "problems": [], "refused": False, "runs": 0})

    @property
    def words(self) -> list[str]:
        """The command."""
        return self.case.words.split()

    @property
    def said(self) -> Path:
        """Where a process says what it has to say."""
        return self.folder.with_name(f"{self.folder.name}.said")

    def begin(self, *prepare: Prepare, more: Sequence[str] = ()) -> int:
        """Give the command."""
        self.row["runs"] += 1
        return begin([*self.words, *more], self.folder, self.said, [often, *prepare])

    def end(self, process: int, killed: bool = False) -> int:
        """Wait for it, and look at what it did."""
        status, told = wait_for(process, self.said)
        self.look(status, told, killed)
        return status

    def look(self, status: int, told: str, killed: bool, wanted: Sequence[str] = ()) -> None:
        """Note what is wrong with an end."""
        wanted = wanted or (self.whole.content,)
        if status == 0 and self.case.content(self.folder) not in wanted:
            self.row["problems"].append("ended well with other bytes")
        if status and not killed and (not told.startswith("xswe: ") or "Traceback" in told):
            self.row["problems"].append(f"ended with {status} and said: {told[-600:]}")
        if status and not killed:
            self.row["said"] = told[-200:]

    def pause(self, most: float = 1.0) -> None:
        """Wait for a random part of the time that a run takes."""
        time.sleep(self.chance.uniform(0, most * self.whole.seconds))

    def strike(self, process: int, number: int = signal.SIGKILL) -> None:
        """Send a signal at a random moment."""
        self.pause()
        self.row["hit"] |= os.waitid(os.P_PID, process, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, number)

    def killed(self, *prepare: Prepare, more: Sequence[str] = ()) -> None:
        """Run, and kill."""
        process = self.begin(*prepare, more=more)
        self.strike(process)
        wait_for(process, self.said)

    def left(self) -> list[Path]:
        """Return the files that a run has left, but for inputs."""
        inputs = {path.relative_to(self.given) for path in self.given.rglob("*")}
        found = (path for path in sorted(self.folder.rglob("*")) if path.is_file())
        return [path for path in found if path.relative_to(self.folder) not in inputs]

    def clear(self) -> None:
        """Remove all but the inputs."""
        for path in self.folder.iterdir():
            if not (self.given / path.name).exists():
                shutil.rmtree(path) if path.is_dir() else path.unlink()

    def finish(self, content: str = "") -> dict[str, Any]:
        """Give the command until it ends well."""
        content = content or self.whole.content
        for turn in range(3):
            status, told = wait_for(self.begin(), self.said)
            self.look(status, told, False, (content,))
            if not status:
                break
            self.row["refused"] = True
            if turn == 1:
                self.clear()
        else:
            self.row["problems"].append("does not end well any more")
        names = {path.name for path in self.folder.iterdir()}
        if extra := names - self.whole.names:
            self.row["problems"].append(f"left behind: {sorted(extra)}")
        return self.row


def _signalled(number: int) -> Callable[[Trial], dict[str, Any]]:
    def run(trial: Trial) -> dict[str, Any]:
        process = trial.begin()
        trial.strike(process, number)
        trial.end(process, killed=True)
        return trial.finish()

    return run


def _interrupted(trial: Trial) -> dict[str, Any]:
    process = trial.begin()
    trial.strike(process, signal.SIGINT)
    status, told = wait_for(process, trial.said)
    trial.look(status, told, False)
    if status and "goes on after" in told and not trial.left():
        trial.row["problems"].append(f"said: {told[-200:]}, and left nothing")
    return trial.finish()


def _stopped(trial: Trial) -> dict[str, Any]:
    process = trial.begin()
    trial.strike(process, signal.SIGSTOP)
    time.sleep(0.1)
    os.kill(process, signal.SIGCONT)
    trial.end(process)
    return trial.finish()


def _full(trial: Trial) -> dict[str, Any]:
    with disk(trial.folder, AMPLE) as mounted:
        shutil.copytree(trial.given, trial.folder, dirs_exist_ok=True)
        inputs = used(trial.folder)
        mounted(inputs + int((trial.whole.bytes - inputs) * trial.chance.uniform(0.02, 0.95)) // 4096 * 4096 + 4096)
        trial.row["hit"] = trial.end(trial.begin()) != 0
        mounted(AMPLE)
        return trial.finish()


def _read_only(trial: Trial) -> dict[str, Any]:
    with disk(trial.folder, AMPLE) as mounted:
        shutil.copytree(trial.given, trial.folder, dirs_exist_ok=True)
        mounted(AMPLE, "ro")
        trial.row["hit"] = trial.end(trial.begin()) != 0
        if not trial.row["hit"]:
            trial.row["problems"].append("ended well where nothing may be written")
        mounted(AMPLE, "rw")
        return trial.finish()


def _changed(trial: Trial) -> dict[str, Any]:
    if not trial.case.changed:
        return trial.finish()
    process = trial.begin()
    trial.pause()
    write_again(trial.folder / trial.case.changed)
    trial.row["hit"] = os.waitid(os.P_PID, process, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None
    status, told = wait_for(process, trial.said)
    trial.look(status, told, False, (trial.whole.content, trial.whole.changed))
    if status == 0:  # a later run may find its output there and the input newer
        trial.clear()
    return trial.finish(trial.whole.changed)


def _broken(how: Callable[[Path, random.Random], None]) -> Callable[[Trial], dict[str, Any]]:
    def run(trial: Trial) -> dict[str, Any]:
        trial.killed()
        if files := [path for path in trial.left() if path.stat().st_size]:
            how(doomed := trial.chance.choice(files), trial.chance)
            trial.row["broken"] = doomed.relative_to(trial.folder).as_posix()
        return trial.finish()

    return run


def _flip(path: Path, chance: random.Random) -> None:
    with path.open("r+b") as stream:
        place = chance.randrange(path.stat().st_size)
        stream.seek(place)
        byte = stream.read(1)[0]
        stream.seek(place)
        stream.write(bytes([byte ^ (1 << chance.randrange(8))]))


def _cut_off(path: Path, chance: random.Random) -> None:
    os.truncate(path, chance.randrange(path.stat().st_size))


def _other_settings(trial: Trial) -> dict[str, Any]:
    trial.killed(more=[trial.case.other])
    return trial.finish()


def _after(prepare: Prepare, later: bool = False) -> Callable[[Trial], dict[str, Any]]:
    def run(trial: Trial) -> dict[str, Any]:
        trial.killed(prepare)
        for path in trial.left() if later else ():
            os.utime(path, (time.time() + _HOURS, time.time() + _HOURS))
        return trial.finish()

    return run


def _with(prepare: Prepare) -> Callable[[Trial], dict[str, Any]]:
    def run(trial: Trial) -> dict[str, Any]:
        trial.row["hit"] = True
        trial.end(trial.begin(prepare))
        return trial.finish()

    return run


def _twice(*prepare: Prepare) -> Callable[[Trial], dict[str, Any]]:
    def run(trial: Trial) -> dict[str, Any]:
        first = trial.begin(*prepare)
        trial.pause(0.5)
        other = trial.folder.with_name(f"{trial.folder.name}.other")
        second = begin(trial.words, trial.folder, other, [often, *prepare])
        trial.row["hit"] = True
        ends = [wait_for(first, trial.said), wait_for(second, other)]
        for status, told in ends:
            trial.look(status, told, False)
        return trial.finish()

    return run


FAULTS: dict[str, Callable[[Trial], dict[str, Any]]] = {
    "killed": _signalled(signal.SIGKILL),
    "ended": _signalled(signal.SIGTERM),
    "interrupted": _interrupted,
    "stopped": _stopped,
    "disk full": _full,
    "read only": _read_only,
    "input changed": _changed,
    "flipped": _broken(_flip),
    "cut off": _broken(_cut_off),
    "lost": _broken(lambda path, _: path.unlink()),
    "other settings": _other_settings,
    "other version": _after(another_version),
    "other clock": _after(behind, later=True),
    "two at once": _twice(),
    "two without locks": _twice(idle_locks),
    "no locks": _with(no_locks),
}


def whole_of(case: Case, given: Path, room: Path, changes: bool) -> Whole:
    """Run a verb without a fault: in this process first, which loads and compiles what the others will use."""

    def fresh(name: str) -> Path:
        return Path(shutil.copytree(given, room / name))

    here, before = fresh("here"), Path.cwd()
    os.chdir(here)
    try:
        with contextlib.redirect_stderr(open(os.devnull, "w")), contextlib.redirect_stdout(sys.stderr):
            status = xswe.__main__.main(case.words.split())
    finally:
        os.chdir(before)
    if status:
        raise AssertionError(f"{case.words}: ended with {status}")
    contents = []
    for change in (False, True)[: 1 + changes]:
        folder = fresh(f"whole{int(change)}")
        if change and case.changed:
            write_again(folder / case.changed)
        started = time.monotonic()
        process = begin(case.words.split(), folder, room / "said", [often])
        status, told = wait_for(process, room / "said")
        seconds = time.monotonic() - started
        if status:
            raise AssertionError(f"{case.words}: {told}")
        contents.append(case.content(folder))
        names = {path.name for path in folder.iterdir()}
        most = sum(-(-path.stat().st_size // 4096) * 4096 for path in folder.rglob("*") if path.is_file())
    if not contents[0] or contents[0] != case.content(here):
        raise AssertionError(f"{case.words}: two runs differ")
    for path in room.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    return Whole(contents[0], contents[-1], names, seconds, most)


def trials(names: Sequence[str], faults: Sequence[str], times: int, seed: int) -> Iterator[dict[str, Any]]:
    """Go through verbs and faults; yields a row a trial."""
    os.environ |= {"XSWE_PROGRESS": "0", "OMP_NUM_THREADS": "1"}
    with tempfile.TemporaryDirectory() as temporary, shared_models():
        given, room = Path(temporary) / "given", Path(temporary) / "room"
        given.mkdir()
        room.mkdir()
        write_inputs(given)
        for name in names:
            case = CASES[name]
            whole = whole_of(case, given, room, "input changed" in faults and bool(case.changed))
            if (alive := threading.active_count()) > 1:
                print(f"{name}: {alive - 1} threads are left", file=sys.stderr)
            for fault in faults:
                chance = random.Random(f"{seed} {name} {fault}")
                for number in range(times):
                    folder = room / f"{number}"
                    mounted = fault in ("disk full", "read only")
                    folder.mkdir() if mounted else shutil.copytree(given, folder)
                    try:
                        row = FAULTS[fault](Trial(case, whole, folder, given, chance))
                    finally:
                        for path in room.iterdir():
                            shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink()
                    yield {"verb": name, "fault": fault, "number": number, **row}


def main(settings: dict[str, Any]) -> None:
    """Break things, print what came of it, and write it."""
    wanted = [name for name in CASES if not settings["verbs"] or name in str(settings["verbs"]).split(";")]
    faults = [name for name in FAULTS if not settings["faults"] or name in str(settings["faults"]).split(";")]
    if not wanted or not faults:
        raise ConfigError(f"verbs= of {'; '.join(CASES)}; faults= of {'; '.join(FAULTS)}")
    rows = []
    for row in trials(wanted, faults, settings["times"], settings["seed"]):
        rows.append(row)
        if row["problems"]:
            print(row, flush=True)
    good = Counter((row["verb"], row["fault"]) for row in rows if not row["problems"])
    print(table(["", *faults], [[name, *(f"{good[name, fault]}" for fault in faults)] for name in wanted]))
    print(f"{len(rows)} runs, {sum(good.values())} good; {sum(row['hit'] for row in rows)} hit while at work")
    if settings["output"]:
        write_json(settings["output"], {"runs": [{**row, "seed": settings["seed"]} for row in rows]})


if __name__ == "__main__":
    run_script(main, SETTINGS, __doc__)
