"""KV capacity as tables: what fits by arm, and what the memory of a drafter costs."""

from collections.abc import Iterable

import pandas as pd

from analysis.capacity import capacity_rows, memory_costs
from analysis.frame import Sweep
from analysis.rows import ratio_columns
from analysis.section import Section
from jobs.result import CellResult

NOT_TOLD = (
    "no engine of this sweep told its KV capacity, as one that somebody else runs may not; "
    "`specload sweep -m engine=vllm drafter=... drafter.k=...` measures with one that does"
)
NOT_MATCHED = (
    "no baseline with matched KV was measured; `specload sweep -m drafter=... drafter.k=... "
    "drafter.kv=matched` measures one beside each arm"
)


def capacity(sweep: Sweep) -> Section:
    """Return one row an arm: tokens, what the drafter took, what fits, from where requests wait."""
    rows = capacity_rows(_planned(sweep))
    frame = pd.DataFrame(
        [
            {
                "arm": row.label,
                "layout": row.layout,
                "tokens": row.tokens,
                "pools": row.ranks,
                "tokens_per_pool": row.tokens_per_rank,
                "block_tokens": row.block_size,
                "taken": row.taken,
                "taken_share": row.taken_share,
                "context_mean": row.context_mean,
                "context_largest": row.context_largest,
                "fits_mean": row.conversations_mean,
                "fits_largest": row.conversations_largest,
                "waits_from": row.waits_from,
                "waits": row.waits,
            }
            for row in rows
        ]
    )
    for name in COUNTS if rows else ():
        frame[name] = frame[name].astype(float).round().astype("Int64")
    return Section(
        name="capacity",
        title="KV capacity: what fits, and what the drafter took",
        frame=frame,
        columns=CAPACITY_COLUMNS if rows else {},
        shown=CAPACITY_SHOWN if rows else (),
        notes=CAPACITY_NOTES if rows else (),
        missing="" if rows else NOT_TOLD,
    )


def memory(sweep: Sweep) -> Section:
    """Return one row an arm and level whose ratio splits into memory and all else."""
    costs = memory_costs(_planned(sweep))
    frame = pd.DataFrame(
        [
            {
                "arm": cost.label,
                "level": cost.level,
                **ratio_columns("whole", cost.whole),
                **ratio_columns("memory", cost.memory),
                **ratio_columns("rest", cost.rest),
                "pairs": cost.whole.pairs,
                "oversubscribed": cost.oversubscribed,
            }
            for cost in costs
        ]
    )
    return Section(
        name="memory",
        title="What the drafter's memory costs",
        frame=frame,
        columns=MEMORY_COLUMNS if costs else {},
        notes=("whole = memory x rest, in total throughput; each interval is 95 % of its own t",)
        if costs
        else (),
        missing="" if costs else NOT_MATCHED,
    )


def _planned(sweep: Sweep) -> Iterable[CellResult]:
    """Return the cells of the plan: those that confirm a winner are judged alone."""
    return [cell for cell in sweep.results if cell.counts]


CAPACITY_COLUMNS = {
    "arm": "name of the arm",
    "layout": "layout label",
    "tokens": "KV tokens of the block's slice, over all ranks and replicas",
    "pools": "KV pools: one a data-parallel rank and replica; a conversation lives in one of them",
    "tokens_per_pool": "KV tokens of one pool: no conversation can be larger",
    "block_tokens": "tokens of a KV block, which a conversation takes whole",
    "taken": "KV tokens that the baseline of its pair has more",
    "taken_share": "the same as a share of the baseline's",
    "context_mean": "tokens of a conversation of the workload at its longest turn, prompt and answer; mean",
    "context_largest": "tokens of the longest turn of the workload",
    "fits_mean": "conversations of mean context that fit at once, in whole blocks of one pool",
    "fits_largest": "conversations of the largest context that fit at once",
    "waits_from": "lowest load level at which most samples show a queue",
    "waits": "where requests begin to wait, in words",
}
COUNTS = (
    "tokens", "pools", "tokens_per_pool", "block_tokens", "taken", "context_mean", "context_largest",
    "fits_mean", "fits_largest",
)  # fmt: skip
"""Columns of whole numbers."""
CAPACITY_SHOWN = (
    "arm", "tokens", "pools", "tokens_per_pool", "taken_share", "fits_mean", "fits_largest", "waits",
)  # fmt: skip
CAPACITY_NOTES = (
    "a conversation counts at its longest turn; prefixes that several share count for each of them",
    "capacities are the engines' own statements at their start: the smallest is shown where starts differ",
)
MEMORY_COLUMNS = {
    "arm": "name of the arm",
    "level": "load level on the sweep's axis",
    "whole": "arm over natural baseline: what counts",
    "memory": "baseline with matched KV over natural baseline: what the drafter's share of the cache costs",
    "rest": "arm over baseline with matched KV: what the drafter does, with equal KV caches",
    "pairs": "segments that have all three",
    "oversubscribed": "whether client and engine shared a core: an indication only",
}
