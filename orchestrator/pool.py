"""Blocks on Ray: several at once as nodes have room, largest first, their reports in one stream.

A block's process returns its reports through a streaming generator; this module only waits, and frees what a
block held at any ending of it.
"""

import logging
import math
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, Self

import ray
from ray.exceptions import RayError
from ray.util.placement_group import placement_group_table
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

from jobs.block import BlockRunner
from jobs.task import BlockTask, Report
from jobs.workload.tokens import TokenWorkload
from orchestrator.interrupts import handlers_kept
from orchestrator.pending import Segment, block_task
from orchestrator.placement import Demand, Fit, Node, Slot, check_feasible, fit, nodes_of, take
from orchestrator.plan import Cluster, Plan

PLACE_SECONDS = 30.0
"""A slice that fits by our count and is not reserved after so long is held by others: try again later."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockEnded:
    """A block's process is gone: it did all it was told, or `error` says why not."""

    segment: Segment
    task: BlockTask
    error: str | None


@dataclass(slots=True, kw_only=True)
class _Running:
    segment: Segment
    task: BlockTask
    demand: Demand
    where: Fit
    slot: Slot
    actor: Any
    stream: Any


class BlockPool:
    """The segments of a plan, run on a Ray cluster."""

    def __init__(self, plan: Plan, workload: TokenWorkload) -> None:
        self.plan = plan
        self._workload = workload
        self._ours = False
        self._running: list[_Running] = []

    def __enter__(self) -> Self:
        self._ours = connect(self.plan.cluster)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for running in list(self._running):
            self._end(running)
        if self._ours:
            ray.shutdown()

    def reports(self, segments: Sequence[Segment]) -> Iterator[Report | BlockEnded]:
        """Run the segments and yield what they report; a block's `BlockEnded` is its last.

        Raises:
            PlacementError: a block fits no node of the cluster; raised before anything starts.
        """
        cluster = self.plan.cluster
        total = nodes_of(cluster)
        waiting = sorted(segments, key=lambda segment: (-segment.block.devices, segment.block.index))
        check_feasible([Demand.of(segment.block.devices, cluster) for segment in waiting], total, cluster)
        free = total
        while waiting or self._running:
            for segment in list(waiting):
                started = self._start(segment, free, total)
                if started is not None:
                    waiting.remove(segment)
                    free = take(free, started.where, started.demand)
            for running in self._ready():
                report = self._next(running)
                yield report
                if isinstance(report, BlockEnded):
                    free = take(free, running.where, running.demand, sign=1)

    def _start(self, segment: Segment, free: Sequence[Node], total: Sequence[Node]) -> _Running | None:
        demand = Demand.of(segment.block.devices, self.plan.cluster)
        where = fit(demand, free, total)
        if where is None:
            return None
        name = f"{self.plan.sweep}-b{segment.block.index}-s{segment.index}"
        slot = Slot(demand, where, self.plan.cluster, name=name)
        if not slot.wait(PLACE_SECONDS):
            slot.release()
            return None
        # where Ray put it, which need not be the node our own count had in mind
        where = replace(where, node=placement_group_table(slot.group)["bundles_to_node_id"][0])
        task = block_task(
            self.plan, segment, self._workload, engine_cores=demand.engine_cores, load_cores=demand.load_cores
        )
        actor = actor_in(slot, self.plan.cluster, BlockRunner)
        stream = actor.run.options(num_returns="streaming").remote(task)
        running = _Running(
            segment=segment, task=task, demand=demand, where=where, slot=slot, actor=actor, stream=stream
        )
        self._running.append(running)
        return running

    def _ready(self) -> list[_Running]:
        """Return the blocks that have something to say, after at most a second."""
        streams = [running.stream for running in self._running]
        if not streams:
            return []
        ready, _ = ray.wait(streams, num_returns=1, timeout=1.0, fetch_local=False)
        return [running for running in self._running if any(running.stream is stream for stream in ready)]

    def _next(self, running: _Running) -> Report | BlockEnded:
        error: str | None = None
        try:
            report: Report = ray.get(next(running.stream))
        except StopIteration:
            pass
        except RayError as lost:
            error = f"the block's process was lost: {str(lost).strip().splitlines()[0]}"
        else:
            return report
        self._end(running)
        return BlockEnded(segment=running.segment, task=running.task, error=error)

    def _end(self, running: _Running) -> None:
        self._running.remove(running)
        with suppress(RayError, ValueError):
            ray.kill(running.actor)
        running.slot.release()


def connect(cluster: Cluster) -> bool:
    """Connect to the cluster, or start a local one; True when this call did it (and its caller ends it)."""
    if ray.is_initialized():
        return False
    with handlers_kept():
        _connect(cluster)
    return True


def _connect(cluster: Cluster) -> None:
    if cluster.address:
        ray.init(address=cluster.address, log_to_driver=False, logging_level=logging.WARNING)
        return
    stand_in = (
        {} if cluster.resource == "GPU" else {cluster.resource: float(cluster.slots or os.cpu_count() or 1)}
    )
    ray.init(
        num_cpus=len(os.sched_getaffinity(0)),
        resources=stand_in,
        include_dashboard=False,
        log_to_driver=False,
        logging_level=logging.WARNING,
    )


def actor_in(slot: Slot, cluster: Cluster, runner: type) -> Any:
    """Start an actor of class `runner` that owns the slot's engine bundle, and return its handle."""
    devices = math.ceil(slot.engine_bundle[cluster.resource])
    options: dict[str, Any] = (
        {"num_gpus": devices}
        if cluster.resource == "GPU"
        else {"resources": {cluster.resource: devices}, "num_gpus": 0}
    )
    return (
        ray.remote(runner)
        .options(
            num_cpus=slot.engine_bundle["CPU"],
            max_restarts=0,
            scheduling_strategy=PlacementGroupSchedulingStrategy(slot.group, placement_group_bundle_index=0),
            # Ray starts workers at nice 15, and an engine would inherit it
            runtime_env={"env_vars": {"RAY_worker_niceness": "0"}},
            **options,
        )
        .remote()
    )
