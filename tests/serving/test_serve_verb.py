"""The verb: a server that runs until it is interrupted, and says what is wrong before it works."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import shutil
import signal
import socket
import string
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import xswe
from tests.serving.conftest import free_port, resident, started
from xswe.errors import ConfigError, ModelError


@contextlib.contextmanager
def serving(*settings: str, **how: Any) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """Run the verb until it answers; gives its process and port."""
    port = free_port()
    with started(["xswe", "serve", f"port={port}", "threads=1", "keep=false", *settings], port, **how) as running:
        yield running, port


def ask(port, path, body=None, given=()):
    headers = dict(given) | ({} if body is None else {"Content-Type": "application/json"})
    content = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", content, headers)
    with urllib.request.urlopen(request, timeout=60) as answer:
        return answer.read()


def test_it_serves_and_logs_lines_of_json_until_it_is_interrupted(corpora):
    settings = (f"corpora=[{corpora[2]}]", "access_log=true", "log=json", "api_key=secret")
    with serving(*settings) as (running, port):
        given = {"Authorization": "Bearer secret"}
        info = json.loads(ask(port, "/info", None, given))
        assert info["corpora"] == ["manual.ja.txt"]
        assert "/" not in json.dumps(info)  # no path of this machine
        asked = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
        names = []
        for name in ("7c4a-e1", "two words", ""):
            asked.request("GET", "/search?query=private%20words", headers={"X-Request-Id": name} | given)
            answer = asked.getresponse()
            assert answer.read()
            names.append(answer.headers["x-request-id"])
        asked.request("GET", "/a%0Ab", headers={"Authorization": "wrong"})
        asked.getresponse().read()
        asked.close()
        running.send_signal(signal.SIGINT)
        lines = [json.loads(line) for line in running.communicate(timeout=20)[1].splitlines()]
    assert running.returncode == 0, lines
    assert names[0] == "7c4a-e1"
    assert len(set(names)) == 3
    assert all(re.fullmatch("[0-9a-f]{16}", name) for name in names[1:])
    told = [line for line in lines if line["logger"] == "xswe.access"]
    assert [line["request"] for line in told[1:4]] == names
    assert [(line["method"], line["path"], line["status"]) for line in told] == [
        ("GET", "/info", 200),
        *[("GET", "/search", 200)] * 3,
        ("GET", "/a\nb", 401),
    ]
    assert all(line["level"] == "info" and line["client"] == "127.0.0.1" and line["ms"] > 0 for line in told)
    assert all(datetime.fromisoformat(line["time"]).utcoffset() is not None for line in lines)
    assert "private" not in json.dumps(lines)
    assert any(f"http://127.0.0.1:{port}" in line["message"] for line in lines)


def mining(port, lines, outcome):
    """Mine so many lines on a thread; leave the answer, or its status, in a list."""

    def mine():
        texts = [f"line {number} of some text" for number in range(lines)]
        try:
            outcome.append("pairs" in json.loads(ask(port, "/mine", {"source": texts, "target": texts})))
        except urllib.error.HTTPError as error:
            outcome.append(error.code)

    asking = threading.Thread(target=mine)
    asking.start()
    while "xswe_busy 1" not in ask(port, "/metrics").decode():
        time.sleep(0.02)
    return asking


@pytest.mark.slow
def test_what_takes_too_long_is_refused_at_the_end():
    """Without a traceback; what is finished in time, in test_servers.py."""
    with serving("max_texts=50000", "seconds=2") as (running, port):
        outcome = []
        asking = mining(port, 40_000, outcome)
        running.send_signal(signal.SIGTERM)
        said = running.communicate(timeout=30)
        asking.join(10)
    assert "Traceback" not in said[1]
    assert outcome == [503]


@pytest.mark.slow
def test_who_asks_while_it_is_stopped_is_answered():
    body = json.dumps({"input": "A cat sleeps."}).encode()
    head = b"POST /v1/embeddings HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    request = head + b"Content-Length: %d\r\n\r\n" % len(body) + body

    def answered(one):
        one.sendall(request)
        answer = http.client.HTTPResponse(one)
        answer.begin()
        assert answer.status == 200
        assert len(json.loads(answer.read())["data"][0]["embedding"]) == 256
        return answer.will_close

    with serving() as (running, port), contextlib.ExitStack() as sockets:

        def connect():
            return sockets.enter_context(socket.create_connection(("127.0.0.1", port), timeout=20))

        kept = [connect() for _ in range(10)]
        assert not any(map(answered, kept))
        running.send_signal(signal.SIGSTOP)  # those that the system takes meanwhile, the server has not seen
        new = [connect() for _ in range(10)]
        for one in new:
            one.sendall(request)
        running.send_signal(signal.SIGTERM)
        running.send_signal(signal.SIGCONT)
        for one in new:
            answer = http.client.HTTPResponse(one)
            answer.begin()
            assert (answer.status, len(json.loads(answer.read())["data"])) == (200, 1)
        while kept:  # between two requests nobody loses the next one: the last answer says that it is the last
            kept = [one for one in kept if not answered(one)]
        said = running.communicate(timeout=20)
    assert "Traceback" not in said[1]


def units():
    """The units of the guide, by name."""
    guide = (Path(__file__).parents[2] / "docs" / "how-to" / "serve.md").read_text("utf-8")
    return dict(re.findall(r"```ini\n# /etc/systemd/system/(\S+)\n(.*?)```", guide, re.DOTALL))


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_the_units_of_the_guide_are_sound(tmp_path):
    for name, content in units().items():
        (tmp_path / name).write_text(content.replace("/opt/xswe/bin/python", sys.executable), "utf-8")
    paths = [str(path) for path in tmp_path.iterdir()]
    assert len(paths) == 2
    done = subprocess.run(["systemd-analyze", "verify", *paths], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.slow
def test_a_restart_behind_a_socket_of_systemd_turns_nobody_away(tmp_path, corpora):
    """Who connects while nobody serves waits for the next process; each says when it is ready, and when it stops."""
    command = re.search(r"ExecStart=\S+ (.*?)\n(?! )", units()["xswe.service"], re.DOTALL)[1].replace("\\\n", " ")
    settings = command.replace("$$", "$").replace("/srv/corpora/news.en-de.tsv", corpora[1]).split()
    with socket.socket() as place, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notified:
        place.bind(("127.0.0.1", 0))
        place.listen(64)
        notified.bind(str(tmp_path / "notify"))
        notified.settimeout(60)
        port, ended, outcomes = place.getsockname()[1], threading.Event(), []

        def keep_asking():
            while not ended.is_set():
                answer = ask(port, "/v1/embeddings", {"input": "a"}, {"Authorization": "Bearer secret"})
                outcomes.append(len(json.loads(answer)["data"]))

        def start():
            given = {**os.environ, "LISTEN_FDS": "1", "NOTIFY_SOCKET": str(tmp_path / "notify")}
            given |= {"XSWE_API_KEY": "secret", "XSWE_CACHE": str(tmp_path)}
            command = ["sh", "-c", 'LISTEN_PID=$$ exec "$@"', "sh", sys.executable, *settings]
            hand = partial(os.dup2, place.fileno(), 3)
            with (tmp_path / "log").open("a") as log:  # of a pipe that nobody reads, a server that logs would wait
                return subprocess.Popen(command, stderr=log, env=given, pass_fds=[3], preexec_fn=hand)

        processes = [start()]
        asking = [threading.Thread(target=keep_asking) for _ in range(4)]
        try:
            assert notified.recv(100) == b"READY=1"
            for one in asking:
                one.start()
            time.sleep(0.3)
            before = len(outcomes)
            processes[0].send_signal(signal.SIGTERM)
            assert notified.recv(100) == b"STOPPING=1"
            processes.append(start())
            assert notified.recv(100) == b"READY=1"
            while len(outcomes) < before + 50:
                time.sleep(0.02)
                assert any(one.is_alive() for one in asking)
            ended.set()
            for one in asking:
                one.join(60)
            processes[1].send_signal(signal.SIGTERM)
            for one in processes:
                one.wait(60)
        finally:
            ended.set()
            for one in processes:
                one.kill()
    assert set(outcomes) == {1}
    assert "Traceback" not in (tmp_path / "log").read_text("utf-8")


def test_several_sockets_of_systemd_are_refused(monkeypatch, mini):
    monkeypatch.setenv("LISTEN_PID", str(os.getpid()))
    monkeypatch.setenv("LISTEN_FDS", "2")
    with pytest.raises(ConfigError, match="ListenStream="):
        xswe.serve(mini)


@pytest.mark.slow
def test_who_does_not_read_costs_no_memory_and_harms_nobody():
    """40 answers of 70 MB each are asked for, and not read."""
    words = [a + b for a in string.ascii_lowercase for b in string.ascii_lowercase] * 21
    asked = json.dumps({"input": words}).encode()
    head = (
        b"POST /v1/embeddings HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
    )
    with serving("seconds=2") as (running, port), contextlib.ExitStack() as sockets:
        many = {"input": words[:500], "encoding_format": "base64"}
        for _ in range(3):
            ask(port, "/v1/embeddings", many)
        idle, most, few = resident(running.pid), 0.0, files(running.pid)
        for _ in range(40):
            one = sockets.enter_context(socket.create_connection(("127.0.0.1", port)))
            one.sendall(head % len(asked) + asked)
        started = time.monotonic()
        while time.monotonic() - started < 5:
            assert len(json.loads(ask(port, "/v1/embeddings", {"input": "a"}))["data"]) == 1
            assert len(json.loads(ask(port, "/v1/embeddings", many))["data"]) == 500
            most = max(most, resident(running.pid))
        assert most - idle < 80
        deadline = time.monotonic() + 10
        while files(running.pid) > few + 2:  # the sockets are closed
            assert time.monotonic() < deadline
            time.sleep(0.1)


def files(process):
    return len(os.listdir(f"/proc/{process}/fd"))


def test_a_missing_model_is_told_before_the_port_is_taken():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        one.listen()
        port = one.getsockname()[1]
        with pytest.raises(ModelError, match="nope"):
            xswe.serve("nope", port=port)
        with pytest.raises(TypeError, match=r"xswe\.serve\(model, corpora\)"):
            xswe.serve(None, port=port)


def test_a_port_that_is_taken_is_told_at_once(mini):
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        one.listen()
        with pytest.raises(ConfigError, match="port="):
            xswe.serve(mini, ["missing.en-de.tsv"], port=one.getsockname()[1])
