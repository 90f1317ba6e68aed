"""Drafters the emulator knows: what one costs, what it holds in memory, and how often it is right.

Costs follow from shapes. The default acceptance of a drafter is an assumption of ours (one constant
conditional probability at every position, in the range that papers and issue threads report for chat and code
at temperature 0); it is overridden by `drafter.options.alpha`, and by the synthetic
`drafter.acceptance` before that.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from engines.acceptance import Acceptance
from engines.emulator.models import ARCHITECTURES, BYTES, Architecture
from engines.errors import EngineConfigError
from engines.nearest import did_you_mean
from engines.schedule import DYNAMIC, listed_problem
from engines.spec import Drafter

DEFAULT_ALPHA: Mapping[str, float] = {
    "free": 0.70,
    "ngram": 0.40,
    "suffix": 0.50,
    "eagle": 0.60,
    "eagle3": 0.65,
    "mtp": 0.70,
    "draft_model": 0.70,
}
"""Method -> default probability that a draft token is accepted when all before it were."""

OPTIONS: Mapping[str, frozenset[str]] = {
    "ngram": frozenset({"prompt_lookup_min", "prompt_lookup_max"}),
    "suffix": frozenset({"suffix_decoding_max_tree_depth", "suffix_decoding_max_cached_requests"}),
}
"""Options of a real engine's method that change nothing here: accepted, and named in the log as without
effect."""

EAGLE3_VOCABULARY = 32_000
"""Entries of an EAGLE-3 head's reduced output vocabulary (public heads for Llama 3.1)."""
DEFAULT_DRAFT_MODEL = "llama-3.2-1b"


@dataclass(frozen=True, slots=True, kw_only=True)
class DrafterCost:
    """What a drafter costs on the devices of one engine."""

    passes: int
    """Sequential forward passes a step (K for an autoregressive drafter, 0 without a network)."""
    matrix_parameters: int
    """Parameters that one pass reads and multiplies."""
    extra_parameters: int
    """Parameters in memory that a pass does not read (an embedding of its own); negative for ones that it
    reads but shares with the target."""
    kv_bytes: int
    """Bytes of its own KV cache per token, before sharding."""
    layers: int
    """Layers of one pass (each has two all-reduces under tensor parallelism)."""
    hidden: int
    tp: int
    """Devices that one pass is sharded over."""
    host_seconds: float = 0.0
    """CPU seconds a step of a drafter that looks tokens up."""
    host_seconds_per_request: float = 0.0

    @property
    def weight_bytes(self) -> int:
        """Memory of the weights, before sharding."""
        return (self.matrix_parameters + self.extra_parameters) * BYTES


def rates_of(drafter: Drafter) -> tuple[float, ...]:
    """Return the K unconditional acceptance rates that a checked `drafter` runs with; empty for none."""
    if drafter.is_none:
        return ()
    alpha = float(drafter.options.get("alpha", DEFAULT_ALPHA[drafter.method]))
    return (drafter.acceptance or Acceptance(alpha=alpha)).rates(drafter.k)


def check_drafter(drafter: Drafter) -> None:
    """Refuse a method, option or draft model that the emulator does not know.

    Raises:
        EngineConfigError: with the known names.
    """
    if drafter.is_none:
        return
    if drafter.method not in DEFAULT_ALPHA:
        known_methods = ", ".join(sorted(DEFAULT_ALPHA))
        guess = did_you_mean(drafter.method, DEFAULT_ALPHA)
        message = f"drafter.method is {drafter.method!r}{guess}; the emulator knows none, {known_methods}"
        raise EngineConfigError(message)
    known = {"alpha", DYNAMIC, *OPTIONS.get(drafter.method, frozenset())}
    for key in drafter.options:
        if key not in known:
            message = (
                f"drafter.options.{key} is unknown to the emulator's {drafter.method}"
                f"{did_you_mean(key, known)}; known: {', '.join(sorted(known))}"
            )
            raise EngineConfigError(message)
    alpha = drafter.options.get("alpha", 0.5)
    if isinstance(alpha, bool) or not isinstance(alpha, int | float) or not 0 <= alpha <= 1:
        message = f"drafter.options.alpha is {alpha!r}; it is a probability: choose 0 to 1"
        raise EngineConfigError(message)
    if DYNAMIC in drafter.options and (problem := listed_problem(drafter.options[DYNAMIC], drafter.k)):
        raise EngineConfigError(problem)
    if drafter.acceptance is not None and (reason := drafter.acceptance.refusal(drafter.k)):
        raise EngineConfigError(reason)
    if drafter.method == "draft_model" and (drafter.model or DEFAULT_DRAFT_MODEL) not in ARCHITECTURES:
        known_models = ", ".join(sorted(ARCHITECTURES))
        message = f"drafter.model is {drafter.model!r}; the emulator's draft models: {known_models}"
        raise EngineConfigError(message)


def ignored_options(drafter: Drafter) -> tuple[str, ...]:
    """Return the options that are accepted but change nothing."""
    return tuple(sorted(OPTIONS.get(drafter.method, frozenset()) & set(drafter.options)))


def drafter_cost(drafter: Drafter, target: Architecture, tp: int) -> DrafterCost | None:
    """Return the cost of a checked `drafter` for `target` under tensor parallelism `tp`; None for none."""
    if drafter.is_none:
        return None
    draft_tp = drafter.draft_tp or tp
    one_layer_kv = 2 * target.kv_heads * target.head_dim * BYTES
    if drafter.method == "draft_model":
        model = ARCHITECTURES[drafter.model or DEFAULT_DRAFT_MODEL]
        return DrafterCost(
            passes=drafter.k,
            matrix_parameters=model.matrix_parameters,
            extra_parameters=model.parameters - model.matrix_parameters,
            kv_bytes=model.kv_bytes(1),
            layers=model.layers,
            hidden=model.hidden,
            tp=draft_tp,
        )
    if drafter.method in {"eagle", "eagle3", "mtp"}:
        return DrafterCost(
            passes=drafter.k,
            matrix_parameters=_head_parameters(drafter.method, target),
            # Only EAGLE-3 brings an output projection of its own; the others read the target's, already in
            # memory.
            extra_parameters=0 if drafter.method == "eagle3" else -target.embedding_parameters,
            kv_bytes=one_layer_kv,
            layers=1,
            hidden=target.hidden,
            tp=draft_tp,
        )
    host = {"free": (0.0, 0.0), "ngram": (0.1e-3, 10e-6), "suffix": (0.1e-3, 30e-6)}[drafter.method]
    return DrafterCost(
        passes=0,
        matrix_parameters=0,
        extra_parameters=0,
        kv_bytes=0,
        layers=0,
        hidden=0,
        tp=tp,
        host_seconds=host[0],
        host_seconds_per_request=host[1],
    )


def _head_parameters(method: str, target: Architecture) -> int:
    # EAGLE and MTP: one layer, a 2h -> h fusion, the target's output projection. EAGLE-3: its layer's
    # attention takes twice the width, the fusion is 3h -> h, and the output vocabulary is reduced.
    if method == "eagle3":
        wide = target.hidden * target.head_dim * (target.heads + 2 * target.kv_heads)
        fusion = 3 * target.hidden * target.hidden
        return target.layer_parameters + wide + fusion + EAGLE3_VOCABULARY * target.hidden
    return target.layer_parameters + 2 * target.hidden * target.hidden + target.embedding_parameters
