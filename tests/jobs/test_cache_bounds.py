"""What first turns can and must meet, against answers worked out by hand. Blocks have 16 tokens."""

from collections.abc import Callable
from typing import Any

import pytest

from jobs.cache_bounds import CacheModel, FirstTurns, first_turns, nothing_kept
from jobs.replay.job import RequestRecord
from jobs.workload.tokens import TokenConversation, TokenTurn, TokenWorkload

MS = 1_000_000
Make = Callable[..., RequestRecord]
SYSTEM = list(range(1000, 1040))
"""40 tokens: two whole blocks, and half of a third."""


def workload(*prompts: list[list[int]]) -> TokenWorkload:
    """One conversation an entry, with these whole prompts of its turns."""
    made = []
    for number, turns in enumerate(prompts):
        tokens = [TokenTurn(keep=0, suffix=prompt, output_tokens=8) for prompt in turns]
        made.append(TokenConversation(id=f"c{number}", turns=tuple(tokens)))
    return TokenWorkload(name="w", conversations=tuple(made), validity="recorded", tokenizer="t")


def own(number: int, length: int) -> list[int]:
    return [10_000 * (number + 1) + place for place in range(length)]


TWO = workload([SYSTEM + own(0, 30)], [SYSTEM + own(1, 30)])


def model(**changes: Any) -> CacheModel:
    fields = {"block_size": 16, "replicas": 1, "capacity_tokens": 100_000, "salted": True}
    return CacheModel(**{**fields, **changes})


@pytest.fixture
def send(make_record: Make) -> Callable[..., RequestRecord]:
    """A request of 70 prompt tokens, from dispatch to first token, in ms."""

    def make(
        number: int, begin: int, first: int | None, cached: int | None = 0, **changes: Any
    ) -> RequestRecord:
        fields = {
            "conversation": f"c{number}",
            "dispatched": begin * MS,
            "first": None if first is None else first * MS,
            "last": None if first is None else (first + 10) * MS,
            "ended": ((begin if first is None else first) + 11) * MS,
            "cached_tokens": cached,
            "expected_prompt_tokens": 70,
            **changes,
        }
        return make_record(**fields)

    return make


Send = Callable[..., RequestRecord]


def judge(
    *requests: RequestRecord, of: TokenWorkload = TWO, epochs: int = 1, primed: Any = None, **changes: Any
) -> FirstTurns:
    order = [(index, epoch) for epoch in range(epochs) for index in range(len(of.conversations))]
    return first_turns(requests, of, order, model(**changes), primed)


def test_one_after_another_is_exact(send: Send) -> None:
    found = judge(send(0, 0, 20), send(1, 21, 40, cached=32))
    assert (found.least, found.most, found.cached) == (32, 32, 32)
    assert (found.requests, found.above, found.below, found.loose) == (2, 0, 0, "")


def test_at_once_the_order_leaves_it_open(send: Send) -> None:
    found = judge(send(0, 0, 20), send(1, 1, 20, cached=32))
    # Either may have computed the system prompt for the other: both could meet it, neither has to.
    assert (found.least, found.most) == (0, 64)
    assert (found.above, found.below) == (0, 0)


def test_sent_after_an_answer_began_nothing_could_be_shared_backwards(send: Send) -> None:
    found = judge(send(0, 0, 20, cached=32), send(1, 21, 40, cached=32))
    assert (found.least, found.most) == (32, 32)
    assert found.above == 1
    assert found.worst == "c0 (epoch 0) had 32 tokens, expected 0"


def test_a_cache_that_serves_nothing_is_below(send: Send) -> None:
    found = judge(send(0, 0, 20), send(1, 21, 40, cached=16))
    assert (found.above, found.below) == (0, 1)
    assert found.worst == "c1 (epoch 0) had 16 tokens, expected 32"


@pytest.mark.parametrize(("tokens", "served"), [(33, 32), (32, 16), (31, 16), (17, 16), (16, 0), (5, 0)])
def test_hits_are_whole_blocks_and_never_the_last_token(send: Send, tokens: int, served: int) -> None:
    same = workload([own(0, tokens)], [own(0, tokens)])
    found = judge(
        send(0, 0, 20, expected_prompt_tokens=tokens),
        send(1, 30, 50, cached=served, expected_prompt_tokens=tokens),
        of=same,
    )
    assert (found.least, found.most) == (served, served)  # floor((n - 1) / block) * block


def test_a_drafter_of_hidden_states_drops_a_block(send: Send) -> None:
    found = judge(send(0, 0, 20), send(1, 30, 50, cached=16), dropped_blocks=1)
    assert (found.least, found.most, found.below) == (16, 32, 0)
    assert judge(send(0, 0, 20), send(1, 30, 50, cached=0), dropped_blocks=1).below == 1


def test_replicas_and_salted_epochs_are_caches_of_their_own(send: Send) -> None:
    apart = judge(send(0, 0, 20), send(1, 30, 50, replica=1), replicas=2)
    assert (apart.least, apart.most) == (0, 0)
    again = [send(0, 0, 20), send(0, 30, 50, epoch=1)]
    assert judge(*again, epochs=2).most == 0
    unsalted = judge(*again, epochs=2, salted=False)
    assert (unsalted.least, unsalted.most, unsalted.below) == (64, 64, 1)


def test_later_turns_of_others_count_and_own_ones_do_not(send: Send) -> None:
    # c0's second turn holds all of c1's first turn; c1's own later turns come too late to help it.
    long = SYSTEM + own(1, 30)
    talk = workload([own(0, 20), long + own(0, 9)], [long, long + own(7, 20)])
    first, second = send(0, 0, 20), send(0, 30, 50, turn=1)
    found = judge(first, second, send(1, 60, 80, cached=64), send(1, 90, 99, turn=1), of=talk)
    assert (found.requests, found.least, found.most) == (2, 64, 64)
    early = judge(first, send(1, 21, 29), send(0, 30, 50, turn=1), of=talk)
    assert (early.least, early.most) == (0, 0)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"capacity_tokens": 170}, "are more than the KV cache keeps for certain"),
        ({"capacity_tokens": None}, "does not say its KV capacity"),
        ({"forgets": "requests were preempted"}, "requests were preempted"),
    ],
)
def test_a_cache_that_may_forget_has_no_lower_bound(send: Send, changes: dict[str, Any], words: str) -> None:
    found = judge(send(0, 0, 20), send(1, 30, 50), **changes)
    assert (found.least, found.most, found.below) == (0, 32, 0)
    assert words in found.loose


def test_a_failed_request_may_have_left_blocks_and_is_not_judged(send: Send) -> None:
    found = judge(send(0, 0, None, error="cut"), send(1, 30, 50, cached=32))
    assert (found.requests, found.least, found.most) == (1, 0, 32)


def test_usage_without_cached_tokens_is_unknown(send: Send) -> None:
    assert judge(send(0, 0, 20, cached=None), send(1, 30, 50)).cached is None


def test_a_primed_prefix_is_met_by_all(send: Send) -> None:
    found = judge(send(0, 0, 20, cached=32), send(1, 1, 20, cached=32), primed={0: [SYSTEM]})
    assert (found.least, found.most, found.above, found.below) == (64, 64, 0, 0)
    elsewhere = judge(send(0, 0, 20), primed={3: [SYSTEM]})
    assert (elsewhere.least, elsewhere.most) == (0, 0)


def test_without_a_prefix_cache_no_request_may_meet_anything(send: Send) -> None:
    found = nothing_kept((send(0, 0, 20), send(0, 40, 60, turn=1), send(1, 50, None)))
    assert (found.requests, found.cached, found.most, found.above, found.what) == (2, 0, 0, 0, "requests")
    assert nothing_kept((send(0, 0, 20), send(0, 40, 60, cached=16, turn=1))).above == 1


def test_a_request_meets_only_what_its_own_rank_holds(send: Send) -> None:
    apart = judge(send(0, 0, 20, rank=0), send(1, 30, 50, rank=1), ranks=2)
    assert (apart.least, apart.most, apart.above) == (0, 0, 0)
    assert judge(send(0, 0, 20, rank=0), send(1, 30, 50, rank=1, cached=32), ranks=2).above == 1
    together = judge(send(0, 0, 20, rank=1), send(1, 30, 50, rank=1, cached=32), ranks=2)
    assert (together.least, together.most, together.below) == (32, 32, 0)


def test_a_rank_has_its_share_of_the_capacity(send: Send) -> None:
    sent = (send(0, 0, 20, rank=0), send(1, 30, 50, rank=0, cached=32))
    assert judge(*sent, ranks=2, capacity_tokens=600).loose == ""
    assert "more than the KV cache" in judge(*sent, ranks=2, capacity_tokens=450).loose
