"""Measured against fitted: acceptance length and step cost over the draft length K, a line a load level."""

import html
import math
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from analysis.curves import Fit
from analysis.figures.style import NEUTRAL, PALETTE, SYMBOLS
from analysis.formulas import mean_acceptance_length
from analysis.frame import Sweep
from analysis.ksweep import DrafterLevel, axis_of, drafter_levels

LEFT, RIGHT = 1, 2
_FINE = 60
"""Points of a fitted line."""


def misfit_figures(sweep: Sweep) -> list[tuple[str, go.Figure]]:
    """Return a figure for each drafter with two or more K: points as measured, lines as fitted.

    On the left the mean acceptance length and what the one alpha of each level gives, on the right the step
    over a plain one and the line 1 + c + s K. Levels whose cells shared cores with the client are left out.
    """
    families: dict[str, list[DrafterLevel]] = {}
    for item in drafter_levels(sweep):
        if len(item.arms) > 1 and not item.oversubscribed:
            families.setdefault(item.family, []).append(item)
    return [(family, _figure(sweep, items)) for family, items in families.items()]


def _figure(sweep: Sweep, items: list[DrafterLevel]) -> go.Figure:
    figure = make_subplots(
        cols=2,
        subplot_titles=("acceptance, one alpha a level", "step cost, one line a level"),
        horizontal_spacing=0.1,
    )
    for index, item in enumerate(items):
        colour, symbol = PALETTE[index % len(PALETTE)], SYMBOLS[index % len(SYMBOLS)]
        name = axis_of(sweep).at(item.level)
        _acceptance(_Pen(figure=figure, col=LEFT, colour=colour, symbol=symbol, name=name), item)
        _steps(_Pen(figure=figure, col=RIGHT, colour=colour, symbol=symbol, name=name), item)
    ks = sorted({k for item in items for k in item.arms})
    figure.update_xaxes(
        title_text="draft length K (proposed tokens a step)", tickvals=ks, gridcolor="#e3e7ec"
    )
    figure.update_yaxes(gridcolor="#e3e7ec")
    figure.update_yaxes(title_text="mean acceptance length (tokens a step)", col=LEFT)
    figure.update_yaxes(title_text="step time over a plain step", col=RIGHT)
    figure.add_hline(y=1.0, line={"color": NEUTRAL, "width": 1})
    figure.update_layout(
        title_text=html.escape(f"{items[0].family}: points are measured, lines are fitted"),
        plot_bgcolor="white",
        legend_title_text="load",
    )
    return figure


def _acceptance(pen: "_Pen", item: DrafterLevel) -> None:
    alpha, lengths = item.alpha(), item.lengths
    if alpha is None:
        return
    ks = sorted(lengths)
    pen.points(ks, [(lengths[k], math.nan, math.nan) for k in ks], alpha)
    whole = list(range(ks[-1] + 1))
    fitted = [mean_acceptance_length(alpha.value, k) for k in whole]
    pen.line(whole, fitted, f"alpha {alpha.value:.3f}, {alpha.word}")


def _steps(pen: "_Pen", item: DrafterLevel) -> None:
    line = item.steps()
    if line is None:
        return
    ks = list(item.step_arms)
    ratios = [item.fits["step"].ratio(arm) for arm in item.step_arms.values()]
    pen.points(ks, ratios, line)
    fine = np.linspace(0.0, ks[-1], _FINE).tolist()
    words = f"c {line.fixed:.3f}, s {line.value:.4f}, {line.word}"
    pen.line(fine, [1.0 + line.fixed + line.value * k for k in fine], words)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pen:
    """Draws one level into one half of the figure."""

    figure: go.Figure
    col: int
    colour: str
    symbol: str
    name: str
    """The level, for the legend."""

    def points(self, ks: list[int], values: list[tuple[float, float, float]], fit: Fit) -> None:
        """Draw measured figures with their intervals, where all have one."""
        known = all(math.isfinite(end) for ends in values for end in ends)
        bars = {
            "array": [high - value for value, _, high in values],
            "arrayminus": [value - low for value, low, _ in values],
            "width": 4,
        }
        self._add(
            x=ks,
            y=[value for value, _, _ in values],
            error_y=bars if known else None,
            customdata=[[fit.misfit.get(k, math.nan)] for k in ks],
            mode="markers",
            marker={"color": self.colour, "symbol": self.symbol, "size": 9},
            showlegend=self.col == LEFT,
            hovertemplate="K=%{x}: %{y:.3f}, %{customdata[0]:+.1%} beside the fit<extra>"
            f"{self.name}</extra>",
        )

    def line(self, ks: list[int] | list[float], values: list[float], words: str) -> None:
        """Draw a fitted line."""
        self._add(
            x=ks,
            y=values,
            mode="lines",
            line={"color": self.colour, "width": 1.5, "dash": "dot"},
            showlegend=False,
            hovertemplate=f"{words}<extra>{self.name}</extra>",
        )

    def _add(self, **trace: object) -> None:
        scatter = go.Scatter(name=self.name, legendgroup=self.name, **trace)
        self.figure.add_trace(scatter, row=1, col=self.col)
