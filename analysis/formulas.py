"""Closed forms of speculative decoding, each the inverse or a known consequence of another.

Symbols: alpha is the conditional chance that a draft token is accepted, K the draft length, MAL the mean
acceptance length (tokens per verification step, the verifier's own included), v and d the cost of verifying
and of drafting one token as shares of a plain decode step t0, f the decode share of end-to-end latency, x a
decode speed-up, G an end-to-end speed-up.
"""

import math

from scipy.optimize import brentq

LARGEST_LOG = 700.0
"""Beyond it e^x overflows: one degree of freedom can make an interval absurdly wide."""


def ratio_of(log: float) -> float:
    """Return e^log, held below overflow."""
    return math.exp(min(log, LARGEST_LOG))


def mean_acceptance_length(alpha: float, k: int) -> float:
    """Return MAL(alpha, K) = 1 + alpha + ... + alpha^K = (1 - alpha^(K+1)) / (1 - alpha); K + 1 at alpha = 1.

    Raises:
        ValueError: alpha outside 0 to 1, or a negative K.
    """
    _check_probability("alpha", alpha)
    if k < 0:
        message = f"k is {k}; it counts draft tokens: 0 or more"
        raise ValueError(message)
    return math.fsum(alpha**position for position in range(k + 1))


def alpha_of(mal: float, k: int) -> float:
    """Return the alpha whose MAL at this K is `mal` (inverse of `mean_acceptance_length`).

    Raises:
        ValueError: no alpha gives it: MAL lies in 1 to K + 1, and K is 1 or more.
    """
    if k < 1 or not 1.0 <= mal <= k + 1:
        message = (
            f"no acceptance gives a mean length of {mal} at k={k}: it lies between 1 and k + 1, with k >= 1"
        )
        raise ValueError(message)
    if mal == k + 1:
        return 1.0
    return float(brentq(lambda alpha: mean_acceptance_length(alpha, k) - mal, 0.0, 1.0, xtol=1e-14))


def step_ratio(v: float, d: float, k: int) -> float:
    """Return T(K) / t0 = 1 + (v + d) K, the cost of a speculative step over a plain one."""
    return 1.0 + (v + d) * k


def step_time(t0: float, v: float, d: float, k: int) -> float:
    """Return T(K) = t0 [1 + (v + d) K], in the unit of t0."""
    return t0 * step_ratio(v, d, k)


def predicted_ratio(mal: float, step: float) -> float:
    """Return the decode throughput ratio MAL / (T(K) / t0)."""
    return mal / step


def implied_step_ratio(mal: float, speed_up: float) -> float:
    """Return T(K) / t0 as it follows from a measured MAL and decode speed-up of a user."""
    return mal / speed_up


def implied_token_cost(mal: float, speed_up: float, k: int) -> float:
    """Return v + d, the cost of a draft token in plain steps, from a measured MAL and speed-up."""
    return (implied_step_ratio(mal, speed_up) - 1.0) / k


def end_to_end_speed_up(f: float, x: float, h: float = 1.0) -> float:
    """Return Amdahl's G = 1 / [(1 - f) h + f / x]; h is the growth of all other time (1: none)."""
    return 1.0 / ((1.0 - f) * h + f / x)


def speed_up_cap(f: float, h: float = 1.0) -> float:
    """Return the G of an infinitely fast decode, 1 / [(1 - f) h]."""
    _check_probability("f", f)
    return math.inf if f == 1.0 or h == 0.0 else 1.0 / ((1.0 - f) * h)


def required_decode_speed_up(g: float, f: float, h: float = 1.0) -> float | None:
    """Return x = f / (1/G - (1 - f) h), the decode speed-up that a target G needs; None where none is enough.

    Raises:
        ValueError: f outside 0 to 1, or G not positive.
    """
    if g <= 0.0:
        message = f"the target speed-up is {g}; it has to be positive"
        raise ValueError(message)
    if g >= speed_up_cap(f, h):
        return None
    return f / (1.0 / g - (1.0 - f) * h)


def required_length(x: float, step: float) -> float:
    """Return the tokens a step that a decode speed-up x needs where a step costs `step` plain ones."""
    return x * step


def other_time_growth(g: float, f: float, x: float) -> float:
    """Return h of 1/G = (1 - f) h + f/x: the growth of all time but decode that explains G."""
    return (1.0 / g - f / x) / (1.0 - f)


def uncached_share_ratio(computed_ratio: float, total_ratio: float) -> float:
    """Return the uncached share of all tokens, speculative over baseline, that two throughput ratios imply.

    Computed throughput is total throughput times the share of tokens that were computed, so their ratios
    differ only where the two arms had different shares: with equal work and equal hit rates the result is
    1.
    """
    return computed_ratio / total_ratio


def _check_probability(name: str, value: float) -> None:
    if not 0.0 <= value <= 1.0:
        message = f"{name} is {value}; it is a share: 0 to 1"
        raise ValueError(message)
