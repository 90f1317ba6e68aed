"""Pairs: each speculative cell against the baseline of its own block, segment, layout and load level.

The denominator of a ratio is the geometric mean of the segment's opening and closing baseline, so that a
drift which is linear in time cancels. A pair never crosses segments: what was resumed later has baselines
of its own.
"""

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from analysis.objectives import OBJECTIVES
from jobs.result import CLOSING, MEASURED, OPENING, TREATMENT

STRATUM = ["pair", "block", "segment", "level"]
"""What a speculative cell shares with its baselines."""
LOGS = {name: f"log_{name}" for name in OBJECTIVES}
"""Objective -> column of the log ratio."""


def baselines(cells: pd.DataFrame) -> pd.DataFrame:
    """Return one row a stratum with its opening and closing baseline.

    Columns: those of `STRATUM`; `opening`, `closing` (cell ids, missing where not measured),
    `open_outcome`, `close_outcome`, `base_oversubscribed`; per objective `base_<name>` (mean log of those
    measured) and `aa_<name>` (ln closing/opening).
    """
    opened, closed = _side(cells, OPENING, "open"), _side(cells, CLOSING, "close")
    merged = opened.merge(closed, how="outer", on=STRATUM, validate="one_to_one")
    table = merged[[*STRATUM, OPENING, CLOSING, "open_outcome", "close_outcome"]].copy()
    crowded = [merged[f"{side}_oversubscribed"].eq(True) for side in ("open", "close")]
    table["base_oversubscribed"] = crowded[0] | crowded[1]
    first, last = (
        merged[[f"{side}_{name}" for name in OBJECTIVES]].to_numpy(dtype=float) for side in ("open", "close")
    )
    either = np.where(np.isnan(first), last, first)  # the one that was measured, where one was
    base = np.where(np.isnan(first + last), either, (first + last) / 2.0)
    figures = {
        **{f"base_{name}": base[:, column] for column, name in enumerate(OBJECTIVES)},
        **{f"aa_{name}": (last - first)[:, column] for column, name in enumerate(OBJECTIVES)},
    }
    return pd.concat([table, pd.DataFrame(figures, index=table.index)], axis=1)


def pairs_frame(cells: pd.DataFrame, sides: pd.DataFrame | None = None) -> pd.DataFrame:
    """Return one row a speculative cell: its baselines, whether the pair is valid, and its log ratios.

    `sides` are the cells' `baselines`, where they are known already.

    Columns: identity of the cell (`cell` to `segment` of `cells_frame`), `outcome`, `cause`, `opening`,
    `closing`, `valid`, `why` (of an invalid pair), `caveat`, `oversubscribed` (either side), and
    `log_<objective>`, missing where the pair is invalid or either side lacks the metric.
    """
    kept = ["cell", "arm", "label", "pair", "layout", "drafter", "k", "level", "block", "segment"]
    treated = cells[cells["role"] == TREATMENT]
    facts = treated[[*kept, "outcome", "cause", "reason", "oversubscribed"]]
    left = pd.concat([facts, log_metrics(treated).add_prefix("own_")], axis=1)
    sides = baselines(cells) if sides is None else sides
    merged = left.merge(sides, how="left", on=STRATUM, validate="many_to_one")
    has_open, has_close = merged[OPENING].notna(), merged[CLOSING].notna()
    table = merged[[*kept, "outcome", "cause", OPENING, CLOSING]].copy()
    table["valid"] = merged["outcome"].eq(MEASURED) & (has_open | has_close)
    lost = ~table["valid"]
    table["why"] = None
    table.loc[lost, "why"] = [_why(row) for row in merged[lost].to_dict("records")]
    table["caveat"] = None
    for role, other, missing in ((CLOSING, OPENING, ~has_close), (OPENING, CLOSING, ~has_open)):
        table.loc[table["valid"] & missing, "caveat"] = f"no {role} baseline: the {other} one stands alone"
    table["oversubscribed"] = merged["oversubscribed"].astype(bool) | merged["base_oversubscribed"].eq(True)
    own, base = (
        merged[[f"{side}_{name}" for name in LOGS]].to_numpy(dtype=float) for side in ("own", "base")
    )
    logs = np.where(table["valid"].to_numpy(dtype=bool)[:, None], own - base, np.nan)
    return pd.concat([table, pd.DataFrame(logs, index=table.index, columns=list(LOGS.values()))], axis=1)


def aa_spreads(cells: pd.DataFrame) -> dict[str, float | None]:
    """Return the A/A spread by objective: root mean square of the baselines' ln(close/open).

    None where no segment has both.
    """
    return spreads_of(baselines(cells))


def spreads_of(table: pd.DataFrame) -> dict[str, float | None]:
    """Return the same of rows of `baselines`."""
    differences = table[[f"aa_{name}" for name in OBJECTIVES]].to_numpy(dtype=float)
    found: dict[str, float | None] = {}
    for name, own in zip(OBJECTIVES, differences.T, strict=True):
        known = own[~np.isnan(own)]
        found[name] = float(np.sqrt(np.mean(known**2))) if known.size else None
    return found


def log_metrics(cells: pd.DataFrame) -> pd.DataFrame:
    """Return the natural log of each objective's metric; missing where it is absent or not positive."""
    values = cells[[objective.metric for objective in OBJECTIVES.values()]].to_numpy(dtype=float)
    return pd.DataFrame(_logs(values), index=cells.index, columns=list(OBJECTIVES))


def log_metric(cells: pd.DataFrame, name: str) -> pd.Series:
    """Return one objective's column of `log_metrics`."""
    return pd.Series(_logs(cells[OBJECTIVES[name].metric].to_numpy(dtype=float)), index=cells.index)


def _logs(values: np.ndarray) -> np.ndarray:
    logs: np.ndarray = np.log(values, out=np.full(values.shape, np.nan), where=values > 0.0)
    return logs


def _side(cells: pd.DataFrame, role: str, side: str) -> pd.DataFrame:
    part = cells[cells["role"] == role]
    measured = part["outcome"] == MEASURED
    facts = pd.DataFrame(
        {
            role: part["cell"].where(measured),
            f"{side}_outcome": part["outcome"],
            f"{side}_oversubscribed": part["oversubscribed"],
        }
    )
    logs = log_metrics(part).where(measured).add_prefix(f"{side}_")
    return pd.concat([part[STRATUM], facts, logs], axis=1)


def _why(row: Mapping[Hashable, Any]) -> str | None:
    """Say why a merged row is no valid pair; None if it is one."""
    if row["outcome"] != MEASURED:
        told = [part for part in (row["cause"], row["reason"]) if isinstance(part, str) and part]
        return f"{row['outcome']}: {': '.join(told)}" if told else str(row["outcome"])
    if isinstance(row[OPENING], str) or isinstance(row[CLOSING], str):
        return None
    sides = {OPENING: row["open_outcome"], CLOSING: row["close_outcome"]}
    told = [f"{role} {outcome}" for role, outcome in sides.items() if isinstance(outcome, str)]
    return f"its baseline was not measured ({', '.join(told) or 'none in its segment'})"
