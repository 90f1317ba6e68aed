"""The driver of a sweep: runs what is left of a plan and is the only one who writes its results."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from analysis.summary import summarise
from jobs.block import BlockRunner
from jobs.cell import failed_result
from jobs.errors import WorkloadError
from jobs.nouns import are, counted
from jobs.result import CONFIRMATION, SEARCH, CellResult
from jobs.task import CellReport, EngineReport, EngineStopped
from jobs.workload.bind import digest_of, read, write
from jobs.workload.tokens import TokenWorkload
from orchestrator.budget import Budget, budget_words
from orchestrator.confirming import Proposal, confirming_round
from orchestrator.counts import Counts, RunningCounts
from orchestrator.errors import LockLostError, PlacementError
from orchestrator.estimate import read_pace
from orchestrator.interrupts import Interrupted, Interrupts
from orchestrator.ledger import WORKLOAD, Ledger
from orchestrator.outcome import SweepOutcome, sum_up
from orchestrator.pending import Segment, infeasible_cells, pending
from orchestrator.plan import Block, Plan
from orchestrator.pool import BlockPool
from orchestrator.progress import Progress
from orchestrator.provenance import write_provenance
from orchestrator.retries import BLOCK_RETRIES, worth_another_try
from orchestrator.rounds import Rounds
from orchestrator.scheduling import proposed
from orchestrator.scribe import Scribe
from orchestrator.searching import search_round, search_words
from orchestrator.standing import BlockEnded
from orchestrator.status import Status
from orchestrator.tracking import Recorder
from orchestrator.tries import asked_again


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What a sweep runs with, beside what it measures."""

    recorder: Recorder
    """The MLflow view."""
    say: Callable[[str], None]
    """Shows a line to a person."""
    show: Callable[[Status], None] | None = None
    """Shows how the sweep stands, about once a second; None where nobody watches a display."""
    runner: type = BlockRunner
    """Class whose `run(task)` yields a block's reports on its node."""


def run_sweep(
    plan: Plan,
    workload: TokenWorkload,
    results: Path,
    *,
    recorder: Recorder,
    say: Callable[[str], None],
    show: Callable[[Status], None] | None = None,
    retry: Sequence[str] = (),
    take_over: bool = False,
    runner: type = BlockRunner,
) -> SweepOutcome:
    """Run what is left of `plan` under `results`, and bring MLflow and the report up to date.

    Args:
        plan: what to measure.
        workload: its frozen tokens.
        results: folder that keeps the sweeps.
        recorder: the MLflow view.
        say: shows a line to a person.
        show: shows how the sweep stands, about once a second, from a thread of its own.
        retry: outcomes (`failed`, `invalid`) of cells to measure again, whatever their cause.
        take_over: take the sweep over from a driver on another machine that is dead.
        runner: class whose `run(task)` yields a block's reports on its node.

    Raises:
        PlacementError: the cluster can never hold a block, or what is left of one.
        LedgerError: the results folder is foreign, locked, taken over, or cannot be written.
        SweepFailedError: nothing was measured at all; the outcomes are recorded.
        Interrupted: a signal stopped it; the message says what is left.
    """
    around = Surroundings(recorder=recorder, say=say, show=show, runner=runner)
    with Interrupts() as interrupts, Ledger(results, plan, take_over=take_over) as ledger:
        return _Sweep(ledger, workload, around, interrupts).run(retry=retry)


class _Sweep:
    """One run of a sweep: its ledger, its recorder, and its counts."""

    def __init__(
        self, ledger: Ledger, workload: TokenWorkload, around: Surroundings, interrupts: Interrupts
    ) -> None:
        self.plan: Plan = ledger.plan
        self.ledger = ledger
        self.workload = workload
        self.around = around
        self.recorder = around.recorder
        self.interrupts = interrupts
        self.scribe = Scribe(ledger, around.recorder, interrupts, around.say)
        self.rounds = Rounds(ledger.directory, self.plan, set_aside=ledger.set_aside)
        self.asked: frozenset[str] = frozenset()
        """Cells that the user asked to have measured again; the ledger forgets each when that is done."""
        self.counts = RunningCounts(self._counts_in)
        self._count_all()
        self.pace = read_pace(ledger.directory.parent, self.plan)
        self.progress = Progress(
            self.plan,
            ledger.directory,
            pace=self.pace,
            say=around.say,
            show=around.show,
            known=ledger.results(),
            count=self.counts.total,
            check=ledger.check,
        )
        spent = [*ledger.results(), *ledger.earlier()]
        self.budget = Budget(self.plan.budget, pace=self.pace, results=spent)
        self.cuts: Counter[tuple[int, str]] = Counter()
        """How often each block ended before its time, by cause."""
        self.new: list[CellResult] = []
        """Outcomes of this run."""
        self.engine_starts = 0

    def run(self, *, retry: Sequence[str]) -> SweepOutcome:
        self.scribe.write(self._prepare, "the sweep's folder")
        for moved in self.ledger.aside:
            self.around.say(str(moved))
        try:
            with self.interrupts.held():
                self.recorder.open(self.plan, self.ledger.directory)
            with self.progress:
                return self._run(retry=retry)
        except LockLostError:
            raise  # MLflow has another writer now, too
        except KeyboardInterrupt as error:
            stop = self.interrupts.told(error)
            with self.interrupts.held():
                self.recorder.close(None, status="KILLED")
            raise Interrupted(stop.number, self._left_by(stop)) from None
        except BaseException:
            with self.interrupts.held():
                self.recorder.close(None, status="FAILED")
            raise

    def _prepare(self) -> None:
        """Write what describes the sweep, where it is missing or damaged."""
        path = self.ledger.directory / WORKLOAD
        if path.exists():
            try:
                found = digest_of(read(path))
            except WorkloadError:
                found = ""
            if found != self.plan.workload.digest:
                self.ledger.set_aside(path, "it is truncated, or another workload than the plan's")
        if not path.exists():
            staging = path.with_name(f".{WORKLOAD}.part")
            write(self.workload, staging)
            staging.replace(path)
        write_provenance(self.ledger.directory)

    def _run(self, *, retry: Sequence[str]) -> SweepOutcome:
        known = self.ledger.results()
        for result in infeasible_cells(self.plan, known):
            self._record(CellReport(result=result))
        self.asked = frozenset(asked_again(known, retry))
        if self.asked:
            self._count_all()
        segments = self._pending() or self._next_round()
        try:
            if segments:
                self._measure(segments)
            else:
                self.around.say(f"{self.plan.sweep}: every cell has its outcome; nothing to run")
        except PlacementError:
            if self.new:  # nodes left, and what is left fits none: report what was measured
                self._finish()
            raise
        for line in search_words(self.plan, self.rounds.rounds, self.ledger.results()):
            self.around.say(line)
        if self.plan.budget is not None and self.budget.left_out:
            self.around.say(budget_words(self.budget, device_hours=self.plan.budget, unit=self.plan.unit))
        elif self.plan.confirm and not self.rounds.of(CONFIRMATION):
            self.around.say("no arm wins, so there is none to confirm in fresh blocks (design.confirm)")
        return self._finish()

    def _pending(self) -> list[Segment]:
        """Return what is left to run: all that the same command would run if nothing ran any more."""
        return self._left_in(self.rounds.blocks, self.ledger.results(), self.ledger.earlier())

    def _left_in(
        self, blocks: Sequence[Block], results: Sequence[CellResult], earlier: Sequence[CellResult]
    ) -> list[Segment]:
        again = worth_another_try(results, earlier) | self.asked
        return pending(self.plan, results, blocks=blocks, again=again)

    def _counts_in(self, block: int) -> Counts:
        """Count a block as `_pending` looks at it."""
        results = self.ledger.results_in(block)
        earlier = [result for result in self.ledger.earlier() if result.block == block]
        own = [each for each in self.rounds.blocks if each.index == block]
        return Counts.of(results, self._left_in(own, results, earlier))

    def _count_all(self) -> None:
        indices = {block.index for block in self.rounds.blocks}
        for block in indices.union(result.block for result in self.ledger.results()):
            self.counts.renew(block)

    def _next_round(self) -> list[Segment]:
        """Append the round that the results ask for, and return its segments; none if they ask for none."""
        if self.budget.left_out:
            return []
        results = self.ledger.results()
        kind, asked = SEARCH, search_round(self.plan, self.rounds.rounds, results)
        if asked is None:
            kind, asked = CONFIRMATION, self._confirming(results)
        if asked is None:
            return []
        proposal = asked
        added = self.scribe.write(
            lambda: self.rounds.append(kind, proposal.reason, proposal.blocks, proposal.arms), "a round"
        )
        for block in added.blocks:
            self.counts.renew(block.index)
        blocks = counted(len(added.blocks), "fresh block")
        self.around.say(f"round {added.index} {added.reason}: {blocks}")
        return pending(self.plan, results, blocks=added.blocks)

    def _confirming(self, results: list[CellResult]) -> Proposal | None:
        """Return the round that measures the winner again; None where none wins, or none is to be."""
        if not self.plan.confirm:
            return None
        summary = summarise(results, threshold=self.plan.threshold, objective=self.plan.objective)
        return confirming_round(self.plan, self.rounds.rounds, summary, proposed(self.plan, results))

    def _measure(self, segments: Sequence[Segment]) -> None:
        """Run `segments`, and in new ones what is worth another try."""
        with (
            BlockPool(
                self.plan, self.workload, runner=self.around.runner, expected=self.pace.seconds
            ) as pool,
            self.progress.watching(pool.snapshot),
        ):
            while segments:
                cut = self._play(pool, segments)
                results = self.ledger.results()
                again = worth_another_try(results, self.ledger.earlier())
                blocks = cut | {result.block for result in results if result.cell in again}
                dear = {segment.block.index for segment in self.budget.left_out}
                segments = [each for each in self._pending() if each.block.index in blocks - dear]
                segments = segments or self._next_round()

    def _play(self, pool: BlockPool, segments: Sequence[Segment]) -> set[int]:
        """Run `segments`, and return the blocks of which something is left that can be tried again."""
        self.progress.expect(segments)
        cut: set[int] = set()
        for report in pool.reports(segments, admit=self.budget.admit):
            if isinstance(report, CellReport):
                self._record(report)
                self.new.append(report.result)
                continue
            self.progress.report(report)
            if isinstance(report, EngineReport | EngineStopped):
                self.engine_starts += isinstance(report, EngineReport)
                self.scribe.engine(report)
            elif isinstance(report, BlockEnded):
                self.budget.charge(report.segment, report.seconds)
                if report.cause is None:
                    continue
                times = self._cut(report, report.cause)
                if times <= BLOCK_RETRIES[report.cause]:
                    cut.add(report.task.block)
                else:
                    self._give_up(report, report.cause, times)
        return cut

    def _cut(self, ended: BlockEnded, cause: str) -> int:
        """Count a block that ended before its time; return how often it has for this cause."""
        key = (ended.task.block, cause)
        self.cuts[key] += 1
        return self.cuts[key]

    def _give_up(self, ended: BlockEnded, cause: str, times: int) -> None:
        """Record every cell that a block did not come to: a failure is a result, never a hole."""
        recorded = {result.cell for result in self.ledger.results()}
        reason = f"this block ended before its time {times} times; the last time: {ended.error}"
        for run in ended.task.runs:
            for cell in run.cells:
                if cell.cell not in recorded:
                    result = failed_result(ended.task, run, cell, cause=cause, reason=reason)
                    self._record(CellReport(result=result))
                    self.new.append(result)

    def _record(self, report: CellReport) -> None:
        result = self.scribe.cell(report)
        self.counts.renew(result.block)
        self.budget.observe(result)
        self.progress.report(report)

    def _left_by(self, stop: Interrupted) -> str:
        """Say what a signal left, for people."""
        self._count_all()  # the signal may have come between a record and its count
        counts = self.counts.total()
        return (
            f"{self.plan.sweep} was stopped by {stop.signal}. What is recorded stays ({counts.words}); "
            f"{counted(counts.left, 'cell')} {are(counts.left)} left: those that were being measured were "
            "cancelled, and a block that was cut short measures its baselines anew. Engines are stopped and "
            "devices free. The same command goes on where it stopped"
        )

    def _finish(self) -> SweepOutcome:
        summary, report = sum_up(self.ledger, self.scribe, self.recorder, self.interrupts)
        return SweepOutcome(
            directory=self.ledger.directory,
            results=tuple(self.ledger.results()),
            summary=summary,
            report=report,
            new=Counts.of(self.new),
            engine_starts=self.engine_starts,
        )
