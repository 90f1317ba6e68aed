"""TensorRT-LLM's configuration file out of an `EngineConfig`: `engine.flags`, groups, layout and drafter.

Keys and decoding types are those of its documentation of 1.x; releases differ, and its own parser refuses
what it does not know. The file is JSON, which YAML readers take.
"""

from collections.abc import Mapping
from typing import Any

from engines.errors import EngineConfigError
from engines.nearest import did_you_mean
from engines.spec import EngineConfig
from engines.strategy import CacheStrategy, Decode
from engines.trtllm_speculation import speculative_config

KNOWN = frozenset(
    {
        "allreduce_strategy",
        "attention_dp_config",
        "attn_backend",
        "batch_wait_timeout_ms",
        "cuda_graph_config",
        "disable_overlap_scheduler",
        "dtype",
        "enable_attention_dp",
        "enable_chunked_prefill",
        "guided_decoding_backend",
        "kv_cache_config",
        "load_format",
        "max_batch_size",
        "max_num_tokens",
        "moe_config",
        "quant_config",
        "sampler_type",
        "scheduler_config",
        "torch_compile_config",
        "trust_remote_code",
        "use_cuda_graph",
    }
)
"""Top-level keys of the file that `engine.flags` may set."""

OWNED: Mapping[str, str] = {
    "model": "model.path",
    "max_seq_len": "model.max_context",
    "tensor_parallel_size": "layout.tp",
    "pipeline_parallel_size": "layout.pp",
    "moe_expert_parallel_size": "layout.expert_parallel",
    "speculative_config": "drafter",
}
"""Keys that another key of the configuration sets."""

PINNED: Mapping[str, Any] = {
    "return_perf_metrics": True,
    "enable_iter_perf_stats": True,
    "stream_interval": 1,
}
"""Keys that every engine gets: its Prometheus page, and chunks that leave step by step."""

GRAPHS: Mapping[str, Mapping[str, Any] | None] = {"none": None, "full_decode_only": {"enable_padding": True}}


def config_file(config: EngineConfig, *, kv_tokens: int | None = None) -> dict[str, Any]:
    """Return the content of the file that starts `config`.

    Args:
        config: the arm.
        kv_tokens: tokens that the KV cache of each rank is clamped to; None for its natural size.

    Raises:
        EngineConfigError: a setting it does not know or cannot do, or one that is given twice.
    """
    for name in sorted(config.flags):
        _check_flag(name)
    groups = {**_decode(config.decode), **_cache(config.cache)}
    content: dict[str, Any] = {**config.flags, **PINNED}
    for path, value in groups.items():
        _set(content, path, value)
    if kv_tokens is not None:
        content["kv_cache_config"] = {**content.get("kv_cache_config", {}), "max_tokens": kv_tokens}
    drafting = speculative_config(config.drafter)
    if drafting is not None:
        content["speculative_config"] = drafting
    return content


def _check_flag(name: str) -> None:
    if name in KNOWN:
        return
    if name in OWNED:
        message = f"engine.flags.{name} is set by {OWNED[name]}; use that key instead"
    elif name in PINNED:
        message = f"engine.flags.{name} cannot be changed: it is part of every measurement; remove it"
    else:
        message = (
            f"engine.flags.{name} is no key of TensorRT-LLM's configuration that this adapter knows"
            f"{did_you_mean(name, [*KNOWN, *OWNED])}; write its own key (kv_cache_config, max_batch_size, "
            "...), or remove it"
        )
    raise EngineConfigError(message)


def _set(content: dict[str, Any], path: tuple[str, ...], setting: tuple[str, Any]) -> None:
    """Put a group's setting where TensorRT-LLM has it, unless `engine.flags` has one there already."""
    key, value = setting
    name = path[0]
    if len(path) == 1:
        if name in content:
            _twice(key, name)
        content[name] = value
        return
    inner = content.get(name, {})
    if not isinstance(inner, Mapping):
        message = f"engine.flags.{name} is {inner!r}; TensorRT-LLM's {name} is a map of settings"
        raise EngineConfigError(message)
    if path[1] in inner:
        _twice(key, ".".join(path))
    content[name] = {**inner, path[1]: value}


def _twice(key: str, flag: str) -> None:
    message = f"{key} and engine.flags.{flag} both set the same thing; remove one of them"
    raise EngineConfigError(message)


def _cache(cache: CacheStrategy) -> dict[tuple[str, ...], tuple[str, Any]]:
    if cache.kv_offload_gib is not None:
        message = (
            "cache.kv_offload_gib is memory of the whole engine, and TensorRT-LLM's is of each rank; set "
            "engine.flags.kv_cache_config.host_cache_size instead"
        )
        raise EngineConfigError(message)
    if cache.connector is not None:
        message = f"cache.connector is {cache.connector.name!r}, and this adapter knows none; set it to null"
        raise EngineConfigError(message)
    found: dict[tuple[str, ...], tuple[str, Any]] = {}
    if cache.prefix_caching is not None:
        found["kv_cache_config", "enable_block_reuse"] = ("cache.prefix_caching", cache.prefix_caching)
    if cache.block_size is not None:
        found["kv_cache_config", "tokens_per_block"] = ("cache.block_size", cache.block_size)
    if cache.kv_dtype is not None:
        found["kv_cache_config", "dtype"] = ("cache.kv_dtype", cache.kv_dtype)
    return found


def _decode(decode: Decode) -> dict[tuple[str, ...], tuple[str, Any]]:
    if decode.model_runner is not None:
        message = "decode.model_runner is a choice of vLLM's; TensorRT-LLM has one: set it to null"
        raise EngineConfigError(message)
    found: dict[tuple[str, ...], tuple[str, Any]] = {}
    for name, theirs in (
        ("max_num_seqs", "max_batch_size"),
        ("max_num_batched_tokens", "max_num_tokens"),
        ("chunked_prefill", "enable_chunked_prefill"),
        ("attention_backend", "attn_backend"),
    ):
        if (value := getattr(decode, name)) is not None:
            found[theirs,] = (f"decode.{name}", value)
    if decode.async_scheduling is not None:
        found["disable_overlap_scheduler",] = ("decode.async_scheduling", not decode.async_scheduling)
    if decode.cuda_graphs is not None:
        if decode.cuda_graphs not in GRAPHS:
            message = (
                f"decode.cuda_graphs is {decode.cuda_graphs!r}; TensorRT-LLM captures {', '.join(GRAPHS)}, "
                "or what engine.flags.cuda_graph_config says"
            )
            raise EngineConfigError(message)
        found["cuda_graph_config",] = ("decode.cuda_graphs", GRAPHS[decode.cuda_graphs])
    return found
