"""The gates on forced acceptance: what was asked for came out, in the mean and at every draft position."""

import math
from collections.abc import Mapping, Sequence

from engines.acceptance_translation import Forced
from engines.counters import Counters
from jobs.result import Gate

ACCEPTANCE_ERRORS = 4.0
"""Standard errors by which a realised figure may miss the requested one by chance."""
ACCEPTANCE_SHARE = 0.02
"""Share by which it may miss besides: answers end within a draft, and engines pad the last one."""
MEAN = "synthetic_acceptance"
POSITIONS = "synthetic_positions"


def acceptance_gates(
    counters: Counters, metrics: Mapping[str, float | None], forced: Forced
) -> tuple[Gate, ...]:
    """Return the gates on realised against requested acceptance.

    Where drafts were shorter than K, less than what was asked for can come out: then only too much of it
    fails a gate. Positions are judged where the engine counts them.

    Args:
        counters: Engine counters, delta over the replay.
        metrics: Figures by `jobs/measurement.py`.
        forced: What the engine was told, and the rates that it draws with.
    """
    realised, drafts = metrics["spec/mal"], counters.drafts
    if not counters.knows("drafts", "accepted_tokens") or realised is None:
        message = f"not checked: the engine does not count drafts; {forced.mean_length:.3f} was asked for"
        return (Gate(name=MEAN, passed=None, message=message),)
    if not drafts:
        message = (
            f"a mean acceptance length of {forced.mean_length:.3f} was asked for and nothing was drafted"
        )
        return (Gate(name=MEAN, passed=False, message=message, value=realised),)
    draws = _draws(drafts, metrics, forced)
    mean = _mean(counters, realised, forced, draws)
    if not counters.accepted_per_position or not counters.knows("accepted_per_position"):
        return (mean,)
    return mean, _positions(counters, forced, draws)


def draft_length(counters: Counters) -> float | None:
    """Return the mean number of tokens in a draft; None where the engine does not count them."""
    if not counters.drafts or not counters.knows("drafts", "draft_tokens"):
        return None
    return counters.draft_tokens / counters.drafts


def shorter_drafts(counters: Counters, k: int) -> bool:
    """Whether drafts had visibly fewer than K tokens, so that forced rates cannot come out in full."""
    length = draft_length(counters)
    return length is not None and length < (1.0 - ACCEPTANCE_SHARE) * k


def acceptance_tolerance(rates: Sequence[float], draws: float) -> float:
    """Return the chance error allowed on a mean acceptance length: so many standard errors of the mean.

    The number X of accepted drafts has P(X >= i) = rates[i], so E[X] is their sum, and E[X^2] the sum of
    (2i - 1) rates[i].
    """
    mean = math.fsum(rates)
    square = math.fsum((2 * position - 1) * rate for position, rate in enumerate(rates, start=1))
    return ACCEPTANCE_ERRORS * math.sqrt(max(0.0, square - mean**2) / draws)


def position_tolerance(rate: float, draws: float) -> float:
    """Return the chance error allowed on the share accepted at one position.

    Bernstein's inequality: the normal term, and one that keeps a handful of accepted drafts at a position
    that expects next to none from looking like a fault.
    """
    if rate in {0.0, 1.0}:
        return 0.0
    normal = ACCEPTANCE_ERRORS * math.sqrt(rate * (1.0 - rate) / draws)
    return normal + ACCEPTANCE_ERRORS**2 / (3.0 * draws)


def _draws(drafts: int, metrics: Mapping[str, float | None], forced: Forced) -> float:
    """Return how many independent draws stand behind the drafts."""
    if not forced.one_draw_a_step:
        return float(drafts)
    return max(1.0, drafts / max(1.0, metrics.get("window/in_flight") or 1.0))


def _mean(counters: Counters, realised: float, forced: Forced, draws: float) -> Gate:
    requested = forced.mean_length
    limit = acceptance_tolerance(forced.rates, draws) + ACCEPTANCE_SHARE * requested
    message = (
        f"mean acceptance length is {realised:.3f} over {counters.drafts} drafts; {requested:.3f} was "
        f"asked for, allowed difference {limit:.3f}"
    )
    away = realised - requested
    passed = abs(away) <= limit
    if shorter_drafts(counters, len(forced.rates)):
        message += (
            f"; drafts had {draft_length(counters):.2f} of {len(forced.rates)} tokens: less is no fault"
        )
        passed = away <= limit
    return Gate(name=MEAN, passed=passed, message=message, value=away, limit=limit)


def _positions(counters: Counters, forced: Forced, draws: float) -> Gate:
    short = shorter_drafts(counters, len(forced.rates))
    counted = (*counters.accepted_per_position, *(0,) * len(forced.rates))
    worst: tuple[float, int, float, float] | None = None  # (share of the limit, position, away, limit)
    for position, (rate, accepted) in enumerate(zip(forced.rates, counted, strict=False), start=1):
        away = accepted / counters.drafts - rate
        limit = position_tolerance(rate, draws) + ACCEPTANCE_SHARE * rate
        share = _share(away if short else abs(away), limit)
        if worst is None or share > worst[0]:
            worst = (share, position, away, limit)
    assert worst is not None  # a drafter has at least one position
    share, position, away, limit = worst
    rate = forced.rates[position - 1]
    message = (
        f"position {position} of {len(forced.rates)}, the farthest off, was accepted in {rate + away:.4f} of "
        f"{counters.drafts} drafts; {rate:.4f} was asked for, allowed difference {limit:.4f}"
    )
    return Gate(name=POSITIONS, passed=share <= 1.0, message=message, value=away, limit=limit)


def _share(away: float, limit: float) -> float:
    """Return how much of its limit a difference takes; where nothing is allowed, rounding takes nothing."""
    if limit > 0.0:
        return away / limit
    return 0.0 if away < 1e-9 else math.inf
