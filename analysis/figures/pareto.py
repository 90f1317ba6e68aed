"""What a user gets against what a device gives: every arm over its levels, the front marked."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from analysis.axis import Axis
from analysis.figures.chosen import left_out, ranked_arms, short_names
from analysis.figures.figure import Figure
from analysis.figures.style import NEUTRAL, apply_style, colour, decade_ticks, frame_bars, symbol
from analysis.figures.words import ends_of, with_interval
from analysis.frame import Sweep
from analysis.ksweep import axis_of
from analysis.pareto import ON, PERHAPS, on_front
from analysis.pareto import pareto as pareto_section
from analysis.summary import Summary

SHOWN = 6
"""Arms at most: each has intervals in both directions."""
X, Y = "user_speed", "output_per_device"
READING = (
    "A line an arm, its levels along it (lower loads are to the right); bars are 95 % intervals, in which "
    "blocks differ. The dashed line joins what no other point beats in both by estimate; rings are thick "
    "where a point is on the front with a chance of 95 %, thin where perhaps. Both axes are logarithmic."
)


def pareto(sweep: Sweep, summary: Summary) -> tuple[Figure, ...]:
    """Return the front of user speed against output per device."""
    section = sweep.once(pareto_section)
    title = "What does a faster answer cost in output per device?"
    if section.frame.empty:
        return (Figure(name="pareto", title=title, sections=("pareto",), missing=section.missing),)
    names = sweep.cells.drop_duplicates("label").set_index("label")["arm"]
    frame = section.frame.assign(arm=section.frame["label"].map(names))
    view = _View(frame=frame, ranked=ranked_arms(sweep, summary), axis=axis_of(sweep))
    return (
        Figure(
            name="pareto",
            title=title,
            plot=view.plot(),
            finding=view.finding(),
            reading=READING + left_out(frame["arm"].nunique() - len(view.arms)),
            sections=("pareto",),
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _View:
    """The points of a sweep."""

    frame: pd.DataFrame
    """Rows of the section `pareto`, with the arm's digest."""
    ranked: tuple[str, ...]
    axis: Axis

    @property
    def best(self) -> pd.DataFrame:
        """Points that no other beats by estimate, the fastest for a user first."""
        x, y = (self.frame[name].to_numpy(dtype=float)[None, :] for name in (X, Y))
        best: pd.DataFrame = self.frame[on_front(x, y)[0]].sort_values(X, ascending=False)
        return best

    @property
    def arms(self) -> list[str]:
        """Digests of the arms that are shown: those with a point on the front, then the relevant ones."""
        bases = self.frame.loc[self.frame["baseline"], "arm"]
        there = set(self.frame["arm"])
        order = dict.fromkeys([*self.best["arm"], *(arm for arm in self.ranked if arm in there), *bases])
        return list(order)[:SHOWN]

    def plot(self) -> go.Figure:
        figure = go.Figure()
        arms = self.arms
        shown = self.frame[self.frame["arm"].isin(arms)]
        first = shown.drop_duplicates("arm")
        names = short_names(zip(first["arm"], first["label"], first["layout"], strict=True))
        for index, arm in enumerate(arms):
            own = shown[shown["arm"] == arm].sort_values("level")
            baseline = bool(own["baseline"].iloc[0])
            ends = (own["level"].min(), own["level"].max())
            figure.add_trace(
                go.Scatter(
                    x=own[X],
                    y=own[Y],
                    error_x=frame_bars(own, X),
                    error_y=frame_bars(own, Y),
                    customdata=[[self._told(row)] for row in own.to_dict("records")],
                    mode="lines+markers" if index else "lines+markers+text",
                    text=[self.axis.at(level) if level in ends else "" for level in own["level"]],
                    textposition="top center",
                    line={
                        "color": NEUTRAL if baseline else colour(index),
                        "width": 1.5,
                        "dash": "dash" if baseline else "solid",
                    },
                    marker={"size": 8, "symbol": symbol(index)},
                    name=names[arm],
                    hovertemplate="%{customdata[0]}<extra>" + names[arm] + "</extra>",
                )
            )
        best = self.best
        figure.add_trace(
            go.Scatter(
                x=best[X],
                y=best[Y],
                mode="lines",
                line={"color": NEUTRAL, "width": 1, "dash": "dot"},
                name="front",
                hoverinfo="skip",
            )
        )
        for word, width in ((ON, 2.5), (PERHAPS, 1.0)):
            own = shown[shown["front"] == word]
            if len(own):
                figure.add_trace(
                    go.Scatter(
                        x=own[X],
                        y=own[Y],
                        mode="markers",
                        marker={
                            "symbol": "circle-open",
                            "size": 16,
                            "color": NEUTRAL,
                            "line": {"width": width},
                        },
                        name=word,
                        hoverinfo="skip",
                    )
                )
        apply_style(figure, x="user speed, tok/s a user", y="output, tok/s per device")
        figure.update_layout(height=500, legend_y=-0.28)
        figure.update_xaxes(type="log", **decade_ticks(shown[X].min(), shown[X].max()))
        figure.update_yaxes(type="log", **decade_ticks(shown[Y].min(), shown[Y].max()))
        return figure

    def _told(self, row: Mapping[Any, Any]) -> str:
        words = [self.axis.at(float(row["level"]))]
        for name, unit in ((X, "tok/s a user"), (Y, "tok/s per device")):
            words.append(f"{with_interval(*ends_of(row, name), digits=1)} {unit}")
        return "<br>".join([*words, str(row["front"])])

    def finding(self) -> str:
        """Return the two ends of the front, and how many of its points are sure."""
        best = self.best
        ends = [best.iloc[place] for place in dict.fromkeys((0, len(best) - 1))]
        told = [
            f"{row['label']} at {self.axis.at(float(row['level']))} ({row[X]:.3g} tok/s a user, "
            f"{row[Y]:,.0f} per device)"
            for row in ends
        ]
        sure = int((self.frame["front"] == ON).sum())
        known = bool(np.isfinite(self.frame["p_front"]).any())
        chance = f"; {sure} of them surely" if known else "; one block tells no noise"
        return f"The front has {len(best)} of {len(self.frame)} points, {' to '.join(told)}{chance}."
