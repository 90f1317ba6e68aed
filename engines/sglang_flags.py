"""SGLang's command-line flags: which ones `engine.flags` may set, and how each is written.

A flag that is missing here is refused, so a slip of the keyboard cannot silently measure the default. Names
are SGLang's own with underscores, checked against 0.5.23 (`tests/engines/sglang_options.json`). A new flag is
one word in one of the two sets.
"""

from collections.abc import Mapping
from typing import Any

from engines.flags import FlagTable

SWITCHES = frozenset(
    {
        "disable_chunked_prefix_cache",
        "disable_cuda_graph_padding",
        "disable_custom_all_reduce",
        "disable_decode_cuda_graph",
        "disable_flashinfer_autotune",
        "disable_overlap_schedule",
        "disable_prefill_cuda_graph",
        "disable_radix_cache",
        "enable_dp_lm_head",
        "enable_hierarchical_cache",
        "enable_mixed_chunk",
        "enable_torch_compile",
        "enable_two_batch_overlap",
        "triton_attention_reduce_in_fp32",
        "trust_remote_code",
    }
)
"""Flags without a value: true in `engine.flags` gives the flag, false leaves it out."""

VALUES = frozenset(
    {
        "attention_backend",
        "attn_dp_size",
        "chunked_prefill_size",
        "cuda_graph_backend_decode",
        "cuda_graph_backend_prefill",
        "cuda_graph_bs_decode",
        "cuda_graph_config",
        "cuda_graph_max_bs_decode",
        "cuda_graph_max_bs_prefill",
        "decode_attention_backend",
        "download_dir",
        "dtype",
        "ep_size",
        "fp8_gemm_backend",
        "grammar_backend",
        "hicache_io_backend",
        "hicache_mem_layout",
        "hicache_ratio",
        "hicache_size",
        "hicache_storage_backend",
        "hicache_write_policy",
        "json_model_override_args",
        "kv_cache_dtype",
        "load_balance_method",
        "load_format",
        "max_prefill_tokens",
        "max_running_requests",
        "max_total_tokens",
        "mem_fraction_static",
        "moe_a2a_backend",
        "moe_runner_backend",
        "num_continuous_decode_steps",
        "numa_node",
        "page_size",
        "prefill_attention_backend",
        "prefill_max_requests",
        "quantization",
        "radix_eviction_policy",
        "revision",
        "schedule_conservativeness",
        "schedule_policy",
        "swa_full_tokens_ratio",
        "tokenizer_mode",
        "tokenizer_path",
        "watchdog_timeout",
    }
)
"""Flags with a value; maps become JSON, lists several words."""

OWNED: Mapping[str, str] = {
    "model_path": "model.path",
    "model": "model.path",
    "served_model_name": "model.name",
    "context_length": "model.max_context",
    "tp_size": "layout.tp",
    "dp_size": "layout.dp",
    "pp_size": "layout.pp",
    "tensor_parallel_size": "layout.tp",
    "data_parallel_size": "layout.dp",
    "pipeline_parallel_size": "layout.pp",
    "random_seed": "seed",
    "device": "engine.device",
    "speculative_algorithm": "drafter.method",
    "speculative_draft_model_path": "drafter.model",
    "speculative_num_steps": "drafter.k",
    "speculative_num_draft_tokens": "drafter.k",
    "speculative_eagle_topk": "drafter.k",
}
"""Flags that another key of the configuration sets."""

PINNED: Mapping[str, str] = {
    "host": "servers listen on this machine only",
    "port": "ports are leased for each engine",
    "base_gpu_id": "devices are given out by the placement",
    "nnodes": "an engine stays on one node",
    "enable_metrics": "the engine's counters are part of every measurement",
    "enable_metrics_for_all_schedulers": "each tensor-parallel rank would count the same requests again",
    "enable_cache_report": "cached tokens are part of every measurement",
    "decode_log_interval": "gauges must be those of the last step",
    "stream_interval": "chunks must leave the engine step by step",
    "sampling_defaults": "a model's own sampling defaults would override the requests",
    "enable_priority_scheduling": "its gauges come once more for each priority",
}
"""Flags that are fixed, with the reason."""

GROUPS: Mapping[str, Mapping[str, str]] = {
    "cache.prefix_caching": {"disable_radix_cache": "the prefix cache"},
    "cache.block_size": {"page_size": "the page size"},
    "cache.kv_dtype": {"kv_cache_dtype": "the KV type"},
    "decode.max_num_seqs": {"max_running_requests": "the batch limit"},
    "decode.max_num_batched_tokens": {
        "chunked_prefill_size": "the size of a prefill",
        "max_prefill_tokens": "the size of a prefill",
    },
    "decode.chunked_prefill": {"chunked_prefill_size": "the size of a chunk"},
    "decode.attention_backend": {"attention_backend": "the attention implementation"},
    "decode.cuda_graphs": {
        "cuda_graph_backend_decode": "the decode graphs",
        "cuda_graph_backend_prefill": "the prefill graphs",
        "cuda_graph_config": "all graphs",
        "disable_decode_cuda_graph": "the decode graphs",
        "disable_prefill_cuda_graph": "the prefill graphs",
    },
    "decode.async_scheduling": {"disable_overlap_schedule": "the scheduler"},
}
"""Keys of the groups `cache` and `decode`, with the flags that would set the same thing once more."""


FLAGS = FlagTable(
    engine="SGLang",
    switches=SWITCHES,
    values=VALUES,
    owned=OWNED,
    pinned=PINNED,
    examples="page_size, max_running_requests",
)
"""All of them."""


def flag_words(flags: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the command-line words of `flags`, in the order of their names.

    Raises:
        EngineConfigError: an unknown, owned or pinned flag, or a value of the wrong kind; names the key.
    """
    return FLAGS.words(flags)
