"""What holds behind every ASGI server that the guide names."""

from __future__ import annotations

import contextlib
import http.client
import json
import re
import signal
import socket
import time
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from tests.serving.conftest import SERVERS, resident, served_by

HEAD = b"POST /v1/embeddings HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


# To start a server takes seconds.
OWN, *OTHERS = SERVERS


@pytest.fixture(scope="module", params=[OWN, *(pytest.param(name, marks=pytest.mark.slow) for name in OTHERS)])
def behind(request, tmp_path_factory) -> Iterator[SimpleNamespace]:
    with served_by(request.param, tmp_path_factory.mktemp("served"), [], seconds=1.0, max_bytes=1 << 20) as server:
        yield server


def ask(server, method, path, body=None):
    found = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    with contextlib.closing(found):
        content = None if body is None else json.dumps(body)
        found.request(method, path, content, {"Content-Type": "application/json"})
        answer = found.getresponse()
        return answer.status, answer.read()


def sent(server, *parts):
    """Send bytes, part by part, and return what comes until the other side ends or says no more."""
    answer = b""
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as one, contextlib.suppress(OSError):
        with contextlib.suppress(ConnectionError):
            for part in parts:
                one.sendall(part)
        one.settimeout(5)
        while not (found := re.search(rb"(?i)content-length: (\d+)\r\n.*?\r\n\r\n", answer, re.DOTALL)) or (
            len(answer) < found.end() + int(found[1])
        ):
            if not (more := one.recv(1 << 16)):
                break
            answer += more
    return answer


def test_a_request_has_one_host(behind):
    assert b" 200 " in sent(behind, b"GET /info HTTP/1.1\r\nHost: localhost\r\n\r\n")
    for hosts in (("localhost", "evil.example"), ("evil.example", "localhost"), ("localhost", "localhost")):
        fields = "".join(f"Host: {host}\r\n" for host in hosts).encode()
        assert b" 400 " in sent(behind, b"GET /info HTTP/1.1\r\n" + fields + b"\r\n").partition(b"\r\n")[0]
    assert b" 421 " in sent(behind, b"GET /info HTTP/1.1\r\nHost: evil.example\r\n\r\n")


def test_a_body_has_so_many_bytes(behind):
    assert b" 413 " in sent(behind, HEAD + b"Content-Length: 2000000\r\n\r\n", b" " * 1000)
    chunk = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
    answer = sent(behind, HEAD + b"Transfer-Encoding: chunked\r\n\r\n", *[chunk] * 40)
    assert b" 413 " in answer or not answer  # where the connection is reset before the answer is read
    assert ask(behind, "POST", "/v1/embeddings", {"input": "a"})[0] == 200


def test_a_body_comes_in_time(behind):
    started = time.monotonic()
    assert b" 408 " in sent(behind, HEAD + b"Content-Length: 100\r\n\r\n{")
    assert time.monotonic() - started < 4


def test_who_does_not_read_an_answer_is_given_up(behind):
    """Twenty answers of 70 MB each are begun, and none is read."""
    words = json.dumps({"input": ["a cat"] * 14_000}).encode()
    for _ in range(3):
        ask(behind, "POST", "/v1/embeddings", {"input": ["a cat"] * 500})
    before = resident(behind.process.pid, all_of_it=True)
    with contextlib.ExitStack() as sockets:
        for _ in range(20):
            one = sockets.enter_context(socket.create_connection(("127.0.0.1", behind.port)))
            one.sendall(HEAD + b"Content-Length: %d\r\n\r\n" % len(words) + words)
        deadline, most = time.monotonic() + 15, 0.0
        time.sleep(1)
        while time.monotonic() < deadline:
            status, text = ask(behind, "GET", "/metrics")
            most = max(most, resident(behind.process.pid, all_of_it=True))
            assert status == 200
            if b"xswe_buffered_bytes 0.0" in text:
                break
            time.sleep(0.2)
        else:
            pytest.fail("they are still waited for")
    assert most - before < 100


@pytest.mark.slow
@pytest.mark.parametrize("name", SERVERS)
def test_it_ends_without_a_traceback_while_it_works(name, tmp_path):
    with served_by(name, tmp_path, [], seconds=5.0) as server:
        body = json.dumps({"source": [f"line {k} of a text" for k in range(4000)], "target": ["a"] * 4000}).encode()
        with socket.create_connection(("127.0.0.1", server.port), timeout=30) as one:
            head = b"POST /mine HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            one.sendall(head + b"Content-Length: %d\r\n\r\n" % len(body) + body)
            while b"xswe_busy 1.0" not in ask(server, "GET", "/metrics")[1]:
                time.sleep(0.02)
            server.process.send_signal(signal.SIGTERM)
            answer = http.client.HTTPResponse(one)
            answer.begin()
            content = json.loads(answer.read())  # whole
        said = server.process.communicate(timeout=30)
    assert answer.status in (200, 503)
    assert ("pairs" if answer.status == 200 else "error") in content
    assert "Traceback" not in said[1]
