"""vLLM's flags and environment out of the neutral cache strategy and decode settings.

Checked against vLLM 0.32. What is left open stays with `engine.flags`, and after it with vLLM; a setting that
both name is an error, as one of them would be ignored.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from engines.errors import EngineConfigError
from engines.nearest import did_you_mean
from engines.spec import EngineConfig
from engines.strategy import Connector
from engines.vllm_flags import DEFAULTS

MODEL_RUNNER = "VLLM_USE_V2_MODEL_RUNNER"
"""Left open, vLLM picks the runner by drafter: an arm and its baseline would run different ones."""

FLAG_OF: Mapping[str, str] = {
    "cache.prefix_caching": "enable_prefix_caching",
    "cache.block_size": "block_size",
    "cache.kv_dtype": "kv_cache_dtype",
    "cache.kv_offload_gib": "kv_offloading_size",
    "cache.connector": "kv_transfer_config",
    "decode.max_num_seqs": "max_num_seqs",
    "decode.max_num_batched_tokens": "max_num_batched_tokens",
    "decode.chunked_prefill": "enable_chunked_prefill",
    "decode.attention_backend": "attention_backend",
    "decode.async_scheduling": "async_scheduling",
}
"""Neutral setting -> vLLM's flag, with underscores."""

BLOCK_SIZE: Mapping[str, int] = {"cpu": 128, "gpu": 16}
"""Tokens of a KV block where nobody says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorKind:
    """How vLLM knows one external KV cache."""

    chunk_key: str | None = None
    """Its own setting for the tokens of a chunk; None where the cache's own server decides."""
    package: str | None = None
    """Package it needs in the engine's environment."""
    gpu_only: bool = False
    """Whether it copies from GPUs only."""


CONNECTORS: Mapping[str, ConnectorKind] = {
    "OffloadingConnector": ConnectorKind(chunk_key="block_size", gpu_only=True),
    "SimpleCPUOffloadConnector": ConnectorKind(gpu_only=True),
    "LMCacheConnectorV1": ConnectorKind(chunk_key="lmcache.chunk_size", package="lmcache"),
    "LMCacheMPConnector": ConnectorKind(package="lmcache"),
    "MooncakeStoreConnector": ConnectorKind(package="mooncake-transfer-engine"),
    "ExampleConnector": ConnectorKind(),
}
"""External caches that one engine can use by itself.

vLLM's other connectors carry keys and values from one engine to another, or make them up.
"""


def engine_flags(config: EngineConfig) -> dict[str, Any]:
    """Return all flags of vLLM that the user, the cache strategy and the decode settings set.

    Raises:
        EngineConfigError: two keys set one flag, or an external cache vLLM does not have.
    """
    flags = dict(config.flags)
    for key, value in _given(config).items():
        flag = FLAG_OF[key]
        if flag in flags:
            message = f"engine.flags.{flag} and {key} both set vLLM's --{flag.replace('_', '-')}; remove one"
            raise EngineConfigError(message)
        flags[flag] = kv_transfer(value) if isinstance(value, Connector) else value
    if config.decode.cuda_graphs is not None:
        flags["compilation_config"] = _with_graphs(flags, config.decode.cuda_graphs)
    return flags


def effective(config: EngineConfig, flag: str) -> Any:
    """Return what a flag is set to, by whichever key; None where it is left to vLLM."""
    for key, name in FLAG_OF.items():
        if name == flag and (value := _given(config).get(key)) is not None:
            return value
    return config.flags.get(flag, DEFAULTS.get(flag))


def block_size(config: EngineConfig) -> int:
    """Return the tokens of a KV block, vLLM's own default where nobody says."""
    value = effective(config, "block_size")
    return value if type(value) is int and value > 0 else BLOCK_SIZE.get(config.device, 16)


def runs_v2(config: EngineConfig) -> bool:
    """Whether the second model runner executes the model, by whichever key."""
    chosen = config.decode.model_runner == "v2" or config.env.get(MODEL_RUNNER) == "1"
    return config.device == "gpu" and chosen


def graphs(config: EngineConfig) -> str | None:
    """Return what is captured as a CUDA graph, None where vLLM decides by itself."""
    if config.flags.get("enforce_eager"):
        return "none"
    if config.decode.cuda_graphs is not None:
        return config.decode.cuda_graphs
    compilation = config.flags.get("compilation_config")
    mode = compilation.get("cudagraph_mode") if isinstance(compilation, Mapping) else None
    return None if mode is None else str(mode).lower()


def runner_environment(config: EngineConfig) -> dict[str, str]:
    """Return the variable that pins the model runner, the first one where nobody says.

    Raises:
        EngineConfigError: two keys set it.
    """
    chosen, variable = config.decode.model_runner, config.env.get(MODEL_RUNNER)
    if chosen is not None and variable is not None:
        message = (
            f"engine.env.{MODEL_RUNNER} and decode.model_runner both choose the model runner; remove one"
        )
        raise EngineConfigError(message)
    return {MODEL_RUNNER: variable or ("1" if chosen == "v2" else "0")}


def kv_transfer(connector: Connector) -> dict[str, Any]:
    """Return vLLM's `--kv-transfer-config` for an external KV cache.

    Raises:
        EngineConfigError: a cache vLLM does not have, or two settings of its chunk.
    """
    kind = CONNECTORS.get(connector.name)
    if kind is None:
        message = (
            f"cache.connector.name is {connector.name!r}{did_you_mean(connector.name, CONNECTORS)}; a single "
            "vLLM engine can use "
            f"{', '.join(sorted(CONNECTORS))}"
        )
        raise EngineConfigError(message)
    own = dict(connector.options)
    if connector.chunk_tokens is not None and kind.chunk_key is not None:
        if kind.chunk_key in own:
            message = (
                f"cache.connector.chunk_tokens and cache.connector.options.{kind.chunk_key} both set the "
                "chunk; remove one"
            )
            raise EngineConfigError(message)
        own[kind.chunk_key] = connector.chunk_tokens
    return {"kv_connector": connector.name, "kv_role": "kv_both", "kv_connector_extra_config": own}


def _given(config: EngineConfig) -> dict[str, Any]:
    given = {f"cache.{name}": value for name, value in config.cache.given.items()}
    given |= {f"decode.{name}": value for name, value in config.decode.given.items()}
    return {key: value for key, value in given.items() if key in FLAG_OF}


def _with_graphs(flags: Mapping[str, Any], wanted: str) -> dict[str, Any]:
    """Return the compilation settings with what is captured.

    Raises:
        EngineConfigError: a flag says something about it too.
    """
    if flags.get("enforce_eager") and wanted != "none":
        message = (
            f"engine.flags.enforce_eager captures nothing, and decode.cuda_graphs is {wanted}; remove one"
        )
        raise EngineConfigError(message)
    own = flags.get("compilation_config", {})
    if isinstance(own, str):
        try:
            own = json.loads(own)
        except ValueError:
            own = None
    if not isinstance(own, Mapping) or "cudagraph_mode" in own:
        message = (
            "engine.flags.compilation_config and decode.cuda_graphs both set what is captured as a CUDA "
            "graph; remove one"
        )
        raise EngineConfigError(message)
    return {**own, "cudagraph_mode": wanted.upper()}
