"""Arms against their baselines within blocks, for any figure: means, and how their errors go together.

The model is that of `analysis.fit` (ln y = stratum + arm + e, a stratum being one segment of one block and
one layout, e pooled over the arms of a level). Verdicts need one objective and a simultaneous interval; what
explains them needs other figures, differences between arms, and so the covariance of all arms together.
Intervals made from it are for one comparison each (Student's t), and are no verdicts.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pandas as pd
from scipy import stats
from scipy.linalg import block_diag

from analysis.fit import CONFIDENCE, LevelFit, fit_figures, level_cells
from analysis.formulas import ratio_of
from jobs.result import CONFIRMATION


@dataclass(frozen=True, slots=True, kw_only=True)
class Contrasts:
    """The arms of one level against their baselines, in one figure."""

    arms: tuple[str, ...]
    """Digests."""
    means: np.ndarray
    """Mean difference to the baseline, by arm: a log ratio where the figure is a log."""
    shares: np.ndarray
    """Covariance of the means over the variance of a single cell (arms x arms)."""
    pairs: tuple[int, ...]
    """Strata in which each arm was measured."""
    variance: float | None
    """Pooled residual variance of a cell; None where no arm was measured in two strata."""
    df: int
    """Its degrees of freedom."""

    @property
    def covariance(self) -> np.ndarray | None:
        """Covariance of the means; None without a replicate."""
        return None if self.variance is None else self.shares * self.variance

    def has(self, arm: str) -> bool:
        """Whether the arm was measured beside a baseline."""
        return arm in self.arms

    def mean(self, arm: str) -> float:
        """Return an arm's mean difference; NaN where it has none."""
        return float(self.means[self.arms.index(arm)]) if arm in self.arms else float("nan")

    def of(self, arms: Sequence[str]) -> "Contrasts":
        """Return the same for some arms, in the order given; every one has to be among them."""
        places = [self.arms.index(arm) for arm in arms]
        return Contrasts(
            arms=tuple(arms),
            means=self.means[places],
            shares=self.shares[np.ix_(places, places)],
            pairs=tuple(self.pairs[place] for place in places),
            variance=self.variance,
            df=self.df,
        )

    def interval(self, weights: Mapping[str, float]) -> tuple[float, float, float]:
        """Return a weighted sum of the means with its 95 % interval; NaN ends without a replicate."""
        vector = np.array([weights.get(arm, 0.0) for arm in self.arms])
        value = float(vector @ self.means)
        if self.variance is None:
            return value, float("nan"), float("nan")
        half = t_quantile(self.df) * float(np.sqrt(max(0.0, vector @ self.shares @ vector) * self.variance))
        return value, value - half, value + half

    def ratio(self, arm: str) -> tuple[float, float, float]:
        """Return e^mean of an arm with its 95 % interval; all NaN where it has none."""
        if arm not in self.arms:
            return (float("nan"),) * 3
        low_high = self.interval({arm: 1.0})
        return tuple(ratio_of(value) for value in low_high)  # type: ignore[return-value]  # three in, three out

    def draws(self, count: int, seed: int) -> np.ndarray | None:
        """Return multivariate t draws of the means (count x arms); None without a replicate."""
        covariance = self.covariance
        if covariance is None:
            return None
        generator = np.random.default_rng(seed)
        values, vectors = np.linalg.eigh(covariance)
        root = vectors * np.sqrt(np.clip(values, 0.0, None))
        normal = generator.standard_normal((count, len(self.arms))) @ root.T
        scale = np.sqrt(generator.chisquare(self.df, size=(count, 1)) / self.df)
        drawn: np.ndarray = self.means + normal / scale
        return drawn


@lru_cache(maxsize=1024)
def t_quantile(df: float) -> float:
    """Return Student's two-sided 95 % quantile."""
    return float(stats.t.ppf((1.0 + CONFIDENCE) / 2.0, df))


def counted(cells: pd.DataFrame) -> pd.DataFrame:
    """Return the cells that an analysis counts: planned and searched ones, none that confirms a winner."""
    return cells[cells["kind"] != CONFIRMATION].reset_index(drop=True)


def log_figure(cells: pd.DataFrame, metric: str) -> np.ndarray:
    """Return the natural log of a metric; NaN where it is absent or not positive."""
    values = cells[metric].to_numpy(dtype=float) if metric in cells else np.full(len(cells), np.nan)
    logs: np.ndarray = np.log(values, out=np.full(len(values), np.nan), where=values > 0.0)
    return logs


def contrasts(
    cells: pd.DataFrame, figures: Mapping[str, np.ndarray], *, causes: bool = False
) -> dict[str, Contrasts]:
    """Return the arms of one level against their baselines, by figure.

    Args:
        cells: rows of `cells_frame`, of one load level and condition.
        figures: name -> the figure of each cell, usually a log; cells where it is NaN are left out.
        causes: whether counterfactual arms are among the arms; otherwise the others stand as if these had not
            been run, as their noise says nothing about arms that could be served.
    """
    values = np.column_stack(list(figures.values()))
    if not causes:
        values = np.where((cells["counterfactual"] != "").to_numpy(dtype=bool)[:, None], np.nan, values)
    fits = fit_figures(level_cells(cells), values)
    return {name: _joint(fit) for name, fit in zip(figures, fits, strict=True)}


def _joint(fit: LevelFit) -> Contrasts:
    arms = [arm for family in fit.families.values() for arm in family.arms]
    own = [fit.contrasts[arm] for arm in arms]
    return Contrasts(
        arms=tuple(arms),
        means=np.array([contrast.estimate for contrast in own]),
        shares=block_diag(*(family.shares for family in fit.families.values())) if arms else np.zeros((0, 0)),
        pairs=tuple(contrast.pairs for contrast in own),
        variance=fit.variance,
        df=fit.df,
    )
