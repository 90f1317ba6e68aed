"""Counters of an engine: snapshots of its Prometheus page, and the deltas between two of them.

Counters are cumulative and engines never reset them, so only deltas mean anything; they are summed over all
ranks (`engine` labels), never read from rank 0.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Counters:
    """One snapshot, or (from `since`) one delta. Token counts unless a docstring says otherwise."""

    time: float
    """`time.monotonic()` of the snapshot; in a delta the seconds between the two."""
    prompt_tokens: int
    """Prompt tokens of requests whose first token is out, cached ones included."""
    cached_prompt_tokens: int
    """The part of them served from the prefix cache."""
    computed_prompt_tokens: int
    """The part of them that was computed locally."""
    generation_tokens: int
    drafts: int
    """(request, step) pairs with at least one draft token."""
    draft_tokens: int
    accepted_tokens: int
    """Accepted draft tokens; the verifier's own token is not in it."""
    accepted_per_position: tuple[int, ...]
    """Accepted draft tokens by draft position 1..K; empty without a drafter."""
    preemptions: int
    """Requests thrown out of the KV cache and recomputed."""
    prefix_queries: int
    """Tokens looked up in the prefix cache."""
    prefix_hits: int
    step_intervals: int
    """Output steps seen by requests: one per request and step after its first (ITL count)."""
    step_seconds: float
    """Seconds of those intervals (ITL sum)."""
    first_tokens: int
    """Requests whose first token is out (TTFT count)."""
    running: int
    """Gauge: requests in the batch now; in a delta the later snapshot's value."""
    waiting: int
    """Gauge: requests queued now; in a delta the later snapshot's value."""
    kv_usage: float
    """Gauge, 0 to 1: mean over ranks of the KV cache in use; in a delta the later snapshot's value."""
