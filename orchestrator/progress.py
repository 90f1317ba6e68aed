"""Progress of a sweep: a line for each event, and the `Status` that is shown and written while it runs."""

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

from jobs.result import INFEASIBLE, MEASURED, CellResult
from jobs.task import CellReport, EngineReport, GpusHeld, Report, StepStarted
from orchestrator.counts import Counts
from orchestrator.errors import LockLostError, SweepFailedError
from orchestrator.live import pair_words, span
from orchestrator.pace import Pace
from orchestrator.pending import Segment
from orchestrator.plan import Plan
from orchestrator.secrecy import redacted
from orchestrator.standing import BlockEnded, PoolNote, PoolSnapshot
from orchestrator.status import FINISHED, RUNNING, STOPPED, Status, write_status
from orchestrator.tally import Tally

BEAT_SECONDS = 1.0
"""How often the status is written and shown when nothing happens."""
GAP_SECONDS = 0.2
"""Events that come closer share one status."""


class Progress:
    """Says one line an event, and keeps `status.json` and the display up to date while entered.

    Args:
        plan: the sweep.
        directory: its results folder.
        pace: how long starts and cells take; its owner lets it learn.
        say: prints a line.
        show: shows a status; None where nobody watches a display.
        count: counts the cells that are recorded, and those that would be left if nothing ran any more.
        known: cells that earlier runs recorded.
        check: raises `LockLostError` once another driver writes the sweep's folder; None to write anyway.
    """

    def __init__(
        self,
        plan: Plan,
        directory: Path,
        *,
        pace: Pace,
        say: Callable[[str], None],
        show: Callable[[Status], None] | None = None,
        count: Callable[[], Counts],
        known: Iterable[CellResult] = (),
        check: Callable[[], None] | None = None,
    ) -> None:
        self._directory = directory
        self._check = check
        self._say = say
        self._show = show
        self._tally = Tally(plan, known, count=count, pace=pace)
        self._lock = threading.Lock()
        """Holds the tally: the beat reads what the driver writes."""
        self._news = threading.Event()
        self._over = threading.Event()
        self._snapshot: Callable[[], PoolSnapshot] | None = None
        self._beat = threading.Thread(target=self._run, daemon=True, name="sweep-status")
        self._done = 0
        self._unwritten: str | None = None
        """Why the status was not written the last time."""

    def __enter__(self) -> Self:
        self._beat.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._news.set()
        self._beat.join()
        self.expect(())  # nothing runs any more
        over = not self._tally.left and (error is None or isinstance(error, SweepFailedError))
        self._publish(FINISHED if over else STOPPED)

    def expect(self, segments: Sequence[Segment]) -> None:
        """Take what is to run now, in the place of the segments that were expected before."""
        with self._lock:
            self._tally.expect(segments)
        self._news.set()

    @contextmanager
    def watching(self, snapshot: Callable[[], PoolSnapshot]) -> Iterator[None]:
        """Ask `snapshot` what runs where, from another thread, until the block has ended."""
        self._snapshot = snapshot
        try:
            yield
        finally:
            self._snapshot = None

    def report(self, report: Report | BlockEnded | PoolNote) -> None:
        """Take `report`, and tell a person about it."""
        with self._lock:
            lines = self._take(report)
        for line in lines:
            self._say(redacted(line))
        self._news.set()

    def _take(self, report: Report | BlockEnded | PoolNote) -> list[str]:
        if isinstance(report, StepStarted):
            self._tally.step(report)
        elif isinstance(report, EngineReport):
            return [_engine(report)]
        elif isinstance(report, CellReport):
            return self._cell(report.result)
        elif isinstance(report, BlockEnded):
            self._tally.ended(report.segment)
            if report.error is not None:
                return self._noted(f"block {report.segment.block.index}: {report.error}")
        elif isinstance(report, GpusHeld):
            return self._noted(f"GPUs {', '.join(report.devices)} are set aside: {report.message}")
        elif isinstance(report, PoolNote):
            return self._noted(report.message)
        return []

    def _noted(self, line: str) -> list[str]:
        self._tally.note(redacted(line))
        return [line]

    def _cell(self, result: CellResult) -> list[str]:
        pairs = self._tally.cell(result)
        if result.outcome == INFEASIBLE:
            return []  # known before anything starts: the plan has said so
        self._done += 1
        rate = result.metrics.get("throughput/total_tok_s")
        figure = f", {rate:,.0f} tok/s" if rate else ""
        why = "" if result.outcome == MEASURED else f" ({result.cause}: {result.reason})"
        left = self._tally.seconds_left(self._pool())
        rest = "" if left is None else f"; about {span(left)} left"
        line = (
            f"[{self._done}/{self._done + self._tally.left}] block {result.block} {result.role} "
            f"{self._tally.label(result)} {result.load}: {result.outcome}{figure}{why}{rest}"
        )
        return [line, *(f"pair {pair_words(pair)}" for pair in pairs)]

    def _pool(self) -> PoolSnapshot | None:
        snapshot = self._snapshot  # the driver may take it away meanwhile
        return None if snapshot is None else snapshot()

    def _run(self) -> None:
        while not self._over.is_set():
            self._publish(RUNNING)
            self._news.wait(BEAT_SECONDS)
            self._over.wait(GAP_SECONDS)
            self._news.clear()

    def _publish(self, state: str) -> None:
        pool = self._pool()
        with self._lock:
            status = self._tally.status(state, pool)
        try:
            if self._check is not None:
                self._check()
            write_status(self._directory, status)
            self._unwritten = None
        except LockLostError:
            pass  # the status is another driver's now; this one learns it at its next write of a result
        except OSError as error:
            # the sweep does without; its results have a say of their own when the disk is full
            if self._unwritten is None:
                self._say(f"the sweep's status cannot be written ({error.strerror}); it goes on without")
            self._unwritten = str(error)
        if self._show is not None:
            self._show(status)


def _engine(report: EngineReport) -> str:
    if report.ready:
        return f"engine {report.run}: ready in {report.seconds:.1f} s"
    return f"engine {report.run}: failed: {report.message.splitlines()[0]}"
