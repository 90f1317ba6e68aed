"""Blocks: in which order the arms of each replicate run, and at which order of levels.

Everything is seeded by content, so the same plan has the same order on every machine. A block opens and
closes with every pair's baseline; between them treatments come in orders that are balanced over the blocks
(see `orders.py`), dealt by the seed; levels come in an order of their own per replicate, alike in its arms.
"""

from collections.abc import Hashable, Iterable, Sequence
from typing import TypeVar

from engines.digest import digest
from jobs.load import LoadLevel
from jobs.result import CLOSING, OPENING, TREATMENT
from orchestrator.orders import balanced_orders
from orchestrator.plan import Arm, Block, Run
from orchestrator.sharing import ALL, Group, group_of

_T = TypeVar("_T", bound=Hashable)


def schedule(arms: Sequence[Arm], *, blocks: int, seed: int, share: str = ALL) -> tuple[Block, ...]:
    """Return the blocks of a sweep over `arms` (at least one): `blocks` of each group that shares one.

    Replicates come one after another, each with a block of every group, so that a sweep which ends early has
    about as many replicates of each.
    """
    groups: dict[Group, list[Arm]] = {}
    for arm in arms:
        groups.setdefault(group_of(arm.config, share), []).append(arm)
    ordered = [groups[key] for key in sorted(groups, key=lambda key: (key[0], -key[1]))]
    columns = [_runs_of(group, blocks, seed) for group in ordered]
    devices = [max(arm.config.layout.devices for arm in group) for group in ordered]
    return tuple(
        Block(
            index=replicate * len(ordered) + column, devices=devices[column], runs=columns[column][replicate]
        )
        for replicate in range(blocks)
        for column in range(len(ordered))
    )


def enclosed(baselines: Sequence[Run], treatments: Sequence[Run]) -> tuple[Run, ...]:
    """Return the runs of a block: the baseline that opened first closes last, evenly around all others."""
    closing = (Run(arm=run.arm, role=CLOSING, levels=run.levels) for run in reversed(baselines))
    return (*baselines, *treatments, *closing)


def _runs_of(arms: Sequence[Arm], blocks: int, seed: int) -> list[tuple[Run, ...]]:
    """Return the runs of each replicate of one group of arms."""
    levels_of = {arm.digest: arm.levels for arm in arms}
    all_levels = {level for arm in arms for level in arm.levels}
    baselines = _orders((arm.digest for arm in arms if arm.is_baseline), blocks, seed, "baselines")
    treatments = _orders((arm.digest for arm in arms if not arm.is_baseline), blocks, seed, "treatments")
    found = []
    for replicate in range(blocks):
        levels = _shuffled(all_levels, seed, "levels", replicate)

        def run(arm: str, role: str, levels: Sequence[LoadLevel] = levels) -> Run:
            wanted = set(levels_of[arm])
            return Run(arm=arm, role=role, levels=tuple(level for level in levels if level in wanted))

        opening = [run(arm, OPENING) for arm in baselines[replicate]]
        found.append(enclosed(opening, [run(arm, TREATMENT) for arm in treatments[replicate]]))
    return found


def _orders(arms: Iterable[str], blocks: int, seed: int, purpose: str) -> list[list[str]]:
    names = sorted(arms)
    dealt: dict[int, list[str]] = {}
    found = []
    for cycle, order in balanced_orders(len(names), blocks):
        if cycle not in dealt:
            dealt[cycle] = _shuffled(names, seed, purpose, cycle)
        found.append([dealt[cycle][place] for place in order])
    return found


def _shuffled(items: Iterable[_T], seed: int, *purpose: str | int) -> list[_T]:
    return sorted(items, key=lambda item: digest([seed, *purpose, _text(item)]))


def _text(item: Hashable) -> str:
    return item.label if isinstance(item, LoadLevel) else str(item)
