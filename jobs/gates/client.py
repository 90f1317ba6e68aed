"""Gates on the load process: a client that is late measures itself instead of the engine."""

from collections.abc import Mapping

from jobs.replay.data import ReplayData
from jobs.result import Gate

LAG_MS = 5.0
"""Allowed lag of the client at the 99th percentile, whatever the engine's pace."""
LAG_SHARE = 0.25
"""Allowed lag as a share of the median chunk gap, if that is more.

A late client stamps chunks late, by up to its lag. Against steps of 10 ms that matters from 5 ms on. An
engine on CPU cores steps in 50 to 500 ms, and a machine that is full of it delays everybody by some
milliseconds: a quarter of a step, rarely reached, moves no figure by more than its noise.
"""
CPU_CORES = 0.7
"""Allowed CPU of a load process, in cores: above it, it is about to be the bottleneck."""


def client_gates(
    data: ReplayData, metrics: Mapping[str, float | None], *, oversubscribed: bool
) -> tuple[Gate, ...]:
    """Return the gates on event-loop lag, send lag and CPU; in an open loop also on the schedule's lag.

    Where client and engine share a core they are shown and not judged.
    """
    limit = max(LAG_MS, LAG_SHARE * (metrics["latency/icl_p50_ms"] or 0.0))
    lags = {
        "loop_lag": ("client/loop_lag_p99_ms", "the client's loop lag"),
        "send_lag": ("client/send_lag_p99_ms", "the client's lag from the decision to send to the socket"),
    }
    if data.open_loop:
        lags["schedule_lag"] = ("client/schedule_lag_p99_ms", "the requests' lag behind their schedule")
    gates = [
        _gate(
            name,
            value := metrics[metric] or 0.0,
            limit,
            f"{words} is {value:.1f} ms at the 99th percentile; allowed {limit:.1f} ms",
            oversubscribed=oversubscribed,
        )
        for name, (metric, words) in lags.items()
    ]
    cpu = metrics["client/cpu_share"] or 0.0
    message = f"the client used {cpu:.2f} cores; allowed {CPU_CORES:.2f}"
    gates.append(_gate("client_cpu", cpu, CPU_CORES, message, oversubscribed=oversubscribed))
    return tuple(gates)


def _gate(name: str, value: float, limit: float, message: str, *, oversubscribed: bool) -> Gate:
    if oversubscribed:
        message += " (not judged: client and engine share a core)"
    return Gate(name=name, passed=oversubscribed or value <= limit, message=message, value=value, limit=limit)
