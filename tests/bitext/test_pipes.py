"""Pipes as inputs: what ``<(zcat a.gz)`` names is read by every verb as its file is."""

from __future__ import annotations

import io
import os
import shutil
import threading
from pathlib import Path

import pytest

from tests.cli.verbs import run_verb
from tests.conftest import eval_script
from xswe.errors import InputError
from xswe.io.lines import read_lines
from xswe.work import folder as work_folder
from xswe.work.folder import spooled

PAIRS = "".join(f"The train number {n} is late.\tDer Zug Nummer {n} hat Verspätung.\n" for n in range(30))
READ = {"input", "source", "target", "corpus.paths"}  # settings that name files of texts
script = eval_script("experiments.local_faults")


def piped(case) -> list[str]:
    """The files of texts that a verb is given."""
    words = [word.partition("=") for word in case.words.split()]
    named = [name for key, _, value in words if key in READ for name in value.strip("[]").split(",")]
    return [name for name in named if Path(name).suffix]


# Of training, the corpus is read as by corpus; vectors are no texts.
CASES = [name for name, case in script.CASES.items() if piped(case) and case.words.split()[0] not in ("train", "import")]


def test_a_pipe_that_would_fill_the_disk_is_refused(tmp_path, monkeypatch):
    free = shutil.disk_usage(tmp_path).free
    monkeypatch.setattr(work_folder, "_MIN_FREE", free + (1 << 40))
    monkeypatch.setattr("sys.stdin", type("Stdin", (), {"buffer": io.BytesIO(PAIRS.encode())}))
    with pytest.raises(InputError, match=r"standard input: after 0\.0 GB less than .* GiB would be free in .*set TMPDIR"):
        spooled("-", tmp_path)


def test_an_empty_input_is_warned_of_once(tmp_path, caplog):
    (tmp_path / "a.txt").write_text("")
    for _ in range(2):
        assert list(read_lines(tmp_path / "a.txt")) == []
    assert [record.message for record in caplog.records] == [f"{tmp_path / 'a.txt'}: it is empty"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="a system without pipes that have names")
@pytest.mark.parametrize("name", CASES)
def test_a_pipe_is_read_as_its_file(tmp_path, name):
    case, contents = script.CASES[name], []
    for kind in ("file", "pipe"):
        (folder := tmp_path / kind).mkdir()
        script.write_inputs(folder)
        for name in piped(case) if kind == "pipe" else ():
            text = (folder / name).read_bytes()
            (folder / name).unlink()
            os.mkfifo(folder / name)
            threading.Thread(target=(folder / name).write_bytes, args=(text,), daemon=True).start()
        done = run_verb(*case.words.split(), cwd=folder)
        assert done.returncode == 0, done.stderr
        contents.append(case.content(folder))
    assert contents[0] == contents[1] != ""
