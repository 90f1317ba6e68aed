"""What is left to do: from a plan and the results so far to the segments of blocks that still have to run.

A cell that has an outcome is never run again. What is left of an interrupted block becomes a new segment,
opened and closed by baselines of its own at the levels it needs, because pairs never cross segments.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from engines.digest import digest
from jobs.cell import arm_fields
from jobs.load import LoadLevel
from jobs.result import CLOSING, INFEASIBLE, OPENING, TREATMENT, CellResult
from jobs.task import BlockTask, CellTask, RunTask
from jobs.workload.tokens import TokenWorkload
from orchestrator.plan import Arm, Block, Plan, Refused, Run


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """The part of a block that has to run now."""

    block: Block
    index: int
    """0 for a block that never ran; one more than its last segment otherwise."""
    runs: tuple[Run, ...]

    @property
    def cells(self) -> int:
        """Cells it will measure."""
        return sum(len(run.levels) for run in self.runs)


def pending(
    plan: Plan,
    results: Iterable[CellResult],
    *,
    blocks: Sequence[Block] | None = None,
    again: Collection[str] = (),
) -> list[Segment]:
    """Return the segments still to run, in the order of blocks.

    Args:
        plan: the sweep.
        results: all outcomes so far.
        again: those of these cells that are to be measured again: their outcomes do not count.
        blocks: the blocks to look at, those of appended rounds among them; None for the plan's own.
    """
    by_block: dict[int, list[CellResult]] = {}
    for result in results:
        if result.outcome != INFEASIBLE:
            by_block.setdefault(result.block, []).append(result)
    segments = (
        _pending_of(plan, block, by_block.get(block.index, ()), again)
        for block in (plan.blocks if blocks is None else blocks)
    )
    return [segment for segment in segments if segment.runs]


def cell_id(plan: Plan, segment: Segment, run: Run, level: LoadLevel) -> str:
    """Return the id of a cell: readable first, then eight digits of the digest of all that defines it."""
    arm = plan.arm(run.arm)
    content = [
        run.arm,
        level,
        segment.block.index,
        segment.index,
        run.role,
        plan.workload.digest,
        plan.seed,
    ]
    label = arm.config.label.replace("/", "-")
    return f"b{segment.block.index}-s{segment.index}-{run.role}-{label}-{level.label}-{digest(content)[:8]}"


def block_task(
    plan: Plan, segment: Segment, workload: TokenWorkload, *, engine_cores: int, load_cores: int
) -> BlockTask:
    """Return what the block's process is told."""
    runs = tuple(_run_task(plan, segment, run, index) for index, run in enumerate(segment.runs))
    return BlockTask(
        block=segment.block.index,
        segment=segment.index,
        devices=segment.block.devices,
        engine_cores=engine_cores,
        load_cores=load_cores,
        resource=plan.cluster.resource,
        round=segment.block.round,
        kind=segment.block.kind,
        runs=runs,
        workload=workload,
        workload_digest=plan.workload.digest,
        seed=plan.seed,
        warmup_requests=plan.warmup_requests,
        warmup_rounds_max=plan.warmup_rounds_max,
        cache=plan.cache,
        slo=plan.slo,
        ready_seconds=plan.timeouts.ready,
        stop_seconds=plan.timeouts.stop,
        stall_seconds=plan.timeouts.stall,
        cell_seconds=plan.timeouts.cell,
    )


def infeasible_cells(plan: Plan, results: Iterable[CellResult]) -> list[CellResult]:
    """Return the outcome of every refused arm that is not recorded yet: known before anything starts."""
    recorded = {result.cell for result in results}
    cells = (_infeasible(refused, level) for refused in plan.refused for level in refused.arm.levels)
    return [cell for cell in cells if cell.cell not in recorded]


def _pending_of(plan: Plan, block: Block, mine: Sequence[CellResult], again: Collection[str]) -> Segment:
    done = {(result.arm, result.role, result.load) for result in mine if result.cell not in again}
    index = max((result.segment for result in mine), default=-1) + 1
    if not mine:
        return Segment(block=block, index=0, runs=block.runs)
    # a block without treatments (of a sweep of baselines alone) needs baselines for their own sake
    wanted = [run for run in block.runs if run.role == TREATMENT] or block.runs
    lacking = [run for run in (_without(run, done) for run in wanted) if run.levels]
    treatments = [run for run in lacking if run.role == TREATMENT]
    needed = _levels_by_pair(plan, lacking)
    opening = [_only(run, needed.get(plan.pair_of(run.arm), ())) for run in block.runs if run.role == OPENING]
    closing = [_only(run, needed.get(plan.pair_of(run.arm), ())) for run in block.runs if run.role == CLOSING]
    runs = tuple(run for run in (*opening, *treatments, *closing) if run.levels)
    return Segment(block=block, index=index, runs=runs)


def _levels_by_pair(plan: Plan, lacking: Iterable[Run]) -> dict[str, set[str]]:
    """Return the labels of the levels at which each pair lacks something."""
    needed: dict[str, set[str]] = {}
    for run in lacking:
        needed.setdefault(plan.pair_of(run.arm), set()).update(level.label for level in run.levels)
    return needed


def _without(run: Run, done: Collection[tuple[str, str, str]]) -> Run:
    return _only(run, {level.label for level in run.levels if (run.arm, run.role, level.label) not in done})


def _only(run: Run, labels: Collection[str]) -> Run:
    levels = tuple(level for level in run.levels if level.label in labels)
    return Run(arm=run.arm, role=run.role, levels=levels)


def _run_task(plan: Plan, segment: Segment, run: Run, index: int) -> RunTask:
    arm = plan.arm(run.arm)
    name = (
        f"b{segment.block.index}-s{segment.index}-{index:02d}-{run.role}-{arm.config.label.replace('/', '-')}"
    )
    cells = tuple(CellTask(cell=cell_id(plan, segment, run, level), level=level) for level in run.levels)
    matched = arm.config.kv_match
    return RunTask(
        run=name,
        config=arm.config,
        role=run.role,
        cells=cells,
        factors=dict(arm.factors),
        kv_of=None if matched is None else plan.arm(matched.arm).config,
    )


def _infeasible(refused: Refused, level: LoadLevel) -> CellResult:
    arm: Arm = refused.arm
    config = arm.config
    name = f"infeasible-{config.label.replace('/', '-')}-{level.label}-{digest([arm.digest, level])[:8]}"
    return CellResult(
        **arm_fields(config, level),
        cell=name,
        block=0,
        segment=0,
        role=TREATMENT,
        outcome=INFEASIBLE,
        devices=config.layout.devices,
        factors=dict(arm.factors),
        cause=refused.rule,
        reason=refused.reason,
        identity={"pair_key": arm.pair_key},
    )
