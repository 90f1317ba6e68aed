"""Ends of an interval where a search has to count with those that lie beyond the levels."""

import math
from collections.abc import Sequence

from analysis.crossover import Crossover

WHOLE_NUMBERS = "concurrency"
"""Axis whose levels are whole numbers: a closed loop's users."""
BEYOND = 2.0
"""An end beyond the levels counts as so many times the last one: nothing beyond is ever measured."""


def ends(found: Crossover, levels: Sequence[float]) -> tuple[float, float]:
    """Return both ends of the interval, above 0; those beyond the levels as `BEYOND` says."""
    if not levels:
        return 1.0, math.inf
    bottom, top = levels[0] / BEYOND, levels[-1] * BEYOND
    low = found.low if found.low is not None else (bottom if found.low_censored else top)
    high = found.high if found.high is not None else (top if found.high_censored else bottom)
    return min(low, high), max(low, high)


def integers_decided(low: float, high: float, axis: str) -> bool:
    """Tell whether the interval lies between two whole numbers of users: no level is left between them."""
    return axis == WHOLE_NUMBERS and math.ceil(high) - math.floor(low) <= 1
