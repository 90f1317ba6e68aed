"""The closed loop: C users who play conversations of one shared order, turn after turn.

A user takes the next entry of the order, plays its turns one after another, thinks between them where the
workload has gaps, and keeps its slot to the end. Users start together, or evenly spread over a ramp.
"""

import asyncio
from collections.abc import Sequence

from jobs.replay.job import ReplayJob
from jobs.replay.pace import Pace
from jobs.replay.shared_order import WorkQueue
from jobs.replay.turns import Script, Turns
from jobs.replay.window import Window


class ClosedLoop:
    """Plays one process' share of a closed loop."""

    def __init__(
        self, job: ReplayJob, turns: Turns, pace: Pace, *, queue: WorkQueue, users: Sequence[int]
    ) -> None:
        self.window = Window(users)
        self._job = job
        self._turns = turns
        self._pace = pace
        self._queue = queue
        self._users = users
        self._first: dict[int, Script | None] = {}

    def prepare(self) -> None:
        """Write the first request of every user, where they all start at once.

        Then nothing but sending lies between the start and the last user's request. In a ramp users take
        their work as they start, so that conversations start in the shared order.
        """
        if not self._job.ramp:
            self._first = {user: self._take() for user in self._users}

    async def run(self, start: int) -> None:
        """Play conversations from `start` (ns) on, as long as there are any."""
        await asyncio.gather(*(self._user(user, start + self._delay(user)) for user in self._users))

    async def _user(self, user: int, due: int) -> None:
        """Play from `due` on; each conversation is due when the one before it has ended."""
        await self._pace.until(due)
        script = self._first.pop(user) if user in self._first else self._take()
        while script is not None:
            ended = await self._turns.play(script, user=user, replica=user % len(self._job.urls), due=due)
            if ended is None:
                return
            self.window.finished(user, ended)
            due = ended
            script = self._take()
        self.window.out_of_work(due)

    def _take(self) -> Script | None:
        """Return the next conversation of the order; None when there is no more work."""
        position = self._queue.take()
        return None if position is None else self._turns.script(position)

    def _delay(self, user: int) -> int:
        """Return after how many nanoseconds a user starts."""
        return int(self._job.ramp * 1e9 * user / self._job.concurrency)
