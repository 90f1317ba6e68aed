"""Writing down what blocks report: into the ledger first, then into its views, on a disk that may fail."""

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import TypeVar

from jobs.result import FAILED, INVALID, MEASURED, CellResult
from jobs.task import CellReport, EngineReport, EngineStopped
from orchestrator.cleaning import cleaned_files, cleaned_result
from orchestrator.counts import Counts
from orchestrator.errors import ResultsWriteError
from orchestrator.interrupts import Interrupts
from orchestrator.ledger import Ledger
from orchestrator.tracking import Recorder

DELAYS = (1.0, 2.0, 4.0, 8.0)
"""Seconds before each new try of a write that failed: a full disk is often emptied by whoever filled it."""

T = TypeVar("T")


class Scribe:
    """The only hand that writes a sweep's results while it runs.

    A signal waits for a write that has begun. A write that fails is tried again while what it holds stays in
    memory; blocks go on meanwhile, and their reports wait.
    """

    def __init__(
        self, ledger: Ledger, recorder: Recorder, interrupts: Interrupts, say: Callable[[str], None]
    ) -> None:
        self._ledger = ledger
        self._recorder = recorder
        self._interrupts = interrupts
        self._say = say

    def cell(self, report: CellReport) -> CellResult:
        """Record a cell, and return it as it was recorded.

        Raises:
            ResultsWriteError: it cannot be written, and this was tried often enough.
            LockLostError: another driver took the sweep over.
        """
        result, files = cleaned_result(report.result), cleaned_files(report.files)
        former = self._ledger.last_try(result)
        if former is not None:
            result = replace(result, caveats=(*result.caveats, _told(former)))
        recorded = self.write(lambda: self._ledger.record(result, files), f"cell {result.cell}")
        with self._interrupts.held():
            self._recorder.record(recorded.result, recorded.directory)
        return recorded.result

    def engine(self, report: EngineReport | EngineStopped) -> None:
        """Keep the files of an engine; the same errors as `cell`."""
        files = cleaned_files(report.files)
        self.write(lambda: self._ledger.record_engine(report.run, files), f"engine {report.run}")

    def write(self, action: Callable[[], T], what: str) -> T:
        """Do `action`, which writes `what` whole or not at all, again and again if need be.

        Raises:
            ResultsWriteError: the last try failed too.
        """
        for delay in (*DELAYS, None):
            try:
                with self._interrupts.held():
                    return action()
            except OSError as error:
                if delay is None:
                    raise _given_up(self._ledger, what, error) from error
                with suppress(OSError):  # standard output may lie on the same disk
                    self._say(f"{what} cannot be written ({error.strerror}); next try in {delay:g} s")
            time.sleep(delay)
        raise AssertionError


def _told(former: CellResult) -> str:
    """Return the caveat of a cell that was tried before."""
    what = {
        FAILED: f"failed ({former.cause})",
        INVALID: f"was invalid ({former.cause})",
        MEASURED: "had no baseline that counts",
    }[former.outcome]
    return f"an earlier try of this cell {what} in segment {former.segment}"


def _given_up(ledger: Ledger, what: str, error: OSError) -> ResultsWriteError:
    done = Counts.of(ledger.results())
    message = (
        f"{what} cannot be written to {ledger.directory} ({error.strerror}), after {len(DELAYS) + 1} tries "
        f"in {sum(DELAYS):g} s. The sweep stops and its engines with it; what is recorded stays "
        f"({done.words}), nothing half-written is counted. Make room or make the folder writable: the same "
        "command goes on where it stopped"
    )
    return ResultsWriteError(message)
