"""Which blocks confirm the winner of a sweep: a pure function from what is known to the next round."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from analysis.confirmation import winner
from analysis.objectives import OBJECTIVES
from analysis.summary import Summary
from jobs.result import OPENING, TREATMENT
from orchestrator.blocks import enclosed
from orchestrator.plan import Arm, Block, Plan, Run
from orchestrator.rounds import Round


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A round that is worth measuring."""

    reason: str
    """For people."""
    blocks: tuple[Block, ...]
    """Indices and round are given when it is appended."""
    arms: tuple[Arm, ...] = ()
    """Arms of the blocks that the plan does not have."""


def confirming_round(plan: Plan, rounds: Sequence[Round], summary: Summary) -> Proposal | None:
    """Return the fresh blocks that the winner still lacks of `plan.confirm`; None where it lacks none.

    Each block is the slice that the winner had, with its baseline, the winner and its baseline again, at the
    winner's level.
    """
    best = winner(summary.rows, objective=summary.objective)
    if plan.confirm == 0 or best is None:
        return None
    level = next(level for level in plan.arm(best.arm).levels if level.value == best.level)
    planned = next(block for block in plan.blocks if any(run.arm == best.arm for run in block.runs))
    pair = plan.arm(best.arm).pair_key
    baseline = next(arm for arm in plan.arms if arm.is_baseline and arm.pair_key == pair)
    runs = enclosed(
        [Run(arm=baseline.digest, role=OPENING, levels=(level,))],
        [Run(arm=best.arm, role=TREATMENT, levels=(level,))],
    )
    known = sum(block.runs == runs for round_ in rounds for block in round_.blocks)
    lacking = plan.confirm - known
    if lacking <= 0:
        return None
    fresh = replace(planned, runs=runs)
    return Proposal(
        reason=f"confirms {best.label} at {best.at}, which wins on {OBJECTIVES[summary.objective].title}",
        blocks=(fresh,) * lacking,
    )
