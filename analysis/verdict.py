"""Does an arm win or lose at a level: one rule, on the interval of its ratio.

With t the larger of the practical threshold and the A/A spread, and the simultaneous 95 % interval of the
ratio: wholly above 1 + t wins, wholly below 1/(1 + t) loses, wholly between shows that there is no
difference, anything else is undecided. The sign-flip p is printed beside it and never decides.
"""

import bisect
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from analysis.fit import CONFIDENCE, Contrast, LevelFit
from analysis.multiplicity import critical_value
from jobs.nouns import counted

WINS = "wins"
LOSES = "loses"
NO_DIFFERENCE = "no difference"
UNDECIDED = "undecided"
INVALID = "invalid"
NO_VERDICT = "no verdict"
VERDICTS = (WINS, LOSES, NO_DIFFERENCE, UNDECIDED, INVALID, NO_VERDICT)

MAX_BLOCKS = 200
"""More blocks than this are not worth forecasting."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What can be said about one arm at one level, and why."""

    word: str
    """One of `VERDICTS`."""
    reason: str
    """For people; of an undecided one, the blocks it would take."""
    threshold: float
    """t: ratios within 1/(1 + t) and 1 + t count as no difference, as a share."""
    more_blocks: int | None = None
    """Of an undecided one: further blocks that would decide; None if unknown or too many."""


def threshold_of(practical: float, spread: float | None) -> float:
    """Return t, the larger of the practical threshold and the A/A spread (a log ratio), as a share."""
    return practical if spread is None else max(practical, math.expm1(spread))


def decide(
    contrast: Contrast,
    fit: LevelFit,
    *,
    practical: float,
    spread: float | None,
    higher_is_better: bool = True,
    unit: str = "block",
) -> Verdict:
    """Return the verdict on one contrast.

    Args:
        contrast: of the arm, out of `fit`.
        fit: the level's fit, for what further blocks would bring.
        practical: threshold below which a difference does not matter, as a share.
        spread: A/A spread of the level as a log ratio; None where no segment had two baselines.
        higher_is_better: whether a ratio above 1 is a gain (a throughput) or a loss (a latency).
        unit: what a replicate is called in the reason.
    """
    threshold = threshold_of(practical, spread)
    told = _told(threshold, practical)
    half = contrast.half_width
    if half is None:
        reason = (
            f"no interval: no arm of this level was measured in two {unit}s, so its noise is unknown; "
            f"at least one more {unit} is needed"
        )
        return Verdict(word=UNDECIDED, reason=reason, threshold=threshold)
    limit = math.log1p(threshold)
    side = _place(contrast.estimate, half, limit)
    if side is not None:
        gain = side if higher_is_better else -side
        word = {1: WINS, -1: LOSES, 0: NO_DIFFERENCE}[gain]
        where = {1: "above 1 + t", -1: "below 1/(1 + t)", 0: "between 1/(1 + t) and 1 + t"}[side]
        return Verdict(word=word, reason=f"interval lies {where}, {told}", threshold=threshold)
    more = blocks_needed(contrast, fit, limit)
    if more is None:
        effort = f"more than {MAX_BLOCKS} further {unit}s would be needed"
    else:
        effort = f"about {counted(more, f'more {unit}')} would decide if estimate and noise stayed"
    return Verdict(
        word=UNDECIDED,
        reason=f"interval reaches across a limit, {told}; {effort}",
        threshold=threshold,
        more_blocks=more,
    )


def blocks_needed(contrast: Contrast, fit: LevelFit, limit: float) -> int | None:
    """Return how many further blocks would put the interval on one side of the limits.

    Estimate and residual variance are taken to stay; the standard error falls with the root of the number
    of blocks, and degrees of freedom come as fast as so far. None where more than `MAX_BLOCKS` would be
    needed.
    """
    error = contrast.error
    if error is None:
        return None

    def decides(more: int) -> bool:
        growth = (contrast.pairs + more) / contrast.pairs
        df = max(1, round(fit.df * growth))
        critical = critical_value(contrast.family, df, round(contrast.correlation, 6), CONFIDENCE)
        return _place(contrast.estimate, critical * error / math.sqrt(growth), limit) is not None

    if not decides(MAX_BLOCKS):
        return None
    # the interval shrinks around its estimate, so once it decides it goes on deciding
    return 1 + bisect.bisect_left(range(1, MAX_BLOCKS + 1), 1, key=decides)


def sign_flip_p(log_ratios: Sequence[float]) -> float | None:
    """Return the two-sided p of the sign-flip test of mean zero: exact, over all 2^n signs up to n = 12.

    Beyond that over 4096 seeded random flips, the observed one included. None without values. It cannot
    fall below 2/2^n: with five blocks never below 0.0625, which is why it decides nothing.
    """
    values = np.asarray([value for value in log_ratios if math.isfinite(value)], dtype=float)
    if values.size == 0:
        return None
    if values.size <= 12:
        signs = np.array(list(itertools.product((-1.0, 1.0), repeat=values.size)))
    else:
        drawn = np.random.default_rng(0).choice((-1.0, 1.0), size=(4095, values.size))
        signs = np.vstack([np.ones(values.size), drawn])
    sums = np.abs(signs @ values)
    return float(np.mean(sums >= abs(values.sum()) * (1.0 - 1e-12)))


def _place(estimate: float, half: float, limit: float) -> int | None:
    """Return 1 if the interval lies above the limits, -1 below, 0 between, None across one of them."""
    low, high = estimate - half, estimate + half
    if low > limit:
        return 1
    if high < -limit:
        return -1
    return 0 if low > -limit and high < limit else None


def _told(threshold: float, practical: float) -> str:
    source = "A/A spread of the baselines" if threshold > practical else "practical threshold"
    return f"t = {threshold:.1%} ({source})"
