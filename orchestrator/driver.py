"""The driver of a sweep: runs what is left of a plan and is the only one who writes its results."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from analysis.report import write_report
from analysis.summary import Summary, cell_ratios, summarise
from jobs.cell import failed_result
from jobs.result import MEASURED, CellResult
from jobs.task import BlockTask, CellReport, EngineReport, EngineStopped
from jobs.workload.bind import write
from jobs.workload.tokens import TokenWorkload
from orchestrator.errors import SweepFailedError
from orchestrator.interrupts import Interrupts
from orchestrator.ledger import WORKLOAD, Ledger
from orchestrator.pending import Segment, infeasible_cells, pending
from orchestrator.plan import Plan
from orchestrator.pool import BlockEnded, BlockPool
from orchestrator.progress import Progress
from orchestrator.provenance import write_provenance
from orchestrator.tracking import Recorder

LOST_BLOCKS = 1
"""How often what a lost block left undone is tried again, in a new segment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepOutcome:
    """What a run of a sweep came to."""

    directory: Path
    """Results folder of the sweep."""
    results: tuple[CellResult, ...]
    """Every cell of the sweep, this run's and earlier ones'."""
    summary: Summary
    report: Path
    new_cells: int
    """Cells measured by this run."""
    engine_starts: int
    """Engines started by this run."""


def run_sweep(
    plan: Plan,
    workload: TokenWorkload,
    results: Path,
    *,
    recorder: Recorder,
    say: Callable[[str], None],
    retry_failed: bool = False,
) -> SweepOutcome:
    """Run what is left of `plan` under `results`, and bring MLflow and the report up to date.

    Raises:
        PlacementError: the cluster can never hold a block.
        LedgerError: the results folder is foreign, locked or damaged.
        SweepFailedError: nothing was measured at all; the outcomes are recorded.
    """
    with Ledger(results, plan) as ledger:
        if not (ledger.directory / WORKLOAD).exists():
            write(workload, ledger.directory / WORKLOAD)
        write_provenance(ledger.directory)
        return _Sweep(plan, workload, ledger, recorder, say).run(retry_failed=retry_failed)


class _Sweep:
    """One run of a sweep: its ledger, its recorder, and its counts."""

    def __init__(
        self,
        plan: Plan,
        workload: TokenWorkload,
        ledger: Ledger,
        recorder: Recorder,
        say: Callable[[str], None],
    ) -> None:
        self.plan = plan
        self.workload = workload
        self.ledger = ledger
        self.recorder = recorder
        self.say = say
        self.interrupts = Interrupts()
        self.new_cells = 0
        self.engine_starts = 0

    def run(self, *, retry_failed: bool) -> SweepOutcome:
        with self.interrupts:
            try:
                with self.interrupts.held():
                    self.recorder.open(self.plan, self.ledger.directory)
                return self._run(retry_failed=retry_failed)
            except KeyboardInterrupt:
                with self.interrupts.held():
                    self.recorder.close(None, status="KILLED")
                raise

    def _run(self, *, retry_failed: bool) -> SweepOutcome:
        known = self.ledger.results()
        for result in infeasible_cells(self.plan, known):
            self._record(CellReport(result=result))
        segments = pending(self.plan, known, retry_failed=retry_failed)
        if segments:
            self._measure(segments)
        else:
            self.say(f"{self.plan.sweep}: every cell has its outcome; nothing to run")
        with self.interrupts.held():
            return self._finish()

    def _measure(self, segments: Sequence[Segment]) -> None:
        progress = Progress(self.say, cells=sum(segment.cells for segment in segments))
        with BlockPool(self.plan, self.workload) as pool:
            for attempt in range(1 + LOST_BLOCKS):
                lost: list[BlockTask] = []
                for report in pool.reports(segments):
                    progress.report(report)
                    if isinstance(report, EngineReport | EngineStopped):
                        self.engine_starts += isinstance(report, EngineReport)
                        with self.interrupts.held():
                            self.ledger.record_engine(report.run, report.files)
                    elif isinstance(report, CellReport):
                        self._record(report)
                        self.new_cells += 1
                    elif isinstance(report, BlockEnded) and report.error is not None:
                        lost.append(report.task)
                if not lost:
                    return
                segments = pending(self.plan, self.ledger.results())
                if not segments:
                    return
                if attempt == LOST_BLOCKS:
                    for task in lost:
                        self._give_up(task)

    def _give_up(self, task: BlockTask) -> None:
        """Record every cell that a lost block did not come to: a failure is a result, never a hole."""
        recorded = {result.cell for result in self.ledger.results()}
        for run in task.runs:
            for cell in run.cells:
                if cell.cell not in recorded:
                    reason = "the process that ran this block was lost twice (node, memory or a kill)"
                    result = failed_result(task, run, cell, cause="block_lost", reason=reason)
                    self._record(CellReport(result=result))

    def _record(self, report: CellReport) -> None:
        with self.interrupts.held():
            directory = self.ledger.record(report.result, report.files)
            self.recorder.record(report.result, directory)

    def _finish(self) -> SweepOutcome:
        results = self.ledger.results()
        summary = summarise(results, threshold=self.plan.threshold)
        summary_file = self.ledger.directory / "summary.json"
        summary_file.write_text(json.dumps(summary.to_dict(), indent=1, sort_keys=True))
        report = write_report(
            self.ledger.directory, plan=self.plan.to_dict(), results=results, summary=summary
        )
        self.recorder.sync((result, self.ledger.cell_directory(result.cell)) for result in results)
        self.recorder.ratios(cell_ratios(results).items())
        measured = any(result.outcome == MEASURED for result in results)
        self.recorder.close(report, status="FINISHED" if measured else "FAILED")
        if results and not measured:
            first = next(result for result in results if result.outcome != MEASURED)
            message = (
                f"no cell of {self.plan.sweep} was measured; the first outcome was {first.outcome} "
                f"({first.cause}: {first.reason}). All outcomes are in {report}"
            )
            raise SweepFailedError(message)
        return SweepOutcome(
            directory=self.ledger.directory,
            results=tuple(results),
            summary=summary,
            report=report,
            new_cells=self.new_cells,
            engine_starts=self.engine_starts,
        )
