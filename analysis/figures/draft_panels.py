"""The three plots of the draft length, one above the other, and the slider of the overhead."""

import math
from collections.abc import Sequence

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from analysis.axis import Axis
from analysis.figures.style import (
    NEUTRAL,
    add_slider,
    apply_style,
    colour,
    interval_bars,
    ratio_bars,
    say_above,
    symbol,
)
from analysis.figures.words import rounded, spread_out
from analysis.ksweep import DrafterLevel
from analysis.length_model import LengthModel
from analysis.objectives import OBJECTIVES
from analysis.summary import Summary

TOKENS, COST, QUOTIENT = 1, 2, 3
"""Rows."""
TITLES = ("tokens a step", "T(K) / t0", "ratio to<br>baseline")
MOST_OTHERS = 4
"""Other loads drawn as thin lines."""
_Places = list[float | None]
HALF_STEPS = 12
"""Stops of the slider from 0 to the fitted overhead; twice as many lie above it."""
LEAST, PLAIN = 0.002, 0.05
"""Where the fitted overhead is not above the first, the stops go to three times the second."""


def draw_panels(
    shown: DrafterLevel,
    others: Sequence[DrafterLevel],
    model: LengthModel | None,
    summary: Summary,
    axis: Axis,
) -> go.Figure:
    """Return tokens a step, its cost and their quotient against K.

    Args:
        shown: the drafter at the level that is drawn.
        others: the same at other levels.
        model: the fitted lines; None where there are none, and no slider then.
        summary: of the sweep, for the ratio of its objective.
        axis: of the levels.
    """
    figure = make_subplots(rows=3, cols=1, shared_xaxes=True, vertical_spacing=0.05)
    for place, other in enumerate(others[index] for index in spread_out(len(others), MOST_OTHERS)):
        _light(figure, other, axis, first=place == 0)
    _measured(figure, shown)
    _objective(figure, shown, summary)
    if model is not None:
        figure.add_trace(
            go.Scatter(
                x=list(model.lengths),
                y=[rounded(model.share * length) for length in model.lengths.values()],
                mode="lines",
                name="fitted",
                legendgroup="fitted",
                line={"color": colour(2), "width": 2, "dash": "dot"},
                hovertemplate="K=%{x}: %{y:.3f} fitted<extra></extra>",
            ),
            row=TOKENS,
            col=1,
        )
    apply_style(figure, x="", y="")
    figure.update_layout(height=620, legend={"y": -0.13})
    ks = sorted({0, *shown.arms})
    figure.update_xaxes(tickvals=ks, range=[-0.2, ks[-1] + 0.3])
    figure.update_xaxes(title_text="draft length K (tokens)", row=QUOTIENT, col=1)
    for row, title in enumerate(TITLES, start=1):
        figure.update_yaxes(title_text=title, row=row, col=1)
        figure.add_hline(y=1.0, line={"color": NEUTRAL, "width": 1}, row=row, col=1)
    if model is not None:
        _slide(figure, model)
    return figure


def _measured(figure: go.Figure, shown: DrafterLevel) -> None:
    for row, name in ((TOKENS, "tokens"), (COST, "step"), (QUOTIENT, "quotient")):
        ratios = _ratios(shown, name)
        if not ratios:
            continue
        figure.add_trace(
            go.Scatter(
                x=list(ratios),
                y=[value for value, _, _ in ratios.values()],
                error_y=interval_bars(*zip(*ratios.values(), strict=True)),
                mode="markers",
                name="measured",
                legendgroup="measured",
                showlegend=row == TOKENS,
                marker={"color": colour(0), "symbol": symbol(0), "size": 10},
                hovertemplate="K=%{x}: %{y:.3f} measured<extra></extra>",
            ),
            row=row,
            col=1,
        )
    lengths = [(k, shown.length(k)) for k in shown.lengths]
    if lengths:
        figure.add_trace(
            go.Scatter(
                x=[k for k, _ in lengths],
                y=[value for _, (value, _, _) in lengths],
                error_y=interval_bars(*zip(*(ends for _, ends in lengths), strict=True)),
                mode="markers",
                name="MAL",
                marker={"color": colour(3), "symbol": "diamond-open", "size": 10, "line": {"width": 2}},
                hovertemplate="K=%{x}: MAL %{y:.3f}<extra></extra>",
            ),
            row=TOKENS,
            col=1,
        )


def _ratios(item: DrafterLevel, name: str) -> dict[int, tuple[float, float, float]]:
    """Return K -> the ratio of a figure to the baseline's, and the ends of its interval."""
    found = {k: item.fits[name].ratio(arm) for k, arm in item.arms.items()}
    return {k: ratio for k, ratio in found.items() if math.isfinite(ratio[0])}


def _light(figure: go.Figure, other: DrafterLevel, axis: Axis, *, first: bool) -> None:
    """Draw another load as thin lines: its cost and its quotient."""
    for row, name in ((COST, "step"), (QUOTIENT, "quotient")):
        ratios = _ratios(other, name)
        if ratios:
            figure.add_trace(
                go.Scatter(
                    x=[0, *ratios],
                    y=[1.0, *(rounded(value) for value, _, _ in ratios.values())],
                    mode="lines",
                    name="other loads",
                    legendgroup="others",
                    showlegend=first and row == COST,
                    line={"color": NEUTRAL, "width": 1},
                    opacity=0.6,
                    hovertemplate=f"{axis.at(other.level)}, K=%{{x}}: %{{y:.3f}}<extra></extra>",
                ),
                row=row,
                col=1,
            )


def _objective(figure: go.Figure, shown: DrafterLevel, summary: Summary) -> None:
    """Draw the ratio of the sweep's objective, which knows of all else that the drafter does."""
    arms = {arm: k for k, arm in shown.arms.items()}
    found = sorted(
        (arms[row.arm], ratio)
        for row in summary.rows
        if row.arm in arms
        and (row.level, row.oversubscribed) == (shown.level, shown.oversubscribed)
        and (ratio := row.ratio(summary.objective))
    )
    if found:
        figure.add_trace(
            go.Scatter(
                x=[k for k, _ in found],
                y=[ratio.value for _, ratio in found],
                error_y=ratio_bars([ratio for _, ratio in found]),
                mode="lines+markers",
                name=OBJECTIVES[summary.objective].title,
                line={"color": colour(1), "width": 1.5, "dash": "dash"},
                marker={"color": colour(1), "symbol": symbol(1), "size": 8},
                hovertemplate=f"K=%{{x}}: {OBJECTIVES[summary.objective].title} %{{y:.3f}}<extra></extra>",
            ),
            row=QUOTIENT,
            col=1,
        )


def _slide(figure: go.Figure, model: LengthModel) -> None:
    """Draw the lines that move with the overhead s, and the slider."""
    fitted = model.steps.value
    unit = (fitted if fitted > LEAST else PLAIN) / HALF_STEPS
    even = (unit * place for place in range(3 * HALF_STEPS + 1))
    stops = sorted([fitted, *(s for s in even if abs(s - fitted) > unit / 4.0)])
    ks = list(model.lengths)
    first = len(figure.data)
    begin = _state(model, ks, fitted)
    for x, y, row, style in zip(*begin, (COST, QUOTIENT, QUOTIENT), _STYLES, strict=True):
        figure.add_trace(go.Scatter(x=x, y=y, **style), row=row, col=1)
    say_above(figure, _words(model, fitted), lines=2)
    place = len(figure.layout.annotations) - 1
    add_slider(
        figure,
        name="overhead s of a draft token (plain steps)",
        steps=[
            (
                f"{s:.4f}" + (" (fitted)" if s == fitted else ""),
                dict(zip("xy", _state(model, ks, s), strict=True)),
                {f"annotations[{place}].text": _words(model, s)},
            )
            for s in stops
        ],
        active=stops.index(fitted),
        traces=list(range(first, first + len(_STYLES))),
    )
    figure.layout.sliders[0].pad.t = 110  # below the legend


def _state(model: LengthModel, ks: Sequence[int], s: float) -> tuple[list[_Places], list[_Places]]:
    """Return x and y of the lines that move: cost, quotient, and the ring of the best K."""
    best = model.best(s)
    top = ks[-1]
    x: list[_Places] = [[0.0, float(top)], [float(k) for k in ks], [float(best)]]
    return x, [
        [rounded(model.step(0, s)), rounded(model.step(top, s))],
        [rounded(model.quotient(k, s)) for k in ks],
        [1.0 if best == 0 else rounded(model.quotient(best, s))],
    ]


def _words(model: LengthModel, s: float) -> str:
    best = model.best(s)
    told = "no drafter (K=0)" if best == 0 else f"K={best}, ratio {model.quotient(best, s):.2f}"
    fitted = " (fitted)" if s == model.steps.value else ""
    return f"<b>s = {s:.4f}</b>{fitted}<br>best by the lines: {told}"


_LINE = {"color": colour(2), "width": 2, "dash": "dot"}
_STYLES: tuple[dict[str, object], ...] = (
    {
        "mode": "lines",
        "name": "fitted",
        "legendgroup": "fitted",
        "showlegend": False,
        "line": _LINE,
        "hovertemplate": "K=%{x}: %{y:.3f} by the line<extra></extra>",
    },
    {
        "mode": "lines",
        "name": "fitted",
        "legendgroup": "fitted",
        "showlegend": False,
        "line": _LINE,
        "hovertemplate": "K=%{x}: %{y:.3f} by the lines<extra></extra>",
    },
    {
        "mode": "markers",
        "name": "best K",
        "marker": {"symbol": "circle-open", "size": 17, "color": colour(1), "line": {"width": 3}},
        "hovertemplate": "best by the lines: K=%{x}<extra></extra>",
    },
)
"""Of the lines that move: cost, quotient, and the ring of the best K."""
