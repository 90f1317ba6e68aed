"""Why the chosen drafter's ratio is what it is: its parts as a waterfall on a log scale, level by level."""

import math
from dataclasses import dataclass

import pandas as pd
import plotly.graph_objects as go

from analysis.axis import Axis
from analysis.decomposition import MISSING
from analysis.decomposition import decomposition as decomposition_section
from analysis.figures.chosen import chosen_arm
from analysis.figures.figure import Figure
from analysis.figures.style import NEUTRAL, PALETTE, WHISKER, add_slider, apply_style, length_bars
from analysis.figures.words import ends_of, joined, rounded, with_interval
from analysis.formulas import ratio_of
from analysis.frame import Sweep
from analysis.ksweep import axis_of
from analysis.latency_parts import PARTS
from analysis.summary import Summary

NAMES = {
    "acceptance": "acceptance",
    "step_cost": "step cost",
    "non_decode": "other time",
    "cached_share": "cache hits",
    "kv_capacity": "KV capacity",
    "residual": "residual",
    "whole": "ratio",
}
"""Part -> what a bar is called."""
RATIOS = {"total": "total throughput", "user_speed": "user speed"}
GAIN, LOSS = PALETTE[0], PALETTE[1]
ABSENT = "\N{EN DASH}"
WIDEST = math.log(12.0)
"""Where the axis ends at the latest, as a log."""
_TICKS = (0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.4, 2, 3, 4, 6, 10)
READING = (
    "Each bar is a factor of the ratio and starts where the one above ends; on the log scale they add up to "
    "the last one. Blue gains, orange loses; whiskers are 95 % intervals of one comparison each. A dash "
    "stands for a part that was not told apart: the notes beside the table say how to."
)


def decomposition(sweep: Sweep, summary: Summary) -> tuple[Figure, ...]:
    """Return the waterfall of the chosen arm: of total throughput, or of user speed in an open loop."""
    chosen = chosen_arm(sweep, summary)
    frame = sweep.once(decomposition_section).frame
    own = frame[frame["digest"] == chosen] if len(frame) and chosen is not None else pd.DataFrame()
    name = next((name for name in RATIOS if len(own) and own["ratio"].eq(name).any()), "")
    title = "Why is the ratio what it is?"
    if not name:
        return (
            Figure(
                name="decomposition", title=title, sections=("decomposition", "identities"), missing=MISSING
            ),
        )
    rows = own[own["ratio"] == name].sort_values(["level", "oversubscribed"], kind="stable")
    view = _View(rows=rows.drop_duplicates("level"), name=RATIOS[name], axis=axis_of(sweep))
    return (
        Figure(
            name="decomposition",
            title=title,
            plot=view.plot(),
            finding=view.finding(),
            reading=READING,
            sections=("decomposition", "identities"),
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """One bar, as logs."""

    name: str
    start: float
    value: float
    low: float
    high: float
    known: bool

    @property
    def label(self) -> str:
        return f"{NAMES[self.name]}  {f'{math.exp(self.value):.2f}' if self.known else ABSENT}"

    @property
    def factor(self) -> tuple[float, float, float]:
        """The factor itself, with its interval."""
        return ratio_of(self.value), ratio_of(self.low), ratio_of(self.high)

    @property
    def wide(self) -> bool:
        return self.known and math.isfinite(self.low + self.high)


@dataclass(frozen=True, slots=True, kw_only=True)
class _View:
    """The parts of one arm."""

    rows: pd.DataFrame
    name: str
    axis: Axis

    @property
    def levels(self) -> list[float]:
        return [float(level) for level in self.rows["level"]]

    def parts(self, level: float) -> list[_Part]:
        """Return the bars from the top down, the ratio itself last."""
        row = self.rows[self.rows["level"] == level].iloc[0].to_dict()
        found, reached = [], 0.0
        for name in (*PARTS, "whole"):
            value, low, high = (_log(end) for end in ends_of(row, name))
            known = math.isfinite(value)
            found.append(
                _Part(
                    name=name,
                    start=0.0 if name == "whole" else reached,
                    value=value if known else 0.0,
                    low=low,
                    high=high,
                    known=known,
                )
            )
            reached += value if known else 0.0
        return found

    def plot(self) -> go.Figure:
        figure = go.Figure()
        active = len(self.levels) - 1
        level = self.levels[active]
        bars = self._state(level)
        places = list(range(len(NAMES)))
        figure.add_trace(
            go.Bar(
                orientation="h",
                y=places,
                x=bars["x"],
                base=bars["base"],
                marker={"color": bars["marker.color"], "opacity": 0.75},
                error_x={
                    **length_bars(bars["error_x.array"], bars["error_x.arrayminus"]),
                    "color": WHISKER,
                    "thickness": 2,
                },
                customdata=bars["customdata"],
                hovertemplate="%{customdata[0]}<extra></extra>",
                width=0.6,
                showlegend=False,
            )
        )
        apply_style(figure, x=self._title(level), y="")
        low, high = self._span()
        ticks = [tick for tick in _TICKS if low <= math.log(tick) <= high]
        figure.update_xaxes(
            range=[low, high],
            tickvals=[rounded(math.log(tick)) for tick in ticks],
            ticktext=[f"{tick:g}" for tick in ticks],
        )
        figure.update_yaxes(
            range=[len(NAMES) - 0.5, -0.5],
            tickvals=places,
            ticktext=[part.label for part in self.parts(level)],
            showgrid=False,
            automargin=True,
        )
        figure.update_layout(shapes=self._lines(level))
        if len(self.levels) > 1:
            self._slider(figure, active)
        return figure

    def _title(self, level: float) -> str:
        return f"factor of the ratio at {self.axis.at(level)}"

    def _state(self, level: float) -> dict[str, list[object]]:
        parts = self.parts(level)
        return {
            "x": [rounded(part.value) for part in parts],
            "base": [rounded(part.start) for part in parts],
            "marker.color": [
                NEUTRAL if part.name == "whole" else GAIN if part.value >= 0.0 else LOSS for part in parts
            ],
            "error_x.array": [rounded(part.high - part.value) if part.wide else 0.0 for part in parts],
            "error_x.arrayminus": [rounded(part.value - part.low) if part.wide else 0.0 for part in parts],
            "customdata": [[_hover(part)] for part in parts],
        }

    def _lines(self, level: float) -> list[dict[str, object]]:
        """Return the line of 1, and one from the end of each bar to the start of the next."""
        line = {"color": NEUTRAL, "width": 1}
        whole: dict[str, object] = {"type": "line", "x0": 0, "x1": 0, "y0": 0, "y1": 1, "yref": "paper"}
        found = [{**whole, "line": line}]
        for place, part in enumerate(self.parts(level)[:-1]):
            end = rounded(part.start + part.value)
            found.append(
                {"type": "line", "x0": end, "x1": end, "y0": place + 0.3, "y1": place + 0.7, "line": line}
            )
        return found

    def _span(self) -> tuple[float, float]:
        ends = [0.0]
        for level in self.levels:
            for part in self.parts(level):
                ends += [part.start, part.start + part.value]
                if part.wide:
                    ends += [part.start + part.low, part.start + part.high]
        room = 0.05 * (max(ends) - min(ends)) + 0.02
        return max(-WIDEST, min(ends) - room), min(WIDEST, max(ends) + room)

    def _slider(self, figure: go.Figure, active: int) -> None:
        steps: list[tuple[str, dict[str, object], dict[str, object]]] = []
        for level in self.levels:
            changes: dict[str, object] = {key: [values] for key, values in self._state(level).items()}
            layout: dict[str, object] = {
                "shapes": self._lines(level),
                "xaxis.title.text": self._title(level),
                "yaxis.ticktext": [part.label for part in self.parts(level)],
            }
            steps.append((self.axis.at(level), changes, layout))
        add_slider(figure, name=self.axis.noun, steps=steps, active=active)

    def finding(self) -> str:
        """Return the ratio at the ends of the levels, and the parts that make most of it."""
        row = self.rows.iloc[0]
        forced = " (forced acceptance)" if row["synthetic"] else ""
        told = [self._told(level) for level in dict.fromkeys((self.levels[0], self.levels[-1]))]
        return f"{row['arm']}{forced}, {self.name}: {'; '.join(told)}."

    def _told(self, level: float) -> str:
        *parts, whole = self.parts(level)
        largest = sorted((part for part in parts if part.known), key=lambda part: -abs(part.value))[:2]
        ratio = with_interval(*whole.factor)
        words = [f"{NAMES[part.name]} {math.exp(part.value):.2f}" for part in largest]
        return f"{ratio} at {self.axis.at(level)}, mostly {joined(words)}"


def _hover(part: _Part) -> str:
    if not part.known:
        return f"{NAMES[part.name]}: not told apart"
    return f"{NAMES[part.name]}: {with_interval(*part.factor, digits=3)}"


def _log(value: float) -> float:
    """Return the log of a factor; NaN of what is unknown or ran out of the numbers there are."""
    return math.log(value) if value > 0.0 else math.nan
