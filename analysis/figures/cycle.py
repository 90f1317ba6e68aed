"""The speculative cycle of the chosen drafter: what it proposes, what is accepted, what a step emits."""

import math
from collections.abc import Sequence

import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from analysis.arms import ArmFacts, arm_facts
from analysis.contrasts import counted
from analysis.figures.chosen import chosen_arm
from analysis.figures.figure import Figure
from analysis.figures.style import NEUTRAL, apply_style, colour, interval_bars, symbol
from analysis.frame import Sweep
from analysis.ksweep import MISSING, axis_of
from analysis.positions import COUNTED, Interval, PositionShare, pooled_length, position_shares, positions
from analysis.summary import Summary
from jobs.result import MEASURED

TITLE = "What does one speculative step yield?"
MOST_LEVELS = 5
"""Loads drawn one by one: the lowest, the highest, and some between."""


def cycle(sweep: Sweep, summary: Summary) -> tuple[Figure, ...]:
    """Return the acceptance by position of the chosen drafter, and the tokens that it adds up to."""
    arm = chosen_arm(sweep, summary)
    if arm is None:
        return (_absent(MISSING),)
    fact = arm_facts(sweep.cells, sweep.plan)[arm]
    cells = _cells(sweep, arm)
    table = positions(sweep).frame
    rows = table[table["drafter"].eq(fact.family) & table["k"].eq(fact.k)] if len(table) else table
    if rows.empty:
        return (
            _absent(
                f"the engine of {fact.label} counts neither drafts nor accepted tokens; `specload analyse "
                f"{sweep.directory} k_sweep` tells its speed by the users' clock"
            ),
        )
    length = pooled_length(cells, "spec/mal")
    tokens = pooled_length(cells, "spec/tokens_per_step")
    levels = _levels(sweep, cells, fact.k)
    return (
        Figure(
            name="cycle",
            title=TITLE,
            plot=_plot(rows, levels, length, tokens),
            finding=_finding(fact, rows, length, levels),
            reading=_reading(fact, rows, len(levels)),
            sections=("positions",),
        ),
    )


def _absent(why: str) -> Figure:
    return Figure(name="cycle", title=TITLE, missing=why, sections=("positions",))


def _cells(sweep: Sweep, arm: str) -> pd.DataFrame:
    """Return the arm's measured cells: those with cores of their own, where there are any."""
    cells = counted(sweep.cells)
    own = cells[cells["arm"].eq(arm) & cells["outcome"].eq(MEASURED)]
    alone = own[~own["oversubscribed"].astype(bool)]
    return own if alone.empty else alone


def _levels(
    sweep: Sweep, cells: pd.DataFrame, k: int
) -> list[tuple[str, tuple[PositionShare, ...], Interval]]:
    """Return (load, shares, mean length) at each level that counts positions."""
    found = []
    for level, own in cells.groupby("level"):
        shares = position_shares(own, k)
        if shares:
            found.append((axis_of(sweep).at(float(str(level))), shares, pooled_length(own, "spec/mal")))
    return found


def _plot(
    rows: pd.DataFrame,
    levels: Sequence[tuple[str, tuple[PositionShare, ...], Interval]],
    length: Interval,
    tokens: Interval,
) -> go.Figure:
    figure = make_subplots(rows=2, cols=1, row_heights=[0.74, 0.26], vertical_spacing=0.2)
    places = rows["position"].tolist()
    _shares(figure, rows, places)
    for index, (name, shares, _) in enumerate(_some(levels) if len(levels) > 1 else ()):
        figure.add_trace(
            go.Scatter(
                x=places,
                y=[share.conditional[0] for share in shares],
                mode="lines",
                name="single loads",
                legendgroup="loads",
                showlegend=index == 0,
                line={"color": NEUTRAL, "width": 1},
                opacity=0.6,
                hovertemplate=f"{name}, position %{{x}}: %{{y:.3f}} if reached<extra></extra>",
            ),
            row=1,
            col=1,
        )
    _emitted(figure, [1.0, *rows["unconditional"]], length, tokens)
    apply_style(figure, x="", y="")
    figure.update_layout(
        height=470,
        barmode="stack",
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
            error_y=_bars(rows, "unconditional"),
            name="accepted so far",
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
            error_y=_bars(rows, "conditional"),
            mode="lines+markers",
            name="accepted if reached",
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
            name=f"one alpha, {alpha:.3f}",
            line={"color": colour(2), "width": 2, "dash": "dot"},
            marker={"symbol": "diamond-open", "size": 9},
            hovertemplate="alpha to the power %{x}: %{y:.3f}<extra></extra>",
        ),
        row=1,
        col=1,
    )


def _bars(rows: pd.DataFrame, name: str) -> dict[str, object]:
    return interval_bars(
        rows[name].tolist(),
        [_end(value) for value in rows[f"{name}_lo"]],
        [_end(value) for value in rows[f"{name}_hi"]],
    )


def _end(value: float) -> float | None:
    return value if math.isfinite(value) else None


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
    for name, (value, low, high), mark in (("MAL", length, 3), ("tokens a decode step", tokens, 4)):
        if math.isfinite(value):
            figure.add_trace(
                go.Scatter(
                    x=[value],
                    y=["step"],
                    error_x=interval_bars([value], [_end(low)], [_end(high)]),
                    mode="markers",
                    name=name,
                    marker={"symbol": symbol(mark), "size": 11, "color": colour(mark)},
                    hovertemplate=f"{name}: %{{x:.3f}}<extra></extra>",
                ),
                row=2,
                col=1,
            )


def _some(
    levels: Sequence[tuple[str, tuple[PositionShare, ...], Interval]],
) -> list[tuple[str, tuple[PositionShare, ...], Interval]]:
    """Return so many levels that each line can be seen, the ends among them."""
    if len(levels) <= MOST_LEVELS:
        return list(levels)
    step = (len(levels) - 1) / (MOST_LEVELS - 1)
    return [levels[round(place * step)] for place in range(MOST_LEVELS)]


def _finding(
    fact: ArmFacts,
    rows: pd.DataFrame,
    length: Interval,
    levels: Sequence[tuple[str, tuple[PositionShare, ...], Interval]],
) -> str:
    first, last = rows.iloc[0], rows.iloc[-1]
    forced = " (forced acceptance)" if fact.synthetic else ""
    told = (
        f"{fact.label}{forced} emits {_told(length)} of {fact.k + 1} tokens a verification step; its first "
        f"draft token is accepted {first['unconditional']:.0%} of the time"
    )
    if fact.k > 1:
        told += f", the last, where it is reached, {last['conditional']:.0%}"
    lengths = [own[0] for _, _, own in levels if math.isfinite(own[0])]
    if len(lengths) > 1:
        told += f"; over the loads the length lies between {min(lengths):.2f} and {max(lengths):.2f}"
    return f"{told}."


def _told(value: Interval) -> str:
    middle, low, high = value
    return f"{middle:.2f}" + (f" [{low:.2f}, {high:.2f}]" if math.isfinite(low) else "")


def _reading(fact: ArmFacts, rows: pd.DataFrame, levels: int) -> str:
    told = [
        f"Bars: share of the drafts of {fact.label} whose tokens up to a position were all accepted.",
        "Squares: share accepted of those whose earlier positions were.",
        "Dotted: what the one alpha that fits all draft lengths best would give.",
        "Below, the bars stand in a row after the verifier's own token, together the mean acceptance length",
        "(MAL), tokens a verification step; steps without a draft lower the tokens a decode step.",
    ]
    if rows["source"].iloc[0] != COUNTED:
        told.append(
            "The engine counts no positions: shares are what each draft length adds to the mean length, made "
            "non-increasing."
        )
    elif rows["unconditional_lo"].notna().any():
        told.append(
            "Intervals are 95 % over blocks, which replay the same conversations: they tell how the "
            "measurement varies, not how other texts would."
        )
    else:
        told.append("One block: there is no interval.")
    if levels > 1:
        drawn = f"{MOST_LEVELS} of the {levels} loads" if levels > MOST_LEVELS else "each load"
        told.append(f"Thin lines: {drawn} by itself; acceptance follows the text, hardly the load.")
    return " ".join(told)
