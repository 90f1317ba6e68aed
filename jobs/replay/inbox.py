"""Whose arrivals are due to be taken in: one connection after another, each time the event loop has read.

A chunk is stamped when it is read and parsed later, for two reasons. The engine ends a step for all of its
requests at once: if each chunk was parsed before the next one is read, the last of hundreds would be stamped
late by the parsing of all before it. And parsing many chunks of one stream in a row finds code and data in
the processor's caches, which one chunk of each of hundreds of streams does not.
"""

import asyncio
from collections import deque
from typing import Protocol


class Taker(Protocol):
    """Who has read something."""

    def take_in(self) -> None:
        """Parse what has been read."""


class Inbox:
    """The connections of a load process that have something to take in, first come, first served."""

    __slots__ = ("_due", "_scheduled")

    def __init__(self) -> None:
        self._due: deque[Taker] = deque()
        self._scheduled = False

    def put(self, taker: Taker) -> None:
        """Have `taker` take in what it has read, after the event loop has read what else is there."""
        self._due.append(taker)
        if not self._scheduled:
            self._schedule()

    def _schedule(self) -> None:
        self._scheduled = True
        asyncio.get_running_loop().call_soon(self._next)

    def _next(self) -> None:
        """Serve one, then let the loop read again: what arrives meanwhile is not stamped late by all."""
        self._due.popleft().take_in()
        if self._due:
            self._schedule()
        else:
            self._scheduled = False
