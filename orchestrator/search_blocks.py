"""The blocks of a search's round: the levels asked for of each arm, with their baselines around them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from analysis.searches import LARGEST, SLO
from engines.digest import seed_of
from orchestrator.blocks import schedule
from orchestrator.levels import ascending, level_at
from orchestrator.plan import Arm, Block, Plan


def worst_round(plan: Plan) -> tuple[Block, ...]:
    """Return the largest round that a search may ask for; nothing where the plan has none."""
    if plan.search is None:
        return ()
    levels = {
        arm.digest: tuple(level.value for level in arm.levels[-LARGEST:])
        for arm in plan.arms
        if not arm.config.counterfactual and not arm.is_baseline
    }
    if plan.search.kind == SLO:
        levels |= {
            arm.digest: tuple(level.value for level in arm.levels[-LARGEST:])
            for arm in plan.arms
            if arm.is_baseline
        }
    return round_blocks(plan, levels, number=1)


def round_blocks(plan: Plan, levels: Mapping[str, Sequence[float]], *, number: int) -> tuple[Block, ...]:
    """Return one block a slice; indices and round are given when they are appended."""
    slices: dict[frozenset[str], Block] = {}
    for block in plan.blocks:
        slices.setdefault(frozenset(run.arm for run in block.runs), block)
    found = []
    for there, planned in slices.items():
        own = [_at(plan.arm(arm), levels[arm]) for arm in sorted(there & levels.keys())]
        if not own:
            continue
        seed = seed_of(plan.seed, "search", number, planned.index)
        (block,) = schedule([*_baselines(plan, own), *_treatments(own)], blocks=1, seed=seed)
        found.append(replace(block, devices=planned.devices))
    return tuple(found)


def _at(arm: Arm, levels: Sequence[float]) -> Arm:
    return replace(arm, levels=ascending({level_at(arm.levels[0], level) for level in levels}))


def _treatments(arms: Sequence[Arm]) -> list[Arm]:
    return [arm for arm in arms if not arm.is_baseline]


def _baselines(plan: Plan, arms: Sequence[Arm]) -> list[Arm]:
    """Return the baseline of every pair, at all levels of its arms."""
    pairs = {arm.pair_key: arm for arm in plan.arms if arm.is_baseline}
    wanted: dict[str, set[Any]] = {}
    for arm in arms:
        wanted.setdefault(arm.pair_key, set()).update(arm.levels)
    return [replace(pairs[pair], levels=ascending(levels)) for pair, levels in wanted.items()]
