"""Figures of a sweep as plotly figures; each is None where the sweep has nothing for it.

Names that come from the user are escaped: plotly reads markup in labels.
"""

import html
import math
from collections.abc import Iterable, Sequence

import pandas as pd
import plotly.graph_objects as go

from analysis.objectives import OBJECTIVES
from analysis.pairs import log_metric
from analysis.rows import CrossoverRow, Ratio, VerdictRow
from analysis.summary import Summary
from jobs.result import MEASURED

PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8C6BB1", "#7F7F7F")
"""Okabe and Ito's colours, told apart with any colour vision; black and yellow would vanish on some pages."""
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "x", "triangle-down", "star")
DASHES = ("solid", "dash", "dot", "dashdot", "longdash")
_RATIO_TICKS = (0.1, 0.2, 0.25, 0.33, 0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.1, 1.25, 1.5, 2, 2.5, 3, 4, 6, 8, 12, 20)


def ratio_figure(summary: Summary, objective: str) -> go.Figure | None:
    """Return an objective's ratio against concurrency, a line an arm, with intervals and crossovers."""
    arms = _by_arm(row for row in summary.rows if getattr(row, objective) is not None)
    if not arms:
        return None
    figure = go.Figure()
    values: list[float] = []
    crossings = {row.arm: row for row in summary.crossovers if row.objective == objective}
    layouts = sorted({rows[0].layout for rows in arms})
    for index, rows in enumerate(arms):
        colour, dash = PALETTE[index % len(PALETTE)], DASHES[layouts.index(rows[0].layout) % len(DASHES)]
        ratios: list[Ratio] = [getattr(row, objective) for row in rows]
        name = html.escape(rows[0].label)
        figure.add_trace(
            go.Scatter(
                x=[row.concurrency for row in rows],
                y=[ratio.value for ratio in ratios],
                error_y=_error_bars(ratios),
                customdata=[[_interval(ratio), row.verdict] for ratio, row in zip(ratios, rows, strict=True)],
                mode="lines+markers",
                name=name,
                legendgroup=rows[0].arm,
                line={"color": colour, "dash": dash, "width": 2},
                marker={"symbol": SYMBOLS[index % len(SYMBOLS)], "size": 9},
                hovertemplate="C=%{x}: %{y:.3f}%{customdata[0]}<br>%{customdata[1]}<extra>"
                + name
                + "</extra>",
            )
        )
        values += [value for ratio in ratios for value in (ratio.value, ratio.lo, ratio.hi) if value]
        if rows[0].arm in crossings:
            _mark_crossover(figure, crossings[rows[0].arm], colour)
    levels = sorted({row.concurrency for rows in arms for row in rows})
    figure.add_hline(y=1.0, line={"color": "#888888", "width": 1})
    _style(
        figure,
        x="concurrency C (live conversations), log scale",
        y=f"{OBJECTIVES[objective].title}, ratio to baseline",
    )
    figure.update_xaxes(type="log", tickvals=levels, ticktext=[str(level) for level in levels])
    _ratio_axis(figure, values)
    return figure


def k_figure(summary: Summary, objective: str = "total") -> go.Figure | None:
    """Return the ratio against draft length K, a line a concurrency and drafter family."""
    rows = [row for row in summary.rows if getattr(row, objective) is not None]
    if not rows:
        return None
    levels = sorted({row.concurrency for row in rows})
    families = sorted({(row.layout, row.drafter, _rest(row)) for row in rows})
    figure = go.Figure()
    values: list[float] = []
    for place, family in enumerate(families):
        for index, level in enumerate(levels):
            own = sorted(
                (r for r in rows if (r.layout, r.drafter, _rest(r)) == family and r.concurrency == level),
                key=lambda row: row.k,
            )
            if not own:
                continue
            ratios: list[Ratio] = [getattr(row, objective) for row in own]
            name = html.escape(f"{family[0]}/{family[1]}{family[2]}, C={level}")
            figure.add_trace(
                go.Scatter(
                    x=[row.k for row in own],
                    y=[ratio.value for ratio in ratios],
                    error_y=_error_bars(ratios),
                    mode="lines+markers",
                    name=name,
                    line={
                        "color": PALETTE[index % len(PALETTE)],
                        "dash": DASHES[place % len(DASHES)],
                        "width": 2,
                    },
                    marker={"symbol": SYMBOLS[place % len(SYMBOLS)], "size": 9},
                    hovertemplate="K=%{x}: %{y:.3f}<extra>" + name + "</extra>",
                )
            )
            values += [value for ratio in ratios for value in (ratio.value, ratio.lo, ratio.hi) if value]
    figure.add_hline(y=1.0, line={"color": "#888888", "width": 1})
    _style(
        figure,
        x="draft length K (proposed tokens a step)",
        y=f"{OBJECTIVES[objective].title}, ratio to baseline",
    )
    figure.update_xaxes(tickvals=sorted({row.k for row in rows}))
    _ratio_axis(figure, values)
    return figure


def layout_figures(cells: pd.DataFrame) -> list[tuple[int, go.Figure]]:
    """Return per concurrency the throughput per device by layout and drafter, indexed to the best (100)."""
    measured = cells[cells["outcome"] == MEASURED]
    if measured.empty:
        return []
    per_device = log_metric(measured, "total") - measured["devices"].astype(float).map(math.log)
    table = measured.assign(value=per_device, treatment=[_treatment(label) for label in measured["label"]])
    table = table[table["value"].notna()]
    drafters = sorted(set(table["treatment"]), key=lambda name: (name != "none", name))
    layouts = sorted(set(table["layout"]))
    found = []
    for level, group in table.groupby("concurrency"):
        means = group.groupby(["treatment", "layout"])["value"].mean()
        best = float(means.max())
        figure = go.Figure()
        for index, drafter in enumerate(drafters):
            present = [layout for layout in layouts if (drafter, layout) in means.index]
            if not present:
                continue
            name = html.escape(drafter)
            heights = [100.0 * math.exp(float(means[(drafter, layout)]) - best) for layout in present]
            figure.add_trace(
                go.Bar(
                    x=[html.escape(layout) for layout in present],
                    y=heights,
                    name=name,
                    marker={"color": PALETTE[index % len(PALETTE)]},
                    text=[f"{height:.0f}" for height in heights],
                    textposition="outside",
                    cliponaxis=False,
                    hovertemplate="%{x}: %{y:.1f}<extra>" + name + "</extra>",
                )
            )
        _style(figure, x="layout", y="total tok/s per device, best = 100")
        figure.update_layout(barmode="group", title={"text": f"C = {level}", "font": {"size": 14}})
        figure.update_yaxes(range=[0, 112])
        found.append((int(str(level)), figure))
    return found


def _by_arm(rows: Iterable[VerdictRow]) -> list[list[VerdictRow]]:
    arms: dict[str, list[VerdictRow]] = {}
    for row in rows:
        arms.setdefault(row.arm, []).append(row)
    return [sorted(own, key=lambda row: row.concurrency) for own in arms.values()]


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


def _ratio_axis(figure: go.Figure, values: Sequence[float]) -> None:
    low, high = min([*values, 0.95]) / 1.06, max([*values, 1.05]) * 1.06
    low, high = max(low, 0.02), min(high, 50.0)  # an interval on one degree of freedom can span decades
    ticks = [tick for tick in _RATIO_TICKS if low <= tick <= high]
    figure.update_yaxes(
        type="log",
        range=[math.log10(low), math.log10(high)],
        tickvals=ticks,
        ticktext=[f"{t:g}" for t in ticks],
    )


def _style(figure: go.Figure, *, x: str, y: str) -> None:
    figure.update_layout(
        xaxis_title=x,
        yaxis_title=y,
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        font={"family": "system-ui, sans-serif", "size": 13, "color": "#333333"},
        margin={"l": 64, "r": 16, "t": 28, "b": 52},
        legend={"orientation": "h", "yanchor": "bottom", "y": 1.02, "x": 0},
        height=430,
        colorway=list(PALETTE),
    )
    figure.update_xaxes(gridcolor="#dddddd", linecolor="#888888", zeroline=False)
    figure.update_yaxes(gridcolor="#dddddd", linecolor="#888888", zeroline=False)


def _interval(ratio: Ratio) -> str:
    return "" if ratio.lo is None or ratio.hi is None else f" [{ratio.lo:.3f}, {ratio.hi:.3f}]"


def _rest(row: VerdictRow) -> str:
    """Return what a label says beyond layout, method and K: forced acceptance, swept keys."""
    known = f"{row.layout}/{row.drafter.replace('_', '-')}-k{row.k}"
    return row.label.removeprefix(known)


def _treatment(label: str) -> str:
    return label.split("/", 1)[-1]
