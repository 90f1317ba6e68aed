"""vLLM's `--speculative-config` out of a `Drafter`.

The JSON has vLLM's own keys; checked against vLLM 0.32. Settings of one method go through `drafter.options`
and are checked here by name, so that a slip of the keyboard is an error of the plan and not of an engine
start.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from engines.errors import EngineConfigError
from engines.spec import Drafter

FREE_CLASS = "specload_vllm.free.FreeDrafter"
"""Dotted path of the drafter without cost, in the wheel `specload-vllm` of the engine's environment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """How vLLM knows one drafter method."""

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


_CHECKPOINT = frozenset(
    {
        "attention_backend",
        "disable_padded_drafter_batch",
        "draft_sample_method",
        "enforce_eager",
        "kv_cache_dtype",
        "max_model_len",
        "moe_backend",
        "parallel_drafting",
        "quantization",
        "revision",
        "use_local_argmax_reduction",
    }
)
_LOOKUP = frozenset({"prompt_lookup_min", "prompt_lookup_max"})
_EAGLE = _CHECKPOINT | {"disable_eagle_block_drop"}

NEVER = [[1, 1, 0]]
"""Draft lengths by batch size of a drafter that is loaded and never asked: a range's K also holds above it."""

COMMON_OPTIONS = frozenset({"num_speculative_tokens_per_batch_size"})
"""Keys of `drafter.options` that every method takes."""

METHODS: Mapping[str, Method] = {
    "ngram": Method(options=_LOOKUP, sync_only=True),
    "ngram_gpu": Method(options=_LOOKUP, gpu_only=True),
    "free": Method(v1_only=True, sync_only=True),
    "custom_class": Method(needs_model=True, takes_model=True, v1_only=True, sync_only=True),
    "suffix": Method(
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
    ),
    "draft_model": Method(
        options=_CHECKPOINT | {"use_heterogeneous_vocab"}, needs_model=True, takes_model=True, draft_tp=True
    ),
    "eagle": Method(options=_EAGLE, needs_model=True, takes_model=True, draft_tp=True),
    "eagle3": Method(options=_EAGLE, needs_model=True, takes_model=True, draft_tp=True),
    "mtp": Method(options=_EAGLE, takes_model=True, draft_tp=True),
    "dflash": Method(options=_EAGLE, needs_model=True, takes_model=True, draft_tp=True),
    "dspark": Method(
        options=_EAGLE | {"dspark_draft_topk", "enable_adaptive_verification"},
        takes_model=True,
        v2_only=True,
        gpu_only=True,
        draft_tp=True,
    ),
    "medusa": Method(options=_CHECKPOINT, needs_model=True, takes_model=True, v1_only=True, sync_only=True),
    "mlp_speculator": Method(
        options=_CHECKPOINT, needs_model=True, takes_model=True, v1_only=True, sync_only=True
    ),
}
"""Drafter methods vLLM runs; the name is ours, which is vLLM's but for `free`."""


def speculative_config(drafter: Drafter) -> dict[str, Any] | None:
    """Return vLLM's speculative configuration, None for the drafter `none`.

    Raises:
        EngineConfigError: an unknown method, an unknown option, or a model where the method has none.
    """
    if drafter.is_none:
        return None
    method = METHODS.get(drafter.method)
    if method is None:
        message = f"drafter.method is {drafter.method!r}; vLLM runs {', '.join(sorted(METHODS))} and none"
        raise EngineConfigError(message)
    known = method.options | COMMON_OPTIONS
    for key in sorted(drafter.options):
        if key not in known:
            message = (
                f"drafter.options.{key} is no setting of {drafter.method!r} in vLLM; it takes "
                f"{', '.join(sorted(known))}"
            )
            raise EngineConfigError(message)
    if drafter.model is not None and not method.takes_model:
        message = f"drafter.model is set, but the drafter {drafter.method!r} has no model; remove it"
        raise EngineConfigError(message)
    if drafter.draft_tp is not None and not method.draft_tp:
        message = (
            f"drafter.draft_tp is set, but the drafter {drafter.method!r} has no model to split; remove it"
        )
        raise EngineConfigError(message)
    config: dict[str, Any] = {"method": drafter.method, "num_speculative_tokens": drafter.k}
    if drafter.method == "free":
        config |= {"method": "custom_class", "model": FREE_CLASS}
    if drafter.model is not None:
        config["model"] = drafter.model
    if drafter.draft_tp is not None:
        config["draft_tensor_parallel_size"] = drafter.draft_tp
    if drafter.acceptance is not None:
        # Unconditional rates by position: their sum plus one is the mean acceptance length, with geometric
        # variance. vLLM's own synthetic length has the same mean with next to none.
        config["rejection_sample_method"] = "synthetic"
        config["synthetic_acceptance_rates"] = list(drafter.acceptance.rates(drafter.k))
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
