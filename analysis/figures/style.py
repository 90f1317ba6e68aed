"""How all figures look: colours, axes, interval bars, sliders; and how users' text gets into them."""

import math
from collections.abc import Iterable, Sequence

import pandas as pd
import plotly.graph_objects as go

from analysis import untrusted
from analysis.axis import Axis, number
from analysis.rows import Ratio

PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8C6BB1", "#7F7F7F")
"""Okabe and Ito's colours, told apart with any colour vision; black and yellow would vanish on some pages."""
NEUTRAL = "#8A94A0"
WHISKER = "#6B7280"
"""Of intervals on bars: seen on any bar, on white and on dark."""
INK, GRID = "#333333", "#dddddd"
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "x", "triangle-down", "star")
DASHES = ("solid", "dash", "dot", "dashdot", "longdash")
_RATIO_TICKS = (0.1, 0.2, 0.25, 0.33, 0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.1, 1.25, 1.5, 2, 2.5, 3, 4, 6, 8, 12, 20)
LEGEND_BELOW, EDGES = 66, 64
"""Points from the lower edge of a plot to its legend, past the axis's title; and those of both margins."""
_LABEL_SHARE = 0.055
"""Part of an axis that the label of a level takes."""


def colour(index: int) -> str:
    """Return the colour of the index-th thing; they repeat, symbols and dashes do not at the same pace."""
    return PALETTE[index % len(PALETTE)]


def symbol(index: int) -> str:
    """Return the symbol of the index-th thing."""
    return SYMBOLS[index % len(SYMBOLS)]


def escape(text: object) -> str:
    """Return text that came from users for a figure: plotly reads markup in labels."""
    return untrusted.label(text)


def interval_bars(
    values: Iterable[float], lows: Iterable[float | None], highs: Iterable[float | None]
) -> dict[str, object]:
    """Return plotly's error bars of figures with intervals; one whose ends are None or NaN has no bar."""
    above, below = [], []
    for value, low, high in zip(values, lows, highs, strict=True):
        known = low is not None and high is not None and math.isfinite(low + high)
        above.append(float(high - value) if known and high is not None else 0.0)
        below.append(float(value - low) if known and low is not None else 0.0)
    return length_bars(above, below) | {"visible": any(above) or any(below)}


def length_bars(above: object, below: object) -> dict[str, object]:
    """Return plotly's error bars that are so long upwards and downwards, shown whatever the lengths."""
    return {
        "type": "data",
        "symmetric": False,
        "array": above,
        "arrayminus": below,
        "thickness": 1.5,
        "width": 4,
        "visible": True,
    }


def frame_bars(rows: pd.DataFrame, name: str) -> dict[str, object]:
    """Return plotly's error bars of a section's column."""
    return interval_bars(rows[name], rows[f"{name}_lo"], rows[f"{name}_hi"])


def seen_ends(ratios: Sequence[Ratio]) -> list[float]:
    """Return all figures that an axis of ratios has to hold: values, and the ends that there are."""
    ends = (end for ratio in ratios for end in (ratio.value, ratio.lo, ratio.hi) if end)
    return [end for end in ends if math.isfinite(end)]


def ratio_bars(ratios: Sequence[Ratio]) -> dict[str, object]:
    """Return plotly's error bars of ratios."""
    return interval_bars(
        [ratio.value for ratio in ratios], [ratio.lo for ratio in ratios], [ratio.hi for ratio in ratios]
    )


def interval_text(ratio: Ratio) -> str:
    """Return ` [1.203, 1.261]` for a hover label, or nothing where there is no interval."""
    return "" if ratio.lo is None or ratio.hi is None else f" [{ratio.lo:.3f}, {ratio.hi:.3f}]"


def ratio_axis(
    figure: go.Figure, values: Sequence[float], *, row: int | None = None, col: int | None = None
) -> float:
    """Scale the y axis for ratios, draw the line of 1, and return the axis's lower end.

    Args:
        figure: one plot, or several of which `row` and `col` name one.
        values: what has to be seen on it.
        row: of a figure with several plots.
        col: likewise.
    """
    low, high = min([*values, 0.95]) / 1.06, max([*values, 1.05]) * 1.06
    low, high = max(low, 0.02), min(high, 50.0)  # an interval on one degree of freedom can span decades
    ticks = [tick for tick in _RATIO_TICKS if low <= tick <= high]
    one = {} if row is None else {"row": row, "col": col}
    figure.add_hline(y=1.0, line={"color": NEUTRAL, "width": 1}, **one)
    figure.update_yaxes(
        type="log",
        range=[math.log10(low), math.log10(high)],
        tickvals=ticks,
        ticktext=[f"{t:g}" for t in ticks],
        **one,
    )
    return low


def decade_ticks(low: float, high: float) -> dict[str, list[object]]:
    """Return the ticks 1, 2, 5, 10 ... of a logarithmic axis, each written out."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    values = [digit * 10.0**power for power in powers for digit in (1, 2, 5)]
    inside = [value for value in values if low * 0.8 <= value <= high * 1.25]
    return {"tickvals": list(inside), "ticktext": [f"{value:,.10g}" for value in inside]}


def level_axis(
    figure: go.Figure,
    axis: Axis,
    levels: Iterable[float],
    *,
    title: bool = True,
    row: int | None = None,
    col: int | None = None,
) -> None:
    """Make the x axis one of load levels: logarithmic, the levels as ticks.

    Labels that would touch their neighbour's are left out; the ticks stay.

    Args:
        figure: one plot, or several of which `row` and `col` name one.
        axis: what the levels are a number of.
        levels: all that are drawn.
        title: whether the axis says what it is, as the lowest of several that share it does.
        row: of a figure with several plots.
        col: likewise.
    """
    values = sorted(set(levels))
    if not values:
        return
    room = _LABEL_SHARE * math.log(values[-1] / values[0])
    labels, free = [], -math.inf
    for value in values:
        place = math.log(value)
        labels.append(number(value) if place >= free else "")
        free = place + room if place >= free else free
    figure.update_xaxes(
        type="log",
        tickvals=values,
        ticktext=labels,
        title_text=axis.title if title else None,
        row=row,
        col=col,
    )


def apply_style(figure: go.Figure, *, x: str, y: str) -> None:
    """Give a figure the common look; `x` and `y` are the axes' titles, with their units."""
    figure.update_layout(
        xaxis_title=x,
        yaxis_title=y,
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        font={"family": "system-ui, sans-serif", "size": 13, "color": INK},
        margin={"l": 64, "r": 16, "t": 12, "b": 52},
        legend={"orientation": "h", "yanchor": "top", "y": -0.2, "x": 0},
        height=430,
        colorway=list(PALETTE),
    )
    for update in (figure.update_xaxes, figure.update_yaxes):
        update(gridcolor=GRID, linecolor=NEUTRAL, zeroline=False, title_font_size=12)


def say_above(figure: go.Figure, text: str, *, lines: int) -> None:
    """Put some lines of words above the plots, at the left edge of the figure: what a slider's step shows.

    Args:
        figure: after `apply_style`.
        text: with `<br>` between lines, users' text in it escaped; a slider changes it as the figure's last
            annotation.
        lines: their number.
    """
    figure.add_annotation(
        text=text,
        xref="paper",
        yref="paper",
        x=0,
        y=1,
        xanchor="left",
        yanchor="bottom",
        xshift=-48,  # most of the left margin: phones have no more room
        yshift=6,
        align="left",
        showarrow=False,
        font={"size": 11},
    )
    figure.update_layout(margin={"t": 20 + 18 * lines})


def add_slider(
    figure: go.Figure,
    *,
    name: str,
    steps: Sequence[tuple[str, dict[str, object], dict[str, object]]],
    active: int,
    traces: Sequence[int] | None = None,
) -> None:
    """Give a figure its slider: one a figure, each step's state worked out beforehand.

    Args:
        figure: the figure, drawn in the state of step `active`.
        name: what it moves, with its unit: `concurrency`.
        steps: (label, changes of the traces as `plotly.restyle` takes them, changes of the layout); every
            step sets all that any step changes, so that each can follow each.
        active: index of the step that is drawn.
        traces: places of the traces that the changes are for, in order; all of them where None.
    """
    places = () if traces is None else (list(traces),)
    figure.update_layout(
        sliders=[
            {
                "active": active,
                "name": name,
                "currentvalue": {"prefix": f"{name}: "},
                "pad": {"t": 60},
                "steps": [
                    {"label": label, "method": "update", "args": [restyled, layout, *places]}
                    for label, restyled, layout in steps
                ],
            }
        ]
    )


def end_bars(
    figure: go.Figure, labels: Sequence[str], ends: Sequence[float | None], words: Sequence[str], *, x: str
) -> None:
    """Finish a figure of lying bars, one a label from the top: words behind each, and the common look.

    Args:
        figure: the figure with its bars; the words become its last trace.
        labels: what stands before each bar.
        ends: where each bar ends, in the unit of the x axis.
        words: what stands behind it.
        x: title of the x axis, with its unit.
    """
    figure.add_trace(
        go.Scatter(
            y=labels,
            x=ends,
            mode="text",
            text=words,
            textposition="middle right",
            showlegend=False,
            hoverinfo="skip",
            cliponaxis=False,
        )
    )
    apply_style(figure, x=x, y="")
    height = max(300, 170 + 44 * len(labels))
    legend = {"y": -LEGEND_BELOW / (height - EDGES), "traceorder": "normal"}
    figure.update_layout(barmode="stack", height=height, legend=legend)
    figure.update_yaxes(autorange="reversed", automargin=True, gridcolor="rgba(0,0,0,0)")
