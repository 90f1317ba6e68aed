"""One load level: log metric on arm and block effects, residuals pooled over the arms.

    ln y = stratum + arm + e

A stratum is one segment of one block and one layout, so that every contrast is made on the same devices in
the same stretch of time; the baseline is an arm that is measured twice in it, opening and closing. With
every arm in every stratum the contrast of an arm is the mean of its log ratios to the geometric mean of the
two baselines. The variance of e is pooled over all arms and layouts of the level.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from analysis.multiplicity import critical_value
from analysis.pairs import log_metric
from jobs.result import MEASURED, TREATMENT

CONFIDENCE = 0.95
_KEY = ("pair", "arm", "block", "segment", "role")


@dataclass(frozen=True, slots=True, kw_only=True)
class Contrast:
    """One arm against its baseline at one level."""

    estimate: float
    """Mean log ratio."""
    factor: float
    """Variance of the estimate over the variance of a single cell."""
    pairs: int
    """Strata in which the arm was measured."""
    family: int
    """Arms compared with the same baseline."""
    correlation: float
    """Mean correlation of the family's contrasts."""
    error: float | None
    """Standard error of the estimate; None where the level has no replicate."""
    critical: float | None
    """Critical value of the simultaneous 95 % interval of the family."""

    @property
    def half_width(self) -> float | None:
        """Half the simultaneous 95 % interval of the log ratio; None where the level has no replicate."""
        return None if self.error is None or self.critical is None else self.error * self.critical


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelFit:
    """All contrasts of one objective at one level, and the residuals they were judged by."""

    contrasts: Mapping[str, Contrast] = field(default_factory=dict)
    """By arm digest."""
    variance: float | None = None
    """Pooled residual variance of ln y of a cell; None where no arm was measured in two strata."""
    df: int = 0
    """Its degrees of freedom."""
    residuals: Mapping[tuple[str, ...], float] = field(default_factory=dict)
    """By (pair, arm, block, segment, role)."""


def fit_level(cells: pd.DataFrame, objective: str) -> LevelFit:
    """Fit the measured cells of one load level.

    Args:
        cells: rows of `cells_frame`, of one load level.
        objective: a name in `OBJECTIVES`.
    """
    y = log_metric(cells, objective).to_numpy(dtype=float)
    usable = (cells["outcome"] == MEASURED).to_numpy(dtype=bool) & np.isfinite(y)
    keys = [
        (str(pair), str(arm), str(block), str(segment), str(role))
        for pair, arm, block, segment, role in zip(*(cells[name].tolist() for name in _KEY), strict=True)
    ]
    groups: dict[str, list[int]] = {}
    for row in np.flatnonzero(usable):
        groups.setdefault(keys[row][0], []).append(int(row))
    fits = (_fit_pair([keys[row] for row in groups[pair]], y[groups[pair]]) for pair in sorted(groups))
    parts = [part for part in fits if part is not None]
    squares = sum(float(np.sum(part.residuals**2)) for part in parts)
    df = sum(part.df for part in parts)
    repeats = sum(sum(part.pairs) - len(part.arms) for part in parts)
    variance = squares / df if df > 0 and repeats > 0 else None
    contrasts = {}
    for part in parts:
        for arm, estimate, factor, pairs in zip(
            part.arms, part.estimates, part.factors, part.pairs, strict=True
        ):
            contrasts[arm] = Contrast(
                estimate=estimate,
                factor=factor,
                pairs=pairs,
                family=len(part.arms),
                correlation=part.correlation,
                error=None if variance is None else float(np.sqrt(variance * factor)),
                critical=None
                if variance is None
                else critical_value(len(part.arms), df, round(part.correlation, 6), CONFIDENCE),
            )
    residuals = {
        key: float(value) for part in parts for key, value in zip(part.keys, part.residuals, strict=True)
    }
    return LevelFit(contrasts=contrasts, variance=variance, df=df, residuals=residuals)


@dataclass(frozen=True, slots=True, kw_only=True)
class _PairFit:
    """Least squares within one pair key."""

    arms: list[str]
    estimates: list[float]
    factors: list[float]
    pairs: list[int]
    correlation: float
    df: int
    residuals: np.ndarray
    keys: list[tuple[str, ...]]


def _fit_pair(keys: list[tuple[str, ...]], y: np.ndarray) -> _PairFit | None:
    with_baseline = {key[2:4] for key in keys if key[4] != TREATMENT}
    kept = [
        row for row, key in enumerate(keys) if key[2:4] in with_baseline
    ]  # others say nothing about a ratio
    if not kept:
        return None
    keys, y = [keys[row] for row in kept], y[kept]
    strata = {stratum: column for column, stratum in enumerate(sorted(with_baseline))}
    arms = {arm: column for column, arm in enumerate(sorted({key[1] for key in keys if key[4] == TREATMENT}))}
    design = np.zeros((len(keys), len(strata) + len(arms)))
    for row, (_, arm, block, segment, role) in enumerate(keys):
        design[row, strata[block, segment]] = 1.0
        if role == TREATMENT:
            design[row, len(strata) + arms[arm]] = 1.0
    solution, _, rank, _ = np.linalg.lstsq(design, y)
    assert rank == design.shape[1], "every stratum has a baseline, so all effects are estimable"
    covariance = np.linalg.inv(design.T @ design)[len(strata) :, len(strata) :]
    return _PairFit(
        arms=list(arms),
        estimates=[float(value) for value in solution[len(strata) :]],
        factors=[float(value) for value in np.diag(covariance)],
        pairs=[len({key[2:4] for key in keys if key[1] == arm and key[4] == TREATMENT}) for arm in arms],
        correlation=_mean_correlation(covariance),
        df=len(keys) - int(rank),
        residuals=y - design @ solution,
        keys=keys,
    )


def _mean_correlation(covariance: np.ndarray) -> float:
    size = covariance.shape[0]
    if size < 2:
        return 0.0
    scale = np.sqrt(np.diag(covariance))
    correlations = covariance / np.outer(scale, scale)
    return float((correlations.sum() - size) / (size * (size - 1)))
