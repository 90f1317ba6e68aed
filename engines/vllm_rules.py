"""Rules with reasons that are vLLM's own: what its methods, runners and back ends can do together.

Checked against vLLM 0.32. See `engines/rules.py` for the rules of every engine.
"""

from pathlib import Path

from engines.base import Rule
from engines.errors import EngineConfigError
from engines.rules import model_facts
from engines.spec import EngineConfig
from engines.vllm_flags import flag_words
from engines.vllm_speculation import METHODS, Method, speculative_config
from engines.vllm_strategy import MODEL_RUNNER, effective, engine_flags, runner_environment, runs_v2
from engines.vllm_version import installed

_NO_METHOD = Method()


def _method(config: EngineConfig) -> Method:
    return METHODS.get(config.drafter.method, _NO_METHOD)


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


def _method_on_device(config: EngineConfig) -> str | None:
    if _method(config).gpu_only and config.device != "gpu":
        return f"vLLM's CPU backend has no drafter {config.drafter.method!r}; choose another or engine=vllm"
    return None


def _method_on_runner(config: EngineConfig) -> str | None:
    method, v2 = _method(config), runs_v2(config)
    if method.v2_only and config.device == "gpu" and not v2:
        return (
            f"only vLLM's V2 model runner has the drafter {config.drafter.method!r}; set it for all arms "
            f"with +engine.env.{MODEL_RUNNER}='1'"
        )
    if method.v1_only and v2:
        return (
            f"vLLM's V2 model runner has no drafter {config.drafter.method!r}, and its baseline would run "
            f"another runner than it; remove engine.env.{MODEL_RUNNER}"
        )
    return None


def _scheduling(config: EngineConfig) -> str | None:
    if _method(config).sync_only and effective(config, "async_scheduling") is True:
        return (
            f"vLLM switches asynchronous scheduling off for the drafter {config.drafter.method!r}, so its "
            "baseline would run another scheduler; set engine.flags.async_scheduling=false"
        )
    return None


def _drafter_model(config: EngineConfig) -> str | None:
    drafter = config.drafter
    if _method(config).needs_model and drafter.model is None:
        return f"the drafter {drafter.method!r} needs a model; set drafter.model"
    return None


def _local_folder(path: str | None) -> bool:
    """Whether a path means a folder of this machine: a hub name has one slash, and none in front."""
    return path is not None and (path.startswith((".", "/", "~")) or path.count("/") > 1)


def _drafter_folder(config: EngineConfig) -> str | None:
    path = config.drafter.model
    if config.drafter.method == "custom_class" or not _local_folder(path):
        return None
    if not (Path(path or "") / "config.json").is_file():
        return f"drafter.model is {path}, a folder without a config.json; build it first, or name another"
    return None


def _draft_tp_v1(config: EngineConfig) -> str | None:
    drafter, tp = config.drafter, config.layout.tp
    if drafter.method == "draft_model" and not runs_v2(config) and drafter.draft_tp not in {None, tp}:
        return (
            "vLLM's V1 model runner splits a draft model like its target: "
            f"drafter.draft_tp={drafter.draft_tp} has to be layout.tp={tp}, or unset"
        )
    return None


def _draft_heads(config: EngineConfig) -> str | None:
    drafter, tp = config.drafter, config.layout.tp
    heads = (model_facts(drafter.model) or {}).get("num_attention_heads")
    split = drafter.draft_tp or tp
    if _method(config).draft_tp and isinstance(heads, int) and heads % split:
        return (
            f"the draft model {drafter.model} has {heads} attention heads, which tp={split} does not divide"
        )
    return None


def _mtp_depth(config: EngineConfig) -> str | None:
    facts = model_facts(config.drafter.model or config.model.path) or {}
    depth = next(
        (
            facts[key]
            for key in ("num_nextn_predict_layers", "mtp_num_hidden_layers", "n_predict")
            if facts.get(key)
        ),
        None,
    )
    if config.drafter.method != "mtp" or not facts:
        return None
    if depth is None:
        return f"{config.model.name} has no multi-token-prediction layers; choose another drafter or model"
    k = config.drafter.k
    if isinstance(depth, int) and k > depth and k % depth:
        return f"{config.model.name} predicts {depth} tokens at once, which drafter.k={k} is no multiple of"
    return None


def _pipeline(config: EngineConfig) -> str | None:
    if config.layout.pp > 1 and effective(config, "async_scheduling") is True and not runs_v2(config):
        return (
            "vLLM's V1 model runner schedules synchronously over pipeline stages "
            f"(layout.pp={config.layout.pp}), "
            "whatever the flag says; set engine.flags.async_scheduling=false"
        )
    return None


def _dynamic_length(config: EngineConfig) -> str | None:
    if "num_speculative_tokens_per_batch_size" not in config.drafter.options:
        return None
    if config.layout.dp > 1:
        return (
            "vLLM drops num_speculative_tokens_per_batch_size with data parallelism; choose a layout with "
            "dp=1, or remove it from drafter.options"
        )
    if config.drafter.method in {"free", "custom_class", "suffix"}:
        return (
            "vLLM ignores num_speculative_tokens_per_batch_size with the drafter "
            f"{config.drafter.method!r}; remove it from drafter.options"
        )
    return None


def _needs_our_wheel(config: EngineConfig) -> str | None:
    drafter = config.drafter
    on_cpu = drafter.acceptance is not None and config.device == "cpu"
    if not on_cpu and drafter.method != "free":
        return None
    if "specload-vllm" in installed(config.python):
        return None
    what = "the drafter 'free'" if drafter.method == "free" else "synthetic acceptance on the CPU"
    return (
        f"{what} needs the wheel specload-vllm in the engine's environment; install it there "
        "(`make engine-env`, or pip install engines/vllm_env)"
    )


def _needs_suffix_trees(config: EngineConfig) -> str | None:
    if config.drafter.method != "suffix" or "arctic-inference" in installed(config.python):
        return None
    return "the drafter 'suffix' needs the package arctic-inference; install it in the engine's environment"


def _expert_parallel(config: EngineConfig) -> str | None:
    facts = model_facts(config.model.path)
    if not config.layout.expert_parallel or facts is None:
        return None
    if any("expert" in key for key in facts):
        return None
    return f"{config.model.name} has no experts, so layout.expert_parallel means nothing; set it to false"


VLLM_RULES: tuple[Rule, ...] = (
    Rule(
        name="vllm_device",
        meaning="vLLM runs on GPUs or on the CPU.",
        check=_device,
    ),
    Rule(
        name="vllm_settings",
        meaning="Every flag and every drafter option is one that vLLM has, with a value it takes.",
        check=_settings,
    ),
    Rule(
        name="vllm_method_on_device",
        meaning="The CPU backend has the drafter.",
        check=_method_on_device,
    ),
    Rule(
        name="vllm_method_on_runner",
        meaning="The model runner has the drafter, for its baseline runs the same one.",
        check=_method_on_runner,
    ),
    Rule(
        name="vllm_scheduling",
        meaning="Both arms of a pair schedule alike: some drafters switch asynchronous scheduling off.",
        check=_scheduling,
    ),
    Rule(
        name="vllm_drafter_model",
        meaning="A drafter that is a checkpoint (or a class) names it.",
        check=_drafter_model,
    ),
    Rule(
        name="vllm_drafter_folder",
        meaning="A drafter's folder has a config.json.",
        check=_drafter_folder,
    ),
    Rule(
        name="vllm_draft_tp_v1",
        meaning="The V1 model runner splits a draft model like its target.",
        check=_draft_tp_v1,
    ),
    Rule(
        name="vllm_draft_heads",
        meaning="Attention heads of the drafter are divisible by its tensor-parallel size.",
        check=_draft_heads,
    ),
    Rule(
        name="vllm_mtp_depth",
        meaning="The model has multi-token-prediction layers, and K is a length they can draft.",
        check=_mtp_depth,
    ),
    Rule(
        name="vllm_pipeline",
        meaning="The V1 model runner schedules synchronously over pipeline stages.",
        check=_pipeline,
    ),
    Rule(
        name="vllm_dynamic_length",
        meaning="K by batch size takes effect: not with data parallelism, nor with every drafter.",
        check=_dynamic_length,
    ),
    Rule(
        name="vllm_needs_our_wheel",
        meaning="Free drafts, and forced acceptance on the CPU, need our wheel in the engine's environment.",
        check=_needs_our_wheel,
    ),
    Rule(
        name="vllm_needs_suffix_trees",
        meaning="The suffix drafter needs its package.",
        check=_needs_suffix_trees,
    ),
    Rule(
        name="vllm_expert_parallel",
        meaning="Only a mixture of experts has experts to spread.",
        check=_expert_parallel,
    ),
)
"""vLLM's own rules."""
