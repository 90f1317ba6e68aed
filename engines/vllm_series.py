"""Every series that is read of a metrics page in vLLM's dialect; `vllm_http.py` reads no other.

Names and their meaning were checked against vLLM 0.32.
"""

from engines.series import Series

_FIGURES = "throughput"
_CACHE = "cached and computed prompt tokens: computed throughput, the proof that the cache was cold"

PROMPT_TOKENS = Series(
    name="vllm:prompt_tokens_total",
    use=f"prompt tokens: {_FIGURES}, the check that every prompt arrived",
    required=True,
)
PROMPT_CACHED = Series(name="vllm:prompt_tokens_cached_total", use=_CACHE)
PROMPT_BY_SOURCE = Series(name="vllm:prompt_tokens_by_source_total", use=_CACHE, instead=PROMPT_CACHED.name)
GENERATION_TOKENS = Series(
    name="vllm:generation_tokens_total",
    use=f"output tokens: {_FIGURES}, the check of client against engine",
    required=True,
)
STEP_COUNT = Series(
    name="vllm:inter_token_latency_seconds_count",
    use="decode steps: tokens per step, mean step time",
    required=True,
)
STEP_SECONDS = Series(
    name="vllm:inter_token_latency_seconds_sum", use="seconds of decode steps: mean step time", required=True
)
FIRST_TOKENS = Series(
    name="vllm:time_to_first_token_seconds_count", use="first tokens: tokens per decode step", required=True
)
RUNNING = Series(name="vllm:num_requests_running", use="requests in the batch", required=True)
WAITING = Series(
    name="vllm:num_requests_waiting",
    use="queued requests: how many users are served at once",
    required=True,
)
KV_USAGE = Series(name="vllm:kv_cache_usage_perc", use="use of the KV cache")
PREEMPTIONS = Series(
    name="vllm:num_preemptions_total", use="preemptions: whether the KV cache was too small for the load"
)
PREFIX_QUERIES = Series(name="vllm:prefix_cache_queries_total", use="prefix-cache hit rate")
PREFIX_HITS = Series(name="vllm:prefix_cache_hits_total", use="prefix-cache hit rate")
CACHE_CONFIG = Series(
    name="vllm:cache_config_info",
    use="KV capacity and block size: conversations that fit, bounds of the cache checks, the ideal hit rate",
)
DRAFTS = Series(
    name="vllm:spec_decode_num_drafts_total", use="verification steps: mean acceptance length", drafter=True
)
DRAFT_TOKENS = Series(
    name="vllm:spec_decode_num_draft_tokens_total", use="drafted tokens: share accepted", drafter=True
)
ACCEPTED_TOKENS = Series(
    name="vllm:spec_decode_num_accepted_tokens_total",
    use="accepted tokens: mean acceptance length",
    drafter=True,
)
ACCEPTED_PER_POSITION = Series(
    name="vllm:spec_decode_num_accepted_tokens_per_pos_total",
    use="acceptance by draft position: which K to choose",
    drafter=True,
)
SLIPPED = Series(
    name="emulator:slipped_seconds_total", use="whether this machine kept up with the hardware it emulates"
)

VLLM_SERIES = (
    PROMPT_TOKENS,
    PROMPT_BY_SOURCE,
    PROMPT_CACHED,
    GENERATION_TOKENS,
    STEP_COUNT,
    STEP_SECONDS,
    FIRST_TOKENS,
    RUNNING,
    WAITING,
    KV_USAGE,
    PREEMPTIONS,
    PREFIX_QUERIES,
    PREFIX_HITS,
    CACHE_CONFIG,
    DRAFTS,
    DRAFT_TOKENS,
    ACCEPTED_TOKENS,
    ACCEPTED_PER_POSITION,
)
"""What is read of a vLLM server."""
EMULATOR_SERIES = (*VLLM_SERIES, SLIPPED)
"""What is read of an emulated one."""
