"""vLLM's rules on engines nobody would serve with: a drafter that is only loaded, a baseline with matched KV.

Read in vLLM 0.32 and tried on its CPU build. A drafter is kept from drafting by a draft length of 0 at every
batch size: vLLM then still feeds a draft model what the target computed (its first pass, so that its own KV
stays in step), and asks for no token.
"""

from engines.base import Rule
from engines.spec import EngineConfig

_DYNAMIC = "num_speculative_tokens_per_batch_size"
_FIXED_LENGTH = {
    "free": "asks a class of its own for all K tokens whatever the batch size says",
    "custom_class": "asks its class for all K tokens whatever the batch size says",
    "suffix": "asserts that K never changes",
    "medusa": "asserts that K never changes",
    "mlp_speculator": "has no draft length by batch size",
    "dspark": "sets its draft length by itself",
    "ngram_gpu": "drafts on the GPU before it looks at the draft length",
}
"""Method -> why vLLM cannot keep it from drafting."""


def _method(config: EngineConfig) -> str | None:
    drafter = config.drafter
    if not drafter.loaded_only or drafter.method not in _FIXED_LENGTH:
        return None
    return (
        f"vLLM cannot hold the drafter {drafter.method!r} loaded without asking it: it "
        f"{_FIXED_LENGTH[drafter.method]}; set drafter.loaded_only=false"
    )


def _ranks(config: EngineConfig) -> str | None:
    if not config.drafter.loaded_only or config.layout.dp == 1:
        return None
    return (
        "vLLM drops draft lengths by batch size with data parallelism, so drafter.loaded_only would draft "
        f"after all at layout.dp={config.layout.dp}; choose a layout with dp=1"
    )


def _contradiction(config: EngineConfig) -> str | None:
    drafter = config.drafter
    if not drafter.loaded_only:
        return None
    if _DYNAMIC in drafter.options:
        return f"drafter.loaded_only is K=0 at every batch size, which drafter.options.{_DYNAMIC} contradicts"
    if drafter.acceptance is not None:
        return "a drafter that is only loaded proposes nothing to accept; remove drafter.acceptance"
    return None


def _already_clamped(config: EngineConfig) -> str | None:
    if config.kv_match is None or "num_gpu_blocks_override" not in config.flags:
        return None
    return (
        "engine.flags.num_gpu_blocks_override gives every arm the same KV blocks already; "
        "set drafter.kv=natural, or remove the flag"
    )


COUNTERFACTUAL_RULES: tuple[Rule, ...] = (
    Rule(
        name="vllm_loaded_method",
        meaning="A drafter that is only loaded has a method whose draft length can be 0.",
        check=_method,
    ),
    Rule(
        name="vllm_loaded_ranks",
        meaning="A drafter that is only loaded has one rank: with more, vLLM would draft after all.",
        check=_ranks,
    ),
    Rule(
        name="vllm_loaded_contradiction",
        meaning="A drafter that is only loaded has no draft lengths to choose and no acceptance to force.",
        check=_contradiction,
    ),
    Rule(
        name="vllm_kv_already_clamped",
        meaning="KV caches that a flag makes equal already are not matched again.",
        check=_already_clamped,
    ),
)
"""Rules on counterfactual engines; part of vLLM's own table."""
