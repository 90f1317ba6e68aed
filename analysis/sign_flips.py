"""Interactions that flip a sign: a drafter that pays on one layout and costs on another."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from analysis.factors import BASELINE, TREATMENT
from analysis.objectives import OBJECTIVES

FLIP_COLUMNS: dict[str, str] = {
    "objective": "what is compared: a name of analysis.objectives.OBJECTIVES",
    "per_device": "load level per device of the slice",
    "held": "what else was swept, and its value here",
    "treatment": "drafter with its K",
    "gains_at": "levels of the other factors where its gain is largest",
    "gain": "ratio to the baseline there (95 % interval)",
    "loses_at": "levels of the other factors where its loss is largest",
    "loss": "ratio to the baseline there (95 % interval)",
    "sure": "whether both intervals lie on their side of 1",
}
"""Columns of `flips`."""


def flips(combinations: pd.DataFrame, *, threshold: float = 0.02) -> pd.DataFrame:
    """Return the treatments whose ratio to the baseline changes sides between levels of the other factors.

    Both sides have to be beyond the practical threshold, or beyond 1 by their intervals. Columns are those
    of `FLIP_COLUMNS`.

    Args:
        combinations: of `analysis.factorial.combinations`, with the treatment among the factors.
        threshold: below which a difference does not matter, as a share.
    """
    rows = []
    if TREATMENT in combinations.columns:
        treated = combinations[(combinations[TREATMENT] != BASELINE) & combinations["ratio"].notna()]
        for key, group in treated.groupby(["objective", "per_device", "held", TREATMENT], sort=True):
            row = _flip(group.to_dict("records"), _others(combinations), threshold)
            if row is not None:
                rows.append(dict(zip(("objective", "per_device", "held", TREATMENT), key, strict=True)) | row)
    names = [
        part
        for name in FLIP_COLUMNS
        for part in ([name, f"{name}_lo", f"{name}_hi"] if name in ("gain", "loss") else [name])
    ]
    return pd.DataFrame(rows, columns=names)


def flip_text(row: Mapping[str, Any], at: str) -> str:
    """Return a row of `flips` as a warning.

    Args:
        row: as a mapping.
        at: the load per device, in words.
    """
    metric = OBJECTIVES[str(row["objective"])].title
    held = f" ({row['held']})" if row["held"] else ""
    shown = "by their intervals" if row["sure"] else "by the estimates; their intervals do not settle it"
    return (
        f"the interaction flips a sign: {at}{held}, {metric} with {row['treatment']} is "
        f"{_figure(row, 'gain')} times the baseline's at {row['gains_at']} and {_figure(row, 'loss')} times "
        f"at {row['loses_at']} ({shown}), so what was found at one does not hold at the other"
    )


def _flip(
    rows: Sequence[Mapping[Any, Any]], others: Sequence[str], threshold: float
) -> dict[str, Any] | None:
    sign = 1.0 if OBJECTIVES[str(rows[0]["objective"])].higher_is_better else -1.0
    ordered = sorted(rows, key=lambda row: sign * math.log(float(row["ratio"])))
    loss, gain = ordered[0], ordered[-1]
    gains, loses = _side(gain, sign, threshold), _side(loss, -sign, threshold)
    if not (gains and loses):
        return None
    return {
        "gains_at": _place(gain, others),
        **{f"gain{end}": gain[f"ratio{end}"] for end in ("", "_lo", "_hi")},
        "loses_at": _place(loss, others),
        **{f"loss{end}": loss[f"ratio{end}"] for end in ("", "_lo", "_hi")},
        "sure": _sure(gain, sign) and _sure(loss, -sign),
    }


def _side(row: Mapping[Any, Any], sign: float, threshold: float) -> bool:
    """Whether a ratio lies on this side of 1, so far that it matters or so surely that it is no chance."""
    log = sign * math.log(float(row["ratio"]))
    return log > math.log1p(threshold) or (log > 0.0 and _sure(row, sign))


def _sure(row: Mapping[Any, Any], sign: float) -> bool:
    near = float(row["ratio_lo"] if sign > 0.0 else row["ratio_hi"])
    return sign * (near - 1.0) > 0.0


def _others(combinations: pd.DataFrame) -> list[str]:
    """Return the factors beside the treatment: the columns between `held` and `value`."""
    names = [str(name) for name in combinations.columns]
    between = names[names.index("held") + 1 : names.index("value")]
    return [name for name in between if name != TREATMENT]


def _place(row: Mapping[Any, Any], others: Sequence[str]) -> str:
    return ", ".join(str(row[name]) for name in others)


def _figure(row: Mapping[str, Any], name: str) -> str:
    low, high = float(row[f"{name}_lo"]), float(row[f"{name}_hi"])
    interval = "" if math.isnan(low) else f" [{low:.3f}, {high:.3f}]"
    return f"{float(row[name]):.3f}{interval}"
