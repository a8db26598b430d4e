"""What is in memory for clients that do not read, or hardly send, and who gives way."""

from __future__ import annotations

import asyncio
import json

import numpy as np
import pytest

import xswe
from xswe.errors import ConfigError
from xswe.serving.budget import PIECE, SMALL, Budget
from xswe.serving.config import ServeConfig
from xswe.serving.refusals import Refused

MOST = 8 << 20


def budget(seconds=30.0):
    return Budget(ServeConfig(max_buffered=MOST, seconds=seconds))


async def soon(*tasks):
    """Let tasks go on as far as they can, and tell which of them are done."""
    for _ in range(5):
        await asyncio.sleep(0)
    return [task.done() for task in tasks]


def test_a_client_has_half_and_large_requests_leave_room_for_small_ones():
    async def run():
        own = budget()
        first = [own.open("a") for _ in range(8)]
        assert [one.take(SMALL) for one in first] == [True] * 8  # half of 8 MB
        assert not own.open("a").take(SMALL)
        assert own.open("b").take(SMALL)
        assert own.open("a").take(PIECE)  # too little to be counted
        assert not own.open("c").take(3 * SMALL + 4 * SMALL)  # large ones fill three quarters
        assert own.open("c").take(3 * SMALL)

        alone = budget()
        await alone.open("a").reserve(1 << 30)  # the largest has what large ones may have
        assert not alone.open("b").take(SMALL + 1)
        assert alone.open("b").take(SMALL)

    asyncio.run(run())


def test_who_has_room_reserves_no_more():
    async def run():
        own = budget()
        kept = own.open("a")
        await kept.reserve(SMALL)
        await kept.reserve(4 * SMALL)  # a request that goes on
        assert kept.size == SMALL

    asyncio.run(run())


def test_those_who_wait_are_let_in_when_there_is_room_who_has_least_first():
    async def run():
        own = budget()
        kept = own.open("a")
        others = [own.open(client) for client in ("b", "c")]
        assert [kept.take(3 << 20), others[0].take(1 << 20), others[1].take(2 << 20)] == [
            True
        ] * 3  # all that large ones may
        waiting = [
            asyncio.ensure_future(own.open(client).reserve(size)) for client, size in (("b", 2 << 20), ("d", 2 << 20))
        ]
        assert await soon(*waiting) == [False, False]
        own.close(others[1])
        assert await soon(*waiting) == [False, True]  # b has something already
        own.close(kept)
        assert await soon(*waiting) == [True, True]

    asyncio.run(run())


def test_who_finds_no_room_is_told_to_come_again():
    async def run():
        own = budget(0.05)
        await own.open("a").reserve(1 << 30)
        with pytest.raises(Refused) as refused:
            await own.open("b").reserve(1 << 20)
        assert refused.value.status == 503
        assert not own.waiting

    asyncio.run(run())


def test_who_stalls_gives_way_where_others_wait_and_in_the_end_anyway():
    async def run(wait, seconds):
        own = budget(seconds)
        ended = []

        async def stalls(client, size, working=False):
            one = own.open(client)
            try:
                await one.reserve(size)
                if not working:
                    one.expect()
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                ended.append((client, one.ended))
            finally:
                own.close(one)

        tasks = [asyncio.ensure_future(stalls(*one)) for one in (("a", 3 << 20), ("b", 1 << 20), ("c", 2 << 20, True))]
        await soon()
        if wait:
            await asyncio.wait_for(own.open("d").reserve(2 << 20), 5)
        else:
            await asyncio.sleep(1.5)
        found = list(ended)
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        return found

    assert asyncio.run(run(True, 30.0)) == [("a", True)]  # who has most; the work for c is not c's fault
    assert asyncio.run(run(False, 30.0)) == []
    assert sorted(asyncio.run(run(False, 0.5))) == [("a", True), ("b", True)]


class Client:
    """One that asks an application as a server does, and reads so many parts of the answer."""

    def __init__(self, app, path, body, reads=10**9, host=(b"localhost",), sends=10**9, name="1.2.3.4"):
        content = json.dumps(body).encode()
        self.parts, self.reads, self.sent = (
            [content[k : k + PIECE] for k in range(0, len(content), PIECE)][:sends],
            reads,
            [],
        )
        self.whole = sends * PIECE >= len(content)
        headers = [*((b"host", one) for one in host), (b"content-type", b"application/json")]
        headers.append((b"content-length", str(len(content)).encode()))
        scope = {"type": "http", "method": "POST", "path": path, "raw_path": path.encode(), "query_string": b""}
        scope |= {"headers": headers, "client": (name, 1), "server": ("localhost", 80), "scheme": "http", "root_path": ""}
        scope |= {"http_version": "1.1", "asgi": {"version": "3.0", "spec_version": "2.3"}}
        self.task = asyncio.ensure_future(app(scope, self.receive, self.send))

    async def receive(self):
        if self.parts:
            return {"type": "http.request", "body": self.parts.pop(0), "more_body": bool(self.parts) or not self.whole}
        await asyncio.sleep(60)

    async def send(self, message):
        if len(self.sent) >= self.reads:
            await asyncio.sleep(60)
        self.sent.append(message)

    @property
    def status(self):
        return self.sent[0]["status"] if self.sent else None

    @property
    def body(self):
        assert not self.sent[-1].get("more_body")
        return b"".join(message.get("body", b"") for message in self.sent)


@pytest.fixture(scope="module")
def app(mini):
    return xswe.make_app(mini, threads=1, seconds=1.5, max_buffered=MOST)


MANY = [f"A cat sleeps {number} times." for number in range(700)]


@pytest.mark.parametrize("form", ["float", "base64"])
@pytest.mark.parametrize("dimensions", [None, 64])
@pytest.mark.parametrize("which", ["one model", "an ensemble", "long texts"])
def test_an_answer_in_blocks_is_the_one_made_at_once(mini, monkeypatch, form, dimensions, which):
    from xswe.serving import embeddings

    model = xswe.types.Ensemble.of([mini, mini.truncate(64)]) if which == "an ensemble" else mini
    if which == "long texts":
        monkeypatch.setattr(embeddings, "_LOOKUP_BYTES", 1000)
    app = xswe.make_app(model, threads=1, max_buffered=MOST)
    asked = {"input": MANY, "encoding_format": form} | ({} if dimensions is None else {"dimensions": dimensions})

    async def run():
        client = Client(app, "/v1/embeddings", asked)
        await client.task
        return client.body, len(client.sent)

    monkeypatch.setattr(embeddings, "SMALL", 1 << 16)
    body, parts = asyncio.run(run())
    monkeypatch.setattr(embeddings, "SMALL", 1 << 30)
    at_once, few = asyncio.run(run())
    assert body == at_once
    assert parts > few
    assert [one["index"] for one in json.loads(body)["data"]] == list(range(700))


def test_an_answer_is_not_made_before_it_is_read(app, monkeypatch):
    from xswe.serving import embeddings

    made = []
    rows = embeddings._rows
    monkeypatch.setattr(embeddings, "_rows", lambda vectors, *rest: made.append(len(vectors)) or rows(vectors, *rest))

    async def run():
        client = Client(app, "/v1/embeddings", {"input": MANY}, reads=2)
        await asyncio.sleep(0.5)
        assert client.status == 200
        assert sum(made) < 100
        await asyncio.wait_for(client.task, 4)  # and is given up
        assert sum(made) < 100
        assert client.sent[-1].get("more_body")

    asyncio.run(run())


def test_who_waits_is_answered_while_others_do_not_read(app):
    async def run():
        asked = {"input": MANY * 20}
        stalled = [Client(app, "/v1/embeddings", asked, reads=2) for _ in range(30)]
        await asyncio.sleep(0.3)
        assert sum(client.status == 200 for client in stalled) < 10
        small = Client(app, "/v1/embeddings", {"input": "A cat sleeps."})
        await asyncio.wait_for(small.task, 1)  # waits for no room
        other = Client(app, "/v1/embeddings", {"input": MANY}, name="5.6.7.8")
        await asyncio.wait_for(other.task, 3)  # what one client has filled is not its own
        same = Client(app, "/v1/embeddings", {"input": MANY})
        await asyncio.wait_for(same.task, 20)
        assert [one.status for one in (small, other, same)] == [200, 200, 200]
        assert len(json.loads(same.body)["data"]) == len(MANY)
        await asyncio.wait([client.task for client in stalled], timeout=20)
        assert all(client.task.done() for client in stalled)

    asyncio.run(run())
    assert not app._budget._open
    assert not app._budget.account


def test_who_hardly_sends_gives_way_and_is_told_so(app):
    async def run():
        asked = {"input": ["a cat " * 15_000] * 18}
        slow = Client(app, "/v1/embeddings", asked, sends=2)
        await asyncio.sleep(0.1)
        other = Client(app, "/v1/embeddings", asked)
        await asyncio.wait_for(other.task, 10)
        assert other.status == 200
        await asyncio.wait_for(slow.task, 1)
        assert slow.status == 408

    asyncio.run(run())


def test_no_more_is_computed_than_there_is_room_for(mini, monkeypatch):
    """Answers whose size is known when they are made wait for those before them to be read."""
    from xswe.serving import service

    made = []
    monkeypatch.setattr(service, "export", lambda message: made.append(1) or b"x" * (3 << 20))
    app = xswe.make_app(mini, threads=2, seconds=30.0, max_buffered=4 << 20)

    async def run():
        asked = {"format": "tsv", "units": []}
        clients = [Client(app, "/export", asked, reads=2) for _ in range(8)]
        await asyncio.sleep(0.3)
        assert len(made) <= 3
        async with asyncio.timeout(15):
            while len(made) < 8:
                await asyncio.sleep(0.1)
        for client in clients:
            client.task.cancel()

    asyncio.run(run())


def test_settings_of_the_budget_are_checked():
    for wrong in ({"max_buffered": 1000}, {"max_connections": 0}):
        with pytest.raises(ConfigError, match=next(iter(wrong))):
            ServeConfig(**wrong)


def test_vectors_of_many_texts_are_those_of_the_model(app, mini):
    async def run():
        client = Client(app, "/v1/embeddings", {"input": MANY})
        await client.task
        return json.loads(client.body)

    found = asyncio.run(run())
    assert np.array_equal(np.array([one["embedding"] for one in found["data"]], np.float32), mini.encode(MANY))
    tokens = len(mini.units.bags(MANY).ids)
    assert found["usage"] == {"prompt_tokens": tokens, "total_tokens": tokens}
