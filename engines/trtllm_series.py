"""Every series that is read of TensorRT-LLM's Prometheus page; `trtllm_http.py` reads no other.

Names after its documentation and source of 1.x; the set differs by release, so only tokens are required.
"""

from engines.series import Series

PROMPT_TOKENS = Series(name="trtllm_prompt_tokens_total", use="prompt tokens: throughput", required=True)
CACHED_TOKENS = Series(
    name="trtllm_prompt_cached_tokens_total", use="prompt tokens found in the cache: computed throughput"
)
GENERATION_TOKENS = Series(
    name="trtllm_generation_tokens_total",
    use="output tokens: throughput, client against engine",
    required=True,
)
FIRST_TOKENS = Series(name="trtllm_time_to_first_token_seconds_count", use="first tokens: decode steps")
DECODE_SECONDS = Series(name="trtllm_request_decode_time_seconds_sum", use="seconds of decoding: step time")
DRAFT_TOKENS = Series(
    name="trtllm_spec_decode_num_draft_tokens_total", use="drafted tokens: share accepted", drafter=True
)
ACCEPTED_TOKENS = Series(
    name="trtllm_spec_decode_num_accepted_tokens_total", use="accepted tokens: decode steps", drafter=True
)
DRAFTED_PER_POSITION = Series(
    name="trtllm_spec_decode_drafted_tokens_total",
    use="verification steps: mean acceptance length",
    drafter=True,
)
ACCEPTED_PER_POSITION = Series(
    name="trtllm_spec_decode_accepted_tokens_total", use="acceptance by draft position", drafter=True
)
RUNNING = Series(name="trtllm_num_requests_running", use="requests in the batch")
WAITING = Series(name="trtllm_num_requests_waiting", use="queued requests")
KV_USAGE = Series(name="trtllm_kv_cache_utilization", use="use of the KV cache")
KV_BLOCKS = Series(name="trtllm_kv_cache_max_blocks", use="KV capacity: conversations that fit")
BLOCK_SIZE = Series(name="trtllm_kv_cache_tokens_per_block", use="block size: bounds of the cache checks")

TRTLLM_SERIES = (
    PROMPT_TOKENS,
    CACHED_TOKENS,
    GENERATION_TOKENS,
    FIRST_TOKENS,
    DECODE_SECONDS,
    DRAFT_TOKENS,
    ACCEPTED_TOKENS,
    DRAFTED_PER_POSITION,
    ACCEPTED_PER_POSITION,
    RUNNING,
    WAITING,
    KV_USAGE,
    KV_BLOCKS,
    BLOCK_SIZE,
)
"""What is read of a TensorRT-LLM server."""
PREFIX = "trtllm_"
"""What all of them begin with."""
