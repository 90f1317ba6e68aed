"""Where the gain flips: an objective's ratio against the load, with intervals and crossovers."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from analysis.axis import AXES, Axis
from analysis.figures.chosen import MOST, left_out, ranked_arms, short_names
from analysis.figures.crossings_strip import draw_strip
from analysis.figures.figure import Figure
from analysis.figures.style import (
    DASHES,
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
from analysis.figures.words import joined, with_interval
from analysis.frame import Sweep
from analysis.ksweep import MISSING
from analysis.objectives import OBJECTIVES
from analysis.rows import CrossoverRow, Ratio, VerdictRow
from analysis.summary import Summary
from analysis.verdict import threshold_of

SHOWN = ("total", "computed", "output", "user_speed")
"""Objectives with a figure each, beside the sweep's own."""
SAME = 0.001
"""Ratios that differ by less, as logs, look the same."""
SECTIONS = ("verdicts", "crossovers")
READING = (
    "Bars: simultaneous 95 % intervals over the pairs. Grey band: ratios that count as no difference. "
    "Below, where each curve passes 1: the pale bar lies between the levels around it, the ring is the "
    "estimate, the thin line its 95 % interval; a triangle points beyond the levels tried."
)


def crossover(sweep: Sweep, summary: Summary) -> tuple[Figure, ...]:
    """Return a figure an objective, the sweep's own first; one absent figure where nothing was compared."""
    ranked = ranked_arms(sweep, summary)
    if not ranked:
        return (_figure(summary, summary.objective, None, ()),)
    names = dict.fromkeys((summary.objective, *SHOWN))
    views = [_View(summary=summary, objective=name, ranked=ranked) for name in names]
    alike: dict[str, list[str]] = {}
    for view in views:
        first = next((name for name in alike if view.same_as(name)), view.objective)
        alike.setdefault(first, []).append(OBJECTIVES[view.objective].title)
    return tuple(
        _figure(summary, view.objective, view, alike[view.objective][1:])
        for view in views
        if view.objective in alike
    )


def _figure(summary: Summary, name: str, view: "_View | None", alike: Sequence[str]) -> Figure:
    objective = OBJECTIVES[name].title
    key = f"ratio-{name.replace('_', '-')}"
    title = f"Up to which {AXES[summary.axis].noun} does {objective} gain over the baseline?"
    if view is None:
        return Figure(name=key, title=title, sections=SECTIONS, missing=MISSING)
    same = f" The ratios of {joined(alike)} are the same, and have no figure of their own." if alike else ""
    reading = READING + view.remarks() + same
    if not view.arms:
        why = (
            f"no pair has {objective} on both sides: the table of outcomes says why, and the same `specload "
            "sweep` command measures what failed again"
        )
        return Figure(name=key, title=title, reading=reading, sections=SECTIONS, missing=why)
    return Figure(
        name=key,
        title=title,
        plot=view.plot(),
        finding=view.finding(),
        reading=reading,
        sections=SECTIONS,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _View:
    """One objective of a summary, for the arms that are shown."""

    summary: Summary
    objective: str
    ranked: tuple[str, ...]
    """All arms, the most relevant first."""

    @property
    def axis(self) -> Axis:
        return AXES[self.summary.axis]

    @property
    def arms(self) -> list[str]:
        """Those with a ratio, the most relevant ones."""
        known = {row.arm for row in self.summary.rows if row.ratio(self.objective) is not None}
        return [arm for arm in self.ranked if arm in known][:MOST]

    def rows(self, arm: str) -> list[VerdictRow]:
        own = [row for row in self.summary.rows if row.arm == arm]
        return sorted(own, key=lambda row: row.level)

    def points(self, arm: str) -> list[tuple[VerdictRow, Ratio]]:
        return [(row, ratio) for row in self.rows(arm) if (ratio := row.ratio(self.objective))]

    def same_as(self, other: str) -> bool:
        """Whether every arm has the ratios of another objective, as total has of computed without hits."""
        own, its = (
            [row.ratio(name) for row in self.summary.rows if row.arm in self.ranked]
            for name in (self.objective, other)
        )
        return any(own) and all(_alike(first, second) for first, second in zip(own, its, strict=True))

    def crossings(self) -> list[CrossoverRow]:
        found = {row.arm: row for row in self.summary.crossovers if row.objective == self.objective}
        return [found[arm] for arm in self.arms if arm in found and found[arm].levels]

    def levels(self) -> list[float]:
        return sorted({row.level for arm in self.arms for row in self.rows(arm)})

    def plot(self) -> go.Figure:
        crossings = self.crossings()
        strip = 26 * len(crossings) + 18 if crossings else 0
        figure = make_subplots(
            rows=2 if strip else 1,
            cols=1,
            shared_xaxes=True,
            vertical_spacing=0.03,
            row_heights=[340, strip] if strip else [1],
        )
        apply_style(figure, x="", y="ratio to baseline")
        figure.update_layout(height=430 + strip, legend_y=-72 / (366 + strip))
        self._band(figure)
        arms = [self.rows(arm)[0] for arm in self.arms]
        names = short_names((row.arm, row.label, row.layout) for row in arms)
        layouts = [layout for layout, _ in Counter(row.layout for row in arms).most_common()]
        values: list[float] = []
        for index, first in enumerate(arms):
            values += self._line(figure, index, names[first.arm], layouts.index(first.layout))
        floor = ratio_axis(figure, values, row=1, col=1)
        self._failures(figure, floor)
        level_axis(figure, self.axis, self.levels(), title=not strip, row=1, col=1)
        if strip:
            level_axis(figure, self.axis, self.levels(), row=2, col=1)
            draw_strip(figure, crossings, {arm: index for index, arm in enumerate(self.arms)})
        return figure

    def _band(self, figure: go.Figure) -> None:
        """Draw what counts as no difference: it is wider where the baselines themselves differ."""
        spreads = {entry.level: entry.values.get(self.objective) for entry in self.summary.aa_spread}
        levels = self.levels()
        limits = [1.0 + threshold_of(self.summary.threshold, spreads.get(level)) for level in levels]
        if len(levels) == 1:
            levels, limits = [levels[0] / 1.2, levels[0] * 1.2], limits * 2
        figure.add_trace(
            go.Scatter(
                x=[*levels, *reversed(levels)],
                y=[*limits, *(1.0 / limit for limit in reversed(limits))],
                fill="toself",
                fillcolor="rgba(138,148,160,0.22)",
                line={"width": 0},
                mode="lines",
                name="no difference",
                hoverinfo="skip",
            ),
            row=1,
            col=1,
        )

    def _line(self, figure: go.Figure, index: int, name: str, layout: int) -> list[float]:
        """Draw an arm's curve and return the figures that have to be seen."""
        points = self.points(self.arms[index])
        ratios = [ratio for _, ratio in points]
        judged = "" if self.objective == self.summary.objective else f" on {self.summary.objective}"
        figure.add_trace(
            go.Scatter(
                x=[row.level for row, _ in points],
                y=[ratio.value for ratio in ratios],
                error_y=ratio_bars(ratios),
                customdata=[[interval_text(ratio), f"{row.verdict}{judged}"] for row, ratio in points],
                mode="lines+markers",
                name=name,
                legendgroup=self.arms[index],
                line={"color": colour(index), "dash": DASHES[layout % len(DASHES)], "width": 2},
                marker={
                    "symbol": [symbol(index) + "-open" * row.oversubscribed for row, _ in points],
                    "size": 9,
                },
                hovertemplate=self.axis.hover
                + ": %{y:.3f}%{customdata[0]}<br>%{customdata[1]}<extra>"
                + name
                + "</extra>",
            ),
            row=1,
            col=1,
        )
        return seen_ends(ratios)

    def _lost(self) -> list[VerdictRow]:
        shown = set(self.arms)
        return [row for row in self.summary.rows if row.arm in shown and row.ratio(self.objective) is None]

    def _failures(self, figure: go.Figure, floor: float) -> None:
        """Put a cross on the floor where an arm has no ratio: a failure is a result, not a hole."""
        lost = self._lost()
        if lost:
            figure.add_trace(
                go.Scatter(
                    x=[row.level for row in lost],
                    y=[floor * 1.03] * len(lost),
                    mode="markers",
                    name="no valid pair",
                    marker={"symbol": "x", "size": 9, "color": NEUTRAL},
                    hovertext=[escape(f"{row.label}: {row.reason}") for row in lost],
                    hoverinfo="text",
                ),
                row=1,
                col=1,
            )

    def finding(self) -> str:
        """Return where the first arm's curve passes 1, and its ratios at the ends."""
        points = self.points(self.arms[0])
        first = points[0][0]
        forced = ", forced acceptance" if first.synthetic else ""
        crossing = next((row.text for row in self.crossings() if row.arm == first.arm), "")
        ends = dict.fromkeys((points[0][0].level, points[-1][0].level))
        told = [
            f"{with_interval(ratio.value, ratio.lo, ratio.hi)} at {row.at}"
            for row, ratio in points
            if row.level in ends
        ]
        return (
            f"{first.label}{forced}: {OBJECTIVES[self.objective].title} {', '.join(told)}"
            f"{'; ' + crossing if crossing else ''}."
        )

    def remarks(self) -> str:
        """Return what else has to be said of what is drawn or left out."""
        rows = [row for arm in self.arms for row in self.rows(arm)]
        said = []
        if not OBJECTIVES[self.objective].higher_is_better:
            said.append("Below 1 is better.")
        if self._lost():
            said.append("Crosses on the floor: no valid pair.")
        if any(row.oversubscribed for row in rows):
            said.append("Open symbols: client and engine shared a core, no verdict.")
        if any(row.synthetic for row in rows):
            said.append("Forced acceptance shows a ceiling, not a drafter.")
        if any(row.counterfactual for row in self.summary.rows):
            said.append("Counterfactual arms are left out.")
        if self.summary.axis != "concurrency":
            said.append("Open loop: throughput is what arrives, until an arm cannot keep up.")
        return "".join(f" {word}" for word in said) + left_out(len(self.ranked) - MOST)


def _alike(first: Ratio | None, second: Ratio | None) -> bool:
    if first is None or second is None:
        return first is second
    pairs = ((first.value, second.value), (first.lo, second.lo), (first.hi, second.hi))
    return all(one == two or (one and two and abs(math.log(one / two)) < SAME) for one, two in pairs)
