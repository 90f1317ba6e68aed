"""Real vLLM: a drafter that is loaded and never asked, then the baseline with the KV cache it leaves."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from engines.spec import Drafter, EngineConfig
from jobs.block import BlockRunner
from jobs.load import LoadLevel
from jobs.result import TREATMENT, CellResult
from jobs.task import BlockTask, CellReport, CellTask, EngineReport, Report, RunTask
from tests.lateness import broken
from tests.real_engine.test_cache_gate import BLOCK, conversations

pytestmark = [pytest.mark.real_engine, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def reports(tiny: EngineConfig, tiny_models: Path) -> Sequence[Report]:
    drafter = Drafter(method="draft_model", k=3, model=str(tiny_models / "draft60"), loaded_only=True)
    loaded = replace(tiny, drafter=drafter)

    def run(config: EngineConfig, kv_of: EngineConfig | None = None) -> RunTask:
        cell = CellTask(cell=config.drafter.method, level=LoadLevel(concurrency=2))
        return RunTask(run=config.drafter.method, config=config, role=TREATMENT, cells=(cell,), kv_of=kv_of)

    task = BlockTask(
        block=0,
        segment=0,
        devices=1,
        engine_cores=1,
        load_cores=1,
        resource="engine_slot",
        runs=(run(loaded), run(loaded.matched_baseline(), kv_of=loaded)),
        workload=conversations(),
        workload_digest="d",
        seed=0,
        warmup_requests=1,
        warmup_rounds_max=1,
        ready_seconds=300.0,
        stop_seconds=20.0,
        stall_seconds=120.0,
        cell_seconds=600.0,
    )
    return list(BlockRunner().run(task))


@pytest.fixture
def cells(reports: Sequence[Report]) -> tuple[CellResult, CellResult]:
    loaded, matched = (report.result for report in reports if isinstance(report, CellReport))
    return loaded, matched


def test_a_loaded_drafter_serves_and_never_drafts(cells: tuple[CellResult, CellResult]) -> None:
    loaded, _ = cells
    assert broken(loaded) == {}
    assert (loaded.counterfactual, loaded.k) == ("loaded_only", 0)
    assert loaded.metrics["spec/mal"] == 1.0
    assert loaded.metrics["spec/tokens_per_step"] == pytest.approx(1.0)


def test_a_matched_baseline_has_the_blocks_that_the_drafter_leaves(
    cells: tuple[CellResult, CellResult], reports: Sequence[Report], tiny: EngineConfig
) -> None:
    loaded, matched = cells
    assert broken(matched) == {}
    assert matched.metrics["kv/blocks"] == loaded.metrics["kv/blocks"]
    assert matched.metrics["kv/capacity_tokens"] == loaded.metrics["kv/capacity_tokens"]
    capacities = [
        json.loads(report.files["capacity.json"]) for report in reports if isinstance(report, EngineReport)
    ]
    assert capacities[0] == capacities[1]
    # A token's keys and values: 2 x 2 heads x 64 x 4 bytes, in four layers of the target and one of the draft
    token = 2 * 2 * 64 * 4 * (4 + 1)
    blocks = int(tiny.flags["kv_cache_memory_bytes"]) // (token * BLOCK)
    assert loaded.metrics["kv/blocks"] == blocks
    assert loaded.metrics["kv/capacity_tokens"] == blocks * BLOCK
