"""K by load as an arm: loads of a slice in one engine's running requests, and its fresh blocks."""

from dataclasses import replace

import pytest

from analysis.confirmation import Confirmation
from analysis.schedule import Schedule, Step
from engines.schedule import DYNAMIC, KRange
from engines.spec import Drafter, Layout, Model
from jobs.load import LoadLevel
from jobs.result import CLOSING, OPENING, TREATMENT
from orchestrator.confirming import confirming_round
from orchestrator.plan import Arm, Block, Plan, Run
from orchestrator.recommending import status_of
from orchestrator.scheduling import Proposed, ScheduledArm, engine_ranges, running_at, scheduled_arm
from tests.orchestrator.conftest import arm, outcome
from tests.orchestrator.test_rounds import row, summary

LEVELS = tuple(LoadLevel(concurrency=level) for level in (1, 8, 32, 64))


@pytest.fixture
def plan(small_plan) -> Plan:
    drafters = (Drafter(), *(Drafter(method="eagle3", k=k) for k in (2, 5)))
    model = Model(name="llama-3.1-8b")
    made = (arm(drafter) for drafter in drafters)
    arms = tuple(replace(own, config=replace(own.config, model=model), levels=LEVELS) for own in made)
    runs = (
        Run(arm=arms[0].digest, role=OPENING, levels=LEVELS),
        *(Run(arm=own.digest, role=TREATMENT, levels=LEVELS) for own in arms[1:]),
        Run(arm=arms[0].digest, role=CLOSING, levels=LEVELS),
    )
    return replace(small_plan, arms=arms, blocks=(Block(index=0, devices=1, runs=runs),), confirm=2)


def schedule(plan: Plan, *, devices: int = 1, edges: tuple[float, float] = (12.5, 40.0)) -> Schedule:
    base, short, long = plan.arms
    return Schedule(
        family="tp1/eagle3",
        layout="tp1",
        devices=devices,
        axis="concurrency",
        baseline=base.digest,
        steps=(
            Step(k=5, low=0.0, high=edges[0], levels=(1.0, 8.0), arm=long.digest),
            Step(k=2, low=edges[0], high=edges[1], levels=(32.0,), arm=short.digest),
            Step(k=0, low=edges[1], high=None, levels=(64.0,), arm=base.digest),
        ),
    )


def test_the_arm_has_the_longest_draft_and_a_level_of_each_step(plan):
    found = scheduled_arm(plan, schedule(plan), ())
    assert found.arm is not None
    assert found.arm.config.drafter.k == 5
    assert found.arm.config.drafter.options == {DYNAMIC: [[1, 12, 5], [13, 40, 2], [41, 1024, 0]]}
    assert [level.value for level in found.arm.levels] == [8, 32, 64]
    assert found.arm.pair_key == plan.arms[0].pair_key


def test_a_load_is_shared_over_replicas_and_ranks(plan):
    config = plan.arms[2].config
    assert engine_ranges(schedule(plan, devices=4), config, ()) == (
        KRange(first=1, last=3, k=5),
        KRange(first=4, last=10, k=2),
        KRange(first=11, last=None, k=0),
    )
    ranks = replace(config, layout=Layout(dp=2))
    assert engine_ranges(schedule(plan, devices=4), ranks, ())[0].last == 3
    narrow = engine_ranges(schedule(plan, devices=16), config, ())
    assert narrow == (KRange(first=1, last=2, k=2), KRange(first=3, last=None, k=0))


def test_pauses_between_turns_leave_fewer_requests_running(plan):
    segment = type("S", (), {"block": plan.blocks[0], "index": 0})()
    run = plan.blocks[0].runs[2]
    cells = [
        replace(outcome(plan, segment, run, level), metrics={"window/in_flight": level.value * share})
        for level, share in zip(LEVELS, (1.0, 0.5, 0.5, 0.5), strict=True)
    ]
    assert running_at(32.0, schedule(plan), cells) == pytest.approx(16.0)
    assert running_at(32.0, schedule(plan), ()) == 32.0


def test_an_engine_that_does_not_take_it_says_why(plan):
    def on(engine: str) -> Plan:
        arms = tuple(replace(own, config=replace(own.config, engine=engine)) for own in plan.arms)
        return replace(plan, arms=arms)

    other = on("trtllm")
    found = scheduled_arm(other, schedule(other), ())
    assert found.arm is None
    assert "one draft length for all batch sizes" in found.refused
    flat = scheduled_arm(plan, schedule(plan, edges=(0.5, 0.9)), ())
    assert "one draft length" in flat.refused


def test_the_schedule_runs_in_the_fresh_blocks_of_the_winner(plan):
    made = scheduled_arm(plan, schedule(plan), ())
    asked = confirming_round(plan, (), summary(row(plan, 2, 1, 1.3)), Proposed(schedules=(made,)))
    assert asked is not None
    assert asked.arms == (made.arm,)
    assert asked.reason.endswith("total throughput, and tp1/eagle3-k5-by-batch")
    runs = [(run.role, [level.value for level in run.levels]) for run in asked.blocks[0].runs]
    assert runs == [
        (OPENING, [1, 8, 32, 64]),
        (TREATMENT, [1]),
        (TREATMENT, [8, 32, 64]),
        (CLOSING, [1, 8, 32, 64]),
    ]
    refused = replace(made, arm=None)
    alone = confirming_round(plan, (), summary(row(plan, 2, 1, 1.3)), Proposed(schedules=(refused,)))
    assert alone is not None
    assert alone.arms == ()
    assert len(alone.blocks[0].runs) == 3


def fresh(made: ScheduledArm, *verdicts: str) -> list[Confirmation]:
    own: Arm | None = made.arm
    assert own is not None
    return [
        Confirmation(arm=own.digest, label=own.label, at="C=8", blocks=2, verdict=word, ratio=None, text="")
        for word in verdicts
    ]


@pytest.mark.parametrize(
    ("verdicts", "status"),
    [
        ((), "provisional"),
        (("wins", "wins", "no difference"), "confirmed"),
        (("wins", "wins", "undecided"), "confirmed"),
        (("wins", "undecided", "no difference"), "provisional"),
        (("wins", "wins", "loses"), "contradicted"),  # K=0 is not free
        (("wins", "no difference", "no difference"), "contradicted"),
    ],
)
def test_a_schedule_has_to_win_where_it_drafts_and_to_lose_nowhere(plan, verdicts, status):
    made = scheduled_arm(plan, schedule(plan), ())
    assert status_of(made, fresh(made, *verdicts)) == status
