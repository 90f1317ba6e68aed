"""What to serve with, by load: one configuration a range of loads, its margins, and whether it was confirmed.

Choices are made level by level (`analysis.choices`) on the objective of the sweep, and joined into ranges
whose edges are where neighbouring choices are alike. A choice that fresh blocks contradicted is not made; one
that no fresh blocks confirmed is provisional.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import pandas as pd

from analysis.arms import arm_facts
from analysis.axis import AXES
from analysis.choices import Candidate, Choice, LoadRange, choose, join
from analysis.confirmation import Confirmation, confirmations
from analysis.contrasts import counted, t_quantile
from analysis.frame import Sweep
from analysis.levels import fit_levels
from analysis.objectives import DEFAULT, OBJECTIVES, check_objective
from analysis.rows import VerdictRow
from analysis.schedule import Schedule, schedule_of
from analysis.standings import Standing, standings
from analysis.table import planned_rows, verdict_rows
from analysis.tried import asked_all
from analysis.verdict import LOSES, NO_DIFFERENCE
from jobs.result import CONFIRMATION

CONFIRMED, PROVISIONAL, NO_NEED, BY_DEFAULT = "confirmed", "provisional", "needs none", "by default"


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
        """Return whether a range's choice won again in fresh blocks, or why it did not have to.

        It has to at every level of the range at which it was measured again.
        """
        candidate = found.candidate
        if candidate is None or candidate.is_baseline:
            return BY_DEFAULT if found.undecided else NO_NEED
        again = [entry.confirmed for entry in self.fresh(found)]
        return CONFIRMED if again and all(again) else PROVISIONAL

    def fresh(self, found: LoadRange) -> tuple[Confirmation, ...]:
        """Return what fresh blocks say of a range's choice at the levels of the range."""
        candidate = found.candidate
        if candidate is None:
            return ()
        places = {AXES[candidate.axis].at(choice.level) for choice in found.choices}
        return tuple(
            entry for entry in self.confirmations if entry.arm == candidate.arm and entry.at in places
        )

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
    return sweep.once(_recommend, objective or str(sweep.plan.get("objective") or DEFAULT))


def _recommend(sweep: Sweep, objective: str) -> Recommendation:
    threshold = sweep.threshold
    rows, confirmed = _judged(sweep, threshold=threshold, objective=objective)
    candidates = candidates_of(sweep.cells)
    refuted = _refuted(rows, confirmed)
    every = {(row.arm, row.level): row for row in rows}
    planned = _Rules(rows=every, candidates=candidates, objective=objective, threshold=threshold)
    kept = {place: row for place, row in every.items() if place not in refuted}
    rules = replace(planned, rows=kept)
    groups: dict[str, list[Standing]] = {}
    for board in standings(sweep.cells, objective) if candidates else ():
        groups.setdefault(board.group, []).append(board)
    levels = {name: _one_a_level(own) for name, own in groups.items()}
    chosen_at = {name: _asked_all(own, sweep.cells, candidates) for name, own in levels.items()}
    families = {arm: facts.family for arm, facts in arm_facts(sweep.cells, sweep.plan).items()}
    # a proposal stays the one that its own fresh blocks were measured for
    made = (_schedule(planned, own, families) for own in chosen_at.values())
    return Recommendation(
        objective=objective,
        ranges=tuple(
            found for name, own in levels.items() for found in rules.ranges(chosen_at[name], every=own)
        ),
        schedules=tuple(schedule for schedule in made if schedule is not None),
        candidates=candidates,
        confirmations=confirmed,
        notes=_notes(sweep.cells, objective, [every[place] for place in refuted], candidates),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rules:
    """What choices are made by."""

    rows: Mapping[tuple[str, float], VerdictRow]
    candidates: Mapping[str, Candidate]
    objective: str
    threshold: float
    """Practical threshold, as a share."""

    def choices(self, boards: Sequence[Standing], among: Collection[str] | None = None) -> list[Choice]:
        return [
            choose(board, self.rows, self.candidates, objective=self.objective, among=among)
            for board in boards
        ]

    def ranges(
        self,
        boards: Sequence[Standing],
        among: Collection[str] | None = None,
        every: Sequence[Standing] | None = None,
    ) -> list[LoadRange]:
        """Return the ranges of the choices at some levels; edges are looked for at every level given."""
        choices = self.choices(boards, among)
        return join(boards[0].group, boards[0].devices, choices, every or boards) if choices else []


def _schedule(rules: _Rules, boards: Sequence[Standing], families: Mapping[str, str]) -> Schedule | None:
    """Return the schedule of the drafter that gains most by one; None where none is surely worth it.

    Worth it is what is ahead of the best single configuration by more than the practical threshold, in the
    sum of log advantages over the levels tried, at the lower end of its interval. The baseline stands for
    K=0. Levels at which the drafter has no figure that counts are left out: they are no reason for K=0.
    """
    best: Schedule | None = None
    most = math.log1p(rules.threshold)
    for family, arms in _families(families, rules.candidates, boards).items():
        drafting = [arm for arm in arms if not rules.candidates[arm].is_baseline]
        known = [board for board in boards if any(arm in board.arms for arm in drafting)]
        singles = {arm: _sum(known, [arm] * len(known)) for arm in rules.candidates}
        single = max(singles, key=lambda arm: singles[arm])
        ranges = rules.ranges(known, arms, boards)
        made = schedule_of(ranges, family=family, candidates=rules.candidates)
        if made is None or made.axis != "concurrency" or singles[single] == -math.inf:
            continue
        gain = _surely(known, [step.arm for step in made.steps for _ in step.levels], single)
        if gain > most:
            best, most = made, gain
    return best


def _sum(boards: Sequence[Standing], arms: Sequence[str]) -> float:
    """Return the summed log advantage of an arm a level; -inf where one was not measured."""
    return sum(
        float(board.means[board.arms.index(arm)]) if arm in board.arms else -math.inf
        for board, arm in zip(boards, arms, strict=True)
    )


def _surely(boards: Sequence[Standing], arms: Sequence[str], single: str) -> float:
    """Return the lower end of the summed log advantage of an arm a level over one; -inf without noise."""
    value = variance = 0.0
    for board, arm in zip(boards, arms, strict=True):
        gap, error = board.gap(arm, single)
        if error is None:
            return -math.inf
        value, variance = value + gap, variance + error**2
    return value - t_quantile(min(board.df for board in boards)) * math.sqrt(variance)


def candidates_of(cells: pd.DataFrame) -> dict[str, Candidate]:
    """Return the arms that could be served with, by digest: none of forced acceptance, no counterfactual."""
    if cells.empty:
        return {}
    real = ~cells["synthetic"].astype(bool) & cells["counterfactual"].eq("")
    named = ["arm", "label", "layout", "drafter", "k", "axis", "pair"]
    first = cells.loc[real, named].drop_duplicates("arm")
    baselines = first[first["k"].eq(0) & first["drafter"].eq("none")]
    by_pair = dict(zip(baselines["pair"], baselines["arm"], strict=True))
    return {
        str(row["arm"]): Candidate(
            arm=str(row["arm"]),
            label=str(row["label"]),
            layout=str(row["layout"]),
            drafter=str(row["drafter"]),
            k=int(row["k"]),
            baseline=str(by_pair[row["pair"]]),
            axis=str(row["axis"]),
        )
        for row in first.to_dict("records")
        if row["pair"] in by_pair
    }


def _one_a_level(boards: Sequence[Standing]) -> list[Standing]:
    """Return one standing a level, ascending: the one with cores of its own, where there are both."""
    ordered = sorted(boards, key=lambda board: (board.level, not board.oversubscribed))
    return list({board.level: board for board in ordered}.values())


def _asked_all(
    boards: Sequence[Standing], cells: pd.DataFrame, candidates: Collection[str]
) -> list[Standing]:
    """Return the standings of levels at which a choice can be made: no arm of the group was passed over."""
    arms = {arm for board in boards for arm in board.arms if arm in candidates}
    planned = counted(cells)
    return [board for board in boards if asked_all(planned, arms, board.level)]


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


def _judged(
    sweep: Sweep, *, threshold: float, objective: str
) -> tuple[tuple[VerdictRow, ...], tuple[Confirmation, ...]]:
    """Return the verdicts on the planned cells, and what fresh blocks say of their winners."""
    check_objective(objective)
    if counted(sweep.cells).empty:
        planned: tuple[VerdictRow, ...] = ()
    else:
        planned = planned_rows(sweep, threshold=threshold, objective=objective)
    fresh = sweep.cells[sweep.cells["kind"].eq(CONFIRMATION)].reset_index(drop=True)
    if fresh.empty:
        return planned, ()
    rows = verdict_rows(fresh, fit_levels(fresh), threshold=threshold, objective=objective)
    return planned, confirmations(rows, objective=objective)


def _refuted(rows: Sequence[VerdictRow], confirmed: Sequence[Confirmation]) -> set[tuple[str, float]]:
    """Return (arm, level) of winners that fresh blocks contradicted."""
    wrong = {(entry.arm, entry.at) for entry in confirmed if entry.verdict in (LOSES, NO_DIFFERENCE)}
    return {(row.arm, row.level) for row in rows if (row.arm, row.at) in wrong}


def _notes(
    cells: pd.DataFrame,
    objective: str,
    refuted: Sequence[VerdictRow],
    candidates: Mapping[str, Candidate],
) -> tuple[str, ...]:
    notes = [f"chosen on {OBJECTIVES[objective].title}; loads are over the whole slice of devices"]
    if refuted:
        labels = ", ".join(sorted({row.label for row in refuted}))
        notes.append(f"fresh blocks contradicted {labels}: not chosen at those levels")
    if candidates and all(candidate.is_baseline for candidate in candidates.values()):
        notes.append("no arm with a drafter can be served: there is only the baseline to recommend")
    told = {
        "open loop: until an arm cannot keep up, throughputs are alike; choose by a latency": cells[
            "axis"
        ].ne("concurrency"),
        "forced acceptance shows a ceiling: such arms are never recommended": cells["synthetic"],
        "counterfactual arms show causes: they are never recommended": cells["counterfactual"].ne(""),
        "emulated: figures come from a model of hardware, and so does what is recommended": cells["emulated"],
        "no choice is made where client and engine shared a core": cells["oversubscribed"],
    }
    return (*notes, *(note for note, where in told.items() if bool(where.any())))
