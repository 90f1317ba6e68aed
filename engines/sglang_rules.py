"""Rules with reasons that are SGLang's own, read in the source of 0.5.23.

See `engines/rules.py` for the rules of every engine.
"""

from pathlib import Path

from engines.base import Rule, Site
from engines.errors import EngineConfigError
from engines.methods import missing_model
from engines.rules import model_facts
from engines.schedule import ADAPTIVE
from engines.sglang_command import environment, layout_words
from engines.sglang_flags import flag_words
from engines.sglang_speculation import METHODS, forced_acceptance, speculation_words
from engines.sglang_strategy import strategy_flags
from engines.spec import PINNED_ROUTING, EngineConfig

_REMEMBERS = "ngram"
"""Its n-grams are those of every request so far, kept in one tree."""


def _device(config: EngineConfig) -> str | None:
    if config.device not in {"cpu", "gpu"}:
        return f"engine.device is {config.device!r}; SGLang runs on 'gpu' or 'cpu'"
    return None


def _settings(config: EngineConfig) -> str | None:
    try:
        flag_words({**config.flags, **strategy_flags(config)})
        speculation_words(config.drafter)
        layout_words(config)
    except EngineConfigError as error:
        return error.message
    return None


def _drafter_model(config: EngineConfig) -> str | None:
    return missing_model(METHODS, config.drafter)


def _mtp_layers(config: EngineConfig) -> str | None:
    facts = model_facts(config.model.path)
    if config.drafter.method != "mtp" or config.drafter.model is not None or facts is None:
        return None
    if any(facts.get(key) for key in ("num_nextn_predict_layers", "mtp_num_hidden_layers", "n_predict")):
        return None
    return f"{config.model.name} has no multi-token-prediction layers; choose another drafter or model"


def _on_device(config: EngineConfig) -> str | None:
    if config.device != "gpu" and config.drafter.method in {"dflash", "dspark"}:
        return f"SGLang has no drafter {config.drafter.method!r} on the CPU; choose another, or a GPU"
    return None


def _batch_limit(config: EngineConfig) -> str | None:
    if config.decode.max_num_seqs is not None or "max_running_requests" in config.flags:
        return None
    return (
        "left to itself SGLang limits an engine with a drafter to 48 requests and its baseline by memory "
        "alone; set decode.max_num_seqs for both"
    )


def _memory(config: EngineConfig) -> str | None:
    if config.device != "gpu" or {"mem_fraction_static", "max_total_tokens"} & set(config.flags):
        return None
    return (
        "left to itself SGLang chooses the memory it takes by the graphs it captures, which a drafter "
        "changes; set engine.flags.mem_fraction_static for both"
    )


def _mixed_chunk(config: EngineConfig) -> str | None:
    if config.flags.get("enable_mixed_chunk") is True:
        return (
            "SGLang switches mixed chunks off beside most drafters, so a pair would compare two schedulers; "
            "remove engine.flags.enable_mixed_chunk"
        )
    return None


def _overlap_on_cpu(config: EngineConfig) -> str | None:
    off = config.decode.async_scheduling is False or config.flags.get("disable_overlap_schedule") is True
    if config.device == "cpu" and not off:
        return (
            "on the CPU SGLang switches its overlapped scheduler off beside a drafter and keeps it without "
            "one; set decode.async_scheduling=false for both"
        )
    return None


def _ngram_remembers(config: EngineConfig) -> str | None:
    if config.drafter.method == _REMEMBERS and not config.drafter.stateful:
        return (
            "SGLang's n-gram drafter remembers earlier requests, so a cell would profit from the one before "
            "it; set drafter.stateful=true (a fresh engine per cell)"
        )
    return None


def _pipeline(config: EngineConfig) -> str | None:
    if config.layout.pp > 1 and config.drafter.method in {"dflash", "dspark"}:
        return (
            f"SGLang's drafter {config.drafter.method!r} runs on one pipeline stage only; choose layout.pp=1"
        )
    return None


def _attention_dp(config: EngineConfig) -> str | None:
    parts = config.flags.get("attn_dp_size", 1)
    if parts == 1:
        return None
    if not isinstance(parts, int) or config.layout.tp % parts:
        return (
            f"engine.flags.attn_dp_size={parts} does not divide layout.tp={config.layout.tp}; it splits "
            "the attention of one tensor-parallel group"
        )
    if ADAPTIVE in config.drafter.options:
        return (
            "SGLang drafts one length with attention data parallelism, whatever the batch size; remove "
            f"drafter.options.{ADAPTIVE}, or engine.flags.attn_dp_size"
        )
    if config.drafter.method in {"draft_model", "ngram"}:
        return (
            f"SGLang's drafter {config.drafter.method!r} does not run with attention data parallelism; "
            "remove engine.flags.attn_dp_size"
        )
    if config.drafter.method in {"dflash", "dspark"} and config.flags.get("enable_dp_lm_head") is not True:
        return (
            f"with attention data parallelism SGLang's drafter {config.drafter.method!r} needs "
            "engine.flags.enable_dp_lm_head=true"
        )
    return None


def _experts(config: EngineConfig) -> str | None:
    if not config.layout.expert_parallel:
        return None
    facts = model_facts(config.model.path)
    if facts is not None and not any("expert" in key for key in facts):
        return f"{config.model.name} has no experts; set layout.expert_parallel=false"
    if config.layout.dp > 1:
        return (
            "each of SGLang's data-parallel replicas has all experts, so they cannot be spread over TP x DP "
            "devices; choose layout.dp=1 (engine.flags.attn_dp_size splits the attention alone)"
        )
    return None


def _routing(config: EngineConfig) -> str | None:
    if config.layout.routing == PINNED_ROUTING:
        return (
            "SGLang's completions take no data-parallel rank with a request; choose layout.routing=engine, "
            "or replicas instead of layout.dp"
        )
    return None


def _forced(config: EngineConfig) -> str | None:
    """Refuse forced acceptance beside a sampler whose verdict it replaces."""
    try:
        forced = forced_acceptance(config.drafter)
    except EngineConfigError:
        return None  # the settings say so already
    if forced is not None and config.drafter.options.get("use_rejection_sampling") is True:
        return (
            "forced acceptance replaces the verdict of SGLang's verifier, so rejection sampling would only "
            "cost time; remove drafter.options.use_rejection_sampling"
        )
    return None


def _environment(config: EngineConfig) -> str | None:
    try:
        environment(config, Site(port=1, directory=Path()))
    except EngineConfigError as error:
        return error.message
    return None


SGLANG_RULES: tuple[Rule, ...] = (
    Rule(name="sglang_device", meaning="It runs on GPUs or on the CPU.", check=_device),
    Rule(
        name="sglang_settings",
        meaning="Every flag, option and setting of a group is one that it knows, and given once.",
        check=_settings,
    ),
    Rule(
        name="sglang_environment",
        meaning="Variables that the placement or the drafter sets are not given by hand.",
        check=_environment,
    ),
    Rule(
        name="sglang_drafter_model",
        meaning="A drafter with a checkpoint has one.",
        check=_drafter_model,
    ),
    Rule(
        name="sglang_mtp_layers",
        meaning="MTP needs layers of the target that predict further tokens.",
        check=_mtp_layers,
    ),
    Rule(
        name="sglang_method_on_device",
        meaning="DFLASH and DSPARK have no CPU kernels.",
        check=_on_device,
    ),
    Rule(
        name="sglang_batch_limit",
        meaning="The batch limit is given: with a drafter its default is 48, without one it is not.",
        check=_batch_limit,
    ),
    Rule(
        name="sglang_memory",
        meaning="The memory it takes is given: its default depends on the drafter.",
        check=_memory,
    ),
    Rule(
        name="sglang_mixed_chunk",
        meaning="Mixed chunks are off in both arms: beside most drafters they are off anyway.",
        check=_mixed_chunk,
    ),
    Rule(
        name="sglang_overlap_on_cpu",
        meaning="On the CPU the overlapped scheduler is off in both arms.",
        check=_overlap_on_cpu,
    ),
    Rule(
        name="sglang_ngram_remembers",
        meaning="Its n-grams outlive a request: every cell gets a fresh engine.",
        check=_ngram_remembers,
    ),
    Rule(
        name="sglang_pipeline",
        meaning="DFLASH and DSPARK run on one pipeline stage.",
        check=_pipeline,
    ),
    Rule(
        name="sglang_attention_dp",
        meaning="Attention data parallelism divides TP, and not every drafter runs with it.",
        check=_attention_dp,
    ),
    Rule(
        name="sglang_experts",
        meaning="Expert parallelism needs experts, and one data-parallel replica.",
        check=_experts,
    ),
    Rule(
        name="sglang_routing",
        meaning="Its completions cannot be pinned to a data-parallel rank.",
        check=_routing,
    ),
    Rule(
        name="sglang_forced_acceptance",
        meaning="Forced acceptance leaves no verdict to a rejection sampler.",
        check=_forced,
    ),
)
"""SGLang's own rules."""
