"""A baseline with matched KV on real emulator processes: it gets what the drafter leaves."""

import json
from dataclasses import replace

import pytest

from engines.base import KVCapacity
from engines.spec import Drafter, EngineConfig
from jobs.block import BlockRunner
from jobs.gates.kv import kv_gate
from jobs.result import FAILED, TREATMENT
from jobs.task import CellReport, EngineReport, EngineStopped, Report, RunTask
from tests.jobs.test_cell_emulated import CONFIG, run_task, task
from tests.lateness import broken

EAGLE = replace(CONFIG, drafter=Drafter(method="eagle3", k=3))


def matched_run(config: EngineConfig) -> RunTask:
    return replace(run_task(config.matched_baseline(), 2, role=TREATMENT), kv_of=config)


def engines(reports: list[Report]) -> dict[str, EngineReport]:
    return {report.run: report for report in reports if isinstance(report, EngineReport)}


def test_the_arm_is_asked_where_it_has_not_run_yet() -> None:
    reports = list(BlockRunner().run(task(matched_run(EAGLE))))
    (cell,) = (report.result for report in reports if isinstance(report, CellReport))
    asked, clamped = engines(reports).values()
    assert (asked.run, asked.label) == ("treatment-none-asked", "tp1/eagle3-k3")
    assert [report.run for report in reports if isinstance(report, EngineStopped)] == [asked.run, clamped.run]
    (left,), (got,) = (json.loads(report.files["capacity.json"]) for report in (asked, clamped))
    assert left == got
    assert cell.metrics["kv/capacity_tokens"] == left["tokens"] == left["blocks"] * 16
    assert {gate.name: gate.passed for gate in cell.gates}["kv_matched"] is True
    assert broken(cell) == {}
    assert (cell.counterfactual, cell.drafter, cell.k) == ("kv_matched", "none", 0)
    assert cell.identity["kv_of"] == EAGLE.digest
    assert cell.identity["pair_key"] == CONFIG.digest


def test_an_arm_that_does_not_start_leaves_nothing_to_match() -> None:
    broken = replace(EAGLE, flags={**EAGLE.flags, "fail": {"at": "oom_start", "k": 3}})
    reports = list(BlockRunner().run(task(matched_run(broken))))
    (cell,) = (report.result for report in reports if isinstance(report, CellReport))
    assert (cell.outcome, cell.cause) == (FAILED, "out_of_memory")
    assert {report.label for report in engines(reports).values()} == {"tp1/eagle3-k3"}


@pytest.mark.parametrize(("found", "passed"), [(10_000, True), (10_050, True), (12_000, False), (None, None)])
def test_the_gate_knows_another_cache(found: int | None, passed: bool | None) -> None:
    wanted = KVCapacity(tokens=10_000, block_size=16, blocks=625)
    gate = kv_gate(EAGLE.matched_baseline(), wanted, KVCapacity(tokens=found, block_size=16))
    assert (gate.name, gate.passed) == ("kv_matched", passed)
    assert "10000 are left beside eagle3-k3" in gate.message
