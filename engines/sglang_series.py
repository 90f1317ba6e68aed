"""Every series that is read of SGLang's metrics page; `sglang_http.py` reads no other.

Names and meanings were read in the source of SGLang 0.5.23 (`srt/observability/metrics_collector.py`). Tokens
are counted when a request ends, so within a replay only gauges move steadily.
"""

from engines.series import Series

_TOKENS = "throughput, the check of client against engine"

PROMPT_TOKENS = Series(
    name="sglang:prompt_tokens_total", use=f"prompt tokens of ended requests: {_TOKENS}", required=True
)
CACHED_TOKENS = Series(
    name="sglang:cached_tokens_total", use="prompt tokens found in the cache: computed throughput"
)
GENERATION_TOKENS = Series(
    name="sglang:generation_tokens_total", use=f"output tokens of ended requests: {_TOKENS}", required=True
)
REQUESTS = Series(
    name="sglang:num_requests_total", use="ended requests: tokens that no verification made", required=True
)
VERIFY_CALLS = Series(
    name="sglang:spec_verify_calls_total", use="verification steps: mean acceptance length", drafter=True
)
FIRST_TOKENS = Series(
    name="sglang:time_to_first_token_seconds_count", use="first tokens: tokens per decode step", required=True
)
TOKEN_COUNT = Series(
    name="sglang:inter_token_latency_seconds_count",
    use="tokens after the first: decode steps where nothing drafts",
    required=True,
)
TOKEN_SECONDS = Series(
    name="sglang:inter_token_latency_seconds_sum", use="seconds of decode steps: step time", required=True
)
RETRACTED = Series(
    name="sglang:num_retracted_requests_total", use="preemptions: whether the KV cache was too small"
)
RUNNING = Series(name="sglang:num_running_reqs", use="requests in the batch", required=True)
WAITING = Series(name="sglang:num_queue_reqs", use="queued requests", required=True)
KV_USAGE = Series(name="sglang:token_usage", use="use of the KV cache")
CAPACITY = Series(
    name="sglang:max_total_num_tokens", use="KV capacity: conversations that fit, bounds of the cache checks"
)
PAGE_SIZE = Series(name="sglang:page_size", use="block size: bounds of the cache checks, the ideal hit rate")

SGLANG_SERIES = (
    PROMPT_TOKENS,
    CACHED_TOKENS,
    GENERATION_TOKENS,
    REQUESTS,
    VERIFY_CALLS,
    FIRST_TOKENS,
    TOKEN_COUNT,
    TOKEN_SECONDS,
    RETRACTED,
    RUNNING,
    WAITING,
    KV_USAGE,
    CAPACITY,
    PAGE_SIZE,
)
"""What is read of an SGLang server."""
PREFIX = "sglang:"
"""What all of them begin with."""
