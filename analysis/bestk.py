"""The best draft length by objective, how sure that is, and which others are not told apart from it.

The chances come from draws of all the drafter's contrasts together (multivariate t with their joint
covariance, the baseline among them as K = 0 at a ratio of 1): the share of draws in which a K is ahead.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from analysis.arms import FLAGS, flag_notes, flags
from analysis.axis import Axis
from analysis.contrasts import Contrasts, counted
from analysis.formulas import ratio_of
from analysis.frame import Sweep
from analysis.ksweep import MISSING, DrafterLevel, axis_of, drafter_levels
from analysis.objectives import CROSSOVERS, OBJECTIVES
from analysis.section import Section
from analysis.tried import asked_all

DRAWS = 4000


def best_k(sweep: Sweep) -> Section:
    """Return one row a drafter, level and objective: the best K, with its chance and its rivals."""
    rows = [
        row
        for item in drafter_levels(sweep)
        for objective in CROSSOVERS
        if (row := _row(item, objective)) is not None
    ]
    frame = pd.DataFrame(rows)
    return Section(
        name="best_k",
        title="Best draft length by objective",
        frame=frame,
        columns=COLUMNS if rows else {},
        shown=SHOWN if rows else (),
        notes=(
            (*_switches(_asked_all(sweep, frame), axis_of(sweep)), *_cautions(frame), *flag_notes(frame))
            if rows
            else ()
        ),
        missing="" if rows else MISSING,
    )


def best_of(part: Contrasts, lengths: Mapping[str, int], *, seed: int = 0) -> dict[str, Any]:
    """Return the best of some arms and the baseline.

    Args:
        part: the arms' contrasts in the log of an objective of which more is better.
        lengths: digest -> K, for every arm of `part`.
        seed: of the draws.

    Returns:
        `k` (0: the baseline), `ratio` and its ends, `chance`, `chances` (K -> chance), `ties` (other K whose
        difference to the best may be nothing, by a 95 % interval), `margin` over the next best and its ends.
        Chances are NaN without a replicate, and ties then are equal ratios alone.
    """
    ks = [0, *(lengths[arm] for arm in part.arms)]
    means = np.array([0.0, *part.means])
    first = max(range(len(ks)), key=lambda place: (means[place], -ks[place]))
    order = sorted((place for place in range(len(ks)) if place != first), key=lambda place: -means[place])
    weights = [{} if place == 0 else {part.arms[place - 1]: 1.0} for place in range(len(ks))]

    def ahead(other: int) -> tuple[float, float, float]:
        return part.interval({**weights[first], **dict.fromkeys(weights[other], -1.0)})

    ties = [ks[place] for place in order if not _apart(ahead(place))]
    drawn = part.draws(DRAWS, seed)
    chances = dict.fromkeys(ks, math.nan)
    if drawn is not None:
        winners = np.argmax(np.column_stack([np.zeros(DRAWS), drawn]), axis=1)
        chances = {k: float(np.mean(winners == place)) for place, k in enumerate(ks)}
    return {
        "k": ks[first],
        "ratio": tuple(ratio_of(value) for value in part.interval(weights[first])),
        "chance": chances[ks[first]],
        "chances": dict(sorted(chances.items())),
        "ties": tuple(sorted(ties)),
        "margin": tuple(ratio_of(value) for value in ahead(order[0])),
    }


def _apart(difference: tuple[float, float, float]) -> bool:
    value, low, _ = difference
    return low > 0.0 if math.isfinite(low) else value > 0.0


def _row(item: DrafterLevel, objective: str) -> dict[str, object] | None:
    fit = item.fits[objective]
    arms = {k: arm for k, arm in item.arms.items() if fit.has(arm)}
    if not arms:
        return None
    part = fit.of(list(arms.values()))
    found = best_of(part, {arm: k for k, arm in arms.items()})
    row: dict[str, object] = {
        "drafter": item.family,
        "layout": item.layout,
        "level": item.level,
        "objective": objective,
        "lengths": ", ".join(str(k) for k in arms),
        "best_k": found["k"],
        "chance": found["chance"],
        "ties": ", ".join(str(k) for k in found["ties"]),
        "chances": ", ".join(f"{k}: {value:.2f}" for k, value in found["chances"].items()),
        **flags((item.facts[k] for k in arms), oversubscribed=item.oversubscribed),
    }
    for name in ("ratio", "margin"):
        row |= zip((name, f"{name}_lo", f"{name}_hi"), found[name], strict=True)
    return row


def _asked_all(sweep: Sweep, frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of levels at which every length was asked for: a search may ask for one alone."""
    cells = counted(sweep.cells)
    arms: dict[str, set[str]] = {}
    for item in drafter_levels(sweep):
        arms.setdefault(item.family, set()).update(item.arms.values())
    kept = [
        asked_all(cells, arms[family], level)
        for family, level in zip(frame["drafter"], frame["level"], strict=True)
    ]
    return frame[kept]


def _switches(frame: pd.DataFrame, axis: Axis) -> list[str]:
    """Say for each drafter and objective which K is best over which levels."""
    said = []
    for (family, objective, _), own in frame.groupby(["drafter", "objective", "oversubscribed"], sort=False):
        ordered = own.sort_values("level")
        runs = best_by_load(ordered["level"].tolist(), ordered["best_k"].tolist(), axis)
        if len(runs) > 1:
            told, words = ", ".join(runs), OBJECTIVES[str(objective)].title
            said.append(f"{family}, {words}: the best K changes with the load: {told} (K=0: no speculation)")
    return said


def best_by_load(levels: Sequence[float], best: Sequence[int], axis: Axis) -> list[str]:
    """Return `K=5 at C=1 to C=32` for every run of neighbouring levels with the same best K.

    Args:
        levels: ascending.
        best: the best K at each.
        axis: of the levels.
    """
    runs: list[tuple[int, list[float]]] = []
    for k, level in zip(best, levels, strict=True):
        if not runs or runs[-1][0] != k:
            runs.append((int(k), []))
        runs[-1][1].append(float(level))
    return [f"K={k} at {_span(own, axis)}" for k, own in runs]


def _span(levels: list[float], axis: Axis) -> str:
    return axis.at(levels[0]) if len(levels) == 1 else f"{axis.at(levels[0])} to {axis.at(levels[-1])}"


def _cautions(frame: pd.DataFrame) -> list[str]:
    found = []
    if frame["chance"].isna().any():
        found.append("no chance where no arm was measured in two blocks: at least one more block is needed")
    if frame["ties"].ne("").any():
        found.append("a K under `not told apart` may be as good as the best: its difference is within noise")
    return found


COLUMNS = {
    "drafter": "name of the drafter over its K",
    "layout": "layout label",
    "level": "load level on the sweep's axis",
    "objective": "name of the objective",
    "lengths": "draft lengths K measured",
    "best_k": "K with the largest mean ratio; 0: the baseline is ahead of all",
    "chance": "share of draws of the joint means in which it is ahead of all others and the baseline",
    "ties": "not told apart: K whose difference to the best has an interval (95 %, t) that holds 0",
    "chances": "K and its chance to be the best, all of them",
    "ratio": "the best over the baseline",
    "margin": "the best over the next best, the baseline among them",
    **FLAGS,
}
SHOWN = ("drafter", "level", "objective", "lengths", "best_k", "chance", "ties", "ratio", "margin")
