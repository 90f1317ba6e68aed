"""Where a ratio passes 1 as the load grows: a bracket, a point, and an interval.

A level is a number above 0: the concurrency of a closed loop, or the arrival rate of an open one. The curve
need not be monotone, so every crossing is told; the one that answers "up to which concurrency does it pay" is
the first downward one. The point is interpolated in log ratio over the log of the level; linear
interpolations of the ratio and of the log ratio stand beside it as the spread of the method. The interval
comes from simulating the level means with their pooled covariance and looking for the first downward
crossing in each draw: the earliest and the latest that a curve through the drawn means may have, as
`interpolation.allowances` has it. So noise and the gaps between the levels are both in it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from analysis.interpolation import allowances, share_of_zero

DRAWS = 4000

CROSSES = "crosses"
ABOVE = "above"
BELOW = "below"
UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Crossing:
    """One place where the curve passes 1."""

    lower: float
    """Level before it."""
    upper: float
    """Level after it."""
    downward: bool
    log_log: float | None
    """Log ratio over log level; None where one side is a failure for lack of capacity."""
    log_linear: float | None
    """Log ratio over level."""
    linear: float | None
    """Ratio over level."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Crossover:
    """Where one curve crosses 1 within the levels tried."""

    kind: str
    """`crosses`; `above` or `below` (1 at every level tried); `unknown` (no ratios)."""
    crossings: tuple[Crossing, ...] = ()
    """In order of the levels."""
    low: float | None = None
    """Lower end of the 95 % interval of the first downward crossing; None: none, or below all levels."""
    high: float | None = None
    """Upper end; None: none, or above all levels."""
    low_censored: bool = False
    """The interval reaches below the lowest level tried."""
    high_censored: bool = False
    """The interval reaches above the highest level tried."""

    @property
    def main(self) -> Crossing | None:
        """The first downward crossing, up to which speculation pays."""
        return next((crossing for crossing in self.crossings if crossing.downward), None)


def find_crossings(levels: Sequence[float], log_ratios: Sequence[float]) -> tuple[Crossing, ...]:
    """Return every crossing of ratio 1 between adjacent levels.

    Args:
        levels: ascending.
        log_ratios: one a level; -inf stands for a failure for lack of capacity, which counts as a loss.
    """
    found = []
    for index in range(len(levels) - 1):
        (c1, c2), (r1, r2) = levels[index : index + 2], log_ratios[index : index + 2]
        if (r1 >= 0.0) == (r2 >= 0.0):
            continue
        found.append(
            Crossing(
                lower=c1,
                upper=c2,
                downward=r1 >= 0.0,
                log_log=_log_log(c1, c2, r1, r2),
                log_linear=_between(c1, c2, r1, r2),
                linear=_between(c1, c2, math.expm1(r1), math.expm1(r2)) if math.isfinite(r1 + r2) else None,
            )
        )
    return tuple(found)


def find_crossover(
    levels: Sequence[float],
    log_ratios: Sequence[float],
    covariance: np.ndarray | None = None,
    df: float | np.ndarray | None = None,
    *,
    seed: int = 0,
    draws: int = DRAWS,
) -> Crossover:
    """Return where the curve crosses 1, with an interval where a covariance of the level means is given.

    Args:
        levels: ascending.
        log_ratios: mean log ratio of each level; -inf for a failure for lack of capacity.
        covariance: of the level means (levels x levels), zero rows for failed levels.
        df: degrees of freedom behind it, one number or one a level: the draws are multivariate t.
        seed: of the simulation.
        draws: how many curves are simulated.
    """
    if not levels:
        return Crossover(kind=UNKNOWN)
    crossings = find_crossings(levels, log_ratios)
    kind = CROSSES if crossings else (ABOVE if log_ratios[0] >= 0.0 else BELOW)
    if covariance is None or df is None:
        return Crossover(kind=kind, crossings=crossings)
    values, means = np.asarray(levels, dtype=float), np.asarray(log_ratios, dtype=float)
    drawn = draw_means(means, covariance, df, draws, seed)
    bends = allowances(levels, log_ratios, covariance)
    early = first_falls(values, drawn, bends, late=False)
    late = first_falls(values, drawn, bends, late=True)
    low = float(np.quantile(early, 0.025, method="nearest"))
    high = float(np.quantile(late, 0.975, method="nearest"))
    low_censored, high_censored = low < levels[0], high > levels[-1]
    return Crossover(
        kind=kind,
        crossings=crossings,
        low=None if low_censored or low > levels[-1] else low,
        high=None if high_censored or high < levels[0] else high,
        low_censored=low_censored,
        high_censored=high_censored,
    )


def draw_means(
    means: np.ndarray, covariance: np.ndarray, df: float | np.ndarray, count: int, seed: int
) -> np.ndarray:
    """Return draws (count x levels) of the true means: multivariate t around those measured.

    With degrees of freedom of its own each level has a scale of its own, too: its variance is its own fit's.
    """
    generator = np.random.default_rng(seed)
    values, vectors = np.linalg.eigh(covariance)
    root = vectors * np.sqrt(np.clip(values, 0.0, None))
    normal = generator.standard_normal((count, len(means))) @ root.T
    scale = np.sqrt(generator.chisquare(df, size=(count, np.size(df))) / df)
    drawn: np.ndarray = means + normal / scale
    return drawn


def first_falls(levels: np.ndarray, draws: np.ndarray, bends: np.ndarray, *, late: bool) -> np.ndarray:
    """Return each draw's first downward crossing; without one 0 where it ends below 1, inf where above.

    Args:
        levels: ascending.
        draws: curves x levels; -inf for a level that failed for lack of capacity.
        bends: of each pair of adjacent levels, how far a curve may lie from the line between them: the
            `allowances` of their interpolation.
        late: whether it lies above the line, and so falls later, or below.
    """
    ends = np.where(draws[:, -1] < 0.0, 0.0, np.inf)
    pending = np.ones(len(draws), dtype=bool)
    logs = np.log(levels)
    for index in range(len(levels) - 1):
        before, after = draws[:, index], draws[:, index + 1]
        falls = pending & (before >= 0.0) & (after < 0.0)
        share = np.full(len(draws), float(late))  # beside a failure nothing is known but the two levels
        finite = falls & np.isfinite(after)
        share[finite] = share_of_zero(
            before[finite], after[finite], float(bends[index] if late else -bends[index])
        )
        ends[falls] = np.exp(logs[index] + share[falls] * (logs[index + 1] - logs[index]))
        pending &= ~falls
    return ends


def _between(c1: float, c2: float, y1: float, y2: float) -> float | None:
    return c1 + (c2 - c1) * y1 / (y1 - y2) if math.isfinite(y1 + y2) else None


def _log_log(c1: float, c2: float, r1: float, r2: float) -> float | None:
    point = _between(math.log(c1), math.log(c2), r1, r2)
    return None if point is None else math.exp(point)
