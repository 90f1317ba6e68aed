"""What is tried again: by cause, and only so often."""

from dataclasses import replace

import pytest

from jobs.result import CLOSING, FAILED, INVALID, OPENING, TREATMENT, CellResult
from orchestrator.pending import pending
from orchestrator.plan import Plan
from orchestrator.retries import RETRIES, worth_another_try
from tests.orchestrator.conftest import outcomes


@pytest.fixture
def failed(small_plan: Plan) -> CellResult:
    cells = outcomes(small_plan, pending(small_plan, [])[0])
    first = next(result for result in cells if result.role == TREATMENT)
    return replace(first, outcome=FAILED, cause="died")


@pytest.mark.parametrize("cause", sorted(RETRIES))
def test_each_cause_has_a_budget_of_its_own(failed: CellResult, cause: str) -> None:
    tries = [replace(failed, cell=f"try-{n}", segment=n, cause=cause) for n in range(RETRIES[cause] + 1)]
    for spent, last in enumerate(tries):
        left = {last.cell} if spent < RETRIES[cause] else set()
        assert worth_another_try([last], tries[:spent]) == left
    # What failed for this cause does not use up the tries of another one, nor of another cell.
    other = replace(failed, cause=next(name for name in RETRIES if name != cause))
    assert worth_another_try([other], tries) == {other.cell}
    assert worth_another_try([replace(tries[-1], block=1)], tries) == {tries[-1].cell}


@pytest.mark.parametrize("cause", ["out_of_memory", "bad_flag", "missing_model", "start", "replay", None])
def test_a_finding_is_not_tried_again(failed: CellResult, cause: str | None) -> None:
    assert worth_another_try([replace(failed, cause=cause)], []) == set()


def test_only_failed_treatments_are(failed: CellResult) -> None:
    assert worth_another_try([replace(failed, outcome=INVALID)], []) == set()
    assert worth_another_try([replace(failed, role=role) for role in (OPENING, CLOSING)], []) == set()


def test_a_new_segment_with_baselines_of_its_own_tries_again(small_plan: Plan, failed: CellResult) -> None:
    results = [result for segment in pending(small_plan, []) for result in outcomes(small_plan, segment)]
    results = [failed if result.cell == failed.cell else result for result in results]
    again = worth_another_try(results, [])
    (segment,) = pending(small_plan, [result for result in results if result.cell not in again])
    assert (segment.block.index, segment.index) == (failed.block, 1)
    assert [run.role for run in segment.runs] == [OPENING, TREATMENT, CLOSING]
    assert {level.label for run in segment.runs for level in run.levels} == {failed.load}
