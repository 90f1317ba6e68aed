"""vLLM's own resolved configuration, made comparable between two starts and between the arms of a pair.

Found with dumps of real engines (baseline, n-gram, draft model, synthetic acceptance; two starts each).
"""

import re
from collections.abc import Mapping
from typing import Any

from engines.spec import EngineConfig

CONFIG = "vllm_config."
ENV = "vllm_env."

VOLATILE = (
    "instance_id",
    "compilation_config.compilation_time",
    "compilation_config.encoder_compilation_time",
    "compilation_config.cache_dir",
    "compilation_config.local_cache_dir",
    "compilation_config.static_",
    "compilation_config.traced_files",
    "parallel_config._coord_store_port",
    "parallel_config._data_parallel_master_port_list",
    "parallel_config.data_parallel_master_port",
    "parallel_config.data_parallel_rpc_port",
    "parallel_config.master_port",
    "parallel_config.assigned_physical_gpu_ids",
    "env.VLLM_CPU_OMP_THREADS_BIND",
    "env.VLLM_DP_MASTER_PORT",
    "env.VLLM_OBJECT_STORAGE_SHM_BUFFER_NAME",
    "env.VLLM_PORT",
    "env.VLLM_RPC_BASE_PATH",
)
"""Prefixes of keys that name a place or a moment: ports, instance ids, cores, measured compile times."""

COPIES = ("speculative_config.target_model_config", "speculative_config.target_parallel_config")
"""Sections that repeat the target's own."""
DRAFT = "speculative_config.draft_"
"""The drafter's sections are named like the target's, with this in front."""
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")

DRAFTER_KEYS = (
    "speculative_config",
    "observability_config.per_request_spec_decode_metrics",
    # The KV cache a drafter's weights and own cache leave over: an effect to measure, not a difference of
    # settings.
    "cache_config.num_gpu_blocks",
    "cache_config.kv_cache_size_tokens",
    "cache_config.kv_cache_max_concurrency",
    # Captured batch sizes are multiples of the K + 1 positions a step verifies.
    "compilation_config.cudagraph_capture_sizes",
    "compilation_config.max_cudagraph_capture_size",
    "compilation_config.compile_ranges_endpoints",
    # Slots the scheduler keeps for a drafter's tokens.
    "scheduler_config.max_num_scheduled_tokens",
)
"""Prefixes of keys that follow from the drafter."""


def comparable(info: Mapping[str, Any]) -> dict[str, Any]:
    """Return the configuration of a flat `/server_info` without volatile keys.

    Kept are vLLM's configuration (`model_config.dtype`, ...) and its environment (`env.VLLM_...`); the
    description of the machine is no part of an engine's configuration.
    """
    plain: dict[str, Any] = {}
    for key, value in info.items():
        if key.startswith(CONFIG):
            name = key.removeprefix(CONFIG)
        elif key.startswith(ENV):
            name = "env." + key.removeprefix(ENV)
        else:
            continue
        if not name.removeprefix(DRAFT).startswith(VOLATILE) and not name.startswith(COPIES):
            plain[name] = _ADDRESS.sub("", value) if isinstance(value, str) else value
    return plain


def contradictions(config: EngineConfig, resolved: Mapping[str, Any]) -> list[str]:
    """Return where a `comparable` configuration is not that of `config`, one phrase each.

    Only settings that vLLM never rewrites: names of methods, models and types have other spellings in it.
    """
    layout = config.layout
    ordered: dict[str, Any] = {
        "model_config.served_model_name": config.model.name,
        "model_config.max_model_len": config.model.max_context,
        "model_config.seed": config.seed,
        "parallel_config.tensor_parallel_size": layout.tp,
        "parallel_config.data_parallel_size": layout.dp,
        "parallel_config.pipeline_parallel_size": layout.pp,
        "speculative_config.num_speculative_tokens": config.drafter.k or None,
    }
    chosen = {
        "parallel_config.enable_expert_parallel": layout.expert_parallel or None,
        "cache_config.enable_prefix_caching": config.cache.prefix_caching,
        "scheduler_config.max_num_seqs": config.decode.max_num_seqs,
        "scheduler_config.max_num_batched_tokens": config.decode.max_num_batched_tokens,
        "scheduler_config.enable_chunked_prefill": config.decode.chunked_prefill,
        "scheduler_config.async_scheduling": config.decode.async_scheduling,
    }
    ordered |= {key: wanted for key, wanted in chosen.items() if wanted is not None}
    return [
        f"its {key} is {resolved.get(key)!r}, not {wanted!r}"
        for key, wanted in ordered.items()
        if resolved.get(key) != wanted
    ]
