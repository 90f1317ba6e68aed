"""Random numbers that depend on a key and an index only, so that any of them can be had again alone.

A counter-based generator (the SplitMix64 finaliser over key and index): acceptance at a position of a request
is the same at every concurrency and in every batch, and so is the noise of a step.
"""

import math
from collections.abc import Sequence
from statistics import NormalDist

_MASK = (1 << 64) - 1
_GOLDEN = 0x9E3779B97F4A7C15
_STANDARD = NormalDist()


def mix(value: int) -> int:
    """Return 64 well-mixed bits of `value`."""
    value &= _MASK
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & _MASK
    return value ^ (value >> 31)


def combine(*parts: int) -> int:
    """Return one 64-bit key of several."""
    key = 0
    for part in parts:
        key = mix(key + _GOLDEN + mix(part))
    return key


def uniform(key: int, index: int) -> float:
    """Return the `index`-th number of `key`, in (0, 1)."""
    return ((mix(key + (index + 1) * _GOLDEN) >> 11) + 0.5) * 2.0**-53


def normal(key: int, index: int) -> float:
    """Return the `index`-th standard normal number of `key`."""
    return _STANDARD.inv_cdf(uniform(key, index))


def accepted(key: int, position: int, rates: Sequence[float]) -> int:
    """Return how many drafts from output `position` on are accepted before the first is not.

    `rates` has the chance of each that it is accepted when all before it were.
    """
    for count, rate in enumerate(rates):
        if uniform(key, position + count) >= rate:
            return count
    return len(rates)


def log_normal(key: int, index: int, spread: float) -> float:
    """Return a factor with mean 1 whose logarithm has standard deviation `spread`."""
    return math.exp(spread * normal(key, index) - 0.5 * spread * spread) if spread else 1.0
