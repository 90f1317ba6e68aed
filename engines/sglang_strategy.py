"""The groups `cache` and `decode` in SGLang's flags; what it cannot do is refused. Checked against 0.5.23."""

from collections.abc import Mapping
from typing import Any

from engines.errors import EngineConfigError
from engines.sglang_flags import GROUPS
from engines.spec import EngineConfig
from engines.strategy import CacheStrategy, Decode

CUDA_GRAPHS: Mapping[str, tuple[str, str]] = {
    "none": ("disabled", "disabled"),
    "full": ("full", "full"),
    "full_decode_only": ("full", "disabled"),
}
"""What is captured -> SGLang's back ends of decode and prefill graphs."""


def strategy_flags(config: EngineConfig) -> dict[str, Any]:
    """Return the flags that `config.cache` and `config.decode` come to.

    Raises:
        EngineConfigError: SGLang cannot do it, or `engine.flags` sets the same thing; names the keys.
    """
    _check_once(config)
    return {**_cache(config.cache), **_decode(config.decode)}


def _check_once(config: EngineConfig) -> None:
    given = [f"cache.{name}" for name in config.cache.given] + [
        f"decode.{name}" for name in config.decode.given
    ]
    for key in given:
        for flag, what in GROUPS.get(key, {}).items():
            if flag in config.flags:
                message = f"{key} and engine.flags.{flag} both set {what}; remove one of them"
                raise EngineConfigError(message)


def _cache(cache: CacheStrategy) -> dict[str, Any]:
    if cache.kv_offload_gib is not None:
        message = (
            "cache.kv_offload_gib is memory of the whole engine in GiB, and SGLang gives whole gigabytes to "
            "each rank; set engine.flags.enable_hierarchical_cache and engine.flags.hicache_size instead"
        )
        raise EngineConfigError(message)
    if cache.connector is not None:
        message = (
            f"SGLang's adapter knows no cache connector {cache.connector.name!r}; set cache.connector=null"
        )
        raise EngineConfigError(message)
    flags: dict[str, Any] = {}
    if cache.prefix_caching is False:
        flags["disable_radix_cache"] = True
    if cache.block_size is not None:
        flags["page_size"] = cache.block_size
    if cache.kv_dtype is not None:
        flags["kv_cache_dtype"] = cache.kv_dtype
    return flags


def _decode(decode: Decode) -> dict[str, Any]:
    if decode.model_runner is not None:
        message = "decode.model_runner is a choice of vLLM's; SGLang has one: set it to null"
        raise EngineConfigError(message)
    flags: dict[str, Any] = {}
    if decode.max_num_seqs is not None:  # SGLang's is of a data-parallel replica, as ours is of a rank
        flags["max_running_requests"] = decode.max_num_seqs
    if decode.attention_backend is not None:
        flags["attention_backend"] = decode.attention_backend
    if decode.async_scheduling is False:
        flags["disable_overlap_schedule"] = True
    return {**flags, **_prefill(decode), **_graphs(decode)}


def _prefill(decode: Decode) -> dict[str, Any]:
    """Return the size of a prefill: of one chunk, or of a whole batch of prompts where none is split."""
    size = decode.max_num_batched_tokens
    if decode.chunked_prefill is False:
        whole = {} if size is None else {"max_prefill_tokens": size}
        return {"chunked_prefill_size": -1, **whole}
    return {} if size is None else {"chunked_prefill_size": size}


def _graphs(decode: Decode) -> dict[str, Any]:
    if decode.cuda_graphs is None:
        return {}
    if decode.cuda_graphs not in CUDA_GRAPHS:
        message = (
            f"decode.cuda_graphs is {decode.cuda_graphs!r}; SGLang captures {', '.join(CUDA_GRAPHS)}, or "
            "what engine.flags.cuda_graph_config says"
        )
        raise EngineConfigError(message)
    decoding, prefill = CUDA_GRAPHS[decode.cuda_graphs]
    return {"cuda_graph_backend_decode": decoding, "cuda_graph_backend_prefill": prefill}
