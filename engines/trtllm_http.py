"""Reading TensorRT-LLM's Prometheus page, after its documentation; what a release lacks is not known.

The acceptance length it shows as a gauge is of its own choice of time: it is never read.
"""

from engines import trtllm_series as names
from engines.base import KVCapacity
from engines.counters import Counters
from engines.metrics_page import Page
from engines.series import Series

METRICS_PATH = "/prometheus/metrics"
"""Its `/metrics` is JSON of iterations, and empties itself by being read."""

_NEEDED = {
    "cached_prompt_tokens": (names.CACHED_TOKENS,),
    "computed_prompt_tokens": (names.CACHED_TOKENS,),
    "prefix_queries": (names.CACHED_TOKENS,),
    "prefix_hits": (names.CACHED_TOKENS,),
    "first_tokens": (names.FIRST_TOKENS,),
    "step_intervals": (names.FIRST_TOKENS,),
    "step_seconds": (names.DECODE_SECONDS,),
    "running": (names.RUNNING,),
    "waiting": (names.WAITING,),
    "kv_usage": (names.KV_USAGE,),
}
"""Field -> series without which it is not known."""
_DRAFTING = {
    "drafts": (names.DRAFTED_PER_POSITION,),
    "draft_tokens": (names.DRAFT_TOKENS,),
    "accepted_tokens": (names.ACCEPTED_TOKENS,),
    "accepted_per_position": (names.ACCEPTED_PER_POSITION,),
    "step_intervals": (names.FIRST_TOKENS, names.ACCEPTED_TOKENS),
}
"""The same for an arm with a drafter."""


def parse_counters(text: str, *, time: float, k: int) -> Counters:
    """Return the counters of a metrics page read at `time` (`time.monotonic()`).

    There is no counter of steps: each decode step of a request yields its accepted drafts and one token more,
    so steps = tokens - first tokens - accepted.

    Args:
        text: The page.
        time: When it was read.
        k: Draft length of the arm; 0 without a drafter.

    Raises:
        EngineError: it has no counter of tokens.
    """
    page = Page(text)
    prompt = int(page.required(names.PROMPT_TOKENS))
    generated = int(page.required(names.GENERATION_TOKENS))
    cached, first = int(page.total(names.CACHED_TOKENS)), int(page.total(names.FIRST_TOKENS))
    accepted = int(page.total(names.ACCEPTED_TOKENS)) if k else 0
    drafted = _positions(page, names.DRAFTED_PER_POSITION) if k else ()
    return Counters(
        time=time,
        prompt_tokens=prompt,
        cached_prompt_tokens=cached,
        computed_prompt_tokens=prompt - cached,
        generation_tokens=generated,
        drafts=drafted[0] if drafted else 0,
        draft_tokens=int(page.total(names.DRAFT_TOKENS)) if k else 0,
        accepted_tokens=accepted,
        accepted_per_position=_positions(page, names.ACCEPTED_PER_POSITION) if k else (),
        preemptions=0,
        prefix_queries=prompt,
        prefix_hits=cached,
        step_intervals=max(0, generated - first - accepted),
        step_seconds=page.total(names.DECODE_SECONDS),
        first_tokens=first,
        running=int(page.total(names.RUNNING)),
        waiting=int(page.total(names.WAITING)),
        kv_usage=page.total(names.KV_USAGE),
        absent=_absent(page, k),
    )


def parse_capacity(text: str) -> KVCapacity:
    """Return the KV capacity of a metrics page."""
    page = Page(text)
    blocks, size = int(page.total(names.KV_BLOCKS)), int(page.total(names.BLOCK_SIZE))
    if blocks < 1 or size < 1:
        return KVCapacity(tokens=None, block_size=size or None)
    return KVCapacity(tokens=blocks * size, block_size=size, blocks=blocks)


def _absent(page: Page, k: int) -> frozenset[str]:
    needed = {**_NEEDED, **_DRAFTING} if k else _NEEDED
    lacking = {field for field, series in needed.items() if not all(map(page.has, series))}
    return frozenset({*lacking, "preemptions"})


def _positions(page: Page, series: Series) -> tuple[int, ...]:
    """Return the values by draft position, the first first."""
    sums: dict[int, float] = {}
    for labels, value in page.values(series):
        text = labels.get("token_position", "")
        if text.isdigit():
            sums[int(text)] = sums.get(int(text), 0.0) + value
    return tuple(int(sums[position]) for position in sorted(sums))
