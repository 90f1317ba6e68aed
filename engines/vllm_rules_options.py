"""Which settings of a drafter take effect in vLLM, alone and together.

Checked against vLLM 0.32.
"""

from engines.base import Rule
from engines.schedule import DYNAMIC, listed_problem
from engines.spec import EngineConfig
from engines.vllm_speculation import method_of
from engines.vllm_strategy import effective, graphs, runs_v2

_FIXED_LENGTH = frozenset({"free", "custom_class", "suffix", "medusa", "mlp_speculator", "dspark"})
"""Methods that draft K tokens whatever the batch size says."""


def _lookup_window(config: EngineConfig) -> str | None:
    options = config.drafter.options
    shortest, longest = options.get("prompt_lookup_min"), options.get("prompt_lookup_max")
    if shortest is None or longest is None or shortest <= longest:
        return None
    return (
        f"drafter.options.prompt_lookup_min={shortest} is more than prompt_lookup_max={longest}; swap the two"
    )


def _heterogeneous(config: EngineConfig) -> str | None:
    options = config.drafter.options
    if not options.get("use_heterogeneous_vocab"):
        return None
    if runs_v2(config):
        return (
            "vLLM's V2 model runner maps no tokens between vocabularies (use_heterogeneous_vocab); set "
            "decode.model_runner=v1"
        )
    if options.get("draft_sample_method", "greedy") != "greedy":
        return "use_heterogeneous_vocab drafts greedily only; remove drafter.options.draft_sample_method"
    return None


def _verification(config: EngineConfig) -> str | None:
    if config.drafter.options.get("rejection_sample_method") != "block" or runs_v2(config):
        return None
    return (
        "vLLM's V1 model runner verifies token by token whatever rejection_sample_method=block says; set "
        "decode.model_runner=v2"
    )


def _forced_by_option(config: EngineConfig) -> str | None:
    if config.drafter.options.get("rejection_sample_method") != "synthetic":
        return None
    return "rejection_sample_method=synthetic needs rates to accept by; set drafter.acceptance instead"


def _local_argmax(config: EngineConfig) -> str | None:
    options = config.drafter.options
    if not options.get("use_local_argmax_reduction") or options.get("draft_sample_method") != "probabilistic":
        return None
    return "use_local_argmax_reduction drafts greedily only; set draft_sample_method=greedy, or remove it"


def _padded(config: EngineConfig) -> str | None:
    if not config.drafter.options.get("disable_padded_drafter_batch"):
        return None
    if effective(config, "async_scheduling") is True:
        return (
            "asynchronous scheduling needs padded drafts; remove "
            "drafter.options.disable_padded_drafter_batch, or set decode.async_scheduling=false"
        )
    return None


def _block_drop(config: EngineConfig) -> str | None:
    if not config.drafter.options.get("disable_eagle_block_drop"):
        return None
    if effective(config, "enable_prefix_caching") is False:
        return (
            "without prefix caching no block is found again, so disable_eagle_block_drop means nothing; "
            "remove it from drafter.options"
        )
    return None


def _adaptive(config: EngineConfig) -> str | None:
    if not config.drafter.options.get("enable_adaptive_verification"):
        return None
    if graphs(config) in ("none", "piecewise"):
        return (
            "enable_adaptive_verification needs full CUDA graphs; set decode.cuda_graphs=full_and_piecewise"
        )
    if config.layout.pp > 1:
        return "enable_adaptive_verification works on one pipeline stage only; choose a layout with pp=1"
    return None


def _top_k(config: EngineConfig) -> str | None:
    drafter = config.drafter
    if "dspark_draft_topk" not in drafter.options or (drafter.draft_tp or config.layout.tp) == 1:
        return None
    return "dspark_draft_topk needs the drafter on one device; set drafter.draft_tp=1"


def _forced_lookup(config: EngineConfig) -> str | None:
    drafter = config.drafter
    if drafter.acceptance is None or method_of(config.drafter).whole_drafts:
        return None
    return (
        f"the drafter {drafter.method!r} proposes as much as it finds, so forced acceptance of K tokens "
        "means nothing; choose drafter=free for a ceiling"
    )


def _dynamic_length(config: EngineConfig) -> str | None:
    if DYNAMIC not in config.drafter.options:
        return None
    if config.layout.dp > 1:
        return (
            f"vLLM drops {DYNAMIC} with data parallelism; choose a layout with dp=1, or remove it from "
            "drafter.options"
        )
    if config.drafter.method in _FIXED_LENGTH:
        return (
            f"vLLM cannot draft by {DYNAMIC} with {config.drafter.method!r}; remove it from drafter.options"
        )
    if config.drafter.acceptance is not None:
        return "forced acceptance asks for one draft length; remove drafter.acceptance, or the draft lengths"
    return None


def _dynamic_ranges(config: EngineConfig) -> str | None:
    ranges = config.drafter.options.get(DYNAMIC)
    return None if ranges is None else listed_problem(ranges, config.drafter.k)


def _dynamic_graphs(config: EngineConfig) -> str | None:
    by_batch_size = DYNAMIC in config.drafter.options or config.drafter.loaded_only  # then K=0 at every size
    if not by_batch_size or config.device != "gpu" or runs_v2(config):
        return None
    if graphs(config) in ("none", "piecewise"):
        return None
    return (
        "with draft lengths by batch size vLLM's V1 model runner falls back to piecewise CUDA graphs, and "
        "the baseline keeps full ones: set decode.cuda_graphs=piecewise, or decode.model_runner=v2"
    )


OPTION_RULES: tuple[Rule, ...] = (
    Rule(
        name="vllm_lookup_window",
        meaning="The shortest window of a lookup is no longer than its longest.",
        check=_lookup_window,
    ),
    Rule(
        name="vllm_heterogeneous_vocab",
        meaning="Tokens are mapped between vocabularies by the V1 model runner, for greedy drafts.",
        check=_heterogeneous,
    ),
    Rule(
        name="vllm_block_verification",
        meaning="Drafts are verified as a block by the V2 model runner only.",
        check=_verification,
    ),
    Rule(
        name="vllm_forced_by_option",
        meaning="Forced acceptance is asked for by drafter.acceptance, in every engine's words alike.",
        check=_forced_by_option,
    ),
    Rule(
        name="vllm_local_argmax",
        meaning="The reduced argmax drafts greedily.",
        check=_local_argmax,
    ),
    Rule(
        name="vllm_padded_drafts",
        meaning="Asynchronous scheduling needs padded drafts.",
        check=_padded,
    ),
    Rule(
        name="vllm_block_drop",
        meaning="Keeping the last block of a hit needs a prefix cache.",
        check=_block_drop,
    ),
    Rule(
        name="vllm_adaptive_verification",
        meaning="Adaptive verification needs full CUDA graphs on one pipeline stage.",
        check=_adaptive,
    ),
    Rule(
        name="vllm_draft_top_k",
        meaning="DSpark's top-k needs the drafter on one device.",
        check=_top_k,
    ),
    Rule(
        name="vllm_forced_lookup",
        meaning="Acceptance is forced on drafts of K tokens; a lookup proposes what it finds.",
        check=_forced_lookup,
    ),
    Rule(
        name="vllm_dynamic_length",
        meaning="K by batch size takes effect: not with data parallelism, nor with every drafter.",
        check=_dynamic_length,
    ),
    Rule(
        name="vllm_dynamic_ranges",
        meaning="K by batch size is a list of ascending ranges from 1 on, no K above drafter.k.",
        check=_dynamic_ranges,
    ),
    Rule(
        name="vllm_dynamic_graphs",
        meaning="K by batch size, and a drafter that is only loaded, run the CUDA graphs of their baseline.",
        check=_dynamic_graphs,
    ),
)
"""On `drafter.options` and `drafter.acceptance`."""
