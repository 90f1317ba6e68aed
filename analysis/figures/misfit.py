"""Measured against fitted: acceptance length and step cost over the draft length K, a line a load."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from analysis.arms import arm_facts
from analysis.curves import Fit
from analysis.decision_words import words_again
from analysis.figures.chosen import ranked_arms
from analysis.figures.figure import Figure
from analysis.figures.style import NEUTRAL, apply_style, colour, interval_bars, symbol
from analysis.figures.words import joined, rounded, spread_out
from analysis.formulas import mean_acceptance_length
from analysis.frame import Sweep
from analysis.ksweep import DrafterLevel, axis_of, drafter_levels
from analysis.summary import Summary

TITLE = "Do the fitted lines hold"
MOST = 3
"""Drafters drawn."""
MOST_LEVELS = 6
LENGTHS, COSTS = 1, 2
"""Rows."""
_FINE = 30
"""Points of a fitted line."""


def misfit(sweep: Sweep, summary: Summary) -> tuple[Figure, ...]:
    """Return a figure for each drafter with two or more K: points as measured, lines as fitted.

    Above the mean acceptance length and what the one alpha of each level gives, below the step over a plain
    one and the line 1 + c + s K. Levels whose cells shared cores with the client are left out.
    """
    families: dict[str, list[DrafterLevel]] = {}
    for item in drafter_levels(sweep):
        if len(item.arms) > 1 and not item.oversubscribed and (item.alpha() or item.steps()):
            families.setdefault(item.family, []).append(item)
    if not families:
        why = (
            "no drafter was measured at two draft lengths with cores of its own, so no line can be held "
            f"against points: `{words_again(sweep.plan, 'drafter.k=1,3,5,7')}` measures some"
        )
        return (Figure(name="misfit", title=f"{TITLE}?", missing=why, sections=("step_cost",)),)
    facts = arm_facts(sweep.cells, sweep.plan)
    ranked = dict.fromkeys(facts[arm].family for arm in ranked_arms(sweep, summary) if arm in facts)
    order = [name for name in dict.fromkeys((*ranked, *families)) if name in families]
    left = f" Not drawn: {joined(order[MOST:])}." if order[MOST:] else ""
    return tuple(_figure(sweep, families[name], place, left) for place, name in enumerate(order[:MOST], 1))


def _figure(sweep: Sweep, items: Sequence[DrafterLevel], place: int, left: str) -> Figure:
    figure = make_subplots(rows=2, cols=1, shared_xaxes=True, vertical_spacing=0.07)
    drawn = [items[index] for index in spread_out(len(items), MOST_LEVELS)]
    for index, item in enumerate(drawn):
        name = axis_of(sweep).at(item.level)
        pen = _Pen(figure=figure, colour=colour(index), symbol=symbol(index), name=name)
        _lengths(pen, item)
        _costs(pen, item)
    apply_style(figure, x="", y="")
    figure.update_layout(height=520, legend={"y": -0.14})
    ks = sorted({k for item in items for k in item.arms})
    figure.update_xaxes(tickvals=[0, *ks])
    figure.update_xaxes(title_text="draft length K (tokens)", row=COSTS, col=1)
    figure.update_yaxes(title_text="MAL (tokens a step)", row=LENGTHS, col=1)
    figure.update_yaxes(title_text="T(K) / t0", row=COSTS, col=1)
    figure.add_hline(y=1.0, line={"color": NEUTRAL, "width": 1}, row="all", col=1)
    between = f" {len(items) - len(drawn)} loads between are left out." if len(drawn) < len(items) else ""
    return Figure(
        name=f"misfit-{place}",
        title=f"{TITLE} for {items[0].family}?",
        plot=figure,
        finding=_finding(sweep, items),
        reading="Points are measured, with 95 % intervals of one comparison; dotted lines are fitted, one a "
        "load: above the length that one alpha gives, below the cost 1 + c + s K in plain steps."
        f"{between}{left}",
        sections=("step_cost",) if place == 1 else (),
    )


def _finding(sweep: Sweep, items: Sequence[DrafterLevel]) -> str:
    forced = " (forced acceptance)" if all(f.synthetic for i in items for f in i.facts.values()) else ""
    told = []
    for words, fits in (
        ("one alpha", [(item, item.alpha()) for item in items]),
        ("the straight line of step costs", [(item, item.steps()) for item in items]),
    ):
        spare = [(item, fit) for item, fit in fits if fit is not None and fit.spare]
        if not spare:
            told.append(f"{words} goes through its points and cannot be held against any")
            continue
        item, worst = max(spare, key=lambda pair: abs(pair[1].worst))
        k = max(worst.misfit, key=lambda key: abs(worst.misfit[key]))
        at = axis_of(sweep).at(item.level)
        told.append(f"{words} misses by {100.0 * worst.worst:+.1f} % at most (K={k}, {at}: {worst.word})")
    return f"{items[0].family}{forced}: {'; '.join(told)}."


def _lengths(pen: "_Pen", item: DrafterLevel) -> None:
    alpha, lengths = item.alpha(), item.lengths
    if alpha is None:
        return
    ks = sorted(lengths)
    pen.points(LENGTHS, ks, [item.length(k) for k in ks], alpha)
    whole = list(range(ks[-1] + 1))
    fitted = [mean_acceptance_length(alpha.value, k) for k in whole]
    pen.line(LENGTHS, whole, fitted, f"alpha {alpha.value:.3f}, {alpha.word}")


def _costs(pen: "_Pen", item: DrafterLevel) -> None:
    line = item.steps()
    if line is None:
        return
    ks = list(item.step_arms)
    ratios = [item.fits["step"].ratio(arm) for arm in item.step_arms.values()]
    pen.points(COSTS, ks, ratios, line)
    fine = np.linspace(0.0, ks[-1], _FINE).tolist()
    words = f"c {line.fixed:.3f}, s {line.value:.4f}, {line.word}"
    pen.line(COSTS, fine, [1.0 + line.fixed + line.value * k for k in fine], words)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pen:
    """Draws one load into both plots."""

    figure: go.Figure
    colour: str
    symbol: str
    name: str
    """The load, for the legend."""

    def points(self, row: int, ks: list[int], values: list[tuple[float, float, float]], fit: Fit) -> None:
        """Draw measured figures with their intervals."""
        ends = [[end if math.isfinite(end) else None for end in own] for own in zip(*values, strict=True)]
        self._add(
            row,
            x=ks,
            y=[value for value, _, _ in values],
            error_y=interval_bars([value for value, _, _ in values], ends[1], ends[2]),
            customdata=[[fit.misfit.get(k, math.nan)] for k in ks],
            mode="markers",
            marker={"color": self.colour, "symbol": self.symbol, "size": 9},
            showlegend=row == LENGTHS,
            hovertemplate="K=%{x}: %{y:.3f}, %{customdata[0]:+.1%} beside the fit<extra>"
            f"{self.name}</extra>",
        )

    def line(self, row: int, ks: list[int] | list[float], values: list[float], words: str) -> None:
        """Draw a fitted line."""
        self._add(
            row,
            x=[rounded(k) for k in ks],
            y=[rounded(value) for value in values],
            mode="lines",
            line={"color": self.colour, "width": 1.5, "dash": "dot"},
            showlegend=False,
            hovertemplate=f"{words}<extra>{self.name}</extra>",
        )

    def _add(self, row: int, **trace: object) -> None:
        self.figure.add_trace(go.Scatter(name=self.name, legendgroup=self.name, **trace), row=row, col=1)
