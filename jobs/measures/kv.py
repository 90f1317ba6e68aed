"""How much a slice's KV caches hold: tokens, blocks, and conversations of the cell's own workload.

A conversation lives in one pool, that of its data-parallel rank, and takes whole blocks there, up to its
longest turn: prompt, answer, and the slots of one step's drafts. What conversations share of their prefixes
is counted for each of them, so that more of them fit where prefixes are long and common.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from engines.base import KVCapacity
from jobs.workload.tokens import TokenWorkload

LEAST_SAMPLES = 2
"""Samples of the queue below which a window says nothing."""


def longest_contexts(workload: TokenWorkload, order: Sequence[tuple[int, int]]) -> list[int]:
    """Return the tokens of each conversation of a replay at its longest turn, prompt and answer.

    Args:
        workload: the conversations.
        order: (index of the conversation, epoch) in the order of sending.
    """
    found: dict[int, int] = {}
    for index, _ in order:
        if index not in found:
            turns = workload.conversations[index].turns
            found[index] = max(turn.prompt_tokens + turn.output_tokens for turn in turns)
    return [found[index] for index, _ in order]


def kv_metrics(
    capacities: Sequence[KVCapacity], contexts: Sequence[int], *, drafts: int
) -> dict[str, float | None]:
    """Return the KV figures of a slice.

    Args:
        capacities: of each replica.
        contexts: tokens of each conversation of the replay at its longest turn; at least one.
        drafts: draft tokens of a step, which take slots beside it.
    """
    mean, largest = sum(contexts) / len(contexts), max(contexts)
    first = capacities[0]
    return {
        "kv/capacity_tokens": _sum([each.tokens for each in capacities]),
        "kv/capacity_tokens_per_rank": _least([each.rank_tokens for each in capacities]),
        "kv/blocks": _sum([each.blocks for each in capacities]),
        "kv/block_size": None if first.block_size is None else float(first.block_size),
        "kv/ranks": float(sum(each.ranks for each in capacities)),
        "kv/context_mean": mean,
        "kv/context_largest": float(largest),
        "kv/conversations_mean": fitting(capacities, mean + drafts),
        "kv/conversations_largest": fitting(capacities, largest + drafts),
    }


def fitting(capacities: Sequence[KVCapacity], tokens: float) -> float | None:
    """Return how many conversations of so many tokens fit at once; None where an engine does not say.

    Whole ones in each pool. Where blocks times block size is not the capacity (a hybrid model), the engine's
    own figure in tokens is divided, which holds for contexts near the longest that it serves.
    """
    total = 0
    for each in capacities:
        if each.rank_tokens is None:
            return None
        size = each.block_size or 1
        taken = -(-tokens // size) * size
        total += each.ranks * int(each.rank_tokens // taken)
    return float(total)


def waiting_share(rows: Sequence[Mapping[str, Any]], span: tuple[int, int]) -> float | None:
    """Return the share of samples in `span` in which some request waited for room in an engine.

    Requests always queue for a moment when they arrive; where they do in most samples, more users bring no
    more work. None with fewer than `LEAST_SAMPLES`.

    Args:
        rows: samples, one a replica and time; those of one sample share `sampled`.
        span: nanoseconds of CLOCK_MONOTONIC.
    """
    queued: dict[int, bool] = {}
    for row in rows:
        if row.get("waiting") is not None and span[0] <= row["time"] <= span[1]:
            queued[row["sampled"]] = queued.get(row["sampled"], False) or row["waiting"] > 0
    return sum(queued.values()) / len(queued) if len(queued) >= LEAST_SAMPLES else None


def _sum(values: Sequence[int | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(sum(known)) if len(known) == len(values) else None


def _least(values: Sequence[int | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(min(known)) if len(known) == len(values) else None
