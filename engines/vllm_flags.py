"""vLLM's command-line flags: which ones `engine.flags` may set, and how each is written.

A flag that is missing here is refused, so a slip of the keyboard cannot silently measure the default. Names
are vLLM's own with underscores; checked against vLLM 0.32. A new flag is one word in one of the two sets.
"""

from collections.abc import Mapping
from typing import Any

from engines.flags import FlagTable

SWITCHES = frozenset(
    {
        "async_scheduling",
        "cudagraph_metrics",
        "disable_cascade_attn",
        "disable_chunked_mm_input",
        "disable_custom_all_reduce",
        "disable_hybrid_kv_cache_manager",
        "disable_sliding_window",
        "disable_uvicorn_access_log",
        "enable_chunked_prefill",
        "enable_dbo",
        "enable_eplb",
        "enable_flashinfer_autotune",
        "enable_logging_iteration_details",
        "enable_mfu_metrics",
        "enable_per_request_metrics",
        "enable_prefix_caching",
        "enforce_eager",
        "kv_cache_metrics",
        "kv_sharing_fast_prefill",
        "language_model_only",
        "long_prefill_token_threshold_adaptive",
        "numa_bind",
        "scheduler_reserve_full_isl",
        "skip_mm_profiling",
        "swa_bounded_replay",
        "trust_remote_code",
        "use_fp64_gumbel",
    }
)
"""Flags with a `--flag` and a `--no-flag` form: true and false in `engine.flags`."""

VALUES = frozenset(
    {
        "additional_config",
        "all2all_backend",
        "attention_backend",
        "attention_config",
        "block_size",
        "compilation_config",
        "cpu_offload_gb",
        "cudagraph_capture_sizes",
        "custom_histogram_buckets",
        "data_parallel_backend",
        "dcp_kv_cache_interleave_size",
        "decode_context_parallel_size",
        "dp_sync_interval",
        "dtype",
        "expert_placement_strategy",
        "gpu_memory_utilization",
        "hf_overrides",
        "kernel_config",
        "kv_cache_dtype",
        "kv_cache_dtype_skip_layers",
        "kv_cache_memory_bytes",
        "kv_offloading_backend",
        "kv_offloading_size",
        "kv_transfer_config",
        "linear_backend",
        "load_format",
        "long_prefill_token_threshold",
        "mamba_cache_mode",
        "max_cudagraph_capture_size",
        "max_num_batched_tokens",
        "max_num_scheduled_tokens",
        "max_num_seqs",
        "mm_processor_cache_gb",
        "moe_backend",
        "num_gpu_blocks_override",
        "optimization_level",
        "performance_mode",
        "prefill_schedule_interval",
        "prefix_cache_retention_interval",
        "prefix_caching_hash_algo",
        "quantization",
        "revision",
        "scheduling_policy",
        "tokenizer",
        "tokenizer_mode",
        "tokenizer_revision",
        "uvicorn_log_level",
        "watermark",
    }
)
"""Flags with a value; maps become JSON, lists several words."""

OWNED: Mapping[str, str] = {
    "model": "model.path",
    "served_model_name": "model.name",
    "max_model_len": "model.max_context",
    "tensor_parallel_size": "layout.tp",
    "data_parallel_size": "layout.dp",
    "pipeline_parallel_size": "layout.pp",
    "enable_expert_parallel": "layout.expert_parallel",
    "seed": "seed",
    "speculative_config": "drafter",
    "spec_method": "drafter.method",
    "spec_model": "drafter.model",
    "spec_tokens": "drafter.k",
}
"""Flags that another key of the configuration sets."""

PINNED: Mapping[str, str] = {
    "host": "servers listen on this machine only",
    "port": "ports are leased for each engine",
    "device_ids": "devices are given out by the placement",
    "api_server_count": "per-step metrics are wrong with more than one API server",
    "distributed_executor_backend": "an engine stays on one node, with worker processes of its own",
    "generation_config": "a model's own sampling defaults would override the requests",
    "enable_prompt_tokens_details": "cached tokens are part of every measurement",
    "stream_interval": "chunks must leave the engine step by step",
    "disable_log_stats": "the engine's counters are part of every measurement",
}
"""Flags that are fixed, with the reason."""

DEFAULTS: Mapping[str, Any] = {
    # Some drafters switch it off by themselves: left open, a pair would compare two schedulers.
    "async_scheduling": False,
    # One log line a request costs the API server time and tells nothing.
    "disable_uvicorn_access_log": True,
}
"""Flags held equal in all arms even where the user says nothing."""


FLAGS = FlagTable(
    engine="vLLM",
    switches=SWITCHES,
    values=VALUES,
    owned=OWNED,
    pinned=PINNED,
    examples="block_size, max_num_seqs",
    negated=True,
)
"""All of them."""


def flag_words(flags: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the command-line words of `flags` on top of `DEFAULTS`, in the order of their names.

    Raises:
        EngineConfigError: an unknown, owned or pinned flag, or a value of the wrong kind; names the key.
    """
    return FLAGS.words({**DEFAULTS, **flags})
