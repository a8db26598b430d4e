"""``python -m xswe encode`` as a stranger uses it."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys

import numpy as np
import pytest
from tokenizers import Tokenizer

import xswe
from tests.cli.verbs import command, run_verb
from tests.warm import kill_when
from xswe.errors import ConfigError
from xswe.model.static import StaticModel
from xswe.text.subwords import SubwordUnits

ALL = ("en", "de", "zh", "ja")


@pytest.fixture(scope="module")
def folder(tokenizer_json, tmp_path_factory):
    folder = tmp_path_factory.mktemp("encode")
    units = SubwordUnits(Tokenizer.from_str(tokenizer_json), "subwords", ALL)
    matrix = np.random.default_rng(0).normal(size=(len(units), 16)).astype(np.float32)
    StaticModel(units, matrix).save(folder / "model")
    return folder


@pytest.fixture(scope="module")
def lines(sample):
    return [f"{text} {k}" for k in range(2) for code in ALL for text in (*sample[code], "")]


@pytest.fixture(scope="module")
def expected(folder, lines):
    return xswe.load(folder / "model").encode(lines)


def environment():
    return {**os.environ, "XSWE_PROGRESS": "0"}


USUAL = {"dtype": "float32", "threads": 1, "split": None, "language": None, "execution": {"kind": "local"}}


@pytest.mark.parametrize("threads", [1, 2])
def test_a_file_becomes_rows(folder, lines, expected, tmp_path, threads):
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    values = {"model": str(folder / "model"), "input": str(tmp_path / "a.txt.gz"), "threads": threads}
    said = command("encode", {**USUAL, **values, "output": str(tmp_path / "a.npy")})
    assert np.load(tmp_path / "a.npy").tobytes() == expected.tobytes()
    assert f"{len(lines):,} lines, 16 dimensions, float32" in said
    assert f" on {threads} thread" in said


def test_standard_input_to_int8(folder, lines, expected, tmp_path):
    words = ["encode", f"model={folder / 'model'}", "input=-", "output=a.npy", "dtype=int8"]
    done = run_verb(*words, cwd=tmp_path, given="\r\n".join(lines))
    assert done.returncode == 0, done.stderr
    rows = np.load(tmp_path / "a.npy", mmap_mode="r") * np.load(tmp_path / "a.scales.npy")[:, None]
    np.testing.assert_allclose(rows, expected, atol=0.5 / 127)
    assert "a.scales.npy" in done.stdout


def test_a_run_on_standard_input_that_is_killed_begins_anew_and_leaves_nothing(
    folder, lines, expected, tmp_path, warm_python
):
    text = "\n".join(lines * 4) + "\n"
    whole = np.concatenate([expected] * 4)
    assert len(whole) > 3 * 4096
    words, partial = ["encode", f"model={folder / 'model'}", "input=-", "output=a.npy"], tmp_path / ".a.npy.partial"
    half = text[: text.rindex("\n", 0, len(text) // 2)].encode()
    assert kill_when(warm_python, words, tmp_path, lambda: partial.exists() and partial.stat().st_size > 4096, given=half)
    assert not (tmp_path / "a.npy").exists()
    assert partial.exists()
    done = run_verb(*words, cwd=tmp_path, given=text)
    assert done.returncode == 0, done.stderr
    assert np.load(tmp_path / "a.npy").tobytes() == whole.tobytes()
    assert [p.name for p in tmp_path.iterdir()] == ["a.npy"]


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({"dtype": "int4"}, "float32, float16, int8"),
        ({"output": "a.txt"}, r"\.npy, \.safetensors, \.parquet"),
        ({"threads": -1}, "at least 1"),
        ({"threads": "many"}, "expected int"),
        ({"output": "/dev/null"}, "a pipe or a device"),
        ({"output": "/"}, "give the name of a file"),
    ],
)
def test_mistakes_name_the_cure(folder, tmp_path, change, found):
    values = {"model": str(folder / "model"), "input": "none", "output": str(tmp_path / "a.npy")}
    with pytest.raises(ConfigError, match=found):
        command("encode", {**USUAL, **values, **change})
    assert not list(tmp_path.iterdir())


def test_a_link_stays_a_link(folder, tmp_path):
    (tmp_path / "a.txt").write_text("a cat\n")
    (tmp_path / "link.npy").symlink_to(tmp_path / "there.npy")
    values = {"model": str(folder / "model"), "input": str(tmp_path / "a.txt"), "output": str(tmp_path / "link.npy")}
    command("encode", {**USUAL, **values})
    assert (tmp_path / "link.npy").is_symlink()
    assert len(np.load(tmp_path / "there.npy")) == 1


def test_encoding_a_file_imports_neither_torch_nor_transformers(folder, tmp_path):
    (tmp_path / "a.txt").write_text("a\n猫\n", encoding="utf-8")
    code = (
        "import sys\n"
        "from xswe.cli.run import run\n"
        f"run('encode', {USUAL | {'model': str(folder / 'model'), 'input': 'a.txt', 'output': 'a.npy'}!r})\n"
        "found = {'torch', 'transformers', 'sklearn', 'datasets', 'mteb', 'pyarrow', 'numba'} & set(sys.modules)\n"
        "assert not found, found\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, env=environment())
    assert done.returncode == 0, done.stderr
