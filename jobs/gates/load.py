"""Gates on the load: every request was answered, and the level was what it says."""

from collections import Counter
from collections.abc import Mapping

from engines.counters import Counters
from jobs.nouns import counted
from jobs.replay.data import ReplayData
from jobs.result import Gate

OCCUPANCY = 0.95
"""Least mean share of users with a request in flight, or thinking, in the steady window."""
SLIP_SHARE = 0.05
"""Share of a replay by which an emulated engine may fall behind the hardware it emulates.

It falls behind first where it sends most chunks a second, which is the baseline: that would flatter drafters.
"""


def load_gates(
    data: ReplayData, metrics: Mapping[str, float | None], *, oversubscribed: bool
) -> tuple[Gate, ...]:
    """Return the gates on errors and on the level.

    Where client and engine share a core, users idle while the client waits for it: no news, as its lateness.
    """
    if data.open_loop:
        return _request_errors(data), _open_window(metrics), _in_flight_cap(data)
    return _request_errors(data), _occupancy(data, metrics, oversubscribed=oversubscribed)


def emulator_pace_gate(data: ReplayData, counters: Counters) -> Gate:
    """Return the gate on how far an emulated engine fell behind what it emulates."""
    seconds = (data.summary.ended - data.summary.started) / 1e9
    value = counters.slipped_seconds / seconds if seconds else 0.0
    message = (
        f"this machine fell {counters.slipped_seconds:.2f} s in {seconds:.1f} s behind what it emulates; "
        f"{SLIP_SHARE:.0%} is allowed: raise engine.flags.time_scale, or stop what else runs here"
    )
    return Gate(
        name="emulator_pace", passed=value <= SLIP_SHARE, message=message, value=value, limit=SLIP_SHARE
    )


def _request_errors(data: ReplayData) -> Gate:
    failed = [request for request in data.requests if request.error is not None]
    message = f"{len(failed)} of {counted(len(data.requests), 'request')} failed"
    if failed:
        causes = Counter(request.error or "" for request in failed)
        listed = ", ".join(f"{count} {cause}" for cause, count in sorted(causes.items()))
        message += f" ({listed}); the first: {failed[0].error_detail[:200]}"
    return Gate(
        name="request_errors", passed=not failed, message=message, value=float(len(failed)), limit=0.0
    )


def _occupancy(data: ReplayData, metrics: Mapping[str, float | None], *, oversubscribed: bool) -> Gate:
    value = metrics["window/occupancy"]
    if value is None:
        message = (
            "there is no steady window: a user ran out of conversations before every user had finished one; "
            "replay more conversations, or fewer users"
        )
        return Gate(name="occupancy", passed=False, message=message, limit=OCCUPANCY)
    message = (
        f"{value:.1%} of {counted(data.concurrency, 'user')} had a request in flight or were thinking; at "
        f"least {OCCUPANCY:.0%} is needed"
    )
    if oversubscribed:
        message += " (not judged: client and engine share a core)"
    passed = oversubscribed or value >= OCCUPANCY
    return Gate(name="occupancy", passed=passed, message=message, value=value, limit=OCCUPANCY)


def _open_window(metrics: Mapping[str, float | None]) -> Gate:
    seconds = metrics["window/seconds"]
    if seconds is None:
        message = (
            "there is no steady window: the last conversation arrived before the first ones had ended; set a "
            "longer load.duration, or a lower rate"
        )
        return Gate(name="open_window", passed=False, message=message)
    message = f"the steady window lasts {seconds:.1f} s"
    return Gate(name="open_window", passed=True, message=message, value=seconds)


def _in_flight_cap(data: ReplayData) -> Gate:
    waits = data.summary.cap_waits
    message = (
        f"{counted(waits, 'request')} had to wait for others to end; an open loop holds nothing back: raise "
        "load.max_inflight, or choose a lower rate"
        if waits
        else "no request had to wait for others to end"
    )
    return Gate(name="in_flight_cap", passed=not waits, message=message, value=float(waits), limit=0.0)
