"""One cell: warm up, bring the cache into its state, replay, read the counters before and after, judge.

The same steps in the same order for every arm; what differs within a pair is the engine's drafter.
"""

import json
import platform
import shutil
import tempfile
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any

from engines.digest import digest, seed_of
from engines.spec import EngineConfig
from jobs.bench import Bench, settled_counters
from jobs.cache_bounds import FirstTurns
from jobs.cache_control import Prepared, judge_first_turns, prepare_cache
from jobs.cache_state import RESET, FreshEngineNeededError
from jobs.caveats import acceptance_caveats, engine_caveats, overlap_caveats, pairing_caveats
from jobs.cores import Cores
from jobs.errors import JobError
from jobs.fleet import Fleet
from jobs.gates import Delivered, cell_gates
from jobs.gates.kv import kv_gate
from jobs.load import LoadLevel
from jobs.measurement import Measurement, measure
from jobs.measures.kv import kv_metrics, longest_contexts
from jobs.measures.overlap import turns_in
from jobs.measures.work import steady_window
from jobs.nouns import counted
from jobs.pairing import Held, Side
from jobs.replay.arrivals import Schedule, schedule_of, warmup_users
from jobs.replay.data import ReplayData
from jobs.result import FAILED, INVALID, MEASURED, CellResult, Gate
from jobs.rows import gauges_parquet, requests_parquet
from jobs.task import BlockTask, CellReport, CellTask, RunTask
from jobs.telemetry import Sampler
from jobs.warmup import WarmUp, warm_up
from jobs.workload.ideal import ideal_cached
from jobs.workload.tokens import TokenWorkload

LOG_TAIL_CHARACTERS = 20_000
ALL_FAILED = "all_requests_failed"
"""Cause of a cell that got not one answer: a failure of the engine's service, and no figure of zero."""


def measure_cell(bench: Bench, cell: CellTask, *, fresh: bool) -> CellReport:
    """Measure one cell and return its outcome with its per-request rows.

    Args:
        bench: Where it is measured.
        cell: What is measured.
        fresh: Whether the bench's engine has not seen the workload yet.

    Raises:
        EngineError: the engine died or hangs; the caller records the failure and starts another.
        FreshEngineNeededError: the cell has to be measured on an engine that has not seen the workload.
    """
    started, begun = _now(), time.monotonic()
    place = None if bench.workload_file is None else bench.workload_file.parent
    folder = Path(tempfile.mkdtemp(prefix="specload-cell-", dir=place))
    try:
        measured = _measure(bench, cell, folder, fresh=fresh)
    except FreshEngineNeededError:
        raise
    except JobError as error:
        reason = f"{cell.cell}: {error}"
        result = failed_result(
            bench.task, bench.run, cell, cause=error.cause, reason=reason, cores=bench.cores
        )
        return CellReport(result=result)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    failed_gates = [gate for gate in measured.gates if gate.failed]
    cause = failed_gates[0].name if failed_gates else None
    outcome = INVALID if failed_gates else MEASURED
    if not measured.answered:
        outcome, cause = FAILED, ALL_FAILED
    result = CellResult(
        **_identity_fields(bench.task, bench.run, cell, bench.cores),
        replicas=bench.fleet.replicas,
        outcome=outcome,
        cause=cause,
        reason="; ".join(gate.message for gate in failed_gates) or None,
        metrics=measured.metrics,
        gates=measured.gates,
        caveats=measured.caveats,
        identity=_identity(bench, measured),
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
    answered: bool
    """Whether any request succeeded."""
    metrics: Mapping[str, float | None]
    gates: tuple[Gate, ...]
    caveats: tuple[str, ...]
    resolved: Mapping[str, Any]
    warmup: WarmUp
    cache: Prepared
    files: Mapping[str, bytes]


def _measure(bench: Bench, cell: CellTask, folder: Path, *, fresh: bool) -> _Measured:
    task, fleet, level = bench.task, bench.fleet, cell.level
    seed = seed_of(task.seed, task.block, level.label)
    schedule = schedule_of(task.workload, level, seed=seed)
    rounds = count(1)

    def warm(text: TokenWorkload, users: int) -> ReplayData:
        return bench.play_all(text, users, folder / f"warmup-{next(rounds)}", seed=seed)

    warmup = warm_up(
        warm,
        task.workload,
        users=warmup_users(level, task.workload),
        per_user=task.warmup_requests,
        rounds_max=task.warmup_rounds_max,
        seed=seed,
    )
    cache = prepare_cache(bench, cell.cell, schedule, folder, seed=seed, fresh=fresh)
    before = settled_counters(fleet)  # of warm-up and priming nothing is to be counted later
    with Sampler(fleet.engine, fleet.servers) as sampler:
        data = bench.play(task.workload, schedule, level, folder / "replay", seed=seed, salt=cache.state.salt)
    counters = settled_counters(fleet).since(before)
    config = bench.run.config
    forced = fleet.engine.forced_acceptance(config)
    measurement = measure(
        data,
        counters=counters,
        kv=_kv_metrics(bench, schedule),
        gauges=sampler.rows,
        devices=task.devices,
        requested_mal=None if forced is None else forced.mean_length,
        ideal_hit_rate=_ideal_hit_rate(bench, cell, schedule),
        turns={c.id: len(c.turns) for c in (task.workload.conversations[i] for i, _ in schedule.order)},
        slo=task.slo,
    )
    resolved = fleet.resolved()
    turns = judge_first_turns(bench, data, schedule, cache, counters=counters, resolved=resolved)
    gates = cell_gates(
        data,
        counters=counters,
        metrics=measurement.metrics,
        forced=forced,
        cache=cache.state,
        first_turns=turns,
        oversubscribed=bench.cores.oversubscribed,
        emulated=fleet.engine.capabilities.emulated,
    )
    side = Side(
        resolved=resolved,
        delivered=Delivered.of(data),
        window_turns=turns_in(data, steady_window(data.summary)),
    )
    held = bench.pairing.hold(config, level, side, drafter_keys=fleet.engine.drafter_keys(config))
    gates = (*gates, *_kv_gates(fleet), *held.gates)
    return _Measured(
        answered=bool(data.succeeded),
        metrics={**measurement.metrics, **_of_the_cell(warmup, turns, held)},
        gates=gates,
        caveats=(
            *engine_caveats(fleet.engine.capabilities, gates),
            *acceptance_caveats(config.drafter, forced, counters),
            *_caveats(measurement, warmup, cache, held, sampler),
        ),
        resolved=resolved,
        warmup=warmup,
        cache=cache,
        files=_files(data, measurement, sampler),
    )


def _of_the_cell(warmup: WarmUp, turns: FirstTurns | None, held: Held) -> dict[str, float | None]:
    """Return the figures that are not of the replay alone."""
    return {
        "window/turn_overlap": held.turn_overlap,
        "cache/first_turn_expected_least": None if turns is None else float(turns.least),
        "cache/first_turn_expected_most": None if turns is None else float(turns.most),
        "warmup/rounds": float(warmup.rounds),
        "warmup/settled": None if warmup.settled is None else float(warmup.settled),
        "warmup/step_ms": warmup.looks[-1].median_ms if warmup.looks else None,
    }


def _caveats(
    measurement: Measurement, warmup: WarmUp, cache: Prepared, held: Held, sampler: Sampler
) -> tuple[str, ...]:
    state = cache.state
    unconfirmed = (
        "the engine did not confirm that its prefix cache was emptied "
        f"({counted(state.reset_tries, 'try', 'tries')} in "
        f"{state.seconds:.0f} s); cold by {state.how.replace('_', ' ')}"
    )
    return (
        *measurement.caveats,
        *warmup.caveats,
        *((unconfirmed,) if state.reset_tries and state.how != RESET else ()),
        *overlap_caveats(held.turn_overlap),
        *pairing_caveats(alone=held.alone),
        *(f"{name}: not available here" for name in sampler.absent),
    )


def _files(data: ReplayData, measurement: Measurement, sampler: Sampler) -> dict[str, bytes]:
    return {
        "requests.parquet": requests_parquet(data),
        "gauges.parquet": gauges_parquet(sampler.rows),
        "slices.json": json.dumps(measurement.slices, indent=1).encode(),
    }


def _kv_metrics(bench: Bench, schedule: Schedule) -> dict[str, float | None]:
    drafter = bench.run.config.drafter
    contexts = longest_contexts(bench.task.workload, schedule.order)
    return kv_metrics(bench.fleet.capacities(), contexts, drafts=0 if drafter.loaded_only else drafter.k)


def _kv_gates(fleet: Fleet) -> tuple[Gate, ...]:
    if fleet.kv is None:
        return ()
    return tuple(kv_gate(fleet.config, fleet.kv, found) for found in fleet.capacities())


def _ideal_hit_rate(bench: Bench, cell: CellTask, schedule: Schedule) -> float | None:
    """Return what an infinite cache could reach; every arm sends the same, so a level is computed once."""
    block_size = bench.fleet.block_size()
    if block_size is None:
        return None
    known = bench.pairing.ideals
    key = f"{cell.level.label} {block_size}"
    if key not in known:
        ideal = ideal_cached(bench.task.workload, schedule.order, block_size)
        known[key] = ideal.tokens / ideal.prompt_tokens if ideal.prompt_tokens else 0.0
    return known[key]


def arm_fields(config: EngineConfig, level: LoadLevel) -> dict[str, Any]:
    """Return the fields of a `CellResult` that its arm and load level decide."""
    return {
        "arm": config.digest,
        "arm_label": config.label,
        "layout": config.layout.label,
        "drafter": config.drafter.method,
        "k": 0 if config.drafter.loaded_only else config.drafter.k,
        "concurrency": level.concurrency,
        "rate": level.rate,
        "rate_scale": level.rate_scale,
        "emulated": config.device == "emulated",
        "synthetic": config.drafter.acceptance is not None,
        "counterfactual": config.counterfactual,
    }


def _identity_fields(task: BlockTask, run: RunTask, cell: CellTask, cores: Cores | None) -> dict[str, Any]:
    return {
        **arm_fields(run.config, cell.level),
        "cell": cell.cell,
        "block": task.block,
        "segment": task.segment,
        "round": task.round,
        "kind": task.kind,
        "role": run.role,
        "oversubscribed": cores is not None and cores.oversubscribed,
        "devices": task.devices,
        "factors": dict(run.factors),
    }


def _identity(bench: Bench, measured: _Measured) -> dict[str, Any]:
    config = bench.run.config
    return {
        "pair_key": config.baseline().digest,
        "kv_of": config.kv_match.arm if config.kv_match else None,
        "engine": config.engine,
        "engine_version": config.version,
        "model": config.model.name,
        "run": bench.run.run,
        "resolved_digest": digest(measured.resolved),
        "workload": bench.task.workload_digest,
        "validity": "synthetic" if config.drafter.acceptance else bench.task.workload.validity,
        "seed": bench.task.seed,
        "host": platform.node(),
        "cores": asdict(bench.cores),
        "devices": list(bench.fleet.device_names),
        "warmup": asdict(measured.warmup),
        "cache": asdict(measured.cache.state),
    }


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
