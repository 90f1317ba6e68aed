"""What a plan will cost: engine starts, cells, and device time from earlier cells of the same arms."""

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from jobs.result import INVALID, MEASURED, CellResult
from orchestrator.plan import Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """Size of a plan."""

    engine_starts: int
    """Engine processes, replicas included."""
    cells: int
    device_seconds: float | None
    """Devices held times seconds, over all blocks; None until an engine start of these arms was timed."""
    guessed_cells: int
    """Cells whose own duration is unknown: they count with the mean of the known ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """What one recorded cell says about time."""

    arm: str
    load: str
    """Label of the load level."""
    seconds: float
    start_seconds: float | None


def estimate(plan: Plan, timings: Iterable[Timing]) -> Estimate:
    """Return the size of `plan`, its device time estimated from `timings`."""
    arms = {arm.digest for arm in plan.arms}
    starts: dict[str, list[float]] = defaultdict(list)
    cells: dict[tuple[str, str], list[float]] = defaultdict(list)
    for timing in timings:
        if timing.arm in arms:
            cells[timing.arm, timing.load].append(timing.seconds)
            if timing.start_seconds is not None:
                starts[timing.arm].append(timing.start_seconds)
    runs = [(block.devices, run) for block in plan.blocks for run in block.runs]
    planned = [(run.arm, level.label) for _, run in runs for level in run.levels]
    devices = {arm.digest: arm.config.layout.devices for arm in plan.arms}
    total: float | None = None
    if starts and cells:
        any_start = fmean(value for values in starts.values() for value in values)
        any_cell = fmean(value for values in cells.values() for value in values)
        total = 0.0
        for slice_devices, run in runs:
            start = fmean(starts[run.arm]) if starts.get(run.arm) else any_start
            times = (cells.get((run.arm, level.label)) for level in run.levels)
            total += slice_devices * (start + sum(fmean(known) if known else any_cell for known in times))
    return Estimate(
        engine_starts=sum(slice_devices // devices[run.arm] for slice_devices, run in runs),
        cells=len(planned),
        device_seconds=total,
        guessed_cells=sum(cell not in cells for cell in planned),
    )


def read_timings(results: Path) -> list[Timing]:
    """Return the timings of every readable cell under a results folder."""
    found = []
    for path in sorted(results.glob("*/cells/*/result.json")):
        try:
            cell = CellResult.from_dict(json.loads(path.read_text()))
            if cell.outcome in (MEASURED, INVALID):
                found.append(_timing(cell))
        except (OSError, ValueError, KeyError, TypeError):
            continue  # an estimate does without a file that the sweep itself would report as damaged
    return found


def device_time(seconds: float | None, devices: Sequence[str] = ()) -> str:
    """Return device time for people: `unknown`, `3.2 GPU-hours`, `4 device-minutes`."""
    unit = "GPU" if "gpu" in devices else "device"
    if seconds is None:
        return f"{unit} time unknown until an engine start of these arms was timed"
    if seconds >= 3600:
        return f"about {seconds / 3600:.1f} {unit}-hours"
    return f"about {max(1, round(seconds / 60))} {unit}-minutes"


def _timing(cell: CellResult) -> Timing:
    return Timing(arm=cell.arm, load=cell.load, seconds=cell.seconds, start_seconds=cell.start_seconds)
