"""Outcomes of cells that nobody could measure."""

from engines.acceptance import Acceptance
from engines.spec import Drafter, EngineConfig, Model
from jobs.cell import failed_result
from jobs.cores import Cores
from jobs.load import LoadLevel
from jobs.result import FAILED, TREATMENT
from jobs.task import BlockTask, CellTask, RunTask
from jobs.workload.tokens import TokenWorkload

CELL = CellTask(cell="c", level=LoadLevel(concurrency=4))
CONFIG = EngineConfig(
    engine="emulator",
    version="1",
    model=Model(name="m"),
    device="emulated",
    drafter=Drafter(method="free", k=3, acceptance=Acceptance(alpha=0.74)),
)
RUN = RunTask(run="r", config=CONFIG, role=TREATMENT, cells=(CELL,), factors={"drafter.k": "3"})
TASK = BlockTask(
    block=1,
    segment=2,
    devices=2,
    engine_cores=1,
    load_cores=1,
    resource="engine_slot",
    runs=(RUN,),
    workload=TokenWorkload(name="w", conversations=(), validity="recorded", tokenizer="t"),
    workload_digest="d",
    seed=0,
    warmup_requests=1,
    ready_seconds=1.0,
    stop_seconds=1.0,
    stall_seconds=1.0,
    cell_seconds=1.0,
)


def test_a_cell_of_a_lost_block_has_a_cause_and_its_pair() -> None:
    result = failed_result(TASK, RUN, CELL, cause="block_lost", reason="the node is gone")
    assert (result.outcome, result.cause, result.reason) == (FAILED, "block_lost", "the node is gone")
    assert (result.block, result.segment, result.concurrency, result.devices) == (1, 2, 4, 2)
    assert result.identity["pair_key"] == CONFIG.baseline().digest
    assert result.emulated
    assert result.synthetic
    assert not result.oversubscribed


def test_a_failed_cell_says_whether_client_and_engine_shared_cores() -> None:
    cores = Cores(engine=(0,), load=(0,), oversubscribed=True)
    assert failed_result(TASK, RUN, CELL, cause="died", reason="x", cores=cores).oversubscribed
