"""The memory budget of requests and answers, per client and in all."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

from xswe.serving.config import ServeConfig
from xswe.serving.refusals import Refused

PIECE = 1 << 16  # bytes; smaller requests are not counted
SENT = 1 << 17  # bytes sent at a time
SMALL = 1 << 19  # bytes, at most, of a small request, or of an answer made in one go
BLOCK = 1 << 18  # bytes per block of an answer that is made and sent block by block
_LARGE_SHARE = 0.75  # share of the budget open to large requests, which leaves room for small ones
_STALL_SECONDS = 0.25  # time for a client to send a piece, or to read SENT bytes, while others wait for room
_TICK = 0.1  # seconds between checks for stalled clients
_FULL = "the memory for requests and answers (max_buffered) is full; try again in a second"


class Reservation:
    """The bytes of one request: its body and derived data, then its answer until the client has read it.

    Attributes:
        client: the address of the client.
        size: bytes reserved; 0 if too few to count.
        ended: whether the request was cancelled because its client stalled.
    """

    __slots__ = ("_budget", "_moved", "_since", "_task", "client", "ended", "size")

    def __init__(self, budget: Budget, client: str) -> None:
        self._budget, self.client, self.size, self.ended = budget, client, 0, False
        self._task = asyncio.current_task()
        self._since: float | None = None  # start of the client's timeout; None while nothing is expected of it
        self._moved = 0  # bytes of the piece received so far

    async def reserve(self, size: int) -> None:
        """Wait for room for ``size`` bytes, unless the request has a reservation already.

        Raises:
            Refused: there was no room in time (503).
        """
        self.rest()
        if not self.size and not self.take(size):
            await self._budget.wait(self, self._needed(size), take=True)

    def take(self, size: int) -> bool:
        """Reserve ``size`` bytes, unless the request has a reservation; return False if that exceeds the budget."""
        if size <= PIECE:
            return True
        size = self._needed(size)
        if fits := self._budget.account.fits(self.client, size):
            self.resize(self.size + size)
        return fits

    async def room(self, size: int) -> None:
        """Wait until :meth:`take` can reserve ``size`` bytes.

        Raises:
            Refused: there was no room in time (503).
        """
        await self._budget.wait(self, self._needed(size), take=False)

    def resize(self, size: int) -> None:
        """Set the reservation to ``size`` bytes, whether or not there is room."""
        more = (size if size > PIECE else 0) - self.size
        self.size += more
        if more:
            self._budget.account.add(self.client, more)
        if more < 0 and self._budget.waiting:
            self._budget.admit()

    def _needed(self, size: int) -> int:
        """Return the bytes to reserve: none after a reservation, at most the share of large requests, so that any fits."""
        return 0 if self.size else min(size, int(_LARGE_SHARE * self._budget.account.most))

    def expect(self) -> None:
        """Start the client's timeout, unless it is running: the client must now send or read."""
        if self._since is None:
            self._since = time.monotonic()

    def move(self, size: int) -> None:
        """Record ``size`` bytes received from the client; a whole piece stops its timeout."""
        self._moved += size
        if self._moved >= PIECE:
            self.rest()

    def rest(self) -> None:
        """Stop the client's timeout: nothing is expected of it."""
        self._since, self._moved = None, 0

    def waited(self, now: float) -> float:
        """Return how long the client has kept the server waiting, in seconds."""
        return 0.0 if self._since is None or self.ended else now - self._since

    def end(self) -> None:
        """Cancel the request."""
        self.ended = True
        if self._task is not None:
            self._task.cancel()


class _Waiting(NamedTuple):
    """A request waiting for room; ``take``: room is reserved for it as soon as there is some."""

    reservation: Reservation
    size: int
    take: bool
    admitted: asyncio.Future[None]


class _Account(Counter[str]):
    """The bytes used by each client, and the limit for all of them together."""

    def __init__(self, most: int, used: Mapping[str, int] | None = None) -> None:
        super().__init__(used or {})
        self.most = most

    def add(self, client: str, size: int) -> None:
        self[client] += size
        if not self[client]:
            del self[client]

    def is_full(self, size: int) -> bool:
        """Return True if no client has room for ``size`` more bytes."""
        return self.total() + size > (self.most if size <= SMALL else _LARGE_SHARE * self.most)

    def fits(self, client: str, size: int) -> bool:
        """Return True if a client has room for ``size`` more bytes: at most half of the budget, unless it uses none yet."""
        own = self[client]
        return not self.is_full(size) and (not own or not size or own + size <= self.most / 2)


class Budget:
    """The bytes of all requests.

    Several requests of one client get at most half of them. Of waiting requests, those of the client that uses the fewest
    bytes are admitted first, small ones before large ones. Clients that stop reading their answer or sending their body are
    dropped after ``seconds``; if others wait for room, sooner, those that use the most bytes first.
    """

    def __init__(self, config: ServeConfig) -> None:
        self._seconds, self.account = config.seconds, _Account(config.max_buffered)
        self._open: set[Reservation] = set()
        self.waiting: list[_Waiting] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._timer: asyncio.TimerHandle | None = None

    def open(self, client: str) -> Reservation:
        """Begin a request, and watch its client for stalls."""
        reservation = Reservation(self, client)
        self._open.add(reservation)
        loop = asyncio.get_running_loop()
        if self._timer is None or self._loop is not loop:
            self._loop, self._timer = loop, loop.call_later(_TICK, self._look)
        return reservation

    def close(self, reservation: Reservation) -> None:
        """End a request."""
        self._open.discard(reservation)
        reservation.resize(0)

    async def wait(self, reservation: Reservation, size: int, take: bool) -> None:
        """Wait for room, and reserve it if ``take``: see :meth:`Reservation.reserve` and :meth:`Reservation.room`."""
        own = _Waiting(reservation, size, take, asyncio.get_running_loop().create_future())
        self.waiting.append(own)
        self.admit()
        try:
            async with asyncio.timeout(self._seconds):
                await own.admitted
        except TimeoutError:
            raise Refused(503, _FULL) from None
        finally:
            if own in self.waiting:
                self.waiting.remove(own)

    def admit(self) -> None:
        """Admit the waiting requests that fit."""
        after = _Account(self.account.most, self.account)
        for one in self._in_order():
            if not one.admitted.done() and after.fits(one.reservation.client, one.size):
                after.add(one.reservation.client, one.size)
                if one.take:
                    one.reservation.resize(one.size)
                self.waiting.remove(one)
                one.admitted.set_result(None)

    def _in_order(self) -> list[_Waiting]:
        return sorted(self.waiting, key=lambda one: (self.account[one.reservation.client], one.size > SMALL))

    def _look(self) -> None:
        """Drop clients that have kept the server waiting for too long."""
        self._timer = None
        if not self._open or self._loop is None:
            return
        self._timer = self._loop.call_later(_TICK, self._look)
        now, slow = time.monotonic(), []
        for one in self._open:
            if (waited := one.waited(now)) > self._seconds:
                one.end()
            elif waited > _STALL_SECONDS and one.size:
                slow.append((self.account[one.client], waited, one))
        if slow and self.waiting:
            slow.sort(key=lambda row: row[:2], reverse=True)
            self._make_room([one for *_, one in slow])

    def _make_room(self, slow: list[Reservation]) -> None:
        """Drop slow clients, in order, until the waiting requests fit."""
        after = _Account(self.account.most, self.account)
        for waiting in self._in_order():
            client = waiting.reservation.client
            for one in slow.copy():
                if after.fits(client, waiting.size):
                    break
                if one.client == client or after.is_full(waiting.size):
                    slow.remove(one)
                    after.add(one.client, -one.size)
                    one.end()
            after.add(client, waiting.size)
