"""Rounds: chained, digested, found again; and which blocks confirm a winner."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from analysis.choices import Candidate, Choice, LoadRange
from analysis.rows import Ratio, VerdictRow
from analysis.summary import Summary
from engines.spec import Drafter
from jobs.result import CLOSING, CONFIRMATION, OPENING, TREATMENT
from orchestrator.confirming import confirming_round
from orchestrator.pending import block_task, cell_id, pending
from orchestrator.plan import Plan
from orchestrator.rounds import Round, Rounds
from orchestrator.scheduling import Proposed
from tests.orchestrator.conftest import arm, outcomes


def never(path: Path, reason: str) -> None:
    raise AssertionError((path, reason))


def row(plan: Plan, place: int, level: float, lo: float, verdict: str = "wins") -> VerdictRow:
    arm = plan.arms[place]
    return VerdictRow(
        arm=arm.digest,
        label=arm.label,
        pair=arm.pair_key,
        layout="tp1",
        drafter="ngram",
        k=arm.config.drafter.k,
        axis="concurrency",
        level=level,
        blocks=2,
        verdict=verdict,
        reason="",
        threshold=0.02,
        total=Ratio(value=lo + 0.1, lo=lo, hi=lo + 0.2),
    )


def summary(*rows: VerdictRow) -> Summary:
    return Summary(objective="total", threshold=0.02, rows=rows)


def test_rounds_are_found_again_and_block_indices_go_on(small_plan: Plan, tmp_path: Path) -> None:
    rounds = Rounds(tmp_path, small_plan, set_aside=never)
    assert rounds.blocks == small_plan.blocks
    first = rounds.append(CONFIRMATION, "a first reason", small_plan.blocks[:1])
    second = rounds.append(CONFIRMATION, "a second", small_plan.blocks)
    assert [block.index for block in rounds.blocks] == [0, 1, 2, 3, 4]
    assert [block.round for block in rounds.blocks] == [0, 0, 1, 2, 2]
    assert (first.parent, second.parent) == (small_plan.digest, first.digest)
    again = Rounds(tmp_path, small_plan, set_aside=never)
    assert again.rounds == (first, second)
    assert sorted(path.name for path in (tmp_path / "rounds").iterdir()) == ["0001.json", "0002.json"]


def test_a_round_brings_arms_that_the_plan_does_not_have(small_plan: Plan, tmp_path: Path) -> None:
    longer = arm(Drafter(method="ngram", k=9))
    before = small_plan.digest
    with pytest.raises(KeyError):
        small_plan.arm(longer.digest)
    added = Rounds(tmp_path, small_plan, set_aside=never).append(
        CONFIRMATION, "why", small_plan.blocks[:1], [longer]
    )
    assert small_plan.arm(longer.digest) == longer
    fresh = Plan.from_dict(small_plan.to_dict())
    assert Rounds(tmp_path, fresh, set_aside=never).rounds == (added,)
    assert fresh.arm(longer.digest) == longer
    assert fresh.digest == small_plan.digest == before


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda text: text[:40], "it is no round of a sweep"),
        (lambda text: "[]", "it is no round of a sweep"),
        (lambda text: text.replace('"devices": 1', '"devices": 2'), "does not match its digest"),
    ],
)
def test_a_damaged_round_and_those_after_it_are_set_aside(
    small_plan: Plan, tmp_path: Path, change: Callable[[str], str], reason: str
) -> None:
    rounds = Rounds(tmp_path, small_plan, set_aside=never)
    for _ in range(2):
        rounds.append(CONFIRMATION, "why", small_plan.blocks[:1])
    path = tmp_path / "rounds" / "0001.json"
    path.write_text(change(path.read_text()))
    aside: list[tuple[str, str]] = []
    found = Rounds(tmp_path, small_plan, set_aside=lambda path, why: aside.append((path.name, why)))
    assert found.rounds == ()
    assert [name for name, _ in aside] == ["0001.json", "0002.json"]
    assert reason in aside[0][1]


def test_a_round_of_another_plan_is_set_aside(small_plan: Plan, tmp_path: Path) -> None:
    Rounds(tmp_path, small_plan, set_aside=never).append(CONFIRMATION, "why", small_plan.blocks[:1])
    other = replace(small_plan, seed=1)
    aside: list[str] = []
    assert Rounds(tmp_path, other, set_aside=lambda _, why: aside.append(why)).rounds == ()
    assert aside == ["it does not follow on this plan and the rounds before it"]


def test_a_winner_gets_fresh_blocks_with_its_baseline(small_plan: Plan, tmp_path: Path) -> None:
    plan = replace(small_plan, confirm=2)
    assert plan.digest == small_plan.digest
    found = summary(row(plan, 1, 1.0, 1.2), row(plan, 2, 4.0, 1.3))
    asked = confirming_round(plan, (), found)
    assert asked is not None
    assert asked.reason == "confirms tp1/ngram-k7 at C=4, which wins on total throughput"
    baseline, winner = plan.arms[0].digest, plan.arms[2].digest
    for block in asked.blocks:
        assert [(run.arm, run.role) for run in block.runs] == [
            (baseline, OPENING), (winner, TREATMENT), (baseline, CLOSING),
        ]  # fmt: skip
        assert {level.label for run in block.runs for level in run.levels} == {"c4"}
    rounds = Rounds(tmp_path, plan, set_aside=never)
    added = rounds.append(CONFIRMATION, asked.reason, asked.blocks)
    assert [block.index for block in added.blocks] == [2, 3]
    assert confirming_round(plan, rounds.rounds, found) is None, "it has them"
    more = confirming_round(replace(plan, confirm=5), rounds.rounds, found)
    assert more is not None
    assert len(more.blocks) == 3
    other = confirming_round(plan, rounds.rounds, summary(row(plan, 1, 1.0, 1.2)))
    assert other is not None, "another winner is another question"


def test_a_winner_is_measured_where_it_gains_most_and_where_it_gains_least(small_plan: Plan) -> None:
    plan = replace(small_plan, confirm=2)
    winning = summary(row(plan, 2, 1.0, 1.3), row(plan, 2, 4.0, 1.1))
    own = plan.arms[2]
    candidate = Candidate(
        arm=own.digest,
        label=own.label,
        layout="tp1",
        drafter="ngram",
        k=7,
        baseline=plan.arms[0].digest,
        axis="concurrency",
    )
    choices = tuple(
        Choice(level=each.level, candidate=candidate, reason="", over_baseline=each.total)
        for each in winning.rows
    )
    found = Proposed(ranges=(LoadRange(group="tp1", devices=1, choices=choices),))
    asked = confirming_round(plan, (), winning, found)
    assert asked is not None
    assert asked.reason.startswith("confirms tp1/ngram-k7 at C=1 and, where it gains least, C=4, which wins")
    for run in asked.blocks[0].runs:
        assert [level.label for level in run.levels] == ["c1", "c4"]


def test_nothing_is_confirmed_where_nothing_is_asked_or_nobody_wins(small_plan: Plan) -> None:
    winning = summary(row(small_plan, 1, 1.0, 1.2))
    assert confirming_round(small_plan, (), winning) is None
    plan = replace(small_plan, confirm=2)
    assert confirming_round(plan, (), summary(row(plan, 1, 1.0, 1.2, verdict="undecided"))) is None
    assert confirming_round(plan, (), summary()) is None


def test_a_round_is_pending_until_it_is_measured_and_its_tasks_carry_it(
    small_plan: Plan, tmp_path: Path
) -> None:
    plan = replace(small_plan, confirm=2)
    done = [result for segment in pending(plan, []) for result in outcomes(plan, segment)]
    rounds = Rounds(tmp_path, plan, set_aside=never)
    asked = confirming_round(plan, (), summary(row(plan, 1, 1.0, 1.2)))
    assert asked is not None
    rounds.append(CONFIRMATION, asked.reason, asked.blocks)
    segments = pending(plan, done, blocks=rounds.blocks)
    assert [(segment.block.index, segment.cells) for segment in segments] == [(2, 3), (3, 3)]
    tasks = [block_task(plan, each, workload=None, engine_cores=1, load_cores=1) for each in segments]  # type: ignore[arg-type]  # tokens are not looked at
    assert [task.round for task in tasks] == [1, 1]
    ids = [cell_id(plan, each, run, level) for each in segments for run in each.runs for level in run.levels]
    assert len({*ids, *(result.cell for result in done)}) == len(ids) + len(done)
    measured = [*done, *outcomes(plan, segments[0])]
    (left,) = pending(plan, measured, blocks=rounds.blocks)
    assert left.block.index == 3


def test_a_round_is_plain_json(small_plan: Plan) -> None:
    found = Round(index=1, reason="why", kind=CONFIRMATION, blocks=small_plan.blocks, parent="p")
    assert Round.from_dict(json.loads(json.dumps(found.to_dict()))) == found
    assert found.digest != replace(found, parent="q").digest
    assert found.digest == replace(found, reason="other words").digest
