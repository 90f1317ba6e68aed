"""Progress of a sweep as plain lines: what ended, how it went, how much is left."""

import time
from collections.abc import Callable

from jobs.result import MEASURED
from jobs.task import CellReport, EngineReport, Report
from orchestrator.pool import BlockEnded


class Progress:
    """Says one line a report."""

    def __init__(self, say: Callable[[str], None], *, cells: int) -> None:
        self._say = say
        self._cells = cells
        self._done = 0
        self._started = time.monotonic()

    def report(self, report: Report | BlockEnded) -> None:
        """Tell a person about `report`."""
        if isinstance(report, EngineReport):
            self._engine(report)
        elif isinstance(report, CellReport):
            self._cell(report)
        elif isinstance(report, BlockEnded) and report.error is not None:
            self._say(f"block {report.segment.block.index}: {report.error}")

    def _engine(self, report: EngineReport) -> None:
        how = (
            f"ready in {report.seconds:.1f} s"
            if report.ready
            else f"failed: {report.message.splitlines()[0]}"
        )
        self._say(f"engine {report.run}: {how}")

    def _cell(self, report: CellReport) -> None:
        self._done += 1
        result = report.result
        rate = result.metrics.get("throughput/total_tok_s")
        figure = f", {rate:,.0f} tok/s" if rate else ""
        why = "" if result.outcome == MEASURED else f" ({result.cause}: {result.reason})"
        left = (time.monotonic() - self._started) / self._done * max(0, self._cells - self._done)
        self._say(
            f"[{self._done}/{self._cells}] block {result.block} {result.role} {result.arm_label} "
            f"{result.load}: {result.outcome}{figure}{why}; about {left:.0f} s left"
        )
