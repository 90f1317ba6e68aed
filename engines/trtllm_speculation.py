"""TensorRT-LLM's `speculative_config` out of a `Drafter`, after its documentation of 1.x.

K is `max_draft_len` of every decoding type.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from engines.acceptance_translation import Forced, trtllm_acceptance
from engines.errors import EngineConfigError
from engines.methods import known_method
from engines.spec import Drafter


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """How TensorRT-LLM knows one drafter method."""

    decoding_type: str
    needs_model: bool = False
    """Whether `drafter.model` has to name a checkpoint."""
    takes_model: bool = True
    """Whether `drafter.model` may name one."""
    synchronous: bool = False
    """Whether the overlap scheduler is off beside it."""
    options: frozenset[str] = frozenset()
    """Keys of `drafter.options` it takes, beside `COMMON_OPTIONS`."""
    defaults: Mapping[str, Any] = field(default_factory=dict)
    """Settings it gets unless `drafter.options` says otherwise."""


COMMON_OPTIONS = frozenset(
    {"acceptance_length_threshold", "acceptance_window", "draft_len_schedule", "max_concurrency"}
)
"""Keys of `drafter.options` that every method takes: when to draft less, or nothing."""

METHODS: Mapping[str, Method] = {
    "ngram": Method(
        decoding_type="NGram",
        takes_model=False,
        synchronous=True,
        options=frozenset({"is_keep_all", "is_public_pool", "is_use_oldest", "max_matching_ngram_size"}),
        # A pool that all requests share would carry one cell's text into the next.
        defaults={"is_public_pool": False},
    ),
    "suffix": Method(decoding_type="SA", takes_model=False),
    "draft_model": Method(decoding_type="DraftTarget", needs_model=True, synchronous=True),
    "pard": Method(decoding_type="PARD", needs_model=True),
    "eagle3": Method(
        decoding_type="Eagle3",
        needs_model=True,
        options=frozenset({"eagle3_layers_to_capture", "eagle3_one_model"}),
    ),
    "mtp": Method(
        decoding_type="MTP",
        takes_model=False,
        options=frozenset({"relaxed_delta", "relaxed_topk", "use_relaxed_acceptance_for_thinking"}),
    ),
    "dflash": Method(decoding_type="DFlash", needs_model=True),
    "dspark": Method(decoding_type="DSpark"),
}
"""Drafter methods TensorRT-LLM runs."""


def speculative_config(drafter: Drafter) -> dict[str, Any] | None:
    """Return TensorRT-LLM's speculative configuration; None for the drafter `none`.

    Raises:
        EngineConfigError: an unknown method or option, a model where the method has none, a draft TP, or
            acceptance that cannot be forced.
    """
    if drafter.is_none:
        return None
    method = known_method(METHODS, drafter, engine="TensorRT-LLM", common=COMMON_OPTIONS)
    if drafter.draft_tp is not None:
        message = "drafter.draft_tp is set, but TensorRT-LLM splits a drafter like its target; remove it"
        raise EngineConfigError(message)
    forced_acceptance(drafter)
    config: dict[str, Any] = {"decoding_type": method.decoding_type, "max_draft_len": drafter.k}
    if drafter.model is not None:
        config["speculative_model"] = drafter.model
    return {**config, **method.defaults, **drafter.options}


def forced_acceptance(drafter: Drafter) -> Forced | None:
    """Return the synthetic acceptance in TensorRT-LLM's environment; None for real acceptance.

    Raises:
        EngineConfigError: it cannot be had at this K.
    """
    return None if drafter.acceptance is None else trtllm_acceptance(drafter.acceptance, drafter.k)
