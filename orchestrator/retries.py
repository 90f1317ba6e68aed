"""What is tried again by itself, and how often: one small budget a cause.

A try costs an engine start and a baseline of its own, so a cause is in this table only where the same words
can end better the next time. What is not in it is a finding: out of memory at a layout or a load, a refused
flag, a missing model, a gate that failed. A start that fails in passing (port taken, not ready in time, a
wrong server) is tried once more at once, on the node (`jobs/start.py`), and then is an outcome too.
"""

from collections import Counter
from collections.abc import Iterable

from jobs.result import FAILED, TREATMENT, CellResult
from orchestrator.standing import BLOCK_LOST, GPUS_HELD, NODE_LOST

RETRIES = {
    "died": 1,  # a fault of driver, hardware or neighbour passes; an engine that dies twice has a defect
    "hung": 1,  # the same: the second time it is the engine's answer to this load
    "internal": 1,  # a defect of ours; one that shows every time is reported as such
    "load_process": 2,  # killed from outside, for instance by the kernel: says nothing about the engine
}
"""Cause of a cell's failure -> how often the cell is tried again."""
BLOCK_RETRIES = {
    BLOCK_LOST: 1,  # a worker that is killed twice, by the kernel for instance, will be so again
    NODE_LOST: 3,  # a cluster that is preempted loses one after the other, and the block is not to blame
    GPUS_HELD: 2,  # those devices are kept from everybody, and others are tried
}
"""Cause of a block's end before its time -> how often what is left of it is tried again."""


def worth_another_try(results: Iterable[CellResult], earlier: Iterable[CellResult]) -> set[str]:
    """Return the ids of the failed treatments whose cause has a retry left.

    A baseline that failed is not tried again by itself: each new segment of its block has baselines.

    Args:
        results: the last outcome of every cell.
        earlier: outcomes that a later try replaced.
    """
    spent = Counter(_try(result) for result in earlier)
    return {
        result.cell
        for result in results
        if result.outcome == FAILED
        and result.role == TREATMENT
        and spent[_try(result)] < RETRIES.get(result.cause or "", 0)
    }


def _try(result: CellResult) -> tuple[int, int, str, str, str | None]:
    return (result.round, result.block, result.arm, result.load, result.cause)
