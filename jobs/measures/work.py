"""Work done: tokens and requests in a span of time. A span is (start, end) in nanoseconds of CLOCK_MONOTONIC.

Prompt tokens, and their cached part, count when the first token arrives; output tokens chunk by chunk.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from jobs.measures.timing import NS_PER_S, tokens_of_chunks
from jobs.replay.data import ReplayData
from jobs.replay.job import ReplaySummary, RequestRecord

Span = tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """Tokens of successful requests."""

    prompt: int
    """Prompt tokens, cached ones included."""
    cached: int | None
    """Their cached part; None where usage does not say."""
    output: int

    @property
    def total(self) -> int:
        """Cached prompt + uncached prompt + output tokens."""
        return self.prompt + self.output

    @property
    def computed(self) -> int | None:
        """Uncached prompt + output tokens. Recompute after preemption and rejected drafts are not in it."""
        return None if self.cached is None else self.total - self.cached


def steady_window(summary: ReplaySummary) -> Span | None:
    """Return the steady window, or None when it is empty."""
    start, end = summary.window_start, summary.window_end
    return (start, end) if start is not None and end is not None and end > start else None


def makespan(summary: ReplaySummary) -> Span:
    """Return the whole replay: first dispatch to last end."""
    return summary.started, summary.ended


def work_in(data: ReplayData, span: Span) -> Work:
    """Return the work done from the start of `span` (included) to its end (excluded)."""
    start, end = span
    begun = [r for r in data.succeeded if r.first is not None and start <= r.first < end]
    times = data.chunks["time"]
    inside = good_chunks(data) & (times >= start) & (times < end)
    output = int(tokens_of_chunks(data.chunks)[inside].sum())
    return Work(prompt=sum(r.prompt_tokens or 0 for r in begun), cached=cached_tokens(begun), output=output)


def good_chunks(data: ReplayData) -> npt.NDArray[np.bool_]:
    """Return which chunks belong to requests that succeeded."""
    good = np.asarray([request.error is None for request in data.requests], dtype=bool)
    kept: npt.NDArray[np.bool_] = good[data.chunks["request"]]
    return kept


def whole_work(data: ReplayData) -> Work:
    """Return the work of the whole replay: of the requests that succeeded."""
    return work_of(data.succeeded)


def work_of(requests: Sequence[RequestRecord]) -> Work:
    """Return the work that the usage of `requests` reports; an unknown count is 0."""
    return Work(
        prompt=sum(r.prompt_tokens or 0 for r in requests),
        cached=cached_tokens(requests),
        output=sum(r.completion_tokens or 0 for r in requests),
    )


def cached_tokens(requests: Sequence[RequestRecord]) -> int | None:
    """Return the cached prompt tokens that usage reports; None when one of the requests has none reported."""
    if not requests or any(request.cached_tokens is None for request in requests):
        return None
    return sum(request.cached_tokens or 0 for request in requests)


def rate(tokens: int | None, span: Span | None) -> float | None:
    """Return tokens/s over `span`."""
    return None if tokens is None or span is None or span[1] <= span[0] else tokens / seconds(span)


def seconds(span: Span) -> float:
    """Return the length of `span`."""
    return (span[1] - span[0]) / NS_PER_S


def in_flight(data: ReplayData, span: Span) -> float:
    """Return the mean number of requests in flight: their time in flight, clipped to `span`, over its length.

    By Little's law this is throughput times residence time; in a closed loop without think time it is C.
    """
    return _held([(r.dispatched, r.ended) for r in data.requests], span)


def thinking(data: ReplayData, span: Span) -> float:
    """Return the mean number of users between an answer and the next turn of their conversation.

    They think from the end of the answer to the time the next request is due; what it leaves later than that
    is the client's lateness, and no thinking.
    """
    ended: dict[tuple[str, int], int] = {}
    thoughts: list[Span] = []
    for request in data.requests:
        key = (request.conversation, request.epoch)
        if key in ended:
            thoughts.append((ended[key], request.scheduled))
        ended[key] = request.ended
    return _held(thoughts, span)


def _held(spans: Sequence[Span], span: Span) -> float:
    start, end = span
    return sum(max(0, min(last, end) - max(first, start)) for first, last in spans) / (end - start)


def drain_share(summary: ReplaySummary) -> float | None:
    """Return the share of the makespan after the steady window."""
    span = makespan(summary)
    if summary.window_end is None or span[1] <= span[0]:
        return None
    # The last user learns that no work is left just after the last answer ended.
    return max(0, span[1] - summary.window_end) / (span[1] - span[0])
