"""Speed of each user and of all together against concurrency, and the step-cost model through it."""

import shlex
from collections.abc import Sequence

import numpy as np

from analysis.axis import Axis
from analysis.decision_words import words_again
from analysis.figures.chosen import chosen_arm
from analysis.figures.figure import Figure
from analysis.figures.speed_panels import Side, draw_speed
from analysis.figures.style import NEUTRAL, colour, escape, symbol
from analysis.figures.words import with_interval
from analysis.frame import Sweep
from analysis.ksweep import MISSING, axis_of
from analysis.load_curve import SPEED, STEP, LoadCurve
from analysis.load_curves import load_curves, load_curves_of
from analysis.rows import VerdictRow
from analysis.summary import Summary

TITLE = "How fast for each user, how much for all, at which load?"


def speed(sweep: Sweep, summary: Summary) -> tuple[Figure, ...]:
    """Return the chosen drafter and its baseline against the load, with a slider over the fitted curves."""
    arm = chosen_arm(sweep, summary)
    if arm is None:
        return (Figure(name="speed", title=TITLE, missing=MISSING, sections=("load_curves",)),)
    own = [row for row in summary.rows if row.arm == arm and row.ratio("user_speed") is not None]
    crowded = bool(own) and all(row.oversubscribed for row in own)
    table = sweep.once(load_curves).frame
    rows = [row for row in own if row.oversubscribed == crowded]
    table = table[table["oversubscribed"].eq(crowded)] if len(table) else table
    base = _baseline(sweep, arm)
    if not rows or base is None or table.empty:
        why = (
            "no user speed was measured of the drafter beside its baseline: answers of more than one chunk "
            f"are needed; `specload status {shlex.quote(str(sweep.directory))}` says what became of the cells"
        )
        return (Figure(name="speed", title=TITLE, missing=why, sections=("load_curves",)),)
    curves = load_curves_of(sweep, oversubscribed=crowded)
    sides = [
        Side(
            arm=digest,
            name=escape(table.loc[table["digest"].eq(digest), "arm"].iloc[0]),
            rows=table[table["digest"].eq(digest)].sort_values("level"),
            curve=curves.curves.get(digest),
            colour=shade,
            symbol=mark,
        )
        for digest, shade, mark in ((base, NEUTRAL, symbol(0)), (arm, colour(0), symbol(1)))
    ]
    return (
        Figure(
            name="speed",
            title=TITLE,
            plot=draw_speed(sides, curves, axis_of(sweep)),
            finding=_finding(rows, sides),
            reading=_reading(
                sides,
                axis_of(sweep),
                crowded=crowded,
                again=words_again(sweep.plan, "load.concurrency=[1,4,16,64]"),
            ),
            sections=("load_curves",),
        ),
    )


def _baseline(sweep: Sweep, arm: str) -> str | None:
    cells = sweep.cells
    pair = cells.loc[cells["arm"].eq(arm), "pair"].iloc[0]
    own = cells[cells["pair"].eq(pair) & cells["k"].eq(0) & cells["counterfactual"].eq("")]
    plain = own[own["drafter"].eq("none")]
    return None if plain.empty else str(plain["arm"].iloc[0])


def _finding(rows: Sequence[VerdictRow], sides: Sequence[Side]) -> str:
    low, high = min(rows, key=lambda row: row.level), max(rows, key=lambda row: row.level)
    forced = " (forced acceptance)" if low.synthetic else ""
    several = high is not low
    where, ends = (f"From {low.at} to {high.at}", [low, high]) if several else (f"At {low.at}", [low])
    told = f"{where} {low.label}{forced} gives users {_times(ends, 'user_speed')} times the baseline's speed"
    if all(row.total for row in ends):
        told += f", in total {_times(ends, 'total')} times"
    curves = [side.curve for side in sides if side.curve is not None and side.curve.step.spare]
    if curves:
        step, speeds = (max(abs(value) for value in own) for own in zip(*map(_misfits, curves), strict=True))
        told += f"; fitted steps miss by {100.0 * step:.1f} % at most, speeds by {100.0 * speeds:.1f} %"
    return f"{told}."


def _misfits(curve: LoadCurve) -> tuple[float, float]:
    """Return the largest misfit of the step time, and of the speeds read from it, each with its sign."""
    found = curve.misfits()
    speeds = [value for name, own in found.items() if name != "step" for value in own]
    return float(max(found["step"], key=abs)), float(max(speeds, key=abs))


def _times(rows: Sequence[VerdictRow], objective: str) -> str:
    """Return `1.60 [1.52, 1.68] to 0.91 [0.85, 0.97]`."""
    ratios = [ratio for row in rows if (ratio := row.ratio(objective))]
    return " to ".join(with_interval(ratio.value, ratio.lo, ratio.hi) for ratio in ratios)


def _reading(sides: Sequence[Side], axis: Axis, *, crowded: bool, again: str) -> str:
    told = ["Points are measured, with 95 % intervals of each figure for itself over blocks."]
    if axis.column != "C":
        told.append(
            "The load is what arrives, so no curve of a closed loop goes through them: until an arm cannot "
            "keep up, its throughput is what was sent."
        )
    elif any(side.curve is None for side in sides):
        told.append(
            "There is no curve and no slider: the model needs user speeds at two loads or more; "
            f"`{again}` measures them."
        )
    else:
        told.append(
            "Curves are the step-cost model T(C) = [a^p + (b C)^p]^(1/p), fitted to each arm by itself; user "
            "speed is tokens a step over T, total throughput C of these times the share of time in decode. "
            "Dashed is beyond the loads tried, where memory may run out. The slider reads both curves at one "
            "concurrency, with ratios and their 95 % intervals of one comparison: these know of noise alone, "
            "not of how far a curve misses."
        )
        told += [_parameters(side) for side in sides]
    if crowded:
        told.append("Client and engine shared a core: an indication only.")
    return " ".join(told)


def _parameters(side: Side) -> str:
    curve = side.curve
    assert curve is not None, "only sides with a curve have parameters"
    step, speeds = _misfits(curve)
    told = "it cannot be held against anything"
    if curve.step.spare:
        told = f"step times off by {100.0 * step:+.1f} % at most, speeds by {100.0 * speeds:+.1f} %"
    return (
        f"{side.rows['arm'].iloc[0]}: a = {curve.step.floor:.3g} ms, b = {curve.step.slope:.3g} ms a "
        f"conversation, p = {curve.step.knee:.2g}, {_tokens(curve)} tokens a step ({told})."
    )


def _tokens(curve: LoadCurve) -> str:
    """Return u, and how far the levels lie apart where that shows: the curves take it for constant."""
    own = np.exp(curve.logs[SPEED] + curve.logs[STEP]) / 1000.0
    several = f"{own.min():.2f}" != f"{own.max():.2f}"
    return f"{curve.tokens:.2f}" + (f" ({own.min():.2f} to {own.max():.2f} by load)" if several else "")
