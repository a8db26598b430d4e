"""Who may ask, how much, and what a request that goes wrong does to the others."""

from __future__ import annotations

import contextlib
import http.client
import json
import random
import select
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from starlette.testclient import TestClient

import xswe
from tests.serving.conftest import running
from xswe.errors import ConfigError, InputError
from xswe.serving.concordance import Words, phrases_in
from xswe.serving.config import ServeConfig
from xswe.serving.messages import PhrasesRequest
from xswe.serving.passages import Corpus
from xswe.serving.refusals import Refused

HEAD = b"POST /v1/embeddings HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


def status(answer, part=""):
    fault = answer.json()["error"]["message"]
    assert part in fault, fault
    return answer.status_code


def test_limits_are_told(bare):
    def ask(**body):
        return bare.post("/v1/embeddings", json=body)

    assert ask(input="a" * 200).status_code == 200
    assert status(ask(input="a" * 201), "at most 200") == 400
    assert status(ask(input=["a"] * 9), "at most 8") == 400
    assert status(ask(input=["a" * 199] * 30), "max_bytes") == 413
    assert status(ask(input=[]), "empty") == 400
    assert status(ask(), "input") == 400
    assert ask(input="a", dimensions=0).json()["error"]["param"] == "dimensions"
    assert status(bare.post("/compare", json={"left": ["a"], "right": ["b"], "pair": [1, 0]}), "pair") == 400
    assert status(bare.post("/compare", json={"left": [], "right": []}), "pair") == 400
    assert status(bare.get("/search", params={"query": "a"}), "corpora=") == 404
    assert status(bare.post("/phrases", json={"query": "a", "passages": ["a"], "k": 201, "lines": 100}), "20,000") == 400
    assert status(bare.post("/mine", json={"source": ["a"] * 9, "target": []}), "at most 8") == 400


def test_small_requests_with_large_answers_are_refused(bare, mini, corpora):
    passages = ["cat dog horse cow sheep goat pig hen duck goose mouse rat bear wolf fox deer lion tiger ape bird fish"] * 8
    asked = {"query": "cat", "k": 100, "lines": 100, "min_score": 0, "passages": passages}
    assert status(bare.post("/phrases", json=asked), "4,096 bytes of passages") == 400
    with TestClient(
        xswe.make_app(mini, corpora[2:], threads=1, max_bytes=600, keep=False), base_url="http://localhost"
    ) as few:
        for path, one, hundred in (("/search", {}, {}), ("/phrases", {"lines": 1}, {"lines": 100, "min_score": 0.1})):
            assert few.get(path, params={"query": "snow", "k": 1, **one}).status_code == 200
            many = {"query": "snow", "k": 100, **hundred}
            assert status(few.get(path, params=many), "600 bytes of passages") == 400


def test_passages_of_a_request_are_counted_in_bytes(mini):
    words, passages = Words(mini), ["猫が寝ている。"] * 10  # of 21 bytes, 7 characters
    asked = PhrasesRequest("猫", passages=passages, match="exact", lines=10)
    assert phrases_in(words, 210, asked).variants[0].count == 10
    with pytest.raises(Refused, match="209 bytes of passages"):
        phrases_in(words, 209, asked)


def test_parts_that_take_many_times_their_bytes_are_counted_before_they_are_read(mini):
    with TestClient(xswe.make_app(mini, threads=1, max_texts=100), base_url="http://localhost") as client:
        for path, body in (("/v1/embeddings", b'{"input": [%s""]}' % (b'"ab",' * 300_000)), ("/export", b"[" * (1 << 21))):
            answer = client.post(path, content=body, headers={"content-type": "application/json"})
            assert status(answer, "too many parts") == 400
        quoted = 'say "a" and "b" ' * 1000  # an escaped quotation mark is no part
        assert client.post("/v1/embeddings", json={"input": [quoted] * 70}).status_code == 200


def test_an_endless_body_is_cut_off(server):
    one = connection(server)
    one.sendall(HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
    sent = 0
    with contextlib.suppress(ConnectionError):
        while sent < 64 << 20:
            one.sendall(b"10000\r\n" + b" " * 0x10000 + b"\r\n")
            sent += 0x10000
            if select.select([one], [], [], 0)[0]:
                break
    assert sent < 64 << 20
    assert b" 413 " in one.recv(100)


def test_only_json_is_read(bare):
    assert status(bare.post("/v1/embeddings", content=b"{}"), "Content-Type") == 415
    for body in (b"", b"{", b"[]", b'{"input": "\xff"}', b'{"input": "\\ud800"}', b"[" * 4000, b'{"input":' * 400):
        answer = bare.post("/v1/embeddings", content=body, headers={"content-type": "application/json"})
        assert answer.status_code == 400, body[:20]
        assert answer.json()["error"]["message"]


def test_a_key_is_asked_for(bare):
    for wrong in ("", "Bearer", "Bearer Secret", "secret", "Bearer secre", "Bearer secrets"):
        answer = bare.post("/v1/embeddings", json={"input": "a"}, headers={"authorization": wrong})
        assert status(answer, "key") == 401
        assert bare.get("/info", headers={"authorization": wrong}).status_code == 401
        assert bare.get("/metrics", headers={"authorization": wrong}).status_code == 401
        assert bare.get("/", headers={"authorization": wrong}).status_code == 200
        for path in ("/healthz", "/readyz"):
            assert bare.get(path, headers={"authorization": wrong}).status_code == 200


def test_other_names_are_refused_on_the_loopback(client, mini):
    for host in ("evil.example", "evil.example:8000", "127.0.0.1.evil.example", "[::2]", ""):
        assert client.get("/info", headers={"host": host}).status_code == 421
    for host in ("localhost", "LOCALHOST:8000", "127.0.0.1:1", "[::1]", "[::1]:8000"):
        assert client.get("/info", headers={"host": host}).status_code == 200
    with TestClient(xswe.make_app(mini, hosts=("box",), threads=1), base_url="http://box:80") as named:
        assert named.get("/info").status_code == 200
    assert not ServeConfig(host="0.0.0.0").names
    both = client.get("/info", headers=[("host", "localhost"), ("host", "evil.example")])
    assert status(both, "several host headers") == 400
    twice = client.get("/info", headers=[("host", "localhost"), ("authorization", "a"), ("authorization", "b")])
    assert status(twice, "several authorization headers") == 400


def test_every_answer_carries_its_policy(client):
    for path in ("/", "/api", "/static/app.js", "/info", "/nothing", "/v1/embeddings"):
        headers = client.get(path).headers
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert "access-control-allow-origin" not in headers


def test_what_goes_wrong_here_is_logged_and_told(mini, monkeypatch, caplog):
    """With a name that stands in both, and nothing of what went wrong in the answer."""
    from xswe.serving import service
    from xswe.serving.logs import JsonLines

    def fails(message):
        raise RuntimeError("inside")

    monkeypatch.setattr(service, "export", fails)
    config = ServeConfig(port=0, threads=1)
    with running(xswe.make_app(mini, config=config), config) as server:
        import httpx2

        answer = httpx2.post(f"{server.address}/export", json={"format": "tmx", "units": []})
    assert status(answer, "the log says what") == 500
    assert answer.json()["error"]["type"] == "server_error"
    assert "inside" not in answer.text
    (record,) = [record for record in caplog.records if record.exc_info]
    line = json.loads(JsonLines().format(record))
    assert line["request"] == answer.headers["x-request-id"]
    assert "RuntimeError: inside" in line["exception"]


def test_other_sites_only_where_told(client, mini):
    asked = {"origin": "https://example.org", "access-control-request-method": "POST"}
    assert "access-control-allow-origin" not in client.options("/v1/embeddings", headers=asked).headers
    app = xswe.make_app(mini, origins=("https://example.org",), api_key="k", threads=1)
    with TestClient(app, base_url="http://localhost") as told:
        answer = told.options("/v1/embeddings", headers={**asked, "access-control-request-headers": "authorization"})
        assert answer.headers["access-control-allow-origin"] == "https://example.org"
        other = told.options("/v1/embeddings", headers={**asked, "origin": "https://evil.example"})
        assert "access-control-allow-origin" not in other.headers


def test_no_path_comes_from_a_request(client):
    for path in (
        "/static/../app.py",
        "/static/%2e%2e/app.py",
        "/static//etc/passwd",
        "/static/..%2fapp.py",
        "/%00",
        "/" + "a" * 3000,
    ):
        assert client.get(path).status_code == 404


def test_too_many_at_once_are_turned_away(mini):
    app = xswe.make_app(mini, threads=1, waiting=1)
    with TestClient(app, base_url="http://localhost") as client:
        lines = [f"line {row} of some text" for row in range(800)]
        seen = []

        def ask():
            seen.append(client.post("/mine", json={"source": lines, "target": lines}).status_code)

        threads = [threading.Thread(target=ask) for _ in range(8)]
        for thread in threads:
            thread.start()
        ready = set()
        while any(thread.is_alive() for thread in threads):
            assert client.get("/healthz").status_code == 200  # is answered all the while
            ready.add(client.get("/readyz").status_code)
        assert ready == {200, 503}
        for thread in threads:
            thread.join()
        assert set(seen) == {200, 429}
        assert seen.count(200) >= 2
        answer = client.post("/v1/embeddings", json={"input": "a"})
        assert answer.status_code == 200


def connection(server):
    found = socket.create_connection(("127.0.0.1", server.port), timeout=10)
    return found


def closed_within(found, seconds):
    """Tell whether the other side closes a connection."""
    found.settimeout(seconds)
    try:
        while found.recv(1 << 16):
            pass
    except TimeoutError:
        return False
    except ConnectionError:
        pass
    return True


def test_an_application_can_be_started_again(mini):
    app = xswe.make_app(mini, config=ServeConfig(threads=1))
    texts = ["a cat sleeps here"] * 2000
    for _ in range(2):
        with TestClient(app, base_url="http://localhost") as client, ThreadPoolExecutor(4) as pool:
            answers = pool.map(
                lambda size: client.post("/v1/embeddings", json={"input": texts[:size]}), (1, 2000, 2000, 2000)
            )
            assert [answer.status_code for answer in answers] == [200] * 4


def test_who_hangs_is_given_up_and_harms_nobody(server):
    silent = [connection(server) for _ in range(40)]
    heads = [connection(server) for _ in range(40)]
    bodies = [connection(server) for _ in range(40)]
    for one in heads:
        one.sendall(b"POST /v1/embeddings HTTP/1.1\r\nHost: localhost\r\nX-A: ")
    for one in bodies:
        one.sendall(HEAD + b"Content-Length: 100\r\n\r\n{")
    started = time.monotonic()
    for _ in range(50):
        assert ask(server, {"input": "a"}) == 200
    assert time.monotonic() - started < 5
    assert all(closed_within(one, 10) for one in [*silent, *heads, *bodies])


def ask(server, body):
    found = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    found.request("POST", "/v1/embeddings", json.dumps(body), {"Content-Type": "application/json"})
    answer = found.getresponse()
    answer.read()
    found.close()
    return answer.status


def test_who_does_not_read_is_given_up(server):
    one = connection(server)
    one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    body = json.dumps({"input": ["a cat"] * 2000}).encode()  # some ten megabytes of an answer
    head = (
        b"POST /v1/embeddings HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
    )
    one.sendall(head % len(body) + body)
    assert select.select([one], [], [], 20)[0]
    deadline = time.monotonic() + 15
    while server.connections and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not server.connections
    one.close()
    assert ask(server, {"input": "a"}) == 200


def test_small_answers_that_are_not_read_are_given_up(server):
    one = socket.socket()
    one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    one.connect(("127.0.0.1", server.port))
    body = json.dumps({"input": ["a cat"] * 9}).encode()  # is sent as a whole, and whether it is read no application sees
    deadline = time.monotonic() + 10
    while not any(other.transport.get_write_buffer_size() for other in list(server.connections)):
        assert time.monotonic() < deadline
        one.sendall(HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body)
        time.sleep(0.03)
    while server.connections:
        assert time.monotonic() < deadline + 10
        time.sleep(0.1)
    one.close()


def test_requests_ahead_of_their_answers_are_few(server):
    with connection(server) as one:
        one.sendall(b"GET /info HTTP/1.1\r\nHost: localhost\r\n\r\n" * 5000)
        with contextlib.suppress(ConnectionError):
            answers = b""
            while part := one.recv(1 << 16):
                answers += part
    assert 1 < answers.count(b"HTTP/1.1 200") < 20
    assert answers.count(b"connection: close") == 1
    assert ask(server, {"input": "a"}) == 200


def test_a_head_has_few_fields_and_bytes_also_behind_a_request(server):
    long = [b"X: " + b"a" * 300_000, b"a: b\r\n" * 200]
    for first in (
        b"",
        b"POST /mine HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n",
    ):
        for fields in long:
            with connection(server) as one, contextlib.suppress(ConnectionError):
                one.sendall(
                    first + (b"{}       {" if first else b"")[:9] + b"GET /info HTTP/1.1\r\nHost: localhost\r\n" + fields
                )
                assert closed_within(one, 0.8)  # before its time is over
    assert ask(server, {"input": "a"}) == 200


def test_too_many_connections_close_those_that_are_idle(mini):
    config = ServeConfig(port=0, threads=1, seconds=30.0, max_connections=20)
    with running(xswe.make_app(mini, config=config), config) as server:
        asking = connection(server)
        asking.sendall(HEAD + b"Content-Length: 100\r\n\r\n{")
        time.sleep(0.1)
        idle = [connection(server) for _ in range(60)]
        assert all(closed_within(one, 5) for one in idle[:40])
        assert ask(server, {"input": "a"}) == 200
        assert len(server.connections) <= 21
        asking.sendall(b" " * 97 + b"}}")
        assert b" 400 " in asking.recv(100)  # was busy, and is answered
        for one in [asking, *idle]:
            one.close()


def test_killed_connections_and_rubbish_harm_nobody(server):
    generator = random.Random(0)
    body = json.dumps({"input": ["A cat sleeps."] * 500}).encode()
    whole = HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body
    for number in range(200):
        one = connection(server)
        sent = whole[: generator.randrange(len(whole) + 1)] if number % 2 else generator.randbytes(generator.randrange(400))
        one.sendall(sent)
        one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # close by a reset
        one.close()
    assert ask(server, {"input": "a"}) == 200
    one = connection(server)
    with contextlib.suppress(ConnectionError):
        for _ in range(20):  # a head without end
            one.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 10_000)
            time.sleep(0.01)
    assert closed_within(one, 5)
    assert ask(server, {"input": "a"}) == 200


def test_memory_stays_flat(client):
    import resource

    def used():
        with open("/proc/self/statm") as stream:
            return int(stream.read().split()[1]) * resource.getpagesize() / 1e6

    try:
        used()
    except OSError:
        pytest.skip("/proc is not here")
    for _ in range(30):
        client.post("/v1/embeddings", json={"input": ["A cat sleeps."] * 8})
    before = used()
    for number in range(75):
        client.post("/v1/embeddings", json={"input": [f"A cat sleeps {number}."] * 8})
        client.get(f"/{number}")
    assert used() - before < 8


def test_settings_that_cannot_be_are_refused(mini):
    for wrong in (
        {"port": 70000},
        {"seconds": 0.0},
        {"max_texts": 0},
        {"api_key": " "},
        {"origins": ("evil",)},
        {"ports": 1},
    ):
        with pytest.raises(ConfigError, match=next(iter(wrong))):
            xswe.make_app(mini, **wrong)


def test_corpora_say_their_languages(mini, tmp_path):
    assert Corpus.of("a/news.en-de.tsv").languages == ("en", "de")
    assert Corpus.of("manual.ja.txt").languages == ("ja",)
    assert Corpus.of("x/book.de").languages == ("de",)
    assert Corpus.of("deck-en_ja.v2.zh.tsv.gz").languages == ("zh",)
    named = Corpus.of({"path": "x.tsv", "languages": ["ja", "en"], "name": "mine"})
    assert (named.name, named.languages) == ("mine", ("ja", "en"))
    for entry in (
        "pairs.tsv",
        {"path": "pairs.tsv"},
        {"languages": ["en"]},
        {"path": "a", "languages": ["en", "de", "ja"]},
    ):
        with pytest.raises(ConfigError, match="corpora"):
            Corpus.of(entry)
    with pytest.raises(InputError, match="missing"):
        xswe.make_app(mini, [str(tmp_path / "missing.en-de.tsv")])
    (tmp_path / "empty.en-de.tsv").write_text("")
    with pytest.raises(ConfigError, match="no passages"):
        xswe.make_app(mini, [str(tmp_path / "empty.en-de.tsv")])
    (tmp_path / "a.ja.txt").write_text("猫\n")
    with pytest.raises(ConfigError, match=r"a\.ja\.txt"):
        xswe.make_app(mini, [str(tmp_path / "a.ja.txt"), str(tmp_path / "a.ja.txt")])
