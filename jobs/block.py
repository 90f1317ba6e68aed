"""One block on its node: the runs of a segment one after another, each on a fresh engine.

`BlockRunner` knows nothing of Ray: the orchestrator makes an actor of it, a test calls it in process. A
failure is an outcome of its cell and never stops the runs after it.
"""

import json
import traceback
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from engines.base import Engine
from engines.errors import EngineError
from engines.registry import engine_named
from jobs.bench import Bench
from jobs.cache_state import FreshEngineNeededError
from jobs.cell import failed_result, measure_cell
from jobs.cores import CoreLease, Cores
from jobs.errors import GpusHeldError
from jobs.fleet import Fleet, visible_devices
from jobs.gpus import GpuMemory
from jobs.lifeline import ends_with_raylet
from jobs.pairing import Pairing
from jobs.replay.files import WORKLOAD_FILE
from jobs.scratch import scratch
from jobs.start import start_attempts
from jobs.task import (
    BlockTask,
    CellReport,
    CellTask,
    EngineReport,
    EngineStopped,
    GpusHeld,
    Report,
    RunTask,
    StepStarted,
)
from jobs.workload import token_file

INTERNAL = "internal"
"""Cause of a cell that an unforeseen error ended, ours or the node's; its traceback is the log tail."""


class BlockRunner:
    """Runs one segment of a block and reports as it goes."""

    def run(self, task: BlockTask) -> Iterator[Report]:
        """Yield a report for each engine start and stop and for each cell, in the order of the task."""
        with (
            ends_with_raylet(),
            CoreLease(engine=task.engine_cores, load=task.load_cores) as lease,
            scratch("specload-block-") as folder,
        ):
            workload_file = folder / WORKLOAD_FILE
            token_file.write(task.workload, workload_file)
            names = visible_devices(task.resource, task.devices)
            block = _Block(
                task=task,
                cores=lease.cores,
                device_names=names,
                memory=GpuMemory(names),
                pairing=Pairing(),
                workload_file=workload_file,
            )
            try:
                for run in task.runs:
                    yield from _Turn(block, run).reports()
                block.memory.check()  # the next block on these devices must not inherit what this one held
            except GpusHeldError as error:
                yield GpusHeld(
                    block=task.block,
                    segment=task.segment,
                    devices=block.device_names,
                    message=str(error),
                )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Block:
    """What the turns of a block share."""

    task: BlockTask
    cores: Cores
    device_names: tuple[str, ...]
    memory: GpuMemory
    pairing: Pairing
    workload_file: Path


class _Turn:
    """One arm's turn in the block."""

    def __init__(self, block: _Block, run: RunTask) -> None:
        self.block = block
        self.task = block.task
        self.run = run
        self.engine: Engine = engine_named(run.config.engine)
        self.engines = 0
        """Fleets made in this turn: each has a name of its own."""
        self.left = list(run.cells)
        """Cells without an outcome."""

    def reports(self) -> Iterator[Report]:
        """Measure every cell, on one engine while it lives; a stateful drafter gets a new one for each."""
        while self.left:
            try:
                yield from self._on_one_engine(1 if self.run.config.drafter.stateful else len(self.left))
            except GpusHeldError:
                raise
            except Exception as error:  # noqa: BLE001  a fault of ours or of the node fails its cell, no more
                reason = f"{type(error).__name__}: {error}"
                yield self._failed(self.left.pop(0), INTERNAL, reason, traceback.format_exc())

    def _on_one_engine(self, count: int) -> Iterator[Report]:
        """Start an engine and measure the next `count` cells on it, fewer if it is lost."""
        with self._fleet() as fleet:
            yield self._step()
            try:
                seconds = yield from self._start(fleet)
            except EngineError as error:
                for cell in self._taken(count):
                    yield self._failed(cell, error.cause, str(error), error.log_tail)
                return
            bench = Bench(
                task=self.task,
                run=self.run,
                fleet=fleet,
                cores=self.block.cores,
                pairing=self.block.pairing,
                start_seconds=seconds,
                workload_file=self.block.workload_file,
            )
            yield from self._cells(bench, count)
            fleet.stop(grace=self.task.stop_seconds)
            yield EngineStopped(run=self._name, files=fleet.files())

    def _cells(self, bench: Bench, count: int) -> Iterator[Report]:
        """Measure the next `count` cells on a ready engine, until it is lost or has seen too much."""
        for number in range(count):
            cell = self.left[0]
            yield self._step(cell)
            try:
                report = measure_cell(bench, cell, fresh=number == 0)
            except FreshEngineNeededError:
                return  # this cell and those after it get an engine that has not seen the workload
            except EngineError as error:  # it died or hangs: the cells after this one need a new one
                lost = bench.fleet.explained(error)
                self.left.pop(0)
                yield self._failed(cell, lost.cause, str(lost), lost.log_tail)
                return
            self.left.pop(0)
            yield report

    def _taken(self, count: int) -> Sequence[CellTask]:
        taken, self.left = self.left[:count], self.left[count:]
        return taken

    def _start(self, fleet: Fleet) -> Generator[Report, None, float]:
        """Start the engines and return the seconds it took."""
        attempts = start_attempts(
            fleet,
            self.block.memory,
            ready_seconds=self.task.ready_seconds,
            stop_seconds=self.task.stop_seconds,
        )
        for attempt in attempts:
            if attempt.error is not None:
                message = str(attempt.error)
                yield self._engine_report(fleet, ready=False, seconds=attempt.seconds, message=message)
                continue
            resolved = json.dumps(dict(fleet.resolved()), indent=1, sort_keys=True, default=str).encode()
            yield self._engine_report(fleet, ready=True, seconds=attempt.seconds, resolved=resolved)
        return attempt.seconds

    @contextmanager
    def _fleet(self) -> Iterator[Fleet]:
        self.engines += 1
        fleet = Fleet(
            self.engine,
            self.run.config,
            name=self._name,
            devices=self.task.devices,
            device_names=self.block.device_names,
            cores=self.block.cores,
            folder=self.block.workload_file.parent,
        )
        try:
            yield fleet
        finally:
            fleet.stop(grace=self.task.stop_seconds)
            fleet.remove_files()
        if fleet.survivors:
            message = (
                f"{fleet.survivors} processes of {self._name} outlived SIGKILL, stuck in a driver perhaps; "
                "their devices and cores are not free"
            )
            raise GpusHeldError(message)

    def _step(self, cell: CellTask | None = None) -> StepStarted:
        return StepStarted(
            block=self.task.block,
            segment=self.task.segment,
            run=self._name,
            arm=self.run.config.digest,
            role=self.run.role,
            cell=None if cell is None else cell.cell,
            load="" if cell is None else cell.level.label,
        )

    def _failed(self, cell: CellTask, cause: str, reason: str, log_tail: str) -> CellReport:
        result = failed_result(
            self.task,
            self.run,
            cell,
            cause=cause,
            reason=reason,
            cores=self.block.cores,
            log_tail=log_tail,
        )
        return CellReport(result=result)

    @property
    def _name(self) -> str:
        return self.run.run if self.engines == 1 else f"{self.run.run}-engine{self.engines}"

    def _engine_report(
        self, fleet: Fleet, *, ready: bool, seconds: float, message: str = "", resolved: bytes | None = None
    ) -> EngineReport:
        return EngineReport(
            run=self._name,
            label=self.run.config.label,
            ready=ready,
            seconds=seconds,
            message=message,
            files=fleet.files() | ({"resolved.json": resolved} if resolved else {}),
        )
