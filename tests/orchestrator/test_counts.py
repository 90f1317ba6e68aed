"""Counts of a sweep: from scratch, and kept while it runs."""

from dataclasses import replace

from jobs.result import FAILED, INFEASIBLE, INVALID, CellResult
from orchestrator.counts import Counts, RunningCounts
from orchestrator.pending import pending
from orchestrator.plan import Plan
from tests.orchestrator.conftest import outcomes


def test_what_is_kept_is_what_counting_from_scratch_gives(small_plan: Plan) -> None:
    recorded: dict[str, CellResult] = {}

    def count(block: int) -> Counts:
        results = [result for result in recorded.values() if result.block == block]
        own = [each for each in small_plan.blocks if each.index == block]
        return Counts.of(results, pending(small_plan, results, blocks=own))

    running = RunningCounts(count)
    for block in small_plan.blocks:
        running.renew(block.index)
    first = outcomes(small_plan, pending(small_plan, [])[0])
    second = outcomes(small_plan, pending(small_plan, [])[1])
    steps = [
        *first,
        replace(first[2], outcome=FAILED, cause="hung"),
        *second[:3],
        replace(first[3], outcome=INVALID, cause="loop_lag"),
        replace(first[2], cause=None),
        replace(first[0], cell="refused", outcome=INFEASIBLE, cause="rule"),
    ]
    for result in steps:
        recorded[result.cell] = result
        running.renew(result.block)
        expected = Counts.of(recorded.values(), pending(small_plan, recorded.values()))
        assert running.total() == expected
    assert running.total().outcomes == f"{len(first) + 2} measured, 1 invalid, 1 infeasible"
    assert running.total().causes == {"loop_lag": 1}
