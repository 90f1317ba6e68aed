"""Every level of a sweep fitted for every objective, and the covariance of an arm's means over its levels."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from analysis.fit import LevelFit, fit_level
from analysis.objectives import OBJECTIVES
from analysis.pairs import STRATUM, aa_spreads

_UNIT = ["pair", "arm", "block", "segment", "role"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """The cells of one load level that were measured under the same conditions, with their fits."""

    value: float
    """The level's number on the sweep's axis."""
    oversubscribed: bool
    fits: Mapping[str, LevelFit]
    """By objective."""
    spread: Mapping[str, float | None]
    """A/A spread by objective, as a log ratio; None where no segment has both baselines."""


def fit_levels(cells: pd.DataFrame) -> list[Level]:
    """Fit all levels, ascending; oversubscribed cells are never pooled with the others."""
    return [
        Level(
            value=value,
            oversubscribed=oversubscribed,
            fits={name: fit_level(group, name) for name in OBJECTIVES},
            spread=aa_spreads(group),
        )
        for value, oversubscribed, group in _groups(cells)
    ]


def level_covariance(levels: list[Level], objective: str, arm: str) -> tuple[np.ndarray, float] | None:
    """Return the covariance of an arm's means over these levels, and the degrees of freedom behind it.

    Variances are those of each level's own fit; a level without a replicate borrows the mean variance of the
    others. Levels of one engine share its start, so their errors go together: one correlation, common to all
    pairs of levels, comes from the residuals of all arms. None where no level has a replicate.
    """
    fits = [level.fits[objective] for level in levels]
    known = [(fit.variance, fit.df) for fit in fits if fit.variance is not None]
    if not known:
        return None
    pooled = sum(variance * df for variance, df in known) / sum(df for _, df in known)
    variances = [pooled if fit.variance is None else fit.variance for fit in fits]
    factors = [fit.contrasts[arm].factor for fit in fits]
    scale = np.sqrt(np.array(variances) * np.array(factors))
    correlation = np.full((len(fits), len(fits)), common_correlation([fit.residuals for fit in fits]))
    np.fill_diagonal(correlation, 1.0)
    return correlation * np.outer(scale, scale), float(min(df for _, df in known))


def common_correlation(levels: Sequence[Mapping[tuple[str, ...], float]]) -> float:
    """Return the correlation, 0 to 1, of residuals of the same run at any two levels.

    One number over all pairs of levels: the few residuals of a sweep would make one a pair mostly noise.
    A shared start cannot make levels go against each other, so a negative estimate is taken as 0.
    """
    products = sizes = 0.0
    for first, second in itertools.combinations(levels, 2):
        keys = sorted(set(first) & set(second))
        x, y = np.array([first[key] for key in keys]), np.array([second[key] for key in keys])
        size = float(np.sqrt(np.sum(x**2) * np.sum(y**2)))
        if size > 0.0:
            weight = len(keys) / size
            products += weight * float(np.sum(x * y))
            sizes += weight * size
    return min(1.0, max(0.0, products / sizes)) if sizes > 0.0 else 0.0


def _groups(cells: pd.DataFrame) -> Iterator[tuple[float, bool, pd.DataFrame]]:
    crowded = cells.groupby(STRATUM)["oversubscribed"].transform("any")
    for value in sorted(set(cells["level"])):
        for oversubscribed in (False, True):
            group = cells[(cells["level"] == value) & (crowded == oversubscribed)]
            if not group.empty:
                yield float(value), oversubscribed, group
