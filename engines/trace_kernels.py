"""Where the time of a GPU goes in a trace: kernels by who launched them, and by their names.

A launch on the host and its kernel on a stream share a correlation number. What was launched inside a part
that the engine names belongs to that part; attention is told by the names of kernels. Where the engine names
no parts (vLLM's V2 model runner), launches outside the forward's call are sampling up to the last kernel
that verifies drafts, and the drafter after it. Written from the format of torch's traces and vLLM 0.32's
source; it has seen no trace of a GPU yet.
"""

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from engines.errors import EngineError
from engines.trace import Event

DEVICE = frozenset({"kernel", "gpu_memcpy", "gpu_memset"})
"""Categories of what a device does."""
LAUNCHES = frozenset({"cuda_runtime", "cuda_driver"})

ATTENTION = re.compile(
    r"attention|attn|fmha|flash_?(?:fwd|mla)|flash::|paged_?kv|reshape_and_cache|concat_and_cache|\bmla_",
    re.IGNORECASE,
)
VERIFIES = re.compile(r"reject|resampl|recovered", re.IGNORECASE)
MATRICES = re.compile(r"gemm|nvjet|cutlass|xmma|matmul|splitk", re.IGNORECASE)

_PARTS = {"forward": "forward", "postprocess": "forward", "draft": "draft", "sample": "sample"}
"""Part of the engine -> part of a step; every other part prepares or keeps books."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelTimes:
    """What a device did in so many steps, in microseconds."""

    steps: int
    whole: float
    """From the first kernel of the first step to that of the step after the last."""
    idle: float
    """The part of it in which no kernel ran."""
    parts: dict[str, float]
    """Busy time by part: `forward`, `attention`, `draft`, `sample`, `overhead`, `rest`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kernel:
    name: str
    start: float
    end: float
    launched: float
    """When the host launched it."""


def kernel_times(
    steps: Sequence[tuple[float, float]],
    scopes: Sequence[tuple[float, float, str]],
    events: Sequence[Event],
    *,
    ends: float,
) -> KernelTimes:
    """Return what the device did for all steps but the last, whose first kernel ends the one before it.

    Args:
        steps: start of each step and end of its forward's call, on the host.
        scopes: start, end and name of each part, on the host.
        events: kernels and launches.
        ends: when the last step ended on the host.

    Raises:
        EngineError: the first or the last step has no kernel.
    """
    kernels = _launched(events)
    starts = [start for start, _ in steps]
    by_step: list[list[_Kernel]] = [[] for _ in steps]
    for kernel in kernels:
        index = bisect_right(starts, kernel.launched) - 1
        if index >= 0 and kernel.launched < ends:
            by_step[index].append(kernel)
    first = [min((kernel.start for kernel in own), default=None) for own in by_step]
    begin, finish = first[0], first[-1]
    if begin is None or finish is None:
        message = "the trace shows a decode step in which the GPU did nothing: its launches are not recorded"
        raise EngineError(message)
    ordered = sorted(scopes)
    parts: dict[str, float] = {}
    named: list[tuple[_Kernel, str]] = []
    for (_, executed), own in zip(steps[:-1], by_step[:-1], strict=True):
        named += _named(own, ordered, executed)
    covered = begin
    for kernel, part in sorted(named, key=lambda pair: pair[0].start):
        # two streams at once count once, for whoever came first
        took = min(kernel.end, finish) - max(kernel.start, covered)
        if took > 0:
            parts[part] = parts.get(part, 0.0) + took
            covered = max(covered, kernel.end)
    whole = finish - begin
    return KernelTimes(
        steps=len(steps) - 1, whole=whole, idle=max(0.0, whole - sum(parts.values())), parts=parts
    )


def _launched(events: Sequence[Event]) -> list[_Kernel]:
    """Return what the device did, with when it was launched; its own start where no launch is known."""
    launches: dict[int | None, float] = {
        event.correlation: event.start
        for event in events
        if event.category in LAUNCHES and event.correlation is not None
    }
    return [
        _Kernel(
            name=event.name if event.category == "kernel" else event.category,
            start=event.start,
            end=event.end,
            launched=launches.get(event.correlation, event.start),
        )
        for event in events
        if event.category in DEVICE
    ]


def _named(
    kernels: Sequence[_Kernel], scopes: Sequence[tuple[float, float, str]], executed: float
) -> list[tuple[_Kernel, str]]:
    """Return the kernels of one step with their parts."""
    if not scopes:
        return _unscoped(kernels, executed)
    starts = [start for start, _, _ in scopes]
    found = []
    for kernel in kernels:
        at = bisect_right(starts, kernel.launched) - 1
        inside = at >= 0 and kernel.launched < scopes[at][1]
        part = _PARTS.get(scopes[at][2], "overhead") if inside else "rest"
        found.append((kernel, _attention_apart(kernel, part)))
    return found


def _unscoped(kernels: Sequence[_Kernel], executed: float) -> list[tuple[_Kernel, str]]:
    """Return the parts where the engine names none: by the forward's call, order and names."""
    ordered = sorted(kernels, key=lambda kernel: kernel.launched)
    last = max((index for index, kernel in enumerate(ordered) if VERIFIES.search(kernel.name)), default=None)
    found = []
    for index, kernel in enumerate(ordered):
        if kernel.launched < executed:
            part = "forward"
        elif last is not None and index > last:
            part = "draft"
        else:  # the logits are made where they are sampled from
            part = "forward" if MATRICES.search(kernel.name) else "sample"
        found.append((kernel, _attention_apart(kernel, part)))
    return found


def _attention_apart(kernel: _Kernel, part: str) -> str:
    return "attention" if part == "forward" and ATTENTION.search(kernel.name) else part
