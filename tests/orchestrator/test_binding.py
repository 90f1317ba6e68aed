"""A workload's settings, from words to the plan and back: policies, notes, and what a saved plan needs."""

import json

import pytest

from jobs.errors import WorkloadError
from orchestrator.binding import rebind
from orchestrator.plan import Plan
from orchestrator.planning import make_plan
from orchestrator.sweep import collect


@pytest.fixture
def trace(tmp_path):
    """Thirty conversations of two turns; every third is 40 blocks longer."""
    path = tmp_path / "trace.jsonl"
    rows = []
    for index in range(30):
        first = [0, *range(1 + 100 * index, 5 + 100 * index + (40 if index % 3 == 0 else 0))]
        for at, ids in ((0, first), (60_000, [*first, 99 + 100 * index])):
            row = {"timestamp": at + index, "input_length": 512 * len(ids), "hash_ids": ids}
            rows.append({**row, "output_length": 30})
    rows.sort(key=lambda row: row["timestamp"])
    path.write_text("\n".join(map(json.dumps, rows)))
    return path


@pytest.fixture
def plan_of(trace):
    def plan_words(*words):
        base = [
            "workload=mooncake",
            f"workload.paths=['{trace}']",
            "drafter=eagle3",
            "model.max_context=8192",
        ]
        return make_plan(collect([*base, "model.max_context=8192", *words]))

    return plan_words


def test_policies_are_part_of_the_plan_and_give_the_same_workload_again(plan_of):
    planned = plan_of(
        "workload.limit=8",
        "workload.max_output_tokens=20",
        "workload.gaps=scaled",
        "workload.gap_scale=0.01",
    )
    ref = planned.plan.workload
    assert (ref.conversations, ref.turns, ref.validity) == (8, 16, "hashed")
    assert ref.options["gap_scale"] == 0.01
    assert {turn.output_tokens for c in planned.workload.conversations for turn in c.turns} == {20}
    assert [c.turns[1].gap for c in planned.workload.conversations] == [0.6] * 8
    again = Plan.from_dict(json.loads(json.dumps(planned.plan.to_dict())))
    assert again == planned.plan
    assert rebind(again) == planned.workload
    assert any("of 30 conversations are used" in note for note in planned.plan.notes)


def test_what_is_dropped_is_counted_and_the_first_is_named(plan_of):
    plan = plan_of("workload.limit=null").plan
    assert (plan.workload.conversations, plan.workload.dropped_count) == (20, 10)
    assert any(
        note.startswith("10 conversations are left out, the first because: trace-1: needs ")
        for note in plan.notes
    )


def test_scaling_is_another_workload(plan_of):
    dropped, scaled = plan_of().plan, plan_of("workload.fit=scale").plan
    assert scaled.workload.conversations == 30
    assert scaled.workload.digest != dropped.workload.digest
    assert scaled.digest != dropped.digest
    assert any("all lengths are scaled by" in note for note in scaled.notes)


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["workload.fit=squeeze"], "choose drop, truncate_oldest or scale"),
        (["workload.output=fixed"], r"set workload\.output_tokens"),
        (["workload.gap_scale=2"], r"set workload\.gaps=scaled"),
        (["workload=builtin", "workload.paths=[]", "workload.fit=scale"], "is text"),
        (["workload=builtin", "workload.paths=[]", "workload.gaps=recorded"], "has none"),
    ],
)
def test_settings_that_contradict_are_refused(plan_of, words, problem):
    with pytest.raises(WorkloadError, match=problem):
        plan_of(*words)
