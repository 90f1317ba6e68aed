"""What vLLM's layouts, scheduler, cache and back ends can do, and what both arms of a pair can share.

Checked against vLLM 0.32. On the CPU vLLM takes many settings of GPUs and ignores them: they are refused.
"""

from engines.base import Rule
from engines.errors import EngineConfigError
from engines.rules import model_facts
from engines.spec import EngineConfig
from engines.vllm_flags import flag_words
from engines.vllm_speculation import method_of, speculative_config
from engines.vllm_strategy import (
    CONNECTORS,
    block_size,
    effective,
    engine_flags,
    graphs,
    runner_environment,
    runs_v2,
)
from engines.vllm_version import installed

_CPU_ATTENTION = frozenset({"CPU_ATTN", "CPU_MLA"})
_CPU_KV_TYPES = frozenset({"auto", "float16", "bfloat16", "fp8", "fp8_e4m3", "fp8_e5m2"})
_KERNEL_BLOCK = {"cpu": 32, "gpu": 16}
"""Tokens of which attention kernels want a multiple in a KV block."""


def _device(config: EngineConfig) -> str | None:
    if config.device not in {"cpu", "gpu"}:
        return f"engine.device is {config.device!r}; vLLM runs on 'gpu' or 'cpu'"
    return None


def _settings(config: EngineConfig) -> str | None:
    try:
        flag_words(engine_flags(config))
        runner_environment(config)
        speculative_config(config.drafter)
    except EngineConfigError as error:
        return error.message
    return None


def _runner(config: EngineConfig) -> str | None:
    if config.device == "gpu" or config.decode.model_runner != "v2":
        return None
    return "vLLM's CPU backend has the first model runner only; set decode.model_runner=v1, or null"


def _scheduling(config: EngineConfig) -> str | None:
    if effective(config, "async_scheduling") is not True:
        return None
    if config.device == "cpu":
        return "vLLM's CPU backend never schedules asynchronously; set decode.async_scheduling=false, or null"
    if method_of(config.drafter).sync_only:
        return (
            f"vLLM cannot schedule asynchronously with the drafter {config.drafter.method!r}; set "
            "decode.async_scheduling=false, for all arms"
        )
    if config.layout.pp > 1 and not runs_v2(config):
        return (
            "vLLM's V1 model runner schedules synchronously over pipeline stages "
            f"(layout.pp={config.layout.pp}); set decode.async_scheduling=false, or decode.model_runner=v2"
        )
    return None


def _stages(config: EngineConfig) -> str | None:
    if config.layout.pp == 1 or not method_of(config.drafter).reads_layers or runs_v2(config):
        return None
    return (
        f"the drafter {config.drafter.method!r} reads states of the target's first layers, which vLLM's V1 "
        "model runner does not carry over pipeline stages; set decode.model_runner=v2, or choose pp=1"
    )


def _experts(config: EngineConfig) -> str | None:
    if not config.layout.expert_parallel:
        return None
    if config.layout.tp * config.layout.dp == 1:
        return "layout.expert_parallel spreads experts over tp x dp devices, of which there is one; set false"
    facts = model_facts(config.model.path)
    if facts is None or any("expert" in key for key in facts):
        return None
    return f"{config.model.name} has no experts, so layout.expert_parallel means nothing; set it to false"


def _batch(config: EngineConfig) -> str | None:
    seqs, tokens = effective(config, "max_num_seqs"), effective(config, "max_num_batched_tokens")
    if not isinstance(tokens, int):
        return None
    if isinstance(seqs, int) and tokens < seqs:
        return (
            f"decode.max_num_batched_tokens={tokens} is less than decode.max_num_seqs={seqs}: not even one "
            "token a request; raise the one, or lower the other"
        )
    if tokens <= config.drafter.k:
        return (
            f"drafter.k={config.drafter.k}: a request's step of {config.drafter.k + 1} positions exceeds "
            f"decode.max_num_batched_tokens={tokens}; raise it"
        )
    return None


def _whole_prompts(config: EngineConfig) -> str | None:
    tokens = effective(config, "max_num_batched_tokens")
    if effective(config, "enable_chunked_prefill") is not False or not isinstance(tokens, int):
        return None
    if tokens >= config.model.max_context:
        return None
    return (
        f"without chunked prefill a prompt of model.max_context={config.model.max_context} tokens has to fit "
        f"into one step of decode.max_num_batched_tokens={tokens}; raise it"
    )


def _graphs(config: EngineConfig) -> str | None:
    if config.device != "cpu" or graphs(config) in (None, "none"):
        return None
    return "vLLM's CPU backend captures no CUDA graphs; set decode.cuda_graphs=null"


def _attention(config: EngineConfig) -> str | None:
    backend = effective(config, "attention_backend")
    if not isinstance(backend, str) or (config.device == "cpu") == (backend.upper() in _CPU_ATTENTION):
        return None
    if config.device == "cpu":
        return f"vLLM's CPU backend takes CPU_ATTN whatever decode.attention_backend={backend} says; set null"
    return f"decode.attention_backend={backend} is the CPU's; choose one of a GPU, or null"


def _kv_type(config: EngineConfig) -> str | None:
    kind = effective(config, "kv_cache_dtype")
    if config.device != "cpu" or kind is None or kind in _CPU_KV_TYPES:
        return None
    return f"vLLM's CPU attention has no kernels for cache.kv_dtype={kind}; choose auto or fp8"


def _block(config: EngineConfig) -> str | None:
    size, grain = block_size(config), _KERNEL_BLOCK.get(config.device, 16)
    if size % grain == 0:
        return None
    return (
        f"cache.block_size={size} is no multiple of {grain}, which attention on this device is written for; "
        f"choose {grain * max(1, round(size / grain))}"
    )


def _external(config: EngineConfig) -> str | None:
    cache = config.cache
    what = "cache.connector" if cache.connector is not None else "cache.kv_offload_gib"
    if cache.connector is None and cache.kv_offload_gib is None:
        return None
    if cache.connector is not None and cache.kv_offload_gib is not None:
        return "cache.kv_offload_gib is a connector of its own; remove it, or cache.connector"
    if effective(config, "enable_prefix_caching") is False:
        return f"{what} keeps prefixes, which cache.prefix_caching=false leaves out; set one of the two"
    kind = CONNECTORS.get(cache.connector.name) if cache.connector is not None else None
    if config.device == "cpu" and (kind is None or kind.gpu_only):
        return f"{what} copies from GPUs only; leave it null on the CPU"
    return None


def _chunk(config: EngineConfig) -> str | None:
    connector, size = config.cache.connector, block_size(config)
    if connector is None or connector.chunk_tokens is None:
        return None
    if connector.chunk_tokens % size:
        return (
            f"cache.connector.chunk_tokens={connector.chunk_tokens} is no multiple of the KV block of {size} "
            f"tokens; choose {size * max(1, round(connector.chunk_tokens / size))}, or cache.block_size"
        )
    return None


def _connector_package(config: EngineConfig) -> str | None:
    connector = config.cache.connector
    kind = CONNECTORS.get(connector.name) if connector is not None else None
    if connector is None or kind is None or kind.package is None or kind.package in installed(config.python):
        return None
    return f"cache.connector {connector.name} needs the package {kind.package} in the engine's environment"


ENGINE_RULES: tuple[Rule, ...] = (
    Rule(
        name="vllm_device",
        meaning="vLLM runs on GPUs or on the CPU.",
        check=_device,
    ),
    Rule(
        name="vllm_settings",
        meaning="Every flag and option is one that vLLM has, with a value it takes, set by one key.",
        check=_settings,
    ),
    Rule(
        name="vllm_runner_on_device",
        meaning="The device has the model runner.",
        check=_runner,
    ),
    Rule(
        name="vllm_scheduling",
        meaning="Both arms schedule alike: asynchronously only where device, drafter and layout can.",
        check=_scheduling,
    ),
    Rule(
        name="vllm_pipeline_states",
        meaning="States of early layers reach a drafter over pipeline stages in the V2 model runner only.",
        check=_stages,
    ),
    Rule(
        name="vllm_expert_parallel",
        meaning="Only a mixture of experts, on several devices, has experts to spread.",
        check=_experts,
    ),
    Rule(
        name="vllm_batch_limits",
        meaning="A step has room for a token of each request, and for the K+1 positions of one.",
        check=_batch,
    ),
    Rule(
        name="vllm_whole_prompts",
        meaning="Without chunked prefill the longest prompt fits into one step.",
        check=_whole_prompts,
    ),
    Rule(
        name="vllm_graphs_on_device",
        meaning="CUDA graphs are captured on GPUs.",
        check=_graphs,
    ),
    Rule(
        name="vllm_attention_on_device",
        meaning="The attention back end is one of the device.",
        check=_attention,
    ),
    Rule(
        name="vllm_kv_type_on_device",
        meaning="The device has kernels for the type of keys and values.",
        check=_kv_type,
    ),
    Rule(
        name="vllm_block_size",
        meaning="A KV block is a multiple of what attention kernels are written for.",
        check=_block,
    ),
    Rule(
        name="vllm_external_cache",
        meaning="One external cache, on a device it can copy from, beside a prefix cache.",
        check=_external,
    ),
    Rule(
        name="vllm_chunk_alignment",
        meaning="An external cache stores chunks of whole KV blocks.",
        check=_chunk,
    ),
    Rule(
        name="vllm_connector_package",
        meaning="An external cache needs its package in the engine's environment.",
        check=_connector_package,
    ),
)
"""On everything but the drafter."""
