"""Priming: the prompts that make a cold prefix cache warm as stated, and the proof that it is."""

from collections.abc import Mapping, Sequence

from jobs.cache_bounds import CacheModel
from jobs.cache_state import ALL, PREFIX, CachePlan, Proof
from jobs.errors import WorkloadError
from jobs.replay.job import RequestRecord
from jobs.workload.bound import common_prefix
from jobs.workload.tokens import TokenConversation, TokenTurn, TokenWorkload

PROOFS = 16
"""Primed prompts that are asked again, on each replica."""

Prompts = Mapping[int, Sequence[Sequence[int]]]
"""Epoch -> prompts."""


def prompts_to_prime(
    plan: CachePlan, workload: TokenWorkload, order: Sequence[tuple[int, int]], *, salted: bool
) -> dict[int, list[list[int]]]:
    """Return the prompts that make the cache warm, by epoch (0 for all where requests carry no salts).

    Raises:
        WorkloadError: the first turns share no prefix, so there is nothing to prime.
    """
    found: dict[int, dict[bytes, list[int]]] = {}
    epochs: dict[int, list[int]] = {}
    for index, epoch in order:
        epochs.setdefault(epoch if salted else 0, []).append(index)
    shared = _shared_prefix(workload, order) if plan.prime == PREFIX else []
    for epoch, indices in epochs.items():
        prompts = found.setdefault(epoch, {})
        for index in dict.fromkeys(indices):
            for prompt in _primes(plan, workload, workload.conversations[index], shared):
                prompts.setdefault(repr(prompt).encode(), prompt)
    return {epoch: list(prompts.values()) for epoch, prompts in found.items()}


def priming_workload(
    workload: TokenWorkload, prompts: Prompts, *, proofs: bool = False
) -> tuple[TokenWorkload, tuple[tuple[int, int], ...]]:
    """Return single-token requests for `prompts` and their order; `proofs` takes a spread of them only."""
    conversations: list[TokenConversation] = []
    order: list[tuple[int, int]] = []
    for epoch, listed in prompts.items():
        picked = _spread(listed, max(1, PROOFS // len(prompts))) if proofs else listed
        for prompt in picked:
            turn = TokenTurn(keep=0, suffix=prompt, output_tokens=1)
            order.append((len(conversations), epoch))
            conversations.append(TokenConversation(id=f"prime-{len(conversations)}", turns=(turn,)))
    primed = TokenWorkload(
        name=f"{workload.name}-prime",
        conversations=tuple(conversations),
        validity=workload.validity,
        tokenizer=workload.tokenizer,
    )
    return primed, tuple(order)


def proof_of(requests: Sequence[RequestRecord], model: CacheModel) -> Proof:
    """Return what asking primed prompts again shows."""
    size = model.block_size
    expected = [
        max(0, (request.expected_prompt_tokens - 1) // size - model.dropped_blocks) * size
        for request in requests
    ]
    unknown = any(request.cached_tokens is None for request in requests)
    return Proof(
        requests=len(requests),
        expected=sum(expected),
        cached=None if unknown else sum(request.cached_tokens or 0 for request in requests),
        short=sum((r.cached_tokens or 0) < least for r, least in zip(requests, expected, strict=True)),
    )


def check_primable(prompts: Prompts, block_size: int, dropped_blocks: int = 0) -> None:
    """Refuse prompts of which a cache serves nothing that could be proven.

    Raises:
        WorkloadError: no prompt is longer than a block and those that the drafter drops.
    """
    longest = max((len(prompt) for listed in prompts.values() for prompt in listed), default=0)
    if longest <= (1 + dropped_blocks) * block_size:
        again = " and computes the last one of a hit again" if dropped_blocks else ""
        message = (
            f"cache.prime finds {longest} tokens at most to prime the cache with, and the engine caches "
            f"blocks of {block_size}{again}: use "
            "cache.prime=first_turns, longer conversations, or cache=cold"
        )
        raise WorkloadError(message)


def _primes(
    plan: CachePlan, workload: TokenWorkload, conversation: TokenConversation, shared: list[int]
) -> list[list[int]]:
    if plan.prime == PREFIX:
        return [shared] if shared else []
    if plan.prime == ALL:
        return list(workload.prompts(conversation))
    first = next(iter(workload.prompts(conversation)))
    return [first[: plan.prime] if isinstance(plan.prime, int) else first]


def _shared_prefix(workload: TokenWorkload, order: Sequence[tuple[int, int]]) -> list[int]:
    shared: list[int] | None = None
    for index in dict.fromkeys(index for index, _ in order):
        prompt = next(iter(workload.prompts(workload.conversations[index])))
        if shared is None:
            shared = prompt
            continue
        shared = shared[: common_prefix(shared, prompt)]
    return shared or []


def _spread(prompts: Sequence[Sequence[int]], count: int) -> list[Sequence[int]]:
    """Return `count` of the prompts, evenly over their order."""
    if len(prompts) <= count:
        return list(prompts)
    return [prompts[place * len(prompts) // count] for place in range(count)]
