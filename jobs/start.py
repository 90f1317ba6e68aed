"""Starting a fleet, twice where that can help."""

import time
from collections.abc import Iterator
from dataclasses import dataclass

from engines.errors import EngineError
from jobs.fleet import Fleet
from jobs.gpus import GpuMemory

ATTEMPTS = 2
"""A start that failed for a passing reason (neither memory nor a flag) is tried once more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One try to start a fleet."""

    seconds: float
    """Time it took."""
    error: EngineError | None = None
    """Why it failed; None for engines that are ready."""


def start_attempts(
    fleet: Fleet, memory: GpuMemory, *, ready_seconds: float, stop_seconds: float
) -> Iterator[Attempt]:
    """Try to start `fleet` and yield every attempt, the failed ones too; the last one yielded is ready.

    Raises:
        EngineError: the last attempt failed; raised after it was yielded.
        GpusHeldError: the devices are not free for an attempt.
    """
    for number in range(1, ATTEMPTS + 1):
        begun = time.monotonic()
        try:
            memory.check()
            seconds = fleet.start(ready_seconds=ready_seconds)
        except EngineError as error:
            yield Attempt(seconds=time.monotonic() - begun, error=error)
            if number == ATTEMPTS or not error.retryable:
                raise
            fleet.stop(grace=stop_seconds)
        else:
            yield Attempt(seconds=seconds)
            return
