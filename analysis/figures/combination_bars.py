"""Combinations of two factors at each load, as rows for bars: index to the best, interval, hit rate."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from analysis.axis import AXES
from analysis.contrasts import counted
from analysis.factorial import combinations_of, fits
from analysis.factors import LAYOUT, TREATMENT, short, with_treatment
from analysis.figures.words import ends_of
from analysis.frame import Sweep
from analysis.objectives import OBJECTIVES
from analysis.standings import standings


@dataclass(frozen=True, slots=True, kw_only=True)
class Combination:
    """One bar."""

    place: str
    """Layout, or the level of another factor."""
    treatment: str
    """Drafter with its K; `none` of a baseline."""
    index: float
    """100 for the best of the load; more is better, or of a latency worse."""
    low: float
    """95 % interval of the index; NaN where there is none, as for the best itself."""
    high: float
    hit_rate: float
    """Cached over all prompt tokens, a share; NaN where the engine does not tell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """All combinations at one load."""

    label: str
    """The load for people: `C=16`, and what else was held."""
    size: float
    """Load level per device."""
    bars: tuple[Combination, ...]
    """The best first."""


def factorial_loads(sweep: Sweep, factors: Sequence[str], objective: str) -> list[Load]:
    """Return the combinations of a factor and the treatments, from the factorial model."""
    names = [short(name) for name in factors]
    frame = combinations_of(fits(counted(sweep.cells), list(factors), objective), objective)
    axis = AXES[str(sweep.cells["axis"].iloc[0])] if len(sweep.cells) else AXES["concurrency"]
    found = []
    for _, own in frame.groupby(["per_device", "held"], sort=True):
        load, level, held = (own[name].iloc[0] for name in ("per_device", "level", "held"))
        label = axis.at(level) if own["level"].nunique() == 1 and math.isfinite(level) else ""
        label = label or f"{axis.at(load)} per device"
        bars = [_combination(row, names) for row in own.to_dict("records")]
        known = tuple(bar for bar in bars if math.isfinite(bar.index))
        if known:
            found.append(Load(label=f"{label}, {held}" if held else label, size=float(load), bars=known))
    return found


def _combination(row: Mapping[Any, Any], names: Sequence[str]) -> Combination:
    treatment = str(row[TREATMENT]) if TREATMENT in names else "none"
    index, low, high = ends_of(row, "index")
    return Combination(
        place=str(row[names[0]]),
        treatment=treatment,
        index=index,
        low=low,
        high=high,
        hit_rate=float(row["hit_rate"]),
    )


def treatment_loads(sweep: Sweep, objective: str) -> list[Load]:
    """Return the treatments of a sweep in which nothing else was swept, from the standings of its arms.

    The model is the same as that of the factorial, and its fit needs no large library here.
    """
    cells = with_treatment(counted(sweep.cells))
    rates = cells.groupby(["arm", "level"])["cache/hit_rate"].mean()
    arms = cells.drop_duplicates("arm").set_index("arm")
    served = set(arms.index[arms["counterfactual"] == ""])
    axis = AXES[str(cells["axis"].iloc[0])]
    found = []
    for board in standings(sweep.cells, objective):
        here = tuple(arm for arm in board.arms if arm in served)
        best = board.best(here)
        if board.oversubscribed or best is None:
            continue
        bars = [
            _standing(
                (str(arms.at[arm, LAYOUT]), str(arms.at[arm, TREATMENT])),
                (ratio.value, ratio.lo, ratio.hi),
                float(rates.get((arm, board.level), math.nan)),
                more_is_better=OBJECTIVES[objective].higher_is_better,
                best=arm == best,
            )
            for arm in here
            for ratio in [board.ratio(arm, best)]
        ]
        found.append(
            Load(
                label=axis.at(board.level),
                size=board.level / board.devices,
                bars=tuple(sorted(bars, key=lambda bar: abs(math.log(bar.index / 100.0)))),
            )
        )
    return found


def _standing(
    names: tuple[str, str],
    advantage: tuple[float, float | None, float | None],
    hit_rate: float,
    *,
    more_is_better: bool,
    best: bool,
) -> Combination:
    value, low, high = (math.nan if end is None else end for end in advantage)
    if not more_is_better:
        value, low, high = 1.0 / value, 1.0 / high, 1.0 / low
    return Combination(
        place=names[0],
        treatment=names[1],
        index=100.0 * value,
        low=math.nan if best else 100.0 * low,
        high=math.nan if best else 100.0 * high,
        hit_rate=hit_rate,
    )
