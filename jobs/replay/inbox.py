"""Arrivals: stamped when they are read, taken in once all that is there has been read.

The event loop reads one connection after another. If every chunk was parsed before the next one is read, the
last of hundreds that arrive together would be stamped late by the parsing of all before it.
"""

import asyncio
from typing import Protocol


class Taker(Protocol):
    """Who something arrived for."""

    def take(self, data: bytes, now: int) -> None:
        """Take what arrived at `now` (ns)."""


class Inbox:
    """What the connections of a load process have read and not yet taken in, in order of arrival."""

    __slots__ = ("_arrivals", "_due")

    def __init__(self) -> None:
        self._arrivals: list[tuple[Taker, bytes, int]] = []
        self._due = False

    def put(self, taker: Taker, data: bytes, now: int) -> None:
        """Keep what arrived at `now` (ns) until the event loop has read what else is there."""
        self._arrivals.append((taker, data, now))
        if not self._due:
            self._due = True
            # The loop runs this after it has read from every connection that was ready.
            asyncio.get_running_loop().call_soon(self.flush)

    def flush(self) -> None:
        """Hand out everything now."""
        arrivals, self._arrivals, self._due = self._arrivals, [], False
        for taker, data, now in arrivals:
            taker.take(data, now)
