"""Connections of uvicorn's: what an ASGI application cannot see of those who ask, and give up on."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

_MOST_HEAD = 64 << 10  # bytes


class Patient(HttpToolsProtocol):
    """A connection that is given up on, after so many seconds for a head or without progress in reading an answer.

    uvicorn waits for a request's head, and for a client to read, for ever; its own time-out is for connections that do
    nothing between two requests.
    """

    seconds = 30.0

    _alarm: asyncio.TimerHandle | None = None
    _stalled: asyncio.TimerHandle | None = None
    _head = 0  # bytes of the head that is under way

    def connection_made(self, transport: Any) -> None:
        """Begin to wait for a head."""
        super().connection_made(transport)
        self._expect()

    def data_received(self, data: bytes) -> None:
        """Take bytes; of a head only so many."""
        if not self._reads_body():
            self._head += len(data)
            self._expect()
        super().data_received(data)
        if self._reads_body():
            self._head = 0
            self._calm()
        elif self._head > _MOST_HEAD and not self.transport.is_closing():
            self.send_400_response("The head of the request is too long.")

    def on_headers_complete(self) -> None:
        """Stop waiting: the time of the body is the application's to watch."""
        super().on_headers_complete()
        self._head = 0
        self._calm()

    def pause_writing(self) -> None:
        """Begin to wait for the client to read."""
        super().pause_writing()
        if self._stalled is None:
            self._stalled = self.loop.call_later(self.seconds, self._look, self.transport.get_write_buffer_size())

    def _look(self, before: int) -> None:
        """Go on waiting if the client has read something, else give it up."""
        left = self.transport.get_write_buffer_size()
        if left < before:
            self._stalled = self.loop.call_later(self.seconds, self._look, left)
        else:
            self.transport.abort()

    def resume_writing(self) -> None:
        """Stop waiting."""
        super().resume_writing()
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._calm()
        if self._stalled is not None:
            self._stalled.cancel()
        super().connection_lost(exc)

    def _reads_body(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _expect(self) -> None:
        if self._alarm is None:
            self._alarm = self.loop.call_later(self.seconds, self.transport.abort)

    def _calm(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None


def patient_for(seconds: float) -> type[Patient]:
    """Return the protocol with a patience of so many seconds."""
    return type("Patient", (Patient,), {"seconds": seconds})
