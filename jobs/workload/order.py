"""The shared order in which conversations start, and the warm-up that must not touch them."""

import bisect
import itertools
import math
import random
from dataclasses import replace

from engines.digest import seed_of
from jobs.errors import WorkloadError
from jobs.workload.rank import hashed_rank
from jobs.workload.tokens import TokenConversation, TokenTurn, TokenWorkload

CONVERSATIONS_PER_USER = 4
"""A level needs at least so many conversations a user, or ramp-up and drain are most of the replay."""
_GOLDEN = 0.6180339887498949
"""Steps of this share of a circle leave the most even gaps, however many are taken."""


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

    Text: each prompt holds the tokens of a whole turn of the workload in a hashed order, so valid ids in
    familiar frequencies. Traces: blocks of a namespace of its own. Either way no prefix is shared, and
    there is nothing that a prefix cache could serve to the replay. The turns are spread evenly over the
    workload.

    Raises:
        WorkloadError: fewer than one request is asked for.
    """
    if requests < 1:
        message = f"a warm-up of {requests} requests warms nothing; set design.warmup_requests to 1 or more"
        raise WorkloadError(message)
    ends = list(itertools.accumulate(len(conversation.turns) for conversation in workload.conversations))
    first = seed_of(seed, "warmup") % ends[-1]
    stride = _stride(ends[-1])
    conversations = []
    for number in range(requests):
        place = (first + number * stride) % ends[-1]
        index = bisect.bisect_right(ends, place)
        conversation = workload.conversations[index]
        turn = place - (ends[index] - len(conversation.turns))
        name = f"warmup-{number}"
        conversations.append(
            _fresh(workload, conversation, turn, name=name, seed=seed_of(seed, "warmup", number))
        )
    return replace(
        workload,
        name=f"{workload.name}-warmup",
        conversations=tuple(conversations),
        dropped=(),
        notes=(),
    )


def _stride(count: int) -> int:
    """Return a step that visits each of `count` places once before any again, far from the last ones."""
    step = max(1, round(count * _GOLDEN))
    while math.gcd(step, count) > 1:
        step += 1
    return step


def _fresh(
    workload: TokenWorkload, conversation: TokenConversation, turn: int, *, name: str, seed: int
) -> TokenConversation:
    """Return a conversation of one turn, as long as a turn of the workload and like it in nothing else."""
    like = conversation.turns[turn]
    if conversation.block_size:
        blocks = -(-like.prompt_tokens // conversation.block_size)
        made = TokenTurn(
            keep=0,
            blocks=range(blocks),
            block_tokens=like.prompt_tokens,
            output_tokens=like.output_tokens,
        )
        scope = f"{name} {seed}"
        return TokenConversation(id=name, turns=(made,), scope=scope, block_size=conversation.block_size)
    prompt = next(itertools.islice(workload.prompts(conversation), turn, None))
    random.Random(seed).shuffle(prompt)  # noqa: S311  reproducible on purpose
    made = TokenTurn(keep=0, suffix=prompt, output_tokens=like.output_tokens)
    return TokenConversation(id=name, turns=(made,))
