"""Speed of each user and of all together against concurrency, and the step-cost model through it."""

import shlex
from collections.abc import Sequence

from analysis.axis import Axis
from analysis.decision_words import words_again
from analysis.figures.chosen import chosen_arm
from analysis.figures.figure import Figure
from analysis.figures.speed_panels import Side, draw_speed
from analysis.figures.style import NEUTRAL, colour, escape, symbol
from analysis.figures.words import with_interval
from analysis.frame import Sweep
from analysis.ksweep import MISSING, axis_of
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
    table = load_curves(sweep).frame
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
    both = [pick(rows, key=lambda row: row.level) for pick in (min, max)]
    low, high = both
    forced = " (forced acceptance)" if low.synthetic else ""
    where, ends = (f"From {low.at} to {high.at}", both) if high is not low else (f"At {low.at}", [low])
    told = f"{where} {low.label}{forced} gives users {_times(ends, 'user_speed')} times the baseline's speed"
    if all(row.total for row in ends):
        told += f", in total {_times(ends, 'total')} times its throughput"
    worst = _worst(sides)
    fit = "" if worst is None else f"; the model is off by {abs(worst):.1%} at most"
    return f"{told}{fit}."


def _times(rows: Sequence[VerdictRow], objective: str) -> str:
    """Return `1.60 [1.52, 1.68] to 0.91 [0.85, 0.97]`."""
    ratios = [ratio for row in rows if (ratio := row.ratio(objective))]
    return " to ".join(with_interval(ratio.value, ratio.lo, ratio.hi) for ratio in ratios)


def _worst(sides: Sequence[Side]) -> float | None:
    misfits = [side.curve.worst for side in sides if side.curve is not None and side.curve.step.spare]
    return max(misfits, key=abs) if misfits else None


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
            "concurrency, with ratios and their 95 % intervals of one comparison."
        )
        told += [_parameters(side) for side in sides]
    if crowded:
        told.append("Client and engine shared a core: an indication only.")
    return " ".join(told)


def _parameters(side: Side) -> str:
    curve = side.curve
    assert curve is not None, "only sides with a curve have parameters"
    told = (
        "it cannot be held against anything" if not curve.step.spare else f"misfit {curve.worst:+.1%} at most"
    )
    label = str(side.rows["arm"].iloc[0])
    return (
        f"{label}: a = {curve.step.floor:.3g} ms, b = {curve.step.slope:.3g} ms a conversation, "
        f"p = {curve.step.knee:.2g}, {curve.tokens:.2f} tokens a step ({told})."
    )
