"""vLLM's `--speculative-config` out of a `Drafter`.

The JSON has vLLM's own keys; checked against vLLM 0.32. Settings of one method go through `drafter.options`
and are checked here by name, so that a slip of the keyboard is an error of the plan and not of an engine
start.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from engines.acceptance_translation import vllm_acceptance
from engines.errors import EngineConfigError
from engines.methods import known_method
from engines.spec import Drafter

FREE_CLASS = "specload_vllm.free.FreeDrafter"
"""Dotted path of the drafter without cost, in the wheel `specload-vllm` of the engine's environment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """How vLLM knows one drafter method."""

    meaning: str
    """What it is, for people."""
    spelling: str | None = None
    """vLLM's name of it; None where ours is the same."""
    fixed: Mapping[str, Any] = field(default_factory=dict)
    """Keys of the speculative configuration that make it this method."""
    options: frozenset[str] = frozenset()
    """Keys of `drafter.options` it takes, beside the ones of every method."""
    needs_model: bool = False
    """Whether `drafter.model` has to name a checkpoint (or a class)."""
    takes_model: bool = False
    """Whether `drafter.model` may name one."""
    v1_only: bool = False
    """Whether only the V1 model runner has it."""
    v2_only: bool = False
    """Whether only the V2 model runner has it."""
    sync_only: bool = False
    """Whether vLLM switches asynchronous scheduling off for it."""
    gpu_only: bool = False
    """Whether the CPU backend lacks it."""
    draft_tp: bool = False
    """Whether its drafter has a tensor-parallel size of its own."""
    parallel: bool = False
    """Whether it drafts all tokens in one pass, over a mask token of its checkpoint."""
    reads_layers: bool = False
    """Whether it reads the target's states between layers, and not only the last ones."""
    whole_drafts: bool = True
    """Whether each draft has K tokens, whatever the text."""


_MODEL = frozenset(
    {
        "attention_backend",
        "draft_sample_method",
        "enforce_eager",
        "kv_cache_dtype",
        "max_model_len",
        "moe_backend",
        "quantization",
        "revision",
        "use_local_argmax_reduction",
    }
)
_HEADS = frozenset({"enforce_eager", "quantization", "revision"})
_LOOKUP = frozenset({"prompt_lookup_min", "prompt_lookup_max"})
_BLOCK = _MODEL | {"disable_eagle_block_drop"}
_EAGLE = _BLOCK | {"disable_padded_drafter_batch"}
_PARALLEL: Mapping[str, Any] = {"parallel_drafting": True}

NEVER = [[1, 1, 0]]
"""Draft lengths by batch size of a drafter that is never asked: a range's K also holds above it."""

COMMON_OPTIONS = frozenset({"num_speculative_tokens_per_batch_size", "rejection_sample_method"})
"""Keys of `drafter.options` that every method takes."""

METHODS: Mapping[str, Method] = {
    "ngram": Method(
        meaning="looks the last tokens up in the request's own text",
        options=_LOOKUP,
        sync_only=True,
        whole_drafts=False,
    ),
    "ngram_gpu": Method(
        meaning="the same lookup on the GPU", options=_LOOKUP, gpu_only=True, whole_drafts=False
    ),
    "suffix": Method(
        meaning="looks the last tokens up in a tree of all requests' texts",
        options=frozenset(
            {
                "suffix_decoding_max_tree_depth",
                "suffix_decoding_max_cached_requests",
                "suffix_decoding_max_spec_factor",
                "suffix_decoding_min_token_prob",
            }
        ),
        v1_only=True,
        sync_only=True,
        whole_drafts=False,
    ),
    "draft_model": Method(
        meaning="a smaller model with the target's tokens",
        options=_MODEL | {"use_heterogeneous_vocab"},
        needs_model=True,
        takes_model=True,
        draft_tp=True,
    ),
    "pard": Method(
        meaning="a smaller model that was trained to draft all tokens in one pass",
        spelling="draft_model",
        fixed=_PARALLEL,
        options=_MODEL,
        needs_model=True,
        takes_model=True,
        v1_only=True,
        draft_tp=True,
        parallel=True,
    ),
    "eagle": Method(
        meaning="a layer that continues the target's last states",
        options=_EAGLE,
        needs_model=True,
        takes_model=True,
    ),
    "eagle3": Method(
        meaning="a layer that reads the target's states of three depths",
        options=_EAGLE,
        needs_model=True,
        takes_model=True,
        reads_layers=True,
    ),
    "peagle": Method(
        meaning="an EAGLE-3 head that drafts all tokens in one pass",
        spelling="eagle3",
        fixed=_PARALLEL,
        options=_BLOCK,
        needs_model=True,
        takes_model=True,
        v1_only=True,
        parallel=True,
        reads_layers=True,
    ),
    "mtp": Method(
        meaning="the target's own layers for further tokens, or an assistant's checkpoint of them",
        options=_EAGLE | {"index_share_for_mtp_iteration"},
        takes_model=True,
    ),
    "dflash": Method(
        meaning="a model that fills a block of tokens in one pass",
        options=_BLOCK,
        needs_model=True,
        takes_model=True,
        parallel=True,
        reads_layers=True,
    ),
    "dspark": Method(
        meaning="a block drafter with a chain over its positions; in the target's checkpoint or its own",
        options=_BLOCK | {"dspark_draft_topk", "enable_adaptive_verification"},
        takes_model=True,
        v2_only=True,
        gpu_only=True,
        draft_tp=True,
        reads_layers=True,
    ),
    "medusa": Method(
        meaning="a head for each further token, all reading one state",
        options=_HEADS,
        needs_model=True,
        takes_model=True,
        v1_only=True,
        sync_only=True,
    ),
    "mlp_speculator": Method(
        meaning="a chain of small heads on the target's last state",
        options=_HEADS,
        needs_model=True,
        takes_model=True,
        v1_only=True,
        sync_only=True,
    ),
    "custom_class": Method(
        meaning="a class of the user's own; drafter.model is its dotted path",
        needs_model=True,
        takes_model=True,
        v1_only=True,
        sync_only=True,
    ),
    "free": Method(
        meaning="proposals without cost, for forced acceptance",
        spelling="custom_class",
        fixed={"model": FREE_CLASS},
        v1_only=True,
        sync_only=True,
    ),
}
"""Drafter methods vLLM runs, by our name."""

_NO_METHOD = Method(meaning="none of vLLM's")


def method_of(drafter: Drafter) -> Method:
    """Return how vLLM knows a drafter's method; one without needs where it does not know it."""
    return METHODS.get(drafter.method, _NO_METHOD)


def speculative_config(drafter: Drafter) -> dict[str, Any] | None:
    """Return vLLM's speculative configuration, None for the drafter `none`.

    Raises:
        EngineConfigError: an unknown method, an unknown option, or a model where the method has none.
    """
    if drafter.is_none:
        return None
    method = known_method(METHODS, drafter, engine="vLLM", common=COMMON_OPTIONS)
    if drafter.draft_tp is not None and not method.draft_tp:
        message = (
            f"drafter.draft_tp is set, but vLLM splits the drafter {drafter.method!r} like its target, or "
            "not at all; remove it"
        )
        raise EngineConfigError(message)
    config: dict[str, Any] = {
        "method": method.spelling or drafter.method,
        "num_speculative_tokens": drafter.k,
        **method.fixed,
    }
    if drafter.model is not None:
        config["model"] = drafter.model
    if drafter.draft_tp is not None:
        config["draft_tensor_parallel_size"] = drafter.draft_tp
    if drafter.acceptance is not None:
        if "rejection_sample_method" in drafter.options:
            message = (
                "drafter.options.rejection_sample_method and drafter.acceptance both choose what is "
                "accepted; remove one"
            )
            raise EngineConfigError(message)
        config |= vllm_acceptance(drafter.acceptance, drafter.k).config
    if drafter.loaded_only:
        config["num_speculative_tokens_per_batch_size"] = NEVER
    return config | dict(drafter.options)


def speculation_words(drafter: Drafter) -> tuple[str, ...]:
    """Return the command-line words of the drafter; none for the baseline.

    Each answer ends with the request's own account of its drafts: it is held against the counters, and gives
    acceptance by context length. vLLM refuses to start with it and without a drafter.
    """
    config = speculative_config(drafter)
    if config is None:
        return ()
    return (
        *("--speculative-config", json.dumps(config, sort_keys=True)),
        *("--per-request-spec-decode-metrics", "summary"),
    )
