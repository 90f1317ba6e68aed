"""Who gets which connection: one a user in a closed loop, a pool for each replica in an open one."""

import asyncio
import resource
import time
from collections.abc import Iterable
from typing import Protocol

from engines.headers import header_values
from jobs.replay.http import Connection
from jobs.replay.inbox import Inbox
from jobs.replay.job import ReplayJob

IDLE_NS = 2_000_000_000
"""A connection unused for so long is replaced: servers close idle ones, the usual ones after five seconds,
and a request that meets the closing is lost."""

OTHER_FILES = 64
"""Files a load process has open besides its connections, with room to spare."""


class Lines(Protocol):
    """Where a request gets its connection from."""

    async def take(self, user: int, replica: int) -> Connection:
        """Return a connection to `replica` for one request of `user`, possibly after waiting for one."""

    def give_back(self, user: int, replica: int, connection: Connection) -> None:
        """Return what `take` gave, after its answer has ended."""

    async def open(self) -> None:
        """Connect as far as that is possible beforehand."""

    def connections(self) -> Iterable[Connection]:
        """Return the connections that may have an answer in flight."""


class UserLines:
    """A connection for each user, kept from conversation to conversation."""

    def __init__(self, job: ReplayJob, users: Iterable[int]) -> None:
        inbox = Inbox()
        self._connections = {user: connect(job, user % len(job.urls), inbox) for user in users}
        self._used = dict.fromkeys(self._connections, time.monotonic_ns())

    async def take(self, user: int, replica: int) -> Connection:  # noqa: ARG002  a user has one replica
        """Return the user's connection, closed if it was idle for long: it is opened anew then."""
        connection = self._connections[user]
        if time.monotonic_ns() - self._used[user] > IDLE_NS:
            connection.abort()
        return connection

    def give_back(self, user: int, replica: int, connection: Connection) -> None:  # noqa: ARG002  its own
        """Note when the connection was last used."""
        self._used[user] = time.monotonic_ns()

    async def open(self) -> None:
        """Connect every user, so that nobody's first answer waits for handshakes.

        A connection that fails here fails again, and is recorded, with the user's first request.
        """
        opening = (connection.open() for connection in self._connections.values())
        await asyncio.gather(*opening, return_exceptions=True)
        self._used = dict.fromkeys(self._connections, time.monotonic_ns())

    def connections(self) -> Iterable[Connection]:
        """Return all of them."""
        return self._connections.values()


class PooledLines:
    """As many connections as there are requests in flight, up to a cap; who finds the cap reached waits."""

    def __init__(self, job: ReplayJob, cap: int) -> None:
        self.waits = 0
        """Requests that had to wait because the cap was reached."""
        self._job = job
        self._inbox = Inbox()
        self._slots = asyncio.Semaphore(cap)
        self._idle: dict[int, list[tuple[Connection, int]]] = {}
        self._busy: dict[int, Connection] = {}

    async def take(self, user: int, replica: int) -> Connection:  # noqa: ARG002  whoever comes first
        """Return the replica's connection that was used last, or a new one."""
        if self._slots.locked():
            self.waits += 1
        await self._slots.acquire()
        connection = self._fresh(replica) or connect(self._job, replica, self._inbox)
        self._busy[id(connection)] = connection
        return connection

    def give_back(self, user: int, replica: int, connection: Connection) -> None:  # noqa: ARG002  the replica's
        """Put the connection into its replica's pool."""
        del self._busy[id(connection)]
        self._idle.setdefault(replica, []).append((connection, time.monotonic_ns()))
        self._slots.release()

    async def open(self) -> None:
        """Do nothing: connections are made as requests need them."""

    def connections(self) -> Iterable[Connection]:
        """Return those in use; the idle ones have nothing in flight."""
        return self._busy.values()

    def _fresh(self, replica: int) -> Connection | None:
        idle = self._idle.get(replica, [])
        if not idle:
            return None
        connection, used = idle.pop()
        if time.monotonic_ns() - used > IDLE_NS:
            # The others of the pool have been idle for even longer.
            connection.abort()
            for other, _ in idle:
                other.abort()
            idle.clear()
        return connection


def allow_connections(count: int) -> None:
    """Raise this process' limit of open files for so many connections, as far as it may be raised."""
    wanted = count + OTHER_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, most), hard))


def connect(job: ReplayJob, replica: int, inbox: Inbox) -> Connection:
    """Return a connection, not yet open, to a replica of the job."""
    headers = header_values(job.header_variables)
    return Connection(
        job.urls[replica],
        inbox=inbox,
        ca_file=job.ca_file,
        headers=headers,
        rank_header=job.rank_header,
    )
