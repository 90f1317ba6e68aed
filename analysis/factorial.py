"""Effects of what was swept: main effects and interactions in ln of an objective, with intervals.

    ln y = stratum + factors + their two-way interactions + e

A stratum is one segment of a block, which all layouts and treatments of the block share; y is per device, at
equal load per device. An effect is a ratio to the geometric mean over the factor's levels (Sum contrasts),
every level of the others counted alike, however many cells each combination has. Intervals are Student's t
from the residuals pooled over all combinations of a table, for one comparison each: verdicts judge, these
do not. What varies between blocks only is compared between them. What the cells cannot tell, as a combination
was not measured, is not estimated, and the row says why.
"""

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from analysis.factorial_fit import UNKNOWN, Estimate, FactorialFit, Point, complete_levels, fit_table
from analysis.factors import BASELINE, TREATMENT, factor_tables, short
from analysis.formulas import ratio_of
from analysis.objectives import DEFAULT, OBJECTIVES

EFFECT_COLUMNS: dict[str, str] = {
    "objective": "what the effect is on: a name of analysis.objectives.OBJECTIVES",
    "per_device": "load level per device of the slice",
    "held": "what else was swept, and its value here",
    "term": "the factor, or `a x b` for the interaction of two",
    "at": "level of the factor, or of both",
    "effect": "ratio to the geometric mean over the factor's levels; of an interaction, to what the two main "
    "effects give together (95 % interval, one comparison)",
    "index": "of a main effect: 100 for the best level, the others relative to it (interval of that ratio)",
    "basis": "`within` blocks, or `between` them where it varies between blocks only: the interval then has "
    "in it how blocks differ",
    "cells": "measured cells at this level",
    "df": "degrees of freedom of the residual variance within blocks",
    "why": "why it is not estimated, or has no interval",
}
"""Columns of `effects`."""
COMBINATION_COLUMNS: dict[str, str] = {
    "objective": "what is compared: a name of analysis.objectives.OBJECTIVES",
    "per_device": "load level per device of the slice",
    "level": "load level of the slice; missing where slices of several sizes have this load per device",
    "held": "what else was swept, and its value here",
    "value": "geometric mean of the objective, in the unit of its metric, per device where it grows with the "
    "devices; every stratum counted alike",
    "index": "100 for the best combination, the others relative to it (95 % interval of that ratio)",
    "ratio": "ratio to `none` with everything else equal (95 % interval, one comparison)",
    "basis": "of the index: `within` blocks, or `between` them where no block has both",
    "hit_rate": "cached / all prompt tokens, engine counters; mean over the cells",
    "kv_capacity_tokens": "KV-cache capacity per device, tokens; mean over the cells",
    "mal": "mean acceptance length, tokens per verification step; mean over the cells",
    "cells": "measured cells",
    "blocks": "blocks with a measured cell",
    "why": "why a figure or its interval is missing",
}
"""Columns of `combinations`; those of the factors stand after `held`."""
_NO_REPLICATE = "no interval: no combination was measured in two blocks"
_ALIASED = "not estimated: the cells cannot tell it from other effects"


def effects(cells: pd.DataFrame, factors: Sequence[str], objective: str = DEFAULT) -> pd.DataFrame:
    """Return main effects and two-way interactions, a row each; columns are those of `EFFECT_COLUMNS`.

    Args:
        cells: `cells_frame` of one sweep.
        factors: `layout`, `treatment` (a drafter with its K and settings) or keys that were swept.
        objective: a name in `OBJECTIVES`.

    Raises:
        ValueError: an unknown objective or factor.
    """
    return effects_of(fits(cells, factors, objective), objective)


def combinations(cells: pd.DataFrame, factors: Sequence[str], objective: str = DEFAULT) -> pd.DataFrame:
    """Return every measured combination of the factors, the best first in each load and what is held.

    Columns are those of `COMBINATION_COLUMNS`, with one a factor after `held`. Arguments and errors are
    those of `effects`.
    """
    return combinations_of(fits(cells, factors, objective), objective)


def fits(cells: pd.DataFrame, factors: Sequence[str], objective: str = DEFAULT) -> list[FactorialFit]:
    """Return the fits behind `effects` and `combinations`, one a load per device and what is held."""
    return [fit_table(table) for table in factor_tables(cells, factors, objective)]


def effects_of(fitted: Iterable[FactorialFit], objective: str) -> pd.DataFrame:
    """Return the effects of fits; see `effects`."""
    rows = []
    for fit in fitted:
        same = {"objective": objective, "per_device": fit.table.per_device, "held": fit.table.held}
        kept, gaps = complete_levels(
            set(fit.cells), {name: fit.table.levels(name) for name in fit.table.factors}
        )
        for name in fit.table.factors:
            rows += [same | row for row in _main(fit, name, kept, gaps, objective)]
        for pair in itertools.combinations(fit.table.factors, 2):
            rows += [same | row for row in _interaction(fit, pair, kept)]
    return pd.DataFrame(rows, columns=_with_ends(EFFECT_COLUMNS, ("effect", "index")))


def combinations_of(fitted: Sequence[FactorialFit], objective: str) -> pd.DataFrame:
    """Return the combinations of fits; see `combinations`."""
    rows = []
    for fit in fitted:
        same = {"objective": objective, "per_device": fit.table.per_device, "held": fit.table.held}
        rows += [same | row for row in _combinations(fit, objective)]
    names = _with_ends(COMBINATION_COLUMNS, ("index", "ratio"))
    after = names.index("held") + 1
    factors = [short(name) for name in fitted[0].table.factors] if fitted else []
    return pd.DataFrame(rows, columns=[*names[:after], *factors, *names[after:]])


def _main(
    fit: FactorialFit,
    name: str,
    kept: Mapping[str, list[str]],
    gaps: Mapping[tuple[str, str], str],
    objective: str,
) -> list[dict[str, Any]]:
    levels = fit.table.levels(name)
    if len(levels) < 2:
        return []
    means = {level: fit.mean(kept, {name: level}) for level in kept[name] if all(kept.values())}
    grand = np.mean(list(means.values()), axis=0) if means else None
    found = dict(zip(means, fit.estimates([mean - grand for mean in means.values()]), strict=True))
    best = _best({level: estimate.value for level, estimate in found.items()}, objective)
    index = {}
    if best is not None:
        index = dict(zip(means, fit.estimates([mean - means[best] for mean in means.values()]), strict=True))
        index[best] = Estimate(0.0, math.nan, math.nan)
    rows = []
    for level in levels:
        effect = found.get(level, UNKNOWN)
        rows.append(
            {
                "term": short(name),
                "at": level,
                **_interval("effect", effect),
                **_interval("index", index.get(level, UNKNOWN), 100.0),
                "basis": _basis(effect),
                "cells": _cells(fit, {name: level}),
                "df": fit.df,
                "why": gaps.get((name, level)) or _why(effect),
            }
        )
    return rows


def _interaction(
    fit: FactorialFit, pair: tuple[str, str], kept: Mapping[str, list[str]]
) -> list[dict[str, Any]]:
    first, second = pair
    if len(kept[first]) < 2 or len(kept[second]) < 2 or not all(kept.values()):
        return []
    grand = fit.mean(kept, {})
    rows = {level: fit.mean(kept, {first: level}) for level in kept[first]}
    columns = {level: fit.mean(kept, {second: level}) for level in kept[second]}
    points = list(itertools.product(rows, columns))
    contrasts = [fit.mean(kept, {first: a, second: b}) - rows[a] - columns[b] + grand for a, b in points]
    return [
        {
            "term": f"{short(first)} x {short(second)}",
            "at": f"{a} x {b}",
            **_interval("effect", effect),
            "basis": _basis(effect),
            "cells": _cells(fit, {first: a, second: b}),
            "df": fit.df,
            "why": _why(effect),
        }
        for (a, b), effect in zip(points, fit.estimates(contrasts), strict=True)
    ]


def _combinations(fit: FactorialFit, objective: str) -> list[dict[str, Any]]:
    factors = list(fit.table.factors)
    points = list(fit.cells)
    values = dict(zip(points, fit.estimates([fit.points[point] for point in points]), strict=True))
    best = _best({point: value.value for point, value in values.items()}, objective)
    index = dict.fromkeys(points, UNKNOWN)
    if best is not None:
        contrasts = [fit.points[point] - fit.points[best] for point in points]
        index |= dict(zip(points, fit.estimates(contrasts), strict=True))
        index[best] = Estimate(0.0, math.nan, math.nan)
    ratios = _ratios(fit)
    facts = _facts(fit.table.frame, factors)
    sign = -1.0 if OBJECTIVES[objective].higher_is_better else 1.0
    rows = []
    for point in sorted(points, key=lambda point: _last(sign * values[point].value)):
        ratio = ratios.get(point, UNKNOWN)
        rows.append(
            {
                **{short(name): level for name, level in zip(factors, point, strict=True)},
                "value": ratio_of(values[point].value),
                **_interval("index", index[point], 100.0),
                **_interval("ratio", ratio),
                "basis": _basis(index[point]),
                **facts[point],
                "why": _why(ratio if point in ratios else values[point], replicated=fit.replicated),
            }
        )
    return rows


def _ratios(fit: FactorialFit) -> dict[Point, Estimate]:
    """Return each treatment's ratio to the baseline with all else equal, where both were measured."""
    if TREATMENT not in fit.table.factors:
        return {}
    place = fit.table.factors.index(TREATMENT)
    bases = {
        point: (*point[:place], BASELINE, *point[place + 1 :])
        for point in fit.cells
        if point[place] != BASELINE
    }
    bases = {point: base for point, base in bases.items() if base in fit.cells}
    contrasts = [fit.points[point] - fit.points[base] for point, base in bases.items()]
    return dict(zip(bases, fit.estimates(contrasts), strict=True))


def _facts(frame: pd.DataFrame, factors: list[str]) -> dict[Point, dict[str, Any]]:
    """Return what stands beside each combination: means of figures over its cells, and their number."""
    found = {}
    for point, group in frame.groupby(factors, sort=False):
        levels = group["level"].unique()
        found[tuple(map(str, point))] = {
            "level": float(levels[0]) if len(levels) == 1 else math.nan,
            "hit_rate": float(group["cache/hit_rate"].mean()),
            "kv_capacity_tokens": float((group["kv/capacity_tokens"] / group["devices"]).mean()),
            "mal": float(group["spec/mal"].mean()),
            "cells": len(group),
            "blocks": int(group["block"].nunique()),
        }
    return found


def _best(values: Mapping[Any, float], objective: str) -> Any:
    """Return the key of the best value; None where none is known."""
    known = {key: value for key, value in values.items() if math.isfinite(value)}
    choose = max if OBJECTIVES[objective].higher_is_better else min
    return choose(known, key=lambda key: known[key]) if known else None


def _cells(fit: FactorialFit, fixed: Mapping[str, str]) -> int:
    places = {fit.table.factors.index(name): level for name, level in fixed.items()}
    return sum(
        count for point, count in fit.cells.items() if all(point[at] == level for at, level in places.items())
    )


def _interval(name: str, estimate: Estimate, scale: float = 1.0) -> dict[str, float]:
    return {
        f"{name}{end}": scale * ratio_of(value)
        for end, value in zip(("", "_lo", "_hi"), estimate[:3], strict=True)
    }


def _basis(estimate: Estimate) -> str:
    if math.isnan(estimate.value):
        return ""
    return "between" if estimate.between else "within"


def _why(estimate: Estimate, *, replicated: bool | None = None) -> str:
    if math.isnan(estimate.value):
        return _ALIASED
    missing = math.isnan(estimate.low) if replicated is None else not replicated
    return _NO_REPLICATE if missing else ""


def _with_ends(columns: Mapping[str, str], figures: Iterable[str]) -> list[str]:
    """Return the names of columns, those of figures followed by the ends of their intervals."""
    with_ends = set(figures)
    return [
        found
        for name in columns
        for found in ([name, f"{name}_lo", f"{name}_hi"] if name in with_ends else [name])
    ]


def _last(value: float) -> float:
    """Return a key that sorts what is not known after all else."""
    return math.inf if math.isnan(value) else value
