"""SGLang's speculative flags out of a `Drafter`, checked against 0.5.23.

Everything is a chain of K drafts: `num_steps` K, top-k 1, and a verify window (`num_draft_tokens`) of K + 1
that counts the last accepted token too. DFLASH names the window its block size, DSPARK its block size is K.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from engines.acceptance_translation import Forced, sglang_acceptance
from engines.errors import EngineConfigError
from engines.methods import known_method
from engines.schedule import ADAPTIVE
from engines.sglang_adaptive import adaptive_config
from engines.spec import Drafter


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """How SGLang knows one drafter method."""

    algorithm: str
    """Value of `--speculative-algorithm`."""
    needs_model: bool = False
    """Whether `drafter.model` has to name a checkpoint."""
    takes_model: bool = True
    """Whether `drafter.model` may name one."""
    one_step: bool = False
    """Whether one pass proposes all K, so that `num_steps` is 1."""
    forced: bool = True
    """Whether its acceptance can be forced."""
    options: frozenset[str] = frozenset()
    """Keys of `drafter.options` it takes, beside those of every method with a checkpoint."""


_CHECKPOINT = frozenset(
    {
        "accept_threshold_acc",
        "accept_threshold_single",
        "attention_mode",
        "draft_attention_backend",
        "draft_kv_cache_dtype",
        "draft_load_format",
        "draft_model_quantization",
        "draft_model_revision",
        "moe_a2a_backend",
        "moe_runner_backend",
    }
)
_WINDOW = frozenset({"draft_window_size", "draft_sink_size"})
_SAMPLING = frozenset({"use_rejection_sampling", "use_block_verification"})
_EAGLE = _CHECKPOINT | _WINDOW | _SAMPLING | {"token_map", ADAPTIVE}
_NGRAM = frozenset({"ngram_capacity", "ngram_match_type", "ngram_max_trie_depth"})
_SWITCHES = _SAMPLING

METHODS: Mapping[str, Method] = {
    "ngram": Method(algorithm="NGRAM", takes_model=False, forced=False, options=_NGRAM),
    "draft_model": Method(algorithm="STANDALONE", needs_model=True, options=_CHECKPOINT),
    "eagle": Method(algorithm="EAGLE", needs_model=True, options=_EAGLE),
    "eagle3": Method(algorithm="EAGLE3", needs_model=True, options=_EAGLE),
    "mtp": Method(algorithm="NEXTN", options=_EAGLE),
    "dflash": Method(algorithm="DFLASH", needs_model=True, one_step=True, options=_CHECKPOINT | _WINDOW),
    "dspark": Method(algorithm="DSPARK", one_step=True, forced=False, options=_CHECKPOINT | _SAMPLING),
}
"""Drafter methods SGLang runs."""


def speculative_flags(drafter: Drafter) -> dict[str, Any]:
    """Return SGLang's speculative flags by name; none for the drafter `none`.

    Raises:
        EngineConfigError: an unknown method or option, a model where the method has none, a draft TP, or
            acceptance that cannot be forced.
    """
    if drafter.is_none:
        return {}
    method = known_method(METHODS, drafter, engine="SGLang")
    if drafter.draft_tp is not None:
        message = "drafter.draft_tp is set, but SGLang splits a drafter like its target; remove it"
        raise EngineConfigError(message)
    forced_acceptance(drafter)
    flags: dict[str, Any] = {"algorithm": method.algorithm}
    if drafter.model is not None:
        flags["draft_model_path"] = drafter.model
    flags |= _lengths(drafter, method)
    adaptive_config(drafter)  # a file and its switch, which the command writes
    options = {name: value for name, value in drafter.options.items() if name != ADAPTIVE}
    return {f"speculative_{name}": value for name, value in {**flags, **options}.items()}


def _lengths(drafter: Drafter, method: Method) -> dict[str, Any]:
    if method.algorithm == "DFLASH":
        return {"dflash_block_size": drafter.k + 1}
    if method.algorithm == "DSPARK":
        return {"dspark_block_size": drafter.k}
    window = {"num_steps": drafter.k, "num_draft_tokens": drafter.k + 1}
    if method.algorithm == "NGRAM":
        # Its own default is a tree of up to ten branches: a breadth of one makes a chain of K of it.
        return {**window, "ngram_min_bfs_breadth": 1, "ngram_max_bfs_breadth": 1}
    return {**window, "eagle_topk": 1}


def speculation_words(drafter: Drafter) -> tuple[str, ...]:
    """Return the command-line words of the drafter; none for the baseline.

    Raises:
        EngineConfigError: as `speculative_flags`, or a switch that is no truth value.
    """
    words: list[str] = []
    for name, value in speculative_flags(drafter).items():
        option = "--" + name.replace("_", "-")
        if name.removeprefix("speculative_") not in _SWITCHES:
            words += [option, str(value)]
        elif not isinstance(value, bool):
            key = f"drafter.options.{name.removeprefix('speculative_')}"
            message = f"{key} is {value!r}; it is a switch: choose true or false"
            raise EngineConfigError(message)
        elif value:
            words.append(option)
    return tuple(words)


def forced_acceptance(drafter: Drafter) -> Forced | None:
    """Return the synthetic acceptance in SGLang's environment; None for real acceptance.

    Raises:
        EngineConfigError: it cannot be had at this K, or not of this drafter.
    """
    if drafter.acceptance is None:
        return None
    method = METHODS.get(drafter.method)
    if method is not None and not method.forced:
        message = (
            f"SGLang cannot force the acceptance of {drafter.method!r}: it draws a length for a full chain "
            "of K drafts; choose eagle, eagle3, mtp, draft_model or dflash, or remove drafter.acceptance"
        )
        raise EngineConfigError(message)
    return sglang_acceptance(drafter.acceptance, drafter.k)
