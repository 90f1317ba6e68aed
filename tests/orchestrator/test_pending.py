"""What is left of a sweep: resume by outcome, in segments with baselines of their own."""

import json
from dataclasses import replace

from jobs.load import LoadLevel
from jobs.result import CLOSING, FAILED, OPENING, TREATMENT
from orchestrator.pending import Segment, cell_id, infeasible_cells, pending
from orchestrator.plan import Plan, Refused
from tests.orchestrator.conftest import outcomes


def test_everything_is_pending_at_first(small_plan: Plan) -> None:
    segments = pending(small_plan, [])
    assert [segment.block.index for segment in segments] == [0, 1]
    assert all(segment.index == 0 and segment.runs == segment.block.runs for segment in segments)


def test_nothing_is_pending_when_every_treatment_has_an_outcome(small_plan: Plan) -> None:
    results = [result for segment in pending(small_plan, []) for result in outcomes(small_plan, segment)]
    assert pending(small_plan, results) == []


def test_an_interrupted_block_resumes_as_a_segment_with_its_own_baselines(small_plan: Plan) -> None:
    first, second = pending(small_plan, [])
    done = outcomes(small_plan, first)
    # the second block was cut after its opening baseline and the first level of its first treatment
    cut = outcomes(small_plan, second)[:3]
    (segment,) = pending(small_plan, [*done, *cut])
    assert (segment.block.index, segment.index) == (1, 1)
    assert [run.role for run in segment.runs] == [OPENING, TREATMENT, TREATMENT, CLOSING]
    levels = [[level.concurrency for level in run.levels] for run in segment.runs]
    assert levels == [[1, 4], [4], [1, 4], [1, 4]]


def test_a_resumed_segment_measures_baselines_only_where_it_needs_them(small_plan: Plan) -> None:
    first, second = pending(small_plan, [])
    results = [*outcomes(small_plan, first), *outcomes(small_plan, second)]
    lost = next(
        result
        for result in results
        if result.block == 1 and result.role == TREATMENT and result.concurrency == 4 and result.k == 7
    )
    (segment,) = pending(small_plan, [result for result in results if result is not lost])
    assert [(run.role, [level.concurrency for level in run.levels]) for run in segment.runs] == [
        (OPENING, [4]),
        (TREATMENT, [4]),
        (CLOSING, [4]),
    ]


def test_levels_of_an_open_loop_are_told_apart_by_their_rate(small_plan: Plan) -> None:
    rates = (LoadLevel(rate=1.0), LoadLevel(rate=1.5))
    blocks = tuple(
        replace(block, runs=tuple(replace(run, levels=rates) for run in block.runs))
        for block in small_plan.blocks
    )
    arms = tuple(replace(arm, levels=rates) for arm in small_plan.arms)
    plan = replace(small_plan, arms=arms, blocks=blocks)
    assert plan.digest != small_plan.digest
    assert Plan.from_dict(json.loads(json.dumps(plan.to_dict()))) == plan
    results = [result for segment in pending(plan, []) for result in outcomes(plan, segment)]
    assert len({result.cell for result in results}) == len(results) == 16
    assert pending(plan, results) == []
    lost = next(r for r in results if (r.block, r.role, r.rate, r.k) == (1, TREATMENT, 1.5, 7))
    (segment,) = pending(plan, [result for result in results if result is not lost])
    assert [(run.role, [level.label for level in run.levels]) for run in segment.runs] == [
        (OPENING, ["r1.5"]), (TREATMENT, ["r1.5"]), (CLOSING, ["r1.5"]),
    ]  # fmt: skip
    refused = Refused(arm=plan.arms[1], rule="r", reason="why")
    cells = infeasible_cells(replace(plan, refused=(refused,)), [])
    assert [cell.load for cell in cells] == ["r1", "r1.5"]


def test_a_missing_closing_baseline_alone_starts_no_engine(small_plan: Plan) -> None:
    results = [result for segment in pending(small_plan, []) for result in outcomes(small_plan, segment)]
    assert pending(small_plan, [result for result in results if result.role != CLOSING]) == []


def test_failures_are_outcomes_and_what_is_left_out_runs_again(small_plan: Plan) -> None:
    results = [result for segment in pending(small_plan, []) for result in outcomes(small_plan, segment)]
    results[2] = replace(results[2], outcome=FAILED, cause="died")
    assert pending(small_plan, results) == []
    (segment,) = pending(small_plan, [*results[:2], *results[3:]])
    assert [run.role for run in segment.runs] == [OPENING, TREATMENT, CLOSING]


def test_a_block_of_baselines_alone_is_pending_until_they_ran(small_plan: Plan) -> None:
    block = small_plan.blocks[0]
    alone = replace(block, runs=tuple(run for run in block.runs if run.role != TREATMENT))
    plan = replace(small_plan, blocks=(alone,))
    (segment,) = pending(plan, [])
    results = outcomes(plan, segment)
    assert pending(plan, results) == []


def test_cell_ids_differ_and_depend_on_the_content(small_plan: Plan) -> None:
    segments = pending(small_plan, [])
    names = [
        cell_id(small_plan, segment, run, level)
        for segment in segments
        for run in segment.runs
        for level in run.levels
    ]
    assert len(set(names)) == len(names) == 16
    moved = replace(small_plan, seed=1)
    segment = Segment(block=segments[0].block, index=0, runs=segments[0].runs)
    run = segment.runs[0]
    assert cell_id(moved, segment, run, run.levels[0]) != names[0]


def test_refused_arms_become_infeasible_outcomes_once(small_plan: Plan) -> None:
    refused = Refused(arm=small_plan.arms[1], rule="heads", reason="9 heads do not divide by 2")
    plan = replace(small_plan, refused=(refused,))
    cells = infeasible_cells(plan, [])
    assert [(cell.outcome, cell.cause, cell.concurrency) for cell in cells] == [
        ("infeasible", "heads", 1),
        ("infeasible", "heads", 4),
    ]
    assert infeasible_cells(plan, cells) == []
