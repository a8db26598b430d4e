"""The memory budget of requests and answers, per client and in all."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

from xswe.serving.config import ServeConfig
from xswe.serving.refusals import Refused

PIECE = 1 << 16  # bytes; a request that takes no more in all is not counted
SENT = 1 << 17  # bytes that are sent at a time
SMALL = 1 << 19  # bytes of a request, or of an answer that is made at once
BLOCK = 1 << 18  # bytes of an answer that are made before they are sent, where it is made block by block
_LARGE = 0.75  # what part of the budget requests that are not small may fill, so that others find room beside them
_GRACE = 0.25  # seconds to send a piece, or to read what is sent at a time, where others wait for room
_TICK = 0.1  # seconds between two looks for clients that have stalled
_FULL = "requests and answers fill the memory that they may take (max_buffered); ask again in a second"


class Reservation:
    """The bytes of one request: its body and derived data, then its answer until the client has read it.

    Attributes:
        client: whose they are.
        size: how many; 0 where they are too few to be counted.
        ended: whether the request was cancelled because its client has stalled.
    """

    __slots__ = ("_budget", "_moved", "_since", "_task", "client", "ended", "size")

    def __init__(self, budget: Budget, client: str) -> None:
        self._budget, self.client, self.size, self.ended = budget, client, 0, False
        self._task = asyncio.current_task()
        self._since: float | None = None  # when the client began to send a piece, or to read; None where it has not to
        self._moved = 0  # bytes of the piece

    async def reserve(self, size: int) -> None:
        """Wait for room for ``size`` bytes, unless the request has some already.

        Raises:
            Refused: there was none for too long (503).
        """
        self.rest()
        if not self.size and not self.take(size):
            await self._budget.wait(self, self._needed(size), take=True)

    def take(self, size: int) -> bool:
        """Reserve ``size`` bytes in all; return False, with the reservation unchanged, if that exceeds the budget.

        It is not where another waits for room, and could use it.
        """
        if size <= PIECE:
            return True
        size = self._needed(size)
        if fits := self._budget.account.fits(self.client, size):
            self.resize(self.size + size)
        return fits

    async def room(self, size: int) -> None:
        """Wait until :meth:`take` can do so.

        Raises:
            Refused: it could not for too long (503).
        """
        await self._budget.wait(self, self._needed(size), take=False)

    def resize(self, size: int) -> None:
        """Count ``size`` bytes, whether there is room for them or not."""
        more = (size if size > PIECE else 0) - self.size
        self.size += more
        if more:
            self._budget.account.add(self.client, more)
        if more < 0 and self._budget.waiting:
            self._budget.admit()

    def _needed(self, size: int) -> int:
        """Return how many bytes more the request takes; the largest is alone with small ones."""
        return 0 if self.size else min(size, int(_LARGE * self._budget.account.most))

    def expect(self) -> None:
        """Start the client's timeout, unless it is running: the client has to send or read something."""
        if self._since is None:
            self._since = time.monotonic()

    def move(self, size: int) -> None:
        """Record that the client has sent ``size`` bytes, which restarts its timeout."""
        self._moved += size
        if self._moved >= PIECE:
            self.rest()

    def rest(self) -> None:
        """Stop the client's timeout: nothing is expected of it."""
        self._since, self._moved = None, 0

    def waited(self, now: float) -> float:
        """Return for how many seconds the client has kept the server waiting."""
        return 0.0 if self._since is None or self.ended else now - self._since

    def end(self) -> None:
        """Give the client up."""
        self.ended = True
        if self._task is not None:
            self._task.cancel()


class _Waiting(NamedTuple):
    """A request that waits for room, and whether it takes it at once."""

    reservation: Reservation
    size: int
    take: bool
    admitted: asyncio.Future[None]


class _Account(Counter[str]):
    """The bytes that each client uses, and the limit of all."""

    def __init__(self, most: int, used: Mapping[str, int] | None = None) -> None:
        super().__init__(used or {})
        self.most = most

    def add(self, client: str, size: int) -> None:
        self[client] += size
        if not self[client]:
            del self[client]

    def is_full(self, size: int) -> bool:
        """Return True if there is no room for ``size`` bytes of any client."""
        return self.total() + size > (self.most if size <= SMALL else _LARGE * self.most)

    def fits(self, client: str, size: int) -> bool:
        """Return True if a client has room for ``size`` bytes: within half of the budget, unless it has none yet."""
        own = self[client]
        return not self.is_full(size) and (not own or not size or own + size <= self.most / 2)


class Budget:
    """The bytes of all requests.

    A client has at most half of them. Of those who wait, the client that has least is let in first, and its small requests
    before others. Clients that do not read an answer, or do not send a body, are given up after
    ``seconds``; where others wait for room, sooner, those that have most first.
    """

    def __init__(self, config: ServeConfig) -> None:
        self._seconds, self.account = config.seconds, _Account(config.max_buffered)
        self._open: set[Reservation] = set()
        self.waiting: list[_Waiting] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._timer: asyncio.TimerHandle | None = None

    def open(self, client: str) -> Reservation:
        """Begin a request, and look after its client."""
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
        """Wait for room, and take it: see :meth:`Reservation.reserve`, and ``room`` where it is not taken."""
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
        """Let in those who have room."""
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
        """Give up clients that have kept the server waiting for too long."""
        self._timer = None
        if not self._open or self._loop is None:
            return
        self._timer = self._loop.call_later(_TICK, self._look)
        now, slow = time.monotonic(), []
        for one in self._open:
            if (waited := one.waited(now)) > self._seconds:
                one.end()
            elif waited > _GRACE and one.size:
                slow.append((self.account[one.client], waited, one))
        if slow and self.waiting:
            slow.sort(key=lambda row: row[:2], reverse=True)
            self._make_room([one for *_, one in slow])

    def _make_room(self, slow: list[Reservation]) -> None:
        """Give up as many of the slow clients, from the first on, as is needed for those who wait."""
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
