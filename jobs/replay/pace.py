"""Waiting for the time at which something is due, as long as the replay goes on."""

import asyncio
import math
import time

_NS_PER_MS = 1_000_000


class Pace:
    """The replay's clock: everybody who waits for a due time waits here, and is woken when it is cut off."""

    def __init__(self) -> None:
        self.ended = False
        """Whether the replay was cut off: nothing more is to be sent."""
        self._sleepers: set[asyncio.Future[None]] = set()

    async def until(self, due: int) -> None:
        """Return at `due` (ns of CLOCK_MONOTONIC), never before, or at once when the replay is cut off.

        Timers of the event loop count whole milliseconds, so it returns up to about one late.
        """
        loop = asyncio.get_running_loop()
        while not self.ended and (left := due - time.monotonic_ns()) > 0:
            sleeper: asyncio.Future[None] = loop.create_future()
            self._sleepers.add(sleeper)
            timer = loop.call_later(math.ceil(left / _NS_PER_MS) / 1e3, _wake, sleeper)
            try:
                await sleeper
            finally:
                timer.cancel()
                self._sleepers.discard(sleeper)

    def end(self) -> None:
        """Cut the replay off."""
        self.ended = True
        for sleeper in self._sleepers:
            _wake(sleeper)


def _wake(sleeper: "asyncio.Future[None]") -> None:
    if not sleeper.done():
        sleeper.set_result(None)
