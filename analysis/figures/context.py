"""Acceptance and decode speed against the length of the context, by arm."""

import math
from collections.abc import Sequence

import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from analysis import context as analysis_context
from analysis.decision_words import words_again
from analysis.figures.chosen import left_out, ranked_arms, short_names
from analysis.figures.figure import Figure
from analysis.figures.style import NEUTRAL, apply_style, colour, frame_bars, symbol
from analysis.figures.words import with_interval
from analysis.frame import Sweep
from analysis.ksweep import axis_of
from analysis.summary import Summary
from jobs.metric_names import CONTEXT_SLICES

TITLE = "What do long contexts take: acceptance, or the step?"
MOST = 6
"""Arms drawn."""
RANGES = {
    words: words.removesuffix(" of context").replace(" tokens", "") for words in CONTEXT_SLICES.values()
}
PANELS = (("mal", "MAL<br>(tokens a step)"), ("speed_ratio", "decode speed<br>over baseline"))
"""(column, title) of each plot."""


def context(sweep: Sweep, summary: Summary) -> tuple[Figure, ...]:
    """Return acceptance length and decode speed over the baseline's, by range of context lengths."""
    section = sweep.once(analysis_context.context)
    frame = section.frame
    if frame.empty:
        return (_absent(section.missing),)
    drafted = frame[frame["k"].gt(0) & frame["speed_ratio"].notna()]
    ranges = [words for words in CONTEXT_SLICES.values() if words in set(drafted["context"])]
    if len(ranges) < 2:
        held = (
            f"all answers lie {RANGES[ranges[0]]} tokens of context" if ranges else "no drafter was compared"
        )
        return (
            _absent(
                f"{held}, so nothing tells how acceptance and speed go on at longer ones: "
                f"`{words_again(sweep.plan, 'workload=...')}` with longer conversations measures it"
            ),
        )
    level, crowded = _level(drafted)
    own = drafted[drafted["level"].eq(level) & drafted["oversubscribed"].eq(crowded)]
    here = set(own["digest"])
    ranked = [arm for arm in dict.fromkeys((*ranked_arms(sweep, summary), *own["digest"])) if arm in here]
    arms = [own[own["digest"].eq(arm)] for arm in ranked[:MOST]]
    at = axis_of(sweep).at(level)
    return (
        Figure(
            name="context",
            title=TITLE,
            plot=_plot(arms, ranges),
            finding=_finding(arms[0], at),
            reading=f"At {at}, the load with most ranges of context lengths. Above, the acceptance length of "
            "answers whose middle lies in the range (95 % over blocks); below, decode speed over the "
            "baseline's in the same range (95 % of one comparison). Where acceptance stays and speed falls, "
            "the step does it." + left_out(len(ranked) - len(arms)),
            sections=("context",),
        ),
    )


def _absent(why: str) -> Figure:
    return Figure(name="context", title=TITLE, missing=why, sections=("context",))


def _level(frame: pd.DataFrame) -> tuple[float, bool]:
    """Return the (load, whether oversubscribed) with most ranges; of equal ones the highest load."""
    counts = frame.groupby(["level", "oversubscribed"])["context"].nunique()
    places = [(float(level), bool(crowded)) for level, crowded in counts.index]
    return max(places, key=lambda place: (not place[1], int(counts[place]), place[0]))


def _plot(arms: Sequence[pd.DataFrame], ranges: Sequence[str]) -> go.Figure:
    figure = make_subplots(rows=2, cols=1, shared_xaxes=True, vertical_spacing=0.07)
    firsts = [rows.iloc[0] for rows in arms]
    names = short_names((str(row["digest"]), str(row["arm"]), str(row["layout"])) for row in firsts)
    for index, rows in enumerate(arms):
        name = names[str(rows["digest"].iloc[0])]
        for place, (column, _) in enumerate(PANELS, start=1):
            known = rows[rows[column].notna()]
            figure.add_trace(
                go.Scatter(
                    x=[RANGES[words] for words in known["context"]],
                    y=known[column].tolist(),
                    error_y=frame_bars(known, column),
                    mode="lines+markers",
                    name=name,
                    legendgroup=str(index),
                    showlegend=place == len(PANELS),
                    line={"color": colour(index), "width": 2},
                    marker={"symbol": symbol(index), "size": 9},
                    hovertemplate=f"%{{x}}: %{{y:.3f}}<extra>{name}</extra>",
                ),
                row=place,
                col=1,
            )
    apply_style(figure, x="", y="")
    figure.update_layout(height=480, legend={"y": -0.2})
    figure.update_xaxes(categoryorder="array", categoryarray=[RANGES[words] for words in ranges])
    figure.update_xaxes(title_text="context (tokens: prompt and answer so far)", row=len(PANELS), col=1)
    for place, (_, title) in enumerate(PANELS, start=1):
        figure.update_yaxes(title_text=title, row=place, col=1)
    figure.add_hline(y=1.0, line={"color": NEUTRAL, "width": 1}, row=len(PANELS), col=1)
    return figure


def _finding(rows: pd.DataFrame, at: str) -> str:
    first, last = rows.iloc[0], rows.iloc[-1]
    forced = " (forced acceptance)" if first["synthetic"] else ""
    ratios = [
        with_interval(row["speed_ratio"], row["speed_ratio_lo"], row["speed_ratio_hi"])
        for row in (first, last)
    ]
    told = f"{first['arm']}{forced} at {at}, from {RANGES[first['context']]} to {RANGES[last['context']]}: "
    if math.isfinite(first["mal"]) and math.isfinite(last["mal"]):
        told += f"acceptance length {first['mal']:.2f} to {last['mal']:.2f}, "
    return f"{told}decode speed over the baseline's {ratios[0]} to {ratios[1]}."
