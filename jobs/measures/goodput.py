"""Goodput: requests that were answered within the limits of a service-level objective.

Every request that was sent counts, and one that failed is a miss. An answer that came in one chunk has no
time per output token, so no such limit can be broken by it. Latencies of an open loop count from when the
request was due. Without a limit there is no goodput: the figures are absent, not zero.
"""

from jobs.measures.timing import origin
from jobs.measures.work import Span, seconds
from jobs.replay.data import ReplayData
from jobs.replay.job import RequestRecord
from jobs.slo import Slo

SHARE = "slo/goodput_share"
RATE = "slo/goodput_req_s"
_NS_PER_MS = 1e6


def goodput(data: ReplayData, slo: Slo, window: Span | None) -> dict[str, float | None]:
    """Return the share of all requests that meet `slo`, and how many of them were sent a second."""
    if not slo.limits or not data.requests:
        return {SHARE: None, RATE: None}
    good = [request for request in data.requests if meets(request, slo, scheduled=data.open_loop)]
    rate = None
    if window is not None:
        start, end = window
        rate = sum(start <= request.dispatched < end for request in good) / seconds(window)
    return {SHARE: len(good) / len(data.requests), RATE: rate}


def meets(request: RequestRecord, slo: Slo, *, scheduled: bool) -> bool:
    """Return whether a request succeeded within the limits."""
    if request.error is not None or request.first is None or request.last is None:
        return False
    begun = origin(request, scheduled=scheduled)
    tokens = (request.completion_tokens or 0) - request.first_tokens
    decoded = request.chunks > 1 and tokens > 0
    spans = {
        "ttft_ms": request.first - begun,
        "tpot_ms": (request.last - request.first) / tokens if decoded else 0.0,
        "e2el_ms": request.last - begun,
    }
    return all(spans[name] <= limit * _NS_PER_MS for name, limit in slo.limits.items())
