"""Speed of each user and of all together against concurrency, and the step-cost model through it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from analysis.axis import Axis
from analysis.figures.chosen import chosen_arm
from analysis.figures.figure import Figure
from analysis.figures.speed_slider import grid, slide
from analysis.figures.style import (
    NEUTRAL,
    apply_style,
    colour,
    escape,
    interval_bars,
    level_axis,
    symbol,
)
from analysis.frame import Sweep
from analysis.ksweep import MISSING, axis_of
from analysis.load_curve import LoadCurve
from analysis.load_curves import LoadCurves, load_curves, load_curves_of
from analysis.rows import VerdictRow
from analysis.summary import Summary

TITLE = "How fast for each user, how much for all, at which load?"
PANELS = ("user_speed", "total_tok_s")
"""Columns of the section, one a plot."""
BEYOND = "fitted, beyond the levels tried"
_AXES = ("user speed (tok/s)", "total (tok/s)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """The drafter or its baseline."""

    arm: str
    """Digest."""
    name: str
    """Label, escaped for the figure."""
    rows: pd.DataFrame
    """Its rows of `analysis.load_curves`."""
    curve: LoadCurve | None
    colour: str
    symbol: str


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
            f"are needed; `specload status {sweep.directory}` says what became of the cells"
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
            plot=_plot(sides, curves, axis_of(sweep)),
            finding=_finding(rows, sides),
            reading=_reading(sides, axis_of(sweep), crowded=crowded),
            sections=("load_curves",),
        ),
    )


def _baseline(sweep: Sweep, arm: str) -> str | None:
    cells = sweep.cells
    pair = cells.loc[cells["arm"].eq(arm), "pair"].iloc[0]
    own = cells[cells["pair"].eq(pair) & cells["k"].eq(0) & cells["counterfactual"].eq("")]
    plain = own[own["drafter"].eq("none")]
    return None if plain.empty else str(plain["arm"].iloc[0])


def _plot(sides: Sequence[Side], curves: LoadCurves, axis: Axis) -> go.Figure:
    figure = make_subplots(rows=2, cols=1, shared_xaxes=True, vertical_spacing=0.07)
    levels = sorted({float(level) for side in sides for level in side.rows["level"]})
    for side in sides:
        for place, column in enumerate(PANELS, start=1):
            _points(figure, side, column, axis, place)
    fitted = [side for side in sides if side.curve is not None]
    loads = grid(levels) if fitted else np.zeros(0)
    for side in fitted:
        for place, column in enumerate(PANELS, start=1):
            _curve(figure, side, column, loads, place)
    apply_style(figure, x="", y="")
    figure.update_layout(height=560, legend={"y": -0.13})
    for place, title in enumerate(_AXES, start=1):
        level_axis(figure, axis, levels, title=place == len(_AXES), row=place, col=1)
        figure.update_yaxes(title_text=title, rangemode="tozero", row=place, col=1)
    if len(fitted) == len(sides):
        slide(figure, sides=[(side.arm, side.name) for side in sides], curves=curves, loads=loads)
    return figure


def _points(figure: go.Figure, side: Side, column: str, axis: Axis, place: int) -> None:
    """Draw what was measured, with its intervals over blocks."""
    rows = side.rows[side.rows[column].notna()]
    ends = [[_end(value) for value in rows[f"{column}_{end}"]] for end in ("lo", "hi")]
    figure.add_trace(
        go.Scatter(
            x=rows["level"].tolist(),
            y=rows[column].tolist(),
            error_y=interval_bars(rows[column].tolist(), *ends),
            mode="markers" if side.curve else "lines+markers",
            name=side.name,
            legendgroup=side.arm,
            showlegend=place == 1,
            line={"color": side.colour, "width": 1, "dash": "dot"},
            marker={"color": side.colour, "symbol": side.symbol, "size": 9},
            customdata=[
                [f" [{low:.4g}, {high:.4g}]" if low is not None and high is not None else ""]
                for low, high in zip(*ends, strict=True)
            ],
            hovertemplate=f"{axis.hover}: %{{y:.4g}}%{{customdata[0]}} tok/s<extra>{side.name}</extra>",
        ),
        row=place,
        col=1,
    )


def _end(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _curve(figure: go.Figure, side: Side, column: str, loads: np.ndarray, place: int) -> None:
    """Draw the fitted curve: whole where levels were tried, dashed beyond them."""
    curve = side.curve
    assert curve is not None, "only sides with a curve are drawn"
    if column == "total_tok_s" and curve.other is None:
        return
    inside = (loads >= curve.levels[0]) & (loads <= curve.levels[-1])
    below, above = loads <= curve.levels[0], loads >= curve.levels[-1]
    for dash, where, words in (
        ("solid", inside, "fitted"),
        ("dash", below, BEYOND),
        ("dash", above, BEYOND),
    ):
        if where.sum() < 2:
            continue
        own = loads[where]
        values = curve.user_speed(own) if column == "user_speed" else curve.total(own)
        figure.add_trace(
            go.Scatter(
                x=own.tolist(),
                y=[float(f"{value:.5g}") for value in values],
                mode="lines",
                name=side.name,
                legendgroup=side.arm,
                showlegend=False,
                line={"color": side.colour, "width": 2 if dash == "solid" else 1.5, "dash": dash},
                hovertemplate=f"C=%{{x}}: %{{y:.4g}} tok/s, {words}<extra>{side.name}</extra>",
            ),
            row=place,
            col=1,
        )


def _finding(rows: Sequence[VerdictRow], sides: Sequence[Side]) -> str:
    low, high = (pick(rows, key=lambda row: row.level) for pick in (min, max))
    forced = " (forced acceptance)" if low.synthetic else ""
    told = [
        f"{low.label}{forced} gives each user {_times(low, 'user_speed')} the baseline's speed at {low.at}"
    ]
    if high is not low:
        told.append(f"{_times(high, 'user_speed')} at {high.at}")
    totals = [f"{_times(row, 'total')} at {row.at}" for row in dict.fromkeys((low, high)) if row.total]
    told.append(f"in total {' and '.join(totals)}" if totals else "total throughput is not known")
    worst = _worst(sides)
    fit = "" if worst is None else f"; the model misses no point by more than {abs(worst):.1%}"
    return f"{', '.join(told)}{fit}."


def _times(row: VerdictRow, objective: str) -> str:
    ratio = row.ratio(objective)
    if ratio is None:
        return "an unknown multiple of"
    ends = "" if ratio.lo is None or ratio.hi is None else f" [{ratio.lo:.2f}, {ratio.hi:.2f}]"
    return f"{ratio.value:.2f}{ends} times"


def _worst(sides: Sequence[Side]) -> float | None:
    misfits = [side.curve.worst for side in sides if side.curve is not None and side.curve.step.spare]
    return max(misfits, key=abs) if misfits else None


def _reading(sides: Sequence[Side], axis: Axis, *, crowded: bool) -> str:
    told = ["Points are measured, with 95 % intervals of each figure for itself over blocks."]
    if axis.column != "C":
        told.append(
            "The load is what arrives, so no curve of a closed loop goes through them: until an arm cannot "
            "keep up, its throughput is what was sent."
        )
    elif any(side.curve is None for side in sides):
        told.append(
            "There is no curve and no slider: the model needs user speeds at two loads or more; "
            "`specload sweep -m load.concurrency=[1,4,16,64] ...` measures them."
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
