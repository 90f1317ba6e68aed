"""One process' share of a replay from its start to its end, closed or open loop."""

import asyncio

from jobs.errors import SilentReplicaError
from jobs.replay.clock import SelfCheck
from jobs.replay.job import ReplayJob
from jobs.replay.lines import Lines, PooledLines, UserLines, allow_connections
from jobs.replay.log import ReplayLog
from jobs.replay.open_loop import OpenLoop
from jobs.replay.pace import Pace
from jobs.replay.shared_order import WorkQueue
from jobs.replay.turns import Turns
from jobs.replay.users import ClosedLoop
from jobs.replay.watch import Watch
from jobs.workload.tokens import TokenWorkload


class Player:
    """Plays what the job says, watched by a deadline and for streams that stall."""

    def __init__(
        self, job: ReplayJob, workload: TokenWorkload, log: ReplayLog, *, queue: WorkQueue, shard: int
    ) -> None:
        self.check = SelfCheck()
        self._pace = Pace()
        allow_connections(job.max_inflight if job.arrivals is not None else job.concurrency)
        self._closed: ClosedLoop | None = None
        self._pool: PooledLines | None = None
        if job.arrivals is None:
            users = range(shard, job.concurrency, job.shards)
            self._lines: Lines = UserLines(job, users)
            turns = Turns(job, workload, log, lines=self._lines, pace=self._pace)
            self._closed = ClosedLoop(job, turns, self._pace, queue=queue, users=users)
            self._loop: ClosedLoop | OpenLoop = self._closed
        else:
            # Each process gets its share of the cap, at least one request.
            self._pool = PooledLines(job, max(1, len(range(shard, job.max_inflight, job.shards))))
            self._lines = self._pool
            turns = Turns(job, workload, log, lines=self._lines, pace=self._pace)
            self._loop = OpenLoop(job, turns, self._pace, queue=queue)
        self._watch = Watch(job, self._lines, self._pace, log)

    async def open(self) -> None:
        """Write first requests and connect before the start, as far as that is possible."""
        if self._closed is not None:
            self._closed.prepare()
        await self._lines.open()

    async def play(self, start: int) -> None:
        """Play from `start` (ns, the same in all processes) until all is played or the deadline passes.

        Raises:
            SilentReplicaError: a replica that has requests of ours sends nothing: the replay ended there.
        """
        await self._pace.until(start)
        self.check.start()
        watching = asyncio.create_task(self._watch.run())
        try:
            await self._loop.run(start)
        finally:
            watching.cancel()
            self.check.stop()
            for connection in list(self._lines.connections()):
                connection.abort()
        if self._watch.silent is not None:
            raise SilentReplicaError(self._watch.silent)

    @property
    def window(self) -> tuple[int | None, int | None]:
        """Start and end of this process' users' steady window; an open loop's is found when all is known."""
        return (None, None) if self._closed is None else (self._closed.window.start, self._closed.window.end)

    @property
    def cap_waits(self) -> int:
        """Requests of an open loop that had to wait because too many were in flight."""
        return 0 if self._pool is None else self._pool.waits
