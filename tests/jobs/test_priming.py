from collections.abc import Callable

import pytest

from jobs.cache_bounds import CacheModel
from jobs.cache_state import CachePlan
from jobs.errors import WorkloadError
from jobs.priming import PROOFS, check_primable, priming_workload, prompts_to_prime, proof_of
from jobs.replay.job import RequestRecord
from jobs.workload.tokens import TokenWorkload

MODEL = CacheModel(block_size=16, replicas=1, capacity_tokens=None, salted=True)
Workload = Callable[..., TokenWorkload]
ORDER = tuple((index, epoch) for epoch in (0, 1) for index in range(3))


def primed(workload: TokenWorkload, prime: str | int, *, salted: bool = True) -> dict[int, list[list[int]]]:
    return prompts_to_prime(CachePlan(state="primed", prime=prime), workload, ORDER, salted=salted)


def test_each_epoch_is_primed_under_its_own_salt(make_workload: Workload) -> None:
    # First turns are 1, 2, 3 and a number of their own.
    workload = make_workload(3)
    assert primed(workload, "prefix") == {0: [[1, 2, 3]], 1: [[1, 2, 3]]}
    assert primed(workload, "prefix", salted=False) == {0: [[1, 2, 3]]}
    assert primed(workload, "first_turns")[1] == [[1, 2, 3, 100], [1, 2, 3, 101], [1, 2, 3, 102]]
    assert primed(workload, 2) == {0: [[1, 2]], 1: [[1, 2]]}
    assert primed(workload, 4) == primed(workload, "first_turns")
    assert len(primed(workload, "all")[0]) == 6


def test_priming_asks_for_one_token_and_proves_a_spread(make_workload: Workload) -> None:
    prompts = {0: [[number] * 20 for number in range(40)], 1: [[number] * 20 for number in range(3)]}
    made, order = priming_workload(make_workload(2), prompts)
    assert len(made.conversations) == len(order) == 43
    assert [epoch for _, epoch in order] == [0] * 40 + [1] * 3
    assert all(conversation.turns[0].output_tokens == 1 for conversation in made.conversations)
    assert list(made.prompts(made.conversations[5])) == [[5] * 20]
    proofs, asked = priming_workload(make_workload(2), prompts, proofs=True)
    assert [epoch for _, epoch in asked] == [0] * (PROOFS // 2) + [1] * 3
    assert [next(iter(proofs.prompts(c)))[0] for c in proofs.conversations[:3]] == [0, 5, 10]


def test_a_proof_counts_what_a_warm_cache_serves(make_record: Callable[..., RequestRecord]) -> None:
    asked = [
        make_record(expected_prompt_tokens=33, cached_tokens=32),
        make_record(expected_prompt_tokens=32, cached_tokens=0),
    ]
    proof = proof_of(asked, MODEL)
    assert (proof.requests, proof.expected, proof.cached, proof.short) == (2, 48, 32, 1)
    assert proof_of([make_record(cached_tokens=None)], MODEL).cached is None


def test_a_prefix_shorter_than_a_block_cannot_be_primed() -> None:
    check_primable({0: [[1] * 17]}, 16)
    with pytest.raises(WorkloadError, match=r"finds 16 tokens at most.*cache\.prime=first_turns"):
        check_primable({0: [[1] * 16]}, 16)
    check_primable({0: [[1] * 33]}, 16, 1)
    with pytest.raises(WorkloadError, match="computes the last one of a hit again"):
        check_primable({0: [[1] * 32]}, 16, 1)
    with pytest.raises(WorkloadError, match="finds 0 tokens"):
        check_primable({0: []}, 16)
