"""Which blocks confirm the winner of a sweep: a pure function from what is known to the next round."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from analysis.axis import AXES
from analysis.confirmation import weakest, winner
from analysis.objectives import OBJECTIVES
from analysis.summary import Summary
from jobs.load import LoadLevel
from jobs.result import CONFIRMATION, OPENING, TREATMENT
from orchestrator.blocks import enclosed
from orchestrator.levels import ascending, level_at
from orchestrator.plan import Arm, Block, Plan, Run
from orchestrator.rounds import Round
from orchestrator.scheduling import Proposed

NOTHING = Proposed()


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A round that is worth measuring."""

    reason: str
    """For people."""
    blocks: tuple[Block, ...]
    """Indices and round are given when it is appended."""
    arms: tuple[Arm, ...] = ()
    """Arms of the blocks that the plan does not have."""


def confirming_round(
    plan: Plan, rounds: Sequence[Round], summary: Summary, found: Proposed = NOTHING
) -> Proposal | None:
    """Return the fresh blocks that the winner still lacks of `plan.confirm`; None where it lacks none.

    Each block is the slice that the winner had, with its baseline, the winner and its baseline again, at the
    winner's level and at the weakest one of its range. Where K by load was proposed for arms of that slice,
    the schedule runs in them, too, at a level of each of its draft lengths.

    Args:
        plan: of the sweep.
        rounds: that it has.
        summary: of its results.
        found: what its planned cells propose, whatever fresh blocks said since: the question must not change
            with its answer.
    """
    best = winner(summary.rows, objective=summary.objective)
    if plan.confirm == 0 or best is None:
        return None
    weak = weakest(best, found.ranges)
    like = plan.arm(best.arm).levels[0]  # a search may have found the others
    levels = ascending({level_at(like, best.level), level_at(like, weak)})
    planned = next(block for block in plan.blocks if any(run.arm == best.arm for run in block.runs))
    there = {run.arm for run in planned.runs}
    added = [
        entry.arm for entry in found.schedules if entry.arm is not None and entry.schedule.baseline in there
    ]
    wanted: list[tuple[str, str, tuple[LoadLevel, ...]]] = [(best.arm, plan.arm(best.arm).pair_key, levels)]
    wanted += [(arm.digest, arm.pair_key, arm.levels) for arm in added]
    runs = enclosed(
        _openings(plan, wanted), [Run(arm=arm, role=TREATMENT, levels=own) for arm, _, own in wanted]
    )
    known = sum(
        block.runs == runs for round_ in rounds if round_.kind == CONFIRMATION for block in round_.blocks
    )
    lacking = plan.confirm - known
    if lacking <= 0:
        return None
    fresh = replace(planned, runs=runs)
    why = f"which wins on {OBJECTIVES[summary.objective].title}"
    beside = "".join(f", and {arm.label}" for arm in added)
    where = (
        best.at if weak == best.level else f"{best.at} and, where it gains least, {AXES[best.axis].at(weak)}"
    )
    return Proposal(
        reason=f"confirms {best.label} at {where}, {why}{beside}",
        blocks=(fresh,) * lacking,
        arms=tuple(added),
    )


def _openings(plan: Plan, wanted: Sequence[tuple[str, str, tuple[LoadLevel, ...]]]) -> list[Run]:
    """Return the baseline of each pair, at all levels that its arms are measured at."""
    levels: dict[str, set[LoadLevel]] = {}
    for _, pair, own in wanted:
        levels.setdefault(pair, set()).update(own)
    baselines = {arm.pair_key: arm.digest for arm in plan.arms if arm.is_baseline}
    return [Run(arm=baselines[pair], role=OPENING, levels=ascending(own)) for pair, own in levels.items()]
