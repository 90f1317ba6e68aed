"""Rules with reasons: what is impossible, unfair or meaningless, known before anything is placed.

A rule looks at one `EngineConfig` and returns a reason, or None when it has nothing against it. The rules of
this module hold for every engine; an adapter has a table of its own beside it and checks both. A new rule is
one function and one line in a table, with an accepted and a refused example in the tests.
"""

import functools
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from packaging.specifiers import SpecifierSet
from packaging.version import InvalidVersion, Version

from engines.base import Refusal, Rule
from engines.spec import EngineConfig

LONGEST_DRAFT = 64
"""More than any published drafter proposes: above it a number is taken for a slip of the keyboard."""


def refusals_by(rules: Sequence[Rule], config: EngineConfig) -> tuple[Refusal, ...]:
    """Return what `rules` have against `config`, in the order of the table."""
    found = ((rule.name, rule.check(config)) for rule in rules if holds(rule, config.version))
    return tuple(Refusal(rule=name, reason=reason) for name, reason in found if reason)


def holds(rule: Rule, version: str) -> bool:
    """Whether a rule is one for this version of its engine; all are for a version that cannot be ordered."""
    try:
        return Version(version) in SpecifierSet(rule.versions, prereleases=True)
    except InvalidVersion:
        return True


def model_facts(path: str | None) -> Mapping[str, Any] | None:
    """Return the `config.json` of a model folder (its text part, for a multimodal model).

    None when `path` is no folder on this machine (a hub name, an emulated model) or the file is not readable
    JSON; whether a folder has to be there is a rule of its own.
    """
    if path is None:
        return None
    file = Path(path) / "config.json"
    try:
        seen = file.stat()
        facts = _read(str(file), seen.st_mtime_ns, seen.st_size)
    except (OSError, ValueError):
        return None
    if not isinstance(facts, Mapping):
        return None
    text = facts.get("text_config")
    return text if isinstance(text, Mapping) else facts


@functools.lru_cache(maxsize=256)
def _read(file: str, changed: int, size: int) -> Any:  # noqa: ARG001 - what tells one content from the next
    """Read a file once as long as it does not change: every rule asks for every arm of a grid."""
    return json.loads(Path(file).read_text(encoding="utf-8"))


def _heads(config: EngineConfig) -> str | None:
    tp = config.layout.tp
    facts = model_facts(config.model.path) or {}
    heads = facts.get("num_attention_heads")
    if isinstance(heads, int) and heads % tp:
        return f"{config.model.name} has {heads} attention heads, which tp={tp} does not divide"
    return None


def _kv_heads(config: EngineConfig) -> str | None:
    tp = config.layout.tp
    facts = model_facts(config.model.path) or {}
    heads = facts.get("num_key_value_heads")
    # Fewer KV heads than ranks are replicated, so either number has to divide the other.
    if isinstance(heads, int) and heads > 0 and heads % tp and tp % heads:
        return (
            f"{config.model.name} has {heads} key/value heads: tp={tp} neither divides them nor is a "
            "multiple of them; choose another layout.tp"
        )
    return None


def _layers(config: EngineConfig) -> str | None:
    pp = config.layout.pp
    facts = model_facts(config.model.path) or {}
    layers = facts.get("num_hidden_layers")
    if isinstance(layers, int) and pp > layers:
        return (
            f"{config.model.name} has {layers} layers, too few for pp={pp} stages; choose a smaller layout.pp"
        )
    return None


def _context(config: EngineConfig) -> str | None:
    facts = model_facts(config.model.path) or {}
    longest = facts.get("max_position_embeddings")
    if isinstance(longest, int) and config.model.max_context > longest:
        return (
            f"model.max_context is {config.model.max_context}, but {config.model.name} was made for "
            f"{longest} positions; set model.max_context to at most {longest}"
        )
    return None


def _draft_length(config: EngineConfig) -> str | None:
    k = config.drafter.k
    if k > LONGEST_DRAFT:
        return f"drafter.k={k} proposes more than {LONGEST_DRAFT} tokens a step; choose a smaller drafter.k"
    if k >= config.model.max_context:
        return (
            f"drafter.k={k} does not fit model.max_context={config.model.max_context}; choose a smaller one"
        )
    return None


def _baseline_settings(config: EngineConfig) -> str | None:
    drafter = config.drafter
    if not drafter.is_none:
        return None
    given = [
        name
        for name, value in (
            ("model", drafter.model),
            ("draft_tp", drafter.draft_tp),
            ("acceptance", drafter.acceptance),
            ("options", drafter.options),
        )
        if value
    ]
    if given:
        return f"the drafter 'none' drafts nothing, so drafter.{given[0]} means nothing there; remove it"
    return None


def _acceptance(config: EngineConfig) -> str | None:
    drafter = config.drafter
    return drafter.acceptance.refusal(drafter.k) if drafter.acceptance and not drafter.is_none else None


def _draft_tp(config: EngineConfig) -> str | None:
    draft_tp, tp = config.drafter.draft_tp, config.layout.tp
    if draft_tp is not None and draft_tp not in {1, tp}:
        return f"drafter.draft_tp={draft_tp} is neither 1 nor layout.tp={tp}; choose one of the two"
    return None


def _same_vocabulary(config: EngineConfig) -> str | None:
    drafter = config.drafter
    if drafter.method not in {"draft_model", "pard"} or drafter.options.get("use_heterogeneous_vocab"):
        return None
    target = (model_facts(config.model.path) or {}).get("vocab_size")
    draft = (model_facts(drafter.model) or {}).get("vocab_size")
    if isinstance(target, int) and isinstance(draft, int) and target != draft:
        return (
            f"the draft model {drafter.model} has a vocabulary of {draft} tokens and {config.model.name} "
            f"one of {target}: its proposals would mean other tokens; choose a draft model with the "
            "target's tokenizer"
        )
    return None


def _suffix_is_stateful(config: EngineConfig) -> str | None:
    if config.drafter.method == "suffix" and not config.drafter.stateful:
        return (
            "the suffix drafter remembers earlier requests, so a cell would profit from the one before it; "
            "set drafter.stateful=true (a fresh engine per cell)"
        )
    return None


COMMON_RULES: tuple[Rule, ...] = (
    Rule(
        name="heads_divisible_by_tp",
        meaning="Attention heads are divisible by the tensor-parallel size.",
        check=_heads,
    ),
    Rule(
        name="kv_heads_divisible_by_tp",
        meaning="Key/value heads are divisible by the tensor-parallel size, or it by them.",
        check=_kv_heads,
    ),
    Rule(
        name="layers_for_pp",
        meaning="Every pipeline stage has a layer.",
        check=_layers,
    ),
    Rule(
        name="context_of_model",
        meaning="The model was made for the context that is asked of it.",
        check=_context,
    ),
    Rule(
        name="draft_length",
        meaning="K fits the context, and is one that a drafter can mean.",
        check=_draft_length,
    ),
    Rule(
        name="acceptance_in_reach",
        meaning="A forced mean length lies in 1 to K + 1 tokens, and forced positions are at least K.",
        check=_acceptance,
    ),
    Rule(
        name="baseline_has_no_drafter_settings",
        meaning="The drafter none has no settings of a drafter.",
        check=_baseline_settings,
    ),
    Rule(
        name="draft_tp",
        meaning="A drafter is split like its target or not at all.",
        check=_draft_tp,
    ),
    Rule(
        name="same_vocabulary",
        meaning="A draft model speaks the tokens of its target.",
        check=_same_vocabulary,
    ),
    Rule(
        name="suffix_is_stateful",
        meaning="A drafter that remembers gets a fresh engine for every cell.",
        check=_suffix_is_stateful,
    ),
)
"""Rules of every engine."""
