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

from analysis.leastsquares import Solution, solve
from analysis.multiplicity import critical_value
from analysis.pairs import log_metric
from analysis.rows import Ratio
from jobs.result import MEASURED, TREATMENT

CONFIDENCE = 0.95


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

    @property
    def ratio(self) -> Ratio:
        """The same as a ratio to the baseline."""
        return Ratio.of_log(self.estimate, self.half_width, pairs=self.pairs)


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """The arms that are compared with one baseline."""

    arms: tuple[str, ...]
    """Digests."""
    shares: np.ndarray
    """Covariance of their contrasts over the variance of a single cell (arms x arms)."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LevelFit:
    """All contrasts of one objective at one level, and the residuals they were judged by."""

    contrasts: Mapping[str, Contrast] = field(default_factory=dict)
    """By arm digest."""
    families: Mapping[str, Family] = field(default_factory=dict)
    """By pair key: what the arms of one baseline have in common."""
    variance: float | None = None
    """Pooled residual variance of ln y of a cell; None where no arm was measured in two strata."""
    df: int = 0
    """Its degrees of freedom."""
    residuals: np.ndarray = field(default_factory=lambda: np.zeros(0))
    """Of every cell that was given, in their order; NaN where it was left out."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LevelCells:
    """The cells of one level as arrays: all that a fit needs beside the figures."""

    measured: np.ndarray
    """Whether a cell's figures count."""
    pairs: tuple[str, ...]
    """Pair keys."""
    pair: np.ndarray
    """Number of each cell's pair key."""
    stratum: np.ndarray
    """Number of its block and segment."""
    names: tuple[str, ...]
    """Arms that are no baselines."""
    arm: np.ndarray
    """Number of its arm among `names`; -1 for a baseline."""


def level_cells(cells: pd.DataFrame) -> LevelCells:
    """Return the cells of one load level (rows of `cells_frame`) as arrays."""
    pair, pairs = pd.factorize(cells["pair"].astype(str).to_numpy(dtype=object), sort=True)
    places = pd.MultiIndex.from_arrays([cells["block"], cells["segment"]])
    treated = (cells["role"] == TREATMENT).to_numpy(dtype=bool)
    arms = cells["arm"].astype(str).to_numpy(dtype=object)
    names = sorted(set(arms[treated]))
    number = {name: place for place, name in enumerate(names)}
    arm = np.array([number[name] if own else -1 for name, own in zip(arms, treated, strict=True)], dtype=int)
    return LevelCells(
        measured=(cells["outcome"] == MEASURED).to_numpy(dtype=bool),
        pairs=tuple(str(name) for name in pairs),
        pair=pair,
        stratum=pd.factorize(places)[0],
        names=tuple(names),
        arm=arm,
    )


def fit_level(cells: pd.DataFrame, objective: str) -> LevelFit:
    """Fit the measured cells of one load level.

    Args:
        cells: rows of `cells_frame`, of one load level.
        objective: a name in `OBJECTIVES`.
    """
    return fit_values(cells, log_metric(cells, objective).to_numpy(dtype=float))


def fit_values(cells: pd.DataFrame, y: np.ndarray) -> LevelFit:
    """Fit any figure of the measured cells of one load level.

    Args:
        cells: rows of `cells_frame`, of one load level.
        y: the figure of each cell, usually a log; a cell where it is NaN is left out.
    """
    return fit_figures(level_cells(cells), np.asarray(y, dtype=float)[:, None])[0]


def fit_figures(cells: LevelCells, y: np.ndarray) -> list[LevelFit]:
    """Fit several figures of the same cells (cells x figures); those known of the same cells go together."""
    known = np.isfinite(y) & cells.measured[:, None]
    found: list[LevelFit] = [LevelFit()] * y.shape[1]
    patterns: dict[bytes, list[int]] = {}
    for column in range(y.shape[1]):
        patterns.setdefault(known[:, column].tobytes(), []).append(column)
    for columns in patterns.values():
        fits = _fit(cells, known[:, columns[0]], y[:, columns])
        for column, fit in zip(columns, fits, strict=True):
            found[column] = fit
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """The solution of one pair key, and where its cells are."""

    pair: str
    names: tuple[str, ...]
    rows: np.ndarray
    solution: Solution
    correlation: float


def _fit(cells: LevelCells, known: np.ndarray, y: np.ndarray) -> list[LevelFit]:
    parts = _parts(cells, known, y)
    df = sum(part.solution.df for part in parts)
    repeats = sum(int(part.solution.pairs.sum()) - len(part.names) for part in parts)
    residuals = np.full(y.shape, np.nan)
    for part in parts:
        used = part.solution.used
        residuals[part.rows[used]] = part.solution.residuals[used]
    variances: list[float | None] = [None] * y.shape[1]
    if df > 0 and repeats > 0:
        variances = [float(value) / df for value in np.nansum(residuals**2, axis=0)]
    families = {part.pair: Family(arms=part.names, shares=part.solution.shares) for part in parts}
    return [
        LevelFit(
            contrasts=_contrasts(parts, column, variance, df),
            families=families,
            variance=variance,
            df=df,
            residuals=residuals[:, column],
        )
        for column, variance in enumerate(variances)
    ]


def _parts(cells: LevelCells, known: np.ndarray, y: np.ndarray) -> list[_Part]:
    parts = []
    for number, pair in enumerate(cells.pairs):
        rows = np.flatnonzero(known & (cells.pair == number))
        beside = np.isin(cells.stratum[rows], cells.stratum[rows[cells.arm[rows] < 0]])
        rows = rows[beside]  # without a baseline in its stratum a cell says nothing about a ratio
        own, arm = np.unique(cells.arm[rows], return_inverse=True)
        solution = solve(cells.stratum[rows], arm - int((own < 0).any()), y[rows])
        if solution is not None:
            names = tuple(cells.names[place] for place in own if place >= 0)
            correlation = mean_correlation(solution.shares)
            parts.append(_Part(pair=pair, names=names, rows=rows, solution=solution, correlation=correlation))
    return parts


def _contrasts(parts: list[_Part], column: int, variance: float | None, df: int) -> dict[str, Contrast]:
    found = {}
    for part in parts:
        solution, family = part.solution, len(part.names)
        critical = None
        if variance is not None and family:
            critical = critical_value(family, df, round(part.correlation, 6), CONFIDENCE)
        for place, arm in enumerate(part.names):
            factor = float(solution.shares[place, place])
            found[arm] = Contrast(
                estimate=float(solution.estimates[place, column]),
                factor=factor,
                pairs=int(solution.pairs[place]),
                family=family,
                correlation=part.correlation,
                error=None if variance is None else float(np.sqrt(variance * factor)),
                critical=critical,
            )
    return found


def mean_correlation(covariance: np.ndarray) -> float:
    """Return the mean correlation of a covariance matrix; 0 for fewer than two."""
    size = covariance.shape[0]
    if size < 2:
        return 0.0
    scale = np.sqrt(np.diag(covariance))
    correlations = covariance / np.outer(scale, scale)
    return float((correlations.sum() - size) / (size * (size - 1)))
