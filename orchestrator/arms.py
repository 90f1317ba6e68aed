"""From points to arms: canonical drafters, duplicates merged, baselines added, rules applied."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from engines.base import Refusal
from engines.spec import NO_DRAFTER, Drafter, EngineConfig, Layout, Model
from jobs.load import LoadLevel
from jobs.nouns import counted
from orchestrator.acceptance import acceptance_of
from orchestrator.counterfactuals import kv_factor, orphans, with_counterfactuals
from orchestrator.errors import ConfigError
from orchestrator.levels import LEVEL_KEYS, ascending, levels_of
from orchestrator.plan import Arm, Refused
from orchestrator.sharing import ALL, Group, group_of
from orchestrator.strategy import cache_strategy, decode_settings
from orchestrator.sweep import Point


@dataclass(frozen=True, slots=True, kw_only=True)
class Arms:
    """What the points come to."""

    allowed: tuple[Arm, ...]
    """Each pair's baseline before its treatments, otherwise in the order of the points."""
    refused: tuple[Refused, ...]
    notes: tuple[str, ...]


def drafter_of(config: Mapping[str, Any]) -> Drafter:
    """Return the canonical drafter of a point: `none` has no K, no model and no options."""
    drafter = config["drafter"]
    if drafter["method"] == NO_DRAFTER:
        return Drafter()
    return Drafter(
        method=drafter["method"],
        k=drafter["k"],
        model=drafter["model"],
        draft_tp=drafter["draft_tp"],
        acceptance=acceptance_of(drafter["acceptance"], k=drafter["k"], results=config["results"]),
        stateful=drafter["stateful"],
        loaded_only=drafter["loaded_only"],
        options=drafter["options"],
    )


def engine_config(
    config: Mapping[str, Any], *, python: str | None, version: str, model: Model
) -> EngineConfig:
    """Return the engine configuration of a point, its engine's interpreter, version and model resolved.

    Raises:
        ValueError: a value out of its range; the message names the key.
    """
    engine = config["engine"]
    return EngineConfig(
        engine=engine["name"],
        version=version,
        model=model,
        drafter=drafter_of(config),
        layout=Layout(**config["layout"]),
        cache=cache_strategy(config),
        decode=decode_settings(config),
        python=python,
        device=engine["device"],
        flags=engine["flags"],
        env=engine["env"],
        seed=config["seed"],
    )


def swept_keys(points: Sequence[Point]) -> tuple[str, ...]:
    """Return the keys that vary over the points, load levels left out: the factors of the analysis."""
    keys = dict.fromkeys(key for point in points for key in point.choices)
    return tuple(
        key for key in keys if key not in LEVEL_KEYS and len({point.choices.get(key) for point in points}) > 1
    )


def build_arms(
    entries: Iterable[tuple[Point, EngineConfig]],
    *,
    factors: Sequence[str],
    refusals: Callable[[EngineConfig], Sequence[Refusal]],
    devices: int | None,
    share: str = ALL,
) -> Arms:
    """Merge equal configurations and their levels, add each pair's baseline, and refuse what is not allowed.

    Args:
        entries: points with their engine configuration.
        factors: the swept keys.
        refusals: the engine's rules.
        devices: devices the machine offers, where that is known before the cluster is asked.
        share: which arms share a block, and so its slice (see `sharing.py`).

    Raises:
        ConfigError: every arm is refused; the message lists the reasons.
    """
    arms, notes = _merged(entries, factors)
    refused = [found for arm in arms.values() if (found := _refusal(arm, refusals, devices))]
    refused += orphans(arms.values(), refused)
    forbidden = {entry.arm.digest for entry in refused}
    treatments = [arm for arm in arms.values() if not arm.is_baseline and arm.digest not in forbidden]
    baselines = {
        arm.pair_key: arm for arm in arms.values() if arm.is_baseline and arm.digest not in forbidden
    }
    pairs: dict[str, list[Arm]] = {key: [] for key in baselines}
    for arm in treatments:
        key = arm.pair_key
        baselines[key] = _baseline(arm, baselines.get(key), factors)
        pairs.setdefault(key, []).append(arm)
    for key, baseline in list(baselines.items()):
        if found := _refusal(baseline, refusals, devices):
            del baselines[key]
            refused += [_without_baseline(arm, found) for arm in pairs.pop(key)]
    left = [arm for key, baseline in baselines.items() for arm in (baseline, *pairs[key])]
    uneven = _uneven_arms(left, share)
    refused += uneven
    gone = {entry.arm.digest for entry in uneven}
    allowed = [arm for arm in left if arm.digest not in gone]
    if not allowed:
        raise ConfigError(_all_refused(refused))
    return Arms(allowed=tuple(allowed), refused=tuple(refused), notes=tuple(notes))


def _merged(
    entries: Iterable[tuple[Point, EngineConfig]], factors: Sequence[str]
) -> tuple[dict[str, Arm], list[str]]:
    arms: dict[str, Arm] = {}
    duplicates: dict[str, int] = {}
    for point, config in with_counterfactuals(entries):
        arm = Arm(config=config, levels=levels_of(point.at("load")), factors=_factors(point, config, factors))
        known = arms.get(arm.digest)
        if known is None:
            arms[arm.digest] = arm
            continue
        if set(arm.levels) <= set(known.levels):
            duplicates[arm.digest] = duplicates.get(arm.digest, 0) + 1
        arms[arm.digest] = replace(known, levels=_union(known.levels, arm.levels))
    notes = [
        f"{count + 1} points are the same arm {arms[digest].label}: it runs once per block"
        for digest, count in duplicates.items()
    ]
    return arms, notes


def _union(first: Sequence[LoadLevel], second: Sequence[LoadLevel]) -> tuple[LoadLevel, ...]:
    return ascending({*first, *second})


def _factors(point: Point, config: EngineConfig, keys: Sequence[str]) -> dict[str, str]:
    factors = {key: point.choices.get(key, "") for key in keys}
    return kv_factor(_baseline_factors(factors) if config.drafter.is_none else factors, config)


def _baseline_factors(factors: Mapping[str, str]) -> dict[str, str]:
    """Return the factors of a baseline: whatever a drafter was told does not apply to it."""
    own = {"drafter": NO_DRAFTER, "drafter.method": NO_DRAFTER, "drafter.k": "0"}
    return {
        key: own.get(key, "-") if key.partition(".")[0] == "drafter" else value
        for key, value in factors.items()
    }


def _baseline(arm: Arm, known: Arm | None, keys: Sequence[str]) -> Arm:
    if known is not None:
        return replace(known, levels=_union(known.levels, arm.levels))
    factors = {key: arm.factors.get(key, "") for key in keys}
    return Arm(config=arm.config.baseline(), levels=arm.levels, factors=_baseline_factors(factors))


def _refusal(
    arm: Arm, refusals: Callable[[EngineConfig], Sequence[Refusal]], devices: int | None
) -> Refused | None:
    wanted = arm.config.layout.devices
    if devices is not None and wanted > devices:
        reason = (
            f"needs {counted(wanted, 'device')} and this machine offers {devices}; choose a smaller layout"
        )
        return Refused(arm=arm, rule="devices", reason=reason)
    found = refusals(arm.config)
    if not found:
        return None
    reasons = dict.fromkeys(refusal.reason for refusal in found)
    return Refused(arm=arm, rule=found[0].rule, reason="; ".join(reasons))


def _without_baseline(arm: Arm, baseline: Refused) -> Refused:
    return Refused(arm=arm, rule="baseline", reason=f"its baseline is refused: {baseline.reason}")


def _uneven_arms(arms: Sequence[Arm], share: str) -> list[Refused]:
    """Return the arms whose layout cannot fill the slice of their block with copies."""
    slices: dict[Group, int] = {}
    for arm in arms:
        group = group_of(arm.config, share)
        slices[group] = max(slices.get(group, 0), arm.config.layout.devices)
    found = ((arm, slices[group_of(arm.config, share)]) for arm in arms)
    return [_uneven(arm, devices) for arm, devices in found if devices % arm.config.layout.devices]


def _uneven(arm: Arm, slice_devices: int) -> Refused:
    own = arm.config.layout.devices  # several: one divides every slice
    reason = (
        f"{own} devices do not divide the block's slice of {slice_devices}: copies of this layout cannot "
        "fill it, so its arms would not be compared on equal hardware; choose design.share=layout, or run "
        "it in a sweep of its own"
    )
    return Refused(arm=arm, rule="slice", reason=reason)


def _all_refused(refused: Sequence[Refused]) -> str:
    reasons = dict.fromkeys(f"{entry.arm.label}: {entry.reason}" for entry in refused)
    return f"every arm of the grid is refused, nothing can run. {'. '.join(reasons)}"
