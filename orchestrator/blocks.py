"""Blocks: in which order the arms of each replicate run, and at which order of levels.

Everything is seeded by content, so the same plan has the same order on every machine. A block opens and
closes with every pair's baseline; treatments keep one seeded order for two blocks, forwards and then
backwards, so that a slow drift of the machine falls on all of them alike; levels come in an order of their
own per block, alike in its arms.
"""

from collections.abc import Hashable, Iterable, Sequence
from typing import TypeVar

from engines.digest import digest
from jobs.load import LoadLevel
from jobs.result import CLOSING, OPENING, TREATMENT
from orchestrator.plan import Arm, Block, Run

_T = TypeVar("_T", bound=Hashable)


def schedule(arms: Sequence[Arm], *, blocks: int, seed: int) -> tuple[Block, ...]:
    """Return the blocks of a sweep over `arms` (at least one)."""
    devices = max(arm.config.layout.devices for arm in arms)
    return tuple(
        Block(index=index, devices=devices, runs=_runs(arms, index, seed)) for index in range(blocks)
    )


def _runs(arms: Sequence[Arm], index: int, seed: int) -> tuple[Run, ...]:
    levels = _shuffled({level for arm in arms for level in arm.levels}, seed, "levels", index)
    twin, backwards = divmod(index, 2)
    by_digest = {arm.digest: arm for arm in arms}
    baselines = _shuffled((arm.digest for arm in arms if arm.is_baseline), seed, "baselines", twin)
    treatments = _shuffled((arm.digest for arm in arms if not arm.is_baseline), seed, "treatments", twin)
    if backwards:
        baselines.reverse()
        treatments.reverse()

    def run(arm: str, role: str) -> Run:
        wanted = by_digest[arm].levels
        return Run(arm=arm, role=role, levels=tuple(level for level in levels if level in wanted))

    # the baseline that opened first closes last: the two lie evenly around what they enclose
    return (
        *(run(arm, OPENING) for arm in baselines),
        *(run(arm, TREATMENT) for arm in treatments),
        *(run(arm, CLOSING) for arm in reversed(baselines)),
    )


def _shuffled(items: Iterable[_T], seed: int, *purpose: str | int) -> list[_T]:
    return sorted(items, key=lambda item: digest([seed, *purpose, _text(item)]))


def _text(item: Hashable) -> str:
    return item.label if isinstance(item, LoadLevel) else str(item)
