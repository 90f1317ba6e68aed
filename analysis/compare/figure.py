"""Both sweeps' ratios against the load, and below them the change from A to B."""

import math
from collections.abc import Mapping, Sequence

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from analysis.axis import AXES, Axis
from analysis.compare.comparison import Comparison
from analysis.compare.estimates import BETTER, WORSE
from analysis.compare.ratios import RatioChange
from analysis.compare.words import NAMED, change_words
from analysis.figures.figure import Figure
from analysis.figures.style import (
    NEUTRAL,
    apply_style,
    colour,
    escape,
    interval_text,
    level_axis,
    ratio_axis,
    ratio_bars,
    seen_ends,
    symbol,
)
from analysis.objectives import OBJECTIVES
from analysis.rows import Ratio, VerdictRow
from jobs.nouns import are, counted, some

ARMS = 4
"""Most arms that are drawn: two lines each."""
PALE = 0.45
"""Opacity of what one sweep alone has."""
NAME = "comparison"


def comparison_figure(found: Comparison) -> Figure:
    """Return the figure of a comparison; absent where no arm has a ratio in both sweeps."""
    arms = _chosen(found.changes)
    title = f"How did each arm's ratio of {OBJECTIVES[found.objective].title} change from A to B?"
    if not arms:
        return Figure(
            name=NAME,
            title=title,
            missing="no arm has a valid pair in both sweeps; `specload status` says what became of the cells",
        )
    every = {change.pair.label for change in found.changes if change.judged is not None}
    left = len(every) - len(arms)
    return Figure(
        name=NAME,
        title=title,
        plot=_plot(found, arms),
        finding=_finding(found),
        reading="Above: ratio to the baseline, A dashed with open marks, B solid with filled ones; bars are "
        "each sweep's simultaneous 95 % intervals. Below: B over A with its interval; the band is the "
        "smallest threshold of the levels."
        + (f" {_left_out(left)}: drawn are those whose change is largest for its noise." if left else "")
        + _one_sided(found, arms),
        sections=("ratios",),
    )


def _finding(found: Comparison) -> str:
    """Return the sum of it, and of what surely changed the most."""
    sure = [change for change in found.changes if change.word in (BETTER, WORSE)]
    most = max(sure, key=_signal, default=None)
    words = [found.findings[0], *([] if most is None else [change_words(most)])]
    told = "; ".join(words)
    return f"{told[:1].upper()}{told[1:]}."


def _left_out(count: int) -> str:
    return f"{counted(count, 'arm')} {are(count)} left out"


def _one_sided(found: Comparison, arms: Sequence[Sequence[RatioChange]]) -> str:
    """Return what was measured in one sweep only, drawn pale or not at all."""
    told = ""
    if any(_alone(found, own, place) for own in arms for place in (0, 1)):
        told = " Pale marks without a line: a ratio in one sweep only, so there is no change."
    for letter, only in found.matching.only.items():
        labels = [arm.label for arm, _ in only if not arm.baseline]
        if labels:
            told += f" Only in {letter}, and not drawn: {some(labels, NAMED)}."
    return told


def _alone(found: Comparison, own: Sequence[RatioChange], place: int) -> list[tuple[VerdictRow, Ratio]]:
    """Return an arm's rows with a ratio in one sweep (0: A, 1: B) at levels without one in the other."""
    side, arm = ((found.a, own[0].pair.a), (found.b, own[0].pair.b))[place]
    levels = {change.level for change in own}
    rows = (row for (digest, _), row in sorted(side.rows.items()) if digest == arm.arm)
    return [
        (row, ratio)
        for row in rows
        if row.level not in levels and (ratio := row.ratio(found.objective)) is not None
    ]


def _chosen(changes: Sequence[RatioChange]) -> list[list[RatioChange]]:
    """Return the arms with a ratio on both sides, each over its levels: those with most to say."""
    arms: dict[str, list[RatioChange]] = {}
    for change in changes:
        if change.judged is not None:
            arms.setdefault(change.pair.a.arm, []).append(change)
    ranked = sorted(arms.values(), key=_weight, reverse=True)[:ARMS]
    return [own for own in arms.values() if own in ranked]


def _weight(own: Sequence[RatioChange]) -> tuple[bool, bool, float]:
    """Return by what an arm goes before others: served, decided, largest change for its noise."""
    served = not own[0].a.counterfactual
    decided = any(change.word in (BETTER, WORSE) for change in own)
    return served, decided, max(_signal(change) for change in own)


def _signal(change: RatioChange) -> float:
    ratio = change.judged.ratio if change.judged else Ratio(value=1.0)
    if ratio.lo is None or ratio.hi is None or ratio.hi <= ratio.lo:
        return abs(math.log(ratio.value))
    return abs(math.log(ratio.value)) / (math.log(ratio.hi) - math.log(ratio.lo))


def _plot(found: Comparison, arms: Sequence[Sequence[RatioChange]]) -> go.Figure:
    figure = make_subplots(rows=2, shared_xaxes=True, vertical_spacing=0.07, row_heights=[0.6, 0.4])
    axis = AXES[arms[0][0].a.axis]
    drawn: list[Ratio] = []
    moved: list[Ratio] = []
    seen: set[float] = set()
    for index, own in enumerate(arms):
        forced = " (forced)" if own[0].a.synthetic or own[0].b.synthetic else ""
        label = f"{escape(own[0].pair.label)}{forced}"
        style = {"color": colour(index), "symbol": symbol(index), "legendgroup": own[0].pair.a.arm}
        for place, (letter, dash, mark) in enumerate((("A", "dash", "-open"), ("B", "solid", ""))):
            ratios = [change.ratios[place] or Ratio(value=math.nan) for change in own]
            words = [change.b.verdict if place else change.a.verdict for change in own]
            look = {**style, "symbol": f"{symbol(index)}{mark}", "dash": dash, "name": f"{letter} {label}"}
            levels = [change.level for change in own]
            figure.add_trace(_line(axis, levels, ratios, words, look), row=1, col=1)
            drawn += ratios
            if alone := _alone(found, own, place):
                pale = {**look, "name": f"only in {letter}: {label}"}
                places, ratios = [row.level for row, _ in alone], [ratio for _, ratio in alone]
                trace = _line(axis, places, ratios, [row.verdict for row, _ in alone], pale)
                trace.update(mode="markers", opacity=PALE, showlegend=False)
                figure.add_trace(trace, row=1, col=1)
                drawn += ratios
                seen.update(places)
        changes = [change.judged.ratio for change in own if change.judged is not None]
        look = {**style, "dash": "dot", "name": f"B over A, {label}"}
        trace = _line(axis, [change.level for change in own], changes, [change.word for change in own], look)
        figure.add_trace(trace.update(showlegend=False), row=2, col=1)
        moved += changes
    levels = sorted(seen.union(change.level for own in arms for change in own))
    apply_style(figure, x="", y="")
    figure.update_layout(height=560, legend={"y": -0.16})
    level_axis(figure, axis, levels, title=False, row=1, col=1)
    level_axis(figure, axis, levels, row=2, col=1)
    limit = min(change.judged.threshold for own in arms for change in own if change.judged is not None)
    ratio_axis(figure, seen_ends(drawn), row=1, col=1)
    ratio_axis(figure, [*seen_ends(moved), 1.0 + 2.0 * limit, 1.0 / (1.0 + 2.0 * limit)], row=2, col=1)
    band = {"fillcolor": NEUTRAL, "opacity": 0.18, "line_width": 0}
    figure.add_hrect(y0=1.0 / (1.0 + limit), y1=1.0 + limit, row=2, col=1, **band)
    figure.update_yaxes(title_text="ratio to baseline", row=1, col=1)
    figure.update_yaxes(title_text="B over A", row=2, col=1)
    return figure


def _line(
    axis: Axis,
    levels: Sequence[float],
    ratios: Sequence[Ratio],
    words: Sequence[str],
    look: Mapping[str, str],
) -> go.Scatter:
    return go.Scatter(
        x=list(levels),
        y=[ratio.value for ratio in ratios],
        error_y=ratio_bars(ratios),
        mode="lines+markers",
        name=look["name"],
        legendgroup=look["legendgroup"],
        line={"color": look["color"], "width": 2, "dash": look["dash"]},
        marker={"symbol": look["symbol"], "size": 9},
        customdata=[[interval_text(ratio), word] for ratio, word in zip(ratios, words, strict=True)],
        hovertemplate=f"{axis.hover}: %{{y:.3f}}%{{customdata[0]}}<br>%{{customdata[1]}}"
        f"<extra>{look['name']}</extra>",
    )
