"""The strip below a ratio's curves: where each passes 1, with its bracket and its interval."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from analysis.crossover import ABOVE, BELOW, Crossover
from analysis.figures.style import colour, escape
from analysis.rows import CrossoverRow

ROW = 2
"""Of the figure's plots."""


def draw_strip(figure: go.Figure, rows: Sequence[CrossoverRow], places: Mapping[str, int]) -> None:
    """Draw a line an arm: the pale bar is the bracket, the ring the estimate, the line its interval.

    Args:
        figure: of two plots, the lower one for this.
        rows: of the arms shown, one objective.
        places: of each arm, the index of its colour.
    """
    for height, row in enumerate(rows):
        strip = _Strip(figure=figure, row=row, height=-float(height), shade=colour(places[row.arm]))
        strip.bracket()
        strip.interval()
        strip.point()
    figure.update_yaxes(
        range=[0.6 - len(rows), 0.6],
        showticklabels=False,
        showgrid=False,
        ticks="",
        title_text="passes 1",
        row=ROW,
        col=1,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Strip:
    """One arm's line."""

    figure: go.Figure
    row: CrossoverRow
    height: float
    """Its place on the y axis."""
    shade: str

    @property
    def found(self) -> Crossover:
        return self.row.crossover

    def bracket(self) -> None:
        main = self.found.main
        if main is not None:
            self._add(
                [main.lower, main.upper], mode="lines", line={"color": self.shade, "width": 12}, opacity=0.3
            )

    def interval(self) -> None:
        """Draw the interval as far as the levels reach; a triangle where it goes on beyond them."""
        found, levels = self.found, self.row.levels
        low = levels[0] if found.low_censored and levels else found.low
        high = levels[-1] if found.high_censored and levels else found.high
        if low is None or high is None:
            return
        self._add(
            [low, high],
            mode="lines+markers",
            line={"color": self.shade, "width": 1.5},
            marker={
                "symbol": [
                    "triangle-left" if found.low_censored else "line-ns",
                    "triangle-right" if found.high_censored else "line-ns",
                ],
                "size": 8,
                "color": self.shade,
                "line": {"color": self.shade, "width": 1.5},
            },
        )

    def point(self) -> None:
        """Draw the estimate as a ring; a triangle at the end where the curve stays on one side of 1."""
        found, levels = self.found, self.row.levels
        ring = {"size": 12, "color": self.shade, "line": {"color": self.shade, "width": 2.5}}
        if found.main is not None:
            if found.main.log_log is not None:
                self._add([found.main.log_log], mode="markers", marker={**ring, "symbol": "circle-open"})
        elif found.kind == ABOVE and levels:
            self._add([levels[-1]], mode="markers", marker={**ring, "symbol": "triangle-right-open"})
        elif found.kind == BELOW and levels:
            self._add([levels[0]], mode="markers", marker={**ring, "symbol": "triangle-left-open"})

    def _add(self, levels: Sequence[float], **trace: object) -> None:
        scatter = go.Scatter(
            x=list(levels),
            y=[self.height] * len(levels),
            hovertext=escape(f"{self.row.label}: {self.row.text}"),
            hoverinfo="text",
            legendgroup=self.row.arm,
            showlegend=False,
            **trace,
        )
        self.figure.add_trace(scatter, row=ROW, col=1)
