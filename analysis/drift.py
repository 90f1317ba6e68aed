"""Drift: what happened to the baseline between the opening and the closing of its blocks.

The same engine twice, so ln(close/open) should scatter around 0. Its root mean square is the A/A spread that
a verdict has to beat. Its sign says more. A mean off 0 is either a drift that is alike in every block, which
the balanced order of the arms keeps out of the ratios, or what the arms leave to whatever runs after them,
which is in the closing baseline and so biases a ratio by half of it. A slope over the blocks says that one or
the other is changing.
"""

import math
from collections.abc import Iterator

import numpy as np
import pandas as pd
from scipy import stats

from analysis.contrasts import counted
from analysis.formulas import ratio_of
from analysis.frame import Sweep
from analysis.levels import conditions
from analysis.objectives import DEFAULT, OBJECTIVES
from analysis.pairs import baselines
from analysis.section import Section

CONFIDENCE = 0.95
COLUMNS = {
    "baseline": "name of the baseline",
    "pair": "what the baseline's arms share with it",
    "objective": "whose figure it is",
    "level": "load level; missing in the row over all levels (a segment's mean over its levels is one value)",
    "segments": "segments of blocks that have both baselines",
    "close_open": "closing over opening baseline, geometric mean (95 % t interval over the segments)",
    "spread": "A/A spread: root mean square of ln(close/open), as a share",
    "per_block": "change of ln(close/open) from a block to the next, as a share (95 % interval of the "
    "slope); needs three blocks",
    "oversubscribed": "client and engine shared a core",
}
NOTE = (
    "the A/A spread is the root mean square of ln(close/open) of the baselines; a mean off 1 is drift, which "
    "the balanced order of the arms keeps out of the ratios, or what arms leave to the closing baseline, "
    "which moves a ratio by half of it the other way; intervals are of one row each"
)
MISSING = (
    "no segment has both an opening and a closing baseline that were measured; the same `specload sweep` "
    "measures what is missing"
)


def drift(sweep: Sweep) -> Section:
    """Return one row a baseline, objective and level, and one over all levels."""
    cells = counted(sweep.cells)
    objectives = tuple(dict.fromkeys((str(sweep.plan.get("objective") or DEFAULT), DEFAULT, "user_speed")))
    frame = drift_frame(cells, objectives)
    return Section(
        name="drift",
        title="Drift of the baselines",
        frame=frame,
        columns=COLUMNS,
        shown=tuple(
            name
            for name in COLUMNS
            if name != "pair" and (name != "oversubscribed" or frame["oversubscribed"].any())
        ),
        notes=(NOTE, *_warnings(frame)) if len(frame) else (),
        missing=MISSING,
    )


def drift_frame(cells: pd.DataFrame, objectives: tuple[str, ...] = (DEFAULT,)) -> pd.DataFrame:
    """Return the rows of the section from a table of cells."""
    tables = [baselines(group).assign(oversubscribed=crowded) for _, crowded, group in conditions(cells)]
    if not tables:
        return pd.DataFrame(columns=_names())
    table = pd.concat(tables, ignore_index=True)
    labels = cells[cells["k"] == 0].drop_duplicates("pair").set_index("pair")["label"]
    rows = [
        {"baseline": str(labels.get(pair, pair)), "pair": str(pair), "oversubscribed": bool(crowded)} | row
        for (pair, crowded), own in table.groupby(["pair", "oversubscribed"], sort=True)
        for name in objectives
        for row in _rows(own, name)
    ]
    return pd.DataFrame(rows, columns=_names())


def _names() -> list[str]:
    with_ends = ("close_open", "per_block")
    return [
        end
        for name in COLUMNS
        for end in ([name, f"{name}_lo", f"{name}_hi"] if name in with_ends else [name])
    ]


def _rows(own: pd.DataFrame, objective: str) -> Iterator[dict[str, object]]:
    known = own.dropna(subset=[f"aa_{objective}"])
    if known.empty:
        return
    title = OBJECTIVES[objective].title
    if known["level"].nunique() > 1:
        means = known.groupby(["block", "segment"])[[f"aa_{objective}"]].mean().reset_index()
        yield {"objective": title, "level": math.nan} | _figures(means, objective)
    for level, part in known.groupby("level", sort=True):
        yield {"objective": title, "level": float(str(level))} | _figures(part, objective)


def _figures(part: pd.DataFrame, objective: str) -> dict[str, object]:
    values = part[f"aa_{objective}"].to_numpy(dtype=float)
    mean, low, high = _mean(values)
    slope, slope_low, slope_high = _slope(part["block"].to_numpy(dtype=float), values)
    return {
        "segments": len(values),
        "close_open": math.exp(mean),
        "close_open_lo": ratio_of(low),
        "close_open_hi": ratio_of(high),
        "spread": math.expm1(float(np.sqrt(np.mean(values**2)))),
        "per_block": slope,
        "per_block_lo": slope_low,
        "per_block_hi": slope_high,
    }


def _mean(values: np.ndarray) -> tuple[float, float, float]:
    mean = float(values.mean())
    if len(values) < 2:
        return mean, math.nan, math.nan
    half = float(stats.sem(values) * stats.t.ppf((1.0 + CONFIDENCE) / 2.0, len(values) - 1))
    return mean, mean - half, mean + half


def _slope(blocks: np.ndarray, values: np.ndarray) -> tuple[float, float, float]:
    if len(np.unique(blocks)) < 3:
        return math.nan, math.nan, math.nan
    line = stats.linregress(blocks, values)
    half = float(line.stderr * stats.t.ppf((1.0 + CONFIDENCE) / 2.0, len(values) - 2))
    return float(line.slope), float(line.slope) - half, float(line.slope) + half


def _warnings(frame: pd.DataFrame) -> Iterator[str]:
    """Say where a baseline drifted; of several levels only the row over all of them is a test by itself."""
    for (baseline, objective, crowded), own in frame.groupby(["baseline", "objective", "oversubscribed"]):
        row = own[own["level"].isna()].iloc[0] if own["level"].isna().any() else own.iloc[0]
        where = f"{baseline}{', client and engine on a shared core' if crowded else ''}"
        if row["close_open_lo"] > 1.0 or row["close_open_hi"] < 1.0:
            low, high = row["close_open_lo"] - 1.0, row["close_open_hi"] - 1.0
            yield (
                f"{where}: the closing baseline's {objective} was {row['close_open'] - 1.0:+.1%} off the "
                f"opening one's [{low:+.1%}, {high:+.1%}]: steady drift within blocks, or arms that leave "
                "something behind"
            )
        if row["per_block_lo"] > 0.0 or row["per_block_hi"] < 0.0:
            yield (
                f"{where}: close/open of {objective} changed by {row['per_block']:+.2%} "
                f"[{row['per_block_lo']:+.2%}, {row['per_block_hi']:+.2%}] from block to block"
            )
