"""Tables for the terminal: what a plan would run, in which order, and what it takes."""

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from jobs.nouns import counted
from jobs.result import TREATMENT
from orchestrator.balance import Balance, balance
from orchestrator.estimate import BlockSize, Estimate, device_time
from orchestrator.plan import Arm, Block, Plan, Run


def plan_tables(plan: Plan, size: Estimate) -> RenderableType:
    """Return arms, refused arms, blocks in their order, and what it all takes."""
    arms = Table(title=f"Arms of {plan.sweep}")
    for name in ("arm", "role", "devices", "levels", "acceptance", "mean place"):
        arms.add_column(name)
    found = balance(plan.blocks)
    for arm in plan.arms:
        acceptance = arm.config.drafter.acceptance
        own = "emulated" if arm.config.device == "emulated" else "real"
        forced = f"synthetic, {acceptance.words(arm.config.drafter.k)}" if acceptance else own
        place = found.mean_positions.get(arm.digest)
        arms.add_row(
            Text(arm.label),
            _role(arm),
            str(arm.config.layout.devices),
            ", ".join(level.label for level in arm.levels),
            "-" if arm.is_baseline else forced,
            "first and last" if place is None else f"{place:.2f}",
        )
    parts: list[RenderableType] = [arms]
    if plan.refused:
        refused = Table(title="Refused: an infeasible outcome, known before anything starts")
        for name in ("arm", "rule", "reason"):
            refused.add_column(name)
        for entry in plan.refused:
            refused.add_row(Text(entry.arm.label), entry.rule, Text(entry.reason))
        parts.append(refused)
    parts += [_blocks(plan, size), *_size(plan, size, found)]
    parts += [Text(f"note: {note}") for note in plan.notes]
    return Group(*parts)


def _role(arm: Arm) -> str:
    if arm.is_baseline:
        return "baseline"
    return "counterfactual" if arm.config.counterfactual else "treatment"


def _blocks(plan: Plan, size: Estimate) -> RenderableType:
    told = "runs in order, each in fresh engines; (baselines) open and close; xN: replicas fill the slice"
    table = Table(title=f"Blocks: {told}")
    for name in ("block", "devices", "runs", "levels in order", "starts", "time"):
        table.add_column(name)
    for block, own in zip(plan.blocks, size.blocks, strict=True):
        levels = max((run.levels for run in block.runs), key=len)
        table.add_row(
            str(block.index),
            str(block.devices),
            Text(" > ".join(_run(plan, block, run, len(levels)) for run in block.runs)),
            ", ".join(level.label for level in levels),
            str(own.engine_starts),
            device_time(own.device_seconds, plan.unit),
        )
    return table


def _run(plan: Plan, block: Block, run: Run, levels: int) -> str:
    """Return one run: its arm, its replicas, and its levels where it does not have all of the block's."""
    replicas = plan.replicas(block, run)
    name = plan.arm(run.arm).label + (f" x{replicas}" if replicas > 1 else "")
    if len(run.levels) < levels:
        name += f" at {', '.join(level.label for level in run.levels)}"
    return name if run.role == TREATMENT else f"({name})"


def _size(plan: Plan, size: Estimate, order: Balance) -> list[Text]:
    where = plan.cluster.address or "a local Ray"
    time = (
        f"{plan.unit} time unknown until an engine start of these arms was timed"
        if size.device_seconds is None
        else device_time(size.device_seconds, plan.unit)
    )
    guess = (
        f" ({size.guessed_cells} of {counted(size.cells, 'cell')} guessed)"
        if size.device_seconds and size.guessed_cells
        else ""
    )
    workload = (
        f"workload {plan.workload.name}: {counted(plan.workload.conversations, 'conversation')}, "
        f"{counted(plan.workload.turns, 'turn')}; on {where}, a device is one {plan.cluster.resource}"
    )
    lines = [
        f"{counted(size.engine_starts, 'engine start')}, {counted(size.cells, 'cell')}, {time}{guess}",
        _balance_words(order, blocks=len(plan.blocks)),
        workload,
    ]
    if plan.search is not None:
        lines.append(_search_words(plan, size.rounds))
    if plan.confirm:
        fresh = counted(plan.confirm, "fresh block")
        lines.append(
            f"then {fresh} of the winner and its baseline, if one wins, at its best "
            "level and where its range gains least: 3 engines a block, at 2 levels at most (design.confirm)"
        )
    if plan.budget is not None:
        lines.append(
            f"no block starts that would need more than what is left of {plan.budget:g} {plan.unit}-hours "
            "(design.budget)"
        )
    return [Text(line) for line in lines if line]


def _search_words(plan: Plan, one: Sequence[BlockSize]) -> str:
    """Return what a search may add."""
    assert plan.search is not None
    count = plan.search.rounds
    known = [block.device_seconds for block in one if block.device_seconds is not None]
    seconds = count * sum(known) if len(known) == len(one) else None
    starts = counted(count * sum(block.engine_starts for block in one), "engine start")
    cells = counted(count * sum(block.cells for block in one), "cell")
    return (
        f"then up to {counted(count, 'round')} of a search ({plan.search.kind}) until an arm's interval is "
        f"at most {plan.search.width:g} times wide (load.search_width): at most {starts} and {cells} more, "
        f"time {device_time(seconds, plan.unit)}"
    )


def _balance_words(found: Balance, *, blocks: int) -> str:
    """Return how balanced the order of the treatments is; empty where there is no order to balance."""
    if not found.carry_over_possible:
        return ""
    difference = found.largest_difference
    places = (
        "mean places of treatments that share blocks are equal"
        if difference == 0
        else f"mean places of treatments that share blocks differ by up to {difference:.2f}"
    )
    better = ""
    if blocks == 1 and difference:
        better = " (one block has one order; two or more balance it)"
    return (
        f"order: {places}{better}; {found.carry_over_met} of {found.carry_over_possible} ordered pairs of "
        "direct neighbours occur"
    )
