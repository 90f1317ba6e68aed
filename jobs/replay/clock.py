"""The load process' own condition: event-loop lag, CPU and memory."""

import asyncio
import time
from array import array
from collections.abc import Sequence
from pathlib import Path

INTERVAL = 0.02
"""Seconds between two samples of the lag."""


def percentile_99(values: Sequence[int]) -> int:
    """Return the 99th percentile by nearest rank; 0 for no values."""
    if not values:
        return 0
    ordered = sorted(values)
    return ordered[-(-len(ordered) * 99 // 100) - 1]


class SelfCheck:
    """Measures the process while it plays. A client that is late measures itself instead of the engine."""

    def __init__(self) -> None:
        self._lags = array("q")
        self._due = 0
        self._handle: asyncio.TimerHandle | None = None
        self._wall = 0
        self._cpu = 0

    def start(self) -> None:
        """Begin sampling on the running loop."""
        self._wall = time.monotonic_ns()
        self._cpu = time.process_time_ns()
        self._due = self._wall
        self._schedule()

    def stop(self) -> None:
        """End sampling."""
        if self._handle is not None:
            self._handle.cancel()
        self._wall = time.monotonic_ns() - self._wall
        self._cpu = time.process_time_ns() - self._cpu

    @property
    def lag_p99_ms(self) -> float:
        """How late timers fired, 99th percentile in ms; 0 for a run shorter than a sample."""
        return percentile_99(self._lags) / 1e6

    @property
    def cpu_seconds(self) -> float:
        """CPU seconds between start and stop."""
        return self._cpu / 1e9

    @property
    def cpu_share(self) -> float:
        """CPU seconds over wall seconds between start and stop."""
        return self._cpu / max(1, self._wall)

    @property
    def peak_rss_mib(self) -> float:
        """Peak memory of the process so far."""
        # Not `ru_maxrss`: Linux starts that at the peak of the process which started this one.
        lines = Path("/proc/self/status").read_text().splitlines()
        (peak,) = (line.split()[1] for line in lines if line.startswith("VmHWM:"))
        return int(peak) / 1024

    def _schedule(self) -> None:
        loop = asyncio.get_running_loop()
        self._due = time.monotonic_ns() + int(INTERVAL * 1e9)
        self._handle = loop.call_later(INTERVAL, self._sample)

    def _sample(self) -> None:
        self._lags.append(max(0, time.monotonic_ns() - self._due))
        self._schedule()
