"""The shared order in which conversations start, and the warm-up that must not touch them."""

import random
from collections.abc import Sequence

from engines.digest import seed_of
from jobs.errors import WorkloadError
from jobs.workload.ideal import IdealCache, ideal_cached
from jobs.workload.rank import hashed_rank
from jobs.workload.tokens import TokenConversation, TokenTurn, TokenWorkload

__all__ = ["IdealCache", "hashed_rank", "ideal_cached", "replay_order", "warmup_prompts"]

CONVERSATIONS_PER_USER = 4
"""A level needs at least so many conversations a user, or ramp-up and drain are most of the replay."""


def replay_order(
    workload: TokenWorkload, *, concurrency: int, seed: int, min_conversations: int | None = None
) -> tuple[tuple[int, int], ...]:
    """Return (conversation index, epoch) in start order, equal for all arms.

    An epoch is one pass over the workload in an order of its own, played under a cache salt of its own. At
    least 4 C conversations are played: a smaller workload is repeated.

    Args:
        workload: What is replayed.
        concurrency: C.
        seed: Seed of the order; the same for all arms of a pair.
        min_conversations: Play so many (or 4 C, if that is more) and stop, within an epoch if need be. None
            plays whole epochs: the whole workload, at least once.
    """
    size = len(workload.conversations)
    floor = CONVERSATIONS_PER_USER * concurrency
    count = (
        -(-max(floor, size) // size) * size if min_conversations is None else max(floor, min_conversations)
    )
    order: list[tuple[int, int]] = []
    for epoch in range(-(-count // size)):
        ranks = [hashed_rank(seed, epoch, conversation.id) for conversation in workload.conversations]
        order.extend((index, epoch) for index in sorted(range(size), key=ranks.__getitem__))
    return tuple(order[:count])


def warmup_prompts(workload: TokenWorkload, *, requests: int, seed: int) -> TokenWorkload:
    """Return single-turn conversations as long as the workload's turns, of text that is not in it.

    Each prompt holds the tokens of a whole turn of the workload in a hashed order: valid ids in familiar
    frequencies, no shared prefix, nothing that a prefix cache could serve to the replay.

    Raises:
        WorkloadError: fewer than one request is asked for.
    """
    if requests < 1:
        message = f"a warm-up of {requests} requests warms nothing; set design.warmup_requests to 1 or more"
        raise WorkloadError(message)
    turns = [
        (prompt, turn.output_tokens)
        for conversation in workload.conversations
        for prompt, turn in zip(workload.prompts(conversation), conversation.turns, strict=True)
    ]
    picked = sorted(range(len(turns)), key=lambda index: hashed_rank(seed, "warmup", index))
    conversations = []
    for number in range(requests):
        prompt, output = turns[picked[number % len(picked)]]
        tokens = _shuffled(prompt, seed_of(seed, "warmup", number))
        turn = TokenTurn(keep=0, suffix=tokens, output_tokens=output)
        conversations.append(TokenConversation(id=f"warmup-{number}", turns=(turn,)))
    return TokenWorkload(
        name=f"{workload.name}-warmup",
        conversations=tuple(conversations),
        validity=workload.validity,
        tokenizer=workload.tokenizer,
    )


def _shuffled(tokens: Sequence[int], seed: int) -> tuple[int, ...]:
    shuffled = list(tokens)
    random.Random(seed).shuffle(shuffled)  # noqa: S311  reproducible on purpose
    return tuple(shuffled)
