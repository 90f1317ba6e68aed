"""What a plan will cost: engine starts, cells, and device time from earlier cells of the same arms."""

import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from jobs.nouns import counted
from jobs.result import CellResult
from orchestrator.pace import Pace
from orchestrator.pending import Segment
from orchestrator.plan import Block, Plan, Run
from orchestrator.search_blocks import worst_round


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockSize:
    """Size of one block."""

    engine_starts: int
    """Engine processes, replicas included."""
    cells: int
    device_seconds: float | None
    """Devices held times seconds; None until an engine start of these arms was timed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """Size of a plan."""

    blocks: tuple[BlockSize, ...]
    """In the plan's order."""
    rounds: tuple[BlockSize, ...]
    """Of one round of a search at most; empty where there is none."""
    guessed_cells: int
    """Cells whose own duration is unknown: they count with the closest known one."""

    @property
    def engine_starts(self) -> int:
        """Engine processes, replicas included."""
        return sum(block.engine_starts for block in self.blocks)

    @property
    def cells(self) -> int:
        """Cells of all blocks."""
        return sum(block.cells for block in self.blocks)

    @property
    def device_seconds(self) -> float | None:
        """Devices held times seconds over all blocks; None until an engine start of these arms was timed."""
        known = [block.device_seconds for block in self.blocks if block.device_seconds is not None]
        return sum(known) if len(known) == len(self.blocks) else None


def estimate(plan: Plan, pace: Pace) -> Estimate:
    """Return the size of `plan`, its device time as `pace` expects it."""
    stateful = plan.stateful
    planned = [(run.arm, level.label) for block in plan.blocks for run in block.runs for level in run.levels]
    return Estimate(
        blocks=tuple(_size(plan, block, pace, stateful) for block in plan.blocks),
        rounds=tuple(_size(plan, block, pace, stateful) for block in worst_round(plan)),
        guessed_cells=sum(not pace.timed(arm, load) for arm, load in planned),
    )


def read_pace(results: Path, plan: Plan) -> Pace:
    """Return how long the arms of `plan` took, from every readable cell under a results folder."""
    arms = {arm.digest for arm in plan.arms}
    return Pace(_cells(results, arms), stateful=plan.stateful)


def device_time(seconds: float | None, unit: str) -> str:
    """Return device time for people: `about 3.2 GPU-hours`, `about 4 device-minutes`, `unknown`."""
    if seconds is None:
        return "unknown"
    if seconds >= 3600:
        return f"about {seconds / 3600:.1f} {unit}-hours"
    return f"about {counted(max(1, round(seconds / 60)), f'{unit}-minute')}"


def _size(plan: Plan, block: Block, pace: Pace, stateful: Collection[str]) -> BlockSize:
    seconds = pace.seconds(Segment(block=block, index=0, runs=block.runs))
    asked = _asked(plan, block)
    for run in asked:
        start = pace.start_seconds(run.arm)
        seconds = None if seconds is None or start is None else seconds + start
    return BlockSize(
        engine_starts=sum(
            plan.replicas(block, run) * (len(run.levels) if run.arm in stateful else 1) for run in block.runs
        )
        + sum(plan.replicas(block, run) for run in asked),
        cells=sum(len(run.levels) for run in block.runs),
        device_seconds=None if seconds is None else seconds * block.devices,
    )


def _asked(plan: Plan, block: Block) -> list[Run]:
    """Return the runs of baselines with matched KV that come before their arm, whose engine is then asked."""
    known: set[str] = set()
    found = []
    for run in block.runs:
        matched = plan.arm(run.arm).config.kv_match
        if matched is not None and matched.arm not in known:
            found.append(run)
            known.add(matched.arm)
        known.add(run.arm)
    return found


def _cells(results: Path, arms: Collection[str]) -> Iterator[CellResult]:
    for path in sorted(results.glob("*/cells/[!.]*/result.json")):
        try:
            cell = CellResult.from_dict(json.loads(path.read_text()))
        except (OSError, ValueError, KeyError, TypeError):
            continue  # an estimate does without a file that the sweep itself would report as damaged
        if cell.arm in arms:
            yield cell
