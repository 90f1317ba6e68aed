"""What an infinite prefix cache could serve of a replay: the bound that a cold start cannot exceed."""

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engines.digest import seed_of
from jobs.workload.filler import Filler
from jobs.workload.prefix_keys import Words, extended, mixed
from jobs.workload.tokens import TokenConversation, TokenWorkload


@dataclass(frozen=True, slots=True, kw_only=True)
class IdealCache:
    """Prompt tokens that an infinite prefix cache, empty at the start, could serve at most."""

    tokens: int
    """Of all requests."""
    prompt_tokens: int
    """Prompt tokens of all requests."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Grain:
    """What prefixes are told apart by: tokens, or a trace's blocks where engine blocks divide them."""

    block_size: int
    """Tokens of an engine's KV block."""
    trace_block: int | None
    """Tokens of a trace's block; None to look at tokens."""

    @property
    def elements(self) -> int:
        """Elements (tokens, or the trace's blocks) of a unit."""
        return self.block_size if self.trace_block is None else 1

    @property
    def blocks(self) -> int:
        """Engine blocks in a unit."""
        return 1 if self.trace_block is None else self.trace_block // self.block_size


@dataclass(slots=True, kw_only=True)
class _Uses:
    """The units that requests hold: key of the whole prefix, and how many engine blocks can be served."""

    keys: list[Words]
    served: list[NDArray[np.int32]]
    ends: list[tuple[int, int]]
    """(key, engine block in the unit) of blocks that a prompt ends with: they are computed, never served."""
    total: int = 0
    """Engine blocks that can be served, over all requests."""
    prompt_tokens: int = 0


def ideal_cached(workload: TokenWorkload, order: Sequence[tuple[int, int]], block_size: int) -> IdealCache:
    """Return the bound, whichever order the requests really arrive in.

    Engines cache whole blocks, and compute at least the last prompt token. A block has to be computed once in
    an epoch (epochs have salts of their own); every later request that holds it can have it from the cache.
    So the bound is the number of servable blocks minus one for each distinct block, unless a prompt that ends
    with this block computes it anyway.

    Time is linear in the tokens that are new in each turn, or in the blocks of a trace where the engine's
    divide them; memory is about 12 bytes for each distinct block of a conversation. Prefixes are told apart
    by 64-bit keys: for a count that is enough.

    Args:
        workload: What is replayed.
        order: (conversation index, epoch) of every conversation that is played.
        block_size: Tokens per KV block.
    """
    sizes = {conversation.block_size for conversation in workload.conversations}
    size = sizes.pop() if len(sizes) == 1 else 0
    grain = _Grain(block_size=block_size, trace_block=size if size and size % block_size == 0 else None)
    epochs: dict[int, list[int]] = {}
    for index, epoch in order:
        epochs.setdefault(epoch, []).append(index)
    known: dict[tuple[int, ...], tuple[int, int]] = {}
    tokens = prompt_tokens = 0
    for indices in epochs.values():
        members = tuple(sorted(indices))
        if members not in known:
            known[members] = _one_epoch(workload, members, grain)
        tokens += known[members][0]
        prompt_tokens += known[members][1]
    return IdealCache(tokens=int(tokens), prompt_tokens=int(prompt_tokens))


def _one_epoch(workload: TokenWorkload, members: Sequence[int], grain: _Grain) -> tuple[int, int]:
    """Return (servable tokens, prompt tokens) of conversations that share one cache."""
    uses = _Uses(keys=[], served=[], ends=[])
    for index in members:
        _add(uses, workload.conversations[index], workload.filler, grain)
    keys = np.concatenate(uses.keys) if uses.keys else np.empty(0, np.uint64)
    if not len(keys):
        return 0, uses.prompt_tokens
    served = np.concatenate(uses.served)
    uses.keys.clear()
    uses.served.clear()
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    starts = np.flatnonzero(np.concatenate(([True], keys[1:] != keys[:-1])))
    most = np.maximum.reduceat(served[order], starts)
    # Each engine block of each unit is computed once ...
    reused = uses.total - int(most.sum())
    # ... and that is no loss to those who could be served, where a prompt ends with it.
    distinct = keys[starts]
    for key, block in set(uses.ends):
        place = int(np.searchsorted(distinct, np.uint64(key)))
        reused += place < len(distinct) and int(distinct[place]) == key and block < most[place]
    return reused * grain.block_size, uses.prompt_tokens


def _add(uses: _Uses, conversation: TokenConversation, filler: Filler | None, grain: _Grain) -> None:
    """Add what is new in each turn, and the last unit before it: there the previous prompt may have ended."""
    sums: Words = np.empty(0, np.uint64)
    for keep, fresh, tokens in _turns(conversation, filler, grain):
        sums = extended(sums, keep, fresh)
        whole = tokens // grain.block_size
        servable = (tokens - 1) // grain.block_size
        first = max(0, keep // grain.elements - 1)
        units = np.arange(first, -(-whole // grain.blocks))
        keys = sums[(units + 1) * grain.elements - 1]
        uses.keys.append(keys)
        uses.served.append(np.clip(servable - units * grain.blocks, 0, grain.blocks).astype(np.int32))
        uses.total += servable
        uses.prompt_tokens += tokens
        if whole > servable:
            uses.ends.append((int(keys[-1]), servable % grain.blocks))


def _turns(
    conversation: TokenConversation, filler: Filler | None, grain: _Grain
) -> Iterator[tuple[int, Words, int]]:
    """Yield (elements kept of the turn before, the elements after them, prompt tokens) of each turn."""
    if grain.trace_block is not None:
        scope = np.uint64(seed_of(conversation.scope))
        for turn in conversation.turns:
            assert isinstance(turn.blocks, array)
            ids = np.frombuffer(turn.blocks, dtype=np.int64).view(np.uint64)
            yield turn.keep // grain.trace_block, mixed(ids ^ scope), turn.prompt_tokens
        return
    for turn, prompt in zip(conversation.turns, conversation.prompts(filler), strict=True):
        yield turn.keep, np.array(prompt[turn.keep :], dtype=np.uint64), turn.prompt_tokens
