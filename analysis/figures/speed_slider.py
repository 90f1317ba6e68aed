"""The concurrency slider: both fitted curves read at one load, in figures, ratios and intervals."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from analysis.figures.style import NEUTRAL, add_slider, say_above
from analysis.figures.words import rounded
from analysis.load_curves import LoadCurves
from analysis.rows import Ratio

STEPS = 36
"""Loads between the lowest and the highest, in equal ratios, beside the levels tried."""
BEYOND = 2.0
"""The curves go on to so many times the highest level, and to the lowest over it."""


def grid(levels: Sequence[float]) -> np.ndarray:
    """Return whole concurrencies in about equal ratios, the levels tried among them."""
    low, high = max(1.0, levels[0] / BEYOND), levels[-1] * BEYOND
    between = np.round(np.geomspace(low, high, STEPS))
    return np.unique(np.concatenate([between, np.asarray(levels, dtype=float)]))


def slide(
    figure: go.Figure, *, sides: Sequence[tuple[str, str]], curves: LoadCurves, loads: np.ndarray
) -> None:
    """Add a marker a plot and a few words above them, and the slider that moves them.

    Nothing is added where the two have no level in common.

    Args:
        figure: user speed in row 1 and total throughput in row 2.
        sides: (digest, name for the figure) of the baseline and of the drafter.
        curves: of both.
        loads: where the slider stops.
    """
    base, own = (curves.curves[arm] for arm, _ in sides)
    levels = np.intersect1d(base.levels, own.levels)
    if not len(levels):
        return
    speeds = [curve.user_speed(loads) for curve in (base, own)]
    totals = [curve.total(loads) for curve in (base, own)]
    active = int(np.argmin(np.abs(loads - levels[len(levels) // 2])))
    drawn = [speeds] if np.isnan(totals).any() else [speeds, totals]
    first = len(figure.data)
    for row, values in enumerate(drawn, start=1):
        figure.add_trace(
            go.Scatter(
                x=[loads[active]] * 2,
                y=[rounded(own[active]) for own in values],
                mode="lines+markers",
                name="at this C",
                showlegend=False,
                line={"color": NEUTRAL, "width": 1, "dash": "dot"},
                marker={"symbol": "circle-open", "size": 14, "color": NEUTRAL, "line": {"width": 2.5}},
                hoverinfo="skip",
            ),
            row=row,
            col=1,
        )
    ratios = {
        name: curves.ratio(sides[1][0], sides[0][0], loads, name) for name in ("speed", "total", "step")
    }
    steps: list[tuple[str, dict[str, object], dict[str, object]]] = []
    for place, load in enumerate(loads):
        lines = [
            _line("user", speeds, ratios["speed"], "tok/s", place),
            _line("total", totals, ratios["total"], "tok/s", place),
            _line("step", [curve.step_ms(loads) for curve in (base, own)], ratios["step"], "ms", place),
        ]
        words = "<br>".join([_where(load, levels), *(line for line in lines if line)])
        steps.append(
            (
                f"{load:g}",
                {
                    "x": [[float(load)] * 2] * len(drawn),
                    "y": [[rounded(own[place]) for own in values] for values in drawn],
                },
                {"annotations[0].text": words},
            )
        )
    say_above(figure, str(steps[active][2]["annotations[0].text"]), lines=4)
    add_slider(
        figure,
        name="concurrency C",
        steps=steps,
        active=active,
        traces=list(range(first, first + len(drawn))),
    )
    figure.layout.sliders[0].pad.t = 90  # below the legend


def _where(load: float, levels: np.ndarray) -> str:
    if load in levels:
        told = "measured, curves read here"
    elif levels[0] < load < levels[-1]:
        told = "between loads tried"
    else:
        told = "beyond the loads tried"
    return f"<b>C={load:g}</b>, {told}"


def _line(name: str, values: Sequence[np.ndarray], ratios: Sequence[Ratio], unit: str, place: int) -> str:
    """Return `user 41.3 / 36.2 tok/s = 1.14 [1.09, 1.20]`: the drafter over its baseline."""
    if not ratios:
        return ""
    ratio = ratios[place]
    ends = "" if ratio.lo is None or ratio.hi is None else f" [{ratio.lo:.2f}, {ratio.hi:.2f}]"
    base, own = (float(side[place]) for side in values)
    return f"{name} {_text(own)} / {_text(base)} {unit} = {ratio.value:.2f}{ends}"


def _text(value: float) -> str:
    return f"{value:,.0f}" if value >= 100.0 else f"{value:.3g}"
