"""Amdahl's curves drawn: end-to-end speed-up against decode speed-up, a curve a decode share."""

import math
from collections.abc import Sequence

import plotly.graph_objects as go

from analysis.figures.amdahl_numbers import FIRST, WIDEST, Numbers, lowest
from analysis.figures.amdahl_slider import add_target
from analysis.figures.decode_share import Share
from analysis.figures.style import (
    NEUTRAL,
    apply_style,
    colour,
    escape,
    interval_bars,
    say_above,
    symbol,
)
from analysis.figures.words import rounded
from analysis.formulas import end_to_end_speed_up, required_decode_speed_up, speed_up_cap

PLAIN_SHARES = (0.5, 0.7, 0.9, 0.95)
"""Decode shares of the curves that are there to compare with."""
TALLEST = 3.2
"""End-to-end speed-up at which the axis ends."""
_TICKS = (0.5, 0.7, 1, 1.5, 2, 3, 4, 6, 10)


def plot(numbers: Numbers) -> go.Figure:
    """Return the curves, the chosen arm's places on them, and what a target needs."""
    figure = go.Figure()
    apply_style(figure, x="decode speed-up x", y="end-to-end speed-up G")
    grid = numbers.grid
    for share in PLAIN_SHARES:
        figure.add_trace(_curve(grid, share, {"color": NEUTRAL, "width": 1}, "", f"f={share:g}"))
    for index, own in enumerate(numbers.drawn):
        _measured(figure, numbers, index, own)
    _arm(figure, numbers)
    figure.add_trace(
        go.Scatter(
            x=[grid[0], WIDEST],
            y=[FIRST, FIRST],
            mode="lines",
            line={"color": NEUTRAL, "width": 1.5, "dash": "dash"},
            name="target",
            hoverinfo="skip",
        )
    )
    figure.add_trace(
        go.Scatter(
            mode="markers",
            marker={
                "symbol": "circle-open",
                "size": 14,
                "color": [colour(index) for index in range(len(numbers.drawn))],
                "line": {"width": 2.5},
            },
            showlegend=False,
            hovertemplate="G %{y:.1f} needs x %{x:.2f}<extra>target</extra>",
            **numbers.needs(FIRST),
        )
    )
    _axes(figure, numbers)
    say_above(figure, numbers.answer(FIRST), lines=1 + len(numbers.drawn))
    figure.update_layout(height=418 + figure.layout.margin.t)
    add_target(figure, numbers)
    return figure


def _axes(figure: go.Figure, numbers: Numbers) -> None:
    low = min([0.95, *(0.97 * lowest(share.gain) for share in numbers.reached)])
    figure.update_yaxes(range=[low, TALLEST])
    figure.update_xaxes(
        type="log",
        range=[math.log10(numbers.grid[0]), math.log10(WIDEST)],
        tickvals=list(_TICKS),
        ticktext=[f"{tick:g}" for tick in _TICKS],
    )
    for place, share in enumerate(PLAIN_SHARES):  # at heights of their own, where lines are close
        leaves = required_decode_speed_up(TALLEST * (0.8 + 0.05 * place), share)
        x = WIDEST if leaves is None or leaves > WIDEST else leaves
        figure.add_annotation(
            x=math.log10(x),
            y=end_to_end_speed_up(share, x),
            text=f"f={share:g}",
            showarrow=False,
            xanchor="right",
            yanchor="bottom",
            font={"size": 11, "color": NEUTRAL},
        )


def _curve(grid: Sequence[float], share: float, line: dict[str, object], name: str, words: str) -> go.Scatter:
    return go.Scatter(
        x=list(grid),
        y=[rounded(end_to_end_speed_up(share, value)) for value in grid],
        mode="lines",
        line=line,
        name=name,
        showlegend=bool(name),
        hovertemplate="x %{x:.2f}: G %{y:.2f}<extra>" + words + "</extra>",
    )


def _measured(figure: go.Figure, numbers: Numbers, index: int, own: Share) -> None:
    """Draw one level: its curve, what its interval covers, and its cap."""
    shade, words = colour(index), f"{numbers.axis.at(own.level)}: f={own.value:.2f}"
    x = numbers.grid
    if math.isfinite(own.low + own.high):
        upper = [end_to_end_speed_up(own.high, value) for value in x]
        lower = [end_to_end_speed_up(own.low, value) for value in x]
        figure.add_trace(
            go.Scatter(
                x=[*x, *reversed(x)],
                y=[rounded(value) for value in [*upper, *reversed(lower)]],
                mode="lines",
                fill="toself",
                line={"width": 0, "color": shade},
                opacity=0.18,
                showlegend=False,
                hoverinfo="skip",
            )
        )
    figure.add_trace(_curve(x, own.value, {"color": shade, "width": 3}, words, words))
    cap = speed_up_cap(own.value)
    if cap < TALLEST:
        figure.add_trace(
            go.Scatter(
                x=[x[0], WIDEST],
                y=[cap, cap],
                mode="lines",
                line={"color": shade, "width": 1.2, "dash": "dot"},
                showlegend=False,
                hovertemplate=f"cap {cap:.2f}<extra>{words}</extra>",
            )
        )


def _arm(figure: go.Figure, numbers: Numbers) -> None:
    """Draw what the chosen arm did at each level: off its curve where other time changed."""
    places = [place for place, share in enumerate(numbers.drawn) if share in numbers.reached]
    if not places:
        return
    decode, gain = (
        [list(ends) for ends in zip(*values, strict=True)]
        for values in (
            [numbers.drawn[place].decode for place in places],
            [numbers.drawn[place].gain for place in places],
        )
    )
    figure.add_trace(
        go.Scatter(
            x=decode[0],
            y=gain[0],
            error_x={**interval_bars(*decode), "color": NEUTRAL},
            error_y={**interval_bars(*gain), "color": NEUTRAL},
            mode="markers",
            marker={
                "color": [colour(place) for place in places],
                "symbol": [symbol(place) for place in places],
                "size": 10,
                "line": {"color": NEUTRAL, "width": 1},
            },
            name=escape(numbers.arm),
            customdata=[[numbers.axis.at(numbers.drawn[place].level)] for place in places],
            hovertemplate="%{customdata[0]}: x %{x:.2f}, G %{y:.2f}<extra>"
            + escape(numbers.arm)
            + "</extra>",
        )
    )
