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

_MOST_HEAD = 64 << 10  # bytes
_MOST_FIELDS = 100  # of a head
_MOST_AHEAD = 16  # requests of a connection that wait for the answer to an earlier one
_LAST = 0.2  # seconds in which requests are still answered when the server is being stopped
_RESET = struct.pack("ii", 1, 0)  # closed at once, with whatever the client has not read


class TimeoutProtocol(HttpToolsProtocol):
    """A connection with timeouts: for the head of a request, and for the client's reading of the answer.

    uvicorn waits for both for ever (its own time-out is for connections that do nothing between two requests), reads any
    number of fields of a head, and of requests ahead of their answers, and has room for any number of connections. How
    long a body may take, and an answer that is being sent, is the application's to watch.
    """

    seconds = 30.0
    most = 500  # connections
    ending = False  # whether the server is being stopped: set for all of its connections

    _alarm: asyncio.TimerHandle | None = None
    _unread: asyncio.TimerHandle | None = None
    _head = 0  # bytes of the head that is under way
    _in_body = False
    _answered: Any = None  # of uvicorn's cycles, the one of the request that is being answered, or was last
    _answers = 0
    _idle_since = 0.0
    _deaf = False  # whether what comes is of no interest any more

    def connection_made(self, transport: Any) -> None:
        """Begin to wait for a head; close another connection if there are too many."""
        super().connection_made(transport)
        self._idle_since = time.monotonic()  # that of the loop stands still while it takes connections
        self._expect()
        if len(self.connections) > self.most:
            self._make_room()

    def data_received(self, data: bytes) -> None:
        """Receive bytes; the size of a head is limited."""
        if self._deaf:
            return
        self._head += len(data)
        super().data_received(data)
        if self._answering():
            self._calm()
        else:
            self._expect()
        if self._in_body:
            self._head = 0
            if self._answering():
                self.flow.pause_reading()  # until the application asks for more: it may have no room yet
        elif self._head > _MOST_HEAD or (self.headers and len(self.headers) > _MOST_FIELDS):
            self.send_400_response("The head of the request is too long.")

    def on_message_begin(self) -> None:
        """Begin a request, unless too many of this connection wait already: then no more than these are answered."""
        if len(self.pipeline) == _MOST_AHEAD:
            self.cycle.keep_alive, self._deaf = False, True
            raise ValueError("too many requests ahead of their answers")
        super().on_message_begin()
        self.scope["extensions"] = {ABORT: self.give_up}  # type: ignore[dict-item]

    def on_headers_complete(self) -> None:
        """Expect a body, which is the application's to watch."""
        if len(self.headers) > _MOST_FIELDS:
            raise ValueError("too many fields")  # as for whatever else is no request, uvicorn answers with 400
        super().on_headers_complete()
        if self.ending:
            self.cycle.keep_alive = False  # the answer says so
        self._head, self._in_body = 0, True

    def on_message_complete(self) -> None:
        """Expect a head."""
        super().on_message_complete()
        self._head, self._in_body = 0, False

    def on_response_complete(self) -> None:
        """Start the timeout for the client to read the response."""
        super().on_response_complete()
        self._answers += 1
        self._idle_since = time.monotonic()
        self._watch()

    def send_400_response(self, msg: str) -> None:
        """Answer an invalid request, unless that would interrupt the response to an earlier one."""
        if self._deaf or self.transport.is_closing():
            return
        if self._answering():
            self.give_up()
        else:
            super().send_400_response(msg)
            if self.headers:
                self.headers.clear()  # a head of 60 kB can hold 12,000 fields, and the client may stay
            self._watch()

    def give_up(self) -> None:
        """Close the connection, even if part of a response is unread."""
        self._idle_since = math.inf
        self._disconnect()
        with contextlib.suppress(OSError, ValueError):  # where it is closed already
            self.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        self.transport.abort()

    def shutdown(self) -> None:
        """Close the connection after answering the requests in progress and those that arrive within a moment."""
        self.timeout_keep_alive = _LAST  # type: ignore[assignment]
        if not self._answering():
            self._unset_keepalive_if_required()
            self.timeout_keep_alive_task = self.loop.call_later(_LAST, self.timeout_keep_alive_handler)
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
        """Forget the connection."""
        self._calm()
        if self._unread is not None:
            self._unread.cancel()
        self._disconnect()
        super().connection_lost(exc)

    def _start_asgi_task(self, cycle: Any, app: Any) -> None:
        self._answered = cycle
        super()._start_asgi_task(cycle, app)

    def _disconnect(self) -> None:
        """Let the application know; uvicorn notifies the last of several requests only."""
        if self._answered is not None:
            self._answered.disconnected = True
            self._answered.message_event.set()

    def _make_room(self) -> None:
        """Close a connection of the client that has most of them: the one that has been idle for longest, if any is."""
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
        """Close the connection if the client has read nothing and no response began, which the application times."""
        self._unread = None
        if 0 < size <= self.transport.get_write_buffer_size() and answers == self._answers and not self._answering():
            self.give_up()
        else:
            self._watch()

    def _expect(self) -> None:
        if self._alarm is None:
            self._alarm = self.loop.call_later(self.seconds, self.transport.abort)

    def _calm(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None


class Server(uvicorn.Server):
    """uvicorn's, whose connections are patient, and which answers all who came before it was stopped.

    uvicorn closes connections between two requests at once, whatever is on its way to them, and does not take those that
    the system has made already.
    """

    def __init__(self, app: Callable[..., Awaitable[None]], config: ServeConfig, shared: bool = False) -> None:
        """Set it up; of a socket that is shared, the next process takes who comes when this one is stopped."""
        own = {"seconds": config.seconds, "most": config.max_connections}
        self._kind: Any = type("Patient", (TimeoutProtocol,), own)
        self._shared = shared
        settings = uvicorn.Config(
            app,
            http=self._kind,
            ws="none",
            lifespan="on",
            log_config=None,  # its records go where all others do
            log_level="warning",
            access_log=False,  # the application's own
            server_header=False,
            date_header=False,
            timeout_graceful_shutdown=math.ceil(config.seconds),  # for what is under way
        )
        super().__init__(settings)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to take connections."""
        await super().startup(sockets)
        notify("READY=1")

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Say of every answer that it is the last of its connection; soon take no more, and end."""
        notify("STOPPING=1")
        self._kind.ending = True
        queues = [] if self._shared else [one.dup() for one in sockets or ()]
        if self._shared:
            self._take_no_more()
        for one in list(self.server_state.connections):
            one.shutdown()
        if self.server_state.connections:
            await asyncio.sleep(_LAST)
        self._take_no_more()
        for queue in queues:
            queue.setblocking(False)
            with queue, contextlib.suppress(BlockingIOError):
                while True:
                    await asyncio.get_running_loop().connect_accepted_socket(self._connection, queue.accept()[0])
        await super().shutdown(sockets)

    def _take_no_more(self) -> None:
        for server in self.servers:
            server.close()

    def _connection(self) -> TimeoutProtocol:
        state = self.server_state
        made: TimeoutProtocol = self._kind(config=self.config, server_state=state, app_state=self.lifespan.state)
        return made
