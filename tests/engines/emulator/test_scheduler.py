"""The scheduler a step at a time, on a clock of the test's own."""

from collections.abc import Callable
from typing import Any

import pytest

from engines.emulator.load import StepLoad
from engines.emulator.noise import Noise, NoiseLevels
from engines.emulator.request import Request
from engines.emulator.scheduler import Emission, Limits, Scheduler


class Recorded:
    """A step cost of a second a step that remembers what it was asked."""

    def __init__(self) -> None:
        self.loads: list[StepLoad] = []

    def seconds(self, load: StepLoad) -> float:
        self.loads.append(load)
        return 1.0


def scheduler(cost: Recorded | None = None, **limits: Any) -> Scheduler:
    values = {
        "blocks": 100, "block_size": 4, "max_num_seqs": 8, "max_num_batched_tokens": 64, "k": 0, "rates": (),
        **limits,
    }  # fmt: skip
    quiet = Noise(NoiseLevels(start=0, drift=0, step=0), start=0, rank=0)
    return Scheduler(Limits(**values), cost or Recorded(), quiet)


def request(name: str, prompt: list[int], max_tokens: int = 4, **more: object) -> Request:
    return Request(id=name, prompt=prompt, max_tokens=max_tokens, key=len(name), arrived=0.0, **more)


def run(rank: Scheduler, steps: int = 1000) -> list[list[Emission]]:
    """Run until idle and return what each step gave."""
    history, now = [], 0.0
    for _ in range(steps):
        step = rank.begin(now)
        if step is None:
            return history
        now += step.seconds
        history.append(rank.finish(step, now))
    raise AssertionError("it never became idle")


def test_first_token_comes_with_the_end_of_the_prompt_then_one_a_step():
    rank = scheduler()
    one = request("a", list(range(10)), max_tokens=3)
    rank.submit(one)
    history = run(rank)
    assert [[len(e.tokens) for e in step] for step in history] == [[1], [1], [1]]
    assert history[-1][0].finished
    assert one.generated == 3
    stats = rank.stats
    assert (stats.prompt, stats.generation, stats.succeeded) == (10, 3, 1)
    assert (sum(stats.ttft.counts), sum(stats.itl.counts), stats.itl.total) == (1, 2, 2.0)
    assert rank.pool.held == 0


def test_long_prompts_are_computed_in_chunks_beside_the_others_decoding():
    cost = Recorded()
    rank = scheduler(cost, max_num_batched_tokens=16)
    rank.submit(request("short", [1, 2, 3], max_tokens=6))
    rank.submit(request("long", list(range(100, 140)), max_tokens=2))
    history = run(rank)
    assert [load.prefill_tokens for load in cost.loads][:4] == [16, 15, 12, 0]
    assert [load.decode_tokens for load in cost.loads][:4] == [0, 1, 1, 2]
    assert [[e.request.id for e in step] for step in history[:3]] == [["short"], ["short"], ["short", "long"]]
    # Attention pairs over all chunks of both prompts: n (n + 1) / 2 each.
    assert sum(load.prefill_pairs for load in cost.loads) == 3 * 4 // 2 + 40 * 41 // 2


def test_no_more_requests_run_than_the_batch_takes():
    rank = scheduler(max_num_seqs=2)
    for name in ("a", "b", "c"):
        rank.submit(request(name, [ord(name)] * 5, max_tokens=2))
    rank.begin(0.0)
    assert (len(rank.running), len(rank.waiting)) == (2, 1)


def test_accepted_drafts_come_in_one_step():
    rank = scheduler(k=3, rates=(1.0,) * 3)
    rank.submit(request("a", [1, 2, 3], max_tokens=9))
    history = run(rank)
    assert [len(step[0].tokens) for step in history] == [1, 4, 4]
    assert (rank.stats.drafts, rank.stats.draft_tokens, rank.stats.accepted) == (2, 6, 6)
    assert rank.stats.accepted_per_position == [2, 2, 2]


def test_the_last_step_is_cut_to_the_answer_but_counted_whole():
    rank = scheduler(k=3, rates=(1.0,) * 3)
    one = request("a", [1, 2, 3], max_tokens=3)
    rank.submit(one)
    history = run(rank)
    assert [len(step[0].tokens) for step in history] == [1, 2]
    assert rank.stats.generation == one.generated == 3
    assert rank.stats.accepted == 3


def test_rejected_drafts_cost_positions_and_give_the_verifiers_token():
    cost = Recorded()
    rank = scheduler(cost, k=3, rates=(0.0,) * 3)
    rank.submit(request("a", [1, 2, 3], max_tokens=3))
    assert [len(step[0].tokens) for step in run(rank)] == [1, 1, 1]
    assert [load.decode_tokens for load in cost.loads] == [0, 4, 4]
    assert [load.decode_context for load in cost.loads] == [0, 4, 5]


def test_a_prefix_is_computed_once():
    cost = Recorded()
    rank = scheduler(cost)
    first, second = request("a", list(range(10))), request("b", [*range(10), 77, 78])
    rank.submit(first)
    run(rank)
    rank.submit(second)
    run(rank)
    # Two full blocks of four match; the third differs after its second token.
    assert second.cached == 8
    assert (rank.stats.prefix_queries, rank.stats.prefix_hits) == (22, 8)
    assert (rank.stats.prompt, rank.stats.prompt_cached) == (22, 8)
    assert [load.prefill_tokens for load in cost.loads if load.prefill_tokens] == [10, 4]


def test_the_last_prompt_token_is_always_computed():
    rank = scheduler()
    for _ in range(2):
        latest = request("a", list(range(8)))
        rank.submit(latest)
        run(rank)
    assert latest.cached == 4


def test_salts_do_not_share():
    rank = scheduler()
    for salt in ("x", "y", None):
        one = request("a", list(range(12)), salt=salt)
        rank.submit(one)
        run(rank)
        assert one.cached == 0


def test_replies_are_kept_too():
    rank = scheduler()
    first = request("a", list(range(6)), max_tokens=7)
    rank.submit(first)
    reply = [token for step in run(rank) for emission in step for token in emission.tokens]
    second = request("b", [*range(6), *reply, 5])
    rank.submit(second)
    run(rank)
    # 12 of 13 tokens have their KV written: the newest one never was computed.
    assert second.cached == 12


def test_reset_forgets_prefixes_unless_a_request_holds_some():
    rank = scheduler()
    rank.submit(request("a", list(range(12)), max_tokens=2))
    step = rank.begin(0.0)
    assert not rank.reset_cache()
    rank.finish(step, 1.0)
    run(rank)
    assert rank.reset_cache()
    again = request("b", list(range(12)))
    rank.submit(again)
    run(rank)
    assert again.cached == 0


def crowded() -> tuple[Scheduler, list[Request]]:
    rank = scheduler(blocks=9)
    requests = [request(name, [ord(name)] * 10, max_tokens=20) for name in ("a", "b", "c")]
    for one in requests:
        rank.submit(one)
    return rank, requests


def test_the_youngest_is_thrown_out_and_starts_again():
    rank, requests = crowded()
    order = [e.request.id for step in run(rank) for e in step if e.finished]
    assert rank.stats.preemptions > 0
    assert order[0] == "a"
    assert [one.generated for one in requests] == [20, 20, 20]
    # Work is repeated, counts are not.
    assert (rank.stats.prompt, rank.stats.generation) == (30, 60)
    assert sum(rank.stats.ttft.counts) == 3
    assert rank.stats.prefix_queries == 30
    assert rank.pool.held == 0


def test_preemption_changes_no_token():
    rank, requests = crowded()
    run(rank)
    alone = scheduler()
    for one in requests:
        copy = request(one.id, one.prompt, max_tokens=20)
        alone.submit(copy)
        run(alone)
        assert copy.hashes(7, 4) == one.hashes(7, 4)


def test_requests_wait_while_the_cache_is_full():
    rank = scheduler(blocks=6)
    rank.submit(request("a", [1] * 12, max_tokens=8))
    rank.submit(request("b", [2] * 16, max_tokens=2))
    rank.begin(0.0)
    assert [one.id for one in rank.running] == ["a"]
    assert [one.id for one in rank.waiting] == ["b"]


@pytest.mark.parametrize("when", ["waiting", "running", "between"])
def test_an_aborted_request_leaves_nothing_behind(when: str):
    rank = scheduler(max_num_seqs=1)
    first, second = request("a", [1] * 9), request("b", [2] * 9)
    rank.submit(first)
    rank.submit(second)
    gone = second if when == "waiting" else first
    step = rank.begin(0.0)
    if when == "between":
        rank.finish(step, 1.0)
        step = rank.begin(1.0)
    rank.abort(gone)
    emissions = rank.finish(step, 2.0)
    assert gone not in [emission.request for emission in emissions]
    run(rank)
    assert (rank.stats.aborted, rank.stats.succeeded) == (1, 1)
    assert rank.pool.held == 0
    assert not rank.busy


def test_aborting_a_finished_request_changes_nothing():
    rank = scheduler()
    one = request("a", [1, 2])
    rank.submit(one)
    run(rank)
    rank.abort(one)
    assert rank.stats.aborted == 0


def drawn(order: Callable[[list[Request]], list[Request]]) -> dict[str, list[int]]:
    rank = scheduler(k=3, rates=(0.7,) * 3, blocks=1000, max_num_batched_tokens=256)
    requests = [
        Request(id=str(number), prompt=[number] * 9, max_tokens=40, key=number * 7919, arrived=0.0)
        for number in range(6)
    ]
    for one in order(requests):
        rank.submit(one)
    chunks: dict[str, list[int]] = {one.id: [] for one in requests}
    for step in run(rank):
        for emission in step:
            chunks[emission.request.id].append(len(emission.tokens))
    return chunks


def test_acceptance_of_a_request_does_not_depend_on_its_company():
    together = drawn(lambda requests: requests)
    reversed_order = drawn(lambda requests: requests[::-1])
    alone = drawn(lambda requests: requests[2:3])["2"]
    assert together == reversed_order
    assert together["2"] == alone
    assert len({tuple(chunks) for chunks in together.values()}) > 1


def test_the_draft_length_follows_the_batch():
    cost = Recorded()
    rank = scheduler(cost, k=3, rates=(0.0, 0.0, 0.0), lengths=((1, 1, 3), (2, 2, 1), (3, 8, 0)))
    for name, tokens in (("a", 9), ("b", 6), ("c", 3)):
        rank.submit(request(name, list(range(5)), max_tokens=tokens))
    run(rank)
    decoding = [(load.requests, load.k, load.drafted) for load in cost.loads if load.requests]
    assert decoding == [(3, 0, 0)] * 2 + [(2, 1, 2)] * 3 + [(1, 3, 1)] * 3
    assert (rank.stats.drafts, rank.stats.draft_tokens) == (9, 15)
