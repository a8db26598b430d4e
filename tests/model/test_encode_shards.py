"""Encoding by shards: the bytes of one process, whoever did the work and whatever happened to it."""

from __future__ import annotations

import gzip
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

import numpy as np
import pytest
from tokenizers import Tokenizer

import xswe
from tests.clusters import slices
from xswe.errors import ConfigError, InputError, Unfinished, XsweError
from xswe.io import sources
from xswe.io.sources import expand
from xswe.model.static import StaticModel
from xswe.text.subwords import SubwordUnits
from xswe.work.config import ExecutionConfig

SHARD = 20_000


@pytest.fixture(scope="module")
def model(tokenizer_json):
    units = SubwordUnits(Tokenizer.from_str(tokenizer_json), "subwords", ("en", "de", "zh", "ja"))
    return StaticModel(units, np.random.default_rng(0).normal(size=(len(units), 8)).astype(np.float32))


@pytest.fixture(scope="module")
def source(sample, tmp_path_factory):
    lines = [f"{text} {k}" for k in range(3) for code in sample for text in (*sample[code][:300], "")]
    path = tmp_path_factory.mktemp("texts") / "a.txt"
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def local(model, source, tmp_path_factory):
    folder = tmp_path_factory.mktemp("local")
    for name, dtype in (("a.npy", "float32"), ("b.npy", "int8"), ("c.safetensors", "int8")):
        xswe.encode_file(model, source, folder / name, dtype=dtype, threads=1)
    return folder


def same(folder, other, *names):
    return all((folder / name).read_bytes() == (other / name).read_bytes() for name in names)


def test_standard_input_is_of_one_process_alone(model, tmp_path):
    for how in ({"split": True, "language": "en"}, {}):
        with pytest.raises(ConfigError, match="execution=array: others read and write the same"):
            xswe.encode_file(model, "-", tmp_path / "a.npy", execution=slices(2)[0], **how)


def test_an_array_in_any_order(model, source, local, tmp_path):
    for n, how in enumerate(slices(3, shard=SHARD), 1):
        for name, dtype in (("a.npy", "float32"), ("b.npy", "int8")):
            if n < 3:
                with pytest.raises(Unfinished):
                    xswe.encode_file(model, source, tmp_path / name, dtype=dtype, execution=how)
            else:
                made = xswe.encode_file(model, source, tmp_path / name, dtype=dtype, execution=how)
                assert (made.rows, made.threads > 0) == (len(np.load(local / name)), True)
    assert same(tmp_path, local, "a.npy", "b.npy", "b.scales.npy")
    late = xswe.encode_file(model, source, tmp_path / "a.npy", execution=slices(3, shard=SHARD)[1])  # begun once more
    assert late.rows == made.rows
    assert [path.name for path in (tmp_path / "a.npy.work").iterdir() if not path.name.startswith(".")] == [
        "work.json",
        "done",
    ]


def test_running_text_is_cut_whoever_encodes_it(model, sample, tmp_path):
    for name in ("a.md", "b.md"):
        text = "\n\n".join(" ".join(sample["en"][start : start + 7]) for start in range(0, 700, 7))
        (tmp_path / name).write_text(text, encoding="utf-8")
    files = [tmp_path / "a.md", tmp_path / "b.md"]
    one, two = tmp_path / "one.npy", tmp_path / "two.npy"
    xswe.encode_file(model, files[0], one, language="en", threads=1)
    first, second = slices(2, shard=SHARD)
    with pytest.raises(Unfinished):
        xswe.encode_file(model, files, two, language="en", execution=second)
    made = xswe.encode_file(model, files, two, language="en", execution=first)
    assert made.rows == 2 * len(np.load(one)) > 1300
    np.testing.assert_array_equal(np.load(two), np.concatenate([np.load(one)] * 2))
    with pytest.raises(ConfigError, match="language, which is not known"):
        xswe.encode_file(model, files, tmp_path / "three.npy", execution=first)
    with pytest.raises(ConfigError, match="for one file of vectors; cut them by  xswe split  first"):
        xswe.encode_file(model, files, tmp_path / "v" / "*.npy", language="en", execution=first)


@pytest.mark.slow
def test_on_ray_and_what_is_left_of_a_killed_run(ray_cluster, model, source, local, tmp_path):
    with pytest.raises(Unfinished):  # the shards of one task of an array are as good as any
        xswe.encode_file(model, source, tmp_path / "c.safetensors", dtype="int8", execution=slices(2, shard=SHARD)[0])
    made = xswe.encode_file(
        model, source, tmp_path / "c.safetensors", dtype="int8", execution=ExecutionConfig("ray", shard=SHARD)
    )
    assert 0 < made.kept < made.rows
    assert same(tmp_path, local, "c.safetensors")
    assert not (tmp_path / "c.safetensors.work").exists()


def test_a_file_a_shard(model, source, local, tmp_path):
    how = ExecutionConfig(shard=SHARD)
    made = xswe.encode_file(model, source, tmp_path / "v" / "*.npy", execution=how, threads=1)
    parts = sorted((tmp_path / "v").glob("0*.npy"))
    assert len(parts) > 3
    assert np.concatenate([np.load(part) for part in parts]).tobytes() == np.load(local / "a.npy").tobytes()
    parts[2].write_bytes(b"")
    again = xswe.encode_file(model, source, tmp_path / "v" / "*.npy", execution=how, threads=1)
    assert made.rows == again.rows == again.kept + len(np.load(parts[2]))
    assert xswe.work_status(tmp_path / "v" / "*.npy").stages[0].done == len(parts)


def test_patterns_and_packed_files(model, source, local, tmp_path, monkeypatch):
    lines = source.read_bytes().splitlines(keepends=True)
    (tmp_path / "1.txt").write_bytes(b"".join(lines[:500]))
    (tmp_path / "2.txt.gz").write_bytes(gzip.compress(b"".join(lines[500:])))
    made = xswe.encode_file(model, tmp_path / "?.txt*", tmp_path / "a.npy", threads=2)
    assert made.rows == len(lines)
    assert same(tmp_path, local, "a.npy")
    with pytest.raises(InputError, match="matches no file"):
        xswe.encode_file(model, tmp_path / "*.csv", tmp_path / "b.npy")
    assert expand("https://host/a?b=c") == ["https://host/a?b=c"]  # a query, and no pattern
    (tmp_path / "http-1.txt").touch()
    monkeypatch.chdir(tmp_path)
    assert expand("http-*.txt") == ["http-1.txt"]


def test_two_runs_do_not_tread_on_each_other(model, source, tmp_path):
    from xswe.io.locks import locked

    with locked(tmp_path / "a.npy.work"), pytest.raises(ConfigError, match="another run is at work there"):
        xswe.encode_file(model, source, tmp_path / "a.npy", execution=slices(2)[0])


def test_a_bad_line_is_named_and_nothing_is_lost(model, source, tmp_path):
    (tmp_path / "a.txt").write_bytes(source.read_bytes() + b"\n\xff\n")
    number = source.read_bytes().count(b"\n") + 2
    how = ExecutionConfig("array", 0, 1, shard=SHARD)
    with pytest.raises(XsweError, match=rf"a\.txt:{number}: not UTF-8.*1 of \d+ shards failed"):
        xswe.encode_file(model, tmp_path / "a.txt", tmp_path / "a.npy", execution=how)
    (status,) = xswe.work_status(tmp_path / "a.npy")
    assert status.done == status.shards - 1


class Store(BaseHTTPRequestHandler):
    """An object store that is asked too much: whatever is asked for, the first time it is refused."""

    protocol_version = "HTTP/1.1"
    data, broken = b"", False
    asked: ClassVar[set] = set()

    def log_message(self, *_: object) -> None:
        pass

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        what = self.command, self.headers.get("Range")
        if self.broken or what not in self.asked:
            self.asked.add(what)
            self.send_response(503)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        begin, end = 0, len(self.data) - 1
        if span := self.headers.get("Range"):
            low, _, high = span.removeprefix("bytes=").partition("-")
            begin, end = int(low), min(int(high or end), end)
        body = self.data[begin : end + 1]
        self.send_response(206 if span else 200)
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("Content-Length", str(len(body)))
        if span:
            self.send_header("Content-Range", f"bytes {begin}-{end}/{len(self.data)}")
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)


@pytest.fixture
def store(source, monkeypatch):
    pytest.importorskip("aiohttp", reason="aiohttp is not installed")
    monkeypatch.setattr(sources, "_FIRST_PAUSE", 0.01)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Store)
    Store.data, Store.broken = source.read_bytes(), False
    Store.asked.clear()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/a.txt"
    server.shutdown()
    server.server_close()


def test_a_storage_that_answers_503_now_and_then(store, model, local, tmp_path):
    xswe.encode_file(model, store, tmp_path / "a.npy", execution=ExecutionConfig("array", 0, 1, shard=SHARD))
    assert same(tmp_path, local, "a.npy")
    xswe.encode_file(model, store, tmp_path / "one" / "a.npy")  # and as one file, in this process
    assert same(tmp_path / "one", local, "a.npy")


def test_a_storage_that_answers_503_for_ever(store, model, tmp_path):
    Store.broken = True
    with pytest.raises(InputError, match=r"fails again and again.*same command"):
        xswe.encode_file(model, store, tmp_path / "a.npy")


COMMAND = [sys.executable, "-m", "xswe", "encode", "threads=1"]


def run(model_folder, source, output, *more, **how):
    given = [f"model={model_folder}", f"input={source}", f"output={output}", *more]
    return subprocess.Popen([*COMMAND, *given], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **how)


@pytest.mark.slow
def test_the_driver_is_killed_on_ray(ray_cluster, model, source, local, tmp_path):
    model.save(tmp_path / "model")
    address = ray_cluster.get_runtime_context().gcs_address
    how = ("execution=ray", f"execution.address={address}", "execution.workers=1", f"execution.shard={SHARD}")
    process = run(tmp_path / "model", source, tmp_path / "a.npy", *how)
    until = time.monotonic() + 60
    while (
        not list(tmp_path.glob("a.npy.work/encode-*/*[0-9].json")) and time.monotonic() < until and process.poll() is None
    ):
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    left = len(list(tmp_path.glob("a.npy.work/encode-*/*[0-9].json")))
    assert left
    made = xswe.encode_file(model, source, tmp_path / "a.npy", execution=ExecutionConfig("ray", shard=SHARD))
    assert made.kept
    assert same(tmp_path, local, "a.npy")


@pytest.mark.skipif(os.name != "posix", reason="limits of a process are POSIX")
def test_a_full_disk_is_said_in_one_line(model, source, local, tmp_path):
    model.save(tmp_path / "model")

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))  # files may be no larger: as where no space is left

    (tmp_path / "a.txt").write_bytes(source.read_bytes() * 4)
    process = run(tmp_path / "model", tmp_path / "a.txt", tmp_path / "v/*.npy", preexec_fn=limit)
    said = process.communicate()[1]
    assert process.returncode == 2, said
    assert said.strip().splitlines()[-1].startswith("xswe: ")
    assert "File too large" in said
