"""What breaks answers off: the replay's deadline, streams that stall, and a replica that hangs."""

import asyncio
import time
from collections import defaultdict

from jobs.nouns import counted
from jobs.replay.http import Connection
from jobs.replay.job import ReplayJob
from jobs.replay.lines import Lines
from jobs.replay.log import ReplayLog
from jobs.replay.pace import Pace


class Watch:
    """Looks at all answers in flight, at least once a second."""

    def __init__(self, job: ReplayJob, lines: Lines, pace: Pace, log: ReplayLog) -> None:
        self.silent: str | None = None
        """The replica that hangs, in words: it has requests, and none got a token for the stall time."""
        self._urls = job.urls
        self._deadline = job.deadline_seconds
        self._stall = job.stall_seconds
        self._lines = lines
        self._pace = pace
        self._log = log

    async def run(self) -> None:
        """Watch from now on, until cancelled or a replica hangs."""
        timer = asyncio.get_running_loop().call_later(self._deadline, self._expire)
        try:
            while self.silent is None:
                await asyncio.sleep(min(1.0, self._stall / 4))
                self._look()
        finally:
            timer.cancel()

    def _look(self) -> None:
        """End the replay if a replica hangs: its users would wait for one answer after another.

        A stream that gets nothing while its replica serves others waits for its turn: it fails alone. Where
        the replica itself has been silent for a while, that is not known yet: the streams of a replica that
        hangs do not end at the same moment.
        """
        age = int(self._stall * 1e9)
        flights: defaultdict[str, list[Connection]] = defaultdict(list)
        for connection in list(self._lines.connections()):
            if connection.answer is not None:
                flights[connection.url].append(connection)
        for url, connections in flights.items():
            if self._silence(url, connections) < age // 2:
                alone = f"no byte for {self._stall:g} s (timeouts.stall)"
                self._break_off(connections, "stall", alone, age=age)
                continue
            for connection in connections:
                connection.take_in()
            if self._silence(url, connections) >= age:
                self.silent = (
                    f"the replica at {url} has {counted(len(connections), 'request')} of this process and "
                    f"sent no token for {self._stall:g} s (timeouts.stall)"
                )
                self._pace.end()
                self._break_off(list(self._lines.connections()), "hung", self.silent, age=0)
                return

    def _silence(self, url: str, connections: list[Connection]) -> int:
        """Return how long ago the replica last sent a token, or began to owe one (ns)."""
        ended = [last for replica, last in self._log.spoke.items() if self._urls[replica] == url]
        answers = [connection.answer for connection in connections if connection.answer is not None]
        times = [answer.reader.times[-1] for answer in answers if answer.reader.times]
        owed = min((answer.dispatched for answer in answers), default=time.monotonic_ns())
        return time.monotonic_ns() - (max(*ended, *times, owed) if ended or times else owed)

    def _expire(self) -> None:
        self._pace.end()
        detail = f"the replay's deadline of {self._deadline:g} s passed"
        self._break_off(list(self._lines.connections()), "deadline", detail, age=0)

    @staticmethod
    def _break_off(connections: list[Connection], error: str, detail: str, *, age: int) -> None:
        """Break off the answers that got nothing for `age` (ns)."""
        now = time.monotonic_ns()
        for connection in connections:
            answer = connection.answer
            if answer is None or now - answer.heard < age:
                continue
            connection.take_in()
            if connection.answer is answer and now - answer.heard >= age:
                connection.abort()
                answer.break_off(error, detail, now)
