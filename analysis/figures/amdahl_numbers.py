"""Amdahl's numbers of a sweep: decode shares by load, what each allows, and what a target needs."""

import math
from dataclasses import dataclass

import numpy as np

from analysis.amdahl import need
from analysis.axis import Axis
from analysis.figures.decode_share import Share
from analysis.figures.words import joined, percent, rounded, spread_out, with_interval
from analysis.formulas import required_decode_speed_up, speed_up_cap
from jobs.nouns import are, counted

TARGETS = tuple(round(1.1 + 0.1 * step, 1) for step in range(20))
"""End-to-end speed-ups that the slider goes through."""
FIRST = 1.5
"""The one that is shown at first."""
WIDEST = 10.0
"""Decode speed-up at which the curves end."""
MOST = 4
"""Levels that are drawn."""
_FINE = 48


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbers:
    """Decode shares of some levels, and of the chosen arm what its decode did."""

    shares: tuple[Share, ...]
    axis: Axis
    arm: str
    """Label of the chosen arm; empty without one."""
    k: int
    forced: bool
    """Whether its acceptance was."""

    @property
    def drawn(self) -> list[Share]:
        """Levels that are drawn, spread over all."""
        return [self.shares[place] for place in spread_out(len(self.shares), MOST)]

    @property
    def reached(self) -> list[Share]:
        """Levels at which the arm's own place is known."""
        return [share for share in self.drawn if math.isfinite(share.decode[0] + share.gain[0])]

    @property
    def grid(self) -> list[float]:
        """Decode speed-ups that the curves are drawn through."""
        low = min([1.0, *(0.95 * lowest(share.decode) for share in self.reached)])
        return [float(f"{x:.5g}") for x in np.geomspace(low, WIDEST, _FINE)]

    def needs(self, target: float) -> dict[str, list[float | None]]:
        """Return where a target meets the curves."""
        found = [required_decode_speed_up(target, share.value) for share in self.drawn]
        inside = [x if x is not None and x <= WIDEST else None for x in found]
        return {"x": [None if x is None else rounded(x) for x in inside], "y": [target] * len(inside)}

    def answer(self, target: float) -> str:
        """Return in words what a target needs at each level drawn, a line each."""
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
            left = len(self.shares) - len(self.drawn)
            said += f" {counted(left, 'level')} between {are(left)} left out; the table has all."
        return said


def lowest(ends: tuple[float, float, float]) -> float:
    """Return the lower end of a figure with its interval; the figure where it has none."""
    value, low, _ = ends
    return low if math.isfinite(low) else value
