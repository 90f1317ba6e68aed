"""Load levels: how much work is in flight at once, or how fast it arrives.

Closed loop: C users, each of whom plays one conversation at a time. Open loop: conversations arrive at times
of their own, whatever the engine does, at a stated rate or at the trace's own times made denser.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from engines.nearest import did_you_mean

CONCURRENCY: Final = "concurrency"
RATE: Final = "rate"
RATE_SCALE: Final = "rate_scale"
AXES: Final = (CONCURRENCY, RATE, RATE_SCALE)
"""What a level can be a number of; one of them in a sweep."""

POISSON: Final = "poisson"
CONSTANT: Final = "constant"
TRACE: Final = "trace"
PROCESSES: Final = (POISSON, CONSTANT, TRACE)
"""Arrival processes: exponential gaps from a seed, equal gaps, the trace's own times."""

MAX_INFLIGHT: Final = 1024
"""Requests in flight that an open loop does not go beyond, unless told otherwise."""

_PREFIXES = {CONCURRENCY: "c", RATE: "r", RATE_SCALE: "x"}


# A sweep has few levels and many cells, and what is left of a block is counted by level at every cell.
@lru_cache
def level_label(axis: str, value: float) -> str:
    """Return the short name of a level for tables and ids: `c16`, `r2.5`, `x1.5`."""
    return f"{_PREFIXES[axis]}{value:.10g}"


@lru_cache
def axis_and_value(
    *, concurrency: int | None, rate: float | None, rate_scale: float | None
) -> tuple[str, float]:
    """Return what a level is a number of, and the number.

    Raises:
        ValueError: none is given, or more than one.
    """
    numbers = {CONCURRENCY: concurrency, RATE: rate, RATE_SCALE: rate_scale}
    given = [(axis, float(value)) for axis, value in numbers.items() if value is not None]
    if len(given) != 1:
        found = " and ".join(f"load.{axis}" for axis, _ in given) or "no number at all"
        message = (
            f"a load level has {found}; give exactly one of {', '.join(f'load.{axis}' for axis in AXES)}"
        )
        raise ValueError(message)
    return given[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadLevel:
    """One level: exactly one of `concurrency` (closed loop), `rate` and `rate_scale` (open loop) is set."""

    concurrency: int | None = None
    """C: users over the whole slice of a block, each playing one conversation at a time, turn after turn."""
    rate: float | None = None
    """Conversations that arrive a second."""
    rate_scale: float | None = None
    """How many times as dense as recorded the trace's arrivals are: 2 halves every time."""
    ramp: float = 0.0
    """Closed loop: seconds over which the users start, evenly spread; 0 for all at once."""
    process: str | None = None
    """Open loop: one of `PROCESSES`; None for `poisson` at a `rate` and `trace` at a `rate_scale`."""
    duration: float | None = None
    """Open loop: seconds of arrivals; None for one pass over the workload."""
    max_inflight: int = MAX_INFLIGHT
    """Open loop: requests in flight that are never exceeded; one that has to wait for it fails the cell."""

    def __post_init__(self) -> None:
        self._check_value()
        if self.is_open:
            self._check_open()
        else:
            self._check_closed()

    @property
    def axis(self) -> str:
        """What the level is a number of, one of `AXES`."""
        return self._number[0]

    @property
    def value(self) -> float:
        """The number: levels of one sweep share the axis and are ordered by it."""
        return self._number[1]

    @property
    def is_open(self) -> bool:
        """Whether conversations arrive by themselves."""
        return self.concurrency is None

    @property
    def arrivals(self) -> str:
        """The arrival process of an open loop, defaults filled in; empty for a closed loop."""
        if not self.is_open:
            return ""
        return self.process or (POISSON if self.rate is not None else TRACE)

    @property
    def label(self) -> str:
        """Short name for tables and ids: `c16`, `r2.5`, `x1.5`."""
        return level_label(*self._number)

    @property
    def sort_key(self) -> tuple[int, float]:
        """Ascending order of levels."""
        return AXES.index(self.axis), self.value

    @property
    def _number(self) -> tuple[str, float]:
        return axis_and_value(concurrency=self.concurrency, rate=self.rate, rate_scale=self.rate_scale)

    def _check_value(self) -> None:
        value = self.value
        if self.concurrency is not None and self.concurrency < 1:
            message = f"load.concurrency has {self.concurrency}; it counts conversations: choose 1 or more"
            raise ValueError(message)
        if not (math.isfinite(value) and value > 0):
            unit = "conversations a second" if self.rate is not None else "times the recorded arrival rate"
            message = f"load.{self.axis} has {value:g}; it is in {unit}: choose a number above 0"
            raise ValueError(message)

    def _check_closed(self) -> None:
        if not (math.isfinite(self.ramp) and self.ramp >= 0):
            message = f"load.ramp is {self.ramp:g}; it is in seconds: choose 0 or more"
            raise ValueError(message)
        for key, wrong in (("process", self.process is not None), ("duration", self.duration is not None)):
            if wrong:
                message = (
                    f"load.{key} is for an open loop, and load.concurrency asks for a closed one, which "
                    f"plays a fixed number of conversations; remove load.{key}, or choose load=open"
                )
                raise ValueError(message)

    def _check_open(self) -> None:
        if self.ramp:
            message = (
                f"load.ramp spreads the start of users, and load.{self.axis} has none (conversations arrive "
                "one by one anyway); remove load.ramp"
            )
            raise ValueError(message)
        if self.process is not None and self.process not in PROCESSES:
            guess = did_you_mean(self.process, PROCESSES)
            message = f"load.process is {self.process!r}{guess}; choose one of {', '.join(PROCESSES)}"
            raise ValueError(message)
        if self.process == TRACE and self.rate is not None:
            message = (
                "load.process=trace plays the trace's own arrival times, which load.rate would contradict; "
                "give load.rate_scale=1 for the recorded times, or a larger number for denser ones"
            )
            raise ValueError(message)
        if self.duration is not None and not (math.isfinite(self.duration) and self.duration > 0):
            message = (
                f"load.duration is {self.duration:g}; it is in seconds: choose a number above 0, or null"
            )
            raise ValueError(message)
        if self.max_inflight < 1:
            message = f"load.max_inflight is {self.max_inflight}; it counts requests: choose 1 or more"
            raise ValueError(message)
