"""What a million tokens cost against the load: money where a price is known, else energy."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd
import plotly.graph_objects as go

from analysis.axis import Axis
from analysis.cost import cost as cost_section
from analysis.cost import currency_of
from analysis.figures.chosen import MOST, left_out, ranked_arms, short_names
from analysis.figures.figure import Figure
from analysis.figures.style import (
    NEUTRAL,
    apply_style,
    colour,
    decade_ticks,
    escape,
    frame_bars,
    level_axis,
    symbol,
)
from analysis.figures.words import ends_of, with_interval
from analysis.frame import Sweep
from analysis.ksweep import axis_of
from analysis.summary import Summary

READING = (
    "Lower is better; bars are 95 % intervals, in which blocks differ. The vertical axis is logarithmic."
)
FORCED = " Arms with forced acceptance are dotted: nobody can serve at their price."


def cost(sweep: Sweep, summary: Summary) -> tuple[Figure, ...]:
    """Return the cost of output tokens by arm and level; energy where no price is known."""
    section = sweep.once(cost_section)
    priced = sweep.plan.get("gpu_hour_price") is not None
    title = "What does a million output tokens cost?" if priced else "What energy does an output token take?"
    column = "output_cost" if priced else "output_energy"
    frame = section.frame
    frame = frame[frame[column].notna()] if len(frame) else frame
    if frame.empty:
        missing = section.missing
        return (Figure(name="cost", title=title, sections=("cost",), missing=missing),)
    arms = sweep.cells.drop_duplicates("label").set_index("label")
    frame = frame.assign(arm=frame["label"].map(arms["arm"]), layout=frame["label"].map(arms["layout"]))
    view = _View(
        frame=frame,
        column=column,
        unit=f"{currency_of(sweep.plan)} a million output tokens" if priced else "J an output token",
        ranked=ranked_arms(sweep, summary),
        axis=axis_of(sweep),
    )
    forced = FORCED if bool(view.shown["synthetic"].any()) else ""
    return (
        Figure(
            name="cost",
            title=title,
            plot=view.plot(),
            finding=view.finding(),
            reading=READING + forced + left_out(frame["arm"].nunique() - len(view.arms)),
            sections=("cost",),
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _View:
    """Costs of the arms of a sweep."""

    frame: pd.DataFrame
    """Rows of the section `cost`, with the arm's digest and layout."""
    column: str
    unit: str
    ranked: tuple[str, ...]
    axis: Axis

    @property
    def arms(self) -> list[str]:
        """Digests of the arms that are shown: the chosen one, the baselines, then the relevant ones."""
        there = set(self.frame["arm"])
        ranked = [arm for arm in self.ranked if arm in there]
        bases = self.frame.loc[self.frame["baseline"], "arm"]
        return list(dict.fromkeys([*ranked[:1], *bases, *ranked[1:], *self.frame["arm"]]))[:MOST]

    @property
    def shown(self) -> pd.DataFrame:
        return self.frame[self.frame["arm"].isin(self.arms)]

    def plot(self) -> go.Figure:
        figure = go.Figure()
        shown = self.shown
        first = shown.drop_duplicates("arm")
        names = short_names(zip(first["arm"], first["label"], first["layout"], strict=True))
        for index, arm in enumerate(self.arms):
            own = shown[shown["arm"] == arm].sort_values("level")
            baseline, forced = bool(own["baseline"].iloc[0]), bool(own["synthetic"].iloc[0])
            figure.add_trace(
                go.Scatter(
                    x=own["level"],
                    y=own[self.column],
                    error_y=frame_bars(own, self.column),
                    mode="lines+markers",
                    line={
                        "color": NEUTRAL if baseline else colour(index),
                        "width": 2,
                        "dash": "dot" if forced else "dash" if baseline else "solid",
                    },
                    marker={"size": 8, "symbol": symbol(index)},
                    name=names[arm],
                    customdata=[[self._told(row)] for row in own.to_dict("records")],
                    hovertemplate=f"{self.axis.hover}: %{{customdata[0]}}<extra>{names[arm]}</extra>",
                )
            )
        apply_style(figure, x="", y=escape(self.unit))
        level_axis(figure, self.axis, shown["level"])
        values = shown[self.column]
        figure.update_yaxes(type="log", **decade_ticks(values.min(), values.max()))
        return figure

    def _told(self, row: Mapping[Any, Any]) -> str:
        value, low, high = ends_of(row, self.column)
        digits = max(0, 2 - math.floor(math.log10(value))) if value > 0.0 else 2
        return escape(f"{with_interval(value, low, high, digits=digits)} {self.unit}")

    def finding(self) -> str:
        """Return the cheapest point that can be served, and the cheapest without a drafter."""
        real = self.frame[~self.frame["synthetic"].astype(bool)]
        found = [real, real[real["baseline"]]] if len(real) else [self.frame]
        rows = [own.sort_values(self.column).iloc[0].to_dict() for own in found if len(own)]
        told = [
            f"{row['label']} at {self.axis.at(float(row['level']))} with {self._told(row)}" for row in rows
        ]
        words = (
            ["cheapest is", "without a drafter"] if len(real) else ["cheapest, with forced acceptance, is"]
        )
        if len(rows) == 2 and rows[0]["label"] == rows[1]["label"]:
            told = told[:1]
        said = "; ".join(f"{word} {what}" for word, what in zip(words, told, strict=False))
        return f"{said[0].upper()}{said[1:]}."
