"""Every level of a sweep fitted for every objective, and the covariance of an arm's means over its levels."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from analysis.fit import LevelFit, fit_level
from analysis.objectives import OBJECTIVES
from analysis.pairs import STRATUM, aa_spreads

_UNIT = ["pair", "arm", "block", "segment", "role"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """The cells of one concurrency that were measured under the same conditions, with their fits."""

    concurrency: int
    oversubscribed: bool
    fits: Mapping[str, LevelFit]
    """By objective."""
    spread: Mapping[str, float | None]
    """A/A spread by objective, as a log ratio; None where no segment has both baselines."""


def fit_levels(cells: pd.DataFrame) -> list[Level]:
    """Fit all levels, ascending; oversubscribed cells are never pooled with the others."""
    return [
        Level(
            concurrency=concurrency,
            oversubscribed=oversubscribed,
            fits={name: fit_level(group, name) for name in OBJECTIVES},
            spread=aa_spreads(group),
        )
        for concurrency, oversubscribed, group in _groups(cells)
    ]


def level_covariance(levels: list[Level], objective: str, arm: str) -> tuple[np.ndarray, float] | None:
    """Return the covariance of an arm's means over these levels and the degrees of freedom behind it.

    Levels of one engine share its start, so their errors go together: variances are those of each level's
    own fit, correlations come from the residuals of all arms at both levels. None where a level has no
    replicate.
    """
    fits = [level.fits[objective] for level in levels]
    errors = [fit.contrasts[arm].error for fit in fits]
    if any(error is None for error in errors):
        return None
    scale = np.array(errors, dtype=float)
    correlation = np.eye(len(fits))
    for first in range(len(fits)):
        for second in range(first):
            value = _correlation(fits[first].residuals, fits[second].residuals)
            correlation[first, second] = correlation[second, first] = value
    values, vectors = np.linalg.eigh(
        correlation
    )  # pairwise estimates need not be positive semidefinite together
    correlation = (vectors * np.clip(values, 0.0, None)) @ vectors.T
    return correlation * np.outer(scale, scale), float(min(fit.df for fit in fits))


def _groups(cells: pd.DataFrame) -> Iterator[tuple[int, bool, pd.DataFrame]]:
    crowded = cells.groupby(STRATUM)["oversubscribed"].transform("any")
    for concurrency in sorted(set(cells["concurrency"])):
        for oversubscribed in (False, True):
            group = cells[(cells["concurrency"] == concurrency) & (crowded == oversubscribed)]
            if not group.empty:
                yield int(concurrency), oversubscribed, group


def _correlation(first: Mapping[tuple[str, ...], float], second: Mapping[tuple[str, ...], float]) -> float:
    keys = sorted(set(first) & set(second))
    x = np.array([first[key] for key in keys])
    y = np.array([second[key] for key in keys])
    size = float(np.sqrt(np.sum(x**2) * np.sum(y**2)))
    return float(np.sum(x * y) / size) if size > 0.0 else 0.0
