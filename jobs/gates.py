"""Gates: what a cell and a pair have to pass before their figures mean anything.

A gate that fails makes the cell `invalid`, with the gate's message as the reason. Every message carries the
numbers, passed or not.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from engines.counters import Counters
from engines.spec import Acceptance
from jobs.replay.data import ReplayData
from jobs.result import Gate
from jobs.workload.ideal import IdealCache

OCCUPANCY = 0.95
"""Least mean share of users with a request in flight in the steady window."""
LAG_MS = 5.0
"""Allowed event-loop lag of the client at the 99th percentile, whatever the engine's pace."""
LAG_SHARE = 0.25
"""Allowed lag as a share of the median chunk gap, if that is more.

A late client stamps chunks late, by up to its lag. Against steps of 10 ms that matters from 5 ms on. An
engine on CPU cores steps in 50 to 500 ms, and a machine that is full of it delays everybody by some
milliseconds: a quarter of a step, rarely reached, moves no figure by more than its noise.
"""
CPU_CORES = 0.7
"""Allowed CPU of the load process, in cores: above it, it is about to be the bottleneck."""
SLIP_SHARE = 0.05
"""Share of a replay by which an emulated engine may fall behind the hardware it emulates.

It falls behind first where it sends most chunks a second, which is the baseline: that would flatter drafters.
"""
ACCEPTANCE_ERRORS = 4.0
"""Standard errors by which a realised mean acceptance length may miss the requested one by chance."""
ACCEPTANCE_SHARE = 0.02
"""Share by which it may miss besides: answers end within a draft, and engines pad the last one."""
SHOWN_KEYS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivered:
    """The work that a replay asked for and got: equal in both arms of a pair, or they did not do the same."""

    requests: int
    requested_prompt_tokens: int
    requested_output_tokens: int
    prompt_tokens: int
    output_tokens: int

    @classmethod
    def of(cls, data: ReplayData) -> Self:
        """Return the work of a replay."""
        return cls(
            requests=len(data.requests),
            requested_prompt_tokens=sum(r.expected_prompt_tokens for r in data.requests),
            requested_output_tokens=sum(r.expected_tokens for r in data.requests),
            prompt_tokens=sum(r.prompt_tokens or 0 for r in data.requests),
            output_tokens=sum(r.completion_tokens or 0 for r in data.requests),
        )


def cell_gates(
    data: ReplayData,
    *,
    counters: Counters,
    metrics: Mapping[str, float | None],
    acceptance: Acceptance | None,
    ideal: IdealCache | None,
    cold: bool,
    oversubscribed: bool,
    emulated: bool,
) -> tuple[Gate, ...]:
    """Return every gate of one cell, passed or not.

    Args:
        data: The replay.
        counters: Engine counters, delta over the replay.
        metrics: Figures by `jobs/measurement.py`.
        acceptance: Synthetic acceptance that the arm asks for; None for real acceptance.
        ideal: What a cold infinite prefix cache could serve; None where the block size is unknown.
        cold: Whether the cache was emptied, or the requests carry a salt nobody used before.
        oversubscribed: Whether client and engine share a core: then the client's lateness is no news, and the
            cell gets no verdict anyway.
        emulated: Whether the engine models hardware, and so can fall behind it.
    """
    gates = [
        _request_errors(data),
        _occupancy(data, metrics),
        _loop_lag(metrics, oversubscribed=oversubscribed),
        _client_cpu(metrics, oversubscribed=oversubscribed),
        _output_identity(metrics),
        _prompt_identity(metrics),
        _prompt_lengths(data),
        _cold_cache(metrics, ideal, cold=cold),
    ]
    if emulated:
        gates.append(_emulator_pace(data, counters))
    if acceptance is not None:
        gates.append(_acceptance(counters, metrics, acceptance))
    return tuple(gates)


def pair_gates(
    *,
    resolved: Mapping[str, Any],
    baseline_resolved: Mapping[str, Any],
    drafter_keys: Sequence[str],
    delivered: Delivered,
    baseline_delivered: Delivered,
) -> tuple[Gate, ...]:
    """Return the gates of a cell against the baseline of its segment.

    Args:
        resolved: The engine's own resolved configuration, flat.
        baseline_resolved: The baseline engine's.
        drafter_keys: Prefixes of keys that may differ because the drafter does.
        delivered: Work of the cell.
        baseline_delivered: Work of the baseline.
    """
    return (
        _configuration(resolved, baseline_resolved, drafter_keys),
        _equal_work(delivered, baseline_delivered),
    )


def _request_errors(data: ReplayData) -> Gate:
    failed = [request for request in data.requests if request.error is not None]
    causes: dict[str, int] = {}
    for request in failed:
        causes[request.error or ""] = causes.get(request.error or "", 0) + 1
    message = f"{len(failed)} of {len(data.requests)} requests failed"
    if failed:
        listed = ", ".join(f"{count} {cause}" for cause, count in sorted(causes.items()))
        message += f" ({listed}); the first: {failed[0].error_detail[:200]}"
    return Gate(
        name="request_errors", passed=not failed, message=message, value=float(len(failed)), limit=0.0
    )


def _occupancy(data: ReplayData, metrics: Mapping[str, float | None]) -> Gate:
    value = metrics["window/occupancy"]
    if value is None:
        message = (
            "there is no steady window: a user ran out of conversations before every user had finished one; "
            "replay more conversations, or fewer users"
        )
        return Gate(name="occupancy", passed=False, message=message, limit=OCCUPANCY)
    message = (
        f"{value:.1%} of {data.concurrency} users had a request in flight; at least {OCCUPANCY:.0%} is needed"
    )
    return Gate(name="occupancy", passed=value >= OCCUPANCY, message=message, value=value, limit=OCCUPANCY)


def _loop_lag(metrics: Mapping[str, float | None], *, oversubscribed: bool) -> Gate:
    value = metrics["client/loop_lag_p99_ms"] or 0.0
    gap = metrics["latency/icl_p50_ms"] or 0.0
    limit = max(LAG_MS, LAG_SHARE * gap)
    message = f"the client's loop lag is {value:.1f} ms at the 99th percentile; allowed {limit:.1f} ms"
    return _client_gate("loop_lag", value, limit, message, oversubscribed=oversubscribed)


def _client_cpu(metrics: Mapping[str, float | None], *, oversubscribed: bool) -> Gate:
    value = metrics["client/cpu_share"] or 0.0
    message = f"the client used {value:.2f} cores; allowed {CPU_CORES:.2f}"
    return _client_gate("client_cpu", value, CPU_CORES, message, oversubscribed=oversubscribed)


def _client_gate(name: str, value: float, limit: float, message: str, *, oversubscribed: bool) -> Gate:
    if oversubscribed:
        message += " (not judged: client and engine share a core)"
    return Gate(name=name, passed=oversubscribed or value <= limit, message=message, value=value, limit=limit)


def _output_identity(metrics: Mapping[str, float | None]) -> Gate:
    return _identity(
        "output_identity", "output", metrics["tokens/client_output"], metrics["tokens/engine_output"]
    )


def _prompt_identity(metrics: Mapping[str, float | None]) -> Gate:
    return _identity(
        "prompt_identity", "prompt", metrics["tokens/client_prompt"], metrics["tokens/engine_prompt"]
    )


def _identity(name: str, kind: str, client: float | None, engine: float | None) -> Gate:
    mine, theirs = client or 0.0, engine or 0.0
    message = f"the client counted {mine:.0f} {kind} tokens, the engine {theirs:.0f}"
    return Gate(name=name, passed=mine == theirs, message=message, value=mine - theirs, limit=0.0)


def _prompt_lengths(data: ReplayData) -> Gate:
    known = [request for request in data.requests if request.prompt_tokens is not None]
    wrong = [request for request in known if request.prompt_tokens != request.expected_prompt_tokens]
    message = f"{len(wrong)} of {len(known)} prompts had another length in the engine than was sent"
    if wrong:
        first = wrong[0]
        message += (
            f"; the first: {first.conversation} turn {first.turn} with {first.prompt_tokens} tokens instead "
            f"of {first.expected_prompt_tokens}"
        )
    return Gate(name="prompt_lengths", passed=not wrong, message=message, value=float(len(wrong)), limit=0.0)


def _cold_cache(metrics: Mapping[str, float | None], ideal: IdealCache | None, *, cold: bool) -> Gate:
    name = "cold_cache"
    cached = metrics["cache/first_turn_cached_tokens"]
    if not cold:
        message = "the prefix cache was neither emptied nor set apart by a salt before the replay"
        return Gate(name=name, passed=False, message=message, value=cached)
    if cached is None or ideal is None:
        absent = "cached tokens in usage" if cached is None else "the KV block size"
        message = (
            f"the cache was emptied or salted; not checked further, as the engine does not report {absent}"
        )
        return Gate(name=name, passed=True, message=message, value=cached)
    limit = float(ideal.first_turn_tokens)
    message = (
        f"first turns had {cached:.0f} tokens from the prefix cache; a cold cache can serve at most "
        f"{limit:.0f} (prefixes that conversations share)"
    )
    return Gate(name=name, passed=cached <= limit, message=message, value=cached, limit=limit)


def _emulator_pace(data: ReplayData, counters: Counters) -> Gate:
    seconds = (data.summary.ended - data.summary.started) / 1e9
    value = counters.slipped_seconds / seconds if seconds else 0.0
    message = (
        f"this machine fell {counters.slipped_seconds:.2f} s in {seconds:.1f} s behind what it emulates; "
        f"{SLIP_SHARE:.0%} is allowed: raise engine.flags.time_scale, or stop what else runs here"
    )
    return Gate(
        name="emulator_pace", passed=value <= SLIP_SHARE, message=message, value=value, limit=SLIP_SHARE
    )


def _acceptance(counters: Counters, metrics: Mapping[str, float | None], acceptance: Acceptance) -> Gate:
    name = "synthetic_acceptance"
    requested, realised = metrics["spec/requested_mal"], metrics["spec/mal"]
    if not counters.drafts or requested is None or realised is None:
        message = f"acceptance {acceptance.alpha:g} was asked for and nothing was drafted"
        return Gate(name=name, passed=False, message=message, value=realised)
    limit = acceptance_tolerance(acceptance, len(counters.accepted_per_position), counters.drafts)
    limit += ACCEPTANCE_SHARE * requested
    message = (
        f"mean acceptance length is {realised:.3f} over {counters.drafts} drafts; {requested:.3f} was "
        f"asked for, allowed difference {limit:.3f}"
    )
    passed = abs(realised - requested) <= limit
    return Gate(name=name, passed=passed, message=message, value=realised - requested, limit=limit)


def acceptance_tolerance(acceptance: Acceptance, k: int, drafts: int) -> float:
    """Return the chance error allowed on a mean acceptance length: so many standard errors of the mean.

    The number X of accepted drafts has P(X >= i) = rates[i], so E[X] is their sum, and E[X^2] the sum of
    (2i - 1) rates[i].
    """
    rates = acceptance.rates(k)
    mean = sum(rates)
    square = sum((2 * position - 1) * rate for position, rate in enumerate(rates, start=1))
    return ACCEPTANCE_ERRORS * math.sqrt(max(0.0, square - mean**2) / drafts)


def _configuration(
    resolved: Mapping[str, Any], baseline: Mapping[str, Any], drafter_keys: Sequence[str]
) -> Gate:
    prefixes = tuple(drafter_keys)
    absent = "(absent)"
    differing = [
        key
        for key in sorted({*resolved, *baseline})
        if resolved.get(key, absent) != baseline.get(key, absent) and not key.startswith(prefixes)
    ]
    shown = [
        f"{key}: {resolved.get(key, absent)!r} against {baseline.get(key, absent)!r}" for key in differing
    ]
    if not differing:
        message = f"the arms' resolved configurations ({len(resolved)} keys) differ in the drafter only"
    else:
        more = f" and {len(shown) - SHOWN_KEYS} more" if len(shown) > SHOWN_KEYS else ""
        message = f"the arms differ in more than the drafter: {'; '.join(shown[:SHOWN_KEYS])}{more}"
    return Gate(
        name="configuration", passed=not differing, message=message, value=float(len(differing)), limit=0.0
    )


def _equal_work(delivered: Delivered, baseline: Delivered) -> Gate:
    mine = delivered.prompt_tokens + delivered.output_tokens
    theirs = baseline.prompt_tokens + baseline.output_tokens
    message = (
        f"{delivered.requests} requests with {delivered.prompt_tokens} prompt and {delivered.output_tokens} "
        f"output tokens; the baseline {baseline.requests} with {baseline.prompt_tokens} and "
        f"{baseline.output_tokens}"
    )
    passed = delivered == baseline
    return Gate(name="equal_work", passed=passed, message=message, value=float(mine - theirs), limit=0.0)
