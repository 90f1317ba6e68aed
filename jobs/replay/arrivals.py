"""What a level sends, and when: the order of conversations and, in an open loop, the arrival of each.

Both depend on the workload, the level and a seed of (sweep seed, block, level) and on nothing else, so that
every arm of a block plays the same conversations in the same order at the same times.
"""

import itertools
import math
import random
from collections.abc import Iterator
from dataclasses import dataclass

from jobs.errors import WorkloadError
from jobs.load import CONSTANT, TRACE, LoadLevel
from jobs.nouns import counted
from jobs.workload.order import replay_order
from jobs.workload.tokens import TokenWorkload

_NS = 1_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """The work of one replay."""

    order: tuple[tuple[int, int], ...]
    """(conversation index, epoch) in start order."""
    arrivals: tuple[int, ...] | None
    """When each entry of `order` is due, in nanoseconds from the start, ascending; None for a closed loop."""


def schedule_of(workload: TokenWorkload, level: LoadLevel, *, seed: int) -> Schedule:
    """Return what a level plays.

    A closed loop plays the workload as `replay_order` has it. An open loop without a duration plays every
    conversation once: in a hashed order at Poisson or constant arrivals, in the trace's order at its own
    times divided by the scale. With a duration it plays what arrives within it, the workload repeated as
    epochs if need be; a trace is not repeated.

    Raises:
        WorkloadError: the level needs arrival times that the workload lacks, or nothing arrives.
    """
    if level.concurrency is not None:
        order = replay_order(workload, concurrency=level.concurrency, seed=seed)
        return Schedule(order=order, arrivals=None)
    if level.arrivals == TRACE:
        assert level.rate_scale is not None
        return _trace(workload, level.rate_scale, level.duration)
    times = _times(mean_rate(level, workload), level.arrivals, seed)
    if level.duration is None:
        found = tuple(itertools.islice(times, len(workload.conversations)))
    else:
        end = level.duration * _NS
        found = tuple(itertools.takewhile(lambda time: time < end, times))
    if not found:
        raise WorkloadError(_nothing_arrives(level))
    order = replay_order(workload, concurrency=0, seed=seed, min_conversations=len(found))
    return Schedule(order=order, arrivals=found)


def mean_rate(level: LoadLevel, workload: TokenWorkload) -> float:
    """Return the mean arrival rate of an open loop in conversations/s.

    Raises:
        WorkloadError: a `rate_scale` and a workload without arrival times.
    """
    if level.rate is not None:
        return level.rate
    assert level.rate_scale is not None
    starts = _starts(workload)
    span = starts[-1][0] - starts[0][0]
    if span <= 0:
        message = (
            f"workload {workload.name!r} has all its arrivals at one time, so load.rate_scale has no rate to "
            "scale; give load.rate in conversations a second"
        )
        raise WorkloadError(message)
    return level.rate_scale * (len(starts) - 1) / span


def warmup_users(level: LoadLevel, workload: TokenWorkload) -> int:
    """Return how many users warm an engine up for a level: C, or as many as arrive in a second."""
    if level.concurrency is not None:
        return level.concurrency
    return max(1, min(level.max_inflight, math.ceil(mean_rate(level, workload))))


def _trace(workload: TokenWorkload, scale: float, duration: float | None) -> Schedule:
    starts = _starts(workload)
    first = starts[0][0]
    due = [(round((start - first) / scale * _NS), index) for start, index in starts]
    if duration is not None:
        due = [(time, index) for time, index in due if time < duration * _NS]
    return Schedule(order=tuple((index, 0) for _, index in due), arrivals=tuple(time for time, _ in due))


def _starts(workload: TokenWorkload) -> list[tuple[float, int]]:
    """Return (start in seconds, index) of every conversation by start; equal ones in the workload's order."""
    starts = [
        (conversation.start, index)
        for index, conversation in enumerate(workload.conversations)
        if conversation.start is not None
    ]
    lacking = len(workload.conversations) - len(starts)
    if lacking:
        message = (
            f"workload {workload.name!r} has no arrival time for {lacking} of its "
            f"{counted(len(workload.conversations), 'conversation')}, and load.rate_scale plays the "
            "trace's own; give load.rate in conversations a second (load=open), or use a trace with times"
        )
        raise WorkloadError(message)
    return sorted(starts)


def _times(rate: float, process: str, seed: int) -> Iterator[int]:
    """Yield arrivals in nanoseconds: multiples of 1/rate from 0, or a Poisson process."""
    if process == CONSTANT:
        for number in itertools.count():
            yield round(number / rate * _NS)
    draws = random.Random(seed)  # noqa: S311  reproducible on purpose
    time = 0.0
    while True:
        time += draws.expovariate(rate)
        yield round(time * _NS)


def _nothing_arrives(level: LoadLevel) -> str:
    return (
        f"at level {level.label} nothing arrives within load.duration={level.duration:g} s; choose a longer "
        "duration, or a higher rate"
    )
