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
from analysis.objectives import OBJECTIVES
from analysis.pairs import log_metric
from jobs.result import MEASURED, TREATMENT

NO_REPLICATE = (
    "no interval: it takes two runs or more of the arm and of its baseline, of server starts of their own"
)
ONE_START = (
    "no interval: all runs of {side} used one start of the server, and how far another would move them is "
    "unknown"
)


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


def contrasts_of(
    cells: pd.DataFrame, *, trust_repeats: bool = False
) -> dict[tuple[str, float, str], UnpairedContrast]:
    """Return every contrast of an `others_frame` by arm, level and objective; see `unpaired_contrasts`."""
    return {
        (arm, float(level), name): found
        for (_, level), group in cells.groupby(["pair", "level"], sort=True)
        for name in OBJECTIVES
        for arm, found in unpaired_contrasts(group, name, trust_repeats=trust_repeats).items()
    }


def unpaired_contrasts(
    cells: pd.DataFrame, objective: str, *, trust_repeats: bool = False
) -> dict[str, UnpairedContrast]:
    """Return the contrast of each arm that was measured, and whose baseline was, by the arm's digest.

    Args:
        cells: rows of `others_frame`, of one level and one pair key.
        objective: a name in `analysis.objectives.OBJECTIVES`.
        trust_repeats: take runs of one server start for replicates.
    """
    logs = log_metric(cells, objective)
    usable = cells["outcome"].eq(MEASURED) & logs.notna()
    used = cells[usable].assign(log=logs[usable])
    base = used[used["role"] != TREATMENT]
    if base.empty:
        return {}
    treated = {str(arm): rows for arm, rows in used[used["role"] == TREATMENT].groupby("arm", sort=True)}
    reference = _replicates(base, trust_repeats=trust_repeats)
    spread = float(np.sqrt(2.0) * np.std(reference, ddof=1)) if reference.size > 1 else None
    return {
        arm: _contrast(rows, base, reference, spread, family=len(treated), trust_repeats=trust_repeats)
        for arm, rows in treated.items()
    }


def _replicates(rows: pd.DataFrame, *, trust_repeats: bool) -> np.ndarray:
    values = rows["log"] if trust_repeats else rows.groupby("start", sort=True)["log"].mean()
    return values.to_numpy(dtype=float)


def _contrast(
    rows: pd.DataFrame,
    base: pd.DataFrame,
    reference: np.ndarray,
    spread: float | None,
    *,
    family: int,
    trust_repeats: bool,
) -> UnpairedContrast:
    values = _replicates(rows, trust_repeats=trust_repeats)
    estimate = float(values.mean() - reference.mean())
    least = min(values.size, reference.size)
    error = critical = df = None
    why = ""
    if least < 2:
        why = _why({"the arm": rows, "the baseline": base}, trust_repeats=trust_repeats)
    else:
        error = float(np.sqrt(values.var(ddof=1) / values.size + reference.var(ddof=1) / reference.size))
        df = float(stats.ttest_ind(values, reference, equal_var=False).df) if error > 0.0 else None
        if df is None:
            error, why = (
                None,
                "no interval: all runs of either side have the same figure, as copies of one would",
            )
        else:
            critical = float(stats.t.ppf(1.0 - (1.0 - CONFIDENCE) / (2.0 * family), df))
    contrast = Contrast(
        estimate=estimate,
        factor=1.0 / values.size + 1.0 / reference.size,
        pairs=least,
        family=family,
        correlation=0.0,
        error=error,
        critical=critical,
    )
    fit = LevelFit(contrasts={}, df=0 if df is None else max(1, int(df)))
    return UnpairedContrast(contrast=contrast, fit=fit, spread=spread, why=why)


def _why(sides: Mapping[str, pd.DataFrame], *, trust_repeats: bool) -> str:
    repeated = [name for name, rows in sides.items() if len(rows) > 1 and rows["start"].nunique() == 1]
    if repeated and not trust_repeats:
        return ONE_START.format(side=" and of ".join(repeated))
    return NO_REPLICATE
