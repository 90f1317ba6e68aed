"""The resolved configuration of an emulated engine, as /server_info shows it."""

from dataclasses import asdict
from typing import Any

from engines.emulator import EMULATOR_VERSION
from engines.emulator.assembly import Assembly
from engines.emulator.drafters import rates_of
from engines.emulator.hardware import GPUS

DRAFTER_KEYS = (
    "speculative_config",
    "config_digest",
    "cache_config.num_gpu_blocks",
    "cache_config.kv_cache_size_tokens",
)
"""Prefixes of flat keys that may differ in a pair: the drafter itself, the digest that it is part of, and the
KV cache that it makes smaller."""


def server_info(assembly: Assembly) -> dict[str, Any]:
    """Return sections of plain JSON; the same for every start of one configuration."""
    config, flags = assembly.config, assembly.flags
    drafter = config.drafter
    speculative: dict[str, Any] = {"method": drafter.method, "num_speculative_tokens": drafter.k}
    if not drafter.is_none:
        speculative |= {
            "model": drafter.model,
            "draft_tensor_parallel_size": drafter.draft_tp,
            "acceptance_rates": list(rates_of(drafter)),
            "synthetic": drafter.acceptance is not None,
            "options": dict(drafter.options),
        }
    return {
        "emulated": True,
        "version": EMULATOR_VERSION,
        "config_digest": config.digest,
        "seed": config.seed,
        "model_config": {
            "model": config.model.name,
            "max_model_len": config.model.max_context,
            "dtype": "bfloat16",
        },
        "parallel_config": {
            "tensor_parallel_size": config.layout.tp,
            "data_parallel_size": config.layout.dp,
            "pipeline_parallel_size": config.layout.pp,
        },
        "scheduler_config": {
            "max_num_seqs": flags.max_num_seqs,
            "max_num_batched_tokens": flags.max_num_batched_tokens,
            "async_scheduling": False,
        },
        "cache_config": {
            "block_size": flags.block_size,
            "gpu_memory_utilization": flags.gpu_memory_utilization,
            "enable_prefix_caching": flags.enable_prefix_caching,
            "num_gpu_blocks": sum(rank.pool.total for rank in assembly.ranks),
            "kv_cache_size_tokens": assembly.kv_tokens,
        },
        "device_config": {**asdict(GPUS[flags.gpu]), "cost": flags.cost, "time_scale": flags.time_scale},
        "noise": asdict(flags.noise),
        "fault_injection": [asdict(fault) for fault in flags.fail],
        "speculative_config": speculative,
    }
