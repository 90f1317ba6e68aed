"""Least squares of one table of factors, and the contrasts that its cells can tell.

statsmodels fits, patsy codes the factors as deviations that sum to zero. Ours is only what unbalanced tables
need: which contrasts are estimable, and which levels have every combination measured.

A contrast is estimated within strata where that can be done. One that no stratum can tell (two models have
blocks of their own, and so have layouts with `design.share=layout`) is estimated between strata: strata count
as random then, with the variance of their means less what the cells' own noise gives them, and Student's t
has no more degrees of freedom than there are strata to compare.
"""

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import linalg, stats

from analysis.factors import FactorTable
from analysis.fit import CONFIDENCE

Point = tuple[str, ...]
"""One level of each factor."""
_TOLERANCE = 1e-8


class Estimate(NamedTuple):
    """A difference of logs and the ends of its 95 % interval; NaN for what is not known."""

    value: float
    low: float
    high: float
    between: bool = False
    """Whether it rests on a comparison of different strata."""


UNKNOWN = Estimate(math.nan, math.nan, math.nan)


@dataclass(frozen=True, slots=True, kw_only=True)
class Between:
    """The same table with strata as random effects, for what they cannot tell within."""

    model: Any
    """statsmodels' generalised least squares on independent columns of the factors."""
    kept: np.ndarray
    """Those columns."""
    space: np.ndarray
    """Orthonormal rows that span what it can tell (rank x columns)."""
    df: int
    """Strata less the groups of strata that share no combination; 0 or less: no interval."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FactorialFit:
    """ln y = stratum + factors + two-way interactions + e, fitted to one table."""

    table: FactorTable
    model: Any
    """statsmodels' results on the independent columns of the design."""
    kept: np.ndarray
    """Those columns."""
    space: np.ndarray
    """Orthonormal rows that span the contrasts which can be estimated (rank x columns)."""
    points: Mapping[Point, np.ndarray]
    """Combination, measured or not -> its row of the design, every stratum counted alike."""
    cells: Mapping[Point, int]
    """Measured cells of each combination that has any."""
    replicated: bool
    """Whether any combination was measured in two strata: without, the noise between blocks is unknown."""
    between: Between | None
    """None where all strata hang together, so that nothing has to be told between them."""

    @property
    def df(self) -> int:
        """Degrees of freedom of the residual variance."""
        return int(self.model.df_resid)

    def estimates(self, contrasts: Sequence[np.ndarray]) -> list[Estimate]:
        """Return each contrast, a weighting of rows of the design, with its interval for one comparison."""
        if not contrasts:
            return []
        rows = np.array(contrasts)
        wide = self.df > 0 and self.replicated
        within = _ends(self.model, rows[:, self.kept], self.df if wide else 0)
        inside = _spanned(rows, self.space)
        found = [Estimate(*ends) if known else UNKNOWN for ends, known in zip(within, inside, strict=True)]
        if self.between is None or all(inside):
            return found
        rows = rows[:, : self.between.space.shape[1]]
        outside = _ends(self.between.model, rows[:, self.between.kept], self.between.df if wide else 0)
        told = _spanned(rows, self.between.space)
        return [
            Estimate(*ends, between=True) if known and math.isnan(estimate.value) else estimate
            for estimate, ends, known in zip(found, outside, told, strict=True)
        ]

    def mean(self, levels: Mapping[str, Sequence[str]], fixed: Mapping[str, str]) -> np.ndarray:
        """Return the design's row for the plain mean over combinations of these levels, some fixed."""
        choices = [[fixed[name]] if name in fixed else levels[name] for name in self.table.factors]
        rows = np.array([self.points[point] for point in itertools.product(*choices)])
        return np.asarray(rows.mean(axis=0))


def fit_table(table: FactorTable) -> FactorialFit:
    """Fit a table of at least one cell; what is aliased is found out, never an error."""
    # They take seconds to import, and most users of the analysis have one layout.
    import patsy  # noqa: PLC0415
    from statsmodels.regression.linear_model import OLS  # noqa: PLC0415

    frame, factors = table.frame, table.factors
    levels = {name: table.levels(name) for name in factors}
    measured = list(zip(*(frame[name] for name in factors), strict=True))
    points = list(itertools.product(*levels.values()))
    varying = [f"C(f{place}, Sum)" for place, name in enumerate(factors) if len(levels[name]) > 1]
    terms = ["1", *varying, *(f"{a}:{b}" for a, b in itertools.combinations(varying, 2))]
    coded = patsy.dmatrix(" + ".join(terms), _columns(measured, levels))
    at = np.asarray(patsy.build_design_matrices([coded.design_info], _columns(points, levels))[0])
    names, strata = np.unique(frame["stratum"].to_numpy(dtype=str), return_inverse=True)
    # Centred, so that a combination's row has nothing of them: it is the mean over the strata.
    blocks = np.eye(len(names))[strata][:, 1:] - 1.0 / len(names)
    design = np.hstack([np.asarray(coded), blocks])
    at = np.hstack([at, np.zeros((len(at), blocks.shape[1]))])
    kept, space = _independent(design)
    y = frame["y"].to_numpy(dtype=float)
    # Without degrees of freedom there is no residual variance: estimates have no interval then.
    how = "nonrobust" if len(y) > len(kept) else "fixed scale"
    model = OLS(y, design[:, kept]).fit(cov_type=how)
    coding = np.asarray(coded)
    return FactorialFit(
        table=table,
        model=model,
        kept=kept,
        space=space,
        points=dict(zip(points, at, strict=True)),
        cells=Counter(measured),
        replicated=len(set(zip(measured, strata.tolist(), strict=True))) > len(set(measured)),
        between=_between(y, coding, strata, model, groups=coding.shape[1] + len(names) - len(kept)),
    )


def _between(
    y: np.ndarray, coding: np.ndarray, strata: np.ndarray, within: Any, *, groups: int
) -> Between | None:
    """Return the fit with random strata; None where those hang together.

    Args:
        y: logs.
        coding: columns of the factors.
        strata: number of the stratum, by cell.
        within: the fit with fixed strata.
        groups: groups of strata that share no combination, if the columns of the factors are independent.
    """
    from statsmodels.regression.linear_model import GLS, OLS  # noqa: PLC0415 - as in fit_table

    kept, space = _independent(coding)
    groups -= coding.shape[1] - len(kept)
    if groups < 2:
        return None
    sizes = np.bincount(strata)
    df = len(sizes) - groups
    noise = float(within.scale) if within.df_resid > 0 else 0.0
    means = np.bincount(strata, weights=OLS(y, coding[:, kept]).fit().resid) / sizes
    spread = max(0.0, float(np.sum(means**2)) / df - noise * float(np.mean(1.0 / sizes))) if df > 0 else 0.0
    together = strata[:, None] == strata[None, :]
    covariance = spread * together + max(noise, _TOLERANCE * spread, _TOLERANCE**2) * np.eye(len(y))
    model = GLS(y, coding[:, kept], sigma=covariance).fit(cov_type="fixed scale")
    return Between(model=model, kept=kept, space=space, df=df)


def complete_levels(
    measured: set[Point], levels: Mapping[str, Sequence[str]]
) -> tuple[dict[str, list[str]], dict[tuple[str, str], str]]:
    """Return levels of which every two-way combination was measured, and why the others are left out.

    The level that lacks the largest share of its combinations goes first; of equals, one of the last factor.

    Args:
        measured: combinations with a measured cell.
        levels: of each factor, in the order of the combinations.
    """
    factors = list(levels)
    kept = {name: list(values) for name, values in levels.items()}
    seen = {
        (first, second, point[first], point[second])
        for point in measured
        for first, second in itertools.permutations(range(len(factors)), 2)
    }
    gaps: dict[tuple[str, str], str] = {}
    while True:
        worst: tuple[float, int] = (0.0, 0)
        found: tuple[str, str, list[str]] | None = None
        for place, name in enumerate(factors):
            others = [
                (beside, level)
                for beside, second in enumerate(factors)
                if beside != place
                for level in kept[second]
            ]
            for level in kept[name]:
                lacking = [other for beside, other in others if (place, beside, level, other) not in seen]
                if lacking and (len(lacking) / len(others), place) >= worst:
                    worst = (len(lacking) / len(others), place)
                    found = (name, level, lacking)
        if found is None:
            return kept, gaps
        name, level, lacking = found
        kept[name].remove(level)
        gaps[name, level] = f"not estimated: {level} was not measured with {', '.join(lacking)}"


def _columns(points: Sequence[Point], levels: Mapping[str, Sequence[str]]) -> pd.DataFrame:
    """Return combinations as categories that patsy can code, under names that it can parse."""
    return pd.DataFrame(
        {
            f"f{place}": pd.Categorical([point[place] for point in points], list(levels[name]))
            for place, name in enumerate(levels)
        }
    )


def _independent(design: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return columns that depend on no others, and orthonormal rows that span what the design can tell."""
    _, triangle, order = linalg.qr(design, mode="economic", pivoting=True)
    diagonal = np.abs(np.diag(triangle))
    rank = int((diagonal > diagonal[0] * _TOLERANCE).sum())
    return np.sort(order[:rank]), np.linalg.svd(design, full_matrices=False)[2][:rank]


def _spanned(rows: np.ndarray, space: np.ndarray) -> list[bool]:
    """Return which contrasts lie in a space."""
    return [bool(miss < _TOLERANCE) for miss in np.abs(rows - rows @ space.T @ space).max(axis=1)]


def _ends(model: Any, rows: np.ndarray, df: int) -> Iterator[tuple[float, float, float]]:
    """Yield each contrast with the ends of its t interval; NaN ends without degrees of freedom."""
    test = model.t_test(rows)
    values = np.ravel(test.effect)  # of one contrast statsmodels makes a square
    half = np.full(len(values), np.nan)
    if df > 0:
        half = float(stats.t.ppf(0.5 + CONFIDENCE / 2.0, df)) * np.ravel(test.sd)
    for value, width in zip(values, half, strict=True):
        yield float(value), float(value - width), float(value + width)
