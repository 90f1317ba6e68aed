"""The open loop: conversations that start when they are due, whatever has become of those before them.

Later turns of a conversation follow the answer before them, after the recorded gap where there is one.
"""

import asyncio

from jobs.replay.job import ReplayJob
from jobs.replay.pace import Pace
from jobs.replay.shared_order import WorkQueue
from jobs.replay.turns import Turns

LEAD_NS = 50_000_000
"""How long before it is due a conversation is taken up: time to write its first request."""


class OpenLoop:
    """Plays one process' share of an open loop."""

    def __init__(self, job: ReplayJob, turns: Turns, pace: Pace, *, queue: WorkQueue) -> None:
        assert job.arrivals is not None
        self._arrivals = job.arrivals
        self._replicas = len(job.urls)
        self._turns = turns
        self._pace = pace
        self._queue = queue

    async def run(self, start: int) -> None:
        """Start each conversation `start` (ns) plus its arrival, and wait for the last of them to end."""
        async with asyncio.TaskGroup() as conversations:
            while (position := self._queue.take()) is not None:
                due = start + self._arrivals[position]
                await self._pace.until(due - LEAD_NS)
                conversations.create_task(
                    self._turns.play(
                        self._turns.script(position),
                        user=position,
                        replica=position % self._replicas,
                        due=due,
                    )
                )
                if self._pace.ended:
                    return
