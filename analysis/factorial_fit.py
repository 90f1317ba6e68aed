"""Least squares of one table of factors, and the contrasts that its cells can tell.

statsmodels fits, patsy codes the factors as deviations that sum to zero. Ours is only what unbalanced tables
need: which contrasts are estimable, and which levels have every combination measured.
"""

import itertools
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from analysis.factors import FactorTable
from analysis.fit import CONFIDENCE

Point = tuple[str, ...]
"""One level of each factor."""
Estimate = tuple[float, float, float]
"""A difference of logs and the ends of its 95 % interval; NaN for what is not known."""
UNKNOWN: Estimate = (math.nan, math.nan, math.nan)
_TOLERANCE = 1e-8


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

    @property
    def df(self) -> int:
        """Degrees of freedom of the residual variance."""
        return int(self.model.df_resid)

    def estimates(self, contrasts: Sequence[np.ndarray]) -> list[Estimate]:
        """Return each contrast, a weighting of rows of the design, with its interval for one comparison."""
        if not contrasts:
            return []
        rows = np.array(contrasts)
        known = np.abs(rows - rows @ self.space.T @ self.space).max(axis=1) < _TOLERANCE
        test = self.model.t_test(rows[:, self.kept])
        wide = self.df > 0 and self.replicated
        ends = test.conf_int(alpha=1.0 - CONFIDENCE) if wide else np.full((len(rows), 2), np.nan)
        values = np.atleast_1d(test.effect)
        return [
            (float(value), float(low), float(high)) if estimable else UNKNOWN
            for value, (low, high), estimable in zip(values, ends, known, strict=True)
        ]

    def mean(self, levels: Mapping[str, Sequence[str]], fixed: Mapping[str, str]) -> np.ndarray:
        """Return the design's row for the plain mean over combinations of these levels, some fixed."""
        choices = [[fixed[name]] if name in fixed else levels[name] for name in self.table.factors]
        return np.mean([self.points[point] for point in itertools.product(*choices)], axis=0)


def fit_table(table: FactorTable) -> FactorialFit:
    """Fit a table of at least one cell; what is aliased is found out, never an error."""
    # They take seconds to import, and most users of the analysis have one layout.
    import patsy  # noqa: PLC0415
    from scipy.linalg import qr  # noqa: PLC0415
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
    _, triangle, order = qr(design, mode="economic", pivoting=True)
    diagonal = np.abs(np.diag(triangle))
    rank = int((diagonal > diagonal[0] * _TOLERANCE).sum())
    kept = np.sort(order[:rank])
    space = np.linalg.svd(design, full_matrices=False)[2][:rank]
    return FactorialFit(
        table=table,
        model=OLS(frame["y"].to_numpy(dtype=float), design[:, kept]).fit(),
        kept=kept,
        space=space,
        points=dict(zip(points, at, strict=True)),
        cells=Counter(measured),
        replicated=len(set(zip(measured, strata.tolist(), strict=True))) > len(set(measured)),
    )


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
