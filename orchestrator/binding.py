"""Binding: from a workload's files and the target's tokenizer to the tokens that every arm replays."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engines.spec import EngineConfig
from jobs.nouns import are, counted
from jobs.workload.bind import bind, digest_of
from jobs.workload.policies import Policies
from jobs.workload.source import FileSource
from jobs.workload.tokenizer import tokenizer_for
from jobs.workload.tokens import TokenWorkload
from orchestrator.errors import ConfigError
from orchestrator.plan import Plan, WorkloadRef

_CONVERSATIONS_PER_USER = 4
_EXAMPLES = 100
"""So many dropped conversations are named in a plan; the rest is counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """A frozen workload and how the plan refers to it."""

    workload: TokenWorkload
    ref: WorkloadRef


def bind_workload(settings: Mapping[str, Any], configs: Sequence[EngineConfig], *, seed: int) -> Bound:
    """Return the workload of `settings` (group `workload`) in tokens that fit every model of `configs`.

    Raises:
        ConfigError: the models do not share one tokenizer.
        WorkloadError: a file is missing or damaged, no conversation fits, or the policies contradict each
            other or the workload; the message says which.
    """
    policies = Policies.of(settings)
    first = configs[0]
    tokenizer = tokenizer_for(first.model, first.device)
    models = {(config.device, config.model.name, config.model.path): config for config in configs}
    for config in models.values():
        if tokenizer_for(config.model, config.device).digest != tokenizer.digest:
            message = (
                f"models {first.model.name} and {config.model.name} have different tokenizers, so they "
                "cannot replay the same tokens; run one sweep per model"
            )
            raise ConfigError(message)
    paths = tuple(str(Path(path).expanduser().absolute()) for path in settings["paths"])
    source = FileSource(name=settings["name"], format=settings["format"], paths=paths)
    workload = bind(
        source,
        tokenizer,
        max_context=min(config.model.max_context for config in configs),
        policies=policies,
        seed=seed,
    )
    ref = WorkloadRef(
        name=settings["name"],
        format=settings["format"],
        paths=paths,
        digest=digest_of(workload),
        conversations=len(workload.conversations),
        turns=sum(len(conversation.turns) for conversation in workload.conversations),
        validity=workload.validity,
        dropped=workload.dropped[:_EXAMPLES],
        dropped_count=len(workload.dropped),
        notes=workload.notes,
        options=policies.to_dict(),
    )
    return Bound(workload=workload, ref=ref)


def rebind(plan: Plan) -> TokenWorkload:
    """Return the workload of a saved plan, made again from its files.

    Raises:
        ConfigError: the files or the tokenizer changed since the plan was made.
        WorkloadError: a file is missing or damaged.
    """
    ref = plan.workload
    settings = {"name": ref.name, "format": ref.format, "paths": ref.paths, **ref.options}
    bound = bind_workload(settings, [arm.config for arm in plan.arms], seed=plan.seed)
    if bound.ref.digest != ref.digest:
        message = (
            f"workload {ref.name!r} is not the one this plan was made with (digest {bound.ref.digest[:10]} "
            f"now, {ref.digest[:10]} then): its files or the model's tokenizer changed. Put them back, or "
            "plan anew"
        )
        raise ConfigError(message)
    return bound.workload


def epoch_notes(ref: WorkloadRef, concurrencies: Sequence[int]) -> list[str]:
    """Return notes on the workload, on levels that need more conversations, and on what is left out."""
    notes = list(ref.notes)
    short = {
        concurrency: math.ceil(_CONVERSATIONS_PER_USER * concurrency / ref.conversations)
        for concurrency in concurrencies
        if _CONVERSATIONS_PER_USER * concurrency > ref.conversations
    }
    if short:
        levels = ", ".join(f"C={concurrency}: {epochs} times" for concurrency, epochs in short.items())
        notes.append(
            f"a level of C users needs 4 C conversations and the workload has {ref.conversations}: "
            f"{'it is' if ref.conversations == 1 else 'they are'} repeated under fresh cache salts ({levels})"
        )
    if ref.dropped:
        name, reason = ref.dropped[0]
        many = ref.dropped_count > 1
        notes.append(
            f"{counted(ref.dropped_count, 'conversation')} {are(ref.dropped_count)} left out"
            f"{', the first' if many else ''} because: {name}: {reason}"
        )
    return notes
