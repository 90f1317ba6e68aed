from dataclasses import replace

import pytest

from engines.counters import Counters
from engines.errors import EngineError

ZERO = Counters(
    time=10.0,
    prompt_tokens=0,
    cached_prompt_tokens=0,
    computed_prompt_tokens=0,
    generation_tokens=0,
    drafts=0,
    draft_tokens=0,
    accepted_tokens=0,
    accepted_per_position=(),
    preemptions=0,
    prefix_queries=0,
    prefix_hits=0,
    step_intervals=0,
    step_seconds=0.0,
    first_tokens=0,
    running=0,
    waiting=0,
    kv_usage=0.0,
)


def test_a_delta_counts_and_keeps_the_later_gauges() -> None:
    earlier = replace(ZERO, generation_tokens=100, step_seconds=1.5, running=9, waiting=4, kv_usage=0.9)
    later = replace(
        earlier, time=14.0, generation_tokens=160, step_seconds=2.0, running=1, waiting=0, kv_usage=0.1
    )
    delta = later.since(earlier)
    assert delta.time == 4.0
    assert delta.generation_tokens == 60
    assert delta.step_seconds == 0.5
    assert (delta.running, delta.waiting, delta.kv_usage) == (1, 0, 0.1)


def test_positions_that_appeared_in_between_start_at_zero() -> None:
    earlier = replace(ZERO, accepted_per_position=(5, 2))
    later = replace(ZERO, accepted_per_position=(9, 3, 1))
    assert later.since(earlier).accepted_per_position == (4, 1, 1)


@pytest.mark.parametrize("name", ["generation_tokens", "drafts", "step_seconds", "prefix_hits"])
def test_a_counter_that_fell_names_itself(name: str) -> None:
    with pytest.raises(EngineError, match=rf"{name} fell from 5 to 3.*restarted"):
        replace(ZERO, **{name: 3}).since(replace(ZERO, **{name: 5}))


def test_a_position_that_fell_or_vanished_names_itself() -> None:
    with pytest.raises(EngineError, match=r"accepted_per_position\[1\] fell from 2 to 0"):
        replace(ZERO, accepted_per_position=(6,)).since(replace(ZERO, accepted_per_position=(5, 2)))


def test_replicas_add_up() -> None:
    one = replace(ZERO, time=1.0, drafts=3, accepted_per_position=(2, 1), running=1, waiting=2, kv_usage=0.2)
    two = replace(ZERO, time=2.0, drafts=4, accepted_per_position=(3,), running=2, waiting=0, kv_usage=0.4)
    both = Counters.combined([one, two])
    assert (both.time, both.drafts, both.accepted_per_position) == (2.0, 7, (5, 1))
    assert (both.running, both.waiting) == (3, 2)
    assert both.kv_usage == pytest.approx(0.3)


def test_the_delta_of_sums_is_the_sum_of_deltas() -> None:
    before = [replace(ZERO, generation_tokens=count) for count in (10, 20)]
    after = [replace(ZERO, generation_tokens=count, time=11.0) for count in (15, 40)]
    delta = Counters.combined(after).since(Counters.combined(before))
    assert delta.generation_tokens == 25
    assert delta.time == 1.0


def test_an_engine_that_tells_nothing_has_no_counts() -> None:
    unknown = Counters.unknown(3.0)
    assert not unknown.knows("drafts")
    assert not unknown.knows("accepted_per_position")
    assert not unknown.knows("kv_usage")
    assert unknown.knows()
    assert unknown.since(unknown).absent == unknown.absent


def test_what_one_side_or_replica_does_not_tell_nobody_knows() -> None:
    partial = replace(ZERO, absent=frozenset({"drafts"}))
    assert ZERO.knows("drafts", "running")
    for mixed in (partial.since(ZERO), ZERO.since(partial), Counters.combined([ZERO, partial])):
        assert not mixed.knows("drafts", "running")
        assert mixed.knows("running")
