"""Reading SGLang's pages, as its source of 0.5.23 writes them.

Tokens are counted once for all ranks, when a request ends. Gauges come from each scheduler: one series a
data-parallel rank, and once more for each pipeline stage (or tensor-parallel rank, where someone asked for
that), so one of each data-parallel rank is read. The mean acceptance length that a scheduler shows is of its
own rank and of all time since the start: it is never read.
"""

from collections.abc import Mapping

from engines import sglang_series as names
from engines.base import KVCapacity
from engines.counters import Counters
from engines.metrics_page import Page
from engines.series import Series

PER_POSITION = frozenset({"accepted_per_position"})


def parse_counters(text: str, *, time: float, k: int, fixed: bool = True) -> Counters:
    """Return the counters of a metrics page read at `time` (`time.monotonic()`).

    Every decode step of an arm with a drafter verifies a chain of K drafts and yields the accepted ones and
    one token more; a request's first token comes from its prefill. So over ended requests
    accepted = tokens - requests - verifications. What a last step accepted beyond the pinned length is cut
    off in tokens, and so not in it.

    Args:
        text: The page.
        time: When it was read.
        k: Draft length of the arm; 0 without a drafter.
        fixed: Whether every step drafts K. By batch size nobody tells how many, nor which steps drafted.

    Raises:
        EngineError: it has not the series that nothing can be measured without.
    """
    page = Page(text)
    prompt = int(page.required(names.PROMPT_TOKENS))
    cached = int(page.total(names.CACHED_TOKENS))
    generated = int(page.required(names.GENERATION_TOKENS))
    verified = int(page.total(names.VERIFY_CALLS))
    tokens = int(page.required(names.TOKEN_COUNT))
    usage = _by_rank(page, names.KV_USAGE)
    return Counters(
        time=time,
        prompt_tokens=prompt,
        cached_prompt_tokens=cached,
        computed_prompt_tokens=prompt - cached,
        generation_tokens=generated,
        drafts=verified,
        draft_tokens=verified * k,
        accepted_tokens=max(0, generated - int(page.required(names.REQUESTS)) - verified) if k else 0,
        accepted_per_position=(),
        preemptions=int(sum(_by_rank(page, names.RETRACTED))),
        prefix_queries=prompt,
        prefix_hits=cached,
        # Its inter-token latency counts tokens; with a drafter the steps are its verifications.
        step_intervals=verified if k else tokens,
        step_seconds=page.required(names.TOKEN_SECONDS),
        first_tokens=int(page.required(names.FIRST_TOKENS)),
        running=int(sum(_by_rank(page, names.RUNNING))),
        waiting=int(sum(_by_rank(page, names.WAITING))),
        kv_usage=sum(usage) / len(usage) if usage else 0.0,
        absent=_absent(k, fixed=fixed),
    )


def _absent(k: int, *, fixed: bool) -> frozenset[str]:
    if not k:
        return frozenset()
    return PER_POSITION if fixed else PER_POSITION | {"draft_tokens", "accepted_tokens", "step_intervals"}


def parse_capacity(text: str) -> KVCapacity:
    """Return the KV capacity of a metrics page, summed over data-parallel ranks."""
    page = Page(text)
    tokens, sizes = _by_rank(page, names.CAPACITY), _by_rank(page, names.PAGE_SIZE)
    size = int(sizes[0]) if sizes and sizes[0] >= 1 else None
    if not tokens or min(tokens) <= 0:
        return KVCapacity(tokens=None, block_size=size)
    total = int(sum(tokens))
    return KVCapacity(
        tokens=total,
        block_size=size,
        blocks=None if size is None else total // size,
        ranks=len(tokens),
    )


def _by_rank(page: Page, series: Series) -> list[float]:
    """Return one value a data-parallel rank: that of its first pipeline stage and tensor-parallel rank."""
    found: dict[int, tuple[tuple[int, int], float]] = {}
    for labels, value in page.values(series):
        if labels.get("priority"):
            continue  # the part of one priority; the whole has an empty label
        rank, place = _number(labels, "dp_rank"), (_number(labels, "pp_rank"), _number(labels, "tp_rank"))
        if rank not in found or place < found[rank][0]:
            found[rank] = (place, value)
    return [found[rank][1] for rank in sorted(found)]


def _number(labels: Mapping[str, str], name: str) -> int:
    text = labels.get(name, "")
    return int(text) if text.isdigit() else 0
