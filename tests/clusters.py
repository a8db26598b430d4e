"""Work for shards, each executor in this process, and one real Ray for all tests that need one."""

from __future__ import annotations

import errno
import itertools
import os
import pickle
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pytest

from xswe.errors import InputError, Unfinished
from xswe.io.files import whole_file
from xswe.work.config import HOSTS, ExecutionConfig
from xswe.work.stage import Advancing, Job


@dataclass(frozen=True)
class Squares:
    """Write the square of a shard's number; what a file in ``folder`` says goes wrong with some."""

    folder: Path
    heavy: bool = False
    on_card = False

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
            if kind == "deadly":
                trouble.unlink()
                os.kill(os.getpid(), signal.SIGKILL)
            if kind == "full":
                raise OSError(errno.ENOSPC, "No space left on device", str(output))
            if kind == "full, says numpy":
                raise OSError("8 requested and 4 written")
            raise InputError("a.txt", "not UTF-8", "convert it", 7)
        with whole_file(output) as temporary:
            temporary.write_text(str(shard**2))
        return {"lines": 1}

    def files(self, output: Path) -> list[Path]:
        return [output]


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


class RayHere:
    """A Ray of four processors and some cards in this process: what is waited for is done then, the last call first.

    It notes what workers are promised (``needs``), what is put there, and what is given to calls.
    """

    exceptions = SimpleNamespace(RayError=LookupError, RayTaskError=KeyError)
    numbers: ClassVar[Iterator[int]] = itertools.count()  # workers keep what they have opened by the reference

    def __init__(self, cards: int = 0) -> None:
        self.cards, self.joined = cards, False
        self.needs, self.there, self.given = dict[str, Any](), dict[Put, bytes](), list[tuple]()

    def init(self, **_: Any) -> None:
        self.joined = True

    def shutdown(self) -> None:
        self.joined = False

    def is_initialized(self) -> bool:
        return self.joined

    def cluster_resources(self) -> dict[str, float]:
        return {"CPU": 4, "GPU": self.cards}

    def put(self, value: Any) -> Put:
        put = Put(next(self.numbers))
        self.there[put] = pickle.dumps(value)
        return put

    def get(self, what: Any) -> Any:
        return pickle.loads(self.there[what]) if isinstance(what, Put) else what()

    def remote(self, **needs: Any) -> Callable[[Any], Any]:
        """Return a decorator of functions that are called elsewhere, and of classes, one of which each worker keeps."""
        self.needs |= needs
        return lambda done: SimpleNamespace(remote=partial(self._actor if isinstance(done, type) else self._call, done))

    def _call(self, done: Callable[..., Any], *given: Any) -> Callable[[], Any]:
        self.given.append(given)
        return partial(done, *given)

    def _actor(self, kind: type, *given: Any) -> Any:
        opened: list[Any] = []

        def do(shard: int) -> Any:
            if not opened:
                opened.append(kind(*map(self.get, given)))
            return opened[0].do(shard)

        return SimpleNamespace(do=SimpleNamespace(remote=partial(self._call, do)))

    def wait(self, calls: list[Any], num_returns: int) -> tuple[list[Any], list[Any]]:
        return calls[-num_returns:], calls[:-num_returns]

    def kill(self, actor: Any) -> None:
        """Do nothing: there is no process."""

    def cancel(self, call: Any, force: bool) -> None:
        """Do nothing: what is not waited for is not done."""


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
    """How tests run an executor: tasks, which together do all, and fixtures of the cluster that its workers are on."""

    tasks: list[ExecutionConfig]
    here: str = ""  # in this process
    real: str = ""  # for slow tests


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
        if host.has_workers
    ),
]


@dataclass(frozen=True)
class AnyExecutor:
    """An executor that does a verb's work, whatever it takes."""

    kind: str
    tasks: list[ExecutionConfig]

    def __call__(self, work: Callable[[ExecutionConfig], Any], **settings: Any) -> Any:
        """Let each task begin the work, again where it waits for the others, and return what the first finds that ends."""
        tasks = [replace(task, **settings) for task in self.tasks]
        for task in tasks * 9:
            with suppress(Unfinished):
                return work(task)
        raise AssertionError(f"{self.kind} does not end")


@pytest.fixture(params=_EVERY)
def any_executor(request: pytest.FixtureRequest) -> AnyExecutor:
    kind, where = request.param
    run = RUNS.get(kind)
    if run is None or (HOSTS[kind].has_workers and not (run.here and run.real)):
        needed = "its tasks" + ", and both fixtures of a cluster" * HOSTS[kind].has_workers
        pytest.fail(f"no test can run execution={kind}: RUNS of tests/clusters.py must give {needed}")
    if fixture := getattr(run, where):
        request.getfixturevalue(fixture)
    return AnyExecutor(kind, run.tasks)
