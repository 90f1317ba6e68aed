"""Goodput: requests answered within the limits of a service-level objective, against the baseline.

Cells carry the figures for the limits of their design; for others they are counted anew from the requests.
Failures are misses, and so are answers beyond a limit; an answer in one chunk has no TPOT and breaks none.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from analysis.contrasts import counted
from analysis.errors import ResultsError
from analysis.fit import fit_values
from analysis.formulas import LARGEST_LOG
from analysis.frame import Sweep
from analysis.levels import conditions
from analysis.points import figure, points_of
from analysis.section import Section

SHARE = "slo/goodput_share"
RATE = "slo/goodput_req_s"
LIMITS = ("ttft_ms", "tpot_ms", "e2el_ms")

COLUMNS = {
    "label": "arm",
    "level": "load level, a number on the sweep's axis",
    "share": "requests within the limits over all sent, failures counted as misses, with its 95 % interval",
    "rate": "requests/s within the limits, by dispatch in the steady window, with its 95 % interval",
    "ratio": "rate over the baseline's within blocks, with its 95 % interval; missing for baselines, and "
    "where either side had none",
    "synthetic": "whether acceptance was forced",
    "emulated": "whether an emulated engine made the figures",
}


def limits_of(plan: Mapping[str, Any]) -> dict[str, float]:
    """Return the limits that a plan's cells were counted by, those that are set."""
    return {name: float(limit) for name, limit in (plan.get("slo") or {}).items() if limit is not None}


def within(requests: pd.DataFrame, limits: Mapping[str, float]) -> np.ndarray:
    """Return which requests succeeded within the limits.

    Args:
        requests: rows with `error` and a column of latencies for each limit, in ms.
        limits: `ttft_ms`, `tpot_ms`, `e2el_ms`, as far as they are set.

    Raises:
        ValueError: a limit that is none, or not positive.
    """
    good = requests["error"].isna().to_numpy(dtype=bool, copy=True)
    for name, limit in limits.items():
        if name not in LIMITS or not limit > 0.0:
            message = f"limit {name} = {limit} ms is none; limits are {', '.join(LIMITS)}, more than 0"
            raise ValueError(message)
        latency = requests[name].to_numpy(dtype=float)
        passed = latency <= limit
        good &= passed | np.isnan(latency) if name == "tpot_ms" else passed
    return good


def with_limits(sweep: Sweep, limits: Mapping[str, float]) -> Sweep:
    """Return the sweep with its goodput counted anew from the requests, by other limits.

    Raises:
        ValueError: no limit, or one that is not positive.
        ResultsError: requests of a cell are missing or damaged.
    """
    if not limits:
        message = f"no limit is given; goodput needs one of {', '.join(LIMITS)}"
        raise ValueError(message)
    requests = sweep.requests(columns=["error", "in_window", *limits])
    good = within(requests, limits)
    counts = pd.DataFrame(
        {"cell": requests["cell"], "good": good, "inside": good & requests["in_window"].to_numpy(dtype=bool)}
    ).groupby("cell", observed=True)
    totals = counts.agg(share=("good", "mean"), inside=("inside", "sum"))
    cells = sweep.cells.copy()
    cells[SHARE] = cells["cell"].map(totals["share"]).astype(float)
    seconds = cells["window/seconds"].where(cells["window/seconds"] > 0.0)
    cells[RATE] = cells["cell"].map(totals["inside"]).astype(float) / seconds
    results = [
        replace(result, metrics={**result.metrics, SHARE: _plain(share), RATE: _plain(rate)})
        for result, share, rate in zip(sweep.results, cells[SHARE], cells[RATE], strict=True)
    ]
    slo = {name: limits.get(name) for name in LIMITS}
    return replace(sweep, cells=cells, results=results, plan={**sweep.plan, "slo": slo})


def _plain(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def goodput_frame(cells: pd.DataFrame) -> pd.DataFrame:
    """Return one row an arm and level that has a goodput; see `COLUMNS`."""
    points = points_of(cells)
    table = points.facts[["arm", "label", "level", "baseline", "synthetic", "emulated"]].copy()
    share = figure(points, SHARE, logs=False).interval()
    table["share"], low, high = share
    table["share_lo"], table["share_hi"] = np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0)
    table["rate"], table["rate_lo"], table["rate_hi"] = _rates(points)
    ratios = _ratios(cells)
    found = [ratios.get(key, (np.nan,) * 3) for key in zip(table["arm"], table["level"], strict=True)]
    for place, name in enumerate(("ratio", "ratio_lo", "ratio_hi")):
        table[name] = [ends[place] for ends in found]
    kept = table["share"].notna()
    names = [name for name in table if name in COLUMNS or str(name)[:-3] in COLUMNS]
    return table.loc[kept, names].reset_index(drop=True)


def _rates(points: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the rates; one of zero has no log, and is told without an interval."""
    value, low, high = figure(points, RATE).interval()
    plain = figure(points, RATE, logs=False).means
    return np.where(np.isnan(value), plain, value), low, high


def _ratios(cells: pd.DataFrame) -> dict[tuple[str, float], tuple[float, float, float]]:
    found = {}
    for level, crowded, group in conditions(counted(cells)):
        if crowded:
            continue
        values = group[RATE].to_numpy(dtype=float)
        logs = np.log(values, out=np.full(len(values), np.nan), where=values > 0.0)
        for arm, contrast in fit_values(group, logs).contrasts.items():
            half = np.nan if contrast.half_width is None else contrast.half_width
            ends = np.exp(np.minimum(contrast.estimate + np.array([0.0, -half, half]), LARGEST_LOG))
            found[arm, level] = (float(ends[0]), float(ends[1]), float(ends[2]))
    return found


def goodput(sweep: Sweep) -> Section:
    """Return the section `goodput`, by the limits of the sweep's design."""
    limits = limits_of(sweep.plan)
    told = ", ".join(f"{name.removesuffix('_ms').upper()} {limit:g} ms" for name, limit in limits.items())
    frame = goodput_frame(sweep.cells) if limits else pd.DataFrame()
    notes = [
        f"a request counts when it succeeded with {told}; every request sent is in the share",
        "an answer in one chunk has no TPOT, so no TPOT limit can be broken by it",
        "intervals of ratios are simultaneous over the arms of a level",
    ]
    return Section(
        name="goodput",
        title=f"Goodput within {told}" if told else "Goodput",
        frame=frame,
        columns=COLUMNS,
        shown=("label", "level", "share", "rate", "ratio"),
        notes=tuple(notes) if not frame.empty else (),
        missing="no limit is set: `specload recommend "
        f"{sweep.directory} --slo-ttft-ms 500` counts it anew from the requests, and design.slo.ttft_ms=500 "
        "in a sweep's command makes it a figure of every cell",
    )


def checked(sweep: Sweep, limits: Mapping[str, float]) -> Sweep:
    """Return the sweep by these limits; by its own where there are none.

    Raises:
        ResultsError: requests are missing that other limits have to be counted from.
    """
    if not limits or dict(limits) == limits_of(sweep.plan):
        return sweep
    try:
        return with_limits(sweep, limits)
    except ResultsError as error:
        message = f"goodput by other limits is counted from the requests: {error}"
        raise ResultsError(message) from error
