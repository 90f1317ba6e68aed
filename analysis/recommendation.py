"""What to serve with, by load: one configuration a range of loads, its margins, and whether it was confirmed.

Choices are made level by level (`analysis.choices`) on the objective of the sweep, and joined into ranges
whose edges are where neighbouring choices are alike. A choice that fresh blocks contradicted is not made; one
that no fresh blocks confirmed is provisional.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from analysis.arms import arm_facts
from analysis.choices import Candidate, Choice, LoadRange, choose, join
from analysis.confirmation import Confirmation
from analysis.frame import Sweep
from analysis.objectives import DEFAULT, OBJECTIVES
from analysis.rows import VerdictRow
from analysis.schedule import Schedule, schedule_of
from analysis.standings import Standing, standings
from analysis.summary import Summary, summarise
from analysis.verdict import LOSES, NO_DIFFERENCE

CONFIRMED, PROVISIONAL, NO_NEED = "confirmed", "provisional", "needs none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Recommendation:
    """What a sweep says should be served with."""

    objective: str
    ranges: tuple[LoadRange, ...]
    """By group of layouts that ran together, and load."""
    schedules: tuple[Schedule, ...]
    """The most promising of each group, where one drafter's draft length changes with load."""
    candidates: Mapping[str, Candidate]
    """Every arm that could be served with, by digest."""
    confirmations: tuple[Confirmation, ...]
    notes: tuple[str, ...]

    def status(self, found: LoadRange) -> str:
        """Return whether a range's choice won again in fresh blocks."""
        candidate = found.candidate
        if candidate is None or candidate.is_baseline:
            return NO_NEED
        again = any(entry.arm == candidate.arm and entry.confirmed for entry in self.confirmations)
        return CONFIRMED if again else PROVISIONAL

    def at(self, level: float) -> tuple[Choice, ...]:
        """Return the choices at a level, one a group that tried it."""
        return tuple(choice for found in self.ranges for choice in found.choices if choice.level == level)


def recommend(sweep: Sweep, *, objective: str | None = None) -> Recommendation:
    """Return what to serve with, by load.

    Args:
        sweep: the sweep.
        objective: a name in `OBJECTIVES`; the plan's where None.

    Raises:
        ValueError: an unknown objective.
    """
    objective = objective or str(sweep.plan.get("objective") or DEFAULT)
    threshold = float(sweep.plan.get("threshold", 0.02))
    summary = summarise(sweep.results, threshold=threshold, objective=objective)
    candidates = candidates_of(sweep.cells)
    refuted = _refuted(summary)
    rules = _Rules(
        rows={(row.arm, row.level): row for row in summary.rows if (row.arm, row.level) not in refuted},
        candidates=candidates,
        objective=objective,
    )
    groups: dict[str, list[Standing]] = {}
    for board in standings(sweep.cells, objective) if candidates else ():
        groups.setdefault(board.group, []).append(board)
    levels = {name: _one_a_level(own) for name, own in groups.items()}
    families = {arm: facts.family for arm, facts in arm_facts(sweep.cells, sweep.plan).items()}
    made = (_schedule(rules, own, families) for own in levels.values())
    return Recommendation(
        objective=objective,
        ranges=tuple(found for own in levels.values() for found in rules.ranges(own)),
        schedules=tuple(schedule for schedule in made if schedule is not None),
        candidates=candidates,
        confirmations=summary.confirmations,
        notes=_notes(summary, refuted, candidates),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rules:
    """What choices are made by."""

    rows: Mapping[tuple[str, float], VerdictRow]
    candidates: Mapping[str, Candidate]
    objective: str

    def choices(self, boards: Sequence[Standing], among: Collection[str] | None = None) -> list[Choice]:
        better = OBJECTIVES[self.objective].higher_is_better
        return [
            choose(
                board,
                self.rows,
                self.candidates,
                objective=self.objective,
                higher_is_better=better,
                among=among,
            )
            for board in boards
        ]

    def ranges(self, boards: Sequence[Standing], among: Collection[str] | None = None) -> list[LoadRange]:
        return join(boards[0].group, boards[0].devices, self.choices(boards, among), boards)


def _schedule(rules: _Rules, boards: Sequence[Standing], families: Mapping[str, str]) -> Schedule | None:
    """Return the schedule of the drafter that gains most over the levels; None where none has one."""
    best: Schedule | None = None
    most = 0.0
    for family, arms in _families(families, rules.candidates, boards).items():
        ranges = rules.ranges(boards, arms)
        gain = _gain([choice for found in ranges for choice in found.choices])
        made = schedule_of(ranges, family=family, candidates=rules.candidates)
        if made is not None and made.axis == "concurrency" and gain > most:
            best, most = made, gain
    return best


def candidates_of(cells: pd.DataFrame) -> dict[str, Candidate]:
    """Return the arms that could be served with, by digest: none of forced acceptance, no counterfactual."""
    if cells.empty:
        return {}
    real = ~cells["synthetic"].astype(bool) & cells["counterfactual"].eq("")
    first = cells[real].drop_duplicates("arm")
    baselines = first[first["k"].eq(0) & first["drafter"].eq("none")]
    by_pair = dict(zip(baselines["pair"], baselines["arm"], strict=True))
    return {
        str(row.arm): Candidate(
            arm=str(row.arm),
            label=str(row.label),
            layout=str(row.layout),
            drafter=str(row.drafter),
            k=int(row.k),
            baseline=str(by_pair[row.pair]),
            axis=str(row.axis),
        )
        for row in first.itertuples()
        if row.pair in by_pair
    }


def _one_a_level(boards: Sequence[Standing]) -> list[Standing]:
    """Return one standing a level, ascending: the one with cores of its own, where there are both."""
    ordered = sorted(boards, key=lambda board: (board.level, not board.oversubscribed))
    return list({board.level: board for board in ordered}.values())


def _families(
    families: Mapping[str, str], candidates: Mapping[str, Candidate], boards: Sequence[Standing]
) -> dict[str, list[str]]:
    """Return each drafter's arms with their baseline, where it has any in this group."""
    here = {arm for board in boards for arm in board.arms}
    found: dict[str, list[str]] = {}
    for arm, family in families.items():
        if family and arm in candidates and arm in here:
            found.setdefault(family, [candidates[arm].baseline]).append(arm)
    return found


def _gain(choices: Sequence[Choice]) -> float:
    """Return the summed log advantage over the baseline."""
    return sum(math.log(choice.over_baseline.value) for choice in choices if choice.over_baseline)


def _refuted(summary: Summary) -> set[tuple[str, float]]:
    """Return (arm, level) of winners that fresh blocks contradicted."""
    wrong = {
        (entry.arm, entry.at) for entry in summary.confirmations if entry.verdict in (LOSES, NO_DIFFERENCE)
    }
    return {(row.arm, row.level) for row in summary.rows if (row.arm, row.at) in wrong}


def _notes(
    summary: Summary, refuted: set[tuple[str, float]], candidates: Mapping[str, Candidate]
) -> tuple[str, ...]:
    notes = [f"chosen on {OBJECTIVES[summary.objective].title}; loads are over the whole slice of devices"]
    if summary.axis != "concurrency":
        notes.append(
            "open loop: until an arm cannot keep up, throughputs are alike; choose a latency instead"
        )
    if refuted:
        labels = sorted({row.label for row in summary.rows if (row.arm, row.level) in refuted})
        notes.append(f"fresh blocks contradicted {', '.join(labels)}: not chosen at those levels")
    if summary.synthetic:
        notes.append("forced acceptance shows a ceiling: such arms are never recommended")
    if any(row.counterfactual for row in summary.rows):
        notes.append("counterfactual arms show causes: they are never recommended")
    if summary.emulated:
        notes.append("emulated: figures come from a model of hardware, and so does what is recommended")
    if summary.oversubscribed:
        notes.append("no choice is made where client and engine shared a core")
    if candidates and all(candidate.is_baseline for candidate in candidates.values()):
        notes.append("no arm with a drafter can be served: there is only the baseline to recommend")
    return tuple(notes)
