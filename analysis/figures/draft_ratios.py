"""The objective's ratio against the draft length, a line a load, where the load decides which K is best."""

from collections.abc import Sequence

import plotly.graph_objects as go

from analysis.axis import Axis
from analysis.bestk import best_by_load, best_of
from analysis.figures.figure import Figure
from analysis.figures.style import (
    apply_style,
    colour,
    interval_text,
    ratio_axis,
    ratio_bars,
    seen_ends,
    symbol,
)
from analysis.figures.words import spread_out
from analysis.ksweep import DrafterLevel
from analysis.objectives import CROSSOVERS, OBJECTIVES
from analysis.rows import VerdictRow
from analysis.summary import Summary

MOST = 7
"""Loads drawn."""


def ratios_by_length(
    items: Sequence[DrafterLevel], summary: Summary, axis: Axis, name: str
) -> tuple[Figure, ...]:
    """Return the figure of one drafter; none where the best K is the same at all loads.

    A load that a search placed for some draft lengths only is left out: the best of some is not the best.

    Args:
        items: the drafter at its levels, ascending.
        summary: of the sweep.
        axis: of the levels.
        name: of the figure.
    """
    objective = summary.objective
    title = OBJECTIVES[objective].title
    tried = {(row.arm, row.level) for row in summary.rows}
    arms = {arm for item in items for arm in item.arms.values()}
    whole = [item for item in items if all((arm, item.level) in tried for arm in arms)]
    best = {item.level: k for item in whole if (k := _best(item, objective)) is not None}
    runs = best_by_load(list(best), list(best.values()), axis)
    if len(runs) < 2:
        return ()
    known = {(row.arm, row.level, row.oversubscribed): row for row in summary.rows if row.ratio(objective)}
    levels = [
        (item.level, rows)
        for item in whole
        if (
            rows := [
                known[place]
                for arm in item.arms.values()
                if (place := (arm, item.level, item.oversubscribed)) in known
            ]
        )
    ]
    drawn = [levels[place] for place in spread_out(len(levels), MOST)]
    left = len(levels) - len(drawn)
    forced = " (forced acceptance)" if all(row.synthetic for _, rows in drawn for row in rows) else ""
    return (
        Figure(
            name=name,
            title=f"Does the best draft length of {items[0].family} change with the load?",
            plot=_plot(drawn, objective, axis),
            finding=f"By {title} {items[0].family}{forced} is best with {', '.join(runs)}"
            + (" (K=0: no drafter)." if 0 in best.values() else "."),
            reading=f"Ratios of {title} to the baseline's, with simultaneous 95 % intervals; a line a load."
            + (f" {left} loads between are left out." if left else ""),
        ),
    )


def _best(item: DrafterLevel, objective: str) -> int | None:
    """Return the K with the best mean ratio, 0 where the baseline is ahead."""
    if objective not in CROSSOVERS:
        return None
    fit = item.fits[objective]
    lengths = {arm: k for k, arm in item.arms.items() if fit.has(arm)}
    return int(best_of(fit.of(list(lengths)), lengths)["k"]) if lengths else None


def _plot(drawn: Sequence[tuple[float, Sequence[VerdictRow]]], objective: str, axis: Axis) -> go.Figure:
    figure = go.Figure()
    values: list[float] = []
    for index, (level, rows) in enumerate(drawn):
        ratios = [ratio for row in rows if (ratio := row.ratio(objective))]
        figure.add_trace(
            go.Scatter(
                x=[row.k for row in rows],
                y=[ratio.value for ratio in ratios],
                error_y=ratio_bars(ratios),
                customdata=[[interval_text(ratio)] for ratio in ratios],
                mode="lines+markers",
                name=axis.at(level),
                line={"color": colour(index), "width": 2},
                marker={"symbol": symbol(index), "size": 9},
                hovertemplate=f"K=%{{x}}: %{{y:.3f}}%{{customdata[0]}}<extra>{axis.at(level)}</extra>",
            )
        )
        values += seen_ends(ratios)
    apply_style(figure, x="draft length K (tokens)", y="ratio to baseline")
    figure.update_xaxes(tickvals=sorted({row.k for _, rows in drawn for row in rows}))
    ratio_axis(figure, values)
    return figure
