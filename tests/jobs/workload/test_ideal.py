import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from engines.emulator.tokenizer import EmulatedTokenizer
from jobs.workload.bind import bind
from jobs.workload.bound import common_prefix
from jobs.workload.conversation import HASHED, RECORDED, Workload
from jobs.workload.filler import Filler
from jobs.workload.ideal import ideal_cached
from jobs.workload.tokens import TokenConversation, TokenTurn, TokenWorkload
from jobs.workload.trace import TraceConversation, TraceTurn

BLOCK = 4


def workload(*conversations: Sequence[Sequence[int]]) -> TokenWorkload:
    made = []
    for index, prompts in enumerate(conversations):
        turns = tuple(TokenTurn(keep=0, suffix=tuple(prompt), output_tokens=1) for prompt in prompts)
        made.append(TokenConversation(id=str(index), turns=turns))
    return TokenWorkload(name="w", conversations=tuple(made), validity=RECORDED, tokenizer="t")


def order(count: int, epochs: int = 1) -> list[tuple[int, int]]:
    return [(index, epoch) for epoch in range(epochs) for index in range(count)]


def simulate(work: TokenWorkload, arrivals: list[tuple[int, int, int]]) -> int:
    """An infinite prefix cache, request by request: cached tokens."""
    seen: set[tuple[int, tuple[int, ...]]] = set()
    total = 0
    for index, turn, epoch in arrivals:
        prompt = tuple(list(work.prompts(work.conversations[index]))[turn])
        cached = 0
        while cached + BLOCK < len(prompt) and (epoch, prompt[: cached + BLOCK]) in seen:
            cached += BLOCK
        seen.update((epoch, prompt[:end]) for end in range(BLOCK, len(prompt) + 1, BLOCK))
        total += cached
    return total


def test_later_turns_have_the_whole_blocks_of_the_turn_before() -> None:
    found = ideal_cached(workload([range(10), range(20)]), order(1), BLOCK)
    assert found.tokens == 8
    assert found.prompt_tokens == 30


def test_a_shared_system_prompt_is_computed_once() -> None:
    system = list(range(8))
    found = ideal_cached(workload(*([[*system, 100 + i, 200 + i]] for i in range(5))), order(5), BLOCK)
    assert found.tokens == 4 * 8


def test_the_last_prompt_token_is_always_computed() -> None:
    # Two equal prompts of two whole blocks: the second is served the first block only.
    found = ideal_cached(workload([range(8)], [range(8)]), order(2), BLOCK)
    assert found.tokens == 4


def test_epochs_share_nothing() -> None:
    work = workload([range(10)], [range(10)])
    assert (
        ideal_cached(work, order(2, epochs=3), BLOCK).tokens == 3 * ideal_cached(work, order(2), BLOCK).tokens
    )


def test_a_later_turn_elsewhere_shares_as_well() -> None:
    work = workload([range(10)], [range(100, 103), range(10)])
    found = ideal_cached(work, order(2), BLOCK)
    assert found.tokens == 8


prompts = st.lists(st.integers(0, 2), min_size=1, max_size=14)


@given(
    st.lists(st.lists(prompts, min_size=1, max_size=3), min_size=1, max_size=4),
    st.randoms(use_true_random=False),
)
def test_no_order_of_arrival_beats_the_bound(
    conversations: list[list[list[int]]], chance: random.Random
) -> None:
    work = workload(*conversations)
    left = dict.fromkeys(order(len(conversations), epochs=2), 0)
    arrivals: list[tuple[int, int, int]] = []
    while left:
        key = chance.choice(sorted(left))
        arrivals.append((key[0], left[key], key[1]))
        left[key] += 1
        if left[key] == len(conversations[key[0]]):
            del left[key]
    total = simulate(work, arrivals)
    bound = ideal_cached(work, order(len(conversations), epochs=2), BLOCK)
    assert total <= bound.tokens


FILLER = Filler(vocabulary=range(100))


@given(
    st.lists(
        st.lists(
            st.tuples(st.lists(st.integers(0, 2), min_size=1, max_size=4), st.integers(1, 8)),
            min_size=1,
            max_size=3,
        ),
        min_size=1,
        max_size=4,
    ),
    st.sampled_from([1, 2, 3, 4, 5, 8]),
)
def test_blocks_of_a_trace_count_like_their_tokens(
    shape: list[list[tuple[list[int], int]]], block_size: int
) -> None:
    conversations = []
    for index, turns in enumerate(shape):
        made = [
            TraceTurn(blocks=blocks, block_size=8, input_tokens=8 * (len(blocks) - 1) + last, output_tokens=1)
            for blocks, last in turns
        ]
        conversations.append(TraceConversation(id=str(index), turns=tuple(made)))
    source = Workload(name="w", conversations=tuple(conversations), validity=HASHED)
    hashed = replace(bind(source, EmulatedTokenizer(), max_context=100), filler=FILLER)
    spelled = workload(*(list(hashed.prompts(c)) for c in hashed.conversations))
    orders = order(len(shape), epochs=2)
    assert ideal_cached(hashed, orders, block_size) == ideal_cached(spelled, orders, block_size)


def brute(work: TokenWorkload, orders: list[tuple[int, int]], block_size: int) -> int:
    """The bound from its definition, with whole prefixes as keys."""
    servable: Counter[tuple[int, tuple[int, ...]]] = Counter()
    ended: set[tuple[int, tuple[int, ...]]] = set()
    for index, epoch in orders:
        for prompt in work.prompts(work.conversations[index]):
            for end in range(block_size, len(prompt) + 1, block_size):
                key = (epoch, tuple(prompt[:end]))
                if end < len(prompt):
                    servable[key] += 1
                else:
                    ended.add(key)
    return block_size * sum(count - (key not in ended) for key, count in servable.items())


@given(st.lists(st.lists(prompts, min_size=1, max_size=3), min_size=1, max_size=4), st.integers(1, 5))
def test_the_count_is_that_of_the_definition(conversations: list[list[list[int]]], block_size: int) -> None:
    made = []
    for index, turns in enumerate(conversations):
        kept: list[TokenTurn] = []
        previous: list[int] = []
        for prompt in turns:
            keep = common_prefix(previous, prompt)
            kept.append(TokenTurn(keep=keep, suffix=prompt[keep:], output_tokens=1))
            previous = prompt
        made.append(TokenConversation(id=str(index), turns=tuple(kept)))
    work = TokenWorkload(name="w", conversations=tuple(made), validity=RECORDED, tokenizer="t")
    assert [list(work.prompts(c)) for c in made] == conversations
    orders = order(len(conversations), epochs=2)
    found = ideal_cached(work, orders, block_size)
    assert found.tokens == brute(work, orders, block_size)
    assert found.prompt_tokens == 2 * sum(len(prompt) for turns in conversations for prompt in turns)
