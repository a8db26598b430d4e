"""What Windows and macOS lack is not asked for: all modules are imported without it, and files are made as Windows allows.

Neither system is at hand where these tests are written. A process is deprived of the modules and functions that only
POSIX or Linux has, and its files can be renamed and removed only where nothing holds them open or mapped.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

BARE = """
import importlib, importlib.util, mmap, os, pathlib, pkgutil, signal, sys
import numba, numpy, scipy.sparse, tokenizers  # what they ask the system for is their own affair

for name in [name for name in sys.modules if name.partition(".")[0] == "xswe"]:
    del sys.modules[name]  # a Python that has imported all already imports the package again

for name in ("sklearn", "torch", "transformers", "sentence_transformers", "pyarrow.parquet", "uvicorn", "starlette"):
    try:
        importlib.import_module(name)
    except ImportError:
        pass
MODULES = "fcntl", "resource", "pwd", "grp", "termios", "tty", "pty", "syslog", "uvloop"
FUNCTIONS = ("pread", "pwrite", "preadv", "pwritev", "fork", "register_at_fork", "sched_getaffinity", "getuid", "geteuid",
    "fchmod", "getloadavg", "uname", "statvfs", "mkfifo", "killpg", "setsid", "posix_fadvise", "sysconf")
for name in MODULES:
    sys.modules[name] = None
for name in FUNCTIONS:
    if hasattr(os, name):
        delattr(os, name)
for owner, names in ((mmap, [n for n in dir(mmap) if n.startswith("MADV")]), (signal, ["SIGKILL", "SIGHUP", "SIGALRM"])):
    for name in names:
        delattr(owner, name)

import xswe

left_out = {"__main__"}
for module in pkgutil.walk_packages(xswe.__path__, "xswe."):
    if module.name.rpartition(".")[2] not in left_out:
        try:
            importlib.import_module(module.name)
        except ModuleNotFoundError as error:
            if error.name in MODULES or str(error.name).startswith("xswe"):
                raise
"""

# Windows neither renames nor removes what is open or mapped.
STRICT = """
import shutil
from xswe.io import files, locks

files.ON_WINDOWS = locks.ON_WINDOWS = True
shutil._use_fd_functions = False
holding = lambda: {os.path.realpath(f"/proc/self/fd/{one}") for one in os.listdir("/proc/self/fd")} | {
    line.split(maxsplit=5)[5].rstrip() for line in open("/proc/self/maps") if line.count("/")}

def guarded(function):
    def guard(*paths, **rest):
        held = holding()
        for path in map(os.path.realpath, paths):
            if any(one == path or one.startswith(path + os.sep) for one in held):
                raise PermissionError(13, "The process cannot access the file because it is being used", path)
        return function(*paths, **rest)
    return guard

for name in ("replace", "rename", "unlink", "remove"):
    setattr(os, name, guarded(getattr(os, name)))
"""

WORK = """
model, place = xswe.load("mini"), pathlib.Path.cwd()
english = ["The train is late.", "A cat sleeps on the roof.", "We buy bread.", "It rains."] * 3
german = ["Eine Katze schläft auf dem Dach.", "Wir kaufen Brot.", "Der Zug hat Verspätung.", "Es regnet."]
english = [f"{line} {k}" for k, line in enumerate(english)]
(place / "en").write_text("\\n".join(english), "utf-8")
(place / "de").write_text("\\n".join(german), "utf-8")
(place / "a.tsv").write_text("".join(f"{a}\\t{b}\\n" for a, b in zip(english, german * 3)), "utf-8")
for name, dtype in (("a.npy", "float32"), ("b.npy", "int8"), ("a.safetensors", "int8"), ("a.parquet", "float16")):
    if name != "a.parquet" or importlib.util.find_spec("pyarrow"):
        xswe.encode_file(model, "en", name, dtype=dtype, threads=2)
assert numpy.allclose(numpy.load("a.npy"), model.encode(english), atol=1e-6)
assert len(xswe.mine(model, english, german, threshold=None, threads=1)) == 4
xswe.mine(model, "en", "de", threshold=None, output="pairs.tsv", threads=1)
assert len(pathlib.Path("pairs.tsv").read_text("utf-8").splitlines()) == 4
xswe.filter(model, "a.tsv", output="clean.tsv", languages=("en", "de"), threads=1)
xswe.dedup(model, "en", output="fewer.txt", threads=1)
index = xswe.index(model, german)
assert index.search("bread", k=1)[0].text == german[1]
index.save("index")
index = xswe.index(model, german, folder="other")
assert index.search("bread", k=1)[0].text == german[1]
from xswe.__main__ import main
assert main(["corpus", "convert", "corpus.paths=[a.tsv]", "pair=en-de", "output=converted"]) == 0
assert main(["corpus", "convert", "corpus.paths=[a.tsv]", "pair=en-de", "output=converted"]) == 0
"""


def deprived(program: str, folder: Path, python: Path) -> str:
    """Return what a program writes that ends well, and after it "to the end"."""
    env = {**os.environ, "XSWE_PROGRESS": "0", "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "2"}
    env["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    done = subprocess.run(
        [python / "python", "-c", f"{program}\nprint('to the end')"], cwd=folder, env=env, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.mark.slow
def test_all_is_imported_and_works_without_what_only_posix_has(tmp_path, warm_python):
    strict = STRICT if os.path.isdir("/proc/self/fd") else ""
    assert deprived(BARE + strict + WORK, tmp_path, warm_python).endswith("to the end\n")
