"""What stands before every request: who may ask, how much at once, and what the world is told of it."""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import Awaitable, Callable, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from xswe.errors import XsweError
from xswe.serving.config import ServeConfig
from xswe.serving.messages import Failure, Fault

logger = logging.getLogger(__name__)
T = TypeVar("T")
_OPEN = frozenset(("/", "/healthz", "/api", "/openapi.json"))  # what needs no key: pages without data, and the pulse
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
_BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)  # seconds


class Refused(Exception):
    """A request that is not answered: HTTP's status, what was found and what cures it, and the field to blame."""

    def __init__(self, status: int, message: str, param: str | None = None) -> None:
        super().__init__(message)
        self.status, self.param = status, param


def failure(status: int, message: str, param: str | None = None) -> Response:
    """Return an answer that says what is wrong, in the form of OpenAI's interface."""
    kind = {401: "authentication_error", 429: "rate_limit_error"}.get(status, "invalid_request_error")
    fault = Fault(message, "server_error" if status >= 500 else kind, param, None)
    headers = {429: {"retry-after": "1"}, 401: {"www-authenticate": "Bearer"}}.get(status, {})
    if status in (408, 413):
        headers = {"connection": "close"}  # the rest of the body is of no interest
    return Response(msgspec.json.encode(Failure(fault)), status, headers, "application/json")


async def read_body(request: Request, most: int, seconds: float) -> bytes:
    """Read the body of a request.

    Raises:
        Refused: it is larger than ``most`` bytes (413), or takes longer than that (408).
    """
    too_large = Refused(413, f"the body is larger than {most:,} bytes; send less at a time, or serve with max_bytes=")
    told = request.headers.get("content-length", "")
    if told.isdecimal() and int(told) > most:
        raise too_large
    body = bytearray()
    try:
        async with asyncio.timeout(seconds):
            async for chunk in request.stream():
                body += chunk
                if len(body) > most:
                    raise too_large
    except TimeoutError:
        raise Refused(408, f"the body did not come within {seconds:g} s") from None
    return bytes(body)


class Gate:
    """So many requests at once on threads, so many that wait, and no more."""

    def __init__(self, config: ServeConfig) -> None:
        self._pool = ThreadPoolExecutor(config.workers, thread_name_prefix="xswe-serve")
        self._most = config.workers + config.waiting
        self.busy = 0

    async def run(self, work: Callable[..., T], *arguments: Any) -> T:
        """Do something on a thread; too many that wait already are refused (429)."""
        if self.busy >= self._most:
            raise Refused(429, f"{self.busy} requests are being worked on; ask again in a second")
        return await self.submit(work, *arguments)

    def submit(self, work: Callable[..., T], *arguments: Any) -> asyncio.Future[T]:
        """Do something on a thread, however many wait."""
        self.busy += 1
        future = asyncio.get_running_loop().run_in_executor(self._pool, work, *arguments)
        future.add_done_callback(self._done)  # also where nobody waits for it any more
        return future

    def _done(self, future: asyncio.Future[Any]) -> None:
        self.busy -= 1

    def close(self) -> None:
        """Let the threads go."""
        self._pool.shutdown(wait=False, cancel_futures=True)


class Metrics:
    """Counts for Prometheus; paths that are not known are counted as one, and the load is the gate's."""

    def __init__(self, paths: set[str], gate: Gate) -> None:
        self._paths, self._gate = paths, gate
        self._requests: dict[tuple[str, int], int] = {}
        self._seconds: dict[str, list[float]] = {}
        self.texts = 0

    def add(self, path: str, status: int, seconds: float) -> None:
        """Count a request."""
        path = path if path in self._paths else "other"
        self._requests[path, status] = self._requests.get((path, status), 0) + 1
        row = self._seconds.setdefault(path, [0.0] * (len(_BOUNDS) + 2))
        for place, bound in enumerate(_BOUNDS):
            row[place] += seconds <= bound
        row[-2] += 1
        row[-1] += seconds

    def render(self) -> str:
        """Return them in the text format of Prometheus."""
        lines = ["# HELP xswe_requests_total Requests answered.", "# TYPE xswe_requests_total counter"]
        for (path, status), count in sorted(self._requests.items()):
            lines.append(f'xswe_requests_total{{path="{path}",status="{status}"}} {count}')
        lines += ["# HELP xswe_request_seconds Seconds to an answer.", "# TYPE xswe_request_seconds histogram"]
        for path, row in sorted(self._seconds.items()):
            for bound, below in zip((*map(str, _BOUNDS), "+Inf"), row, strict=False):
                lines.append(f'xswe_request_seconds_bucket{{path="{path}",le="{bound}"}} {below:.0f}')
            lines.append(f'xswe_request_seconds_sum{{path="{path}"}} {row[-1]:.6f}')
            lines.append(f'xswe_request_seconds_count{{path="{path}"}} {row[-2]:.0f}')
        lines += ["# HELP xswe_texts_total Texts encoded for /v1/embeddings.", "# TYPE xswe_texts_total counter"]
        lines.append(f"xswe_texts_total {self.texts}")
        lines += ["# HELP xswe_busy Requests on threads, or waiting for one.", "# TYPE xswe_busy gauge"]
        return "\n".join([*lines, f"xswe_busy {self._gate.busy}", ""])


class Guard:
    """The outermost layer: names, keys, headers, counts, and an answer for whatever goes wrong."""

    def __init__(self, app: Callable[..., Awaitable[None]], config: ServeConfig, metrics: Metrics) -> None:
        self._app, self._metrics = app, metrics
        self._names = config.names
        self._key = None if config.api_key is None else f"Bearer {config.api_key}".encode()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started, status = time.perf_counter(), 499

        async def sending(message: MutableMapping[str, Any]) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", ()), *_HEADERS]
            await send(message)

        try:
            if (refusal := self._refusal(scope)) is not None:
                await refusal(scope, receive, sending)
            else:
                await self._app(scope, receive, sending)
        except ClientDisconnect:
            pass
        except Exception:
            logger.exception("%s %s", scope["method"], scope["path"])
            if status == 499:  # nothing was sent yet
                await failure(500, "something went wrong here; the log says what")(scope, receive, sending)
        finally:
            self._metrics.add(scope["path"], status, time.perf_counter() - started)

    def _refusal(self, scope: Any) -> Response | None:
        """Return why a request is not let in; None if it is."""
        headers = dict(scope["headers"])
        host = headers.get(b"host", b"").decode("latin-1").lower()
        name = host if host.endswith("]") else host.rpartition(":")[0] or host
        if self._names and name not in self._names:
            return failure(421, f"not asked for under the name {name!r:.100}; serve with hosts=[...] to add one")
        if self._key is None or scope["path"] in _OPEN or scope["path"].startswith("/static/"):
            return None
        if scope["method"] == "OPTIONS" or secrets.compare_digest(headers.get(b"authorization", b""), self._key):
            return None
        return failure(401, "give the key of this server, as in  Authorization: Bearer KEY")


def refused(request: Request, error: Exception) -> Response:
    """Return the answer to a request that failed for a reason that the one who asks can cure."""
    if isinstance(error, Refused):
        return failure(error.status, str(error), error.param)
    if isinstance(error, HTTPException):
        return failure(error.status_code, f"{request.method} {request.url.path}: {error.detail}; /api lists what there is")
    if isinstance(error, msgspec.ValidationError):
        return failure(422, str(error), str(error).rpartition("`$.")[2].rstrip("`") or None)
    if isinstance(error, XsweError):
        return failure(422, str(error))
    return failure(400, f"not JSON: {error}")


KNOWN = (Refused, HTTPException, msgspec.MsgspecError, UnicodeDecodeError, RecursionError, XsweError)
