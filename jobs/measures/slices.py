"""Slices: the same figures by turn number, and by the context length at which a token was decoded.

By turn: 0, 1, 2, and 3 or later. By context: prompt tokens plus the answer so far, before a chunk's tokens;
a long answer crosses from one bucket into the next. Acceptance is the engine's account of single requests,
each in the bucket of the context in the middle of its answer.
"""

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

import numpy as np

from jobs.measures import timing
from jobs.measures.drafts import mean_length
from jobs.measures.work import cached_tokens, good_chunks
from jobs.metric_names import CONTEXT_SLICES, TURN_SLICES
from jobs.replay.data import ReplayData
from jobs.replay.job import RequestRecord

CONTEXT_EDGES = (0, 1_000, 4_000, 16_000, 64_000)
"""Least context of each bucket of `CONTEXT_SLICES`, in tokens; the next one's is its end, excluded."""

Slice = dict[str, float | None]


def by_turn(requests: Sequence[RequestRecord], *, scheduled: bool = False) -> dict[str, Slice]:
    """Return the figures of each slice of turn numbers, of requests that succeeded.

    A slice has `requests`, `prompt_tokens` (mean), `ttft_p50_ms`, `ttft_p95_ms`, `speed_tok_s` (user speed)
    and `cached_share` (cached / prompt tokens). `scheduled` counts latencies from when requests were due.
    """
    last = len(TURN_SLICES) - 1
    parts: list[list[RequestRecord]] = [[] for _ in TURN_SLICES]
    for request in requests:
        parts[min(request.turn, last)].append(request)
    return {
        name: _turn_slice(part, scheduled=scheduled) for name, part in zip(TURN_SLICES, parts, strict=True)
    }


def by_context(data: ReplayData) -> dict[str, Slice]:
    """Return the figures of each bucket of context lengths.

    A bucket has `tokens` and `chunks` (without the first chunks, which took prefill), `speed_tok_s` (tokens
    over the gaps they took), `tokens_per_chunk`, and `mal` (None where the engine gives no account of single
    requests, or the arm has no drafter).
    """
    tokens, gaps, contexts = _decoded(data)
    place = np.searchsorted(CONTEXT_EDGES, contexts, side="right") - 1
    found: dict[str, Slice] = {}
    for bucket, name in enumerate(CONTEXT_SLICES):
        inside = place == bucket
        count, chunks, spent = int(tokens[inside].sum()), int(inside.sum()), float(gaps[inside].sum())
        found[name] = {
            "tokens": float(count),
            "chunks": float(chunks),
            "speed_tok_s": count / spent * timing.NS_PER_S if spent else None,
            "tokens_per_chunk": count / chunks if chunks else None,
            "mal": mean_length([r for r in data.succeeded if _bucket(r) == bucket]),
        }
    return found


def _bucket(request: RequestRecord) -> int:
    middle = (request.prompt_tokens or 0) + (request.completion_tokens or 0) // 2
    return bisect_right(CONTEXT_EDGES, middle) - 1


def _turn_slice(requests: Sequence[RequestRecord], *, scheduled: bool) -> Slice:
    ttft = timing.ttft_ms(requests, scheduled=scheduled)
    prompt = sum(request.prompt_tokens or 0 for request in requests)
    cached = cached_tokens(requests)
    return {
        "requests": float(len(requests)),
        "prompt_tokens": prompt / len(requests) if requests else None,
        "ttft_p50_ms": timing.quantile(ttft, 50),
        "ttft_p95_ms": timing.quantile(ttft, 95),
        "speed_tok_s": timing.user_speed_tok_s(requests),
        "cached_share": None if cached is None or not prompt else cached / prompt,
    }


def _decoded(data: ReplayData) -> tuple[Any, Any, Any]:
    """Return (tokens, gap in ns, context before it) of every chunk after an answer's first one."""
    tokens = timing.tokens_of_chunks(data.chunks)
    prompts = np.asarray([request.prompt_tokens or 0 for request in data.requests], dtype=np.int64)
    contexts = prompts[data.chunks["request"]] + data.chunks["tokens"] - tokens
    times = data.chunks["time"]
    gaps = times - np.concatenate((times[:1], times[:-1]))
    kept = good_chunks(data) & ~timing.starts(data.chunks)
    return tokens[kept], gaps[kept], contexts[kept]
