"""Where the gain flips: an objective's ratio against the load, with intervals and crossovers."""

from collections import Counter
from collections.abc import Iterable, Sequence

import plotly.graph_objects as go

from analysis.axis import AXES, number
from analysis.figures.figure import Figure
from analysis.figures.style import (
    DASHES,
    NEUTRAL,
    apply_style,
    colour,
    escape,
    interval_text,
    ratio_axis,
    ratio_bars,
    symbol,
)
from analysis.frame import Sweep
from analysis.objectives import OBJECTIVES
from analysis.rows import CrossoverRow, Ratio, VerdictRow
from analysis.summary import Summary

OTHERS = ("user_speed", "output", "computed")
"""Objectives drawn beside the sweep's own."""


def crossover(sweep: Sweep, summary: Summary) -> tuple[Figure, ...]:  # noqa: ARG001 - the seam of all figures
    """Return a figure an objective: the sweep's own first."""
    found = []
    for name in dict.fromkeys((summary.objective, *OTHERS)):
        plot = ratio_figure(summary, name)
        told = [row.text for row in summary.crossovers if row.objective == name]
        title = f"{OBJECTIVES[name].title.capitalize()} against {AXES[summary.axis].noun}"
        found.append(
            Figure(
                name=f"ratio-{name.replace('_', '-')}",
                title=title,
                plot=plot,
                finding="; ".join(told) or title,
                reading="Bars are simultaneous 95 % intervals. The band along 1 is the crossover bracket, "
                "the ring its estimate.",
                missing="no arm was compared with a baseline" if plot is None else "",
            )
        )
    return tuple(found)


def ratio_figure(summary: Summary, objective: str) -> go.Figure | None:
    """Return an objective's ratio against the load level, a line an arm, with intervals and crossovers."""
    arms = _by_arm(row for row in summary.rows if row.ratio(objective) is not None)
    if not arms:
        return None
    figure = go.Figure()
    axis = AXES[summary.axis]
    values: list[float] = []
    crossings = {row.arm: row for row in summary.crossovers if row.objective == objective}
    layouts = [layout for layout, _ in Counter(rows[0].layout for rows in arms).most_common()]
    for index, rows in enumerate(arms):
        shade, dash = colour(index), DASHES[layouts.index(rows[0].layout) % len(DASHES)]
        ratios: list[Ratio] = [ratio for row in rows if (ratio := row.ratio(objective))]
        name = escape(rows[0].label)
        figure.add_trace(
            go.Scatter(
                x=[row.level for row in rows],
                y=[ratio.value for ratio in ratios],
                error_y=ratio_bars(ratios),
                customdata=[
                    [interval_text(ratio), row.verdict] for ratio, row in zip(ratios, rows, strict=True)
                ],
                mode="lines+markers",
                name=name,
                legendgroup=rows[0].arm,
                line={"color": shade, "dash": dash, "width": 2},
                marker={"symbol": symbol(index), "size": 9},
                hovertemplate=axis.hover
                + ": %{y:.3f}%{customdata[0]}<br>%{customdata[1]}<extra>"
                + name
                + "</extra>",
            )
        )
        values += [value for ratio in ratios for value in (ratio.value, ratio.lo, ratio.hi) if value]
        if rows[0].arm in crossings:
            _mark_crossover(figure, crossings[rows[0].arm], shade)
    levels = sorted({row.level for rows in arms for row in rows})
    apply_style(figure, x=f"{axis.title}, log scale", y="ratio to baseline")
    figure.update_xaxes(type="log", tickvals=levels, ticktext=[number(level) for level in levels])
    floor = ratio_axis(figure, values)
    _mark_missing(figure, [row for row in summary.rows if row.ratio(objective) is None], floor)
    return figure


def _by_arm(rows: Iterable[VerdictRow]) -> list[list[VerdictRow]]:
    arms: dict[str, list[VerdictRow]] = {}
    for row in rows:
        arms.setdefault(row.arm, []).append(row)
    return [sorted(own, key=lambda row: row.level) for own in arms.values()]


def _mark_crossover(figure: go.Figure, row: CrossoverRow, shade: str) -> None:
    """Draw the bracket as a broad band along ratio 1, and the point as a ring on it."""
    main = row.crossover.main
    if main is None:
        return
    common = {"legendgroup": row.arm, "showlegend": False}
    text = escape(f"{row.label}: {row.text}")
    figure.add_trace(
        go.Scatter(
            x=[main.lower, main.upper],
            y=[1.0, 1.0],
            mode="lines",
            line={"color": shade, "width": 12},
            opacity=0.25,
            hovertext=text,
            hoverinfo="text",
            **common,
        )
    )
    if main.log_log is not None:
        figure.add_trace(
            go.Scatter(
                x=[main.log_log],
                y=[1.0],
                mode="markers",
                marker={"symbol": "circle-open", "size": 13, "color": shade, "line": {"width": 2.5}},
                hovertext=text,
                hoverinfo="text",
                **common,
            )
        )


def _mark_missing(figure: go.Figure, rows: Sequence[VerdictRow], floor: float) -> None:
    """Put a cross on the floor of the figure where an arm has no ratio: a failure is a result, not a hole."""
    if rows:
        figure.add_trace(
            go.Scatter(
                x=[row.level for row in rows],
                y=[floor * 1.03] * len(rows),
                mode="markers",
                name="no valid pair",
                marker={"symbol": "x", "size": 9, "color": NEUTRAL},
                hovertext=[escape(f"{row.label}: {row.reason}") for row in rows],
                hoverinfo="text",
            )
        )
