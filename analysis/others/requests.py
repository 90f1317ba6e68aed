"""Figures pooled over the requests of a run, by this program's own definitions.

Where a tool keeps its single requests, these replace its own summary: a median of means, or a percentile by
another rule, then needs no footnote.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from analysis.others.values import known, percentile

FIRST_IS_ONE = "the first chunk is taken to carry one token"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request that was answered."""

    ttft_s: float
    """First token - dispatch."""
    e2el_s: float
    """Last token - dispatch."""
    tokens: float
    """Output tokens by the server's usage, or by a tokenizer: never chunks."""
    first_tokens: float = 1.0
    """Tokens of the first chunk."""

    @property
    def decode_s(self) -> float:
        """Last token - first token."""
        return self.e2el_s - self.ttft_s

    @property
    def decode_tokens(self) -> float:
        """Tokens after the first chunk."""
        return self.tokens - self.first_tokens

    @property
    def streamed(self) -> bool:
        """Whether there is a decode to speak of: single-chunk answers are left out of speeds."""
        return self.decode_s > 0.0 and self.decode_tokens > 0.0


def pooled(requests: Sequence[Request]) -> dict[str, float]:
    """Return speed, latencies and decode share over the requests; absent where none has them."""
    streamed = [request for request in requests if request.streamed]
    decode = sum(request.decode_s for request in streamed)
    whole = sum(request.e2el_s for request in requests)
    ttft = [1e3 * request.ttft_s for request in requests]
    e2el = [1e3 * request.e2el_s for request in requests]
    tpot = [1e3 * request.decode_s / request.decode_tokens for request in streamed]
    tokens = sum(request.decode_tokens for request in streamed)
    return known(
        {
            "user/speed_tok_s": tokens / decode if streamed else None,
            "latency/decode_share": decode / whole if whole > 0.0 else None,
            "latency/ttft_p50_ms": percentile(ttft, 50),
            "latency/ttft_p95_ms": percentile(ttft, 95),
            "latency/ttft_p99_ms": percentile(ttft, 99),
            "latency/tpot_p50_ms": percentile(tpot, 50),
            "latency/tpot_p95_ms": percentile(tpot, 95),
            "latency/e2el_p50_ms": percentile(e2el, 50),
            "latency/e2el_p95_ms": percentile(e2el, 95),
            "requests/single_chunk": float(len(requests) - len(streamed)),
        }
    )


def few(axis: str, level: float, answered: int) -> tuple[str, ...]:
    """Return the caveat of a closed loop that ended soon after it had filled."""
    if axis != "concurrency" or answered >= 4 * level:
        return ()
    return (
        f"{answered} answered requests at C={level:g}, fewer than four a slot: ramp and drain weigh in it",
    )
