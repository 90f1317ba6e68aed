"""K by load: one drafter whose best draft length changes with concurrency, as a schedule.

At each level the choice is made among the draft lengths of the one drafter and its baseline, by the rules of
`analysis.choices`; where the baseline is chosen the drafter stays loaded and is not asked (K=0), which no
cell of a plain sweep has measured. So a schedule is a proposal until it has been measured as an arm of its
own.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from analysis.choices import Candidate, LoadRange


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One draft length and the loads that it is for."""

    k: int
    """0: the drafter is loaded and not asked."""
    low: float
    """Load from which it holds; the first step of a schedule begins at 0."""
    high: float | None
    """Load up to which it holds; None for the last step, which no level above confirms."""
    levels: tuple[float, ...]
    """Levels tried within it, ascending."""
    arm: str
    """Digest of the arm that was measured with this draft length; of the baseline for K=0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """One drafter's draft length by load, on slices of one layout."""

    family: str
    """Name of the drafter over its draft lengths."""
    layout: str
    devices: int
    """Devices of the slice that the loads are over."""
    axis: str
    baseline: str
    """Digest."""
    steps: tuple[Step, ...]
    """Ascending; neighbours differ in K."""

    @property
    def longest(self) -> Step:
        """The step with the largest K."""
        return max(self.steps, key=lambda step: step.k)

    @property
    def probes(self) -> tuple[float, ...]:
        """Levels at which the schedule has to show itself: the middle one of each step."""
        return tuple(step.levels[len(step.levels) // 2] for step in self.steps)


def schedule_of(
    ranges: Sequence[LoadRange], *, family: str, candidates: Mapping[str, Candidate]
) -> Schedule | None:
    """Return the schedule that a drafter's own ranges make; None where one draft length is best throughout.

    Args:
        ranges: of the choices among the drafter's arms and their baseline, ascending.
        family: name of the drafter.
        candidates: by digest.
    """
    known = [(found, found.candidate) for found in ranges if found.candidate is not None]
    if len(known) != len(ranges) or not known:
        return None
    steps: list[Step] = []
    for found, candidate in known:
        levels = tuple(choice.level for choice in found.choices)
        low = 0.0 if found.begins is None else found.begins.at
        high = None if found.ends is None else found.ends.at
        steps.append(Step(k=candidate.k, low=low, high=high, levels=levels, arm=candidate.arm))
    if len({step.k for step in steps}) < 2:
        return None
    first = known[0][1]
    baseline = candidates[first.baseline]
    return Schedule(
        family=family,
        layout=baseline.layout,
        devices=ranges[0].devices,
        axis=first.axis,
        baseline=first.baseline,
        steps=tuple(steps),
    )
