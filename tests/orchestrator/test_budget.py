"""A budget: what starts, what waits, and what is left out."""

from dataclasses import replace

import pytest

from orchestrator.budget import Budget, budget_words
from orchestrator.pending import Segment, pending
from orchestrator.plan import Plan
from tests.orchestrator.conftest import outcomes

HOUR = 3600.0


@pytest.fixture
def segments(small_plan: Plan) -> list[Segment]:
    """Six blocks of 4 runs and 8 cells on two devices."""
    block = replace(small_plan.blocks[0], devices=2)
    blocks = tuple(replace(block, index=index) for index in range(6))
    return pending(replace(small_plan, blocks=blocks), [])


def timed(plan: Plan, segment: Segment, *, cell: float, start: float):
    first, *others = outcomes(plan, segment)
    return [replace(first, seconds=cell, start_seconds=start), *(replace(o, seconds=cell) for o in others)]


def test_without_a_budget_all_start(segments: list[Segment]) -> None:
    budget = Budget(None)
    assert [budget.admit(segment) for segment in segments] == [True] * 6
    assert budget.left_out == ()


def test_until_something_is_timed_one_block_runs_alone(small_plan: Plan, segments: list[Segment]) -> None:
    budget = Budget(1.0)
    assert [budget.admit(segment) for segment in segments[:3]] == [True, None, None]
    for result in timed(small_plan, segments[0], cell=200.0, start=50.0)[:1]:
        budget.observe(result)
    # a block is expected to take 2 x (4 x 50 + 8 x 200) device-seconds, an hour: the first has it all
    assert budget.expected(segments[1]) == HOUR
    assert budget.admit(segments[1]) is None
    budget.charge(segments[0], 1700.0)
    assert budget.spent == 3400.0
    assert budget.admit(segments[1]) is False
    assert budget.left_out == (segments[1],)


def test_running_blocks_keep_what_they_are_expected_to_take(
    small_plan: Plan, segments: list[Segment]
) -> None:
    budget = Budget(3.0)
    budget.observe(timed(small_plan, segments[0], cell=200.0, start=50.0)[0])
    assert [budget.admit(segment) for segment in segments] == [True, True, True, None, None, None]
    # the first was quicker than expected: still not enough; after the second, too
    budget.charge(segments[0], 900.0)
    assert budget.admit(segments[3]) is None
    budget.charge(segments[1], 900.0)
    assert budget.admit(segments[3]) is True
    assert budget.admit(segments[4]) is None
    budget.charge(segments[2], 1800.0)
    budget.charge(segments[3], 1800.0)
    assert [budget.admit(segment) for segment in segments[4:]] == [False, False]
    words = budget_words(budget, device_hours=3.0, unit="GPU")
    assert words.startswith(
        "design.budget=3: about 3.0 GPU-hours are spent, and 2 blocks with 16 cells did not"
    )


def test_what_earlier_runs_spent_counts(small_plan: Plan, segments: list[Segment]) -> None:
    done = [replace(result, devices=2) for result in timed(small_plan, segments[0], cell=200.0, start=100.0)]
    budget = Budget(1.0, results=done)
    assert budget.spent == 2 * (8 * 200.0 + 100.0)
    assert budget.admit(segments[1]) is True, "nothing is known of how long it takes"
    assert Budget(0.9, results=done).admit(segments[1]) is False, "nothing is left"


def test_a_segment_that_is_left_out_may_start_when_less_is_expected_of_it(
    small_plan: Plan, segments: list[Segment]
) -> None:
    budget = Budget(1.0)
    budget.observe(timed(small_plan, segments[0], cell=1000.0, start=50.0)[0])
    assert budget.admit(segments[0]) is False
    for result in timed(small_plan, segments[0], cell=1.0, start=1.0):
        budget.observe(result)
    assert budget.admit(segments[0]) is True
    assert budget.left_out == ()
