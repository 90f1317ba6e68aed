"""The decode steps of a trace, and where the time of a mean one goes.

A worker of vLLM names each step `execute_context_a(b)_generation_c(d)`: a requests in prefill with b tokens,
c in decode with d positions, the drafts among them. Inside a step its V1 model runner names its parts. Steps
with a request in prefill are left out, and so are the first ones, in which the profiler itself warms up.

On a CPU the host's own time is the step's. On a GPU the time of kernels is (`trace_kernels.py`).
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from engines.errors import EngineError
from engines.trace import Event
from engines.trace_kernels import DEVICE, kernel_times

WARMING = 3
"""Steps at the beginning of a trace that are left out."""
US_PER_MS = 1000.0
SCOPE = "gpu_model_runner: "
"""Prefix of the parts of a step, on the CPU too."""

TARGET = ("forward", "postprocess")
"""The target's forward; its logits come in `postprocess`."""
DRAFT = "draft"
SAMPLE = "sample"

_STEP = re.compile(
    r"execute_(?:\d+_)?context_(?P<prefills>\d+)\([^)]*\)_generation_(?P<requests>\d+)\((?:sq)?(?P<positions>\d+)"
)
_ATTENTION = re.compile(r"attention|attn|kv_cache_update", re.IGNORECASE)
_HOST = frozenset({"user_annotation", "cpu_op", "cuda_runtime", "cuda_driver"})


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTimes:
    """Where the mean decode step of a trace goes. Times are milliseconds of one step."""

    steps: int
    """Steps it is the mean of."""
    step_ms: float
    """From the start of one step to the start of the next; the six parts below add up to it."""
    forward_ms: float
    """The target's forward without its attention; its logits are in it."""
    attention_ms: float
    """Attention in the target's forward, the writing of its keys and values included."""
    draft_ms: float
    """The drafter."""
    sample_ms: float
    """Sampling, or verification of the drafts."""
    overhead_ms: float
    """Scheduler, launches, input preparation and bookkeeping: on a GPU, the time in which it computes nothing
    else."""
    rest_ms: float
    """What no rule attributes."""
    requests: float
    """Requests in the batch of this rank."""
    positions: float
    """Positions of a request that a step computes: K + 1 where every draft is whole, 1 without drafts."""
    device: str
    """`cpu` or `gpu`: whose time it is."""
    scopes: Mapping[str, float] = field(default_factory=dict)
    """Milliseconds of a step by the engine's own names of its parts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One decode step as the trace names it."""

    start: float
    """Microseconds, as are the next two."""
    executed: float
    """End of the call that runs the forward."""
    end: float
    """Start of the next step."""
    requests: int
    positions: int


def step_times(events: Iterable[Event]) -> StepTimes:
    """Return where the mean decode step of one worker's trace goes.

    Raises:
        EngineError: it shows no two decode steps.
    """
    kept = [event for event in events if _matters(event)]
    steps = _steps(kept)
    scopes = [event for event in kept if _is_scope(event)]
    kernels = [event for event in kept if event.category in DEVICE]
    if not kernels:
        return _host_times(steps, scopes, kept)
    return _device_times(steps, scopes, kept)


def mean_times(ranks: Sequence[StepTimes]) -> StepTimes:
    """Return the mean over the ranks of an engine, each of which has a trace of its own."""
    assert ranks, "no trace"

    def mean(name: str) -> float:
        return float(sum(getattr(rank, name) for rank in ranks) / len(ranks))

    names = sorted({name for rank in ranks for name in rank.scopes})
    return StepTimes(
        steps=min(rank.steps for rank in ranks),
        step_ms=mean("step_ms"),
        forward_ms=mean("forward_ms"),
        attention_ms=mean("attention_ms"),
        draft_ms=mean("draft_ms"),
        sample_ms=mean("sample_ms"),
        overhead_ms=mean("overhead_ms"),
        rest_ms=mean("rest_ms"),
        requests=mean("requests"),
        positions=mean("positions"),
        device=ranks[0].device,
        scopes={name: sum(rank.scopes.get(name, 0.0) for rank in ranks) / len(ranks) for name in names},
    )


def _matters(event: Event) -> bool:
    if event.category == "cpu_op":
        return _ATTENTION.search(event.name) is not None
    return event.category in DEVICE or event.category in _HOST


def _is_scope(event: Event) -> bool:
    return event.category == "user_annotation" and event.name.startswith(SCOPE)


def _steps(events: Sequence[Event]) -> list[Step]:
    """Return the longest run of decode steps with one number of requests.

    Raises:
        EngineError: there are no two.
    """
    found = sorted(
        ((event, match) for event in events if (match := _step_name(event))), key=lambda pair: pair[0].start
    )
    runs: list[list[Step]] = [[]]
    for (event, match), (following, _) in pairwise(found[WARMING:]):
        step = Step(
            start=event.start,
            executed=event.end,
            end=following.start,
            requests=int(match["requests"]),
            positions=int(match["positions"]),
        )
        is_decode = int(match["prefills"]) == 0 and step.requests > 0
        if not is_decode or (runs[-1] and runs[-1][-1].requests != step.requests):
            runs.append([])
        if is_decode:
            runs[-1].append(step)
    longest = max(runs, key=len)
    if len(longest) < 2:
        message = (
            f"the trace shows {len(found)} steps and no two decode steps in a row after the first {WARMING}; "
            "profile more --steps"
        )
        raise EngineError(message)
    return longest


def _step_name(event: Event) -> re.Match[str] | None:
    return _STEP.match(event.name) if event.category == "user_annotation" else None


def _host_times(steps: Sequence[Step], scopes: Sequence[Event], events: Sequence[Event]) -> StepTimes:
    """Return the times of a step from the host's clock alone: on a CPU there is nothing else."""
    inside = [scope for scope in scopes if steps[0].start <= scope.start < steps[-1].end]
    times: dict[str, float] = {}
    for scope in inside:
        name = scope.name.removeprefix(SCOPE)
        times[name] = times.get(name, 0.0) + scope.duration
    targets = [scope for scope in inside if scope.name == SCOPE + TARGET[0]]
    attention = _covered([event for event in events if event.category == "cpu_op"], targets)
    count = len(steps)
    busy = sum(_busy(steps, inside))
    whole = steps[-1].end - steps[0].start
    target = sum(times.get(name, 0.0) for name in TARGET)
    draft, sample = times.get(DRAFT, 0.0), times.get(SAMPLE, 0.0)
    named = sum(times.values())
    # what the worker does between its parts is nobody's; what happens outside of its calls is the scheduler's
    rest = max(0.0, busy - named)
    per_step = US_PER_MS * count
    return StepTimes(
        steps=count,
        step_ms=whole / per_step,
        forward_ms=(target - attention) / per_step,
        attention_ms=attention / per_step,
        draft_ms=draft / per_step,
        sample_ms=sample / per_step,
        overhead_ms=(whole - target - draft - sample - rest) / per_step,
        rest_ms=rest / per_step,
        requests=sum(step.requests for step in steps) / count,
        positions=_positions(steps),
        device="cpu",
        scopes={
            **{name: time / per_step for name, time in sorted(times.items())},
            "outside the worker": (whole - busy) / per_step,
        },
    )


def _busy(steps: Sequence[Step], scopes: Sequence[Event]) -> list[float]:
    """Return how long the worker was busy in each step: in the call of the forward, and in that of sampling.

    The second call has no name of its own: it lasts from its first part to the end of its last.
    """
    ordered = sorted(scopes, key=lambda scope: scope.start)
    found = []
    at = 0
    for step in steps:
        first, last = None, step.executed
        while at < len(ordered) and ordered[at].start < step.end:
            scope = ordered[at]
            if scope.start >= step.executed:
                first = scope.start if first is None else first
                last = max(last, scope.end)
            at += 1
        found.append(step.executed - step.start + (0.0 if first is None else last - first))
    return found


def _covered(events: Sequence[Event], spans: Sequence[Event]) -> float:
    """Return the microseconds of `spans` that `events` cover: one inside another counts once."""
    ordered = sorted(events, key=lambda event: event.start)
    total = 0.0
    at = 0
    for span in sorted(spans, key=lambda span: span.start):
        until = span.start
        while at < len(ordered) and ordered[at].start < span.end:
            event = ordered[at]
            if event.start >= span.start and event.end > until:
                total += min(event.end, span.end) - max(event.start, until)
                until = event.end
            at += 1
    return total


def _device_times(steps: Sequence[Step], scopes: Sequence[Event], events: Sequence[Event]) -> StepTimes:
    """Return the times of a step from the device's clock."""
    spans = [(scope.start, scope.end, scope.name.removeprefix(SCOPE)) for scope in scopes]
    found = kernel_times([(step.start, step.executed) for step in steps], spans, events, ends=steps[-1].end)
    per_step = US_PER_MS * found.steps
    parts = {name: time / per_step for name, time in found.parts.items()}
    kept = steps[: found.steps]
    return StepTimes(
        steps=found.steps,
        step_ms=found.whole / per_step,
        forward_ms=parts.get("forward", 0.0),
        attention_ms=parts.get("attention", 0.0),
        draft_ms=parts.get(DRAFT, 0.0),
        sample_ms=parts.get(SAMPLE, 0.0),
        overhead_ms=parts.get("overhead", 0.0) + found.idle / per_step,
        rest_ms=parts.get("rest", 0.0),
        requests=sum(step.requests for step in kept) / len(kept),
        positions=_positions(kept),
        device="gpu",
        scopes={**parts, "idle": found.idle / per_step},
    )


def _positions(steps: Sequence[Step]) -> float:
    return sum(step.positions for step in steps) / sum(step.requests for step in steps)
