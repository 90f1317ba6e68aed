"""The ceiling ladder: from the baseline over the chosen drafter to perfect acceptance, level by level."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from analysis.arms import (
    BASELINE,
    FLAT,
    FORCED,
    GEOMETRIC,
    LOADED,
    MEASURED_POSITIONS,
    PERFECT,
    REAL,
    ArmFacts,
    arm_facts,
)
from analysis.axis import Axis
from analysis.ceiling import COMPUTED, MISSING, NOT_RUN
from analysis.ceiling import ceiling as ceiling_section
from analysis.figures.chosen import chosen_arm
from analysis.figures.figure import Figure
from analysis.figures.style import (
    NEUTRAL,
    add_slider,
    apply_style,
    colour,
    interval_bars,
    length_bars,
    level_axis,
)
from analysis.figures.words import ends_of, joined, percent, rounded, with_interval
from analysis.frame import Sweep
from analysis.ksweep import axis_of
from analysis.summary import Summary

RUNGS = {
    BASELINE: "baseline",
    LOADED: "loaded,<br>never asked",
    REAL: "real drafter",
    MEASURED_POSITIONS: "forced, its<br>positions",
    GEOMETRIC: "forced,<br>geometric",
    FLAT: "forced, flat",
    FORCED: "forced",
    PERFECT: "perfect",
}
"""Kind of an arm -> what the ladder calls it, from the bottom up."""
PANELS = {"total": "total throughput", "user_speed": "user speed"}
_TICKS = (0.25, 0.33, 0.5, 0.7, 1, 1.5, 2, 3, 4, 6, 8, 12, 20)
READING = (
    "Above, on a log scale, what each rung gives over the baseline at one level, with 95 % intervals of one "
    "comparison each; a hollow point is computed, not run: all K + 1 tokens at the drafter's own step cost. "
    "Below, the share of perfect acceptance's gain that the drafter gets: ln(its ratio) / ln(the ceiling)."
)


def ceiling(sweep: Sweep, summary: Summary) -> tuple[Figure, ...]:
    """Return the ladder of the chosen drafter at its K."""
    section = sweep.once(ceiling_section)
    chosen = chosen_arm(sweep, summary)
    title = "How much is there to win, and what does the drafter get of it?"
    if chosen is None or section.frame.empty or not section.frame["digest"].eq(chosen).any():
        return (Figure(name="ceiling", title=title, sections=("ceiling",), missing=MISSING),)
    facts = arm_facts(sweep.cells, sweep.plan)
    view = _View(frame=_own(section.frame, facts, facts[chosen]), arm=facts[chosen], axis=axis_of(sweep))
    lacking = section.frame.loc[
        section.frame["source"].eq(NOT_RUN) & section.frame["layout"].eq(facts[chosen].layout)
    ]
    return (
        Figure(
            name="ceiling",
            title=title,
            plot=view.plot(),
            finding=view.finding(),
            reading=READING + _lacking(lacking),
            sections=("ceiling",),
        ),
    )


def _own(frame: pd.DataFrame, facts: dict[str, ArmFacts], chosen: ArmFacts) -> pd.DataFrame:
    """Return the rungs around the chosen arm: its pair and K, one arm a rung and level.

    Of levels with cells of both kinds those stand whose client had cores of its own.
    """
    run = frame[frame["source"] != NOT_RUN]
    rungs, others = run["rung"], run["digest"].map(facts)
    alike = others.map(lambda fact: fact.k == chosen.k).astype(bool)
    beside = (
        others.map(lambda fact: fact.pair == chosen.pair).astype(bool)
        & ~rungs.isin([REAL, chosen.kind])
        & run["source"].ne(COMPUTED)
        & (alike | rungs.isin([BASELINE, LOADED]))
    )
    kept = run.assign(other=~alike)[beside | run["digest"].eq(chosen.arm)]
    kept = kept.sort_values(["level", "oversubscribed", "other"], kind="stable")
    return kept.drop_duplicates(["level", "rung"])


def _lacking(rows: pd.DataFrame) -> str:
    if rows.empty:
        return ""
    told = "; ".join(f"{row.rung}: `{row.how}`" for row in rows.itertuples())
    return f" Rungs that were not run, and the words that add them to the sweep's command: {told}."


@dataclass(frozen=True, slots=True, kw_only=True)
class _View:
    """The rungs of one arm."""

    frame: pd.DataFrame
    arm: ArmFacts
    axis: Axis

    @property
    def levels(self) -> list[float]:
        return sorted(self.frame["level"].unique().tolist())

    @property
    def rungs(self) -> list[str]:
        there = set(self.frame["rung"])
        return [rung for rung in RUNGS if rung in there]

    @property
    def captured(self) -> bool:
        """Whether any level has a captured share."""
        return bool(self.frame[["capture_total", "capture_speed"]].notna().any(axis=None))

    @property
    def active(self) -> int:
        """The level that is shown first: where the arm's ratio of total throughput is best."""
        own = self.frame[self.frame["digest"].eq(self.arm.arm) & self.frame["rung"].eq(self.arm.kind)]
        known = own["total"].where(own["total"].notna(), own["user_speed"])
        ordered = own.assign(known=known).sort_values("known", na_position="first")
        return self.levels.index(float(ordered["level"].iloc[-1]))

    def plot(self) -> go.Figure:
        rows = 2 if self.captured else 1
        figure = make_subplots(
            rows=rows, cols=1, vertical_spacing=0.2, row_heights=[0.62, 0.38][:rows] if rows == 2 else [1]
        )
        apply_style(figure, x="", y="")
        figure.update_layout(height=600 if rows == 2 else 430, legend_y=-0.14 if rows == 2 else -0.2)
        for index, (name, words) in enumerate(PANELS.items()):
            state = self._state(self.levels[self.active], name)
            figure.add_trace(
                go.Scatter(
                    x=state["x"],
                    y=[RUNGS[rung] for rung in self.rungs],
                    error_x=length_bars(state["error_x.array"], state["error_x.arrayminus"]),
                    customdata=state["customdata"],
                    mode="lines+markers",
                    line={"color": colour(index), "width": 1.5, "dash": ("solid", "dash")[index]},
                    marker={"size": 10, "symbol": state["marker.symbol"], "color": colour(index)},
                    name=words,
                    legendgroup=name,
                    hovertemplate="%{y}: %{customdata[0]}<extra>" + words + "</extra>",
                ),
                row=1,
                col=1,
            )
        low, high = self._span()
        figure.update_xaxes(
            type="log",
            title_text=self._title(self.levels[self.active]),
            range=[math.log10(low), math.log10(high)],
            tickvals=[tick for tick in _TICKS if low <= tick <= high],
            ticktext=[f"{tick:g}" for tick in _TICKS if low <= tick <= high],
            row=1,
            col=1,
        )
        figure.update_yaxes(type="category", row=1, col=1)
        figure.add_vline(x=1.0, line={"color": NEUTRAL, "width": 1}, row=1, col=1)
        if self.captured:
            self._captures(figure)
        if len(self.levels) > 1:
            self._slider(figure)
        return figure

    def _title(self, level: float) -> str:
        return f"ratio to baseline at {self.axis.at(level)}"

    def _row(self, level: float, rung: str) -> Mapping[Any, Any]:
        """Return a row of the table; an empty one where the rung is not at the level."""
        own = self.frame[self.frame["level"].eq(level) & self.frame["rung"].eq(rung)]
        return {} if own.empty else own.iloc[0].to_dict()

    def _ends(self, level: float, rung: str, name: str) -> tuple[float, float, float]:
        return ends_of(self._row(level, rung), name)

    def _state(self, level: float, name: str) -> dict[str, list[object]]:
        ends = [self._ends(level, rung, name) for rung in self.rungs]
        rows = [self._row(level, rung) for rung in self.rungs]
        shape = ("circle", "square")[list(PANELS).index(name)]
        computed = [row.get("source") == COMPUTED for row in rows]
        wide = [math.isfinite(low + high) for _, low, high in ends]
        return {
            "x": [rounded(value) for value, _, _ in ends],
            "error_x.array": [
                rounded(high - value) if known else 0.0
                for (value, _, high), known in zip(ends, wide, strict=True)
            ],
            "error_x.arrayminus": [
                rounded(value - low) if known else 0.0
                for (value, low, _), known in zip(ends, wide, strict=True)
            ],
            "customdata": [
                [with_interval(*own) + (", computed" if hollow else "")]
                for own, hollow in zip(ends, computed, strict=True)
            ],
            "marker.symbol": [f"{shape}{'-open' * hollow}" for hollow in computed],
        }

    def _span(self) -> tuple[float, float]:
        names = [f"{name}{end}" for name in PANELS for end in ("", "_lo", "_hi")]
        known = self.frame[[name for name in names if name in self.frame]].to_numpy(dtype=float)
        known = known[known > 0.0]
        return max(0.2, min(known.min(), 0.95) / 1.08), min(25.0, max(known.max(), 1.05) * 1.08)

    def _captures(self, figure: go.Figure) -> None:
        """Draw the captured shares against the level."""
        own = self.frame[self.frame["rung"].eq(REAL)].sort_values("level")
        for index, (column, name) in enumerate((("capture_total", "total"), ("capture_speed", "user_speed"))):
            known = own[own[column].notna()]
            value, low, high = (100.0 * known[f"{column}{end}"] for end in ("", "_lo", "_hi"))
            figure.add_trace(
                go.Scatter(
                    x=known["level"],
                    y=value,
                    error_y=interval_bars(value, low, high),
                    mode="lines+markers",
                    line={"color": colour(index), "width": 2, "dash": ("solid", "dash")[index]},
                    marker={"size": 9, "symbol": ("circle", "square")[index]},
                    name=PANELS[name],
                    legendgroup=name,
                    showlegend=False,
                    hovertemplate=f"{self.axis.hover}: %{{y:.0f}} %<extra>captured, {PANELS[name]}</extra>",
                ),
                row=2,
                col=1,
            )
        level_axis(figure, self.axis, self.levels, row=2, col=1)
        figure.update_yaxes(title_text="captured, % of gain", row=2, col=1)
        figure.add_hline(y=0.0, line={"color": NEUTRAL, "width": 1}, row=2, col=1)

    def _slider(self, figure: go.Figure) -> None:
        steps: list[tuple[str, dict[str, object], dict[str, object]]] = []
        for level in self.levels:
            states = [self._state(level, name) for name in PANELS]
            changes: dict[str, object] = {key: [state[key] for state in states] for key in states[0]}
            steps.append((self.axis.at(level), changes, {"xaxis.title.text": self._title(level)}))
        add_slider(figure, name=self.axis.noun, steps=steps, active=self.active, traces=[0, 1])

    def finding(self) -> str:
        """Return what the arm gets of the ceiling, at the level shown first and over all levels."""
        level = self.levels[self.active]
        forced = " (forced acceptance)" if self.arm.synthetic else ""
        own = with_interval(*self._ends(level, self.arm.kind, "user_speed"))
        told = f"At {self.axis.at(level)} {self.arm.label}{forced} has {own} times the baseline's user speed"
        top = self._ends(level, PERFECT, "user_speed")
        if self.arm.kind != PERFECT and math.isfinite(top[0]):
            told += f", perfect acceptance {with_interval(*top)}"
        shares = self._shares()
        if shares:
            told += f"; it captures {joined(shares)} of that gain"
        elif self.arm.synthetic:
            told += "; no real drafter was run here, so nothing is captured"
        return f"{told}."

    def _shares(self) -> Sequence[str]:
        own = self.frame[self.frame["rung"].eq(REAL) & self.frame["capture_speed"].notna()]
        own = own.sort_values("level")
        places = dict.fromkeys([0, len(own) - 1]) if len(own) else {}
        return [
            f"{percent(row['capture_speed'], row['capture_speed_lo'], row['capture_speed_hi'])} "
            f"at {self.axis.at(float(row['level']))}"
            for row in (own.iloc[place] for place in places)
        ]
