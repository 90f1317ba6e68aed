"""A block whose devices do not come free, and one that meets an error nobody foresaw."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pynvml
import pytest

from engines.errors import EngineOutOfMemoryError
from jobs import block, gpus
from jobs.block import BlockRunner
from jobs.task import BlockTask, CellReport, GpusHeld, Report
from tests.jobs.test_cell_emulated import CONFIG, run_task, task

Made = Callable[..., BlockTask]


def cells(reports: list[Report]) -> list[tuple[str, str | None]]:
    return [(report.result.cell, report.result.cause) for report in reports if isinstance(report, CellReport)]


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """One GPU whose memory in use (MiB) the test sets."""
    used = {"mib": 100}
    functions: dict[str, Any] = {
        "nvmlInit": lambda: None,
        "nvmlShutdown": lambda: None,
        "nvmlDeviceGetHandleByIndex": lambda index: index,
        "nvmlDeviceGetMemoryInfo": lambda handle: SimpleNamespace(used=used["mib"] * 2**20),
    }
    for name, function in functions.items():
        monkeypatch.setattr(pynvml, name, function)
    monkeypatch.setattr(gpus, "MEMORY_SECONDS", 0.3)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3")
    return used


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch, memory: dict[str, int]) -> None:
    """Cells that cost nothing: their engines are real, and each leaves memory behind."""

    def measure(bench: Any, cell: Any, *, fresh: bool) -> CellReport:
        memory["mib"] = 9000
        result = block.failed_result(bench.task, bench.run, cell, cause="none", reason="")
        return CellReport(result=result)

    monkeypatch.setattr(block, "measure_cell", measure)


@pytest.mark.usefixtures("measured")
@pytest.mark.parametrize("runs", [1, 2])
def test_gpus_that_keep_a_stopped_engines_memory_end_the_block(runs: int) -> None:
    """After its last engine too: the next block on them would take the higher level for theirs."""
    roles = ("opening", "closing")[:runs]
    whole = task(*(run_task(CONFIG, 1, role=role) for role in roles), resource="GPU")
    reports = list(BlockRunner().run(whole))
    assert cells(reports) == [("opening-none-0-c1", "none")]
    last = reports[-1]
    assert isinstance(last, GpusHeld)
    assert last.devices == ("3",)
    assert "GPUs 3 still hold 9000 MiB" in last.message
    assert "found them at 100 MiB" in last.message


def test_an_unforeseen_error_fails_its_cell_with_its_traceback_and_the_next_is_measured(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def measure(bench: Any, cell: Any, *, fresh: bool) -> CellReport:
        if cell.level.concurrency == 1:
            raise OSError(28, "No space left on device")
        if cell.level.concurrency == 2:
            message = "ended while in use"
            raise EngineOutOfMemoryError(message, "CUDA out of memory")
        assert fresh, "an engine of its own after the one that was lost"
        return CellReport(result=block.failed_result(bench.task, bench.run, cell, cause="none", reason=""))

    monkeypatch.setattr(block, "measure_cell", measure)
    reports = list(BlockRunner().run(task(run_task(CONFIG, 1, 2, 3))))
    assert [cause for _, cause in cells(reports)] == ["internal", "out_of_memory", "none"]
    first, second, _ = (report.result for report in reports if isinstance(report, CellReport))
    assert first.reason == "OSError: [Errno 28] No space left on device"
    assert "Traceback" in first.log_tail
    assert second.log_tail == "CUDA out of memory"
