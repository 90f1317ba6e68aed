"""Where cells are measured: a ready fleet in its block, and how a replay is played on it."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from engines.counters import Counters
from engines.errors import EngineHungError
from engines.spec import PINNED_ROUTING
from jobs.cores import Cores
from jobs.errors import SilentReplicaError
from jobs.fleet import Fleet
from jobs.load import LoadLevel
from jobs.pairing import Pairing
from jobs.replay.arrivals import Schedule
from jobs.replay.data import ReplayData
from jobs.replay.job import ReplayJob
from jobs.replay.launch import run_replay
from jobs.replay.shards import shards_for
from jobs.task import BlockTask, RunTask
from jobs.workload.tokens import TokenWorkload

SETTLE_SECONDS = 5.0
"""Longest wait for an engine's counters to stop moving after the last answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """Where a cell is measured: a ready fleet in its block."""

    task: BlockTask
    run: RunTask
    fleet: Fleet
    cores: Cores
    pairing: Pairing
    start_seconds: float
    """Seconds the fleet took to become ready."""
    workload_file: Path | None = None
    """The task's workload as a file, written once a block; None: every replay writes its own."""

    def play(
        self,
        workload: TokenWorkload,
        schedule: Schedule,
        level: LoadLevel,
        folder: Path,
        *,
        seed: int,
        salt: str | None,
        replica: int | None = None,
    ) -> ReplayData:
        """Replay `schedule` of `workload` on all replicas, or on one.

        Raises:
            EngineError: the engine died or hangs.
            ReplayError: the load process failed.
        """
        servers = self.fleet.servers if replica is None else (self.fleet.servers[replica],)
        layout, able = self.fleet.config.layout, self.fleet.engine.capabilities
        job = ReplayJob(
            urls=tuple(server.url for server in servers),
            model=self.fleet.config.model.name,
            workload="",
            order=schedule.order,
            concurrency=level.concurrency or 0,
            ramp=level.ramp,
            arrivals=schedule.arrivals,
            max_inflight=level.max_inflight,
            salt=salt,
            request_options=dict(able.request_options),
            rank_header=able.rank_header if layout.routing == PINNED_ROUTING else None,
            ranks=layout.dp,
            seed=seed,
            cpus=self.cores.load,
            shards=shards_for(level.concurrency or level.max_inflight, len(self.cores.load)),
            ca_file=servers[0].ca_file,
            header_variables=servers[0].header_variables,
            stall_seconds=self.task.stall_seconds,
            deadline_seconds=self.task.cell_seconds,
        )
        written = self.workload_file if workload is self.task.workload else None
        try:
            data = run_replay(job, written or workload, folder, watch=self.fleet.check)
        except SilentReplicaError as error:
            self.fleet.check()
            message = f"engine {self.run.config.label} hangs: {error}"
            raise EngineHungError(message, self.fleet.log_tail()) from error
        if data.summary.errors:
            self.fleet.check_service()  # an engine that dies breaks answers off before its process is gone
        self.fleet.check()
        return data

    def play_all(
        self,
        workload: TokenWorkload,
        users: int,
        folder: Path,
        *,
        seed: int,
        salt: str | None = None,
        order: tuple[tuple[int, int], ...] | None = None,
        replica: int | None = None,
    ) -> ReplayData:
        """Replay every conversation once (or `order`) with so many users; the same errors as `play`."""
        whole = tuple((index, 0) for index in range(len(workload.conversations)))
        schedule = Schedule(order=whole if order is None else order, arrivals=None)
        level = LoadLevel(concurrency=users)
        return self.play(workload, schedule, level, folder, seed=seed, salt=salt, replica=replica)


def settled_counters(fleet: Fleet, *, sleep: Callable[[float], None] = time.sleep) -> Counters:
    """Return the counters once two readings agree: an engine may count an answer after it has sent it."""
    deadline = time.monotonic() + SETTLE_SECONDS
    latest = fleet.counters()
    while time.monotonic() < deadline:
        sleep(0.2)
        previous, latest = latest, fleet.counters()
        if latest.running == 0 and latest.generation_tokens == previous.generation_tokens:
            break
    return latest
