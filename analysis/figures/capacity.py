"""What fits in the KV cache: tokens by arm, what its drafter took, and from which load requests wait."""

from collections.abc import Sequence

import plotly.graph_objects as go

from analysis.axis import AXES, Axis
from analysis.capacity import CapacityRow, capacity_rows
from analysis.capacity_sections import NOT_TOLD
from analysis.figures.chosen import left_out, ranked_arms, short_names
from analysis.figures.figure import Figure
from analysis.figures.style import colour, end_bars
from analysis.figures.words import percent
from analysis.frame import Sweep
from analysis.summary import Summary

TITLE = "What fits in the KV cache, and what does the drafter take?"
MOST_BARS = 12
_END = 1.45
"""Length of the axis in longest bars: words stand behind them."""


def capacity(sweep: Sweep, summary: Summary) -> tuple[Figure, ...]:
    """Return the KV tokens of every arm, beside what its baseline has more."""
    rows = capacity_rows([cell for cell in sweep.results if cell.counts])
    told = [row for row in rows if not row.counterfactual]
    if not told:
        return (Figure(name="capacity", title=TITLE, missing=NOT_TOLD, sections=("capacity", "memory")),)
    ranked = ranked_arms(sweep, summary)
    shown = _relevant(told, ranked)
    return (
        Figure(
            name="capacity",
            title=TITLE,
            plot=_plot(shown, AXES[summary.axis]),
            finding=_finding(told, ranked),
            reading="KV tokens of the block's slice as the engines stated them at their start, so without an "
            "interval; the light part is what the baseline of the same layout has more. Behind a bar: the "
            "drafter's share, and the lowest load tried at which most samples show a queue."
            f"{left_out(len(told) - len(shown))}",
            sections=("capacity", "memory"),
        ),
    )


def _relevant(rows: Sequence[CapacityRow], ranked: Sequence[str]) -> list[CapacityRow]:
    """Return the rows that one plot shows, in their order: baselines, then the most relevant arms."""
    if len(rows) <= MOST_BARS:
        return list(rows)
    places = {arm: place for place, arm in enumerate(ranked)}
    order = sorted(rows, key=lambda row: (row.taken is not None, places.get(row.arm, len(places))))
    kept = {row.arm for row in order[:MOST_BARS]}
    return [row for row in rows if row.arm in kept]


def _plot(rows: Sequence[CapacityRow], axis: Axis) -> go.Figure:
    names = short_names((row.arm, row.label, row.layout) for row in rows)
    labels = [names[row.arm] for row in rows]
    longest = max(row.tokens + max(row.taken or 0.0, 0.0) for row in rows)
    hover = [f"{row.tokens:,.0f} tokens{_fits(row)}<br>requests wait: {row.waits}" for row in rows]
    figure = go.Figure()
    figure.add_trace(
        go.Bar(
            y=labels,
            x=[row.tokens for row in rows],
            name="tokens that fit",
            orientation="h",
            marker={"color": colour(0)},
            text=[f"{row.tokens:,.0f}" for row in rows],
            textposition="inside",
            insidetextanchor="start",
            textangle=0,
            customdata=hover,
            hovertemplate="%{y}: %{customdata}<extra></extra>",
        )
    )
    figure.add_trace(
        go.Bar(
            y=labels,
            x=[max(row.taken or 0.0, 0.0) for row in rows],
            name="the drafter took",
            orientation="h",
            marker={"color": colour(1), "opacity": 0.45, "pattern": {"shape": "/", "solidity": 0.3}},
            hovertemplate="%{y}: the drafter took %{x:,.0f} tokens<extra></extra>",
        )
    )
    ends = [row.tokens + max(row.taken or 0.0, 0.0) for row in rows]
    end_bars(figure, labels, ends, [_words(row, axis) for row in rows], x="KV tokens of the slice")
    figure.update_xaxes(range=[0.0, _END * longest], tickformat=",~s")
    return figure


def _words(row: CapacityRow, axis: Axis) -> str:
    """Return what stands behind a bar, short: the drafter's share, and the load at which requests wait."""
    share = "" if not row.taken_share else f"{-100.0 * row.taken_share:+.0f} %"
    waits = "" if row.waits_from is None else f"waits {axis.at(row.waits_from)}"
    return "  " + "<br>  ".join(word for word in (share, waits) if word)


def _fits(row: CapacityRow) -> str:
    if row.conversations_mean is None or row.context_mean is None:
        return ""
    return f", {row.conversations_mean:,.0f} conversations of {row.context_mean:,.0f} tokens"


def _finding(rows: Sequence[CapacityRow], ranked: Sequence[str]) -> str:
    """Say what the most relevant arm leaves of its baseline's cache."""
    own = {row.arm: row for row in rows}
    row = next((own[arm] for arm in ranked if arm in own), rows[-1])
    if row.taken is None or row.taken_share is None:
        told = f"{row.label} holds {row.tokens:,.0f} KV tokens{_fits(row)}"
    else:
        natural = row.tokens + row.taken
        share = percent(row.taken_share, None, None)
        took = f"its drafter took {share}" if row.taken > 0 else "its drafter took none"
        told = f"{row.label} has {row.tokens:,.0f} of the baseline's {natural:,.0f} KV tokens: {took}"
    if row.waits_from is None and row.waits.startswith("unknown"):
        return f"{told}. No level was sampled long enough to tell where requests wait."
    wait = "Requests wait" if row.waits_from is not None else "Where requests wait is"
    return f"{told}. {wait} {row.waits}."
