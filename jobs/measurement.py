"""From one replay to the figures of its cell: every name of `jobs/metric_names.py`, each by its definition.

Latencies and user speed pool all requests of the replay, the same set in every arm. Throughputs are of the
steady window; the whole fixed work stands beside them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from engines.counters import Counters
from jobs.caveats import cell_caveats
from jobs.measures import counted, peak, sessions, slices, timing, work
from jobs.measures.drafts import mean_length
from jobs.measures.goodput import goodput
from jobs.measures.kv import waiting_share
from jobs.measures.telemetry import telemetry_caveats, telemetry_metrics
from jobs.replay.data import ReplayData
from jobs.slo import Slo

NO_LIMITS = Slo()


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """The figures of a cell and what to keep in mind with them."""

    metrics: Mapping[str, float | None]
    caveats: tuple[str, ...]
    slices: Mapping[str, Mapping[str, slices.Slice]]
    """`by_turn` and `by_context`: slice -> figure -> value."""


def measure(
    data: ReplayData,
    *,
    counters: Counters,
    kv: Mapping[str, float | None],
    gauges: Sequence[Mapping[str, Any]],
    devices: int,
    requested_mal: float | None,
    ideal_hit_rate: float | None = None,
    turns: Mapping[str, int] | None = None,
    slo: Slo = NO_LIMITS,
) -> Measurement:
    """Return the figures of one replay.

    Args:
        data: What the load process measured.
        counters: Delta over the replay, summed over replicas.
        kv: KV figures of the slice, as `jobs.measures.kv` has them.
        gauges: Samples beside the replay, as `jobs.telemetry.Sampler` takes them.
        devices: Devices of the slice.
        requested_mal: What the synthetic acceptance asks for; None with real acceptance.
        ideal_hit_rate: Hit rate that an infinite cache, empty at first, could reach; None where unknown.
        turns: Turns of each conversation by its id; None takes a session for as long as its requests say.
        slo: Limits that goodput is counted by; without any it is absent.
    """
    window = work.steady_window(data.summary)
    steady = work.work_in(data, window) if window is not None else None
    parts = {
        "by_turn": slices.by_turn(data.succeeded, scheduled=data.open_loop),
        "by_context": slices.by_context(data),
    }
    metrics: dict[str, float | None] = {
        **_throughput(data, devices, window, steady),
        **_latency(data),
        **goodput(data, slo, window),
        **_people(data, turns),
        **_sliced(parts),
        **_speculation(data, counters, requested_mal),
        **_cache(data, counters, gauges),
        **kv,
        "cache/ideal_hit_rate": ideal_hit_rate,
        **_accounting(data, counters),
        **telemetry_metrics(gauges, window, steady.output if steady is not None else None),
    }
    caveats = (*cell_caveats(data, metrics), *telemetry_caveats(gauges, window))
    return Measurement(metrics=metrics, caveats=caveats, slices=parts)


def _throughput(
    data: ReplayData, devices: int, window: work.Span | None, steady: work.Work | None
) -> dict[str, float | None]:
    summary, whole = data.summary, work.makespan(data.summary)
    fixed = work.whole_work(data)
    if not data.succeeded:  # nothing was answered: no rate is known, which is not a rate of zero
        steady, whole = None, (0, 0)
    total = work.rate(steady.total, window) if steady else None
    output = work.rate(steady.output, window) if steady else None
    return {
        "throughput/total_tok_s": total,
        "throughput/computed_tok_s": work.rate(steady.computed, window) if steady else None,
        "throughput/output_tok_s": output,
        "throughput/output_peak_tok_s": peak.output_peak_tok_s(data, window) if steady and window else None,
        "throughput/total_tok_s_per_device": None if total is None else total / devices,
        "throughput/output_tok_s_per_device": None if output is None else output / devices,
        "fixed_work/total_tok_s": work.rate(fixed.total, whole),
        "fixed_work/computed_tok_s": work.rate(fixed.computed, whole),
        "fixed_work/output_tok_s": work.rate(fixed.output, whole),
        "fixed_work/seconds": work.seconds(work.makespan(summary)),
        "window/seconds": work.seconds(window) if window is not None else None,
        "window/drain_share": work.drain_share(summary),
        **_level(data, window),
    }


def _level(data: ReplayData, window: work.Span | None) -> dict[str, float | None]:
    if window is None:
        return {"window/in_flight": None, "window/occupancy": None}
    flying = work.in_flight(data, window)
    users = data.concurrency
    occupancy = None if data.open_loop else (flying + work.thinking(data, window)) / users
    return {"window/in_flight": flying, "window/occupancy": occupancy}


def _latency(data: ReplayData) -> dict[str, float | None]:
    done = data.succeeded
    chunks = data.chunks[work.good_chunks(data)]
    late = data.open_loop
    ttft, e2el = timing.ttft_ms(done, scheduled=late), timing.e2el_ms(done, scheduled=late)
    tpot = timing.tpot_ms(done)
    itl, icl = timing.itl_ms(chunks), timing.icl_ms(chunks)
    return {
        "latency/ttft_p50_ms": timing.quantile(ttft, 50),
        "latency/ttft_p95_ms": timing.quantile(ttft, 95),
        "latency/ttft_p99_ms": timing.quantile(ttft, 99),
        "latency/tpot_p50_ms": timing.quantile(tpot, 50),
        "latency/tpot_p95_ms": timing.quantile(tpot, 95),
        "latency/itl_p50_ms": timing.quantile(itl, 50),
        "latency/itl_p99_ms": timing.quantile(itl, 99),
        "latency/icl_p50_ms": timing.quantile(icl, 50),
        "latency/icl_p99_ms": timing.quantile(icl, 99),
        "latency/e2el_p50_ms": timing.quantile(e2el, 50),
        "latency/e2el_p95_ms": timing.quantile(e2el, 95),
        "latency/decode_share": timing.decode_share(done, scheduled=late),
    }


def _people(data: ReplayData, turns: Mapping[str, int] | None) -> dict[str, float | None]:
    complete = sessions.complete_sessions(data, turns)
    times, speeds = (
        sessions.session_seconds(complete, scheduled=data.open_loop),
        sessions.session_speeds_tok_s(complete),
    )
    singles = timing.request_speeds_tok_s(data.succeeded)
    return {
        "user/speed_tok_s": timing.user_speed_tok_s(data.succeeded),
        "user/speed_p50_tok_s": timing.quantile(speeds, 50),
        "user/speed_p5_tok_s": timing.quantile(speeds, 5),
        "request/speed_p50_tok_s": timing.quantile(singles, 50),
        "request/speed_p5_tok_s": timing.quantile(singles, 5),
        "session/count": float(len(complete)),
        "session/time_p50_s": timing.quantile(times, 50),
        "session/time_p95_s": timing.quantile(times, 95),
    }


def _sliced(parts: Mapping[str, Mapping[str, slices.Slice]]) -> dict[str, float | None]:
    """Return the key figures of the slices, under the names of the table."""
    found: dict[str, float | None] = {}
    for turn, figures in parts["by_turn"].items():
        for name in ("ttft_p50_ms", "speed_tok_s", "cached_share"):
            found[f"turn/{name}_{turn}"] = figures[name]
    for bucket, figures in parts["by_context"].items():
        for name in ("speed_tok_s", "tokens_per_chunk", "mal"):
            found[f"context/{name}_{bucket}"] = figures[name]
    return found


def _speculation(
    data: ReplayData, counters: Counters, requested_mal: float | None
) -> dict[str, float | None]:
    return {
        "spec/mal": counted.mean_acceptance_length(counters),
        "spec/drafts": float(counters.drafts) if counters.knows("drafts") else None,
        "spec/mal_of_requests": mean_length(data.requests),
        "spec/acceptance_rate": counted.acceptance_rate(counters),
        "spec/tokens_per_step": counted.tokens_per_step(counters),
        "spec/requested_mal": requested_mal,
        **counted.acceptance_by_position(counters),
        **counted.conditional_by_position(counters),
        "step/mean_ms": counted.step_ms(counters),
    }


def _cache(
    data: ReplayData, counters: Counters, gauges: Sequence[Mapping[str, Any]]
) -> dict[str, float | None]:
    start, end = work.makespan(data.summary)
    during = [row for row in gauges if start <= row["time"] <= end]
    first_turns = [request for request in data.succeeded if request.turn == 0]
    return {
        "cache/hit_rate": counted.hit_rate(counters),
        "cache/client_cached_tokens": _float(work.cached_tokens(data.succeeded)),
        "cache/first_turn_cached_tokens": _float(work.cached_tokens(first_turns)),
        "kv/usage_peak": _peak(during, "kv_usage"),
        "engine/preemptions": _float(counters.preemptions) if counters.knows("preemptions") else None,
        "engine/waiting_peak": _peak(during, "waiting"),
        "engine/waiting_share": waiting_share(gauges, work.steady_window(data.summary) or (start, end)),
    }


def _accounting(data: ReplayData, counters: Counters) -> dict[str, float | None]:
    whole = work.work_of(data.requests)
    return {
        "tokens/client_output": float(whole.output),
        "tokens/engine_output": _float(counters.generation_tokens)
        if counters.knows("generation_tokens")
        else None,
        "tokens/client_prompt": float(whole.prompt),
        "tokens/engine_prompt": _float(counters.prompt_tokens) if counters.knows("prompt_tokens") else None,
        "tokens/client_computed": _float(whole.computed),
        "tokens/engine_computed": _float(counted.computed_tokens(counters)),
        "requests/total": float(len(data.requests)),
        "requests/failed": float(len(data.requests) - len(data.succeeded)),
        "requests/single_chunk": float(timing.single_chunk(data.succeeded)),
        "client/loop_lag_p99_ms": data.summary.loop_lag_p99_ms,
        "client/send_lag_p99_ms": data.summary.send_lag_p99_ms,
        "client/schedule_lag_p99_ms": timing.quantile(timing.schedule_lag_ms(data.requests), 99),
        "client/cpu_share": data.summary.cpu_share,
        "client/peak_rss_mib": data.summary.peak_rss_mib,
        "client/processes": float(data.summary.processes),
    }


def _peak(rows: Sequence[Mapping[str, Any]], name: str) -> float | None:
    """Return the largest sampled value: of one replica, as each has a cache and a queue of its own."""
    values = [float(row[name]) for row in rows if row.get(name) is not None]
    return max(values, default=None)


def _float(value: int | None) -> float | None:
    return None if value is None else float(value)
