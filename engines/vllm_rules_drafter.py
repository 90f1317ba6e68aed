"""What vLLM's drafters need, and what each cannot do.

Checked against vLLM 0.32. What vLLM would ignore, or replace by something else without ending, is refused
here: the arm would not be what its name says.
"""

import re
from pathlib import Path

from engines.base import Rule
from engines.methods import missing_model
from engines.rules import model_facts
from engines.spec import EngineConfig
from engines.vllm_speculation import METHODS, method_of
from engines.vllm_strategy import runs_v2
from engines.vllm_version import installed

_DOTTED = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)+")
_BY_NAME = {"eagle-": "eagle", "eagle3": "eagle3", "dflash": "dflash", "dspark": "dspark"}
"""Part of a checkpoint's path, in lower case -> the method vLLM takes it for, whatever it was told."""
_NAMED_IN_FULL = frozenset({"eagle", "eagle3", "dflash", "dspark"})
"""vLLM's methods that it does not guess anew."""
_MASK_TOKENS = ("mask_token_id", "dspark_noise_token_id", "pard_token", "ptd_token_id")
_CANDIDATE_HEADS = frozenset({"DFlash2DraftModel", "LiLiCorrDraftModel"})


def _method_on_device(config: EngineConfig) -> str | None:
    if method_of(config.drafter).gpu_only and config.device != "gpu":
        return f"vLLM's CPU backend has no drafter {config.drafter.method!r}; choose another or engine=vllm"
    return None


def _method_on_runner(config: EngineConfig) -> str | None:
    method, v2, name = method_of(config.drafter), runs_v2(config), config.drafter.method
    if method.v2_only and config.device == "gpu" and not v2:
        return f"only vLLM's V2 model runner has the drafter {name!r}; set decode.model_runner=v2"
    if method.v1_only and v2:
        return (
            f"vLLM's V2 model runner has no drafter {name!r}, and its baseline would run another runner than "
            "it; set decode.model_runner=v1"
        )
    return None


def _lookup_on_v2(config: EngineConfig) -> str | None:
    if config.drafter.method != "ngram" or not runs_v2(config):
        return None
    return "vLLM's V2 model runner serves the drafter 'ngram' by its GPU lookup; choose drafter=ngram_gpu"


def _no_proposer(config: EngineConfig) -> str | None:
    if config.drafter.method != "mlp_speculator":
        return None
    return "vLLM 0.32 reads the settings of 'mlp_speculator' and has no proposer for it; choose another"


def _drafter_model(config: EngineConfig) -> str | None:
    return missing_model(METHODS, config.drafter)


def _custom_class(config: EngineConfig) -> str | None:
    path = config.drafter.model
    if config.drafter.method != "custom_class" or path is None or _DOTTED.fullmatch(path):
        return None
    return f"drafter.model is {path!r}; custom_class takes the dotted path of a class: package.module.Class"


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


def _method_by_name(config: EngineConfig) -> str | None:
    drafter, method = config.drafter, method_of(config.drafter)
    spelling = method.spelling or drafter.method
    if not method.takes_model or spelling in _NAMED_IN_FULL | {"custom_class"}:
        return None
    path = (drafter.model or config.model.path or "").lower()
    taken = next((name for part, name in _BY_NAME.items() if part in path), None)
    if taken is None:
        return None
    return (
        f"vLLM takes a drafter whose path says so for {taken!r}, although drafter.method is "
        f"{drafter.method!r}; give the folder {drafter.model or config.model.path} another name"
    )


def _draft_tp(config: EngineConfig) -> str | None:
    drafter, tp = config.drafter, config.layout.tp
    if not method_of(config.drafter).draft_tp or runs_v2(config) or drafter.draft_tp in {None, tp}:
        return None
    return (
        "vLLM's V1 model runner splits a draft model like its target: "
        f"drafter.draft_tp={drafter.draft_tp} has to be layout.tp={tp}, or unset"
    )


def _draft_heads(config: EngineConfig) -> str | None:
    drafter = config.drafter
    heads = (model_facts(drafter.model) or {}).get("num_attention_heads")
    split = drafter.draft_tp or config.layout.tp
    if isinstance(heads, int) and heads > 0 and heads % split:
        return (
            f"the draft model {drafter.model} has {heads} attention heads, which tp={split} does not divide"
        )
    return None


def _draft_context(config: EngineConfig) -> str | None:
    drafter = config.drafter
    longest = (model_facts(drafter.model) or {}).get("max_position_embeddings")
    if drafter.method not in {"draft_model", "pard"} or "max_model_len" in drafter.options:
        return None
    if isinstance(longest, int) and longest < config.model.max_context:
        return (
            f"the draft model {drafter.model} was made for {longest} positions, and vLLM stops drafting "
            f"beyond them: set model.max_context to at most {longest}"
        )
    return None


def _mtp_depth(config: EngineConfig) -> str | None:
    facts = model_facts(config.drafter.model or config.model.path) or {}
    keys = ("num_nextn_predict_layers", "mtp_num_hidden_layers", "num_mtp_modules", "n_predict")
    depth = next((facts[key] for key in keys if facts.get(key)), None)
    if config.drafter.method != "mtp" or not facts or "assistant" in str(facts.get("model_type")):
        return None
    if depth is None:
        return f"{config.model.name} has no multi-token-prediction layers; choose another drafter or model"
    k = config.drafter.k
    if isinstance(depth, int) and k > depth and k % depth:
        return f"{config.model.name} predicts {depth} tokens at once, which drafter.k={k} is no multiple of"
    return None


def _medusa_heads(config: EngineConfig) -> str | None:
    facts = model_facts(config.drafter.model) or {}
    heads = next((facts[key] for key in ("medusa_num_heads", "num_heads") if facts.get(key)), None)
    if config.drafter.method != "medusa" or not isinstance(heads, int) or config.drafter.k <= heads:
        return None
    return f"{config.drafter.model} has {heads} heads, one a token: set drafter.k to at most {heads}"


def _mask_token(config: EngineConfig) -> str | None:
    facts = model_facts(config.drafter.model)
    if not method_of(config.drafter).parallel or facts is None:
        return None
    block = facts.get("dflash_config")
    if any(facts.get(key) is not None for key in _MASK_TOKENS) or "mask_token_id" in (block or {}):
        return None
    return (
        f"{config.drafter.model} names no mask token, so it was not trained to draft all tokens in one pass; "
        "choose a drafter that drafts one after another"
    )


def _block_length(config: EngineConfig) -> str | None:
    facts = model_facts(config.drafter.model) or {}
    size = facts.get("block_size")
    if config.drafter.method != "dflash" or not isinstance(size, int) or config.drafter.k < size:
        return None
    return (
        f"{config.drafter.model} fills blocks of {size} tokens, the last accepted one included: set "
        f"drafter.k to at most {size - 1}"
    )


def _block_runner(config: EngineConfig) -> str | None:
    facts = model_facts(config.drafter.model) or {}
    if config.drafter.method != "dflash" or runs_v2(config):
        return None
    kinds = {str(kind) for kind in facts.get("layer_types") or ()}
    heads = _CANDIDATE_HEADS.intersection(facts.get("architectures") or ())
    if not heads and not {"sliding_attention", "full_attention"} <= kinds:
        return None
    what = "candidate heads" if heads else "sliding and full attention"
    return f"only vLLM's V2 model runner drafts with {what}; set decode.model_runner=v2"


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


DRAFTER_RULES: tuple[Rule, ...] = (
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
        name="vllm_lookup_on_v2",
        meaning="The drafter ngram is the lookup on the host; the V2 model runner has another one.",
        check=_lookup_on_v2,
    ),
    Rule(
        name="vllm_no_proposer",
        meaning="vLLM can draft with the method, and not only read its settings.",
        check=_no_proposer,
        versions="<0.33",
    ),
    Rule(
        name="vllm_drafter_model",
        meaning="A drafter that is a checkpoint (or a class) names it.",
        check=_drafter_model,
    ),
    Rule(
        name="vllm_custom_class",
        meaning="A drafter of the user's own is named by the dotted path of its class.",
        check=_custom_class,
    ),
    Rule(
        name="vllm_drafter_folder",
        meaning="A drafter's folder has a config.json.",
        check=_drafter_folder,
    ),
    Rule(
        name="vllm_method_by_name",
        meaning="No checkpoint is called after another method: vLLM goes by its path.",
        check=_method_by_name,
    ),
    Rule(
        name="vllm_draft_tp_v1",
        meaning="The V1 model runner splits a draft model like its target.",
        check=_draft_tp,
    ),
    Rule(
        name="vllm_draft_heads",
        meaning="Attention heads of the drafter are divisible by its tensor-parallel size.",
        check=_draft_heads,
    ),
    Rule(
        name="vllm_draft_context",
        meaning="A draft model drafts over the whole context of its target.",
        check=_draft_context,
    ),
    Rule(
        name="vllm_mtp_depth",
        meaning="The model has multi-token-prediction layers, and K is a length they can draft.",
        check=_mtp_depth,
    ),
    Rule(
        name="vllm_medusa_heads",
        meaning="A Medusa checkpoint has a head for each of the K tokens.",
        check=_medusa_heads,
    ),
    Rule(
        name="vllm_mask_token",
        meaning="A drafter that drafts all tokens in one pass was trained with a mask token.",
        check=_mask_token,
    ),
    Rule(
        name="vllm_block_length",
        meaning="A block drafter was trained with blocks that hold K tokens and one more.",
        check=_block_length,
    ),
    Rule(
        name="vllm_block_runner",
        meaning="Block drafters with mixed attention or candidate heads need the V2 model runner.",
        check=_block_runner,
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
)
"""On the drafter itself."""
