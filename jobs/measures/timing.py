"""Latencies and speeds of requests, as serving benchmarks define them, in milliseconds and tokens/s.

Every function takes requests that succeeded. Answers that came in one chunk have no decode time to speak of:
they are left out of speeds, and counted.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from jobs.replay.job import RequestRecord

Floats = npt.NDArray[np.float64]
NS_PER_MS = 1e6
NS_PER_S = 1e9


def quantile(values: Floats, percent: float) -> float | None:
    """Return a percentile by linear interpolation between order statistics (Hyndman and Fan's method 7).

    None of nothing.
    """
    return float(np.percentile(values, percent, method="linear")) if len(values) else None


def origin(request: RequestRecord, *, scheduled: bool) -> int:
    """Return when a request's latency begins: its dispatch, or in an open loop when it was due.

    Counted from dispatch, an open loop would hide that the client or the cap held a request back.
    """
    return request.scheduled if scheduled else request.dispatched


def ttft_ms(requests: Sequence[RequestRecord], *, scheduled: bool = False) -> Floats:
    """Return the times to first token: first chunk that carries a token - origin."""
    spans = [r.first - origin(r, scheduled=scheduled) for r in requests if r.first is not None]
    return _floats(spans) / NS_PER_MS


def e2el_ms(requests: Sequence[RequestRecord], *, scheduled: bool = False) -> Floats:
    """Return the end-to-end latencies: last chunk that carries a token - origin."""
    spans = [r.last - origin(r, scheduled=scheduled) for r in requests if r.last is not None]
    return _floats(spans) / NS_PER_MS


def schedule_lag_ms(requests: Sequence[RequestRecord]) -> Floats:
    """Return how long after they were due requests were sent."""
    return _floats([max(0, r.dispatched - r.scheduled) for r in requests]) / NS_PER_MS


def tpot_ms(requests: Sequence[RequestRecord]) -> Floats:
    """Return the times per output token of requests: (last - first) / (n - n_first).

    The tokens of the first chunk took no decode time that was seen, so they are not in the denominator.
    """
    spans = [span for r in requests if (span := _decode(r)) is not None]
    return _floats([seconds / tokens for seconds, tokens in spans]) / NS_PER_MS


def user_speed_tok_s(requests: Sequence[RequestRecord]) -> float | None:
    """Return sum(n - n_first) / sum(last - first): what a user sees flow, pooled over all turns."""
    spans = [span for r in requests if (span := _decode(r)) is not None]
    nanoseconds = sum(span for span, _ in spans)
    return sum(tokens for _, tokens in spans) / nanoseconds * NS_PER_S if nanoseconds else None


def request_speeds_tok_s(requests: Sequence[RequestRecord]) -> Floats:
    """Return the decode speed of each request: (n - n_first) / (last - first)."""
    spans = [span for r in requests if (span := _decode(r)) is not None]
    return _floats([tokens / span for span, tokens in spans if span]) * NS_PER_S


def decode_share(requests: Sequence[RequestRecord], *, scheduled: bool = False) -> float | None:
    """Return f = sum(last - first) / sum(E2EL), the share of request time that decoding takes."""
    decode = sum(r.last - r.first for r in requests if r.first is not None and r.last is not None)
    whole = sum(r.last - origin(r, scheduled=scheduled) for r in requests if r.last is not None)
    return decode / whole if whole else None


def single_chunk(requests: Sequence[RequestRecord]) -> int:
    """Return how many answers came in one chunk."""
    return sum(r.chunks == 1 for r in requests)


def icl_ms(chunks: npt.NDArray[Any]) -> Floats:
    """Return the inter-chunk latencies: gaps between the token-carrying chunks of a request."""
    gaps, _ = _gaps(chunks)
    return gaps / NS_PER_MS


def itl_ms(chunks: npt.NDArray[Any]) -> Floats:
    """Return the inter-token latencies: each chunk gap spread over the chunk's tokens, one value a token."""
    gaps, tokens = _gaps(chunks)
    some = tokens > 0
    return np.repeat(gaps[some] / tokens[some], tokens[some]) / NS_PER_MS


def tokens_of_chunks(chunks: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Return the tokens each chunk brought, from the running counts."""
    counts = chunks["tokens"].astype(np.int64)
    before = np.concatenate(([0], counts[:-1]))
    before[starts(chunks)] = 0
    return counts - before


def starts(chunks: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Return where a request's first chunk stands."""
    request = chunks["request"]
    return np.concatenate(([True], request[1:] != request[:-1])) if len(chunks) else np.zeros(0, dtype=bool)


def _gaps(chunks: npt.NDArray[Any]) -> tuple[Floats, npt.NDArray[np.int64]]:
    """Return each chunk's gap to the one before it in its request (ns), and its tokens."""
    later = ~starts(chunks)
    times = chunks["time"]
    gaps = times - np.concatenate((times[:1], times[:-1]))
    return gaps[later].astype(np.float64), tokens_of_chunks(chunks)[later]


def _decode(request: RequestRecord) -> tuple[int, int] | None:
    """Return (last - first in ns, n - n_first), or None for an answer without decode time."""
    if request.first is None or request.last is None or request.completion_tokens is None:
        return None
    tokens = request.completion_tokens - request.first_tokens
    return (request.last - request.first, tokens) if request.chunks > 1 and tokens > 0 else None


def _floats(values: Sequence[float]) -> Floats:
    return np.asarray(values, dtype=np.float64)
