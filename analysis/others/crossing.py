"""Crossovers of runs that are not paired, in the rows of a sweep's own."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from analysis.axis import AXES
from analysis.crossings import crossover_text, unread_levels
from analysis.crossover import Crossover, find_crossover
from analysis.objectives import CROSSOVERS
from analysis.others.welch import UnpairedContrast, unpaired_contrasts
from analysis.rows import CrossoverRow, VerdictRow


def unpaired_crossovers(
    cells: pd.DataFrame, rows: Sequence[VerdictRow], *, trust_repeats: bool = False
) -> tuple[CrossoverRow, ...]:
    """Return where each arm's ratio passes 1, one row an arm and objective, in the order of the rows.

    Whether the errors of two levels go together is not in such data. Both extremes are simulated, none and
    all, and the wider end of either is given. Without an interval at every level there is none here.
    """
    contrasts = unpaired_contrasts(cells, trust_repeats=trust_repeats)
    arms: dict[str, list[VerdictRow]] = {}
    for row in rows:
        arms.setdefault(row.arm, []).append(row)
    crossings = []
    for arm, own in arms.items():
        for name in CROSSOVERS:
            levels = [row.level for row in own if (arm, row.level, name) in contrasts]
            if not levels:
                continue  # the files do not give this figure
            used = [contrasts[arm, level, name] for level in levels]
            crossover = _crossover(levels, used)
            unread = unread_levels(own, levels, name)
            crossings.append(
                CrossoverRow(
                    arm=arm,
                    label=own[0].label,
                    layout=own[0].layout,
                    drafter=own[0].drafter,
                    k=own[0].k,
                    objective=name,
                    levels=tuple(levels),
                    crossover=crossover,
                    text=crossover_text(crossover, levels, AXES[own[0].axis], unread),
                    unread=unread,
                )
            )
    return tuple(crossings)


def _crossover(levels: list[float], used: list[UnpairedContrast]) -> Crossover:
    means = [found.contrast.estimate for found in used]
    known = [found.contrast.error for found in used]
    errors = np.array([np.nan if error is None else error for error in known])
    df = min(found.fit.df for found in used)
    if not np.isfinite(errors).all():
        return find_crossover(levels, means)
    apart = find_crossover(levels, means, np.diag(errors**2), float(df))
    together = find_crossover(levels, means, np.outer(errors, errors), float(df))
    return Crossover(
        kind=apart.kind,
        crossings=apart.crossings,
        low=_outer(apart.low, together.low, least=True),
        high=_outer(apart.high, together.high, least=False),
        low_censored=apart.low_censored or together.low_censored,
        high_censored=apart.high_censored or together.high_censored,
    )


def _outer(first: float | None, second: float | None, *, least: bool) -> float | None:
    """Return the end that is further out; None, beyond the levels, is further than any."""
    if first is None or second is None:
        return None
    return min(first, second) if least else max(first, second)
