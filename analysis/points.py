"""Operating points: arms at load levels with their absolute figures, and how those go together.

Ratios need pairs; a front or a price needs the figures themselves. A figure of a point is the mean over the
blocks it was measured in:

    y = point + block + e

What a block shifts it shifts in all its points, so comparisons of points of the same blocks do not suffer
from it and the interval of a single figure does. Baselines are points as any arm, opening and closing cells
averaged. Cells of counterfactual arms are no points, and cells where client and engine shared a core stand
for themselves.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from analysis.contrasts import counted, t_quantile
from analysis.formulas import LARGEST_LOG
from analysis.pairs import STRATUM
from jobs.result import MEASURED, TREATMENT

FACTS = ["arm", "label", "pair", "layout", "drafter", "k", "axis", "level", "devices"]
_SWEEPS = 8
"""Rounds of centring by points and blocks: exact at once where every point is in every block."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Points:
    """The points of a sweep, and their cells."""

    facts: pd.DataFrame
    """One row a point, by layout, drafter, K, label and level: `FACTS`, `baseline`, `synthetic`, `emulated`,
    `blocks` (blocks and segments it was measured in)."""
    cells: pd.DataFrame
    """The cells, rows of `cells_frame`."""
    point: np.ndarray
    """Number of each cell's point: a row of `facts`."""
    place: np.ndarray
    """Number of each cell's block and segment."""

    def __len__(self) -> int:
        """Return the number of points."""
        return len(self.facts)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Figure:
    """One figure of all points."""

    means: np.ndarray
    """By point, of the log where `logs`; NaN where it is absent."""
    own: np.ndarray
    """Variance of each mean but for what blocks shift; NaN without a replicate."""
    shifts: np.ndarray
    """Share of each block in each point's mean (points x blocks)."""
    shift: float
    """Variance of what a block shifts; NaN without two blocks."""
    df: float
    """Degrees of freedom of `own`."""
    blocks: int
    logs: bool

    def interval(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return (value, low, high) by point, as figures: the 95 % interval of each for itself."""
        error = np.sqrt(self.own + self.shift * np.sum(self.shifts**2, axis=1))
        df = max(1.0, min(self.df, self.blocks - 1.0))
        half = t_quantile(df) * error
        ends = (self.means, self.means - half, self.means + half)
        if not self.logs:
            return ends
        value, low, high = (np.exp(np.minimum(end, LARGEST_LOG)) for end in ends)
        return value, low, high

    def draws(self, count: int, seed: int) -> np.ndarray | None:
        """Return draws of the means (count x points), blocks shifted as a whole; None without two blocks."""
        if not (self.df > 0 and np.isfinite(self.shift)):
            return None
        generator = np.random.default_rng(seed)
        scale = np.sqrt(self.df / generator.chisquare(self.df, size=(count, 1)))
        shifted = generator.normal(0.0, np.sqrt(self.shift), (count, self.shifts.shape[1])) @ self.shifts.T
        noise = generator.standard_normal((count, len(self.means))) * np.sqrt(self.own)
        drawn: np.ndarray = self.means + shifted + noise * scale
        return drawn


def points_of(cells: pd.DataFrame, *, oversubscribed: bool = False) -> Points:
    """Return the operating points of a sweep's `cells_frame`.

    Args:
        cells: rows of `cells_frame`.
        oversubscribed: whether the points are those where client and engine shared a core, for what shows
            them and does not judge.
    """
    planned = counted(cells)
    crowded = planned.groupby(STRATUM)["oversubscribed"].transform("any").astype(bool)
    here = planned["outcome"].eq(MEASURED) & crowded.eq(oversubscribed) & planned["counterfactual"].eq("")
    kept = planned[here].reset_index(drop=True)
    order = ["layout", "drafter", "k", "label", "level"]
    keys = kept.groupby([*order, "arm"], sort=True, observed=True)
    point = keys.ngroup().to_numpy(dtype=int)
    place = pd.factorize(pd.MultiIndex.from_arrays([kept["block"], kept["segment"]]))[0]
    first = kept.iloc[np.unique(point, return_index=True)[1]] if len(kept) else kept
    facts = first[FACTS].reset_index(drop=True)
    count = len(facts)
    facts["baseline"] = (first["role"] != TREATMENT).to_numpy(dtype=bool)
    for name in ("synthetic", "emulated"):
        facts[name] = np.bincount(point, weights=kept[name].astype(float), minlength=count) > 0.0
    places = int(place.max(initial=-1)) + 1
    seen = np.unique(point * max(places, 1) + place)
    facts["blocks"] = np.bincount(seen // max(places, 1), minlength=count)
    return Points(facts=facts, cells=kept, point=point, place=place)


def figure(points: Points, metric: str, *, logs: bool = True, scale: np.ndarray | None = None) -> Figure:
    """Return one figure of all points.

    Args:
        points: of the sweep.
        metric: a name of `jobs.metric_names.METRICS`.
        logs: whether errors are relative (a rate) or absolute (a share).
        scale: of each cell: what its metric is divided by.
    """
    values = points.cells[metric].to_numpy(dtype=float)
    if scale is not None:
        values = values / scale
    if logs:
        values = np.log(values, out=np.full(len(values), np.nan), where=values > 0.0)
    count, places = len(points), int(points.place.max(initial=-1)) + 1
    known = np.isfinite(values)
    index = points.point[known] * max(places, 1) + points.place[known]
    number = np.bincount(index, minlength=count * places).reshape(count, places)
    sums = np.bincount(index, weights=values[known], minlength=count * places).reshape(count, places)
    there = number > 0
    y = np.where(there, sums / np.maximum(number, 1), 0.0)
    in_point, in_block = there.sum(axis=1), there.sum(axis=0)
    means, shift, residual = _centred(y, there)
    means = np.where(in_point > 0, means, np.nan)
    blocks = int((in_block > 0).sum())
    df = float(there.sum() - (in_point > 0).sum() - max(blocks - 1, 0))
    shares = there / np.maximum(in_point, 1)[:, None]
    if blocks < 2 or df <= 0:
        nothing = np.full(count, np.nan)
        return Figure(means=means, own=nothing, shifts=shares, shift=np.nan, df=0.0, blocks=blocks, logs=logs)
    level = pd.factorize(points.facts["level"])[0]
    weight = np.bincount(level, weights=in_point)
    squares = np.bincount(level, weights=(residual**2).sum(axis=1))
    variance = squares / np.maximum(weight * df / there.sum(), 1e-300)
    return Figure(
        means=means,
        own=variance[level] / np.maximum(in_point, 1),
        shifts=shares,
        shift=float(np.var(shift[in_block > 0], ddof=1)),
        df=df,
        blocks=blocks,
        logs=logs,
    )


def _centred(y: np.ndarray, there: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return means by point, shifts by block around zero, and what is left."""
    in_point = np.maximum(there.sum(axis=1), 1)
    in_block = np.maximum(there.sum(axis=0), 1)
    means, shift = np.zeros(len(y)), np.zeros(y.shape[1])
    for _ in range(_SWEEPS):
        means = np.where(there, y - shift, 0.0).sum(axis=1) / in_point
        shift = np.where(there, y - means[:, None], 0.0).sum(axis=0) / in_block
        shift = shift - (shift.mean() if len(shift) else 0.0)
    plain = np.where(there, y, 0.0).sum(axis=1) / in_point
    return plain, shift, np.where(there, y - means[:, None] - shift, 0.0)
