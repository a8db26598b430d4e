"""uvicorn's connections: timeouts of stalled clients, and shutdown."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import math
import socket
import struct
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from xswe.serving.config import ServeConfig
from xswe.serving.guard import ABORT
from xswe.serving.systemd import notify

_MAX_HEAD = 64 << 10  # bytes of a request's head
_MAX_FIELDS = 100  # of a head, i.e. header lines
_MAX_PIPELINED = 16  # requests on a connection that wait for the answer to an earlier one
_DRAIN_SECONDS = 0.2  # seconds during shutdown in which new requests are still answered
_LINGER_ZERO = struct.pack("ii", 1, 0)  # SO_LINGER: close at once and discard unread data


class TimeoutProtocol(HttpToolsProtocol):
    """A connection with timeouts for the head of a request and for the client to read the answer.

    uvicorn waits for both for ever (its own timeout covers idle connections between requests), and limits neither the
    fields of a head, nor pipelined requests, nor connections. The application times bodies, and answers being sent.
    """

    seconds = 30.0
    most = 500  # connections
    ending = False  # whether the server is shutting down; set on the class, for all connections

    _alarm: asyncio.TimerHandle | None = None
    _unread: asyncio.TimerHandle | None = None
    _head_size = 0  # bytes received of the current head
    _in_body = False
    _answered: Any = None  # uvicorn's cycle of the current or latest answer
    _answers = 0
    _idle_since = 0.0
    _ignoring = False  # whether incoming data is ignored

    def connection_made(self, transport: Any) -> None:
        """Start the timeout for a head; close another connection if there are too many."""
        super().connection_made(transport)
        self._idle_since = time.monotonic()  # the loop's clock stands still while it accepts connections
        self._expect()
        if len(self.connections) > self.most:
            self._make_room()

    def data_received(self, data: bytes) -> None:
        """Receive bytes; limit the size of a head."""
        if self._ignoring:
            return
        self._head_size += len(data)
        super().data_received(data)
        if self._answering():
            self._cancel_alarm()
        else:
            self._expect()
        if self._in_body:
            self._head_size = 0
            if self._answering():
                self.flow.pause_reading()  # until the application asks for more, once it has room
        elif self._head_size > _MAX_HEAD or (self.headers and len(self.headers) > _MAX_FIELDS):
            self.send_400_response("The head of the request is too long.")

    def on_message_begin(self) -> None:
        """Begin a request, unless too many on this connection are waiting: then answer those only."""
        if len(self.pipeline) == _MAX_PIPELINED:
            self.cycle.keep_alive, self._ignoring = False, True
            raise ValueError("too many requests ahead of their answers")
        super().on_message_begin()
        self.scope["extensions"] = {ABORT: self.give_up}  # type: ignore[dict-item]

    def on_headers_complete(self) -> None:
        """Expect a body, which the application times."""
        if len(self.headers) > _MAX_FIELDS:
            raise ValueError("too many fields")  # uvicorn answers with 400, as to any invalid request
        super().on_headers_complete()
        if self.ending:
            self.cycle.keep_alive = False  # tells the client in the response
        self._head_size, self._in_body = 0, True

    def on_message_complete(self) -> None:
        """Expect a head."""
        super().on_message_complete()
        self._head_size, self._in_body = 0, False

    def on_response_complete(self) -> None:
        """Start the timeout for the client to read the response."""
        super().on_response_complete()
        self._answers += 1
        self._idle_since = time.monotonic()
        self._watch()

    def send_400_response(self, msg: str) -> None:
        """Answer an invalid request, unless that would interrupt the response to an earlier one."""
        if self._ignoring or self.transport.is_closing():
            return
        if self._answering():
            self.give_up()
        else:
            super().send_400_response(msg)
            if self.headers:
                self.headers.clear()  # a head of 60 kB can hold 12,000 fields, and the connection may stay open
            self._watch()

    def give_up(self) -> None:
        """Close the connection, even if part of a response is unread."""
        self._idle_since = math.inf
        self._disconnect()
        with contextlib.suppress(OSError, ValueError):  # if it is closed already
            self.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_ZERO)
        self.transport.abort()

    def shutdown(self) -> None:
        """Close the connection after answering the requests in progress and those that arrive within a moment."""
        self.timeout_keep_alive = _DRAIN_SECONDS  # type: ignore[assignment]
        if not self._answering():
            self._unset_keepalive_if_required()
            self.timeout_keep_alive_task = self.loop.call_later(_DRAIN_SECONDS, self.timeout_keep_alive_handler)
        elif not self.cycle.response_started:
            self.cycle.keep_alive = False

    def timeout_keep_alive_handler(self, turns: int = 3) -> None:
        """Close the connection unless something arrives within ``turns`` turns of the loop."""
        if turns:
            self._unset_keepalive_if_required()
            again = functools.partial(self.timeout_keep_alive_handler, turns - 1)
            self.timeout_keep_alive_task = self.loop.call_soon(again)  # type: ignore[assignment]
        else:
            super().timeout_keep_alive_handler()

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the timers and notify the application."""
        self._cancel_alarm()
        if self._unread is not None:
            self._unread.cancel()
        self._disconnect()
        super().connection_lost(exc)

    def _start_asgi_task(self, cycle: Any, app: Any) -> None:
        self._answered = cycle
        super()._start_asgi_task(cycle, app)

    def _disconnect(self) -> None:
        """Notify the application, because uvicorn notifies only the last of several requests."""
        if self._answered is not None:
            self._answered.disconnected = True
            self._answered.message_event.set()

    def _make_room(self) -> None:
        """Close a connection of the client with the most: the one idle for longest, or a busy one if none is idle."""
        others: list[Any] = list(self.connections)
        most = Counter(one.client and one.client[0] for one in others).most_common(1)[0][0]
        own = [one for one in others if (one.client and one.client[0]) == most]
        min(own, key=lambda one: (one._answering(), one._idle_since)).give_up()

    def _answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _watch(self) -> None:
        if self._unread is None and (size := self.transport.get_write_buffer_size()):
            self._unread = self.loop.call_later(self.seconds, self._look, size, self._answers)

    def _look(self, size: int, answers: int) -> None:
        """Close the connection if the client has read nothing; the application times responses that began since."""
        self._unread = None
        if 0 < size <= self.transport.get_write_buffer_size() and answers == self._answers and not self._answering():
            self.give_up()
        else:
            self._watch()

    def _expect(self) -> None:
        if self._alarm is None:
            self._alarm = self.loop.call_later(self.seconds, self.transport.abort)

    def _cancel_alarm(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None


class Server(uvicorn.Server):
    """uvicorn's server with timeouts; on shutdown it answers every request that arrived before.

    uvicorn itself closes idle connections at once, even if a request is on its way, and does not accept connections that
    are still in the system's queue.
    """

    def __init__(self, app: Callable[..., Awaitable[None]], config: ServeConfig, shared: bool = False) -> None:
        """Configure uvicorn; if the socket is ``shared``, the next process accepts what is queued when this one stops."""
        own = {"seconds": config.seconds, "most": config.max_connections}
        self._kind: Any = type("Patient", (TimeoutProtocol,), own)
        self._shared = shared
        settings = uvicorn.Config(
            app,
            http=self._kind,
            ws="none",
            lifespan="on",
            log_config=None,  # leaves logging as it is configured
            log_level="warning",
            access_log=False,  # the application has its own
            server_header=False,
            date_header=False,
            timeout_graceful_shutdown=math.ceil(config.seconds),  # for requests in progress
        )
        super().__init__(settings)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start accepting connections."""
        await super().startup(sockets)
        notify("READY=1")

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Mark each answer as the last of its connection; after a moment stop accepting connections, and shut down."""
        notify("STOPPING=1")
        self._kind.ending = True
        queues = [] if self._shared else [one.dup() for one in sockets or ()]
        if self._shared:
            self._stop_accepting()
        for one in list(self.server_state.connections):
            one.shutdown()
        if self.server_state.connections:
            await asyncio.sleep(_DRAIN_SECONDS)
        self._stop_accepting()
        for queue in queues:
            queue.setblocking(False)
            with queue, contextlib.suppress(BlockingIOError):
                while True:
                    await asyncio.get_running_loop().connect_accepted_socket(self._connection, queue.accept()[0])
        await super().shutdown(sockets)

    def _stop_accepting(self) -> None:
        for server in self.servers:
            server.close()

    def _connection(self) -> TimeoutProtocol:
        state = self.server_state
        made: TimeoutProtocol = self._kind(config=self.config, server_state=state, app_state=self.lifespan.state)
        return made
