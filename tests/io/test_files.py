"""Files that appear whole or not at all, and outputs that are refused."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import subprocess
import sys
import threading
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

import xswe
from xswe.errors import ConfigError, DamagedError, InputError
from xswe.io import files, locks
from xswe.io.files import check_folder, check_input, check_output, whole_file, whole_folder
from xswe.io.locks import locked
from xswe.training.stages import Stages


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.txt").write_text("kept")
    (tmp_path / "folder").mkdir()
    return tmp_path


@pytest.mark.parametrize(
    ("output", "found"),
    [
        ("a.txt", "is also read"),
        ("folder/../a.txt", "is also read"),
        ("link", "is also read"),
        ("folder", "is a folder"),
        ("", "give the name"),
        (".", "give the name"),
        ("..", "is a folder"),
        ("a.txt/b", "a.txt is not a folder"),
        ("a.txt/b/c", "a.txt is not a folder"),
        ("s3://bucket/a.txt", "only texts are read"),
    ],
)
def test_an_output_that_would_do_harm_is_refused(here, output, found):
    os.symlink("a.txt", here / "link")
    with pytest.raises(ConfigError, match=found):
        check_output(output, ["-", here / "a.txt", "missing"])


def test_an_output_that_can_be_written_is_not_refused(here):
    for output in ("-", "new", "folder/new", "new/folder/file", "a.txt"):
        check_output(here / output if output != "-" else output, ["-", "other"])
    assert not [name for name in ("new", "folder/new") if (here / name).exists()]


def test_an_output_in_a_folder_of_others_is_refused(here, monkeypatch):
    """A file that is there as well, for it is replaced; but nothing is put beside a device."""
    both = os.W_OK | os.X_OK  # root may write anywhere
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != here / "folder" or mode != both)
    (here / "folder" / "a.txt").write_text("there")
    os.symlink("folder/a.txt", here / "link")
    for output in ("folder/new/a.txt", "folder/a.txt", "link"):
        with pytest.raises(ConfigError, match=f"^rejects={here}/.*nothing may be written into {here}/folder"):
            check_output(here / output, name="rejects")
    with pytest.raises(ConfigError, match="nothing may be written"):
        check_folder(here / "folder" / "new" / "model")
    check_folder(here / "folder")
    check_output("/dev/null")


def test_errors_of_the_system_name_what_was_asked_for(here):
    """And not the hidden files and folders that it is made as."""
    long = here / ("a" * 250)  # the name is not too long, that of what is renamed to it is
    for make in (whole_file, whole_folder):
        with pytest.raises(OSError, match=rf"File name too long: '{long}'$"), make(long):
            pass
    with pytest.raises(OSError, match=f": '{here}/made/x/y'"), whole_folder(here / "made") as temporary:
        (temporary / "x" / "y").write_text("")
    (here / "folder" / ".lock").mkdir()
    with pytest.raises(OSError, match=f": '{here}/folder'"), locked(here / "folder"):
        pass
    assert {p.name for p in here.iterdir()} == {"a.txt", "folder"}


def test_what_is_wrong_with_an_input_is_said(here):
    os.mkfifo(here / "pipe")
    for name, found in (("pipe", "not a regular file"), ("folder", "a folder"), ("missing", "no such file")):
        with pytest.raises(InputError, match=found):
            check_input(here / name)
    assert check_input(here / "a.txt").st_size == 4


@pytest.mark.skipif(os.name != "posix" or sys.platform == "darwin", reason="names are Unicode there")
def test_names_need_not_be_unicode(here):
    name = os.fsdecode(b"caf\xe9.txt")
    with whole_file(name) as temporary:
        temporary.write_text("a\nb\n")
    assert xswe.encode_file(xswe.load("mini"), name, os.fsdecode(b"\xe9.npy"), threads=1).rows == 2
    files.write_json("a.json", [name])
    assert files.read_json("a.json") == [name]
    assert files.fingerprint(name) != files.fingerprint(name + "x")


def test_a_link_stays_and_what_it_points_to_is_written(here):
    for name, target in (("link", "a.txt"), ("ahead", "new.txt"), ("there", "folder")):
        os.symlink(target, here / name)
    for name in ("link", "ahead"):
        with whole_file(here / name) as temporary:
            temporary.write_text("new")
        assert (here / name).is_symlink()
    with whole_folder(here / "there") as temporary:
        (temporary / "b").write_text("new")
    assert (here / "there").is_symlink()
    assert [p.read_text() for p in (here / "a.txt", here / "new.txt", here / "folder" / "b")] == ["new"] * 3


def test_pipes_and_devices_are_written_to(here):
    """The device is a terminal: beside it nothing can be made that would replace it."""
    os.mkfifo(here / "pipe")
    screen, terminal = os.openpty()
    read = []
    reader = threading.Thread(target=lambda: read.append((here / "pipe").read_bytes()))
    reader.start()
    for path in (here / "pipe", os.ttyname(terminal)):
        check_output(path)
        with whole_file(path) as temporary:
            temporary.write_bytes(b"all")
    reader.join()
    assert read == [b"all"] == [os.read(screen, 9)]
    assert (here / "pipe").is_fifo()
    assert {p.name for p in here.iterdir()} == {"a.txt", "folder", "pipe"}
    os.close(screen)
    os.close(terminal)


def test_what_killed_runs_left_is_removed_by_the_next_of_the_same_output(here):
    program = (
        "import os, signal, sys; from xswe.io.files import whole_file, whole_folder\n"
        "with whole_file('b.txt') as f, whole_file('other.txt') as g, whole_folder('made') as m:\n"
        "    f.write_text('half'), g.write_text('half'), (m / 'x').write_text('half')\n"
        "    os.kill(os.getpid(), signal.SIGKILL)"
    )
    subprocess.run([sys.executable, "-c", program])
    leftovers = sorted(p.name for p in here.glob(".*.tmp"))
    assert len(leftovers) == 3
    alive = here / leftovers[0].replace(leftovers[0].split("-")[-1], f"{os.getppid()}.tmp")
    alive.write_text("of a run at work")
    with whole_file("b.txt") as temporary, whole_folder("made"):
        temporary.write_text("whole")
    assert sorted(p.name for p in here.iterdir() if p.is_file() and p.name.startswith(".")) == sorted(
        [alive.name, next(name for name in leftovers if "other" in name)]
    )
    assert not list(here.glob(".made*"))


def test_what_another_user_runs_is_alive(here, monkeypatch):
    left = here / f".b.txt.{files._host()}-1.tmp"
    for error, stays in ((PermissionError, True), (ProcessLookupError, False)):
        left.write_text("half")

        def kill(process, number, error=error):
            assert (process, number) == (1, 0)
            raise error

        monkeypatch.setattr(os, "kill", kill)
        files.remove_leftovers(here)
        assert left.exists() == stays


def test_an_unfinished_folder_is_kept_on_failure_and_takes_its_place_in_the_end(here):
    (unfinished := here / "work").mkdir()

    def broken(*where):
        with whole_folder(*where) as folder:
            (folder / "b").write_text("begun")
            raise ZeroDivisionError

    for where in ((here / "made", unfinished), (here / "other",)):
        with pytest.raises(ZeroDivisionError):
            broken(*where)
    assert {p.name for p in here.iterdir()} == {"a.txt", "folder", "work"}
    with whole_folder(here / "made", unfinished) as folder:
        assert folder == unfinished
    assert ((here / "made" / "b").read_text(), unfinished.exists()) == ("begun", False)


def test_a_folder_of_a_killed_process_is_taken_over_by_the_same_work(here, monkeypatch):
    monkeypatch.setattr(files, "_is_alive", lambda process: process in (1, os.getpid()))
    host = files._host()
    for name in (f"own.{host}-2", f"own.{host}-1", f"other.{host}-3", f"other.{host}-1", "own.elsewhere-2"):
        (left := here / f".made.unfinished.{name}").mkdir()
        (left / "b").write_text(name)
    mine = files.taken_over(here / "made", "own")
    assert mine.name == f".made.unfinished.own.{host}-{os.getpid()}"
    assert (mine / "b").read_text() == f"own.{host}-2"
    left = {path.name.removeprefix(".made.unfinished.") for path in here.glob(".made*")} - {
        mine.name.removeprefix(".made.unfinished.")
    }
    assert left == {f"own.{host}-1", f"other.{host}-1", "own.elsewhere-2"}
    (here / f".made.unfinished.own.{host}-4").mkdir()
    assert files.taken_over(here / "made", "own") == mine  # it has its own already
    assert (mine / "b").exists()
    assert not (here / f".made.unfinished.own.{host}-4").exists()
    assert not files.taken_over(here / "new", "own").exists()


def test_folders_are_made_and_removed_as_a_whole(here):
    with whole_file(here / "x" / "y" / "b") as file, whole_folder(here / "p" / "q" / "m") as folder:
        file.write_text("b")
        (folder / "c").touch()
    assert {path.relative_to(here).as_posix() for path in here.rglob("?")} == {
        "x",
        "x/y",
        "x/y/b",
        "p",
        "p/q",
        "p/q/m",
        "p/q/m/c",
    }
    files.remove_folder(here / "p")
    files.remove_folder(here / "p")  # which is no longer there
    assert {path.name for path in here.iterdir()} == {"a.txt", "folder", "x"}


def test_json_is_indented_and_readable(here):
    files.write_json("a.json", {"a": "ü", "b": [1, None]})
    assert Path("a.json").read_bytes() == '{\n  "a": "ü",\n  "b": [\n    1,\n    null\n  ]\n}\n'.encode()
    assert list(files.strings_in({"a": "b", "c": ["d", {"e": "f"}, 1, None]})) == ["b", "d", "f"]
    Path("a.json").write_text("{", "utf-8")
    with pytest.raises(DamagedError, match=r"^a\.json: damaged, or not written by xswe \(.*\); move it away"):
        files.read_json("a.json")


def test_a_fingerprint_is_that_of_the_canonical_json():
    whole = hashlib.sha256('[{"a":"ü","b":[1]},"c"]'.encode()).hexdigest()
    assert files.fingerprint({"b": [1], "a": "ü"}, "c") == whole[:12]
    assert files.fingerprint({"b": [1], "a": "ü"}, "c", length=5) == whole[:5]
    array = np.array([[1, 2]], np.int16)
    expected = hashlib.sha256(b"<i2 (1, 2)" + array.tobytes() + b"<i2 (2,)" + array.tobytes()).hexdigest()
    assert files.arrays_digest(array, array[0]) == expected


def test_two_outputs_are_not_the_same_file(here):
    for same in ("b.txt", here / "b.txt", "folder/../b.txt"):
        with pytest.raises(ConfigError, match=rf"^rejects={same}: is the output, too; give another name$"):
            files.check_apart("rejects", same, "b.txt")
    files.check_apart("rejects", "c.txt", "b.txt")


def test_a_lock_is_for_one_and_a_shared_one_for_several(here):
    with (
        locked(here / "new" / "work"),
        pytest.raises(ConfigError, match="busy"),
        locked(here / "new" / "work", "busy", True),
    ):
        pass
    several = (locked(here / "work", busy, shared=True) for busy in (None, "busy"))
    with next(several), next(several), pytest.raises(ConfigError, match="busy"), locked(here / "work", "busy"):
        pass


def test_who_waited_for_a_folder_that_was_removed_holds_a_new_one(here, monkeypatch):
    original = locks.lock

    def lock(stream, busy=None, shared=False):
        original(stream, busy)
        monkeypatch.setattr(locks, "lock", original)
        shutil.rmtree(here / "work")  # as by the process that held it until now

    monkeypatch.setattr(locks, "lock", lock)
    with locks.locked(here / "work"), pytest.raises(ConfigError, match="busy"), locks.locked(here / "work", "busy"):
        pass


def test_network_file_systems_take_the_locks(here, monkeypatch):
    """NFS shares the lock of a file that was opened to be read only, and gives another of one to be written only."""
    fcntl = pytest.importorskip("fcntl")
    shared_ones = []

    def flock(stream, kind):
        shared_ones.append(bool(kind & fcntl.LOCK_SH))
        if not (stream.readable() if kind & fcntl.LOCK_SH else stream.writable()):
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))

    monkeypatch.setattr(fcntl, "flock", flock)
    for shared in (True, False):
        with locks.locked(here / "work", "busy", shared):
            pass
    assert shared_ones == [True, False]


@pytest.mark.skipif(os.name != "posix", reason="no modes here")
@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o027, 0o640), (0o077, 0o600)])
def test_files_get_the_mode_that_the_umask_asks_for(here, umask, mode):
    before = os.umask(umask)
    try:
        with files.whole_folder("made") as folder, files.whole_file("one.bin") as file:
            for path in (folder / "model.safetensors", file):
                path.touch(0o600)
    finally:
        os.umask(before)
    assert {(here / name).stat().st_mode & 0o777 for name in ("made/model.safetensors", "one.bin")} == {mode}


def test_a_look_for_leftovers_does_not_hold_the_names_of_all_files(here):
    for number in range(4000):
        (here / f"{number:06d}.json").touch()
    tracemalloc.start()
    files.remove_leftovers(here)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100_000  # bytes


@pytest.mark.parametrize(
    "write",
    [
        lambda name: check_output(Path(name)),
        lambda name: xswe.encode_file("mini", "a.txt", f"{name}/*.npy"),
        lambda name: xswe.index(xswe.load("mini"), "a.txt", folder=name),
        lambda name: xswe.index(
            xswe.load("mini"), "a.txt", folder=name, execution=xswe.types.ExecutionConfig("array", 0, 1)
        ),
        lambda name: Stages(Path(name)),
    ],
)
def test_nothing_is_written_into_a_folder_with_the_name_of_a_storage(here, write):
    with pytest.raises(ConfigError, match="only texts are read"):
        write("s3://bucket/folder")
    assert not (here / "s3:").exists()
