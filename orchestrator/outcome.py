"""What a sweep came to: its summary and report, written from all the cells that the ledger has."""

from dataclasses import dataclass
from pathlib import Path

from analysis.report import Report, write_report
from analysis.summary import Summary, cell_ratios, summarise
from jobs.result import MEASURED, CellResult
from orchestrator.counts import Counts
from orchestrator.durable import replace_json
from orchestrator.errors import SweepFailedError
from orchestrator.interrupts import Interrupts
from orchestrator.ledger import Ledger
from orchestrator.scribe import Scribe
from orchestrator.tracking import Recorder

SUMMARY = "summary.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepOutcome:
    """What a run of a sweep came to."""

    directory: Path
    """Results folder of the sweep."""
    results: tuple[CellResult, ...]
    """Every cell of the sweep, this run's and earlier ones'."""
    summary: Summary
    report: Report
    """Its files."""
    new: Counts
    """What this run added."""
    engine_starts: int
    """Engines started by this run."""


def sum_up(
    ledger: Ledger, scribe: Scribe, recorder: Recorder, interrupts: Interrupts
) -> tuple[Summary, Report]:
    """Write summary and report, bring the recorder up to date and close it.

    Raises:
        ResultsWriteError: they cannot be written.
        LockLostError: another driver took the sweep over.
        SweepFailedError: not one cell was measured; everything is written.
    """
    results, directory, plan = ledger.results(), ledger.directory, ledger.plan
    ledger.check()
    summary = summarise(results, threshold=plan.threshold, objective=plan.objective)
    scribe.write(lambda: replace_json(directory / SUMMARY, summary.to_dict()), SUMMARY)
    # without pictures: a sweep must not depend on a browser
    report = scribe.write(
        lambda: write_report(directory, plan=plan.to_dict(), results=results, summary=summary), "the report"
    )
    measured = any(result.outcome == MEASURED for result in results)
    with interrupts.held():
        recorder.sync((result, ledger.cell_directory(result.cell)) for result in results)
        recorder.ratios(cell_ratios(results).items())
        recorder.summary(summary)
        recorder.close(report.html, status="FINISHED" if measured else "FAILED")
    if results and not measured:
        first = next(result for result in results if result.outcome != MEASURED)
        message = (
            f"no cell of {plan.sweep} was measured; the first outcome was {first.outcome} "
            f"({first.cause}: {first.reason}). All outcomes are in {report.html}"
        )
        raise SweepFailedError(message)
    return summary, report
