"""How far a curve may lie from the straight line between two of its levels.

A straight line (log ratio over log level) misses a curve by its curvature. Between two levels with neighbours
on both sides the larger of the two curvatures there is allowed for, to both sides of the line, less what
noise alone would make of it. At an end of the levels nobody knows how the curve goes on: there the same line
over the level itself, not its log, shows how much the choice of the axis matters, and no less is allowed for.
"""

import math
from collections.abc import Sequence

import numpy as np


def allowances(
    levels: Sequence[float], log_ratios: Sequence[float], covariance: np.ndarray | None = None
) -> np.ndarray:
    """Return b of each pair of adjacent levels: the curve lies within b s (1 - s) of the line at share s.

    Args:
        levels: ascending, above 0.
        log_ratios: one a level; where one is not finite its neighbours know nothing of it, and b beside it
            is 0.
        covariance: of the log ratios (levels x levels); none where they are known for certain.
    """
    places, values = np.log(np.asarray(levels, dtype=float)), np.asarray(log_ratios, dtype=float)
    noise = np.zeros((len(places), len(places))) if covariance is None else covariance
    bends = [_bend(places, values, noise, middle) for middle in range(len(places))]
    found = np.zeros(max(0, len(places) - 1))
    for left in range(len(found)):
        if not np.isfinite(values[left : left + 2]).all():
            continue
        width = places[left + 1] - places[left]
        known = [bend for bend in bends[left : left + 2] if bend is not None]
        found[left] = max(known, default=0.0) * width**2
        if len(known) < 2:
            found[left] = max(found[left], _by_axis(width, abs(values[left + 1] - values[left])))
    return found


def share_of_zero(before: np.ndarray, after: np.ndarray, bend: float) -> np.ndarray:
    """Return where before + (after - before) s + bend s (1 - s) passes 0, from 0 to 1.

    `before` is 0 or more and `after` below 0: the curve passes 0 once between them.
    """
    slope = after - before + bend
    divisor = np.sqrt(np.maximum(0.0, slope**2 + 4.0 * bend * before)) - slope  # needs no division by bend
    found: np.ndarray = np.clip(2.0 * before / np.where(divisor > 0.0, divisor, 1.0), 0.0, 1.0)
    return found


def _bend(places: np.ndarray, values: np.ndarray, noise: np.ndarray, middle: int) -> float | None:
    """Return half the second derivative at a level, less what its noise explains; None without neighbours."""
    if not 0 < middle < len(places) - 1:
        return None
    window = slice(middle - 1, middle + 2)
    if not np.isfinite(values[window]).all():
        return None
    a, b, c = places[window]
    weights = np.array([1.0 / ((a - b) * (a - c)), 1.0 / ((b - a) * (b - c)), 1.0 / ((c - a) * (c - b))])
    bend = float(weights @ values[window])
    return math.sqrt(max(0.0, bend**2 - float(weights @ noise[window, window] @ weights)))


def _by_axis(width: float, fall: float) -> float:
    """Return b of the straight line over the level itself, `width` being the log of the levels' ratio."""
    middle = (math.log((1.0 + math.exp(width)) / 2.0)) / width  # share of the log at half way of the level
    return 4.0 * fall * (middle - 0.5)
