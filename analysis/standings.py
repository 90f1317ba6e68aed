"""All arms of a load level against each other: layouts and baselines in one comparison.

A verdict compares an arm with the baseline of its own layout. What to serve with is chosen among all that
ran on the same devices, so here every arm of a slice is compared with every other, within blocks:

    y = stratum + arm + e

A stratum is one segment of one block. Arms that no block joins (another model, a slice of another size) are
never compared: each such group stands for itself. Intervals are for one comparison each (Student's t), and
no verdicts.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from analysis.contrasts import counted, t_quantile
from analysis.leastsquares import solve
from analysis.levels import conditions
from analysis.objectives import OBJECTIVES
from analysis.pairs import log_metric
from analysis.rows import Ratio
from jobs.result import MEASURED, TREATMENT


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Standing:
    """The arms of one level on slices of one size, compared in one figure."""

    level: float
    group: str
    """Layouts that ran together, and the model where that was swept."""
    devices: int
    """Devices of the slice."""
    oversubscribed: bool
    arms: tuple[str, ...]
    """Digests; the first is the reference."""
    means: np.ndarray
    """Log of each arm's figure over the reference's, signed so that more is better."""
    shares: np.ndarray
    """Covariance of the means over the variance of a cell (arms x arms)."""
    pairs: np.ndarray
    """Strata in which each arm was measured beside the reference."""
    variance: float | None
    """Of a cell; None where no arm was measured in two strata."""
    df: int

    def gap(self, arm: str, other: str) -> tuple[float, float | None]:
        """Return (log advantage of an arm over another, its standard error)."""
        first, second = self.arms.index(arm), self.arms.index(other)
        vector = np.zeros(len(self.arms))
        vector[first] += 1.0
        vector[second] -= 1.0
        value = float(vector @ self.means)
        if self.variance is None:
            return value, None
        return value, float(np.sqrt(max(0.0, vector @ self.shares @ vector) * self.variance))

    def ratio(self, arm: str, other: str) -> Ratio:
        """Return the advantage of an arm over another as a ratio, with the interval of this comparison."""
        value, error = self.gap(arm, other)
        pairs = int(min(self.pairs[self.arms.index(arm)], self.pairs[self.arms.index(other)]))
        half = None if error is None else t_quantile(self.df) * error
        return Ratio.of_log(value, half, pairs=pairs)

    def best(self, arms: tuple[str, ...]) -> str | None:
        """Return the best of some arms by estimate; None where none of them is here."""
        here = [arm for arm in self.arms if arm in arms]
        return max(here, key=lambda arm: float(self.means[self.arms.index(arm)]), default=None)


def standings(cells: pd.DataFrame, objective: str) -> list[Standing]:
    """Return a standing a group and level, ascending; none where no baseline was measured.

    Args:
        cells: `cells_frame` of a sweep.
        objective: a name in `OBJECTIVES`.
    """
    return list(_standings(cells, objective))


def _standings(cells: pd.DataFrame, objective: str) -> Iterator[Standing]:
    better = 1.0 if OBJECTIVES[objective].higher_is_better else -1.0
    planned = counted(cells)
    if planned.empty:
        return
    joined = _groups(planned)
    for level, crowded, group in conditions(planned):
        for name, own in group.groupby(joined.loc[group.index], sort=True):
            y = better * log_metric(own, objective).to_numpy(dtype=float)
            known = np.isfinite(y) & own["outcome"].eq(MEASURED).to_numpy(dtype=bool)
            found = _solved(own[known], y[known])
            if found is not None:
                arms, means, shares, pairs, variance, df = found
                yield Standing(
                    level=level,
                    group=str(name),
                    devices=int(own["devices"].max()),
                    oversubscribed=crowded,
                    arms=arms,
                    means=means,
                    shares=shares,
                    pairs=pairs,
                    variance=variance,
                    df=df,
                )


def _groups(cells: pd.DataFrame) -> pd.Series:
    """Return the name of each cell's group: blocks joined by the pairs that they measured."""
    blocks, pairs = pd.factorize(cells["block"])[0], pd.factorize(cells["pair"])[0]
    size = int(blocks.max()) + 1
    nodes = size + int(pairs.max()) + 1
    edges = coo_array((np.ones(len(cells)), (blocks, size + pairs)), shape=(nodes, nodes))
    number = connected_components(edges, directed=False)[1][blocks]
    names: dict[int, str] = {}
    for place in np.unique(number):
        own = cells[number == place]
        told = ", ".join(sorted(set(own["layout"])))
        if "factor:model" in own:
            told = f"{'/'.join(sorted(set(own['factor:model'].dropna().astype(str))))}: {told}"
        again = sum(name.partition(" #")[0] == told for name in names.values())
        names[int(place)] = f"{told} #{again + 1}" if again else told
    return pd.Series([names[int(place)] for place in number], index=cells.index)


def _solved(
    cells: pd.DataFrame, y: np.ndarray
) -> tuple[tuple[str, ...], np.ndarray, np.ndarray, np.ndarray, float | None, int] | None:
    """Compare every arm with the baseline that was measured in most strata."""
    strata = pd.factorize(pd.MultiIndex.from_arrays([cells["block"], cells["segment"]]))[0]
    baselines = cells["arm"][cells["role"] != TREATMENT]
    if baselines.empty:
        return None
    reference = str(baselines.value_counts(sort=True).index[0])
    beside = np.isin(strata, strata[(cells["arm"] == reference).to_numpy(dtype=bool)])
    names = sorted(set(cells["arm"][beside]) - {reference})
    number = {name: place for place, name in enumerate(names)} | {reference: -1}
    arms = cells["arm"][beside].map(number).to_numpy(dtype=int)
    solution = solve(strata[beside], arms, y[beside][:, None])
    if solution is None:
        return None
    size = len(names) + 1
    means, shares = np.zeros(size), np.zeros((size, size))
    means[1:], shares[1:, 1:] = solution.estimates[:, 0], solution.shares
    count = len(set(strata[beside]))
    repeated = solution.df > 0 and count > 1
    variance = float(np.sum(solution.residuals**2)) / solution.df if repeated else None
    pairs = np.concatenate([[count], solution.pairs])
    return (reference, *names), means, shares, pairs, variance, solution.df
