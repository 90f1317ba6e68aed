"""One cell: warm up, empty the cache, replay, read the counters before and after, judge.

The same steps in the same order for every arm; what differs within a pair is the engine's drafter.
"""

import platform
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from engines.counters import Counters
from engines.digest import digest, seed_of
from engines.errors import EngineHungError
from jobs.cores import Cores
from jobs.errors import JobError
from jobs.fleet import Fleet
from jobs.gates import Delivered, cell_gates, pair_gates
from jobs.load import LoadLevel
from jobs.measurement import measure
from jobs.replay.arrivals import Schedule, schedule_of, warmup_users
from jobs.replay.data import ReplayData
from jobs.replay.job import ReplayJob
from jobs.replay.launch import run_replay
from jobs.result import FAILED, INVALID, MEASURED, CellResult, Gate
from jobs.rows import gauges_parquet, requests_parquet
from jobs.task import BlockTask, CellReport, CellTask, RunTask
from jobs.telemetry import Sampler
from jobs.workload.order import ideal_cached, warmup_prompts
from jobs.workload.tokens import TokenWorkload

SETTLE_SECONDS = 5.0
"""Longest wait for an engine's counters to stop moving after the last answer."""
LOG_TAIL_CHARACTERS = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """What a pair's other side is held against."""

    resolved: Mapping[str, Any]
    """The engine's own resolved configuration."""
    delivered: Delivered
    """The work that was asked for and done."""


@dataclass(slots=True)
class Pairing:
    """The opening baselines of a segment, by (pair key, label of the level)."""

    baselines: dict[tuple[str, str], Side] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """Where a cell is measured: a ready fleet in its block."""

    task: BlockTask
    run: RunTask
    fleet: Fleet
    cores: Cores
    pairing: Pairing
    start_seconds: float


def measure_cell(bench: Bench, cell: CellTask) -> CellReport:
    """Measure one cell and return its outcome with its per-request rows.

    Raises:
        EngineError: the engine died or hangs; the caller records the failure and starts another.
    """
    started, begun = _now(), time.monotonic()
    folder = Path(tempfile.mkdtemp(prefix="specload-cell-"))
    try:
        measured = _measure(bench, cell, folder)
    except JobError as error:
        reason = f"{cell.cell}: {error}"
        result = failed_result(
            bench.task, bench.run, cell, cause=error.cause, reason=reason, cores=bench.cores
        )
        return CellReport(result=result)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    failed_gates = [gate for gate in measured.gates if not gate.passed]
    result = CellResult(
        **_identity_fields(bench.task, bench.run, cell, bench.cores),
        replicas=bench.fleet.replicas,
        outcome=INVALID if failed_gates else MEASURED,
        cause=failed_gates[0].name if failed_gates else None,
        reason="; ".join(gate.message for gate in failed_gates) or None,
        metrics=measured.metrics,
        gates=measured.gates,
        caveats=measured.caveats,
        identity=_identity(bench, measured.resolved),
        started=started,
        seconds=time.monotonic() - begun,
        start_seconds=bench.start_seconds if cell is bench.run.cells[0] else None,
    )
    return CellReport(result=result, files=measured.files)


def failed_result(
    task: BlockTask,
    run: RunTask,
    cell: CellTask,
    *,
    cause: str,
    reason: str,
    cores: Cores | None = None,
    log_tail: str = "",
) -> CellResult:
    """Return the outcome of a cell that its engine, its load process or its whole block could not finish.

    `cores` is None where nobody is left who knows them.
    """
    return CellResult(
        **_identity_fields(task, run, cell, cores),
        outcome=FAILED,
        cause=cause,
        reason=reason,
        log_tail=log_tail[-LOG_TAIL_CHARACTERS:],
        identity={"pair_key": run.config.baseline().digest, "workload": task.workload_digest},
        started=_now(),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Measured:
    metrics: Mapping[str, float | None]
    gates: tuple[Gate, ...]
    caveats: tuple[str, ...]
    resolved: Mapping[str, Any]
    files: Mapping[str, bytes]


def _measure(bench: Bench, cell: CellTask, folder: Path) -> _Measured:
    task, fleet = bench.task, bench.fleet
    level = cell.level
    seed = seed_of(task.seed, task.block, level.label)
    schedule = schedule_of(task.workload, level, seed=seed)
    _warm_up(bench, warmup_users(level, task.workload), seed, folder / "warmup")
    cold = fleet.reset_cache() if fleet.engine.capabilities.cache_reset else False
    salt = cell.cell if fleet.engine.capabilities.cache_salt else None
    job = _job(bench, schedule, level, seed=seed, salt=salt)
    before = fleet.counters()
    with Sampler(fleet.engine, fleet.servers) as sampler:
        data = _replay(bench, job, task.workload, folder / "replay")
    counters = _settled(fleet).since(before)
    requested = _requested_mal(bench)
    measurement = measure(
        data,
        counters=counters,
        capacity_tokens=fleet.capacity_tokens(),
        gauges=sampler.rows,
        devices=task.devices,
        requested_mal=requested,
    )
    block_size = fleet.block_size()
    gates = cell_gates(
        data,
        counters=counters,
        metrics=measurement.metrics,
        acceptance=bench.run.config.drafter.acceptance,
        ideal=ideal_cached(task.workload, schedule.order, block_size) if block_size else None,
        cold=cold or salt is not None,
        oversubscribed=bench.cores.oversubscribed,
        emulated=fleet.engine.capabilities.emulated,
    )
    resolved = fleet.resolved()
    side = Side(resolved=resolved, delivered=Delivered.of(data))
    return _Measured(
        metrics=measurement.metrics,
        gates=(*gates, *_against_baseline(bench, level, side)),
        caveats=(*measurement.caveats, *(f"{name}: not available here" for name in sampler.absent)),
        resolved=resolved,
        files={
            "requests.parquet": requests_parquet(data),
            "gauges.parquet": gauges_parquet(sampler.rows),
        },
    )


def _warm_up(bench: Bench, users: int, seed: int, folder: Path) -> None:
    """Load the engine as the level will, with text that is not in the workload."""
    requests = bench.task.warmup_requests * users
    if not requests:
        return
    workload = warmup_prompts(bench.task.workload, requests=requests, seed=seed)
    order = tuple((index, 0) for index in range(len(workload.conversations)))
    schedule, level = Schedule(order=order, arrivals=None), LoadLevel(concurrency=users)
    _replay(bench, _job(bench, schedule, level, seed=seed, salt=None), workload, folder)


def _job(bench: Bench, schedule: Schedule, level: LoadLevel, *, seed: int, salt: str | None) -> ReplayJob:
    fleet = bench.fleet
    return ReplayJob(
        urls=tuple(server.url for server in fleet.servers),
        model=fleet.config.model.name,
        workload="",
        order=schedule.order,
        concurrency=level.concurrency or 0,
        ramp=level.ramp,
        arrivals=schedule.arrivals,
        max_inflight=level.max_inflight,
        salt=salt,
        request_options=dict(fleet.engine.capabilities.request_options),
        seed=seed,
        cpus=bench.cores.load,
        stall_seconds=bench.task.stall_seconds,
        deadline_seconds=bench.task.cell_seconds,
    )


def _replay(bench: Bench, job: ReplayJob, workload: TokenWorkload, folder: Path) -> ReplayData:
    data = run_replay(job, workload, folder, watch=bench.fleet.check)
    bench.fleet.check()
    if any(request.error == "stall" for request in data.requests):
        label = bench.run.config.label
        message = f"engine {label} sent nothing for {job.stall_seconds:g} s in the middle of an answer"
        raise EngineHungError(message, bench.fleet.log_tail())
    return data


def _settled(fleet: Fleet, *, sleep: Callable[[float], None] = time.sleep) -> Counters:
    """Return the counters once two readings agree: an engine may count an answer after it has sent it."""
    deadline = time.monotonic() + SETTLE_SECONDS
    latest = fleet.counters()
    while time.monotonic() < deadline:
        sleep(0.2)
        previous, latest = latest, fleet.counters()
        if latest.running == 0 and latest.generation_tokens == previous.generation_tokens:
            break
    return latest


def _requested_mal(bench: Bench) -> float | None:
    drafter = bench.run.config.drafter
    return drafter.acceptance.mean_length(drafter.k) if drafter.acceptance else None


def _against_baseline(bench: Bench, level: LoadLevel, side: Side) -> tuple[Gate, ...]:
    """Hold a cell against the opening baseline of its segment, or make it that baseline."""
    config = bench.run.config
    key = (config.baseline().digest, level.label)
    opening = bench.pairing.baselines.get(key)
    if opening is None:
        if config.drafter.is_none:
            bench.pairing.baselines[key] = side
        return ()
    return pair_gates(
        resolved=side.resolved,
        baseline_resolved=opening.resolved,
        drafter_keys=bench.fleet.engine.drafter_keys(config),
        delivered=side.delivered,
        baseline_delivered=opening.delivered,
    )


def _identity_fields(task: BlockTask, run: RunTask, cell: CellTask, cores: Cores | None) -> dict[str, Any]:
    config = run.config
    return {
        "cell": cell.cell,
        "arm": config.digest,
        "arm_label": config.label,
        "layout": config.layout.label,
        "drafter": config.drafter.method,
        "k": config.drafter.k,
        "concurrency": cell.level.concurrency,
        "rate": cell.level.rate,
        "rate_scale": cell.level.rate_scale,
        "block": task.block,
        "segment": task.segment,
        "role": run.role,
        "emulated": config.device == "emulated",
        "synthetic": config.drafter.acceptance is not None,
        "oversubscribed": cores is not None and cores.oversubscribed,
        "devices": task.devices,
        "factors": dict(run.factors),
    }


def _identity(bench: Bench, resolved: Mapping[str, Any]) -> dict[str, Any]:
    config = bench.run.config
    return {
        "pair_key": config.baseline().digest,
        "engine": config.engine,
        "engine_version": config.version,
        "model": config.model.name,
        "run": bench.run.run,
        "resolved_digest": digest(resolved),
        "workload": bench.task.workload_digest,
        "validity": "synthetic" if config.drafter.acceptance else bench.task.workload.validity,
        "seed": bench.task.seed,
        "host": platform.node(),
        "cores": asdict(bench.cores),
        "devices": list(bench.fleet.device_names),
    }


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
