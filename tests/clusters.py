"""Work for shards, and one Ray for all tests that need one."""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from xswe.errors import InputError
from xswe.io.files import whole_file
from xswe.work.config import ExecutionConfig


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


def slices(count: int, **settings: Any) -> list[ExecutionConfig]:
    """The tasks of an array, the last first."""
    return [ExecutionConfig("array", index, count, **settings) for index in reversed(range(count))]


def damage(path: Path) -> None:
    """Change a byte of an array's file, not its size."""
    data, state = bytearray(path.read_bytes()), path.stat()
    data[131] ^= 0xFF  # behind the header: of a float32, its sign and exponent
    path.write_bytes(data)
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns + 1))  # clocks may tick slowly
