"""Rules with reasons that are TensorRT-LLM's own, after its documentation of 1.x.

See `engines/rules.py` for the rules of every engine.
"""

from pathlib import Path, PurePath

from engines.base import Rule, Site
from engines.errors import EngineConfigError
from engines.methods import missing_model
from engines.rules import model_facts
from engines.spec import PINNED_ROUTING, EngineConfig
from engines.trtllm_command import environment
from engines.trtllm_config import config_file
from engines.trtllm_speculation import METHODS


def _device(config: EngineConfig) -> str | None:
    if config.device != "gpu":
        return f"engine.device is {config.device!r}; TensorRT-LLM runs on 'gpu' only"
    return None


def _settings(config: EngineConfig) -> str | None:
    try:
        config_file(config)
    except EngineConfigError as error:
        return error.message
    return None


def _environment(config: EngineConfig) -> str | None:
    try:
        environment(config, Site(port=1, directory=Path()))
    except EngineConfigError as error:
        return error.message
    return None


def _model_name(config: EngineConfig) -> str | None:
    path = config.model.path
    if path is None or not Path(path).is_dir():
        return None
    name = PurePath(path).name
    if config.model.name != name:
        return (
            f"TensorRT-LLM serves a folder under the folder's name: set model.name={name}, or rename the "
            "folder"
        )
    return None


def _data_parallel(config: EngineConfig) -> str | None:
    if config.layout.dp > 1:
        return (
            "a TensorRT-LLM server has no data-parallel replicas; choose a layout with dp=1 (a smaller "
            "layout fills its slice with replicas), or engine.flags.enable_attention_dp=true"
        )
    return None


def _routing(config: EngineConfig) -> str | None:
    if config.layout.routing == PINNED_ROUTING:
        return "TensorRT-LLM has no data-parallel ranks to pin a conversation to; set layout.routing=engine"
    return None


def _experts(config: EngineConfig) -> str | None:
    facts = model_facts(config.model.path)
    if not config.layout.expert_parallel or facts is None or any("expert" in key for key in facts):
        return None
    return f"{config.model.name} has no experts; set layout.expert_parallel=false"


def _drafter_model(config: EngineConfig) -> str | None:
    return missing_model(METHODS, config.drafter)


def _scheduling(config: EngineConfig) -> str | None:
    method = METHODS.get(config.drafter.method)
    off = config.decode.async_scheduling is False or config.flags.get("disable_overlap_scheduler") is True
    two_models = config.drafter.options.get("eagle3_one_model") is False
    if method is None or off or not (method.synchronous or two_models):
        return None
    return (
        f"TensorRT-LLM's overlap scheduler is off beside the drafter {config.drafter.method!r}, so its "
        "baseline would run another scheduler; set decode.async_scheduling=false"
    )


def _shared_pool(config: EngineConfig) -> str | None:
    drafter = config.drafter
    if drafter.method == "ngram" and drafter.options.get("is_public_pool") is True and not drafter.stateful:
        return (
            "a pool of n-grams that all requests share remembers earlier ones, so a cell would profit from "
            "the one before it; set drafter.stateful=true, or remove drafter.options.is_public_pool"
        )
    return None


def _relaxed(config: EngineConfig) -> str | None:
    if config.drafter.options.get("use_relaxed_acceptance_for_thinking") is True:
        return (
            "relaxed acceptance changes the answers, so the arms of a pair would not do the same work; "
            "remove drafter.options.use_relaxed_acceptance_for_thinking"
        )
    return None


TRTLLM_RULES: tuple[Rule, ...] = (
    Rule(name="trtllm_device", meaning="It runs on GPUs only.", check=_device),
    Rule(
        name="trtllm_settings",
        meaning="Every flag, option and setting of a group is one that it knows, and given once.",
        check=_settings,
    ),
    Rule(
        name="trtllm_environment",
        meaning="Variables that the placement or the drafter sets are not given by hand.",
        check=_environment,
    ),
    Rule(
        name="trtllm_model_name",
        meaning="A model folder is served under the folder's name.",
        check=_model_name,
    ),
    Rule(
        name="trtllm_data_parallel",
        meaning="One server has no data-parallel replicas.",
        check=_data_parallel,
    ),
    Rule(name="trtllm_routing", meaning="There are no ranks to pin conversations to.", check=_routing),
    Rule(name="trtllm_experts", meaning="Expert parallelism needs experts.", check=_experts),
    Rule(
        name="trtllm_drafter_model",
        meaning="A drafter with a checkpoint has one.",
        check=_drafter_model,
    ),
    Rule(
        name="trtllm_scheduling",
        meaning="Beside a drafter without overlap scheduler the baseline has none either.",
        check=_scheduling,
    ),
    Rule(
        name="trtllm_shared_pool",
        meaning="N-grams that outlive a request get a fresh engine for every cell.",
        check=_shared_pool,
    ),
    Rule(
        name="trtllm_relaxed_acceptance",
        meaning="Both arms of a pair answer alike: no relaxed acceptance.",
        check=_relaxed,
    ),
)
"""TensorRT-LLM's own rules."""
