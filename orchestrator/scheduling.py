"""A schedule of the analysis as an arm: K by concurrency, written for the engine that would serve it.

The analysis knows loads over a slice of devices; an engine knows the requests of its own step. A load is
turned into one engine's running requests by what ran at the levels tried (users may pause between turns), and
shared over the slice's replicas and the data-parallel ranks that each have a batch of their own.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from analysis.choices import LoadRange
from analysis.frame import Sweep, cells_frame
from analysis.recommendation import recommend
from analysis.schedule import Schedule
from engines.errors import EngineConfigError
from engines.registry import engine_named
from engines.schedule import KRange
from engines.spec import EngineConfig
from jobs.result import MEASURED, CellResult
from orchestrator.levels import level_at
from orchestrator.plan import Arm, Plan

IN_FLIGHT = "window/in_flight"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduledArm:
    """A schedule as its engine takes it, or why it does not."""

    schedule: Schedule
    ranges: tuple[KRange, ...] = ()
    """Running requests of one engine."""
    arm: Arm | None = None
    """None where the engine does not take it."""
    refused: str = ""
    """Why not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposed:
    """What the cells that pick a winner propose to serve with."""

    ranges: tuple[LoadRange, ...] = ()
    schedules: tuple[ScheduledArm, ...] = ()


def proposed(plan: Plan, results: Sequence[CellResult]) -> Proposed:
    """Return what a sweep proposes by the cells that count: fresh blocks judge it, and do not change it."""
    own = [result for result in results if result.counts]
    found = recommend(Sweep(directory=Path(), plan=plan.to_dict(), cells=cells_frame(own), results=own))
    schedules = tuple(scheduled_arm(plan, schedule, own) for schedule in found.schedules)
    return Proposed(ranges=found.ranges, schedules=schedules)


def scheduled_arm(plan: Plan, schedule: Schedule, results: Sequence[CellResult]) -> ScheduledArm:
    """Return the arm that runs a schedule, at the levels that probe each of its draft lengths.

    Args:
        plan: of the sweep.
        schedule: made from its results.
        results: the cells.
    """
    longest = plan.arm(schedule.longest.arm)
    ranges = engine_ranges(schedule, longest.config, results)
    nothing = ScheduledArm(schedule=schedule, ranges=ranges)
    if len({entry.k for entry in ranges}) < 2:
        return replace(nothing, refused="on one engine it comes to one draft length at all batch sizes")
    engine = engine_named(longest.config.engine)
    try:
        config = engine.by_batch_size(longest.config, ranges)
    except EngineConfigError as error:
        return replace(nothing, refused=error.message)
    if reasons := dict.fromkeys(refusal.reason for refusal in engine.refusals(config)):
        return replace(nothing, refused="; ".join(reasons))
    levels = tuple(
        level_at(longest.levels[0], value) for value in schedule.probes
    )  # a search may have found it
    factors = {**longest.factors, **{key: "by batch" for key in longest.factors if key == "drafter.k"}}
    return replace(nothing, arm=Arm(config=config, levels=levels, factors=factors))


def engine_ranges(
    schedule: Schedule, config: EngineConfig, results: Sequence[CellResult]
) -> tuple[KRange, ...]:
    """Return a schedule in running requests of one engine; steps that are too narrow for one are left out.

    Args:
        schedule: in loads over the slice.
        config: of one of its arms.
        results: the cells, which tell how many requests ran at each load.
    """
    engines = schedule.devices // config.layout.devices * config.layout.dp
    ranges: list[KRange] = []
    first = 1
    for step in schedule.steps:
        last = None if step.high is None else math.floor(running_at(step.high, schedule, results) / engines)
        if last is not None and last < first:
            continue
        ranges.append(KRange(first=first, last=last, k=step.k))
        if last is not None:
            first = last + 1
    joined = [list(own) for _, own in itertools.groupby(ranges, key=lambda entry: entry.k)]
    return tuple(KRange(first=own[0].first, last=own[-1].last, k=own[0].k) for own in joined)


def running_at(load: float, schedule: Schedule, results: Sequence[CellResult]) -> float:
    """Return how many requests ran on the slice at a load, by its own cells; the load where unknown."""
    arms = {step.arm for step in schedule.steps}
    shares: dict[float, list[float]] = {}
    for result in results:
        flying = result.metrics.get(IN_FLIGHT)
        if result.arm in arms and result.outcome == MEASURED and result.counts and flying:
            shares.setdefault(result.level, []).append(flying / result.level)
    if not shares:
        return load
    levels = sorted(shares)
    means = [float(np.mean(shares[level])) for level in levels]
    return load * min(1.0, float(np.interp(math.log(load), np.log(levels), means)))
