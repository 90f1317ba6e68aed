"""Synthetic acceptance in each engine's own words, and what an engine cannot express.

An engine that draws less than is asked for says so: `Forced.rates` are those that it really draws with, which
is what the realised acceptance is held against, and `Forced.stated` is a caveat of every such cell.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from engines.acceptance import MINIMUM_VARIANCE, Acceptance, minimum_variance_rates
from engines.errors import EngineConfigError

_SGLANG_DRAW = "SGLang draws one accepted length a step for its whole batch"
_TRTLLM_WHOLE = "TensorRT-LLM releases that read whole numbers only switch a fraction of a draft off"
_MEAN_ONLY = (
    "accepts the whole number of drafts below or above the mean: only the mean length is as asked for, the "
    "positions are not"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Forced:
    """Synthetic acceptance as one engine is told it."""

    rates: tuple[float, ...]
    """Unconditional rates by position that the engine draws with: not always those that were asked for."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Environment variables of its server."""
    config: Mapping[str, Any] = field(default_factory=dict)
    """Keys of its speculative configuration."""
    stated: str | None = None
    """What of the request it does not express, one sentence; None where it expresses all."""
    one_draw_a_step: bool = False
    """Whether all requests of a step share one draw."""

    @property
    def mean_length(self) -> float:
        """Mean acceptance length that comes out when every draft has K tokens."""
        return 1.0 + math.fsum(self.rates)


def vllm_acceptance(acceptance: Acceptance, k: int) -> Forced:
    """Return vLLM's keys of `--speculative-config`: every form can be expressed.

    Its rates are unconditional, like ours. A length of its own is spread with minimum variance.

    Raises:
        EngineConfigError: it cannot be had at this K.
    """
    rates = _rates(acceptance, k)
    if acceptance.shape == MINIMUM_VARIANCE:
        own: dict[str, Any] = {"synthetic_acceptance_length": acceptance.length}
    else:
        own = {"synthetic_acceptance_rates": list(rates)}
    return Forced(rates=rates, config={"rejection_sample_method": "synthetic", **own})


def sglang_acceptance(acceptance: Acceptance, k: int) -> Forced:
    """Return SGLang's environment: a mean length for the whole batch, the verifier's own token included.

    The accepted tokens are the drafter's own, which needs a chain (top-k 1), and so K + 1 draft tokens.

    Raises:
        EngineConfigError: it cannot be had at this K.
    """
    asked, mean = _rates(acceptance, k), acceptance.mean_length(k)
    drawn = minimum_variance_rates(mean, k)
    told = () if drawn == asked else (f"it {_MEAN_ONLY}",)
    varies = any(0.0 < rate < 1.0 for rate in drawn)
    return Forced(
        rates=drawn,
        env={
            "SGLANG_SIMULATE_ACC_LEN": _decimal(mean),
            "SGLANG_SIMULATE_ACC_METHOD": "match-expected",
            "SGLANG_SIMULATE_ACC_TOKEN_MODE": "real-draft-token",
        },
        stated="; ".join((_SGLANG_DRAW, *told)) if varies or told else None,
        one_draw_a_step=True,
    )


def trtllm_acceptance(acceptance: Acceptance, k: int) -> Forced:
    """Return TensorRT-LLM's environment: accepted drafts a step, the verifier's own token left out.

    Raises:
        EngineConfigError: it cannot be had at this K, or nothing is to be accepted, which it cannot force.
    """
    asked, mean = _rates(acceptance, k), acceptance.mean_length(k)
    accepted = _decimal(mean - 1.0)
    if float(accepted) == 0.0:
        message = (
            "TensorRT-LLM cannot force that no draft is accepted (0 switches its forced acceptance off); "
            "choose a mean length above 1"
        )
        raise EngineConfigError(message)
    drawn = minimum_variance_rates(mean, k)
    told = [] if drawn == asked else [f"TensorRT-LLM {_MEAN_ONLY}"]
    if any(0.0 < rate < 1.0 for rate in drawn):
        told.append(_TRTLLM_WHOLE)
    return Forced(
        rates=drawn,
        env={"TLLM_SPEC_DECODE_FORCE_NUM_ACCEPTED_TOKENS": accepted},
        stated="; ".join(told) or None,
    )


def _rates(acceptance: Acceptance, k: int) -> tuple[float, ...]:
    reason = acceptance.refusal(k)
    if reason is not None:
        raise EngineConfigError(reason)
    return acceptance.rates(k)


def _decimal(value: float) -> str:
    """Return six decimals at most: no exponent, and a whole number without a point."""
    return f"{value:.6f}".rstrip("0").rstrip(".")
