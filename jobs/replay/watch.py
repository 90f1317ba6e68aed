"""What breaks answers off: the replay's deadline, and streams that fall silent."""

import asyncio
import time

from jobs.replay.job import ReplayJob
from jobs.replay.lines import Lines
from jobs.replay.pace import Pace


class Watch:
    """Looks at all answers in flight, at least once a second."""

    def __init__(self, job: ReplayJob, lines: Lines, pace: Pace) -> None:
        self._deadline = job.deadline_seconds
        self._stall = job.stall_seconds
        self._lines = lines
        self._pace = pace

    async def run(self) -> None:
        """Watch from now on, until cancelled."""
        timer = asyncio.get_running_loop().call_later(self._deadline, self._expire)
        try:
            while True:
                await asyncio.sleep(min(1.0, self._stall / 4))
                detail = f"no byte for {self._stall:g} s (timeouts.stall)"
                self._break_off_all("stall", detail, age=int(self._stall * 1e9))
        finally:
            timer.cancel()

    def _expire(self) -> None:
        self._pace.end()
        self._break_off_all("deadline", f"the replay's deadline of {self._deadline:g} s passed", age=0)

    def _break_off_all(self, error: str, detail: str, *, age: int) -> None:
        now = time.monotonic_ns()
        for connection in list(self._lines.connections()):
            answer = connection.answer
            if answer is None or now - answer.heard < age:
                continue
            connection.take_in()
            if connection.answer is answer and now - answer.heard >= age:
                connection.abort()
                answer.break_off(error, detail, now)
