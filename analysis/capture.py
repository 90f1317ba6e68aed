"""What share of a ceiling a drafter captures: ln(its ratio) / ln(the ceiling's ratio)."""

import math

import numpy as np

from analysis.contrasts import Contrasts

DRAWS = 4000
Interval = tuple[float, float, float]
NONE: Interval = (math.nan, math.nan, math.nan)


def capture(fit: Contrasts, arm: str, ceiling: str, *, seed: int = 0) -> Interval:
    """Return the share of a measured ceiling, with its 95 % interval from joint draws of both.

    NaN where the ceiling itself does not pay; NaN ends where its gain is not told apart from none (the share
    is then unbounded), or without a replicate.
    """
    if not (fit.has(arm) and fit.has(ceiling)) or fit.mean(ceiling) <= 0.0:
        return NONE
    value = fit.mean(arm) / fit.mean(ceiling)
    both = fit.of([arm, ceiling])
    drawn = both.draws(DRAWS, seed)
    if drawn is None or fit.interval({ceiling: 1.0})[1] <= 0.0:
        return value, math.nan, math.nan
    low, high = np.quantile(drawn[:, 0] / drawn[:, 1], (0.025, 0.975))
    return value, float(low), float(high)


def computed_capture(arm: float, ceiling: float) -> Interval:
    """Return the share of a computed ceiling, both as ratios; no interval."""
    if not (arm > 0.0 and ceiling > 1.0):
        return NONE
    return math.log(arm) / math.log(ceiling), math.nan, math.nan
