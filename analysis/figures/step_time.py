"""Where the step's time goes: bars of a decode step's parts, by profiles, else estimated from step costs."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from analysis.figures.chosen import MOST, left_out, ranked_arms, short_names
from analysis.figures.figure import Figure
from analysis.figures.style import PALETTE, add_slider, end_bars, interval_bars
from analysis.figures.words import percent, rounded, with_interval
from analysis.frame import Sweep
from analysis.profiles import TRACE
from analysis.step_parts import COLOURS, DRAFTING, DRAFTS, FIXED, NOT_TOLD_APART, PARTS, VERIFYING
from analysis.step_time import FITTED, Step, StepTimes, profile_command, step_times
from analysis.summary import Summary

TITLE = "Where does the step's time go?"
SPECULATION = (VERIFYING, DRAFTS, NOT_TOLD_APART, DRAFTING, FIXED)
MOST_PROFILES = 3
"""Profiles of other loads and contexts that are drawn; the table has all."""
_ROOM = 0.07
"""Share of the axis from which a part has its share written into it."""
_END = 1.3
"""Length of the axis in longest steps: the milliseconds stand behind the bars."""


def step_time(sweep: Sweep, summary: Summary) -> tuple[Figure, ...]:
    """Return a figure a profiled load; without a profile one of the fitted costs, with a slider of loads."""
    groups = sweep.once(step_times)
    if not groups:
        return (
            Figure(
                name="step-time",
                title=TITLE,
                sections=("step_time",),
                missing="the engines told no step times, so not even an estimate can be made; "
                f"`{profile_command(sweep)}` takes a profile",
            ),
        )
    ranked = ranked_arms(sweep, summary)
    if groups[0].source == FITTED:
        return (_fitted(sweep, groups, ranked),)
    shown = groups[:MOST_PROFILES]
    return tuple(_profiled(group, ranked, index, len(groups)) for index, group in enumerate(shown))


def _profiled(group: StepTimes, ranked: Sequence[str], index: int, count: int) -> Figure:
    steps, more = _relevant(group.steps, ranked)
    where = f"{group.at}, {group.context} tokens"
    told = "The engine's own profiler" if group.source == TRACE else "An estimate from mean step times"
    others = count - MOST_PROFILES
    return Figure(
        name="step-time" if index == 0 else f"step-time-{index + 1}",
        title=TITLE if count == 1 else f"{TITLE} ({where})",
        plot=_plot([group], steps, 0),
        finding=_finding(
            group, ranked, f"{where}: " if group.source == TRACE else f"An estimate at {where}: "
        ),
        reading=f"{told}, in a run of its own with {group.level:.0f} requests held in decode; shares are "
        f"of the mean step, and one run has no interval.{left_out(more)}"
        + (f" {others} profiles of other loads are in the table." if index == 0 and others > 0 else ""),
        sections=("step_time",),
    )


def _fitted(sweep: Sweep, groups: Sequence[StepTimes], ranked: Sequence[str]) -> Figure:
    """Return the bars of every level, drawn at the highest one."""
    every: dict[str, Step] = {}
    for group in groups:
        for step in group.steps:
            every.setdefault(step.arm, step)
    steps, more = _relevant(sorted(every.values(), key=lambda step: step.k > 0), ranked)
    active = len(groups) - 1
    plot = _plot(groups, steps, active)
    last = groups[active]
    arm = next((arm for arm in ranked if any(step.arm == arm for step in steps)), "")
    tried = [group.level for group in groups if any(step.arm == arm for step in group.steps)]
    return Figure(
        name="step-time",
        title=TITLE,
        plot=plot,
        finding=_finding(last, ranked, f"An estimate at {last.at}: "),
        reading="An estimate, no profile: bars are the fitted T = t0 [1 + c + s K] of each drafter, marks "
        "the measured step with its 95 % interval. "
        f"`{profile_command(sweep, arm, max(tried, default=None))}` measures the parts.{left_out(more)}",
        sections=("step_time",),
    )


def _relevant(steps: Sequence[Step], ranked: Sequence[str]) -> tuple[list[Step], int]:
    """Return the steps that one plot shows, baselines first, and how many it leaves out."""
    if len(steps) <= MOST:
        return list(steps), 0
    places = {arm: place for place, arm in enumerate(ranked)}
    baselines = [step for step in steps if step.k == 0]
    others = sorted((step for step in steps if step.k), key=lambda step: places.get(step.arm, len(places)))
    kept = others[: max(1, MOST - len(baselines))]
    return [*baselines[: MOST - 1], *(step for step in steps if step in kept)], len(others) - len(kept)


def _plot(groups: Sequence[StepTimes], steps: Sequence[Step], active: int) -> go.Figure:
    """Draw the steps of one load, with a slider where there are several."""
    states = []
    for group in groups:
        own = {step.arm: step for step in group.steps}
        states.append(_State(steps=[own.get(step.arm) for step in steps]))
    drawn = {part for group in groups for step in group.steps for part in step.parts}
    names = [name for name in PARTS if name in drawn]
    longest = max(state.longest for state in states)
    names_of = short_names((step.arm, step.label, step.label.partition("/")[0]) for step in steps)
    labels = [names_of[step.arm] for step in steps]
    figure = go.Figure()
    first = states[active]
    for name in names:
        figure.add_trace(
            go.Bar(
                y=labels,
                x=first.widths(name),
                name=name,
                orientation="h",
                marker={"color": COLOURS[name], "line": {"color": "rgba(127,127,127,0.6)", "width": 1}},
                text=first.shares(name, longest),
                textposition="inside",
                insidetextanchor="middle",
                textangle=0,
                hovertemplate="%{y}: %{x:.3g} ms<extra>" + name + "</extra>",
            )
        )
    figure.add_trace(
        go.Scatter(
            y=labels,
            x=first.totals,
            error_x=first.bars,
            mode="markers",
            name="measured step",
            marker={"symbol": "line-ns", "size": 16, "line": {"color": PALETTE[-1], "width": 2}},
            hovertemplate="%{y}: measured %{x:.3g} ms<extra></extra>",
        )
    )
    end_bars(figure, labels, first.reach, first.words, x="mean decode step (ms)")
    figure.update_xaxes(range=[0.0, _END * longest])
    if len(states) > 1:
        add_slider(
            figure,
            name="load",
            active=active,
            steps=[
                (group.at, state.changes(names, longest), {})
                for group, state in zip(groups, states, strict=True)
            ],
        )
    return figure


@dataclass(frozen=True, slots=True, kw_only=True)
class _State:
    """What the plot shows at one load."""

    steps: Sequence[Step | None]
    """A place for every step of the plot, None where it was not measured at this load."""

    @property
    def totals(self) -> list[float | None]:
        """Measured steps, ms."""
        return [rounded(step.step_ms) if step else None for step in self.steps]

    @property
    def bars(self) -> dict[str, object]:
        """The intervals of the measured steps, as plotly's error bars."""
        known = [
            (step.step_ms, step.low_ms, step.high_ms) if step else (0.0, math.nan, math.nan)
            for step in self.steps
        ]
        values, lows, highs = zip(*known, strict=True)
        return interval_bars(values, lows, highs) | {"color": PALETTE[-1]}

    @property
    def words(self) -> list[str]:
        """What stands behind the bars, in the axis's ms."""
        return [f"  {_ms(step.step_ms)}" if step else "" for step in self.steps]

    @property
    def reach(self) -> list[float | None]:
        """Where all that is drawn of a step ends, ms."""
        return [
            rounded(max(step.step_ms, _whole(step), _known(step.high_ms))) if step else None
            for step in self.steps
        ]

    @property
    def longest(self) -> float:
        """The longest of these, ms."""
        return max((end for end in self.reach if end is not None), default=0.0)

    def widths(self, name: str) -> list[float | None]:
        """Return the milliseconds of a part; a negative one is noise, and not drawn."""
        return [rounded(max(step.parts.get(name, 0.0), 0.0)) if step else None for step in self.steps]

    def shares(self, name: str, longest: float) -> list[str]:
        """Return the words in a part's bars, where there is room for them."""
        return [
            f"{step.parts[name] / _whole(step):.0%}"
            if step and step.parts.get(name, 0.0) >= _ROOM * longest * _END
            else ""
            for step in self.steps
        ]

    def changes(self, names: Sequence[str], longest: float) -> dict[str, object]:
        """Return what turns any state of the plot into this one."""
        bars = self.bars
        return {
            "x": [*(self.widths(name) for name in names), self.totals, self.reach],
            "text": [*(self.shares(name, longest) for name in names), None, self.words],
            "error_x.array": [*([None] * len(names)), bars["array"], None],
            "error_x.arrayminus": [*([None] * len(names)), bars["arrayminus"], None],
            "error_x.visible": [*([None] * len(names)), bars["visible"], None],
        }


def _finding(group: StepTimes, ranked: Sequence[str], where: str) -> str:
    """Say what the most relevant arm spends at this load."""
    own = {step.arm: step for step in group.steps}
    baseline = next((step for step in group.steps if step.k == 0), None)
    treated = [step.arm for step in group.steps if step.k]
    found = next((own[arm] for arm in (*ranked, *treated) if arm in own), None)
    if found is None:
        told = "no drafter" if baseline is None else f"a plain step takes {_ms(baseline.step_ms)} ms"
        return f"{where}{told}."
    forced = " (forced acceptance)" if found.synthetic else ""
    over = ""
    if baseline is not None:
        ratio = [value / baseline.step_ms for value in (found.step_ms, found.low_ms, found.high_ms)]
        over = f", {with_interval(*ratio)} plain steps"
    spent = sorted(
        ((found.parts[name], name) for name in SPECULATION if found.parts.get(name, 0.0) > 0.0), reverse=True
    )
    shares = " and ".join(f"{percent(ms / _whole(found), None, None)} of it {name}" for ms, name in spent[:2])
    return (
        f"{where}a step of {found.label}{forced} takes {_ms(found.step_ms)} ms{over}"
        f"{f'; {shares}' if shares else ''}."
    )


def _whole(step: Step) -> float:
    """Return the length of a step's bar, ms: what is drawn of its parts."""
    return sum(max(ms, 0.0) for ms in step.parts.values())


def _ms(value: float) -> str:
    return f"{value:,.0f}" if value >= 100.0 else f"{value:#.3g}"


def _known(value: float) -> float:
    return value if math.isfinite(value) else 0.0
