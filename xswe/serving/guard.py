"""Admission of requests: who may send them, how large they may be, how many run at once."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from xswe.serving.budget import BLOCK, PIECE, SENT, Budget, Reservation
from xswe.serving.config import ServeConfig
from xswe.serving.logs import identity, log_request
from xswe.serving.metrics import Metrics
from xswe.serving.refusals import WRONG, Refused, failure

logger = logging.getLogger(__name__)
T = TypeVar("T")
_KEYLESS = frozenset(("/", "/healthz", "/readyz", "/api", "/openapi.json"))  # pages without data, and health checks
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = [
    (b"content-security-policy", _POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
]
ABORT = "xswe.abort"  # an ASGI extension: a function that closes the connection, even if part of an answer is unsent
_EXCHANGE = "xswe.exchange"


class Exchange:
    """A request and its response; records in the reservation when the client has to send or read.

    Attributes:
        headers: headers of the request; the last of several with the same name.
        identity: the id of the request.
        reservation: its bytes in the budget.
        status: status of the response; None until it has begun.
        answered: whether the response is complete.
    """

    __slots__ = ("_complete", "_receive", "_send", "answered", "headers", "identity", "reservation", "status")

    def __init__(self, scope: Any, receive: Any, send: Any, reservation: Reservation) -> None:
        self._receive, self._send, self.reservation = receive, send, reservation
        self.headers: dict[bytes, bytes] = dict(scope["headers"])
        self.identity = identity(self.headers)
        self.status: int | None = None
        self.answered = False
        self._complete = False  # whether the whole body has been read

    async def receive(self) -> Any:
        """Receive an ASGI message, usually a part of the body."""
        if self._complete:
            return await self._receive()
        self.reservation.expect()
        message = await self._receive()
        if message.get("more_body"):
            self.reservation.move(len(message["body"]))
        else:
            self.reservation.rest()
            self._complete = True
        return message

    async def _part(self) -> bytes:
        """Return a part of the body."""
        message = await self.receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        part: bytes = message.get("body", b"")
        return part

    async def body(self, most: int, seconds: float) -> bytes | bytearray:
        """Read the body once there is room for it and for the data derived from it.

        The budget drops clients that send nothing for ``seconds``, so no timer is needed here.

        Raises:
            Refused: it is larger than ``most`` bytes (413), takes longer than ``seconds`` (408), or there is no room for
                it (503).
        """
        declared = self.headers.get(b"content-length", b"")
        size = int(declared) if declared.isdigit() else 0
        if size > most:
            raise _too_large(most)
        if 2 * size > PIECE:
            await self._room_for_body(size, seconds)
        deadline, body = time.monotonic() + seconds, bytearray()
        while True:
            part = await self._part()
            size = len(body) + len(part)
            if size > most:
                raise _too_large(most)
            if not self.reservation.size and 2 * size > PIECE:  # its length was not declared
                deadline -= time.monotonic()
                await self._room_for_body(size if self._complete else most, seconds)
                deadline += time.monotonic()
            if self._complete and not body:
                return part
            body += part
            if self._complete:
                return body
            if time.monotonic() > deadline:
                raise Refused(408, f"the body did not come within {seconds:g} s")

    async def _room_for_body(self, size: int, seconds: float) -> None:
        """Wait for room for a body, the data derived from it, and a block of the answer."""
        try:
            await self.reservation.reserve(2 * size + BLOCK)
        except Refused:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    while not self._complete:  # a client that is still sending would not see the refusal
                        await self._part()
            raise

    async def send(self, message: Mapping[str, Any]) -> None:
        """Send a part of the answer, ``SENT`` bytes at a time, until at most a piece of it is unread."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = [*message.get("headers", ()), (b"x-request-id", self.identity), *_HEADERS]
            await self._pass({**message, "headers": headers})
            return
        body, more = message.get("body", b""), message.get("more_body", False)
        if len(body) > PIECE:
            self.reservation.resize(max(len(body), self.reservation.size))
            for start in range(0, len(body), SENT):
                await self._pass({"type": message["type"], "body": bytes(body[start : start + SENT]), "more_body": True})
            if more:
                return
            body = b""  # sending this waits while too much of the answer is unread
        await self._pass({"type": message["type"], "body": bytes(body), "more_body": more})
        self.answered = not more

    async def _pass(self, message: Mapping[str, Any]) -> None:
        self.reservation.expect()
        await self._send(message)
        self.reservation.rest()


def _too_large(most: int) -> Refused:
    return Refused(413, f"the body is larger than {most:,} bytes; send less at a time, or serve with a larger max_bytes=")


def exchange_of(request: Request) -> Exchange:
    """Return the exchange of a request."""
    found: Exchange = request.scope[_EXCHANGE]
    return found


class Gate:
    """A bounded pool of threads for requests, with a bounded queue.

    Attributes:
        turn: held during a millisecond of work on the event loop, so that quicker requests run between two such jobs.
    """

    def __init__(self, config: ServeConfig) -> None:
        self._workers, self._most = config.workers, config.workers + config.waiting
        self.busy = 0
        self._open()

    def _open(self) -> None:
        """Create the locks and pools for one run of the application and its event loop; threads start on demand."""
        self._slots, self.turn = asyncio.Semaphore(self._workers), asyncio.Lock()
        self._quick, self._slow = (ThreadPoolExecutor(self._workers, f"xswe-{name}") for name in ("quick", "slow"))

    @property
    def full(self) -> bool:
        """Whether the queue is full."""
        return self.busy >= self._most

    async def answer(self, reservation: Reservation, size: int, work: Callable[..., bytes], *arguments: Any) -> bytes:
        """Make an answer on a thread once there is room for ``size`` bytes, then reserve the bytes it really has.

        Raises:
            Refused: too many requests are waiting (429), or there was no room in time (503).
        """
        if self.full:
            raise Refused(429, f"{self.busy} requests are being processed; try again in a second")
        self.busy += 1
        try:
            while True:
                async with self._slots:
                    if reservation.take(size):
                        made = await asyncio.get_running_loop().run_in_executor(self._slow, work, *arguments)
                        reservation.resize(len(made))
                        return made
                await reservation.room(size)
        finally:
            self.busy -= 1

    def run(self, work: Callable[..., T], *arguments: Any) -> asyncio.Future[T]:
        """Run work of milliseconds on threads of its own, so that it does not wait for answers that take seconds."""
        return asyncio.get_running_loop().run_in_executor(self._quick, work, *arguments)

    def close(self) -> None:
        """Shut the threads down; an application that starts again gets new ones."""
        for pool in (self._quick, self._slow):
            pool.shutdown(wait=False, cancel_futures=True)
        self._open()


class Guard:
    """The outermost layer: checks host names and keys, adds headers, counts requests, and answers every error."""

    def __init__(self, app: Callable[..., Awaitable[None]], config: ServeConfig, metrics: Metrics, budget: Budget) -> None:
        self._app, self._metrics, self._budget = app, metrics, budget
        self._names, self._log = config.names, config.access_log
        self._key = None if config.api_key is None else f"Bearer {config.api_key}".encode()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = time.perf_counter()
        reservation = self._budget.open((scope.get("client") or ("",))[0])
        exchange = scope[_EXCHANGE] = Exchange(scope, receive, send, reservation)
        try:
            await (self._refusal(scope, exchange.headers) or self._app)(scope, exchange.receive, exchange.send)
        except ClientDisconnect:
            pass
        except asyncio.CancelledError:
            if reservation.ended:
                await self._end(scope, exchange, 408, "the rest of the body did not come in time")
            else:
                await self._end(scope, exchange, 503, "this server is being stopped")
        except Exception:
            fields = {"request": exchange.identity.decode()}
            logger.exception("%s %r", scope["method"], scope["path"], extra={"fields": fields})
            await self._end(scope, exchange, 500, WRONG)
        finally:
            self._budget.close(reservation)
            status, seconds = exchange.status or 499, time.perf_counter() - started
            self._metrics.add(scope["path"], status, seconds)
            if self._log:
                log_request(scope, exchange.identity.decode(), status, seconds)

    async def _end(self, scope: Any, exchange: Exchange, status: int, message: str) -> None:
        """Answer a dropped request with an error; if an answer has begun, close the connection if the server can."""
        if exchange.status is None:
            await failure(status, message)(scope, exchange.receive, exchange.send)
        elif not exchange.answered and (abort := scope.get("extensions", {}).get(ABORT)) is not None:
            abort()

    def _refusal(self, scope: Any, headers: Mapping[bytes, bytes]) -> Response | None:
        """Return the refusal of a request, or None if it is admitted."""
        if len(headers) < len(scope["headers"]):  # the mapping has only the last of headers with the same name
            names = [name for name, _ in scope["headers"]]
            if twice := [name.decode() for name in (b"host", b"authorization") if names.count(name) > 1]:
                return failure(400, f"there are several {twice[0]} headers: send one")
        host = headers.get(b"host", b"").decode("latin-1").lower()
        name = host if host.endswith("]") else host.rpartition(":")[0] or host
        if self._names and name not in self._names:
            return failure(421, f"requests to the host {name!r:.100} are refused; serve with hosts=[...] to allow it")
        if self._key is None or scope["path"] in _KEYLESS or scope["path"].startswith("/static/"):
            return None
        if scope["method"] == "OPTIONS" or secrets.compare_digest(headers.get(b"authorization", b""), self._key):
            return None
        return failure(401, "send the key of this server, as in  Authorization: Bearer KEY")
