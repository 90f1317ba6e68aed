"""Resume goes by digest: what was changed is a new cell, what was not is never run again."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from orchestrator.ledger import Ledger
from orchestrator.pending import cell_id, pending
from orchestrator.plan import Plan
from tests.orchestrator.conftest import outcomes


def with_config(plan: Plan, **changes: Any) -> Plan:
    """The same plan with a change to every arm's engine configuration."""
    arms = tuple(replace(arm, config=replace(arm.config, **changes)) for arm in plan.arms)
    names = {old.digest: new.digest for old, new in zip(plan.arms, arms, strict=True)}
    blocks = tuple(
        replace(block, runs=tuple(replace(run, arm=names[run.arm]) for run in block.runs))
        for block in plan.blocks
    )
    return replace(plan, arms=arms, blocks=blocks)


def cells(plan: Plan) -> set[str]:
    return {
        cell_id(plan, segment, run, level)
        for segment in pending(plan, [])
        for run in segment.runs
        for level in run.levels
    }


@pytest.mark.parametrize(
    "change",
    [
        lambda plan: with_config(plan, version="2"),
        lambda plan: with_config(plan, flags={"max_num_seqs": 8}),
        lambda plan: replace(plan, workload=replace(plan.workload, digest="other")),
        lambda plan: replace(plan, seed=1),
    ],
    ids=["engine version", "flag", "workload", "seed"],
)
def test_a_change_makes_new_cells_in_a_folder_of_their_own(
    tmp_path: Path, small_plan: Plan, change: Callable[[Plan], Plan]
) -> None:
    with Ledger(tmp_path, small_plan) as ledger:
        for segment in pending(small_plan, []):
            for result in outcomes(small_plan, segment):
                ledger.record(result, {})
    changed = change(small_plan)
    assert cells(changed).isdisjoint(cells(small_plan))
    with Ledger(tmp_path, changed) as ledger:
        assert ledger.directory != tmp_path / small_plan.sweep
        assert len(pending(changed, ledger.results())) == len(changed.blocks)
    with Ledger(tmp_path, small_plan) as ledger:  # and the former plan finds all of its own
        assert pending(small_plan, ledger.results()) == []


def test_where_and_how_it_is_recorded_makes_no_new_cell(tmp_path: Path, small_plan: Plan) -> None:
    with Ledger(tmp_path, small_plan) as ledger:
        (first, second) = outcomes(small_plan, pending(small_plan, [])[0])[:2]
        ledger.record(first, {})
    moved = replace(
        small_plan,
        cluster=replace(small_plan.cluster, address="10.0.0.1:6379"),
        tracking={"uri": "http://127.0.0.1:5000", "experiment": None},
        overrides=("tracking=server",),
    )
    with Ledger(tmp_path, moved) as ledger:
        assert [result.cell for result in ledger.results()] == [first.cell]
        assert "127.0.0.1:5000" in (ledger.directory / "plan.json").read_text(), "`sync` goes where it says"
        ledger.record(second, {})
