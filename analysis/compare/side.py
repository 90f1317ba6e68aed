"""One of the two sweeps, fitted: its levels, verdict rows and crossovers."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from analysis.contrasts import Contrasts, contrasts, counted, log_figure
from analysis.crossings import crossover_rows
from analysis.frame import Sweep
from analysis.ksweep import level_figures
from analysis.levels import Level, conditions, planned_levels
from analysis.rows import CrossoverRow, VerdictRow
from analysis.table import planned_rows

Place = tuple[float, bool]
"""A load level, and whether client and engine shared a core there."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Side:
    """A sweep of a comparison."""

    letter: str
    """`A` or `B`: what its columns and sentences call it."""
    sweep: Sweep
    cells: pd.DataFrame
    """Its cells that analyses count."""
    levels: Mapping[Place, Level]
    rows: Mapping[tuple[str, float], VerdictRow]
    """By arm and level."""
    crossings: Mapping[tuple[str, str], CrossoverRow]
    """By arm and objective."""
    parts: Mapping[Place, Mapping[str, Contrasts]]
    """Logs over the baseline that explain a ratio: figures of `analysis.ksweep.level_figures`, and `mal`."""

    @property
    def name(self) -> str:
        """Name of the sweep."""
        return str(self.sweep.plan.get("sweep") or self.sweep.directory.name)


def prepare(letter: str, sweep: Sweep, *, objective: str, threshold: float) -> Side:
    """Fit a sweep.

    Args:
        letter: `A` or `B`.
        sweep: with a cell at least.
        objective: what the verdicts are on.
        threshold: practical threshold, as a share.
    """
    cells = counted(sweep.cells)
    levels = planned_levels(sweep)
    rows = planned_rows(sweep, threshold=threshold, objective=objective)
    return Side(
        letter=letter,
        sweep=sweep,
        cells=cells,
        levels={(level.value, level.oversubscribed): level for level in levels},
        rows={(row.arm, row.level): row for row in rows},
        crossings={(row.arm, row.objective): row for row in crossover_rows(rows, levels)},
        parts={
            (value, crowded): contrasts(group, level_figures(group) | {"mal": _lengths(group)})
            for value, crowded, group in conditions(cells)
        },
    )


def _lengths(group: pd.DataFrame) -> np.ndarray:
    """Return the log of each cell's mean acceptance length; a plain step yields one token."""
    logs = log_figure(group, "spec/mal")
    plain = (group["k"] == 0).to_numpy(dtype=bool)
    filled: np.ndarray = np.where(plain & np.isnan(logs), 0.0, logs)
    return filled
