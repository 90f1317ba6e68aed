"""Counterfactual arms: engines nobody would serve with, which split a drafter's effect into its causes.

`drafter.kv=matched` adds a second baseline to an arm: without its drafter, with the KV cache that the drafter
leaves. Its ratio to the natural baseline is what the drafter's memory costs; the arm's ratio to it is what
the drafter does. How large that cache is, only the arm's own engine can tell: the block asks it (see
`jobs/block.py`), so that the number is of the devices the pair runs on. The natural baseline stays the
denominator of every verdict.

`drafter.loaded_only=true` is the arm with a draft length of 0: what loading the drafter costs.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from engines.base import Capabilities, Refusal
from engines.spec import EngineConfig
from orchestrator.errors import ConfigError
from orchestrator.plan import Arm, Refused
from orchestrator.sweep import Point

NATURAL = "natural"
MATCHED = "matched"
KV_KEY = "drafter.kv"


def with_counterfactuals(
    entries: Iterable[tuple[Point, EngineConfig]],
) -> Iterator[tuple[Point, EngineConfig]]:
    """Yield the entries, each that asks for it followed by its baseline with matched KV.

    Raises:
        ConfigError: `drafter.kv` is neither of its two values.
    """
    for point, config in entries:
        yield point, config
        kv = point.at(KV_KEY)
        if kv not in (NATURAL, MATCHED):
            message = f"drafter.kv is {kv!r}; choose {NATURAL} or {MATCHED}"
            raise ConfigError(message)
        if kv == MATCHED and not config.drafter.is_none:
            yield point, config.matched_baseline()


def kv_factor(factors: Mapping[str, str], config: EngineConfig) -> dict[str, str]:
    """Return the factors with the value that `drafter.kv` has for this arm, where it was swept.

    An arm is the same whether or not its baseline is matched as well.
    """
    if KV_KEY not in factors:
        return dict(factors)
    return {**factors, KV_KEY: NATURAL if config.kv_match is None else MATCHED}


def counterfactual_refusals(config: EngineConfig, capabilities: Capabilities) -> tuple[Refusal, ...]:
    """Return why the engine cannot be such a counterfactual; empty for every other configuration."""
    if config.kv_match is not None and not capabilities.kv_clamp:
        reason = (
            f"engine {config.engine} cannot be told how large its KV cache is to be, so no baseline can have "
            "what a drafter leaves; set drafter.kv=natural"
        )
        return (Refusal(rule="kv_matched", reason=reason),)
    if config.drafter.loaded_only and not capabilities.loaded_only:
        reason = (
            f"engine {config.engine} cannot hold a drafter loaded without asking it; set "
            "drafter.loaded_only=false"
        )
        return (Refusal(rule="loaded_only", reason=reason),)
    return ()


def orphans(arms: Iterable[Arm], refused: Sequence[Refused]) -> list[Refused]:
    """Return the baselines whose KV cache nobody can tell, because the arm they match is refused."""
    reasons = {entry.arm.digest: entry.reason for entry in refused}
    return [
        Refused(
            arm=arm,
            rule="kv_matched",
            reason=f"the arm whose KV cache it is to have is refused: {reasons[arm.config.kv_match.arm]}",
        )
        for arm in arms
        if arm.config.kv_match is not None
        and arm.config.kv_match.arm in reasons
        and arm.digest not in reasons
    ]
