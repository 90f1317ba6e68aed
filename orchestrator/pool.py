"""Blocks on Ray: several at once as nodes have room, their reports in one stream.

A block's process returns its reports through a streaming generator. This module starts it where the queue
found a slice, waits without ever blocking on one block, and frees what a block held at any ending of it.
Nodes may join and leave meanwhile: what ran on a node that left is lost, and can go on elsewhere.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Self

import ray
from ray.exceptions import RayError

from jobs.block import BlockRunner
from jobs.task import GpusHeld, Report
from jobs.workload.tokens import TokenWorkload
from orchestrator.connection import actor_in, connect
from orchestrator.packing import Holding
from orchestrator.pending import Segment, block_task
from orchestrator.placement import Demand
from orchestrator.plan import Plan
from orchestrator.queue import Admit, BlockQueue, Expected
from orchestrator.slots import Slots
from orchestrator.standing import (
    BLOCK_LOST,
    GPUS_HELD,
    NODE_LOST,
    BlockEnded,
    Placing,
    PoolNote,
    PoolSnapshot,
    Running,
    snapshot_of,
)

LOOK_SECONDS = 1.0
"""How often nodes and waiting blocks are looked at again, beside each end of a block."""
POLL_SECONDS = 0.05
"""Longest wait for a report while the reservation of a slice is pending."""


class BlockPool:
    """The segments of a plan, run on a Ray cluster."""

    def __init__(
        self,
        plan: Plan,
        workload: TokenWorkload,
        *,
        runner: type = BlockRunner,
        expected: Expected | None = None,
    ) -> None:
        """Prepare to run segments of `plan`.

        Args:
            plan: the sweep.
            workload: its frozen tokens.
            runner: class whose `run(task)` yields a block's reports on its node.
            expected: seconds that a segment will take; orders equals, and tells what may fill a gap.
        """
        self.plan = plan
        self._workload = workload
        self._runner = runner
        self._expected = expected or _unknown
        self._slots = Slots(plan.cluster)
        self._queue = BlockQueue(plan, self._slots, self._expected)
        self._running: list[Running] = []
        self._ours = False
        self._begun = False

    def __enter__(self) -> Self:
        self._ours = connect(self.plan.cluster)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        self._slots.release()
        if self._ours:
            ray.shutdown()

    def reports(
        self, segments: Sequence[Segment], admit: Admit | None = None
    ) -> Iterator[Report | BlockEnded | PoolNote]:
        """Run the segments and yield what they report; a block's `BlockEnded` is its last.

        Raises:
            PlacementError: a block fits no node of the cluster and `cluster.on_infeasible` is `fail`; raised
                before anything starts, later only when nothing else runs and no such node came back.
        """
        self._slots.refresh()
        self._queue.fill(segments, strict=not self._begun)
        self._begun = True
        due = 0.0
        while self._queue or self._running:
            if time.monotonic() >= due:
                self._slots.refresh()
                yield from self._queue.advance(admit or _always, self._holdings())
                due = time.monotonic() + LOOK_SECONDS
            for found in self._queue.placed(self._holdings()):
                if isinstance(found, PoolNote):
                    yield found
                else:
                    self._start(found)
            for report in self._said():
                if isinstance(report, BlockEnded):
                    due = 0.0
                yield report

    def stop(self) -> None:
        """End everything now: block processes, reservations, and what waits."""
        self._queue.clear()
        for running in list(self._running):
            self._running.remove(running)
            self._kill(running)
            running.slot.release()

    def snapshot(self) -> PoolSnapshot:
        """Return what runs and waits now; may be called from another thread."""
        return snapshot_of(
            list(self._running),
            self._slots.suitable,
            held=self._slots.held_devices,
            waiting=len(self._queue),
        )

    def _start(self, placing: Placing) -> None:
        segment, cluster = placing.segment, self.plan.cluster
        if placing.anywhere:
            self._slots.refresh()  # the node is new
        demand = Demand.of(segment.block.devices, cluster)
        task = block_task(
            self.plan,
            segment,
            self._workload,
            engine_cores=demand.engine_cores,
            load_cores=demand.load_cores,
        )
        actor = actor_in(placing.slot, cluster, self._runner)
        self._running.append(
            Running(
                segment=segment,
                task=task,
                where=placing.where,
                slot=placing.slot,
                actor=actor,
                stream=actor.run.options(num_returns="streaming").remote(task),
                expected=self._expected(segment),
            )
        )

    def _holdings(self) -> list[Holding]:
        return [Holding(where=running.where, until=running.left) for running in self._running]

    def _said(self) -> Iterator[Report | BlockEnded | PoolNote]:
        """Yield what blocks have to say, after at most a second."""
        seconds = POLL_SECONDS if self._queue.placing else LOOK_SECONDS
        if not self._running:
            time.sleep(seconds if self._queue else 0.0)
            return
        streams = [running.stream for running in self._running]
        ready, _ = ray.wait(streams, num_returns=1, timeout=seconds, fetch_local=False)
        for running in list(self._running):
            if any(running.stream is stream for stream in ready):
                yield from self._next(running)
            elif self._is_orphan(running):
                yield self._ended(running, NODE_LOST, "its node left the cluster")

    def _is_orphan(self, running: Running) -> bool:
        """Whether the block's node is gone and all it said was heard; Ray itself may take long to tell."""
        if any(node.name == running.where.node for node in self._slots.nodes):
            return False
        ready, _ = ray.wait([running.stream], timeout=0, fetch_local=False)
        return not ready

    def _next(self, running: Running) -> Iterator[Report | BlockEnded | PoolNote]:
        try:
            report: Report = ray.get(next(running.stream))
        except StopIteration:
            if running.held is not None:
                devices = ", ".join(running.held.devices)
                yield PoolNote(
                    message=f"devices {devices} are set aside until the sweep ends: {running.held.message}"
                )
                yield self._ended(running, GPUS_HELD, f"its devices were set aside: {running.held.message}")
            else:
                yield self._ended(running)
        except RayError as lost:
            self._slots.refresh()
            alive = any(node.name == running.where.node for node in self._slots.nodes)
            first = str(lost).strip().splitlines()[0]
            cause = BLOCK_LOST if alive else NODE_LOST
            yield self._ended(running, cause, f"the block's process was lost: {first}")
        else:
            if isinstance(report, GpusHeld):
                running.held = report
            yield report

    def _ended(self, running: Running, cause: str | None = None, error: str | None = None) -> BlockEnded:
        """Free what a block held, or set it aside, and return its last word."""
        ended = BlockEnded(
            segment=running.segment,
            task=running.task,
            seconds=running.seconds,
            cause=cause,
            error=error,
        )
        self._running.remove(running)
        self._kill(running)
        if running.held is not None:
            self._slots.set_aside(running.slot, running.where)
        elif cause == BLOCK_LOST and self.plan.cluster.resource == "GPU":
            # the guards take the lost block's engine down meanwhile; its GPUs are nobody's until then
            self._slots.set_aside(running.slot, running.where, seconds=self.plan.timeouts.stop)
        else:
            running.slot.release()
        return ended

    def _kill(self, running: Running) -> None:
        with suppress(RayError, ValueError):
            ray.kill(running.actor)


def _always(segment: Segment) -> bool:  # noqa: ARG001  the signature of `Admit`
    return True


def _unknown(segment: Segment) -> None:  # noqa: ARG001  the signature of `Expected`
    return None
