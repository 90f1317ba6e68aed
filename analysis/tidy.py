"""Verdicts and crossovers as tidy frames, for notebooks."""

from dataclasses import fields
from typing import Any

import pandas as pd

from analysis.contrasts import counted
from analysis.crossings import crossover_rows
from analysis.frame import THRESHOLD
from analysis.levels import fit_levels
from analysis.objectives import DEFAULT, OBJECTIVES, check_objective
from analysis.rows import CrossoverRow, Ratio, VerdictRow
from analysis.table import verdict_rows

VERDICT_COLUMNS: dict[str, str] = {
    "label": "name of the arm, unique within the sweep",
    "arm": "digest of the arm",
    "pair": "what it shares with its baseline",
    "layout": "layout of the arm",
    "drafter": "drafter method",
    "k": "draft length, tokens",
    "axis": "what the level is a number of",
    "level": "the load level",
    "blocks": "pairs that the verdict rests on",
    "verdict": "`wins`, `loses`, `no difference`, `undecided`, `invalid` or `no verdict`",
    "reason": "why, in words",
    "threshold": "ratios within 1/(1 + t) and 1 + t count as no difference, as a share",
    **{
        name: f"ratio of {objective.title} to the baseline (simultaneous 95 % interval)"
        for name, objective in OBJECTIVES.items()
    },
    "mal": "mean acceptance length, tokens per verification step",
    "step_ratio": "length of a step over the baseline's, by the user's clock",
    "uncached_share_ratio": "uncached share of the tokens over the baseline's; 1 with equal hit rates",
    "sign_flip_p": "two-sided p of the sign-flip test; decides nothing",
    "more_blocks": "of an undecided row: further blocks that would decide it",
    "capacity_failure": "memory ran out: a loss where crossovers are looked for",
    "emulated": "whether an emulated engine made the figures",
    "synthetic": "whether acceptance was forced",
    "counterfactual": "of an engine nobody would serve with; empty of others",
    "oversubscribed": "whether client and engine shared a core: no verdict",
    "caveats": "what has to be said with the row: a tuple of sentences",
}
"""Columns of `verdicts`; a ratio is followed by its `_lo` and `_hi`."""
CROSSOVER_COLUMNS: dict[str, str] = {
    "label": "name of the arm, unique within the sweep",
    "arm": "digest of the arm",
    "layout": "layout of the arm",
    "drafter": "drafter method",
    "k": "draft length, tokens",
    "objective": "whose ratio passes 1: a name of analysis.objectives.OBJECTIVES",
    "kind": "`crosses`; `above` or `below` 1 at every level tried; `unknown`",
    "crossover": "level of the first downward crossing, log ratio over log level (95 % interval)",
    "lower": "highest level tried before it",
    "upper": "lowest level tried after it",
    "low_censored": "the interval reaches below the lowest level tried",
    "high_censored": "the interval reaches above the highest level tried",
    "crossings": "places where the curve passes 1, upward ones included",
    "linear": "the same point by linear interpolation of the ratio: the spread of the method",
    "log_linear": "the same by log ratio over level",
    "text": "all of it in a sentence",
    "oversubscribed": "whether client and engine shared a core: an indication only",
}
"""Columns of `crossovers`; `crossover` is followed by its `_lo` and `_hi`."""


def verdicts(cells: pd.DataFrame, *, threshold: float = THRESHOLD, objective: str = DEFAULT) -> pd.DataFrame:
    """Return a row an arm and level: its verdict and its ratios; columns are those of `VERDICT_COLUMNS`.

    Args:
        cells: `cells_frame` of one sweep.
        threshold: practical threshold, as a share.
        objective: what the verdicts are on: a name in `OBJECTIVES`.

    Raises:
        ValueError: an unknown objective.
    """
    rows = [_verdict(row) for row in _rows(cells, threshold, objective)[0]]
    return pd.DataFrame(rows, columns=_names(VERDICT_COLUMNS, tuple(OBJECTIVES)))


def crossovers(cells: pd.DataFrame) -> pd.DataFrame:
    """Return a row an arm and objective: where its ratio passes 1; columns are those of `CROSSOVER_COLUMNS`.

    Args:
        cells: `cells_frame` of one sweep.
    """
    rows, levels = _rows(cells, 0.02, DEFAULT)
    found = [_crossover(row) for row in crossover_rows(rows, levels)]
    return pd.DataFrame(found, columns=_names(CROSSOVER_COLUMNS, ("crossover",)))


def _rows(cells: pd.DataFrame, threshold: float, objective: str) -> tuple[tuple[VerdictRow, ...], list[Any]]:
    check_objective(objective)
    planned = counted(cells)
    levels = fit_levels(planned)
    return verdict_rows(planned, levels, threshold=threshold, objective=objective), levels


def _verdict(row: VerdictRow) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for field in fields(row):
        value = getattr(row, field.name)
        if field.name in OBJECTIVES:
            found |= _ends(field.name, value)
        elif field.name in VERDICT_COLUMNS:
            found[field.name] = value
    return found


def _ends(name: str, ratio: Ratio | None) -> dict[str, float | None]:
    if ratio is None:
        return {}
    return {name: ratio.value, f"{name}_lo": ratio.lo, f"{name}_hi": ratio.hi}


def _crossover(row: CrossoverRow) -> dict[str, Any]:
    found, main = row.crossover, row.crossover.main
    return {
        **{name: getattr(row, name) for name in ("label", "arm", "layout", "drafter", "k", "objective")},
        "kind": found.kind,
        "crossover": None if main is None else main.log_log,
        "crossover_lo": found.low,
        "crossover_hi": found.high,
        "lower": None if main is None else main.lower,
        "upper": None if main is None else main.upper,
        "low_censored": found.low_censored,
        "high_censored": found.high_censored,
        "crossings": len(found.crossings),
        "linear": None if main is None else main.linear,
        "log_linear": None if main is None else main.log_linear,
        "text": row.text,
        "oversubscribed": row.oversubscribed,
    }


def _names(columns: dict[str, str], figures: tuple[str, ...]) -> list[str]:
    return [
        part
        for name in columns
        for part in ([name, f"{name}_lo", f"{name}_hi"] if name in figures else [name])
    ]
