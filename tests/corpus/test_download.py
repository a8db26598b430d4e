"""Downloads against a server of our own that drops connections, changes its file and lies."""

from __future__ import annotations

import hashlib
import json
import signal
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from xswe.corpus import fetch as download
from xswe.corpus.fetch import fetch, recorded_digest
from xswe.errors import InputError

DATA = np.random.default_rng(0).integers(0, 256, 3_000_000, dtype=np.uint8).tobytes()


class Server:
    """One file under ``/file``; ``drops`` says after how many bytes each further answer breaks off."""

    def __init__(self):
        self.data, self.etag, self.drops, self.ranges, self.seen = DATA, '"one"', [], True, []
        self.pause, self.refusals = 0.0, []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *arguments):
                pass

            def do_GET(self):
                outer.seen.append(self.headers.get("Range"))
                if outer.refusals:
                    self.send_error(outer.refusals.pop(0))
                    return
                if self.path != "/file":
                    self.send_error(404)
                    return
                start = 0
                if outer.ranges and self.headers.get("Range") and self.headers.get("If-Range") == outer.etag:
                    start = int(self.headers["Range"].removeprefix("bytes=").rstrip("-"))
                body = outer.data[start:]
                self.send_response(206 if start else 200)
                self.send_header("Content-Length", str(len(body)))
                self.send_header("ETag", outer.etag)
                if start:
                    self.send_header("Content-Range", f"bytes {start}-{len(outer.data) - 1}/{len(outer.data)}")
                self.end_headers()
                drop = outer.drops.pop(0) if outer.drops else None
                for place in range(0, len(body[:drop]), 1 << 16):
                    self.wfile.write(body[:drop][place : place + (1 << 16)])
                    time.sleep(outer.pause)
                self.close_connection = True

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/file"
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    made = Server()
    yield made
    made.server.shutdown()
    made.server.server_close()


def names(folder):
    return sorted(p.name for p in folder.iterdir() if p.name != ".lock")


def test_a_file_is_fetched_once_with_its_record(server, tmp_path):
    target = fetch([server.url], tmp_path / "x" / "a.zip", sha256=hashlib.sha256(DATA).hexdigest())
    assert target.read_bytes() == DATA
    assert recorded_digest(target) == hashlib.sha256(DATA).hexdigest()
    assert names(tmp_path / "x") == ["a.zip", "a.zip.json"]
    assert fetch([server.url], target) == target
    assert fetch(["http://nowhere.invalid/"], target, offline=True) == target
    assert server.seen == [None]
    target.write_bytes(b"changed")
    assert recorded_digest(target) is None


def test_dropped_connections_are_taken_up_where_they_broke(server, tmp_path):
    server.drops = [1_000_000, 500_000, 700_000]
    assert fetch([server.url], tmp_path / "a", pause=0.01).read_bytes() == DATA
    starts = [int(r.removeprefix("bytes=").rstrip("-")) if r else 0 for r in server.seen]
    assert len(starts) == 4
    assert starts == sorted(starts)
    assert starts[-1] >= 1_500_000


def test_an_interrupted_run_is_taken_up_by_the_next(server, tmp_path):
    server.drops = [1_000_000, 0, 0, 0, 0, 0, 0]
    with pytest.raises(InputError, match="cannot be fetched"):
        fetch([server.url], tmp_path / "a", pause=0.0)
    assert names(tmp_path) == ["a.part", "a.part.json"]
    server.drops, server.seen = [], []
    assert fetch([server.url], tmp_path / "a").read_bytes() == DATA
    assert server.seen[0].startswith("bytes=")
    assert names(tmp_path) == ["a", "a.json"]


def test_a_refusal_costs_nothing_that_is_here(server, tmp_path, monkeypatch):
    server.drops = [1_000_000, 0, 0]
    monkeypatch.setattr(download, "_ATTEMPTS", 2)
    with pytest.raises(InputError):
        fetch([server.url], tmp_path / "a", pause=0.0)
    server.refusals, server.seen = [404, 503], []
    assert fetch([server.url.replace("/file", "/missing"), server.url], tmp_path / "a", pause=0.0).read_bytes() == DATA
    assert server.seen[-1].startswith("bytes=")


def test_a_killed_download_is_taken_up_by_the_next(server, tmp_path):
    server.pause = 0.05
    program = "import sys, pathlib; from xswe.corpus import fetch as download\ndownload._CHUNK = 1 << 16\n"
    program += "download.fetch([sys.argv[1]], pathlib.Path(sys.argv[2]))"
    process = subprocess.Popen([sys.executable, "-c", program, server.url, str(tmp_path / "a")])
    part = tmp_path / "a.part"
    while process.poll() is None and not (part.is_file() and part.stat().st_size > 500_000):
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    server.pause, server.seen = 0.0, []
    assert fetch([server.url], tmp_path / "a").read_bytes() == DATA
    assert int(server.seen[0].removeprefix("bytes=").rstrip("-")) > 500_000


@pytest.mark.parametrize("change", ["other file", "no ranges"])
def test_a_partial_file_is_not_mixed_with_another(server, tmp_path, change):
    server.drops = [1_000_000] + [0] * 6
    with pytest.raises(InputError):
        fetch([server.url], tmp_path / "a", pause=0.0)
    server.drops = []
    if change == "other file":
        server.data, server.etag = DATA[::-1], '"two"'
    else:
        server.ranges = False
    assert fetch([server.url], tmp_path / "a").read_bytes() == server.data


def test_mirrors_in_turn(server, tmp_path):
    missing = server.url.replace("/file", "/missing")
    assert fetch([missing, server.url], tmp_path / "a", pause=0.0).read_bytes() == DATA
    assert len(server.seen) == 2  # a 404 is not asked for again


def test_a_wrong_checksum_leaves_nothing(server, tmp_path):
    with pytest.raises(InputError, match=r"has the checksum [0-9a-f]{64}, where 00 is published"):
        fetch([server.url], tmp_path / "a", sha256="00")
    assert names(tmp_path) == []


def test_the_message_without_network_says_what_to_do_by_hand(tmp_path):
    url = "http://127.0.0.1:9/file"
    with pytest.raises(InputError, match=rf"fetch {url} by hand, save it as {tmp_path}/a,"):
        fetch([url], tmp_path / "a", pause=0.0)
    with pytest.raises(InputError, match=r"corpus\.offline=true; fetch"):
        fetch([url], tmp_path / "b", offline=True)
    with pytest.raises(InputError, match="no http or https"):
        fetch(["file:///etc/passwd"], tmp_path / "c")
    assert names(tmp_path) == []


def test_a_full_disk_is_noticed_before_the_download(server, tmp_path, monkeypatch):
    import shutil

    usage = type("Usage", (), {"free": len(DATA) - 1})()
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    with pytest.raises(InputError, match="2 MiB are needed and 2 are free"):
        fetch([server.url], tmp_path / "a", pause=0.0)
    usage.free = len(DATA)
    assert fetch([server.url], tmp_path / "a").stat().st_size == len(DATA)


def test_attempts_are_further_and_further_apart_until_something_arrives(server, tmp_path, monkeypatch):
    pauses = []
    monkeypatch.setattr(download.time, "sleep", lambda seconds: seconds and pauses.append(seconds))
    server.drops = [0, 0, 0, 1_000_000, 0, 0, 0, 0, 0, 0]
    with pytest.raises(InputError, match=r"\(127\.0\.0\.1:\d+: IncompleteRead\(0 bytes read, 2000000 more expected\)\)"):
        fetch([server.url], tmp_path / "a", pause=3.0)
    assert pauses == [3.0, 6.0, 12.0, 3.0, 3.0, 6.0, 12.0]
    assert len(server.seen) == 8
    pauses.clear()
    server.drops, server.refusals = [], [503, 500]
    assert fetch([server.url], tmp_path / "a").read_bytes() == DATA
    assert pauses == [2.0, 4.0]  # a server's own trouble passes


@pytest.mark.parametrize("lost", [0, 1])
def test_a_part_that_the_server_has_nothing_to_add_to_is_whole_or_another_files(server, tmp_path, lost):
    (tmp_path / "a.part").write_bytes(DATA[lost:])
    state = {"url": server.url, "validator": '"one"', "total": len(DATA)}
    (tmp_path / "a.part.json").write_text(json.dumps(state))
    server.refusals = [416]
    if not lost:
        assert fetch([server.url], tmp_path / "a").read_bytes() == DATA
        return
    with pytest.raises(InputError, match="416"):
        fetch([server.url], tmp_path / "a")
    assert not (tmp_path / "a.part").exists()
    assert fetch([server.url], tmp_path / "a").read_bytes() == DATA


def test_the_record_holds_only_as_long_as_the_file_is_as_it_was_fetched(server, tmp_path):
    target = fetch([server.url], tmp_path / "a", sha256=hashlib.sha256(DATA).hexdigest().upper())
    state, digest = target.stat(), hashlib.sha256(DATA).hexdigest()
    record = {"url": server.url, "sha256": digest, "size": len(DATA), "mtime_ns": state.st_mtime_ns}
    assert json.loads((tmp_path / "a.json").read_text()) == record
    download.os.utime(target, ns=(state.st_mtime_ns, state.st_mtime_ns + 1))
    assert recorded_digest(target) is None
    assert download.digest_of(target) == digest
    download.os.utime(target, ns=(state.st_mtime_ns, state.st_mtime_ns))
    assert recorded_digest(target) == digest
