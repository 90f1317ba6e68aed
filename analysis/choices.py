"""What to serve with at each load level, and over which range of loads: choices joined into ranges.

At a level the choice is the best, by estimate, of the baselines and of the arms whose verdict is `wins`.
Where no arm wins, a baseline is chosen: a drafter that is not shown to pay is not recommended. Forced
acceptance and counterfactual arms cannot be served; a level at which client and engine shared a core gets no
choice.
"""

import itertools
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from analysis.crossover import find_crossover
from analysis.rows import Ratio, VerdictRow
from analysis.standings import Standing
from analysis.verdict import INVALID, UNDECIDED, WINS
from jobs.nouns import counted


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """An arm that could be served with."""

    arm: str
    """Digest."""
    label: str
    layout: str
    drafter: str
    k: int
    baseline: str
    """Digest of its pair's baseline: its own for a baseline."""
    axis: str

    @property
    def is_baseline(self) -> bool:
        """Whether it runs without a drafter."""
        return self.arm == self.baseline


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What to serve with at one level."""

    level: float
    candidate: Candidate | None
    """None where nothing can be said."""
    reason: str
    """Why this, or why nothing."""
    over_baseline: Ratio | None = None
    """Its advantage over its layout's baseline, with the simultaneous interval of the verdict; None for a
    baseline."""
    runner_up: Candidate | None = None
    """The best of all others by estimate."""
    margin: Ratio | None = None
    """Advantage over the runner-up, with the interval of this comparison."""
    undecided: tuple[str, ...] = ()
    """Of a baseline: arms that may pay here all the same, each with why nobody knows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """Where one choice gives way to the next."""

    lower: float
    """Level tried below it."""
    upper: float
    """Level tried above it."""
    at: float
    """Where the two are alike, interpolated in log advantage over log level; between the two levels, by
    their geometric mean, where the curve does not say."""
    lo: float
    """95 % interval of the place, within the levels tried; the two levels around it where nobody knows."""
    hi: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadRange:
    """Neighbouring levels with the same choice."""

    group: str
    devices: int
    choices: tuple[Choice, ...]
    """At each level of it, ascending."""
    begins: Edge | None = None
    """None at the lowest level tried."""
    ends: Edge | None = None
    """None at the highest level tried."""

    @property
    def candidate(self) -> Candidate | None:
        """What to serve with in it."""
        return self.choices[0].candidate

    @property
    def undecided(self) -> tuple[str, ...]:
        """Of a baseline: arms that may pay in it all the same, each with why nobody knows."""
        return tuple(told for choice in self.choices for told in choice.undecided)

    @property
    def low(self) -> float:
        """Load from which it holds: the edge below, or the lowest level tried."""
        return self.choices[0].level if self.begins is None else self.begins.at

    @property
    def high(self) -> float:
        """Load up to which it holds: the edge above, or the highest level tried."""
        return self.choices[-1].level if self.ends is None else self.ends.at


def choose(
    standing: Standing,
    rows: Mapping[tuple[str, float], VerdictRow],
    candidates: Mapping[str, Candidate],
    *,
    objective: str,
    among: Collection[str] | None = None,
) -> Choice:
    """Return what to serve with at one level.

    Args:
        standing: the level's arms against each other.
        rows: verdicts by (arm, level).
        candidates: arms that can be served, by digest.
        objective: what the verdicts are on.
        among: arms that are looked at; all candidates where None.
    """
    level = standing.level
    here = [arm for arm in standing.arms if arm in candidates and (among is None or arm in among)]
    if standing.oversubscribed:
        return Choice(
            level=level, candidate=None, reason="client and engine shared a core: measured, never judged"
        )
    verdicts = {arm: rows[arm, level] for arm in here if (arm, level) in rows}
    winners = [arm for arm, row in verdicts.items() if row.verdict == WINS]
    baselines = [arm for arm in here if candidates[arm].is_baseline]
    best = standing.best((*winners, *baselines))
    if best is None:
        return Choice(level=level, candidate=None, reason="no baseline was measured here")
    others = tuple(arm for arm in here if arm != best)
    second = standing.best(others)
    chosen = candidates[best]
    by_default = chosen.is_baseline and not winners
    return Choice(
        level=level,
        candidate=chosen,
        reason=_reason(chosen, winners, verdicts),
        over_baseline=None if chosen.is_baseline else verdicts[best].gain(objective),
        runner_up=None if second is None else candidates[second],
        margin=None if second is None else standing.ratio(best, second),
        undecided=_undecided(level, baselines, rows, candidates, objective) if by_default else (),
    )


def _undecided(
    level: float,
    baselines: Collection[str],
    rows: Mapping[tuple[str, float], VerdictRow],
    candidates: Mapping[str, Candidate],
    objective: str,
) -> tuple[str, ...]:
    """Return the arms that nothing rules out, each with its verdict: no evidence is no finding.

    Among them are arms without a measurement that counts, which stand on no board.
    """
    found = []
    for (arm, at), row in rows.items():
        if at != level or arm not in candidates or candidates[arm].baseline not in baselines:
            continue
        gain = row.gain(objective)
        hopeless = row.capacity_failure or (gain is not None and gain.hi is not None and gain.hi < 1.0)
        if row.verdict in (UNDECIDED, INVALID) and not hopeless:
            found.append(f"{row.label} is {row.verdict} at {row.at}")
    return tuple(found)


def _reason(chosen: Candidate, winners: Sequence[str], rows: Mapping[str, VerdictRow]) -> str:
    if not chosen.is_baseline:
        return "wins against its baseline, and no other winner is ahead of it by estimate"
    if winners:
        return "ahead, by estimate, of every arm that wins against the baseline of its own layout"
    if not rows:
        return "no arm with a drafter that can be served has a valid pair here"
    words = sorted({row.verdict for row in rows.values()})
    more = [row.more_blocks for row in rows.values() if row.more_blocks]
    least = counted(min(more), "more block") if more else ""
    blocks = f"; about {least} would decide the nearest" if more else ""
    return f"no arm with a drafter wins ({', '.join(words)}){blocks}"


def join(group: str, devices: int, choices: Sequence[Choice], boards: Sequence[Standing]) -> list[LoadRange]:
    """Return neighbouring levels with the same choice as ranges, ascending.

    Args:
        group: name of the slice's group.
        devices: of the slice.
        choices: one a level at which one is made, ascending.
        boards: the standings of these and of all other levels of the group, ascending: edges are looked for
            among them.
    """
    parts = [
        tuple(own)
        for _, own in itertools.groupby(choices, key=lambda choice: choice.candidate and choice.candidate.arm)
    ]
    edges = [_edge(before[-1], after[0], boards) for before, after in itertools.pairwise(parts)]
    return [
        LoadRange(
            group=group,
            devices=devices,
            choices=part,
            begins=edges[place - 1] if place else None,
            ends=edges[place] if place < len(edges) else None,
        )
        for place, part in enumerate(parts)
    ]


def _edge(low: Choice, high: Choice, boards: Sequence[Standing]) -> Edge:
    """Return where the lower level's choice gives way to the upper level's."""
    middle = math.sqrt(low.level * high.level)
    plain = Edge(lower=low.level, upper=high.level, at=middle, lo=low.level, hi=high.level)
    if low.candidate is None or high.candidate is None:
        return plain
    arms = (low.candidate.arm, high.candidate.arm)
    used = [board for board in boards if all(arm in board.arms for arm in arms) and not board.oversubscribed]
    gaps = [board.gap(*arms) for board in used]
    errors = np.array([np.nan if error is None else error for _, error in gaps])
    replicated = bool(np.all(np.isfinite(errors)))
    found = find_crossover(
        [board.level for board in used],
        [gap for gap, _ in gaps],
        np.diag(errors**2) if replicated else None,
        float(min(board.df for board in used)) if replicated and used else None,
    )
    between = [entry for entry in found.crossings if low.level <= entry.lower and entry.upper <= high.level]
    crossing = next((entry for entry in between if entry.downward), None)
    if crossing is None or crossing.log_log is None:
        return plain  # one of them was chosen for its verdict and not for its estimate
    plain = replace(plain, lower=crossing.lower, upper=crossing.upper, lo=crossing.lower, hi=crossing.upper)
    if crossing is not found.main or not replicated:
        return replace(plain, at=crossing.log_log)
    return replace(
        plain,
        at=crossing.log_log,
        lo=used[0].level if found.low is None else found.low,
        hi=used[-1].level if found.high is None else found.high,
    )
