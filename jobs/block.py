"""One block on its node: the runs of a segment one after another, each on a fresh engine.

`BlockRunner` knows nothing of Ray: the orchestrator makes an actor of it, a test calls it in process. A
failure is an outcome of its cell and never stops the runs after it.
"""

import json
import traceback
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

from engines.base import Engine, KVCapacity
from engines.errors import EngineError
from engines.registry import engine_named
from engines.spec import EngineConfig
from jobs.bench import Bench
from jobs.cache_state import FreshEngineNeededError
from jobs.cell import failed_result, measure_cell
from jobs.cores import CoreLease, Cores
from jobs.errors import GpusHeldError
from jobs.fleet import Fleet, visible_devices
from jobs.gpus import GpuMemory
from jobs.lifeline import ends_with_raylet
from jobs.nouns import counted
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
    capacities: dict[str, KVCapacity] = field(default_factory=dict)
    """KV capacity of every engine that started, by the digest of its arm: the smallest replica's."""


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
        try:
            kv = yield from self._matched_kv()
        except EngineError as error:
            yield from self._failed_start(count, error)
            return
        self.engines += 1
        with self._fleet(self.run.config, self._name, kv=kv) as fleet:
            yield self._step()
            try:
                seconds = yield from self._start(fleet)
            except EngineError as error:
                yield from self._failed_start(count, error)
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

    def _matched_kv(self) -> Generator[Report, None, KVCapacity | None]:
        """Return what this run's KV cache is clamped to; where no engine has told yet, one is started for it.

        The orders of a block's runs are balanced, so the baseline with matched KV may come before the arm
        whose cache it is to have.
        """
        other = self.run.kv_of
        if other is None:
            return None
        known = self.block.capacities
        if other.digest not in known:
            name = f"{self.run.run}-asked"
            with self._fleet(other, name) as fleet:
                yield self._step()
                yield from self._start(fleet)
                fleet.stop(grace=self.task.stop_seconds)
                yield EngineStopped(run=name, files=fleet.files())
        return known[other.digest]

    def _failed_start(self, count: int, error: EngineError) -> Iterator[Report]:
        for cell in self._taken(count):
            yield self._failed(cell, error.cause, str(error), error.log_tail)

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
            capacities = fleet.capacities()
            self.block.capacities[fleet.config.digest] = min(capacities, key=lambda each: each.tokens or 0)
            described = {
                "resolved.json": _json(dict(fleet.resolved())),
                "capacity.json": _json([asdict(capacity) for capacity in capacities]),
            }
            yield self._engine_report(fleet, ready=True, seconds=attempt.seconds, described=described)
        return attempt.seconds

    @contextmanager
    def _fleet(self, config: EngineConfig, name: str, *, kv: KVCapacity | None = None) -> Iterator[Fleet]:
        fleet = Fleet(
            self.engine,
            config,
            name=name,
            devices=self.task.devices,
            device_names=self.block.device_names,
            cores=self.block.cores,
            folder=self.block.workload_file.parent,
            kv=kv,
        )
        try:
            yield fleet
        finally:
            fleet.stop(grace=self.task.stop_seconds)
            fleet.remove_files()
        if fleet.survivors:
            message = (
                f"{counted(fleet.survivors, 'process', 'processes')} of {name} outlived SIGKILL, stuck in "
                "a driver perhaps; their devices and cores are not free"
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
        return self.run.run if self.engines <= 1 else f"{self.run.run}-engine{self.engines}"

    def _engine_report(
        self,
        fleet: Fleet,
        *,
        ready: bool,
        seconds: float,
        message: str = "",
        described: Mapping[str, bytes] | None = None,
    ) -> EngineReport:
        return EngineReport(
            run=fleet.name,
            label=fleet.config.label,
            ready=ready,
            seconds=seconds,
            message=message,
            files={**fleet.files(), **(described or {})},
        )


def _json(value: object) -> bytes:
    return json.dumps(value, indent=1, sort_keys=True, default=str).encode()
