"""A request and its answer, message by message, and who is admitted: without a server."""

from __future__ import annotations

import asyncio
import json
import threading
from types import SimpleNamespace

import pytest
from starlette.requests import ClientDisconnect

from xswe.serving import guard as module
from xswe.serving.budget import BLOCK, PIECE, SENT, Budget
from xswe.serving.config import ServeConfig
from xswe.serving.guard import ABORT, Exchange, Gate, Guard
from xswe.serving.refusals import Refused


def parts_of(*parts):
    """Return what receives the parts of a body."""
    left = list(parts)

    async def receive():
        if not left:
            return {"type": "http.disconnect"}
        part = left.pop(0)
        return {"type": "http.request", "body": part, "more_body": bool(left)}

    return receive


def exchange(*parts, headers=(), sent=None, receive=None):
    async def send(message):
        sent.append(message)

    reservation = Budget(ServeConfig()).open("a")
    return Exchange({"headers": list(headers)}, receive or parts_of(*parts), send, reservation)


def run(work):
    async def main():
        return await work()

    return asyncio.run(main())


def test_a_body_is_read_part_by_part():
    async def body(*parts, most=10, headers=(), seconds=5.0):
        made = exchange(*parts, headers=headers)
        return bytes(await made.body(most, seconds)), made.reservation.size

    for parts in ((b"",), (b"abc",), (b"abc", b"de"), (b"a", b"", b"b"), (b"0123456789",)):
        assert run(lambda parts=parts: body(*parts)) == (b"".join(parts), 0)
    length = [(b"content-length", b"10")]
    assert run(lambda: body(b"0123456789", headers=length)) == (b"0123456789", 0)
    for parts, headers in (
        ((b"0123456789x",), ()),
        ((b"01234", b"56789", b"x"), ()),
        ((), [(b"content-length", b"11")]),
    ):
        with pytest.raises(Refused, match="the body is larger than 10 bytes; send less at a time") as raised:
            run(lambda parts=parts, headers=headers: body(*parts, headers=headers))
        assert raised.value.status == 413
    with pytest.raises(Refused, match="larger than 1,000 bytes"):
        run(lambda: body(bytes(1001), most=1000))
    odd = [(b"content-length", b"-5")]  # as if there were none
    assert run(lambda: body(b"abc", headers=odd)) == (b"abc", 0)


@pytest.mark.parametrize(
    ("size", "declared", "reserved"),
    [
        (PIECE // 2, True, 0),
        (PIECE // 2 + 1, True, 2 * (PIECE // 2 + 1) + BLOCK),
        (PIECE // 2, False, 0),
        (PIECE // 2 + 1, False, 2 * (PIECE // 2 + 1) + BLOCK),
    ],
)
def test_room_is_reserved_for_a_large_body_and_what_is_made_of_it(size, declared, reserved):
    async def work():
        made = exchange(bytes(size), headers=[(b"content-length", str(size).encode())] if declared else ())
        assert len(await made.body(1 << 20, 5.0)) == size
        return made.reservation.size

    assert run(work) == reserved


def test_a_body_that_goes_on_has_room_for_the_largest():
    async def work():
        made = exchange(bytes(PIECE), bytes(9))
        assert len(await made.body(200_000, 5.0)) == PIECE + 9
        return made.reservation.size

    assert run(work) == 400_000 + BLOCK


def test_a_body_that_ends_early_or_takes_too_long(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])

    async def gone():
        return {"type": "http.disconnect"}

    with pytest.raises(ClientDisconnect):
        run(lambda: exchange(receive=gone).body(10, 5.0))

    def slow(seconds):
        async def receive():
            now[0] += seconds
            return {"type": "http.request", "body": b"a", "more_body": now[0] < 15.0}

        async def work():
            now[0] = 0.0
            return await exchange(receive=receive).body(99, 10.0)

        return work

    with pytest.raises(Refused, match="the body did not come within 10 s") as raised:
        run(slow(5.1))
    assert raised.value.status == 408
    assert run(slow(15.0)) == b"a"  # late, but whole


def test_an_answer_is_sent_in_pieces():
    async def work():
        sent = []
        made = exchange(b"", sent=sent, headers=[(b"x-request-id", b"own")])
        await made.send({"type": "http.response.start", "status": 201, "headers": [(b"a", b"b")]})
        assert (made.status, made.answered, sent[0]["status"]) == (201, False, 201)
        assert sent.pop(0)["headers"][:2] == [(b"a", b"b"), (b"x-request-id", b"own")]
        for size, more, pieces in (
            (3, True, [3]),
            (PIECE, True, [PIECE]),
            (PIECE + 1, True, [PIECE + 1]),
            (SENT, True, [SENT]),
            (2 * SENT + 1, True, [SENT, SENT, 1]),
            (2 * SENT + 1, False, [SENT, SENT, 1, 0]),
        ):
            sent.clear()
            body = bytes(range(256)) * (size // 256 + 1)
            await made.send({"type": "http.response.body", "body": memoryview(body[:size]), "more_body": more})
            assert [len(message["body"]) for message in sent] == pieces
            assert b"".join(message["body"] for message in sent) == body[:size]
            assert [message["more_body"] for message in sent] == [True] * (len(pieces) - 1) + [more]
            assert made.answered != more
        assert made.reservation.size == 2 * SENT + 1
        assert made.reservation._since is None  # nothing is expected of the client

    run(work)


def test_a_gate_turns_away_who_does_not_fit():
    async def work():
        gate = Gate(ServeConfig(threads=1, waiting=1))
        reservation, go = Budget(ServeConfig()).open("a"), threading.Event()

        def slow():
            go.wait(10)
            return b"done" * PIECE

        first, second = (asyncio.ensure_future(gate.answer(reservation, 9, slow)) for _ in range(2))
        await asyncio.sleep(0)
        assert (gate.busy, gate.full) == (2, True)
        with pytest.raises(Refused, match="2 requests are being processed; try again in a second") as raised:
            await gate.answer(reservation, 9, slow)
        assert raised.value.status == 429
        go.set()
        assert [len(found) for found in await asyncio.gather(first, second)] == [4 * PIECE] * 2
        assert (gate.busy, gate.full, reservation.size) == (0, False, 4 * PIECE)
        assert await gate.run(lambda value: value + 1, 2) == 3
        gate.close()
        assert await gate.run(lambda: "again") == "again"
        gate.close()

    run(work)


@pytest.mark.parametrize(
    ("path", "method", "headers", "status"),
    [
        ("/info", "GET", {b"host": b"localhost", b"authorization": b"Bearer own"}, 200),
        ("/info", "GET", {b"host": b"LOCALHOST:8000", b"authorization": b"Bearer own"}, 200),
        ("/info", "GET", {b"host": b"[::1]:8000", b"authorization": b"Bearer own"}, 200),
        ("/info", "GET", {b"host": b"[::1]", b"authorization": b"Bearer own"}, 200),
        ("/info", "GET", {b"host": b"localhost.example", b"authorization": b"Bearer own"}, 421),
        ("/info", "GET", {b"authorization": b"Bearer own"}, 421),
        ("/info", "GET", {b"host": b"localhost"}, 401),
        ("/info", "GET", {b"host": b"localhost", b"authorization": b"Bearer other"}, 401),
        ("/info", "OPTIONS", {b"host": b"localhost"}, 200),
        ("/healthz", "GET", {b"host": b"localhost"}, 200),
        ("/static/page.js", "GET", {b"host": b"localhost"}, 200),
        ("/statics", "GET", {b"host": b"localhost"}, 401),
        ("/info", "GET", {b"host": b"localhost", b"twice": b"host", b"authorization": b"Bearer own"}, 400),
        ("/info", "GET", {b"host": b"localhost", b"twice": b"authorization", b"authorization": b"Bearer own"}, 400),
        ("/info", "GET", {b"host": b"localhost", b"twice": b"a", b"a": b"b", b"authorization": b"Bearer own"}, 200),
    ],
)
def test_who_is_admitted(path, method, headers, status):
    listed = [(name, value) for name, value in headers.items() if name != b"twice"]
    if twice := headers.get(b"twice"):
        listed.append((twice, headers[twice]))
    assert answered(listed, path=path, method=method)[0] == status


def answered(headers=(), app=None, config=None, **scope):
    """Return the status, the body, and what was counted of a request."""
    counted, sent = [], []

    async def plain(scope, receive, send):
        await send({"type": "http.response.start", "status": 200})
        await send({"type": "http.response.body", "body": b"ok"})

    async def send(message):
        sent.append(message)

    async def work():
        settings = config or ServeConfig(api_key="own")
        metrics = SimpleNamespace(add=lambda *given: counted.append(given))
        guard = Guard(app or plain, settings, metrics, Budget(settings))
        whole = {"type": "http", "method": "GET", "path": "/healthz", "headers": list(headers), **scope}
        await guard(whole, parts_of(b""), send)

    asyncio.run(work())
    body = b"".join(message.get("body", b"") for message in sent)
    return (sent[0]["status"] if sent else None), body, [one[:2] for one in counted]


def test_errors_and_cancelled_requests_are_answered(caplog):
    host = [(b"host", b"localhost")]

    def failing(error, begin=False):
        async def app(scope, receive, send):
            if begin:
                await send({"type": "http.response.start", "status": 200})
            raise error

        return app

    status, body, counted = answered(host, failing(ValueError("odd")))
    assert (status, json.loads(body)["error"]["message"]) == (500, "something went wrong here; the log says what")
    assert counted == [("/healthz", 500)]
    assert caplog.messages == ["GET '/healthz'"]
    assert answered(host, failing(ClientDisconnect())) == (None, b"", [("/healthz", 499)])
    status, body, _ = answered(host, failing(asyncio.CancelledError()))
    assert (status, json.loads(body)["error"]["message"]) == (503, "this server is being stopped")
    aborted = []
    begun = answered(host, failing(ValueError(), True), extensions={ABORT: lambda: aborted.append(1)})
    assert (begun, aborted) == ((200, b"", [("/healthz", 200)]), [1])
    assert answered(host, failing(ValueError(), True)) == (200, b"", [("/healthz", 200)])


@pytest.mark.parametrize("access_log", [True, False])
def test_requests_are_logged_where_that_is_set(caplog, access_log):
    caplog.set_level("INFO", "xswe.access")
    answered([(b"host", b"localhost")], config=ServeConfig(access_log=access_log), client=("1.2.3.4", 5))
    assert [message.partition(" 200 ")[0] for message in caplog.messages] == ["1.2.3.4 GET '/healthz'"] * access_log
