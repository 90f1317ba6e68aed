"""Every level of a sweep fitted for every objective, and the covariance of an arm's means over its levels."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd

from analysis.contrasts import counted
from analysis.fit import LevelFit, fit_figures, level_cells
from analysis.frame import Sweep
from analysis.objectives import OBJECTIVES
from analysis.pairs import STRATUM, baselines, log_metrics, spreads_of

RUN = ["pair", "arm", "block", "segment", "role"]
"""What the levels of one engine run have in common."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Level:
    """The cells of one load level that were measured under the same conditions, with their fits."""

    value: float
    """The level's number on the sweep's axis."""
    oversubscribed: bool
    fits: Mapping[str, LevelFit]
    """By objective."""
    spread: Mapping[str, float | None]
    """A/A spread by objective, as a log ratio; None where no segment has both baselines."""
    runs: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=int))
    """Number of the engine run of each cell, in the order of the fits' residuals; the same at all levels."""
    arms: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=object))
    """Digest of each cell's arm, in the same order; empty where all runs are at all levels."""


def fit_levels(cells: pd.DataFrame, sides: pd.DataFrame | None = None) -> list[Level]:
    """Fit all levels, ascending; oversubscribed cells are never pooled with the others.

    `sides` are the cells' `baselines`, where they are known already.

    Counterfactual arms get their contrasts from a fit of their own, beside which the others stand as if they
    had not been run: their noise and their number say nothing about arms that could be served.
    """
    if cells.empty:
        return []
    runs = cells.groupby(RUN, sort=False).ngroup().to_numpy()
    arms = cells["arm"].to_numpy(dtype=object)
    logs = log_metrics(cells).to_numpy(dtype=float)
    spreads = _spreads(cells, baselines(cells) if sides is None else sides)
    found = []
    for value, oversubscribed, places in _places(cells):
        group = cells.iloc[places]
        fits = _fits(group, logs[places])
        found.append(
            Level(
                value=value,
                oversubscribed=oversubscribed,
                fits=dict(zip(OBJECTIVES, fits, strict=True)),
                spread=spreads[value, oversubscribed],
                runs=runs[places],
                arms=arms[places],
            )
        )
    return found


def planned_levels(sweep: Sweep) -> list[Level]:
    """Return the fits of all cells of a sweep that analyses count; worked out once for all that ask."""
    return sweep.once(_planned_levels)


def _planned_levels(sweep: Sweep) -> list[Level]:
    return fit_levels(counted(sweep.cells), planned_sides(sweep))


def planned_sides(sweep: Sweep) -> pd.DataFrame:
    """Return the `baselines` of all cells that analyses count; worked out once for all that ask."""
    return sweep.once(_planned_sides)


def _planned_sides(sweep: Sweep) -> pd.DataFrame:
    return baselines(counted(sweep.cells))


def _spreads(cells: pd.DataFrame, sides: pd.DataFrame) -> dict[tuple[float, bool], dict[str, float | None]]:
    """Return the A/A spreads of each level and condition: of whole strata, so one table tells all."""
    known = {
        (float(str(level)), bool(crowded)): spreads_of(own)
        for (level, crowded), own in _judged_alike(cells, sides).groupby(["level", "crowded"])
    }
    nothing = dict.fromkeys(OBJECTIVES)
    return {(value, crowded): known.get((value, crowded), nothing) for value, crowded, _ in _places(cells)}


def _judged_alike(cells: pd.DataFrame, sides: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of `baselines`, each with whether any cell of its stratum shared a core."""
    crowded = cells.groupby(STRATUM)["oversubscribed"].any().rename("crowded").astype(bool)
    return sides.merge(crowded.reset_index(), on=STRATUM, how="left", validate="one_to_one")


def _fits(group: pd.DataFrame, logs: np.ndarray) -> list[LevelFit]:
    cells = level_cells(group)
    cause = (group["counterfactual"] != "").to_numpy(dtype=bool)
    if not cause.any():
        return fit_figures(cells, logs)
    alone = fit_figures(cells, np.where(cause[:, None], np.nan, logs))
    causes = set(group.loc[cause, "arm"])
    return [
        replace(
            fit,
            contrasts={**fit.contrasts, **{arm: own for arm, own in both.contrasts.items() if arm in causes}},
        )
        for fit, both in zip(alone, fit_figures(cells, logs), strict=True)
    ]


def conditions(cells: pd.DataFrame) -> Iterator[tuple[float, bool, pd.DataFrame]]:
    """Yield (level, oversubscribed, cells), ascending: cells under two conditions are never pooled.

    A cell counts as oversubscribed where any cell of its stratum is: half of its ratio would be.
    """
    for value, oversubscribed, places in _places(cells):
        yield value, oversubscribed, cells.iloc[places]


def level_covariance(
    levels: Sequence[Level], objective: str, arm: str
) -> tuple[np.ndarray, float | np.ndarray] | None:
    """Return the covariance of an arm's means over these levels, and the degrees of freedom behind it.

    Variances are those of each level's own fit; a level without a replicate borrows the mean variance of the
    others. Levels of one engine share its start, so their errors go together: one correlation, common to all
    pairs of levels, comes from the residuals of all arms, and counts for the share of the arm's runs that two
    levels have in common. The degrees of freedom are one a level where a search left levels with different
    numbers of blocks. None where no level has a replicate.
    """
    fits = [level.fits[objective] for level in levels]
    known = [(fit.variance, fit.df) for fit in fits if fit.variance is not None]
    if not known:
        return None
    together = sum(df for _, df in known)
    pooled = sum(variance * df for variance, df in known) / together
    variances = [pooled if fit.variance is None else fit.variance for fit in fits]
    factors = [fit.contrasts[arm].factor for fit in fits]
    scale = np.sqrt(np.array(variances) * np.array(factors))
    shared = common_correlation(residuals_by_run(levels, objective))
    correlation = shared * _overlaps(levels, objective, arm)
    np.fill_diagonal(correlation, 1.0)
    dfs = np.array([together if fit.variance is None else fit.df for fit in fits], dtype=float)
    alike = bool((dfs == dfs[0]).all())
    return correlation * np.outer(scale, scale), float(dfs[0]) if alike else dfs


def _overlaps(levels: Sequence[Level], objective: str, arm: str) -> np.ndarray:
    """Return the runs of an arm that two levels have in common, over the geometric mean of their numbers."""
    own = []
    for level in levels:
        counted = np.isfinite(level.fits[objective].residuals)
        if len(level.arms):
            counted &= level.arms == arm
        own.append(level.runs[counted])
    shares = np.ones((len(levels), len(levels)))
    for one, first in enumerate(own):
        for other, second in enumerate(own[:one]):
            size = max(1.0, float(len(first) * len(second)) ** 0.5)
            shares[one, other] = shares[other, one] = len(np.intersect1d(first, second)) / size
    return shares


def residuals_by_run(levels: Sequence[Level], objective: str) -> np.ndarray:
    """Return the residuals of an objective, levels x engine runs; NaN where a run has none at a level."""
    width = 1 + max((int(level.runs.max(initial=-1)) for level in levels), default=-1)
    table = np.full((len(levels), width), np.nan)
    for row, level in enumerate(levels):
        residuals = level.fits[objective].residuals
        table[row, level.runs[: len(residuals)]] = residuals
    return table


def common_correlation(residuals: np.ndarray) -> float:
    """Return the correlation, 0 to 1, of residuals of the same run at any two levels (levels x runs).

    One number over all pairs of levels, weighted by the runs they share: the few residuals of a sweep would
    make one a pair mostly noise. A shared start cannot make levels go against each other, so a negative
    estimate is taken as 0.
    """
    known = np.isfinite(residuals)
    values = np.where(known, residuals, 0.0)
    squares = (values**2) @ known.T.astype(float)
    sizes = np.sqrt(squares * squares.T)
    products = values @ values.T
    counts = known.astype(float) @ known.T.astype(float)
    first, second = np.triu_indices(len(residuals), k=1)
    counted = sizes[first, second] > 0.0
    first, second = first[counted], second[counted]
    if not len(first):
        return 0.0
    weights = counts[first, second]
    mean = float(weights @ (products[first, second] / sizes[first, second]) / weights.sum())
    return min(1.0, max(0.0, mean))


def _places(cells: pd.DataFrame) -> Iterator[tuple[float, bool, np.ndarray]]:
    if cells.empty:
        return
    crowded = cells.groupby(STRATUM)["oversubscribed"].transform("any").to_numpy(dtype=bool)
    values = cells["level"].to_numpy(dtype=float)
    order = np.lexsort((crowded, values))
    changes = (np.diff(values[order]) != 0.0) | (np.diff(crowded[order].astype(int)) != 0)
    for part in np.split(order, np.flatnonzero(changes) + 1):
        yield float(values[part[0]]), bool(crowded[part[0]]), np.sort(part)
