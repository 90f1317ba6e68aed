"""Crossover rows: the curve of every arm and objective, and the sentence that says where it passes 1."""

from collections.abc import Collection, Sequence

import numpy as np

from analysis.axis import AXES, Axis, number
from analysis.crossover import ABOVE, BELOW, UNKNOWN, Crossing, Crossover, find_crossover
from analysis.levels import Level, level_covariance
from analysis.objectives import CROSSOVERS, OBJECTIVES
from analysis.rows import CrossoverRow, Unread, VerdictRow

_LONGEST = 100
"""Characters of a reason within a sentence on crossovers; the verdicts have all of it."""


def crossover_rows(rows: Sequence[VerdictRow], levels: Sequence[Level]) -> tuple[CrossoverRow, ...]:
    """Return one row an arm and objective, in the order of the verdict rows.

    None of counterfactual arms, nor of an objective that nobody asked to measure.
    """
    arms: dict[str, list[VerdictRow]] = {}
    for row in rows:
        if not row.counterfactual:
            arms.setdefault(row.arm, []).append(row)
    objectives = [
        name
        for name in CROSSOVERS
        if not OBJECTIVES[name].optional or any(level.fits[name].contrasts for level in levels)
    ]
    return tuple(_row(own, levels, name) for own in arms.values() for name in objectives)


def _row(own: list[VerdictRow], levels: Sequence[Level], objective: str) -> CrossoverRow:
    fitted = {(level.value, level.oversubscribed): level for level in levels}
    tried: list[float] = []
    means: list[float] = []
    used: list[Level | None] = []
    for row in sorted(own, key=lambda row: row.level):
        level = fitted.get((row.level, row.oversubscribed))
        contrast = None if level is None else level.fits[objective].contrasts.get(row.arm)
        if contrast is not None:
            means.append(contrast.estimate)
        elif row.capacity_failure:
            means.append(-np.inf)
        else:
            continue
        tried.append(row.level)
        used.append(level if contrast is not None else None)
    found = _crossover(tried, means, used, objective, own[0].arm)
    crowded = any(row.oversubscribed for row in own)
    unread = unread_levels(own, tried, objective)
    text = crossover_text(found, tried, AXES[own[0].axis], unread)
    return CrossoverRow(
        arm=own[0].arm,
        label=own[0].label,
        layout=own[0].layout,
        drafter=own[0].drafter,
        k=own[0].k,
        objective=objective,
        levels=tuple(tried),
        crossover=found,
        text=f"{text} (client and engine shared a core: an indication only)" if crowded else text,
        unread=unread,
        oversubscribed=crowded,
    )


def _crossover(
    tried: list[float], means: list[float], used: list[Level | None], objective: str, arm: str
) -> Crossover:
    present = [level for level in used if level is not None]
    known = level_covariance(present, objective, arm) if present else None
    if known is None:
        return find_crossover(tried, means)
    places = [index for index, level in enumerate(used) if level is not None]
    covariance = np.zeros(
        (len(tried), len(tried))
    )  # a level that failed for lack of capacity failed for certain
    covariance[np.ix_(places, places)] = known[0]
    df = np.full(len(tried), np.max(known[1]))
    df[places] = known[1]
    return find_crossover(tried, means, covariance, df if np.size(known[1]) > 1 else float(df[0]))


def unread_levels(rows: Sequence[VerdictRow], read: Collection[float], objective: str) -> tuple[Unread, ...]:
    """Return the levels of one arm's rows that are no point of its curve, ascending, each with why."""
    missing = f"no figure for {OBJECTIVES[objective].title} on both sides of any pair"
    return tuple(
        Unread(level=row.level, why=missing if row.blocks else row.reason)
        for row in sorted(rows, key=lambda row: row.level)
        if row.level not in read
    )


def crossover_text(
    found: Crossover, tried: Sequence[float], axis: Axis, unread: Sequence[Unread] = ()
) -> str:
    """Return the crossover in words.

    Args:
        found: the crossover.
        tried: levels of the curve, ascending.
        axis: of the levels.
        unread: levels that were tried, too, and gave no ratio.
    """
    told = [] if found.kind == UNKNOWN and unread else [_read_text(found, tried, axis, complete=not unread)]
    return "; ".join([*told, *_unread_texts(unread, axis)])


def _unread_texts(unread: Sequence[Unread], axis: Axis) -> list[str]:
    """Return a clause a reason, with its levels."""
    levels: dict[str, list[str]] = {}
    for entry in unread:
        levels.setdefault(entry.why, []).append(axis.at(entry.level))
    return [f"{', '.join(own)} gave no ratio ({_short(why)})" for why, own in levels.items()]


def _short(why: str) -> str:
    return why if len(why) <= _LONGEST else f"{why[: _LONGEST - 3].rstrip()}..."


def _read_text(found: Crossover, tried: Sequence[float], axis: Axis, *, complete: bool) -> str:
    if found.kind == UNKNOWN:
        return "no ratios"
    if found.kind in (ABOVE, BELOW):
        side = "above" if found.kind == ABOVE else "below"
        levels = "tried" if complete else "with a ratio"
        where = (
            f"at {axis.at(tried[0])}, the only level {levels}"
            if len(tried) == 1
            else f"from {axis.at(tried[0])} to {axis.at(tried[-1])}"
        )
        return f"not within the levels {levels}: {side} 1 {where}{_interval(found, tried)}"
    main = found.main or found.crossings[0]
    parts = [_bracket(main, axis) + (_interval(found, tried) if main.downward else "")]
    others = [crossing for crossing in found.crossings if crossing is not main]
    if others:
        parts.append("the curve also " + ", ".join(_bracket(crossing, axis) for crossing in others))
    return "; ".join(parts)


def _bracket(crossing: Crossing, axis: Axis) -> str:
    direction = "falls through 1" if crossing.downward else "rises through 1"
    text = f"{direction} between {axis.at(crossing.lower)} and {axis.at(crossing.upper)}"
    if crossing.log_log is None:
        return f"{text}, where memory ran out"
    points = [crossing.log_log, crossing.log_linear or crossing.log_log, crossing.linear or crossing.log_log]
    spread = f"{min(points):.3g} to {max(points):.3g}"
    return f"{text}, near {crossing.log_log:.3g} ({spread} by method)"


def _interval(found: Crossover, tried: Sequence[float]) -> str:
    low = (
        f"below {number(tried[0])}"
        if found.low_censored
        else None
        if found.low is None
        else f"{found.low:.3g}"
    )
    high = (
        f"above {number(tried[-1])}"
        if found.high_censored
        else None
        if found.high is None
        else f"{found.high:.3g}"
    )
    if low and high:
        return f" [95 %: {low} to {high}]"
    if low or high:
        return f" [95 %: {low or high}]"
    return ""
