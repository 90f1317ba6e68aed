"""Recording: a workload without replies is completed once by the baseline engine, and frozen in a file."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

from jobs.nouns import counted
from jobs.record import RecorderReady, RecorderSkipped, RecordReport, RecordRunner, RecordTask
from jobs.workload.conversation import Conversation
from jobs.workload.formats import count_unanswered
from jobs.workload.recorded import Recording, RecordingHeader
from orchestrator.errors import RecordingError
from orchestrator.interrupts import Interrupts
from orchestrator.live import span
from orchestrator.placed import ProcessLostError, placed_reports
from orchestrator.placement import Demand
from orchestrator.record_plan import RecordPlan
from orchestrator.recording_file import RecordingFile


def record(plan: RecordPlan, output: Path, *, say: Callable[[str], None]) -> RecordingHeader:
    """Record `plan` into `output`, or go on with it, and return the header of the complete file.

    Raises:
        RecordingError: the file holds something else, or the engine or its process failed; what was recorded
            before stays, and the same call goes on with it.
        PlacementError: the cluster can never hold the engine.
    """
    with Interrupts() as interrupts, RecordingFile(output, plan.header) as file:
        if file.header.complete:
            say(f"{output} is complete already; nothing to record")
            return file.header
        left = tuple(entry for entry in plan.conversations if entry.id not in file.done)
        open_turns = count_unanswered(left)
        say(
            f"{len(left)} of {counted(len(plan.conversations), 'conversation')} to complete, "
            f"{counted(open_turns, 'reply', 'replies')}, {plan.header.concurrency} at a time on "
            f"{plan.config.label}"
        )
        if left:
            lines = _Lines(file, say, total=len(plan.conversations))
            for report in _reports(plan, left, say=say):
                with interrupts.held():
                    lines.take(report)
        with interrupts.held():
            return file.finish([conversation.id for conversation in plan.conversations])


class _Lines:
    """Keeps what a recording's process reports, and says a line for each report."""

    def __init__(self, file: RecordingFile, say: Callable[[str], None], *, total: int) -> None:
        self._file = file
        self._say = say
        self._total = total
        self._before = len(file.done)
        self._ready = time.monotonic()

    def take(self, report: RecordReport) -> None:
        """Take one report.

        Raises:
            RecordingError: it says that the recording stopped.
        """
        if isinstance(report, RecorderReady):
            self._ready = time.monotonic()
            self._say(f"engine ready in {report.seconds:.1f} s")
        elif isinstance(report, Recording):
            self._file.append(report)
            turns = report.conversation.turns
            tokens = sum(turn.output_tokens or 0 for turn in turns)
            shortened = f"; {report.shortened}" if report.shortened else ""
            amount = f"{counted(len(turns), 'turn')}, {counted(tokens, 'token')}"
            self._done(f"{report.conversation.id}: {amount}{shortened}")
        elif isinstance(report, RecorderSkipped):
            self._file.drop(report.conversation, report.reason)
            self._done(f"{report.conversation}: {report.reason}")
        else:
            tail = f"; last lines of the engine's log: {report.log_tail[-2000:]}" if report.log_tail else ""
            message = (
                f"the recording stopped: {report.message}. The same command goes on where it stopped{tail}"
            )
            raise RecordingError(message)

    def _done(self, line: str) -> None:
        done = len(self._file.done)
        pace = (time.monotonic() - self._ready) / (done - self._before)
        left = f"; about {span(pace * (self._total - done))} left" if done < self._total else ""
        self._say(f"[{done}/{self._total}] {line}{left}")


def _reports(
    plan: RecordPlan, left: tuple[Conversation, ...], *, say: Callable[[str], None]
) -> Iterator[RecordReport]:
    """Complete `left` in a process that is placed as a block's is."""

    def task(demand: Demand) -> RecordTask:
        return _task(plan, left, engine_cores=demand.engine_cores, load_cores=demand.load_cores)

    name = f"record-{plan.config.digest[:10]}"
    try:
        yield from placed_reports(
            plan.cluster, plan.config.layout.devices, RecordRunner, task, name=name, say=say
        )
    except ProcessLostError as error:
        message = f"the recording's process was lost ({error}); the same command goes on where it stopped"
        raise RecordingError(message) from error


def _task(
    plan: RecordPlan, left: tuple[Conversation, ...], *, engine_cores: int, load_cores: int
) -> RecordTask:
    identity = plan.header.identity
    return RecordTask(
        config=plan.config,
        conversations=left,
        resource=plan.cluster.resource,
        engine_cores=engine_cores,
        load_cores=load_cores,
        concurrency=plan.header.concurrency,
        max_output_tokens=identity.max_output_tokens,
        temperature=identity.temperature,
        seed=identity.seed,
        ready_seconds=plan.timeouts.ready,
        stop_seconds=plan.timeouts.stop,
        answer_seconds=plan.timeouts.cell,
    )
