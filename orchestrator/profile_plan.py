"""What a profile looks at: which arm of a plan, beside which baseline, with which prompts."""

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from engines.digest import digest
from engines.nearest import did_you_mean
from engines.registry import engine_named
from engines.spec import EngineConfig
from jobs.nouns import counted
from jobs.profile.runner import MARGIN_STEPS, can_trace
from jobs.workload.tokens import TokenWorkload
from orchestrator.errors import ConfigError
from orchestrator.names import folder_name
from orchestrator.plan import Arm, Plan

FOLDER = "profiles"
"""Folder of a sweep's folder, or of the results folder, that keeps profiles."""
SHORTEST = 16
"""Tokens of the shortest context that means anything."""
SHORTEST_DIGEST = 6
"""Digits of a digest that name an arm at least."""
_FAR = 4
"""An estimate's second context is so many times as long as the first, or its part."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileWish:
    """What the user asked for."""

    concurrency: int
    """Requests held in decode."""
    context: int | None
    """KV length of each in tokens; None for the workload's own mean."""
    steps: int
    """Steps of a window."""
    repeats: int
    """Windows of each kind."""
    estimate: bool
    """Whether to estimate from step times even where a profiler is there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfilePlan:
    """A profile, ready to run."""

    arms: tuple[EngineConfig, ...]
    """What is looked at, beside one baseline; the baseline itself where nothing else was asked for."""
    configs: tuple[EngineConfig, ...]
    """In the order of their turns: the baseline, the arms, and arms with another K that an estimate needs."""
    concurrency: int
    contexts: tuple[int, ...]
    """The one that was asked for, and for an estimate another one."""
    steps: int
    repeats: int
    """Windows of each kind; the fastest one counts."""
    traced: bool
    """Whether the engine's profiler tells the parts; else they are estimated from step times."""
    prompts: tuple[Sequence[int], ...]
    """Token ids for each request."""
    notes: tuple[str, ...]

    @property
    def name(self) -> str:
        """Name of the arms together, as a folder's: their labels and digits of their digests."""
        first = self.arms[0].label.replace("/", "-")
        if len(self.arms) == 1:
            return folder_name(f"{first}-{self.arms[0].digest[:10]}")
        together = digest(sorted(arm.digest for arm in self.arms))
        return folder_name(f"{first}-and-{len(self.arms) - 1}-more-{together[:10]}")

    def folder(self, plan: Plan, root: Path) -> Path:
        """Return where the profile is kept: in the sweep's folder, where there is one."""
        sweep = root / plan.sweep
        home = sweep if (sweep / "plan.json").is_file() else root
        level = f"c{self.concurrency}-n{self.contexts[0]}{'' if self.traced else '-estimate'}"
        return home / FOLDER / self.name / level


def plan_profile(plan: Plan, workload: TokenWorkload, words: Sequence[str], wish: ProfileWish) -> ProfilePlan:
    """Return the profile of arms of a plan.

    Args:
        plan: it has the arms.
        workload: whose text the prompts are made of.
        words: labels or digests of the arms; none for all arms of the plan.
        wish: how they are to be held.

    Raises:
        ConfigError: no such arm, one that cannot be profiled, several baselines, or numbers that do not fit.
    """
    arms = find_arms(plan, words)
    for arm in arms:
        _check(arm, wish)
    baselines = {arm.baseline().digest: arm.baseline() for arm in arms}
    if len(baselines) > 1:
        labels = ", ".join(arm.label for arm in arms)
        message = f"a profile has one baseline, and these arms have {len(baselines)}: {labels}; name some"
        raise ConfigError(message)
    (baseline,) = baselines.values()
    traced = can_trace(baseline) and not wish.estimate
    treatments = [arm for arm in arms if not arm.is_baseline]
    extras, notes = ([], []) if traced else _other_lengths(treatments)
    configs = (baseline, *treatments, *extras)
    growth = (wish.steps + MARGIN_STEPS) * (max(config.drafter.k for config in configs) + 1)
    contexts = _contexts(wish, workload, baseline.model.max_context - growth, estimate=not traced)
    return ProfilePlan(
        arms=tuple(arms),
        configs=configs,
        concurrency=wish.concurrency,
        contexts=contexts,
        steps=wish.steps,
        repeats=wish.repeats,
        traced=traced,
        prompts=_prompts(workload, wish.concurrency, max(contexts)),
        notes=tuple(notes),
    )


def find_arms(plan: Plan, words: Sequence[str]) -> list[EngineConfig]:
    """Return the arms that words name by label or first digits of the digest; all of them for no word.

    Raises:
        ConfigError: a word names none, or several; the message lists the plan's arms.
    """
    if not words:
        return [arm.config for arm in plan.arms if not arm.is_baseline] or [arm.config for arm in plan.arms]
    found = [_find(plan, word) for word in words]
    return list({arm.digest: arm.config for arm in found}.values())


def _find(plan: Plan, word: str) -> Arm:
    found = [arm for arm in plan.arms if word in (arm.label, arm.config.label)]
    if not found and len(word) >= SHORTEST_DIGEST:
        found = [arm for arm in plan.arms if arm.digest.startswith(word)]
    if len(found) == 1:
        return found[0]
    for entry in plan.refused:
        if word in (entry.arm.label, entry.arm.config.label):
            message = f"arm {entry.arm.label} may not run: {entry.reason}"
            raise ConfigError(message)
    arms = ", ".join(f"{arm.label} ({arm.digest[:10]})" for arm in plan.arms)
    guess = "" if found else did_you_mean(word, (arm.label for arm in plan.arms))
    message = f"{word!r} names {len(found) or 'none'} of the plan's arms{guess}: {arms}"
    raise ConfigError(message)


def differ_in_k_only(one: EngineConfig, other: EngineConfig) -> bool:
    """Whether two engines differ in their draft length and in nothing else."""
    if not one.drafter.k or not other.drafter.k or one.drafter.k == other.drafter.k:
        return False
    return replace(one, drafter=replace(one.drafter, k=other.drafter.k)).digest == other.digest


def other_length(arm: EngineConfig) -> EngineConfig | None:
    """Return the arm with another draft length that may run, if possible half as long; None if none."""
    k, engine = arm.drafter.k, engine_named(arm.engine)
    if not k or engine.capabilities.remote:  # nobody here can start another one
        return None
    wanted = [k // 2, *range(k // 2 - 1, 0, -1), *range(k // 2 + 1, k), *range(k + 1, 2 * k + 2)]
    for length in (entry for entry in wanted if entry >= 1 and entry != k):
        try:
            config = replace(arm, drafter=replace(arm.drafter, k=length))
        except ValueError:
            continue
        if not engine.refusals(config):
            return config
    return None


def _other_lengths(arms: Sequence[EngineConfig]) -> tuple[list[EngineConfig], list[str]]:
    """Return engines with another draft length for the arms that have none beside them, and notes."""
    extras: list[EngineConfig] = []
    notes: list[str] = []
    for arm in arms:
        if any(differ_in_k_only(arm, known) for known in (*arms, *extras)):
            continue
        other = other_length(arm)
        if other is None:
            notes.append(f"{arm.label}: no other draft length may run, so its drafts have no slope")
        else:
            extras.append(other)
    return extras, notes


def _check(arm: EngineConfig, wish: ProfileWish) -> None:
    if wish.concurrency < 1 or wish.steps < 8 or wish.repeats < 1:
        message = (
            f"--concurrency {wish.concurrency} --steps {wish.steps} --repeats {wish.repeats}: choose at "
            "least one request, 8 steps and one repeat"
        )
        raise ConfigError(message)
    if wish.concurrency % arm.layout.dp:
        message = (
            f"--concurrency {wish.concurrency} cannot be spread evenly over the {arm.layout.dp} data-"
            f"parallel ranks of {arm.label}; choose a multiple of {arm.layout.dp}"
        )
        raise ConfigError(message)
    if arm.layout.pp > 1:
        message = (
            f"arm {arm.label} is a pipeline: its stages work at the same time, so their times do not add up "
            "to a step; profile a layout with pp=1"
        )
        raise ConfigError(message)
    if arm.kv_match is not None:
        message = (
            f"arm {arm.label} is a baseline with the KV cache of another arm, and its steps are the plain "
            "baseline's; profile that one"
        )
        raise ConfigError(message)


def _contexts(wish: ProfileWish, workload: TokenWorkload, longest: int, *, estimate: bool) -> tuple[int, ...]:
    """Return the contexts at which steps are timed: the one that was asked for first."""
    if longest < SHORTEST:
        message = f"--steps {wish.steps} take the whole context of the model; choose fewer"
        raise ConfigError(message)
    context = min(longest, max(SHORTEST, mean_context(workload))) if wish.context is None else wish.context
    if not SHORTEST <= context <= longest:
        message = (
            f"--context {context}: with {counted(wish.steps, 'step')} the model's context leaves {SHORTEST} "
            f"to {longest} tokens; choose one of those, or fewer --steps"
        )
        raise ConfigError(message)
    if not estimate:
        return (context,)
    long, short = min(longest, context * _FAR), max(SHORTEST, context // _FAR)
    other = long if long - context >= context - short else short
    if other == context:
        message = f"--context {context} leaves no room for a second context, which an estimate needs"
        raise ConfigError(message)
    return (context, other)


def mean_context(workload: TokenWorkload) -> int:
    """Return the KV length that a decode step of this workload meets, on average over its output tokens."""
    tokens, weighted = 0, 0.0
    for conversation in workload.conversations:
        for turn in conversation.turns:
            tokens += turn.output_tokens
            weighted += turn.output_tokens * (turn.prompt_tokens + turn.output_tokens / 2)
    return round(weighted / tokens) if tokens else SHORTEST


def _prompts(workload: TokenWorkload, count: int, length: int) -> tuple[Sequence[int], ...]:
    """Return prompts of the workload's own text, each from another place in it."""
    text = _text(workload, count * length)
    stride = max(1, len(text) // count)
    return tuple(_from(text, number * stride % len(text), length) for number in range(count))


def _from(text: "array[int]", start: int, length: int) -> "array[int]":
    """Return so many tokens of a text from `start` on, and from its beginning again where it ends."""
    found = text[start : start + length]
    while len(found) < length:
        found += text[: length - len(found)]
    return found


def _text(workload: TokenWorkload, wanted: int) -> "array[int]":
    """Return up to so many tokens of the workload: the longest prompt of each conversation in turn."""
    found = array("I")
    for conversation in workload.conversations:
        *_, last = workload.prompts(conversation)
        found.extend(last[: wanted - len(found)])
        if len(found) >= wanted:
            break
    return found
