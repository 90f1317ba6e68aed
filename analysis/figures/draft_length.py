"""Which draft length pays: what K does to acceptance, to the step, and to their quotient."""

import re

import plotly.graph_objects as go

from analysis.axis import AXES
from analysis.figures.figure import Figure
from analysis.figures.style import apply_style, colour, interval_text, ratio_axis, ratio_bars, symbol
from analysis.frame import Sweep
from analysis.rows import Ratio, VerdictRow
from analysis.summary import Summary


def draft_length(sweep: Sweep, summary: Summary) -> tuple[Figure, ...]:  # noqa: ARG001 - the seam of all figures
    """Return a figure a drafter of two draft lengths or more."""
    return tuple(
        Figure(
            name=f"draft-length-{index}",
            title=f"Draft length against ratio: {family}",
            plot=plot,
            finding=f"{family} by draft length",
            reading="Bars are simultaneous 95 % intervals.",
        )
        for index, (family, plot) in enumerate(k_figures(summary))
    )


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
                    error_y=ratio_bars(ratios),
                    customdata=[
                        [interval_text(ratio) + _mal(row)] for ratio, row in zip(ratios, own, strict=True)
                    ],
                    mode="lines+markers",
                    name=AXES[summary.axis].at(level),
                    line={"color": colour(index), "width": 2},
                    marker={"symbol": symbol(index), "size": 9},
                    hovertemplate=f"K=%{{x}}: %{{y:.3f}}%{{customdata[0]}}<extra>{own[0].at}</extra>",
                )
            )
            values += [value for ratio in ratios for value in (ratio.value, ratio.lo, ratio.hi) if value]
        apply_style(figure, x="draft length K (proposed tokens a step)", y="ratio to baseline")
        figure.update_xaxes(tickvals=sorted({row.k for row in rows}))
        ratio_axis(figure, values)
        found.append((family, figure))
    return found


def _family(row: VerdictRow) -> str:
    """Return the label without K: what a line over K holds fixed."""
    return re.sub(r"-k\d+(?=$|[-\s\[])", "", row.label, count=1)


def _mal(row: VerdictRow) -> str:
    return "" if row.mal is None else f"<br>MAL {row.mal:.2f}"
