"""Every arm against the load: measured step time, user speed and throughput, and the curves through them.

See `analysis.load_curve` for the curves. The ratio of an arm's curve to its baseline's has an interval by
the delta method: curves are, to first order, weighted sums of the cells' logs, whose covariance
comes from the residuals after arm and block effects, pooled over the arms and levels.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from analysis.arms import FLAGS, ArmFacts, arm_facts, flag_notes, flags
from analysis.contrasts import counted, log_figure, t_quantile
from analysis.fit import fit_figures, level_cells
from analysis.formulas import ratio_of
from analysis.frame import Sweep
from analysis.ksweep import axis_of
from analysis.levels import conditions
from analysis.load_curve import FIGURES, SPEED, STEP, LoadCurve, fit_curve
from analysis.points import figure, points_of
from analysis.rows import Ratio
from analysis.section import Section
from jobs.result import MEASURED

METRICS = {"step": "step/mean_ms", "speed": "user/speed_tok_s", "total": "throughput/total_tok_s"}
"""Curve -> what it is held against."""
ALONE, OVERSUBSCRIBED = "alone", "oversubscribed"
"""Whether client and engine had cores of their own."""
MISFIT = 0.05
"""A curve that misses a level by more, relative, is said to."""
MISSING = "no arm was measured; `specload sweep -m load.concurrency=[1,4,16,64] drafter=...` measures some"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LoadCurves:
    """The arms of a sweep that have a curve, under one condition."""

    curves: Mapping[str, LoadCurve]
    """By digest."""
    covariance: np.ndarray
    """Of the logs of a cell's `FIGURES`, but for what blocks and arms do to them."""
    df: int
    """Its degrees of freedom; 0 without a replicate."""

    def ratio(self, arm: str, base: str, load: np.ndarray, name: str) -> list[Ratio]:
        """Return an arm's curve over another's at some loads, with the interval of one comparison.

        Args:
            arm: digest.
            base: digest of its baseline.
            load: concurrencies.
            name: `step`, `speed` or `total`; the last is empty where a part of it is not known.
        """
        curves = (self.curves[arm], self.curves[base])
        parts = [curve.gradients(load) for curve in curves]
        if any(name not in own for own in parts):
            return []
        values = [
            {"step": curve.step_ms, "speed": curve.user_speed, "total": curve.total}[name](load)
            for curve in curves
        ]
        logs = np.log(values[0] / values[1])
        if not self.df:
            return [Ratio(value=ratio_of(float(log))) for log in logs]
        variance = sum(
            np.einsum("lfc,fg,lgc,c->l", own[name], self.covariance, own[name], 1.0 / curve.cells)
            for own, curve in zip(parts, curves, strict=True)
        )
        halves = t_quantile(self.df) * np.sqrt(variance)
        return [Ratio.of_log(float(log), float(half)) for log, half in zip(logs, halves, strict=True)]


def load_curves_of(sweep: Sweep, *, oversubscribed: bool = False) -> LoadCurves:
    """Return the curves of all arms of a closed loop; of an open one there are none. Worked out once."""
    return sweep.once(_curves, OVERSUBSCRIBED if oversubscribed else ALONE)


def _curves(sweep: Sweep, condition: str) -> LoadCurves:
    oversubscribed = condition == OVERSUBSCRIBED
    cells = counted(sweep.cells)
    means: dict[str, list[tuple[float, np.ndarray, int]]] = {}
    squares, df, replicated = np.zeros((len(FIGURES), len(FIGURES))), 0, False
    closed = axis_of(sweep).column == "C"
    untold = cells[METRICS["step"]].isna().all()
    for level, crowded, group in conditions(cells) if closed else ():
        if crowded != oversubscribed:
            continue
        usable = ((group["outcome"] == MEASURED) & (group["counterfactual"] == "")).to_numpy(dtype=bool)
        logs = np.where(usable[:, None], _logs(group, untold=bool(untold)), np.nan)
        fits = fit_figures(level_cells(group), logs)
        if fits[SPEED].variance is not None:
            replicated = True
            residuals = np.nan_to_num(np.column_stack([fit.residuals for fit in fits]))
            squares += residuals.T @ residuals
            df += fits[SPEED].df
        for arm, places in group[usable].groupby("arm").indices.items():
            own = logs[usable][places]
            means.setdefault(str(arm), []).append((level, _means(own), len(own)))
    curves = {
        arm: curve
        for arm, own in means.items()
        if (
            curve := fit_curve(
                [level for level, _, _ in own],
                np.column_stack([mean for _, mean, _ in own]),
                [count for _, _, count in own],
            )
        )
    }
    return LoadCurves(curves=curves, covariance=squares / max(df, 1), df=df if replicated else 0)


def _logs(group: pd.DataFrame, *, untold: bool) -> np.ndarray:
    """Return the logs of `FIGURES`; where no engine told its step time, a token's stands for a step's."""
    share = group["latency/decode_share"].to_numpy(dtype=float)
    inside = np.where((share > 0.0) & (share < 1.0), share, np.nan)
    logs = np.column_stack(
        [
            log_figure(group, METRICS["step"]),
            log_figure(group, METRICS["speed"]),
            np.log(inside / (1.0 - inside)),
            log_figure(group, METRICS["total"]),
        ]
    )
    if untold:
        logs[:, STEP] = math.log(1000.0) - logs[:, SPEED]
    return logs


def _means(logs: np.ndarray) -> np.ndarray:
    """Return the mean of each column over the rows that know it; NaN where none does."""
    count = np.isfinite(logs).sum(axis=0)
    found: np.ndarray = np.where(count > 0, np.nansum(logs, axis=0) / np.maximum(count, 1), np.nan)
    return found


def load_curves(sweep: Sweep) -> Section:
    """Return one row an arm and level: what was measured there, and the curves."""
    rows = [row for crowded in (False, True) for row in _rows(sweep, crowded=crowded)]
    frame = pd.DataFrame(rows)
    return Section(
        name="load_curves",
        title="Step time, user speed and throughput against load, measured and fitted",
        frame=frame,
        columns=COLUMNS if rows else {},
        shown=SHOWN if rows else (),
        notes=(*_notes(frame), *flag_notes(frame)) if rows else (),
        missing="" if rows else MISSING,
    )


def _rows(sweep: Sweep, *, crowded: bool) -> list[dict[str, object]]:
    points = points_of(sweep.cells, oversubscribed=crowded)
    if not len(points):
        return []
    curves = load_curves_of(sweep, oversubscribed=crowded).curves
    facts: dict[str, ArmFacts] = arm_facts(sweep.cells, sweep.plan)
    measured = {name: figure(points, metric).interval() for name, metric in METRICS.items()}
    rows: list[dict[str, object]] = []
    for place, row in enumerate(points.facts.to_dict("records")):
        arm, level = str(row["arm"]), float(row["level"])
        curve = curves.get(arm)
        fitted = _fitted(curve, level)
        found: dict[str, object] = {
            "arm": row["label"],
            "digest": arm,
            "layout": row["layout"],
            "k": int(row["k"]),
            "level": level,
        }
        for name, (value, low, high) in measured.items():
            column = NAMES[name]
            found |= {column: value[place], f"{column}_lo": low[place], f"{column}_hi": high[place]}
            found[f"{column}_fitted"] = fitted.get(name, math.nan)
        values = {name: float(measured[name][0][place]) for name in fitted}
        misses = [value / fitted[name] - 1.0 for name, value in values.items() if math.isfinite(value)]
        found |= {
            "misfit": max(misses, key=abs, default=math.nan),
            "spare": curve.step.spare if curve else 0,
            "floor_ms": curve.step.floor if curve else math.nan,
            "slope_ms": curve.step.slope if curve else math.nan,
            "knee": curve.step.knee if curve else math.nan,
            "tokens": curve.tokens if curve else math.nan,
            **flags([facts[arm]], oversubscribed=crowded),
        }
        rows.append(found)
    return rows


def _fitted(curve: LoadCurve | None, level: float) -> dict[str, float]:
    if curve is None or level not in curve.levels:
        return {}
    load = np.array([level])
    found = {"step": curve.step_ms(load), "speed": curve.user_speed(load)}
    if curve.other is not None:
        found["total"] = curve.total(load)
    return {name: float(values[0]) for name, values in found.items()}


def _notes(frame: pd.DataFrame) -> list[str]:
    if frame["floor_ms"].isna().all():
        return ["no curve: it needs a closed loop, and step time or user speed at two levels or more"]
    notes = [FORM]
    if frame.loc[frame["floor_ms"].notna(), "spare"].eq(0).any():
        notes.append("with two levels the curve goes through both: it cannot be held against anything")
    off = frame[frame["misfit"].abs() > MISFIT]
    if not off.empty:
        worst = off.iloc[int(off["misfit"].abs().argmax())]
        notes.append(
            f"curves miss {len(off)} of {len(frame)} rows by more than {MISFIT:.0%}, {worst['arm']} at "
            f"C={worst['level']:g} by {worst['misfit']:+.1%}: read figures between levels as a sketch"
        )
    return notes


FORM = (
    "step time T(C) = [a^p + (b C)^p]^(1/p), floor a, slope b and knee p by least squares in the log (p = 1, "
    "a straight line, with fewer than four levels); user speed = u / T and total throughput = m C f u / T, "
    "with f from other time of the same form; u and m are means over the levels"
)
NAMES = {"step": "step_ms", "speed": "user_speed", "total": "total_tok_s"}
COLUMNS = {
    "arm": "label of the arm; baselines are arms, too",
    "digest": "digest of the arm",
    "layout": "layout label",
    "k": "draft length K, tokens; 0 of a baseline",
    "level": "load level on the sweep's axis",
    "step_ms": "mean step time, ms (geometric mean over blocks)",
    "step_ms_fitted": "the curve's step time, ms; of a token where the engine tells no step time",
    "user_speed": "user speed, tok/s (geometric mean over blocks)",
    "user_speed_fitted": "the curve's user speed, tok/s",
    "total_tok_s": "total throughput, tok/s (geometric mean over blocks)",
    "total_tok_s_fitted": "the curve's total throughput, tok/s",
    "misfit": "the largest of measured over fitted, less 1",
    "spare": "levels less parameters of the step-time curve: 0 cannot be held against anything",
    "floor_ms": "a: step time as the load goes to nothing, ms",
    "slope_ms": "b: what one more conversation adds in the end, ms",
    "knee": "p: 1 is a straight line",
    "tokens": "u: tokens a step, by the users' clock, mean over levels",
    **FLAGS,
}
SHOWN = (
    "arm", "level", "step_ms", "step_ms_fitted", "user_speed", "user_speed_fitted", "total_tok_s",
    "total_tok_s_fitted", "misfit",
)  # fmt: skip
