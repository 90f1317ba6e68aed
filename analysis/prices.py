"""What measuring costs: seconds of an engine start and of a cell, by what they took so far."""

from dataclasses import dataclass
from typing import Self

import numpy as np
import pandas as pd

from jobs.result import INVALID, MEASURED

START, CELL = 120.0, 180.0
"""Seconds where nothing was timed yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """Mean times of a sweep."""

    start: float = START
    """Seconds of an engine start."""
    levels: tuple[float, ...] = (1.0,)
    """Levels with a timed cell, ascending."""
    cells: tuple[float, ...] = (CELL,)
    """Seconds of a cell at each; between them the log of the level tells."""

    @classmethod
    def of(cls, cells: pd.DataFrame) -> Self:
        """Return the mean times of a `cells_frame`; cells that failed say nothing."""
        timed = cells[cells["outcome"].isin([MEASURED, INVALID]) & (cells["seconds"] > 0.0)]
        if timed.empty:
            return cls()
        means = timed.groupby("level")["seconds"].mean().sort_index()
        starts = timed["start_seconds"].astype(float).mean()
        return cls(
            start=START if pd.isna(starts) else float(starts),
            levels=tuple(float(level) for level in means.index),
            cells=tuple(float(value) for value in means),
        )

    def block(self, levels: tuple[float, ...]) -> float:
        """Return the seconds of a block of one arm and its two baselines at these levels."""
        cells = np.interp(np.log(levels), np.log(self.levels), self.cells)
        return 3.0 * (self.start + float(cells.sum()))
