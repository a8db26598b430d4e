"""A Python that has imported all already: processes for tests without a start of seconds each.

The server imports the packages, and loads the model that ships with them and uses it; each process is a fork of it. A
shell finds it as the command ``python`` of a folder, and it takes the arguments, the folder, the environment and the open
files of who asks. What a first import does, or misses, is for the tests that start a Python of their own.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import json
import os
import pkgutil
import runpy
import select
import signal
import socket
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

# What xswe imports where it is needed; those that are not installed are left out. All but the first take ten seconds, and
# only slow tests need them.
LIBRARIES = (
    "hydra.main",
    "matplotlib.pyplot",
    "scipy.stats",
    "sentence_transformers",
    "sklearn.linear_model",
    "sklearn.manifold",
    "torch",
    "transformers",
    *(
        f"xswe.{module}" for module in ("model.sentence_vectors", "model.st_module", "teacher.gte", "training.sentence_pca")
    ),  # which need them
)
# Begun without its site packages it takes a hundredth of a second.
CLIENT = """#!{python} -ISE
import json, os, socket, sys

with socket.socket(socket.AF_UNIX) as server:
    server.connect({place!r})
    asked = json.dumps([sys.argv[1:], os.getcwd(), dict(os.environ)]).encode()
    socket.send_fds(server, [len(asked).to_bytes(8, "big")], [0, 1, 2])
    server.sendall(asked)
    status = server.recv(4)
sys.exit(int.from_bytes(status, "big") if status else 70)
"""


@contextlib.contextmanager
def serving(folder: Path, libraries: Sequence[str] = LIBRARIES) -> Iterator[Path]:
    """A folder with a ``python`` that is warm; where processes cannot be forked safely, the one that runs the tests.

    Several processes may use one folder: the first starts the server, which ends when none of them is left.
    """
    if sys.platform != "linux":
        yield Path(sys.executable).parent
        return
    import fcntl

    folder.mkdir(exist_ok=True)
    with open(folder / "starting", "a") as starting, open(folder / "users", "a") as users:
        fcntl.flock(starting, fcntl.LOCK_EX)
        fcntl.flock(users, fcntl.LOCK_SH)
        if not (folder / "python").exists():
            start(folder, libraries)
        fcntl.flock(starting, fcntl.LOCK_UN)
        yield folder


VERB = "import sys; from xswe.__main__ import main; sys.exit(main(sys.argv[1:]))"


def kill_when(
    python: Path, words: Sequence[str], cwd: Path, seen: Callable[[], bool], code: str = VERB, given: bytes = b""
) -> bool:
    """Run a verb, or other code, in a process that is killed as soon as something is seen.

    Returns True if that was before its end; the standard input stays open until then.
    """
    code = f"import os; print(os.getpid(), flush=True)\n{code}"
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen([python / "python", "-c", code, *words], cwd=cwd, **pipes) as process:
        number, limit = int(process.stdout.readline()), time.monotonic() + 120
        process.stdin.write(given)
        process.stdin.flush()
        while not seen() and process.poll() is None and time.monotonic() < limit:
            time.sleep(0.001)
        with contextlib.suppress(ProcessLookupError):
            os.kill(number, signal.SIGKILL)
    return process.returncode in (-signal.SIGKILL, 128 + signal.SIGKILL)


def start(folder: Path, libraries: Sequence[str]) -> None:
    """Start the server of a folder."""
    python, place = folder / "python", folder / "server"
    env = {**os.environ, "HF_HUB_OFFLINE": "1", "MPLBACKEND": "agg", "XSWE_PROGRESS": "0", "PYTHONIOENCODING": "utf-8"}
    env["PYTHONPATH"] = os.pathsep.join(filter(None, [str(Path(__file__).parents[1]), env.get("PYTHONPATH", "")]))
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE}
    server = subprocess.Popen([sys.executable, __file__, str(place), *libraries], env=env, cwd=folder, **pipes)
    with server.stdout:
        assert server.stdout.readline() == b"ready\n"
    python.write_text(CLIENT.format(python=sys.executable, place=str(place)), "utf-8")
    python.chmod(0o755)


def is_over(folder: Path) -> bool:
    """Return True, and leave a folder to another server, if none of the processes is left that used this one."""
    import fcntl

    with open(folder / "starting", "a") as starting, open(folder / "users", "a") as users:
        fcntl.flock(starting, fcntl.LOCK_EX)
        try:
            fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        for name in ("python", "server"):
            (folder / name).unlink()
    return True


def load(kept: contextlib.ExitStack, libraries: Sequence[str]) -> None:
    """Import the package and what it may need, and keep its model for those who load it."""
    import xswe
    from tests.kernels import compile_once

    compile_once()
    names = [module.name for module in pkgutil.walk_packages(xswe.__path__, "xswe.")]
    for name in (*libraries, *(name for name in names if name not in LIBRARIES and not name.endswith("__main__"))):
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    with contextlib.suppress(ImportError):  # eval/ is not in every installation
        from eval.experiments.shared_models import shared_models

        kept.enter_context(shared_models())
    for name in [name for name in sys.modules if name.split(".")[0] == "eval"]:
        del sys.modules[name]  # a process may run a copy of it


def serve(place: str) -> list[str]:
    """Fork a process for each that asks, until nobody is left who might; returns in each of them, with its arguments."""
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(place)
        listening.listen()
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        while True:
            if not select.select([listening], [], [], 1.0)[0]:
                if is_over(Path(place).parent):
                    sys.exit()
                continue
            asking, _ = listening.accept()
            if not os.fork():
                break
            asking.close()
            with contextlib.suppress(ChildProcessError):
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
    if process := os.fork():  # this one waits for that one, and says how it ended
        ended = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        asking.sendall((ended if ended >= 0 else 128 - ended).to_bytes(4, "big"))
        os._exit(0)
    return take(asking)


def take(asking: socket.socket) -> list[str]:
    """Take the place of who asks; returns the arguments."""
    with asking:
        size, files, _, _ = socket.recv_fds(asking, 8, 3)
        with asking.makefile("rb") as stream:
            arguments, folder, environment = json.loads(stream.read(int.from_bytes(size, "big")))
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    os.chdir(folder)
    os.environ.clear()
    os.environ |= environment
    return arguments


def run(arguments: list[str]) -> None:
    """Run what a Python runs with these arguments."""
    how, *rest = arguments
    sys.path[0] = "" if how == "-c" else os.getcwd() if how == "-m" else str(Path(how).parent.resolve())
    if how == "-m":
        sys.argv = rest
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    elif how == "-c":
        sys.argv = ["-c", *rest[1:]]
        exec(compile(rest[0], "<string>", "exec"), {"__name__": "__main__"})
    else:
        sys.argv = arguments
        runpy.run_path(how, run_name="__main__")


def main(place: str, *libraries: str) -> None:
    """Import, serve, and in each process run what is asked for."""
    kept = contextlib.ExitStack()
    load(kept, libraries)
    gc.freeze()
    arguments, status = serve(place), 0
    try:
        run(arguments)
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
        if isinstance(end.code, str):
            sys.stderr.write(f"{end.code}\n")
    except BaseException:
        traceback.print_exc()
        status = 1
    with contextlib.suppress(OSError):
        atexit._run_exitfuncs()
        sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status & 255)  # threads of libraries, for which theirs would wait, are not in a fork


if __name__ == "__main__":
    main(*sys.argv[1:])
