"""Arms against baselines that were not measured together: Welch's interval on the log of the runs.

    ln ratio = mean ln y(arm) - mean ln y(baseline),   variances of the two sides apart

A replicate is a start of a server: runs of one start are averaged first (geometrically), as how far another
start would move them is not in their spread. Several arms share a baseline and are judged at once, so each
interval is Bonferroni's: whatever the arms' variances are, all of them hold with 95 %.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import stats

from analysis.fit import CONFIDENCE, Contrast, LevelFit
from analysis.pairs import log_metrics
from jobs.result import MEASURED, TREATMENT

NO_REPLICATE = (
    "no interval: it takes two runs or more of the arm and of its baseline, of server starts of their own"
)
ONE_START = (
    "no interval: all runs of {side} used one start of the server, and how far another would move them is "
    "unknown"
)
COPIES = "no interval: all runs of either side have the same figure, as copies of one would"


@dataclass(frozen=True, slots=True, kw_only=True)
class UnpairedContrast:
    """One arm against its baseline, of one objective at one level."""

    contrast: Contrast
    fit: LevelFit
    """Of this contrast alone: degrees of freedom are its own."""
    spread: float | None
    """Root mean square of the log ratio of two baseline replicates: what a ratio is between equals."""
    why: str = ""
    """Why there is no interval; empty where there is one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Side:
    """The runs of one arm at one level."""

    logs: np.ndarray
    """ln y of each run."""
    starts: np.ndarray
    """Server start of each run."""

    def replicates(self, *, trust_repeats: bool) -> np.ndarray:
        """Return one value a server start, or a run where repeats are trusted."""
        if trust_repeats:
            return self.logs
        return np.array([self.logs[self.starts == start].mean() for start in np.unique(self.starts)])

    @property
    def is_one_start(self) -> bool:
        """Whether several runs used one start of the server."""
        return self.logs.size > 1 and np.unique(self.starts).size == 1


def unpaired_contrasts(
    cells: pd.DataFrame, *, trust_repeats: bool = False
) -> dict[tuple[str, float, str], UnpairedContrast]:
    """Return the contrast of each arm that was measured, and whose baseline was.

    Args:
        cells: an `others_frame`.
        trust_repeats: take runs of one server start for replicates.

    Returns:
        By digest of the arm, level and objective.
    """
    logs = {name: values.to_numpy() for name, values in log_metrics(cells).items()}
    measured = cells["outcome"].eq(MEASURED).to_numpy(dtype=bool)
    arms, starts = (cells[name].to_numpy(dtype=str) for name in ("arm", "start"))
    levels = cells["level"].to_numpy(dtype=float)
    treated = cells["role"].eq(TREATMENT).to_numpy(dtype=bool)
    found: dict[tuple[str, float, str], UnpairedContrast] = {}
    for rows in cells.groupby(["pair", "level"], sort=True).indices.values():
        level = float(levels[rows[0]])
        for name, values in logs.items():
            used = rows[measured[rows] & np.isfinite(values[rows])]
            base, own = used[~treated[used]], used[treated[used]]
            if not base.size or not own.size:
                continue
            reference = _Side(logs=values[base], starts=starts[base])
            names = np.unique(arms[own])
            for arm in names:
                chosen = own[arms[own] == arm]
                side = _Side(logs=values[chosen], starts=starts[chosen])
                found[str(arm), level, str(name)] = _contrast(
                    side, reference, family=len(names), trust_repeats=trust_repeats
                )
    return found


def _contrast(side: _Side, base: _Side, *, family: int, trust_repeats: bool) -> UnpairedContrast:
    values, reference = (each.replicates(trust_repeats=trust_repeats) for each in (side, base))
    least = min(values.size, reference.size)
    error = critical = df = None
    why = ""
    if least < 2:
        why = _why({"the arm": side, "the baseline": base}, trust_repeats=trust_repeats)
    else:
        error = float(np.sqrt(values.var(ddof=1) / values.size + reference.var(ddof=1) / reference.size))
        if error > 0.0:
            df = float(stats.ttest_ind(values, reference, equal_var=False).df)
            critical = float(stats.t.ppf(1.0 - (1.0 - CONFIDENCE) / (2.0 * family), df))
        else:
            error, why = None, COPIES
    contrast = Contrast(
        estimate=float(values.mean() - reference.mean()),
        factor=1.0 / values.size + 1.0 / reference.size,
        pairs=least,
        family=family,
        correlation=0.0,
        error=error,
        critical=critical,
    )
    return UnpairedContrast(
        contrast=contrast,
        fit=LevelFit(contrasts={}, df=0 if df is None else max(1, int(df))),
        spread=float(np.sqrt(2.0) * np.std(reference, ddof=1)) if reference.size > 1 else None,
        why=why,
    )


def _why(sides: Mapping[str, _Side], *, trust_repeats: bool) -> str:
    repeated = [name for name, side in sides.items() if side.is_one_start]
    if repeated and not trust_repeats:
        return ONE_START.format(side=" and of ".join(repeated))
    return NO_REPLICATE
