"""Layout and drafter together: throughput per device, indexed to the best."""

import math

import pandas as pd
import plotly.graph_objects as go

from analysis.axis import AXES
from analysis.figures.figure import Figure
from analysis.figures.style import NEUTRAL, apply_style, colour, escape
from analysis.frame import Sweep, cells_frame
from analysis.pairs import log_metric
from analysis.summary import Summary
from jobs.result import MEASURED

NO_DRAFTER = "none"


def layouts(sweep: Sweep, summary: Summary) -> tuple[Figure, ...]:  # noqa: ARG001 - the seam of all figures
    """Return the bars of every layout and drafter by load level."""
    plot = layout_figure(cells_frame([cell for cell in sweep.results if cell.counts]))
    return (
        Figure(
            name="layouts",
            title="Layout and drafter",
            plot=plot,
            finding="Total throughput per device",
            reading="Geometric mean over blocks, baselines included; at each level the best bar is 100.",
            missing="no cell was measured" if plot is None else "",
        ),
    )


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
        name = escape(drafter)
        figure.add_trace(
            go.Bar(
                x=[[axis.at(level) for level, _ in places], [escape(layout) for _, layout in places]],
                y=heights,
                name=name,
                marker={"color": NEUTRAL if drafter == NO_DRAFTER else colour(index)},
                text=[f"{height:.0f}" for height in heights],
                textposition="outside",
                cliponaxis=False,
                hovertemplate="%{x}: %{y:.1f}<extra>" + name + "</extra>",
            )
        )
    apply_style(figure, x=f"{axis.noun} and layout", y="total tok/s per device, best = 100")
    figure.update_layout(barmode="group")
    figure.update_yaxes(range=[0, 112])
    return figure


def _treatment(label: str) -> str:
    return label.split("/", 1)[-1]
