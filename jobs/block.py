"""One block on its node: the runs of a segment one after another, each on a fresh engine.

`BlockRunner` knows nothing of Ray: the orchestrator makes an actor of it, a test calls it in process. A
failure is an outcome of its cell and never stops the runs after it.
"""

import json
import tempfile
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
from jobs.fleet import Fleet, visible_devices
from jobs.gpus import GpuMemory
from jobs.pairing import Pairing
from jobs.replay.files import WORKLOAD_FILE
from jobs.start import start_attempts
from jobs.task import (
    BlockTask,
    CellReport,
    CellTask,
    EngineReport,
    EngineStopped,
    Report,
    RunTask,
    StepStarted,
)
from jobs.workload import token_file


class BlockRunner:
    """Runs one segment of a block and reports as it goes."""

    def run(self, task: BlockTask) -> Iterator[Report]:
        """Yield a report for each engine start and stop and for each cell, in the order of the task."""
        with (
            CoreLease(engine=task.engine_cores, load=task.load_cores) as lease,
            tempfile.TemporaryDirectory(prefix="specload-block-") as folder,
        ):
            workload_file = Path(folder) / WORKLOAD_FILE
            token_file.write(task.workload, workload_file)
            block = _Block(
                task=task,
                cores=lease.cores,
                memory=GpuMemory(visible_devices(task.resource, task.devices)),
                pairing=Pairing(),
                workload_file=workload_file,
            )
            for run in task.runs:
                yield from _Turn(block, run).reports()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Block:
    """What the turns of a block share."""

    task: BlockTask
    cores: Cores
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

    def reports(self) -> Iterator[Report]:
        """Measure every cell, on one engine while it lives; a stateful drafter gets a new one for each."""
        left = self.run.cells
        while left:
            share = left[:1] if self.run.config.drafter.stateful else left
            done = yield from self._on_one_engine(share)
            left = left[done:]

    def _on_one_engine(self, cells: Sequence[CellTask]) -> Generator[Report, None, int]:
        """Start an engine and measure `cells` until it is lost; return how many have their outcome."""
        with self._fleet() as fleet:
            yield self._step()
            try:
                seconds = yield from self._start(fleet)
            except EngineError as error:
                for cell in cells:
                    yield self._failed(cell, error)
                return len(cells)
            bench = Bench(
                task=self.task,
                run=self.run,
                fleet=fleet,
                cores=self.block.cores,
                pairing=self.block.pairing,
                start_seconds=seconds,
                workload_file=self.block.workload_file,
            )
            done = 0
            for cell in cells:
                done += 1
                yield self._step(cell)
                try:
                    yield measure_cell(bench, cell, fresh=done == 1)
                except FreshEngineNeededError:
                    done -= 1  # this cell and those after it get an engine that has not seen the workload
                    break
                except (
                    EngineError
                ) as error:  # the engine died or hangs: the cells after this one need a new one
                    yield self._failed(cell, error)
                    break
            fleet.stop(grace=self.task.stop_seconds)
            yield EngineStopped(run=self._name, files=fleet.files())
            return done

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
        names = visible_devices(self.task.resource, self.task.devices)
        fleet = Fleet(
            self.engine,
            self.run.config,
            name=self._name,
            devices=self.task.devices,
            device_names=names,
            cores=self.block.cores,
        )
        try:
            yield fleet
        finally:
            fleet.stop(grace=self.task.stop_seconds)
            fleet.remove_files()

    def _step(self, cell: CellTask | None = None) -> StepStarted:
        return StepStarted(
            block=self.task.block,
            segment=self.task.segment,
            run=self._name,
            label=self.run.config.label,
            role=self.run.role,
            cell=None if cell is None else cell.cell,
            load="" if cell is None else cell.level.label,
        )

    def _failed(self, cell: CellTask, error: EngineError) -> CellReport:
        result = failed_result(
            self.task,
            self.run,
            cell,
            cause=error.cause,
            reason=str(error),
            cores=self.block.cores,
            log_tail=error.log_tail,
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
