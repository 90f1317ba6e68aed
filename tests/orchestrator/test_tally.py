"""Reports in, status out: counts, running steps, pairs and the time that is left."""

from dataclasses import replace

import pytest

from jobs.result import CLOSING, FAILED, INVALID, OPENING, TREATMENT, CellResult
from jobs.task import StepStarted
from orchestrator.live import pair_words
from orchestrator.pace import Pace
from orchestrator.pending import Segment, pending
from orchestrator.plan import Plan
from orchestrator.standing import PoolSnapshot, RunningBlock
from orchestrator.status import FINISHED, RUNNING, STOPPED, Status, stopped
from orchestrator.tally import LOOK_SECONDS, Tally
from tests.orchestrator.conftest import LEVELS, Recorded, outcome


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def segments(small_plan: Plan) -> list[Segment]:
    return pending(small_plan, [])


def snapshot(*running: RunningBlock, waiting: int = 0) -> PoolSnapshot:
    return PoolSnapshot(
        running=running,
        waiting=waiting,
        devices_in_use=sum(block.devices for block in running),
        devices_held=0,
        devices_total=2,
    )


def block(index: int, since: float) -> RunningBlock:
    return RunningBlock(block=index, segment=0, node="10.0.0.4", devices=1, since=since)


def result(plan: Plan, segment: Segment, run: int, level: int, **changes: object) -> CellResult:
    made = outcome(plan, segment, segment.runs[run], LEVELS[level])
    metrics = {"throughput/total_tok_s": 100.0}
    identity = {"pair_key": plan.arm(segment.runs[run].arm).pair_key}
    return replace(made, **{"seconds": 10.0, "metrics": metrics, "identity": identity, **changes})  # type: ignore[arg-type]  # fields by name


def step(segment: Segment, run: int, level: int | None) -> StepStarted:
    return StepStarted(
        block=segment.block.index,
        segment=segment.index,
        run=f"run-{run}",
        arm=segment.runs[run].arm,
        role=segment.runs[run].role,
        cell=None if level is None else f"cell-{run}-{level}",
        load="" if level is None else LEVELS[level].label,
    )


def told(plan: Plan, clock: Clock, pace: Pace | None = None) -> tuple[Tally, Recorded]:
    recorded = Recorded(plan)
    return Tally(plan, [], count=recorded.count, pace=pace or Pace(), clock=clock), recorded


def test_counts_go_over_all_runs_of_the_sweep_and_a_new_try_counts_in_the_place_of_its_last(
    small_plan: Plan, segments: list[Segment], clock: Clock
) -> None:
    first = segments[0]
    recorded = Recorded(small_plan)
    known = [
        recorded.take(result(small_plan, first, 0, 0)),
        recorded.take(result(small_plan, first, 0, 1, outcome=INVALID, cause="cache_state")),
        recorded.take(result(small_plan, first, 1, 0, outcome=FAILED, cause="hung")),
    ]
    tally = Tally(small_plan, known, count=recorded.count, pace=Pace(), clock=clock)
    status = tally.status(RUNNING, None)
    assert (status.measured, status.invalid, status.failed) == (1, 1, 1)
    rest = pending(small_plan, known)
    assert status.left == sum(segment.cells for segment in rest) == 15, "7 of block 0, two of them anew"
    tally.expect(rest)
    tally.cell(recorded.take(result(small_plan, rest[0], 1, 1, outcome=FAILED, cause="hung")))
    tally.cell(recorded.take(replace(known[2], outcome="measured", cause=None)))
    status = tally.status(RUNNING, None)
    assert (status.measured, status.invalid, status.failed, status.left) == (2, 1, 1, 14)
    assert status.causes == {"cache_state": 1, "hung": 1}
    assert status.done == 4


def test_a_block_that_is_cut_short_counts_the_baselines_that_it_measures_anew(
    small_plan: Plan, segments: list[Segment], clock: Clock
) -> None:
    tally, recorded = told(small_plan, clock)
    tally.expect(segments)
    for run, level in ((0, 0), (0, 1), (1, 0)):
        tally.cell(recorded.take(result(small_plan, segments[0], run, level)))
    living = tally.status(RUNNING, None)
    assert (living.done, living.left) == (3, 13)
    again = pending(small_plan, list(recorded.results.values()))
    assert sum(segment.cells for segment in again) == 15
    assert stopped(living).left == 15, "of a driver that was killed"
    tally.expect(())
    assert tally.status(STOPPED, None).left == 15, "of one that stopped by itself"
    tally.expect(again)
    assert tally.left == 15, "and the run that goes on begins with the same number"


def test_cells_that_no_segment_runs_any_more_stay_left(
    small_plan: Plan, segments: list[Segment], clock: Clock
) -> None:
    tally, recorded = told(small_plan, clock)
    tally.expect(segments)
    tally.ended(segments[0])  # lost, or never started for want of budget
    again = replace(segments[1], index=1)
    tally.expect([again])
    for run in range(len(again.runs)):
        for level in range(len(LEVELS)):
            tally.cell(recorded.take(result(small_plan, again, run, level)))
    assert tally.left == segments[0].cells


def test_what_runs_is_told_with_its_arm_and_level(
    small_plan: Plan, segments: list[Segment], clock: Clock
) -> None:
    tally, _ = told(small_plan, clock)
    tally.expect(segments)
    pool = snapshot(block(1, since=990.0), block(0, since=980.0))

    def running() -> list[tuple[int, str, str, str, float]]:
        steps = tally.status(RUNNING, pool).running
        return [(s.block, s.arm, s.role, s.load, s.seconds) for s in steps]

    assert running() == [(0, "", "", "", 20.0), (1, "", "", "", 10.0)]
    tally.step(step(segments[0], 0, None))
    clock.now += 5
    assert running()[0] == (0, "tp1/none", OPENING, "", 5.0)
    tally.step(step(segments[0], 1, 1))
    clock.now += 7
    assert running() == [(0, "tp1/ngram-k3", TREATMENT, "c4", 7.0), (1, "", "", "", 22.0)]
    status = tally.status(RUNNING, pool)
    assert (status.devices_in_use, status.devices_total, status.running[0].node) == (2, 2, "10.0.0.4")


def test_the_rest_is_unknown_then_scheduled_and_shrinks_while_a_step_goes_on(
    small_plan: Plan, segments: list[Segment], clock: Clock
) -> None:
    pace = Pace()
    tally, _ = told(small_plan, clock, pace)
    tally.expect(segments)
    pool = snapshot(block(0, since=0.0), waiting=1)
    assert tally.seconds_left(pool) is None
    clock.now += LOOK_SECONDS
    tally.step(step(segments[0], 0, None))
    tally.step(step(segments[0], 0, 0))
    timed = result(small_plan, segments[0], 0, 0, start_seconds=4.0)
    pace.learn(timed)
    tally.cell(timed)
    # a whole block is 4 starts of 4 s and 8 cells of 10 s; block 0 has one start and one cell less to go, and
    # the other block has the second device at once
    assert tally.seconds_left(pool) == pytest.approx(96.0)
    clock.now += LOOK_SECONDS
    alone = replace(pool, devices_total=1)
    assert tally.seconds_left(alone) == pytest.approx((96.0 - 14.0) + 96.0)
    tally.step(step(segments[0], 0, 1))
    clock.now += LOOK_SECONDS + 1
    assert tally.seconds_left(alone) == pytest.approx((96.0 - 14.0 - 6.0) + 96.0)
    clock.now += 1  # in between its end stays where it was
    assert tally.seconds_left(alone) == pytest.approx((96.0 - 14.0 - 6.0) + 96.0 - 1.0)
    clock.now += 100  # a step that takes longer than expected costs what is after it nothing
    assert tally.seconds_left(alone) == pytest.approx((96.0 - 14.0 - 10.0) + 96.0)


def test_a_pair_is_told_when_its_closing_baseline_is_there(
    small_plan: Plan, segments: list[Segment], clock: Clock
) -> None:
    tally, _ = told(small_plan, clock)

    def speed(segment: Segment, run: int, tok_s: float, **changes: object) -> list[tuple[str, float, int]]:
        made = result(small_plan, segment, run, 0, metrics={"throughput/total_tok_s": tok_s}, **changes)
        return [(pair.arm, round(pair.ratio, 4), pair.blocks) for pair in tally.cell(made)]

    first, second = segments
    assert [run.role for run in first.runs] == [OPENING, TREATMENT, TREATMENT, CLOSING]
    assert speed(first, 0, 80.0) == []
    assert speed(first, 1, 200.0) == []
    assert speed(first, 2, 300.0, outcome=INVALID, cause="acceptance") == []  # no pair
    assert speed(first, 3, 125.0) == [("tp1/ngram-k3", 2.0, 1)]
    assert speed(second, 1, 50.0) == []  # its opening baseline is missing: no pair, whatever comes
    assert speed(second, 3, 100.0) == []
    assert speed(replace(second, index=1), 0, 100.0) == []
    assert speed(replace(second, index=1), 1, 800.0) == []
    assert speed(replace(second, index=1), 3, 100.0) == [("tp1/ngram-k3", 8.0, 2)]
    pairs = tally.status(RUNNING, None).pairs
    assert [(round(pair.ratio, 4), round(pair.mean, 4)) for pair in pairs] == [(8.0, 4.0), (2.0, 2.0)]


def test_a_pair_is_told_in_the_objective_of_the_plan(
    small_plan: Plan, segments: list[Segment], clock: Clock
) -> None:
    tally, _ = told(replace(small_plan, objective="ttft_p95"), clock)
    pairs = []
    for run, milliseconds in enumerate((100.0, 50.0, 400.0, 100.0)):
        metrics = {"throughput/total_tok_s": 1.0, "latency/ttft_p95_ms": milliseconds}
        pairs += tally.cell(result(small_plan, segments[0], run, 0, metrics=metrics))
    assert [(pair.arm, pair.ratio) for pair in pairs] == [
        ("tp1/ngram-k3", pytest.approx(0.5)),
        ("tp1/ngram-k7", pytest.approx(4.0)),
    ]
    assert pair_words(pairs[0]) == (
        "tp1/ngram-k3 c1: 0.50 x the baseline's TTFT p95 in block 0 (less is better; preliminary)"
    )


def test_a_status_survives_its_file(small_plan: Plan, segments: list[Segment], clock: Clock) -> None:
    tally, _ = told(small_plan, clock)
    tally.expect(segments)
    tally.step(step(segments[0], 0, 0))
    tally.note("block 3 waits for a node")
    status = tally.status(FINISHED, snapshot(block(0, since=0.0)))
    assert Status.from_dict(status.to_dict()) == status
    with pytest.raises(ValueError, match="schema"):
        Status.from_dict({**status.to_dict(), "schema": 99})
