"""The two plots of speed against concurrency: of each user and of all, as measured and as fitted."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from analysis.axis import Axis
from analysis.figures.speed_slider import grid, slide
from analysis.figures.style import apply_style, decade_ticks, interval_bars, level_axis
from analysis.figures.words import rounded
from analysis.load_curve import LoadCurve
from analysis.load_curves import LoadCurves

PANELS = ("user_speed", "total_tok_s")
"""Columns of the section, one a plot."""
BEYOND = "fitted, beyond the levels tried"
_AXES = ("user speed<br>(tok/s, log scale)", "total<br>(tok/s)")


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


def draw_speed(sides: Sequence[Side], curves: LoadCurves, axis: Axis) -> go.Figure:
    """Return the figure of a baseline and its drafter, with the slider where both have a curve.

    Args:
        sides: the baseline, and the drafter.
        curves: of the sweep.
        axis: of the levels.
    """
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
    figure.update_layout(height=560, legend={"y": -0.17})
    for place, title in enumerate(_AXES, start=1):
        level_axis(figure, axis, levels, title=place == len(_AXES), row=place, col=1)
        figure.update_yaxes(title_text=title, row=place, col=1)
    speeds = [value for trace in figure.data if trace.yaxis == "y" for value in trace.y if value > 0.0]
    if speeds:  # on a log scale equal ratios look alike at all loads
        figure.update_yaxes(type="log", row=1, col=1, **decade_ticks(min(speeds), max(speeds)))
    figure.update_yaxes(rangemode="tozero", row=len(PANELS), col=1)
    if len(fitted) == len(sides):
        slide(figure, sides=[(side.arm, side.name) for side in sides], curves=curves, loads=loads)
    return figure


def _points(figure: go.Figure, side: Side, column: str, axis: Axis, place: int) -> None:
    """Draw what was measured, with its intervals over blocks."""
    rows = side.rows[side.rows[column].notna()]
    ends = (rows[f"{column}_lo"], rows[f"{column}_hi"])
    figure.add_trace(
        go.Scatter(
            x=rows["level"].tolist(),
            y=rows[column].tolist(),
            error_y=interval_bars(rows[column], *ends),
            mode="markers" if side.curve else "lines+markers",
            name=side.name,
            legendgroup=side.arm,
            showlegend=place == 1,
            line={"color": side.colour, "width": 1, "dash": "dot"},
            marker={"color": side.colour, "symbol": side.symbol, "size": 9},
            customdata=[
                [f" [{low:.4g}, {high:.4g}]" if math.isfinite(low + high) else ""]
                for low, high in zip(*ends, strict=True)
            ],
            hovertemplate=f"{axis.hover}: %{{y:.4g}}%{{customdata[0]}} tok/s<extra>{side.name}</extra>",
        ),
        row=place,
        col=1,
    )


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
                y=[rounded(value) for value in values],
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
