"""Work for shards, each executor in this process, and one real Ray for all tests that need one."""

from __future__ import annotations

import errno
import fcntl
import os
import pickle
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar, NamedTuple
from uuid import uuid4

import numpy as np
import pytest

from xswe.errors import InputError, Unfinished
from xswe.io.files import whole_file
from xswe.io.parallel import available_threads
from xswe.work.config import HOSTS, ExecutionConfig
from xswe.work.plan import TextPlan
from xswe.work.stage import Advancing, Job, Stage


class Unreadable(Exception):
    """An error that is pickled, but cannot be read again."""

    def __init__(self, what: str, which: int) -> None:
        super().__init__(f"{what} {which}")


BUGS = {
    "bug": ZeroDivisionError("planted"),
    "value": ValueError("planted"),
    "bug whose error cannot be read": Unreadable("planted", 5),
}


class WorkerDied(Exception):
    """What a shard raises in this process that would have killed a worker elsewhere."""


@dataclass(frozen=True)
class Squares:
    """Write the square of a shard's number; what a file in ``folder`` says goes wrong with some."""

    folder: Path
    heavy: bool = False
    on_card: bool = False
    home: int = field(default_factory=os.getpid)

    def open(self) -> str:
        return "opened"

    def run(self, opened: str, shard: int, output: Path) -> dict:
        assert opened == "opened"
        with (self.folder / "runs").open("a") as log:
            log.write(f"{shard}\n")
        trouble = self.folder / f"trouble-{shard}"
        if trouble.exists():
            kind = trouble.read_text()
            if kind == "passing":
                trouble.unlink()
                raise OSError(errno.EIO, "an error in passing")
            if kind in ("deadly", "always deadly"):
                if kind == "deadly":
                    trouble.unlink()
                if os.getpid() == self.home:
                    raise WorkerDied("it died here")
                os.kill(os.getpid(), signal.SIGKILL)
            if kind == "slow" and os.getpid() != self.home:
                time.sleep(1.5)
            if kind == "endless" and os.getpid() != self.home:
                time.sleep(600)
            if kind in BUGS:
                raise BUGS[kind]
            if kind == "full":
                raise OSError(errno.ENOSPC, "No space left on device", str(output))
            if kind == "full, says numpy":
                raise OSError("8 requested and 4 written")
            if kind == "bad line":
                raise InputError("a.txt", "not UTF-8", "convert it", 7)
        with whole_file(output) as temporary:
            temporary.write_text(str(shard**2))
        return {"lines": 1}

    def files(self, output: Path) -> list[Path]:
        return [output]


@dataclass(frozen=True)
class Threads(Squares):
    """Count the threads that a worker uses."""

    def run(self, opened: str, shard: int, output: Path) -> dict:
        super().run(opened, shard, output)
        return {"lines": available_threads()}


@dataclass(frozen=True)
class Locked(Squares):
    """The same, and each worker has a lock as long as it lives."""

    def open(self) -> Any:
        stream = (self.folder / f"worker-{uuid4()}").open("w")
        fcntl.flock(stream, fcntl.LOCK_EX)
        return stream

    def run(self, opened: Any, shard: int, output: Path) -> dict:
        assert not opened.closed
        return super().run("opened", shard, output)


def workers_in(folder: Path) -> tuple[int, int]:
    """How many workers opened a `Locked`, and how many of them live."""
    paths, living = [*folder.glob("worker-*")], 0
    for path in paths:
        with path.open() as stream:
            try:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                living += 1
    return len(paths), living


def stage_in(folder: Path, count: int = 7, identity: str = "one", heavy: bool = False, kind: type = Squares) -> Stage:
    stage = Stage(folder / "squares", "squares", count, ".txt", kind(folder, heavy), identity)
    stage.begin()
    return stage


def made(stage: Stage) -> list[str]:
    return [stage.path(shard).read_text() for shard in range(stage.count)]


def runs(folder: Path) -> list[int]:
    return sorted(in_order(folder))


def in_order(folder: Path) -> list[int]:
    log = folder / "runs"
    found = list(map(int, log.read_text().split())) if log.exists() else []
    log.unlink(missing_ok=True)
    return found


SQUARES = [str(n**2) for n in range(7)]


@dataclass(frozen=True)
class Rows(Job):
    """Arrays of a row a shard; every shard that is computed leaves its number in a log."""

    log: Path
    fails: int = -1

    def open(self) -> None:
        """Open nothing."""

    def compute(self, opened: Advancing | None, shard: int) -> tuple[dict[str, np.ndarray], dict]:
        if shard == self.fails:
            raise InputError("in.txt", "damaged", "mend it")
        if opened is not None:
            opened.advance(6)
        with self.log.open("a") as stream:
            stream.write(f"{shard}\n")
        return {"row": np.full(3, shard)}, {"lines": 3}


@dataclass(frozen=True)
class Planned(Job):
    """A job that has its plan with it, and knows how often it was sent."""

    plan: TextPlan
    sent: ClassVar[list[int]] = []

    def __getstate__(self) -> dict[str, Any]:
        self.sent.append(1)
        return self.__dict__

    def open(self) -> str:
        return "opened"

    def compute(self, opened: str, shard: int) -> tuple[dict[str, np.ndarray], dict]:
        return {"row": np.full(1, shard)}, {}


@pytest.fixture(scope="session")
def ray_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    ray = pytest.importorskip("ray", reason="ray is not installed")
    before = os.environ.get("HOME")
    os.environ["HOME"] = str(tmp_path_factory.mktemp("home"))  # where Ray writes its token
    os.environ["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    small = {"object_store_memory": 200 * 2**20, "include_dashboard": False, "log_to_driver": False}
    ray.init(address="local", num_cpus=2, **small)
    yield ray
    ray.shutdown()
    if before is not None:
        os.environ["HOME"] = before


class Put(NamedTuple):
    """A reference to what was put into a store."""

    number: int


class Raised(WorkerDied):
    """What a Ray says of a call that raised an error."""

    def as_instanceof_cause(self) -> BaseException | None:
        return self.__cause__


class Actor:
    """A worker."""

    def __init__(self, make: Callable[[], Any], call: Callable[..., Any]) -> None:
        self.make, self.worker, self.dead = make, None, False
        self.do = SimpleNamespace(remote=partial(call, self._do))

    def _do(self, shard: int) -> Any:
        if self.dead:
            raise WorkerDied("it is dead")
        self.worker = self.worker or self.make()
        try:
            return self.worker.do(shard)
        except WorkerDied:
            self.end()
            raise

    def end(self) -> None:
        self.worker, self.dead = None, True


class RayHere:
    """A Ray in this process, see `Run`: a call is done when it is waited for, the last first."""

    exceptions = SimpleNamespace(RayError=WorkerDied, RayTaskError=Raised)

    def __init__(self) -> None:
        self.cards, self.joined, self.asked, self.address = 0, False, (0.0, 0.0), ""
        self.silent: tuple[str, ...] = ()
        self.there, self.actors, self.pending = dict[Put, bytes](), list[Actor](), list[Any]()

    def init(self, address: str, **_: Any) -> None:
        assert not self.joined
        if address in self.silent:
            raise ConnectionError("timed out")
        self.joined, self.address = True, address

    def shutdown(self) -> None:
        self.joined = False

    def is_initialized(self) -> bool:
        return self.joined

    def cluster_resources(self) -> dict[str, float]:
        assert self.joined
        return {"CPU": 4, "GPU": self.cards}

    def put(self, value: Any) -> Put:
        put = Put(len(self.there))
        self.there[put] = pickle.dumps(value)
        return put

    def get(self, what: Any) -> Any:
        if isinstance(what, Put):
            return pickle.loads(self.there[what])
        self.pending.remove(what)
        try:
            return what()
        except WorkerDied:
            raise
        except Exception as error:
            raise Raised(str(error)) from error

    def remote(self, **needs: Any) -> Callable[[Any], Any]:
        """Return a decorator of classes, one of which each worker keeps."""
        self.asked = needs["num_cpus"], needs.get("num_gpus", 0.0)
        return lambda kind: SimpleNamespace(remote=partial(self._actor, kind))

    def _call(self, done: Callable[..., Any], *given: Any) -> Callable[[], Any]:
        self.pending.append(call := partial(done, *pickle.loads(pickle.dumps(given))))
        return call

    def _actor(self, kind: type, put: Put) -> Actor:
        self.actors.append(actor := Actor(lambda: kind(self.get(put)), self._call))
        assert len(self.actors) <= 4 / self.asked[0], "one would never get a place"
        return actor

    def wait(self, calls: list[Any], num_returns: int) -> tuple[list[Any], list[Any]]:
        return calls[-num_returns:], calls[:-num_returns]

    def kill(self, actor: Actor) -> None:
        self.actors.remove(actor)
        actor.end()

    def finish(self) -> None:
        while self.pending:
            with suppress(WorkerDied):
                self.get(self.pending[0])


@pytest.fixture
def ray_here(monkeypatch: pytest.MonkeyPatch) -> RayHere:
    monkeypatch.setitem(sys.modules, "ray", there := RayHere())
    return there


def slices(count: int, **settings: Any) -> list[ExecutionConfig]:
    """The tasks of an array, the last first."""
    return [ExecutionConfig("array", index, count, **settings) for index in reversed(range(count))]


def damage(path: Path) -> None:
    """Change a byte of an array's file, not its size."""
    data, state = bytearray(path.read_bytes()), path.stat()
    data[131] ^= 0xFF  # behind the header: of a float32, its sign and exponent
    path.write_bytes(data)
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns + 1))  # clocks may tick slowly


class Run(NamedTuple):
    """How tests run an executor: tasks, which together do all, and fixtures of the cluster that its workers are on.

    A cluster without a library needs no fixture if it is this machine; if it is reached by a command, it needs
    ``here``, which imitates it. Of one with a library there are two. That in this process has four processors and
    ``cards`` graphics cards, may be joined once at a time, and reports that a worker died where `WorkerDied` is raised.
    ``asked`` has the numbers of both that a worker was last promised, ``address`` where it was joined, ``silent`` the
    addresses where none answers; ``finish()`` does what was submitted and neither done nor cancelled. What workers are
    given it pickles.
    """

    tasks: list[ExecutionConfig]
    here: str = ""  # in this process
    real: str = ""  # of two processors, for slow tests


RUNS = {
    "local": Run([ExecutionConfig()]),
    "array": Run(slices(3)),
    "ray": Run([ExecutionConfig("ray")], "ray_here", "ray_cluster"),
}
_EVERY = [
    *(pytest.param((kind, "here"), id=kind) for kind in HOSTS),
    *(
        pytest.param((kind, "real"), id=f"a real {kind}", marks=pytest.mark.slow)
        for kind, host in HOSTS.items()
        if host.library
    ),
]


@dataclass(frozen=True)
class AnyExecutor:
    """An executor that does a verb's work, whatever it takes."""

    kind: str
    tasks: list[ExecutionConfig]
    here: bool = True  # in this process
    cluster: Any = None  # what its fixture yields

    @property
    def is_imitated(self) -> bool:
        return self.here and bool(HOSTS[self.kind].library)

    def takes(self, *settings: str) -> None:
        """Skip the test if the executor does not look at some settings."""
        if missing := {*settings} - {*HOSTS[self.kind].settings}:
            pytest.skip(f"execution={self.kind} has no {', '.join(sorted(missing))}")

    def finish(self) -> None:
        """Wait until all is done that was submitted and not cancelled."""
        if self.is_imitated:
            self.cluster.finish()
        else:
            time.sleep(4.0)

    def __call__(self, work: Callable[[ExecutionConfig], Any], **settings: Any) -> Any:
        """Let each task begin the work, again where it waits for the others, and return what the first finds that ends."""
        tasks = [replace(task, **settings) for task in self.tasks]
        for task in tasks * 9:
            with suppress(Unfinished):
                return work(task)
        raise AssertionError(f"{self.kind} does not end")


def executor(request: pytest.FixtureRequest) -> AnyExecutor:
    """The executor of a parameter, and the cluster that it needs."""
    kind, where = request.param
    host = HOSTS[kind]
    run = RUNS.get(kind) or Run([ExecutionConfig(kind)] if host.has_workers and not host.library else [])
    if not run.tasks or (host.library and not (run.here and run.real)):
        needed = "its tasks" + ", and both fixtures of a cluster" * bool(host.library)
        pytest.fail(f"no test can run execution={kind}: RUNS of tests/clusters.py must give {needed}")
    fixture = getattr(run, where)
    return AnyExecutor(kind, run.tasks, where == "here", request.getfixturevalue(fixture) if fixture else None)


any_executor = pytest.fixture(executor, params=_EVERY, name="any_executor")
_CLUSTERS = [one for one in _EVERY if HOSTS[one.values[0][0]].has_workers]
any_cluster = pytest.fixture(executor, params=_CLUSTERS, name="any_cluster")
cluster_here = pytest.fixture(executor, params=[one for one in _CLUSTERS if not one.marks], name="cluster_here")
