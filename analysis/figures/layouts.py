"""Layout and drafter together: throughput per device indexed to the best, and the hit rates behind it."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from analysis.contrasts import counted
from analysis.effect_sections import factor_sets
from analysis.factors import BASELINE, LAYOUT, TREATMENT, per_device, short, with_treatment
from analysis.figures.chosen import MOST, left_out, ranked_arms
from analysis.figures.combination_bars import Combination, Load, factorial_loads, treatment_loads
from analysis.figures.figure import Figure
from analysis.figures.style import (
    NEUTRAL,
    WHISKER,
    add_slider,
    apply_style,
    colour,
    escape,
    length_bars,
)
from analysis.figures.words import with_interval
from analysis.frame import Sweep
from analysis.objectives import OBJECTIVES
from analysis.summary import Summary

SECTIONS = ("layouts", "effects")
TALLEST = 160.0
"""Where the axis of an index ends at the latest: an interval on one degree of freedom has no end."""
MISSING = (
    "no cell that counts was measured with cores of its own; the same `specload sweep` command measures what "
    "is missing, and `specload doctor` says what this machine lacks"
)


def layouts(sweep: Sweep, summary: Summary) -> tuple[Figure, ...]:
    """Return the bars of layout and drafter by load, and those of every other swept factor and drafter."""
    cells = counted(sweep.cells)
    sets = factor_sets(cells) if len(cells) else []
    drawn = []
    if not any(LAYOUT in factors for factors in sets):
        loads = treatment_loads(sweep, summary.objective) if len(cells) and not sets else []
        loads = loads or (factorial_loads(sweep, [LAYOUT, TREATMENT], summary.objective) if sets else [])
        drawn.append(_figure(sweep, summary, LAYOUT, loads))
    drawn += [
        _figure(sweep, summary, factors[0], factorial_loads(sweep, factors, summary.objective))
        for factors in sets
    ]
    return tuple(drawn)


def _figure(sweep: Sweep, summary: Summary, factor: str, loads: Sequence[Load]) -> Figure:
    slug = re.sub(r"[^a-z0-9]+", "-", short(factor).lower()).strip("-")
    objective = OBJECTIVES[summary.objective]
    share = " per device" if per_device(summary.objective) else ""
    name = "layouts" if factor == LAYOUT else f"layouts-{slug}"
    title = f"Which {short(factor)} and drafter together give the best {objective.title}{share}?"
    if not loads:
        return Figure(name=name, title=title, sections=SECTIONS, missing=MISSING)
    cells = with_treatment(counted(sweep.cells))
    view = _View(
        loads=tuple(loads),
        factor=short(factor),
        more_is_better=objective.higher_is_better,
        shown=_treatments(sweep, summary, loads),
        forced=frozenset(cells.loc[cells["synthetic"].astype(bool), TREATMENT]),
    )
    return Figure(
        name=name,
        title=title,
        plot=view.plot(),
        finding=view.finding(),
        reading=view.reading(),
        sections=SECTIONS,
    )


def _treatments(sweep: Sweep, summary: Summary, loads: Sequence[Load]) -> tuple[str, ...]:
    """Return the treatments that are shown: the baseline, then the most relevant ones."""
    cells = with_treatment(counted(sweep.cells)).drop_duplicates("arm")
    names = dict(zip(cells["arm"], cells[TREATMENT], strict=True))
    there = dict.fromkeys(bar.treatment for load in loads for bar in load.bars)
    ranked = dict.fromkeys((BASELINE, *(names[arm] for arm in ranked_arms(sweep, summary)), *there))
    return tuple(name for name in ranked if name in there)[:MOST]


@dataclass(frozen=True, slots=True, kw_only=True)
class _View:
    """The combinations of one factor and the drafters."""

    loads: tuple[Load, ...]
    factor: str
    more_is_better: bool
    shown: tuple[str, ...]
    """Treatments."""
    forced: frozenset[str]
    """Those whose acceptance was."""

    @property
    def active(self) -> int:
        """The load that is shown first: the highest of those with most combinations."""
        order = [(len(load.bars), load.size, place) for place, load in enumerate(self.loads)]
        return max(order)[2]

    @property
    def places(self) -> list[str]:
        return sorted({bar.place for load in self.loads for bar in load.bars})

    @property
    def rates(self) -> bool:
        """Whether anything was hit."""
        return any(bar.hit_rate > 0.0 for load in self.loads for bar in load.bars)

    def plot(self) -> go.Figure:
        rows = 2 if self.rates else 1
        figure = make_subplots(
            rows=rows,
            cols=1,
            shared_xaxes=True,
            vertical_spacing=0.06,
            row_heights=[0.68, 0.32][:rows] if rows == 2 else [1],
        )
        apply_style(figure, x="", y="index, best = 100")
        figure.update_layout(barmode="group", height=500 if self.rates else 430, bargap=0.25)
        start = self.loads[self.active]
        for treatment in self.shown:
            for row, trace in enumerate(self._traces(start, treatment), start=1):
                figure.add_trace(trace, row=row, col=1)
        figure.update_yaxes(range=[0, self._top()], row=1, col=1)
        if self.rates:
            figure.update_yaxes(title_text="hit rate, %", range=[0, 100], row=2, col=1)
        figure.update_xaxes(title_text=self._x_title(start), row=rows, col=1)
        if len(self.loads) > 1:
            self._slider(figure, "xaxis2" if self.rates else "xaxis")
        return figure

    def _traces(self, load: Load, treatment: str) -> list[go.Bar]:
        index = self.shown.index(treatment)
        name = escape(treatment)
        shade = NEUTRAL if treatment == BASELINE else colour(index - (BASELINE in self.shown))
        state = self._state(load, treatment)
        common = {
            "x": [escape(place) for place in self.places],
            "name": name,
            "legendgroup": name,
            "offsetgroup": str(index),
            "marker": {"color": shade, "opacity": 0.8},
        }
        traces = [
            go.Bar(
                y=state["y"],
                customdata=state["customdata"],
                error_y={
                    **length_bars(state["error_y.array"], state["error_y.arrayminus"]),
                    "color": WHISKER,
                },
                hovertemplate="%{x}: %{customdata[0]}<extra>" + name + "</extra>",
                **common,
            )
        ]
        if self.rates:
            traces.append(
                go.Bar(
                    y=self._rates(load, treatment),
                    showlegend=False,
                    hovertemplate="%{x}: hit rate %{y:.1f} %<extra>" + name + "</extra>",
                    **common,
                )
            )
        return traces

    def _bars(self, load: Load, treatment: str) -> list[Combination | None]:
        own = {bar.place: bar for bar in load.bars if bar.treatment == treatment}
        return [own.get(place) for place in self.places]

    def _state(self, load: Load, treatment: str) -> dict[str, list[object]]:
        bars = self._bars(load, treatment)
        return {
            "y": [None if bar is None else round(bar.index, 2) for bar in bars],
            "error_y.array": [_length(bar, up=True) for bar in bars],
            "error_y.arrayminus": [_length(bar, up=False) for bar in bars],
            "customdata": [["" if bar is None else _told(bar)] for bar in bars],
        }

    def _rates(self, load: Load, treatment: str) -> list[float | None]:
        return [
            None if bar is None or not math.isfinite(bar.hit_rate) else round(100.0 * bar.hit_rate, 2)
            for bar in self._bars(load, treatment)
        ]

    def _slider(self, figure: go.Figure, x: str) -> None:
        steps: list[tuple[str, dict[str, object], dict[str, object]]] = []
        for load in self.loads:
            states: list[Mapping[str, object]] = []
            for treatment in self.shown:
                states.append(self._state(load, treatment))
                if self.rates:
                    states.append({"y": self._rates(load, treatment)})
            changes: dict[str, object] = {name: [own.get(name) for own in states] for name in states[0]}
            steps.append((escape(load.label), changes, {f"{x}.title.text": self._x_title(load)}))
        add_slider(figure, name="load", steps=steps, active=self.active)

    def _x_title(self, load: Load) -> str:
        return escape(f"{self.factor}, at {load.label}")

    def _top(self) -> float:
        ends = [
            end
            for load in self.loads
            for bar in load.bars
            if bar.treatment in self.shown
            for end in (bar.index, bar.high)
            if math.isfinite(end)
        ]
        return min(TALLEST, max(ends) * 1.05) if self.more_is_better else max(ends) * 1.05

    def finding(self) -> str:
        """Return the best combination and the next one, and the best place without a drafter."""
        load = self.loads[self.active]
        best, *others = load.bars
        parts = [f"At {load.label} the best is {best.place} with {self._drafter(best)}"]
        if others:
            parts.append(f"next {others[0].place} with {self._drafter(others[0])} at {_told(others[0])}")
        plain = [bar for bar in load.bars if bar.treatment == BASELINE]
        if len(plain) > 1:
            same = "too" if plain[0].place == best.place else "instead"
            parts.append(f"without a drafter {plain[0].place} {same}")
        return "; ".join(parts) + "."

    def _drafter(self, bar: Combination) -> str:
        forced = " (forced acceptance)" if bar.treatment in self.forced else ""
        return "no drafter" if bar.treatment == BASELINE else f"{bar.treatment}{forced}"

    def reading(self) -> str:
        """Return how to read it."""
        said = [
            "100 is the best." if self.more_is_better else "100 is the best, more is slower.",
            "Whiskers: 95 % intervals of the ratio to it, for one comparison each; the best has none.",
            "A combination without a bar was not measured at that load.",
        ]
        if self.forced & set(self.shown):
            said.append("Forced acceptance shows a ceiling, not a drafter.")
        if self.rates:
            said.append("Below, the prefix-cache hit rates: part of what a layout is.")
        count = len({bar.treatment for load in self.loads for bar in load.bars}) - len(self.shown)
        return " ".join(said) + left_out(count, "drafter")


def _length(bar: Combination | None, *, up: bool) -> float:
    if bar is None or not (math.isfinite(bar.low) and math.isfinite(bar.high)):
        return 0.0
    return round(bar.high - bar.index if up else bar.index - bar.low, 2)


def _told(bar: Combination) -> str:
    return with_interval(bar.index, bar.low, bar.high, digits=1)
