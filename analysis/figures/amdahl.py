"""What a faster decode is worth end to end: Amdahl's curves, with the decode shares of this sweep."""

import math
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go

from analysis.amdahl import MISSING, need
from analysis.arms import arm_facts
from analysis.axis import Axis
from analysis.figures.chosen import chosen_arm
from analysis.figures.decode_share import Share, shares_of
from analysis.figures.figure import Figure
from analysis.figures.style import (
    NEUTRAL,
    add_slider,
    apply_style,
    colour,
    escape,
    interval_bars,
    say_above,
    symbol,
)
from analysis.figures.words import joined, percent, rounded, spread_out, with_interval
from analysis.formulas import end_to_end_speed_up, required_decode_speed_up, speed_up_cap
from analysis.frame import Sweep
from analysis.ksweep import axis_of
from analysis.summary import Summary

PLAIN_SHARES = (0.5, 0.7, 0.9, 0.95)
"""Decode shares of the curves that are there to compare with."""
TARGETS = tuple(round(1.1 + 0.1 * step, 1) for step in range(20))
"""End-to-end speed-ups that the slider goes through."""
FIRST = 1.5
TALLEST, WIDEST = 3.2, 10.0
"""Ends of the axes."""
MOST = 4
"""Levels that are drawn."""
_FINE = 48
_TICKS = (0.5, 0.7, 1, 1.5, 2, 3, 4, 6, 10)
READING = (
    "Bold, over a logarithmic axis: end-to-end speed-up G against decode speed-up x at the decode share "
    "measured without a drafter, its 95 % interval as a band, its cap 1/(1 - f) dotted; thin: other shares. "
    "All time but decode stays as it is here (`specload target` reckons with what each drafter did to it). "
    "The control marks what a target needs."
)


def amdahl(sweep: Sweep, summary: Summary) -> tuple[Figure, ...]:
    """Return the curves, for the chosen drafter's layout."""
    chosen = chosen_arm(sweep, summary)
    shares = shares_of(sweep, chosen)
    fact = None if chosen is None else arm_facts(sweep.cells, sweep.plan)[chosen]
    title = "How much faster end to end can a faster decode make it?"
    if not shares:
        return (Figure(name="amdahl", title=title, sections=("amdahl",), missing=MISSING),)
    view = _View(
        shares=tuple(shares),
        axis=axis_of(sweep),
        arm=fact.label if fact else "",
        k=fact.k if fact else 0,
        forced=fact is not None and fact.synthetic,
    )
    return (
        Figure(
            name="amdahl",
            title=title,
            plot=view.plot(),
            finding=view.finding(),
            reading=READING + view.remarks(),
            sections=("amdahl",),
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _View:
    """Curves of some levels."""

    shares: tuple[Share, ...]
    axis: Axis
    arm: str
    """Label of the chosen arm; empty without one."""
    k: int
    forced: bool
    """Whether its acceptance was."""

    @property
    def drawn(self) -> list[Share]:
        return [self.shares[place] for place in spread_out(len(self.shares), MOST)]

    @property
    def reached(self) -> list[Share]:
        """Levels at which the arm's own place is known."""
        return [share for share in self.drawn if math.isfinite(share.decode[0] + share.gain[0])]

    @property
    def grid(self) -> list[float]:
        low = min([1.0, *(0.95 * _lowest(share.decode) for share in self.reached)])
        return [float(f"{x:.5g}") for x in np.geomspace(low, WIDEST, _FINE)]

    def plot(self) -> go.Figure:
        figure = go.Figure()
        apply_style(figure, x="decode speed-up x", y="end-to-end speed-up G")
        grid = self.grid
        for share in PLAIN_SHARES:
            self._curve(figure, share, {"color": NEUTRAL, "width": 1}, "", f"f={share:g}")
        for index, own in enumerate(self.drawn):
            self._measured(figure, index, own)
        self._arm(figure)
        figure.add_trace(
            go.Scatter(
                x=[grid[0], WIDEST],
                y=[FIRST, FIRST],
                mode="lines",
                line={"color": NEUTRAL, "width": 1.5, "dash": "dash"},
                name="target",
                hoverinfo="skip",
            )
        )
        figure.add_trace(
            go.Scatter(
                mode="markers",
                marker={
                    "symbol": "circle-open",
                    "size": 14,
                    "color": [colour(index) for index in range(len(self.drawn))],
                    "line": {"width": 2.5},
                },
                showlegend=False,
                hovertemplate="G %{y:.1f} needs x %{x:.2f}<extra>target</extra>",
                **self._needs(FIRST),
            )
        )
        self._axes(figure)
        say_above(figure, self._answer(FIRST), lines=1 + len(self.drawn))
        figure.update_layout(height=418 + figure.layout.margin.t)
        self._slider(figure)
        return figure

    def _axes(self, figure: go.Figure) -> None:
        low = min([0.95, *(0.97 * _lowest(share.gain) for share in self.reached)])
        figure.update_yaxes(range=[low, TALLEST])
        figure.update_xaxes(
            type="log",
            range=[math.log10(self.grid[0]), math.log10(WIDEST)],
            tickvals=list(_TICKS),
            ticktext=[f"{tick:g}" for tick in _TICKS],
        )
        for place, share in enumerate(PLAIN_SHARES):  # at heights of their own, where lines are close
            leaves = required_decode_speed_up(TALLEST * (0.8 + 0.05 * place), share)
            x = WIDEST if leaves is None or leaves > WIDEST else leaves
            figure.add_annotation(
                x=math.log10(x),
                y=end_to_end_speed_up(share, x),
                text=f"f={share:g}",
                showarrow=False,
                xanchor="right",
                yanchor="bottom",
                font={"size": 11, "color": NEUTRAL},
            )

    def _curve(self, figure: go.Figure, share: float, line: dict[str, object], name: str, words: str) -> None:
        x = self.grid
        figure.add_trace(
            go.Scatter(
                x=x,
                y=[rounded(end_to_end_speed_up(share, value)) for value in x],
                mode="lines",
                line=line,
                name=name,
                showlegend=bool(name),
                hovertemplate="x %{x:.2f}: G %{y:.2f}<extra>" + words + "</extra>",
            )
        )

    def _measured(self, figure: go.Figure, index: int, own: Share) -> None:
        """Draw one level: its curve, what its interval covers, and its cap."""
        shade, words = colour(index), f"{self.axis.at(own.level)}: f={own.value:.2f}"
        x = self.grid
        if math.isfinite(own.low + own.high):
            upper = [end_to_end_speed_up(own.high, value) for value in x]
            lower = [end_to_end_speed_up(own.low, value) for value in x]
            figure.add_trace(
                go.Scatter(
                    x=[*x, *reversed(x)],
                    y=[rounded(value) for value in [*upper, *reversed(lower)]],
                    mode="lines",
                    fill="toself",
                    line={"width": 0, "color": shade},
                    opacity=0.18,
                    showlegend=False,
                    hoverinfo="skip",
                )
            )
        self._curve(figure, own.value, {"color": shade, "width": 3}, words, words)
        cap = speed_up_cap(own.value)
        if cap < TALLEST:
            figure.add_trace(
                go.Scatter(
                    x=[x[0], WIDEST],
                    y=[cap, cap],
                    mode="lines",
                    line={"color": shade, "width": 1.2, "dash": "dot"},
                    showlegend=False,
                    hovertemplate=f"cap {cap:.2f}<extra>{words}</extra>",
                )
            )

    def _arm(self, figure: go.Figure) -> None:
        """Draw what the chosen arm did at each level: off its curve where other time changed."""
        places = [place for place, share in enumerate(self.drawn) if share in self.reached]
        if not places:
            return
        decode, gain = (
            [list(ends) for ends in zip(*values, strict=True)]
            for values in (
                [self.drawn[place].decode for place in places],
                [self.drawn[place].gain for place in places],
            )
        )
        figure.add_trace(
            go.Scatter(
                x=decode[0],
                y=gain[0],
                error_x={**interval_bars(*decode), "color": NEUTRAL},
                error_y={**interval_bars(*gain), "color": NEUTRAL},
                mode="markers",
                marker={
                    "color": [colour(place) for place in places],
                    "symbol": [symbol(place) for place in places],
                    "size": 10,
                    "line": {"color": NEUTRAL, "width": 1},
                },
                name=escape(self.arm),
                customdata=[[self.axis.at(self.drawn[place].level)] for place in places],
                hovertemplate="%{customdata[0]}: x %{x:.2f}, G %{y:.2f}<extra>"
                + escape(self.arm)
                + "</extra>",
            )
        )

    def _needs(self, target: float) -> dict[str, list[float | None]]:
        """Return where a target meets the curves."""
        found = [required_decode_speed_up(target, share.value) for share in self.drawn]
        inside = [x if x is not None and x <= WIDEST else None for x in found]
        return {"x": [None if x is None else rounded(x) for x in inside], "y": [target] * len(inside)}

    def _answer(self, target: float) -> str:
        lines = [f"<b>G = {target:.1f} needs</b>"]
        for share in self.drawn:
            step = share.step if math.isfinite(share.step) else None
            found = need(target, share.value, step=step, k=self.k or None)
            where = self.axis.at(share.level)
            if found.decode is None:
                lines.append(f"{where}: none, cap {found.cap:.2f}")
            elif found.length is None:
                lines.append(f"{where}: x {found.decode:.2f}")
            else:
                over = f" (over K+1={self.k + 1})" if found.length > self.k + 1 else ""
                lines.append(f"{where}: x {found.decode:.2f}, {found.length:.2f} tokens/step{over}")
        return "<br>".join(lines)

    def _slider(self, figure: go.Figure) -> None:
        line, marks = len(figure.data) - 2, len(figure.data) - 1
        box = len(figure.layout.annotations) - 1
        steps: list[tuple[str, dict[str, object], dict[str, object]]] = []
        for target in TARGETS:
            places = self._needs(target)
            ends = self.grid[0], WIDEST
            changes: dict[str, object] = {"x": [list(ends), places["x"]], "y": [[target] * 2, places["y"]]}
            steps.append((f"{target:.1f}", changes, {f"annotations[{box}].text": self._answer(target)}))
        add_slider(
            figure,
            name="target speed-up G",
            steps=steps,
            active=TARGETS.index(FIRST),
            traces=[line, marks],
        )

    def finding(self) -> str:
        """Return the shares at the lowest and the highest level, and what they allow."""
        ends = list(dict.fromkeys((self.shares[0], self.shares[-1])))
        shares = joined(
            [f"{percent(own.value, own.low, own.high)} at {self.axis.at(own.level)}" for own in ends]
        )
        caps = joined([f"{speed_up_cap(own.value):.3g}" for own in ends])
        needed = []
        for own in ends:
            x = required_decode_speed_up(FIRST, own.value)
            needed.append("no decode is fast enough" if x is None else f"x {x:.2f}")
        told = f"Decode is {shares} of the baseline's latency: end to end at most {caps} times faster; "
        told += f"{FIRST:g} needs {joined(needed)}"
        last, forced = ends[-1], " (forced acceptance)" if self.forced else ""
        if math.isfinite(last.decode[0]):
            has = with_interval(*last.decode)
            told += f"; {self.arm}{forced} has x {has} at {self.axis.at(last.level)}"
        return f"{told}."

    def remarks(self) -> str:
        """Return what else has to be said of what is drawn."""
        said = ""
        if self.reached:
            said += f" Points: what {self.arm} did, with 95 % intervals; tokens a step are at its step cost."
        if len(self.drawn) < len(self.shares):
            said += f" {len(self.shares) - len(self.drawn)} levels between are left out; the table has all."
        return said


def _lowest(ends: tuple[float, float, float]) -> float:
    value, low, _ = ends
    return low if math.isfinite(low) else value
