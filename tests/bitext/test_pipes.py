"""Pipes as inputs: what ``<(zcat a.gz)`` names is read by every verb as its file is."""

from __future__ import annotations

import io
import os
import shutil
import threading

import numpy as np
import pytest

from tests.cli.verbs import run_verb
from xswe.errors import InputError
from xswe.io.lines import read_lines
from xswe.work import folder as work_folder
from xswe.work.folder import spooled

PAIRS = "".join(f"The train number {n} is late.\tDer Zug Nummer {n} hat Verspätung.\n" for n in range(30))
SIDES = ["\n".join(row.split("\t")[side] for row in PAIRS.splitlines()) + "\n" for side in range(2)]
VERBS = {
    "filter": (["model=mini", "input={}", "threshold=0.3", "near_duplicates=false"], [PAIRS]),
    "mine": (["mode=score", "score=ratio", "model=mini", "input={}"], [PAIRS]),
    "dedup": (["model=mini", "input={}"], [SIDES[0]]),
    "align": (["model=mini", "source={}", "target={}"], SIDES),
    "corpus": (["corpus.paths=[{}]", "pair=en-de"], [PAIRS]),
    "encode": (["model=mini", "input={}"], [SIDES[0]]),
    "link": (["model=mini", "input={}", "languages=[en,de]"], [PAIRS]),
    "lexicon": (["model=mini", "source={}", "target={}"], SIDES),
    "phrases": (["model=mini", "queries=the train", "input={}"], [SIDES[1]]),
    "search": (["model=mini", "queries=the train", "input={}", "k=3"], [SIDES[1]]),
    "split": (["input={}", "language=en"], [SIDES[0]]),
}


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
@pytest.mark.parametrize("verb", VERBS)
def test_a_pipe_is_read_as_its_file(tmp_path, verb):
    arguments, texts = VERBS[verb]
    suffix = {"encode": ".npy", "corpus": ".csv"}.get(verb, ".tsv")
    outputs = []
    for kind in ("file", "pipe"):
        names = [tmp_path / f"{kind}{place}" for place in range(len(texts))]
        for name, text in zip(names, texts, strict=True):
            if kind == "pipe":
                os.mkfifo(name)
                threading.Thread(target=name.write_text, args=(text, "utf-8"), daemon=True).start()
            else:
                name.write_text(text, "utf-8")
        output = tmp_path / f"{kind}{suffix}"
        rest = iter(names)
        given = [one.format(next(rest)) if "{}" in one else one for one in arguments]
        done = run_verb(verb, *given, f"output={output}", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        outputs.append(np.load(output).tobytes() if verb == "encode" else output.read_bytes())
    assert outputs[0] == outputs[1]
    assert outputs[0]
