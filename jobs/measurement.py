"""From one replay to the figures of its cell: every name of `jobs/metric_names.py`, each by its definition.

Latencies and user speed pool all requests of the replay, the same set in every arm. Throughputs are of the
steady window; the whole fixed work stands beside them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from engines.counters import Counters
from jobs.measures import counted, timing, work
from jobs.replay.data import ReplayData

DRAIN_CAVEAT = 1 / 3
"""Share of the replay after the steady window from which the cell says so."""
QUEUE_CAVEAT = 0.1
"""Queued requests as a share of C from which the cell says so: single arrivals always queue for a moment."""
SINGLE_CHUNK_CAVEAT = 0.1
"""Share of single-chunk answers from which the cell says so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """The figures of a cell and what to keep in mind with them."""

    metrics: Mapping[str, float | None]
    caveats: tuple[str, ...]


def measure(
    data: ReplayData,
    *,
    counters: Counters,
    capacity_tokens: int | None,
    gauges: Sequence[Mapping[str, Any]],
    devices: int,
    requested_mal: float | None,
) -> Measurement:
    """Return the figures of one replay.

    Args:
        data: What the load process measured.
        counters: Delta over the replay, summed over replicas.
        capacity_tokens: KV capacity of the slice; None where the engine does not say.
        gauges: Samples with `time` (ns), `waiting` and `kv_usage`, one row a replica and sample.
        devices: Devices of the slice.
        requested_mal: What the synthetic acceptance asks for; None with real acceptance.
    """
    metrics: dict[str, float | None] = {
        **_throughput(data, devices),
        **_latency(data),
        **_speculation(counters, requested_mal),
        **_cache(data, counters, capacity_tokens, gauges),
        **_accounting(data, counters),
    }
    return Measurement(metrics=metrics, caveats=tuple(_caveats(data, metrics)))


def _throughput(data: ReplayData, devices: int) -> dict[str, float | None]:
    summary = data.summary
    window, whole = work.steady_window(summary), work.makespan(summary)
    steady = work.work_in(data, window) if window is not None else None
    fixed = work.whole_work(data)
    total = work.rate(steady.total, window) if steady else None
    output = work.rate(steady.output, window) if steady else None
    return {
        "throughput/total_tok_s": total,
        "throughput/computed_tok_s": work.rate(steady.computed, window) if steady else None,
        "throughput/output_tok_s": output,
        "throughput/total_tok_s_per_device": None if total is None else total / devices,
        "throughput/output_tok_s_per_device": None if output is None else output / devices,
        "fixed_work/total_tok_s": work.rate(fixed.total, whole),
        "fixed_work/computed_tok_s": work.rate(fixed.computed, whole),
        "fixed_work/output_tok_s": work.rate(fixed.output, whole),
        "fixed_work/seconds": work.seconds(whole),
        "window/seconds": work.seconds(window) if window is not None else None,
        "window/drain_share": work.drain_share(summary),
        "window/occupancy": work.in_flight(data, window) / data.concurrency if window is not None else None,
    }


def _latency(data: ReplayData) -> dict[str, float | None]:
    done = data.succeeded
    good = np.asarray([request.error is None for request in data.requests], dtype=bool)
    chunks = data.chunks[good[data.chunks["request"]]]
    ttft, tpot, e2el = timing.ttft_ms(done), timing.tpot_ms(done), timing.e2el_ms(done)
    itl, icl = timing.itl_ms(chunks), timing.icl_ms(chunks)
    return {
        "user/speed_tok_s": timing.user_speed_tok_s(done),
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
        "latency/decode_share": timing.decode_share(done),
    }


def _speculation(counters: Counters, requested_mal: float | None) -> dict[str, float | None]:
    return {
        "spec/mal": counted.mean_acceptance_length(counters),
        "spec/acceptance_rate": counted.acceptance_rate(counters),
        "spec/tokens_per_step": counted.tokens_per_step(counters),
        "spec/requested_mal": requested_mal,
        **counted.acceptance_by_position(counters),
        "step/mean_ms": counted.step_ms(counters),
    }


def _cache(
    data: ReplayData, counters: Counters, capacity: int | None, gauges: Sequence[Mapping[str, Any]]
) -> dict[str, float | None]:
    start, end = work.makespan(data.summary)
    during = [row for row in gauges if start <= row["time"] <= end]
    first_turns = [request for request in data.succeeded if request.turn == 0]
    return {
        "cache/hit_rate": counted.hit_rate(counters),
        "cache/client_cached_tokens": _float(work.cached_tokens(data.succeeded)),
        "cache/first_turn_cached_tokens": _float(work.cached_tokens(first_turns)),
        "kv/capacity_tokens": _float(capacity),
        "kv/usage_peak": _peak(during, "kv_usage"),
        "engine/preemptions": float(counters.preemptions),
        "engine/waiting_peak": _peak(during, "waiting"),
    }


def _accounting(data: ReplayData, counters: Counters) -> dict[str, float | None]:
    return {
        "tokens/client_output": float(sum(r.completion_tokens or 0 for r in data.requests)),
        "tokens/engine_output": float(counters.generation_tokens),
        "tokens/client_prompt": float(sum(r.prompt_tokens or 0 for r in data.requests)),
        "tokens/engine_prompt": float(counters.prompt_tokens),
        "requests/total": float(len(data.requests)),
        "requests/failed": float(len(data.requests) - len(data.succeeded)),
        "requests/single_chunk": float(timing.single_chunk(data.succeeded)),
        "client/loop_lag_p99_ms": data.summary.loop_lag_p99_ms,
        "client/cpu_share": data.summary.cpu_share,
        "client/peak_rss_mib": data.summary.peak_rss_mib,
    }


def _caveats(data: ReplayData, metrics: Mapping[str, float | None]) -> list[str]:
    found: list[str] = []
    drain = metrics["window/drain_share"] or 0.0
    if metrics["throughput/total_tok_s"] is None:
        found.append(
            "no steady window: a user ran out of conversations before every user had finished its first "
            "one; only the whole work was measured"
        )
    elif drain > DRAIN_CAVEAT:
        found.append(f"the last {drain:.0%} of the replay ran with fewer users: replay more conversations")
    if metrics["engine/preemptions"]:
        found.append(f"{metrics['engine/preemptions']:.0f} requests were preempted and recomputed")
    waiting = metrics["engine/waiting_peak"] or 0.0
    if waiting > QUEUE_CAVEAT * data.concurrency:
        found.append(f"up to {waiting:.0f} requests queued in the engine")
    done = len(data.succeeded)
    single = metrics["requests/single_chunk"] or 0.0
    if done and single / done > SINGLE_CHUNK_CAVEAT:
        found.append(f"{single:.0f} of {done} answers came in one chunk and are left out of speeds")
    if done and metrics["cache/client_cached_tokens"] is None:
        found.append("usage has no cached tokens: computed throughput is unknown")
    return found


def _peak(rows: Sequence[Mapping[str, Any]], name: str) -> float | None:
    """Return the largest sampled value: of one replica, as each has a cache and a queue of its own."""
    values = [float(row[name]) for row in rows if row.get(name) is not None]
    return max(values, default=None)


def _float(value: int | None) -> float | None:
    return None if value is None else float(value)
