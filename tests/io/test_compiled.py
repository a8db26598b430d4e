"""Compiled functions are kept in a private place where neither the package nor the user's folder can be written to."""

from __future__ import annotations

import importlib
import multiprocessing
import os
import shutil
import stat
import subprocess
import sys
import time
from pathlib import Path

import numba
import pytest

import xswe
from xswe.io import numba_cache

STEPS = """
import os, xswe
from xswe.bitext.kernels import hash_texts
from xswe.io.compiler import start_compiler
start_compiler()
print(xswe.__file__, os.environ.get("NUMBA_CACHE_DIR"))
"""
DOUBLED = """from numba import njit


@njit(cache=True)
def doubled(number):
    return 2 * number
"""
SUMMED = """from typing import NamedTuple

from numba import njit


class Sides(NamedTuple):
    left: int
    right: int


@njit(cache=True)
def total(sides):
    return sides.left + sides.right
"""
pytestmark = pytest.mark.skipif(not hasattr(os, "getuid"), reason="other systems give every user a folder")


@pytest.fixture
def sealed(tmp_path):
    """The package and a home in which not even root can make folders: files stand in their places."""
    source, copy = Path(xswe.__file__).parent, tmp_path / "installed" / "xswe"
    shutil.copytree(source, copy, ignore=shutil.ignore_patterns("__pycache__", "pretrained"))
    for folder in {file.parent for file in copy.rglob("*.py")}:
        (folder / "__pycache__").touch()
    (tmp_path / "home").touch()
    (tmp_path / "tmp").mkdir()
    return tmp_path


def run(folder, **more):
    hidden = ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME", "IPYTHONDIR")
    env = {name: value for name, value in os.environ.items() if name not in hidden}
    env |= {"HOME": str(folder / "home"), "TMPDIR": str(folder / "tmp"), "PYTHONPATH": str(folder / "installed"), **more}
    done = subprocess.run([sys.executable, "-c", STEPS], capture_output=True, text=True, env=env, cwd=folder)
    assert done.returncode == 0, done.stderr
    where, cache = done.stdout.split()
    assert where == str(folder / "installed" / "xswe" / "__init__.py")
    return cache


def test_a_package_that_cannot_be_written_to_works_without_a_home(sealed):
    room = sealed / "tmp" / f"xswe-{os.getuid()}"
    assert run(sealed) == str(room)
    assert list(room.rglob("*.nbi"))
    assert stat.S_IMODE(room.stat().st_mode) == 0o700
    assert run(sealed) == str(room)  # which is there by now


@pytest.mark.slow
def test_a_folder_that_others_can_write_to_is_not_taken(sealed):
    room = sealed / "tmp" / f"xswe-{os.getuid()}"
    room.mkdir()
    room.chmod(0o777)
    assert Path(run(sealed)).parent == room.parent
    assert not list(room.iterdir())


def test_one_of_several_processes_compiles_and_the_others_load(tmp_path, monkeypatch):
    (tmp_path / "doubled.py").write_text(DOUBLED, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    function = importlib.import_module("doubled").doubled
    fork = multiprocessing.get_context("fork")
    with fork.Pool(3) as pool:  # forks, as those that share the tests: the function is in all of them
        compiled = pool.map(calls_that_compiled, [function.__module__] * 3, chunksize=1)
    assert sorted(compiled) == [0, 0, 1]


def calls_that_compiled(module):
    """Call the function of a module, and return how often it was not on the disk."""
    function = importlib.import_module(module).doubled
    assert function(2) == 4
    time.sleep(0.5)  # so that none of the processes is asked twice
    return sum(function.stats.cache_misses.values())


@pytest.mark.slow
def test_what_a_version_with_other_classes_has_compiled_is_compiled_anew(tmp_path):
    for name in ("Former", "Later"):
        (tmp_path / "summed.py").write_text(SUMMED.replace("Sides", name), encoding="utf-8")
        command = [sys.executable, "-c", f"import xswe.io.compiler, summed; print(summed.total(summed.{name}(1, 2)))"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        assert done.stdout == "3\n", done.stderr
    assert list((tmp_path / "__pycache__").glob("summed.total-*.nbi"))


def test_a_place_that_was_chosen_or_a_home_is_left_to_numba(sealed, monkeypatch):
    monkeypatch.setattr(numba_cache, "__file__", str(sealed / "installed" / "xswe" / "io" / "numba_cache.py"))
    monkeypatch.setattr(numba.config, "CACHE_DIR", numba.config.CACHE_DIR)
    monkeypatch.setenv("TMPDIR", str(sealed / "tmp"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(sealed / "home"))  # a file
    monkeypatch.setenv("NUMBA_CACHE_DIR", "chosen")
    numba_cache.find_room()
    assert os.environ["NUMBA_CACHE_DIR"] == "chosen"
    (sealed / "home").unlink()
    monkeypatch.delenv("NUMBA_CACHE_DIR")
    numba_cache.find_room()
    assert "NUMBA_CACHE_DIR" not in os.environ
