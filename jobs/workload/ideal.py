"""What an infinite prefix cache could serve of a replay: the bound that a cold start cannot exceed."""

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from jobs.workload.tokens import TokenWorkload


@dataclass(frozen=True, slots=True, kw_only=True)
class IdealCache:
    """Prompt tokens that an infinite prefix cache, empty at the start, could serve at most."""

    tokens: int
    """Of all requests."""
    first_turn_tokens: int
    """Of the first turns of conversations: prefixes shared with other conversations of the same epoch."""
    prompt_tokens: int
    """Prompt tokens of all requests."""


def ideal_cached(workload: TokenWorkload, order: Sequence[tuple[int, int]], block_size: int) -> IdealCache:
    """Return the bound, whichever order the requests really arrive in.

    Engines cache whole blocks, and compute at least the last prompt token. A block has to be computed once in
    an epoch (epochs have salts of their own); every later request that holds it can have it from the cache.
    So the bound is the number of servable blocks minus one for each distinct block. For first turns, a block
    that a later turn of another conversation may have computed before needs no first one.

    Args:
        workload: What is replayed.
        order: (conversation index, epoch) of every conversation that is played.
        block_size: Tokens per KV block.
    """
    prompts = [list(workload.prompts(conversation)) for conversation in workload.conversations]
    chains = [[list(_blocks(prompt, block_size)) for prompt in turns] for turns in prompts]
    total = first = tokens = 0
    by_epoch: dict[int, list[int]] = {}
    for index, epoch in order:
        by_epoch.setdefault(epoch, []).append(index)
    for indices in by_epoch.values():
        servable: Counter[bytes] = Counter()
        computed_whole: set[bytes] = set()
        first_servable: Counter[bytes] = Counter()
        first_whole: set[bytes] = set()
        elsewhere: set[bytes] = set()
        for index in indices:
            own = {block for block, _ in chains[index][0]}
            for turn, chain in enumerate(chains[index]):
                tokens += len(prompts[index][turn])
                for block, can_be_served in chain:
                    if can_be_served:
                        servable[block] += 1
                    else:
                        computed_whole.add(block)
                    if turn > 0 and block not in own:
                        elsewhere.add(block)
                    if turn == 0 and can_be_served:
                        first_servable[block] += 1
                    elif turn == 0:
                        first_whole.add(block)
        total += block_size * sum(_reuses(servable, computed_whole))
        first += block_size * sum(_reuses(first_servable, first_whole | elsewhere))
    return IdealCache(tokens=total, first_turn_tokens=first, prompt_tokens=tokens)


def _reuses(servable: Counter[bytes], computed_elsewhere: set[bytes]) -> Iterator[int]:
    for block, count in servable.items():
        yield count if block in computed_elsewhere else count - 1


def _blocks(prompt: Sequence[int], block_size: int) -> Iterator[tuple[bytes, bool]]:
    """Yield (chained hash, whether the cache may serve it) of each whole block of a prompt."""
    chain = b""
    for start in range(0, len(prompt) - block_size + 1, block_size):
        content = ",".join(map(str, prompt[start : start + block_size])).encode()
        chain = hashlib.sha256(chain + content).digest()
        # The last token of a prompt is always computed, so its block cannot come from the cache.
        yield chain, start + block_size < len(prompt)
