"""What a search looks at: of each arm a figure that falls through 0 at the level that is looked for.

For a crossover that is the log ratio to the baseline, fitted as the verdicts are. For a service level it is
the log of limit over p95 latency, the least over the limits: a latency is no ratio, so baselines have a
curve, too, and the noise between blocks is all in it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from analysis.levels import Level, common_correlation, fit_levels, level_covariance, residuals_by_run
from analysis.table import CAPACITY
from jobs.result import MEASURED, TREATMENT

LATENCIES = {
    "ttft_ms": "latency/ttft_p95_ms",
    "tpot_ms": "latency/tpot_p95_ms",
    "e2el_ms": "latency/e2el_p95_ms",
}
"""Limit of a service level -> metric that is held to it."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Curve:
    """Means of one arm over the levels tried, and how sure they are."""

    arm: str
    """Digest."""
    label: str
    axis: str
    """What the levels are a number of."""
    levels: tuple[float, ...]
    """Ascending."""
    means: tuple[float, ...]
    """Of each level; -inf where memory ran out."""
    blocks: tuple[int, ...]
    """Blocks behind each mean."""
    covariance: np.ndarray | None
    """Of the means; None without a replicate."""
    df: float | np.ndarray | None
    """Degrees of freedom behind it, one number or one a level."""
    correlation: float = 0.0
    """Of two levels of one engine."""
    pooled_df: float = 1.0
    """Degrees of freedom that a new level borrows until it has a replicate of its own."""
    barred: tuple[float, ...] = ()
    """Levels that were tried twice and gave nothing: a third time would not either."""


def ratio_curves(cells: pd.DataFrame, objective: str) -> list[Curve]:
    """Return the log ratios of every arm that could be served, by label; oversubscribed cells are left out.

    Args:
        cells: the rows of `cells_frame` that count.
        objective: a name in `analysis.objectives.OBJECTIVES`.
    """
    own = cells[(cells["role"] == TREATMENT) & (cells["counterfactual"] == "")]
    levels = [level for level in fit_levels(cells) if not level.oversubscribed]
    shared = common_correlation(residuals_by_run(levels, objective)) if levels else 0.0
    curves = [_ratio_curve(group, levels, objective, shared) for _, group in own.groupby("arm", sort=False)]
    return sorted(curves, key=lambda curve: (curve.label, curve.arm))


def slo_curves(cells: pd.DataFrame, limits: Mapping[str, float]) -> list[Curve]:
    """Return the log of limit over p95 of every arm and baseline, the least over the limits, by label.

    Oversubscribed cells count as not measured.

    Args:
        cells: the rows of `cells_frame` that count.
        limits: ms by name in `LATENCIES`, at least one.
    """
    own = cells[cells["counterfactual"] == ""]
    room = np.column_stack(
        [np.log(limit / own[LATENCIES[name]].to_numpy(dtype=float)) for name, limit in limits.items()]
    )
    measured = ((own["outcome"] == MEASURED) & ~own["oversubscribed"].astype(bool)).to_numpy(dtype=bool)
    table = own.assign(room=np.where(measured, room.min(axis=1), np.nan))
    tables = {
        str(arm): group.pivot_table(index="level", columns=["block", "segment"], values="room", dropna=False)
        for arm, group in table.groupby("arm", sort=False)
    }
    residuals = {arm: values.sub(values.mean(axis=1), axis=0) for arm, values in tables.items()}
    squares = sum(float(np.nansum(values.to_numpy() ** 2)) for values in residuals.values())
    df = sum(int(np.maximum(0, values.count(axis=1) - 1).sum()) for values in tables.values())
    joined = pd.concat(residuals.values(), axis=1) if residuals else pd.DataFrame()
    shared = common_correlation(joined.to_numpy(dtype=float)) if df else 0.0
    curves = [
        _curve(group, tables[str(arm)], squares / df if df else None, float(df), shared)
        for arm, group in table.groupby("arm", sort=False)
    ]
    return sorted(curves, key=lambda curve: (curve.label, curve.arm))


def _ratio_curve(group: pd.DataFrame, levels: Sequence[Level], objective: str, shared: float) -> Curve:
    arm = str(group["arm"].iloc[0])
    used = [level for level in levels if arm in level.fits[objective].contrasts]
    known = level_covariance(used, objective, arm) if used else None
    contrasts = [level.fits[objective].contrasts[arm] for level in used]
    means = {level.value: contrast.estimate for level, contrast in zip(used, contrasts, strict=True)}
    blocks = [contrast.pairs for contrast in contrasts]
    pooled = sum(level.fits[objective].df for level in levels if level.fits[objective].variance is not None)
    curve = _with_failures(group, means, blocks, known or (None, None), shared)
    return replace(curve, pooled_df=float(max(1, pooled)))


def _curve(
    group: pd.DataFrame, values: pd.DataFrame, variance: float | None, df: float, shared: float
) -> Curve:
    """Return a curve from its figures, levels x blocks; what was not measured is NaN."""
    measured = values[values.notna().any(axis=1)]
    known = measured.notna().to_numpy(dtype=float)
    counts = known.sum(axis=1)
    covariance = None
    if variance is not None:
        covariance = shared * variance * (known @ known.T) / np.outer(counts, counts)
        np.fill_diagonal(covariance, variance / counts)
    curve = _with_failures(
        group,
        {float(level): float(mean) for level, mean in measured.mean(axis=1).items()},  # type: ignore[arg-type]  # levels are numbers
        [int(count) for count in counts],
        (covariance, None if variance is None else df),
        shared,
    )
    return replace(curve, pooled_df=max(1.0, df))


def _with_failures(
    group: pd.DataFrame,
    means: Mapping[float, float],
    blocks: Sequence[int],
    known: tuple[np.ndarray | None, float | np.ndarray | None],
    shared: float,
) -> Curve:
    """Return the curve with the levels at which memory ran out as certain losses."""
    covariance, df = known
    failed = set(group.loc[group["cause"] == CAPACITY, "level"].astype(float)) - set(means)
    levels = sorted({*means, *failed})
    places = [levels.index(level) for level in means]
    counts = np.ones(len(levels), dtype=int)
    counts[places] = blocks
    whole = None
    if covariance is not None:
        whole = np.zeros((len(levels), len(levels)))
        whole[np.ix_(places, places)] = covariance
    if isinstance(df, np.ndarray):
        own, df = df, np.full(len(levels), df.max())
        df[places] = own
    first: Any = group.iloc[0]
    return Curve(
        arm=str(first["arm"]),
        label=str(first["label"]),
        axis=str(first["axis"]),
        levels=tuple(levels),
        means=tuple(means.get(level, -np.inf) for level in levels),
        blocks=tuple(counts.tolist()),
        covariance=whole,
        df=df,
        correlation=shared,
        barred=tuple(sorted(_tried_twice(group) - set(levels))),
    )


def _tried_twice(group: pd.DataFrame) -> set[float]:
    counts = group["level"].value_counts()
    return {float(level) for level in counts.index[counts >= 2]}
