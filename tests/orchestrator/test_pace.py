"""What starts and cells are expected to take."""

from dataclasses import replace

import pytest

from jobs.load import LoadLevel
from jobs.result import FAILED, CellResult
from orchestrator.pace import Pace
from orchestrator.pending import Segment
from orchestrator.plan import Plan
from tests.orchestrator.conftest import LEVELS, outcome


@pytest.fixture
def first(small_plan: Plan) -> Segment:
    return Segment(block=small_plan.blocks[0], index=0, runs=small_plan.blocks[0].runs)


def timed(
    plan: Plan, segment: Segment, run: int, level: LoadLevel, seconds: float, start: float | None
) -> CellResult:
    return replace(outcome(plan, segment, segment.runs[run], level), seconds=seconds, start_seconds=start)


def test_nothing_is_expected_until_a_start_and_a_cell_were_timed(small_plan: Plan, first: Segment) -> None:
    pace = Pace()
    assert pace.seconds(first) is None
    failed = replace(timed(small_plan, first, 0, LEVELS[0], 99.0, 50.0), outcome=FAILED)
    pace.learn(failed)
    assert pace.seconds(first) is None  # a failure says nothing of how long a cell takes
    pace.learn(timed(small_plan, first, 0, LEVELS[0], 10.0, None))
    assert pace.cell_seconds(first.runs[1].arm, "c4") == 10.0
    assert pace.seconds(first) is None
    pace.learn(timed(small_plan, first, 0, LEVELS[1], 20.0, 5.0))
    # four runs of one start and two cells: the baseline's known, the treatments' like any cell
    assert pace.seconds(first) == pytest.approx(4 * 5.0 + 2 * (10.0 + 20.0) + 2 * (15.0 + 15.0))


def test_each_arm_and_level_has_its_own_mean_and_the_closest_known_stands_in(
    small_plan: Plan, first: Segment
) -> None:
    baseline, slow = first.runs[0].arm, first.runs[1].arm
    pace = Pace(
        [
            timed(small_plan, first, 0, LEVELS[0], 10.0, 4.0),
            timed(small_plan, first, 3, LEVELS[0], 14.0, 6.0),
            timed(small_plan, first, 1, LEVELS[0], 100.0, 40.0),
        ]
    )
    assert pace.cell_seconds(baseline, "c1") == 12.0
    assert pace.cell_seconds(slow, "c1") == 100.0
    assert pace.cell_seconds(slow, "c4") == 100.0  # the same arm at another level before any other arm
    assert (pace.start_seconds(baseline), pace.start_seconds(slow)) == (5.0, 40.0)


def test_an_arm_with_an_engine_a_cell_starts_as_often(small_plan: Plan, first: Segment) -> None:
    run = first.runs[1]
    results = [timed(small_plan, first, 1, level, 10.0, 4.0) for level in LEVELS]
    assert Pace(results).run_seconds(run) == pytest.approx(4.0 + 20.0)
    assert Pace(results, stateful=[run.arm]).run_seconds(run) == pytest.approx(8.0 + 20.0)
