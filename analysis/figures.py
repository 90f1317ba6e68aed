"""Figures of a sweep as plotly figures; each is None where the sweep has nothing for it.

Names that come from the user are escaped: plotly reads markup in labels.
"""

import html
import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence

import pandas as pd
import plotly.graph_objects as go

from analysis.axis import AXES, number
from analysis.pairs import log_metric
from analysis.rows import CrossoverRow, Ratio, VerdictRow
from analysis.summary import Summary
from jobs.result import MEASURED

PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8C6BB1", "#7F7F7F")
"""Okabe and Ito's colours, told apart with any colour vision; black and yellow would vanish on some pages."""
NEUTRAL = "#8A94A0"
NO_DRAFTER = "none"
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "x", "triangle-down", "star")
DASHES = ("solid", "dash", "dot", "dashdot", "longdash")
_RATIO_TICKS = (0.1, 0.2, 0.25, 0.33, 0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.1, 1.25, 1.5, 2, 2.5, 3, 4, 6, 8, 12, 20)


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
        colour, dash = PALETTE[index % len(PALETTE)], DASHES[layouts.index(rows[0].layout) % len(DASHES)]
        ratios: list[Ratio] = [ratio for row in rows if (ratio := row.ratio(objective))]
        name = html.escape(rows[0].label)
        figure.add_trace(
            go.Scatter(
                x=[row.level for row in rows],
                y=[ratio.value for ratio in ratios],
                error_y=_error_bars(ratios),
                customdata=[[_interval(ratio), row.verdict] for ratio, row in zip(ratios, rows, strict=True)],
                mode="lines+markers",
                name=name,
                legendgroup=rows[0].arm,
                line={"color": colour, "dash": dash, "width": 2},
                marker={"symbol": SYMBOLS[index % len(SYMBOLS)], "size": 9},
                hovertemplate=axis.hover
                + ": %{y:.3f}%{customdata[0]}<br>%{customdata[1]}<extra>"
                + name
                + "</extra>",
            )
        )
        values += [value for ratio in ratios for value in (ratio.value, ratio.lo, ratio.hi) if value]
        if rows[0].arm in crossings:
            _mark_crossover(figure, crossings[rows[0].arm], colour)
    levels = sorted({row.level for rows in arms for row in rows})
    figure.add_hline(y=1.0, line={"color": NEUTRAL, "width": 1})
    _style(figure, x=f"{axis.title}, log scale", y="ratio to baseline")
    figure.update_xaxes(type="log", tickvals=levels, ticktext=[number(level) for level in levels])
    floor = _ratio_axis(figure, values)
    _mark_missing(figure, [row for row in summary.rows if row.ratio(objective) is None], floor)
    return figure


def k_figures(summary: Summary, objective: str = "total") -> list[tuple[str, go.Figure]]:
    """Return the ratio against draft length K, a line a load level, for drafters with two or more K."""
    families: dict[str, list[VerdictRow]] = {}
    for row in summary.rows:
        if row.ratio(objective) is not None and not row.counterfactual:
            families.setdefault(_family(row), []).append(row)
    found = []
    for family, rows in sorted(families.items()):
        if len({row.k for row in rows}) < 2:
            continue
        figure = go.Figure()
        values: list[float] = []
        for index, level in enumerate(sorted({row.level for row in rows})):
            own = sorted((row for row in rows if row.level == level), key=lambda row: row.k)
            ratios: list[Ratio] = [ratio for row in own if (ratio := row.ratio(objective))]
            figure.add_trace(
                go.Scatter(
                    x=[row.k for row in own],
                    y=[ratio.value for ratio in ratios],
                    error_y=_error_bars(ratios),
                    customdata=[
                        [_interval(ratio) + _mal(row)] for ratio, row in zip(ratios, own, strict=True)
                    ],
                    mode="lines+markers",
                    name=AXES[summary.axis].at(level),
                    line={"color": PALETTE[index % len(PALETTE)], "width": 2},
                    marker={"symbol": SYMBOLS[index % len(SYMBOLS)], "size": 9},
                    hovertemplate=f"K=%{{x}}: %{{y:.3f}}%{{customdata[0]}}<extra>{own[0].at}</extra>",
                )
            )
            values += [value for ratio in ratios for value in (ratio.value, ratio.lo, ratio.hi) if value]
        figure.add_hline(y=1.0, line={"color": NEUTRAL, "width": 1})
        _style(figure, x="draft length K (proposed tokens a step)", y="ratio to baseline")
        figure.update_xaxes(tickvals=sorted({row.k for row in rows}))
        _ratio_axis(figure, values)
        found.append((family, figure))
    return found


def layout_figure(cells: pd.DataFrame) -> go.Figure | None:
    """Return the throughput per device by load level, layout and drafter, the best of a level as 100."""
    measured = cells[cells["outcome"] == MEASURED]
    if measured.empty:
        return None
    per_device = log_metric(measured, "total") - measured["devices"].astype(float).map(math.log)
    table = measured.assign(value=per_device, treatment=[_treatment(label) for label in measured["label"]])
    means = table[table["value"].notna()].groupby(["level", "treatment", "layout"])["value"].mean()
    if means.empty:
        return None
    axis = AXES[str(measured["axis"].iloc[0])]
    best = means.groupby(level="level").max()
    figure = go.Figure()
    drafters = sorted(
        set(means.index.get_level_values("treatment")), key=lambda name: (name != NO_DRAFTER, name)
    )
    for index, drafter in enumerate(drafters):
        own = means.xs(drafter, level="treatment")
        places = [(float(level), str(layout)) for level, layout in own.index]
        heights = [100.0 * math.exp(own[place] - best[place[0]]) for place in places]
        name = html.escape(drafter)
        figure.add_trace(
            go.Bar(
                x=[[axis.at(level) for level, _ in places], [html.escape(layout) for _, layout in places]],
                y=heights,
                name=name,
                marker={"color": NEUTRAL if drafter == NO_DRAFTER else PALETTE[index % len(PALETTE)]},
                text=[f"{height:.0f}" for height in heights],
                textposition="outside",
                cliponaxis=False,
                hovertemplate="%{x}: %{y:.1f}<extra>" + name + "</extra>",
            )
        )
    _style(figure, x=f"{axis.noun} and layout", y="total tok/s per device, best = 100")
    figure.update_layout(barmode="group")
    figure.update_yaxes(range=[0, 112])
    return figure


def _by_arm(rows: Iterable[VerdictRow]) -> list[list[VerdictRow]]:
    arms: dict[str, list[VerdictRow]] = {}
    for row in rows:
        arms.setdefault(row.arm, []).append(row)
    return [sorted(own, key=lambda row: row.level) for own in arms.values()]


def _error_bars(ratios: Sequence[Ratio]) -> dict[str, object]:
    return {
        "type": "data",
        "symmetric": False,
        "array": [0.0 if ratio.hi is None else ratio.hi - ratio.value for ratio in ratios],
        "arrayminus": [0.0 if ratio.lo is None else ratio.value - ratio.lo for ratio in ratios],
        "thickness": 1.5,
        "width": 4,
        "visible": any(ratio.hi is not None for ratio in ratios),
    }


def _mark_crossover(figure: go.Figure, row: CrossoverRow, colour: str) -> None:
    """Draw the bracket as a broad band along ratio 1, and the point as a ring on it."""
    main = row.crossover.main
    if main is None:
        return
    common = {"legendgroup": row.arm, "showlegend": False}
    text = html.escape(f"{row.label}: {row.text}")
    figure.add_trace(
        go.Scatter(
            x=[main.lower, main.upper],
            y=[1.0, 1.0],
            mode="lines",
            line={"color": colour, "width": 12},
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
                marker={"symbol": "circle-open", "size": 13, "color": colour, "line": {"width": 2.5}},
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
                hovertext=[html.escape(f"{row.label}: {row.reason}") for row in rows],
                hoverinfo="text",
            )
        )


def _ratio_axis(figure: go.Figure, values: Sequence[float]) -> float:
    """Scale the axis of ratios and return its lower end."""
    low, high = min([*values, 0.95]) / 1.06, max([*values, 1.05]) * 1.06
    low, high = max(low, 0.02), min(high, 50.0)  # an interval on one degree of freedom can span decades
    ticks = [tick for tick in _RATIO_TICKS if low <= tick <= high]
    figure.update_yaxes(
        type="log",
        range=[math.log10(low), math.log10(high)],
        tickvals=ticks,
        ticktext=[f"{t:g}" for t in ticks],
    )
    return low


def _style(figure: go.Figure, *, x: str, y: str) -> None:
    figure.update_layout(
        xaxis_title=x,
        yaxis_title=y,
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        font={"family": "system-ui, sans-serif", "size": 13, "color": "#333333"},
        margin={"l": 64, "r": 16, "t": 12, "b": 52},
        legend={"orientation": "h", "yanchor": "top", "y": -0.2, "x": 0},
        height=430,
        colorway=list(PALETTE),
    )
    figure.update_xaxes(gridcolor="#dddddd", linecolor=NEUTRAL, zeroline=False)
    figure.update_yaxes(gridcolor="#dddddd", linecolor=NEUTRAL, zeroline=False)


def _interval(ratio: Ratio) -> str:
    return "" if ratio.lo is None or ratio.hi is None else f" [{ratio.lo:.3f}, {ratio.hi:.3f}]"


def _family(row: VerdictRow) -> str:
    """Return the label without K: what a line over K holds fixed."""
    return re.sub(r"-k\d+(?=$|[-\s\[])", "", row.label, count=1)


def _mal(row: VerdictRow) -> str:
    return "" if row.mal is None else f"<br>MAL {row.mal:.2f}"


def _treatment(label: str) -> str:
    return label.split("/", 1)[-1]
