"""The two plots of the speculative cycle: shares by draft position, and the tokens of a step in a row."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from analysis.figures.style import NEUTRAL, apply_style, colour, frame_bars, interval_bars, symbol
from analysis.figures.words import spread_out
from analysis.positions import Interval, PositionShare

MOST_LEVELS = 5
"""Loads drawn one by one: the lowest, the highest, and some between."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What was counted at one load."""

    name: str
    shares: tuple[PositionShare, ...]
    length: Interval
    """Mean acceptance length."""


def draw_cycle(rows: pd.DataFrame, loads: Sequence[Load], length: Interval, tokens: Interval) -> go.Figure:
    """Return the figure of one drafter.

    Args:
        rows: its rows of `analysis.positions`, by position.
        loads: what was counted at each load.
        length: its mean acceptance length.
        tokens: its tokens a decode step.
    """
    figure = make_subplots(rows=2, cols=1, row_heights=[0.74, 0.26], vertical_spacing=0.2)
    places = rows["position"].tolist()
    _shares(figure, rows, places)
    several = spread_out(len(loads), MOST_LEVELS) if len(loads) > 1 else []
    for index, load in enumerate(loads[place] for place in several):
        figure.add_trace(
            go.Scatter(
                x=places,
                y=[share.conditional[0] for share in load.shares],
                mode="lines",
                name="one load",
                legendgroup="loads",
                showlegend=index == 0,
                line={"color": NEUTRAL, "width": 1},
                opacity=0.6,
                hovertemplate=f"{load.name}, position %{{x}}: %{{y:.3f}} if reached<extra></extra>",
            ),
            row=1,
            col=1,
        )
    _emitted(figure, [1.0, *rows["unconditional"]], length, tokens)
    apply_style(figure, x="", y="")
    figure.update_layout(
        height=470,
        barmode="stack",
        uniformtext={"minsize": 9, "mode": "hide"},
        legend={"y": 1.02, "yanchor": "bottom"},
        margin={"t": 60},
    )
    figure.update_xaxes(title_text="draft position", tickvals=places, row=1, col=1)
    figure.update_yaxes(title_text="share accepted", range=[0, 1.03], row=1, col=1)
    figure.update_xaxes(title_text="tokens emitted a step", rangemode="tozero", row=2, col=1)
    figure.update_yaxes(visible=False, row=2, col=1)
    return figure


def _shares(figure: go.Figure, rows: pd.DataFrame, places: Sequence[int]) -> None:
    """Draw the shares over all loads, and what one alpha would give."""
    figure.add_trace(
        go.Bar(
            x=places,
            y=rows["unconditional"],
            error_y=frame_bars(rows, "unconditional"),
            name="all so far",
            marker={"color": colour(0), "opacity": 0.75},
            width=0.55,
            hovertemplate="positions 1 to %{x} all accepted: %{y:.3f}<extra></extra>",
        ),
        row=1,
        col=1,
    )
    figure.add_trace(
        go.Scatter(
            x=places,
            y=rows["conditional"],
            error_y=frame_bars(rows, "conditional"),
            mode="lines+markers",
            name="if reached",
            line={"color": colour(1), "width": 2},
            marker={"symbol": symbol(1), "size": 9},
            hovertemplate="position %{x}: %{y:.3f} if reached<extra></extra>",
        ),
        row=1,
        col=1,
    )
    alpha = float(rows["alpha"].iloc[0])
    figure.add_trace(
        go.Scatter(
            x=places,
            y=rows["fitted"],
            mode="lines+markers",
            name=f"alpha {alpha:.3f}",
            line={"color": colour(2), "width": 2, "dash": "dot"},
            marker={"symbol": "diamond-open", "size": 9},
            hovertemplate="alpha to the power %{x}: %{y:.3f}<extra></extra>",
        ),
        row=1,
        col=1,
    )


def _emitted(figure: go.Figure, parts: Sequence[float], length: Interval, tokens: Interval) -> None:
    """Draw what a step emits as one bar: the verifier's own token, then each position's share."""
    for place, part in enumerate(parts):
        figure.add_trace(
            go.Bar(
                x=[part],
                y=["step"],
                orientation="h",
                showlegend=False,
                width=0.5,
                marker={
                    "color": colour(0) if place else NEUTRAL,
                    "opacity": max(0.35, 0.9 - 0.08 * place),
                    "line": {"color": "rgba(255,255,255,0.6)", "width": 1},
                },
                text=[f"{part:.2f}" if part >= 0.2 else ""],
                textposition="inside",
                insidetextanchor="middle",
                textangle=0,
                hovertemplate=(f"position {place}" if place else "the verifier's own token")
                + ": %{x:.3f}<extra></extra>",
            ),
            row=2,
            col=1,
        )
    for name, (value, low, high), mark in (("MAL", length, 3), ("tokens/step", tokens, 4)):
        if math.isfinite(value):
            figure.add_trace(
                go.Scatter(
                    x=[value],
                    y=["step"],
                    error_x=interval_bars([value], [low], [high]),
                    mode="markers",
                    name=name,
                    marker={"symbol": symbol(mark), "size": 11, "color": colour(mark)},
                    hovertemplate=f"{name}: %{{x:.3f}}<extra></extra>",
                ),
                row=2,
                col=1,
            )
