"""Which arm of one sweep is which of the other: by what it is, as the engine's version is in the digest.

An arm is its drafter with K and options, its layout, the devices of its slice, what is counterfactual about
it, and the value of every key that both sweeps swept. A key that only one of them swept leaves several
candidates; the one whose configuration is nearest is meant, if there is one such.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

import pandas as pd

from analysis.frame import FACTOR, Sweep

_TOLD = ("drafter", "layout", "load")
"""First parts of swept keys that the rest of an identity has."""
_PLACES = ("python", "model.path", "drafter.model", "kv_match", "drafter.acceptance.source")
"""Parts of a configuration that say where something lies, or that follow from another."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmIdentity:
    """What one arm is."""

    arm: str
    """Digest."""
    label: str
    baseline: bool
    counterfactual: str
    devices: int
    """Of its slice."""
    key: str
    """All of it but the swept keys, as text."""
    factors: Mapping[str, str]
    """Swept keys that the rest does not tell."""
    config: Mapping[str, Any]
    """Its engine's configuration as dotted keys, without places; empty where no plan tells it."""
    levels: tuple[str, ...] = ()
    """Its planned load levels as canonical JSON."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Matched:
    """One arm in both sweeps."""

    label: str
    """Its name in A."""
    a: ArmIdentity
    b: ArmIdentity


@dataclass(frozen=True, slots=True, kw_only=True)
class Matching:
    """The arms of two sweeps."""

    both: tuple[Matched, ...]
    """In the order of A."""
    only: Mapping[str, tuple[tuple[ArmIdentity, str], ...]] = field(default_factory=dict)
    """`A` and `B` -> (arm, why it has no counterpart)."""

    @property
    def treatments(self) -> tuple[Matched, ...]:
        """Those that are compared with a baseline."""
        return tuple(pair for pair in self.both if not pair.a.baseline)


def identities(cells: pd.DataFrame, sweep: Sweep) -> list[ArmIdentity]:
    """Return the arms of some cells, in order of appearance."""
    plans = {str(arm.get("digest")): arm for arm in sweep.plan.get("arms", ())}
    factors = [name for name in cells.columns if str(name).startswith(FACTOR)]
    found = []
    for arm, own in cells.groupby("arm", sort=False):
        first, plan = own.iloc[0], plans.get(str(arm), {})
        config = plan.get("config") or {}
        devices = int(own["devices"].max())
        baseline = bool(first["k"] == 0 and first["drafter"] == "none" and not first["counterfactual"])
        swept = {
            str(name).removeprefix(FACTOR): str(first[name])
            for name in factors
            if isinstance(first[name], str)
        }
        found.append(
            ArmIdentity(
                arm=str(arm),
                label=str(first["label"]),
                baseline=baseline,
                counterfactual=str(first["counterfactual"]),
                devices=devices,
                key=_key(config, devices) if config else _bare_key(first, devices, baseline=baseline),
                factors={name: value for name, value in swept.items() if name.partition(".")[0] not in _TOLD},
                config=flat(config),
                levels=tuple(json.dumps(level, sort_keys=True) for level in plan.get("levels", ())),
            )
        )
    return found


def flat(config: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return a configuration as dotted keys, without those that are places."""
    found: dict[str, Any] = {}
    for name, value in config.items():
        key = f"{prefix}{name}"
        if key in _PLACES:
            continue
        if isinstance(value, Mapping):
            found |= flat(value, f"{key}.")
        else:
            found[key] = value
    return found


def match(a: Sequence[ArmIdentity], b: Sequence[ArmIdentity]) -> Matching:
    """Return which arms are in both sweeps, and which only in one."""
    shared = _swept(a) & _swept(b)
    places: dict[str, tuple[list[ArmIdentity], list[ArmIdentity]]] = {}
    for side, arms in enumerate((a, b)):
        for arm in arms:
            places.setdefault(_place(arm, shared), ([], []))[side].append(arm)
    both: list[Matched] = []
    only: dict[str, list[tuple[ArmIdentity, str]]] = {"A": [], "B": []}
    for mine, theirs in places.values():
        pairs = _nearest(mine, theirs)
        both += [Matched(label=one.label, a=one, b=other) for one, other in pairs]
        for letter, own, others, place in (("A", mine, theirs, 0), ("B", theirs, mine, 1)):
            taken = {pair[place].arm for pair in pairs}
            why = "several arms of the other are as near" if others and not pairs else "not in the other"
            if others and pairs:
                why = f"the other has one such arm, and {pairs[0][place].label} is nearer to it"
            only[letter] += [(arm, why) for arm in own if arm.arm not in taken]
    order = {arm.arm: place for place, arm in enumerate(a)}
    return Matching(
        both=tuple(sorted(both, key=lambda pair: order[pair.a.arm])),
        only={letter: tuple(arms) for letter, arms in only.items()},
    )


def _swept(arms: Sequence[ArmIdentity]) -> set[str]:
    return {name for arm in arms for name in arm.factors}


def _place(arm: ArmIdentity, shared: set[str]) -> str:
    told = {name: value for name, value in arm.factors.items() if name in shared}
    return json.dumps([arm.key, told], sort_keys=True)


def _nearest(
    mine: Sequence[ArmIdentity], theirs: Sequence[ArmIdentity]
) -> list[tuple[ArmIdentity, ArmIdentity]]:
    """Return the pairs of which each is the only nearest of the other."""
    found = []
    for one in mine:
        other = _only_nearest(one, theirs)
        if other is not None and _only_nearest(other, mine) is one:
            found.append((one, other))
    return found


def _only_nearest(one: ArmIdentity, others: Sequence[ArmIdentity]) -> ArmIdentity | None:
    ordered = sorted(others, key=lambda other: _distance(one, other))
    if len(ordered) > 1 and _distance(one, ordered[0]) == _distance(one, ordered[1]):
        return None
    return ordered[0] if ordered else None


def _distance(one: ArmIdentity, other: ArmIdentity) -> int:
    """Return in how many keys two arms differ, of their configurations or else of their swept keys."""
    known = one.config and other.config
    mine, theirs = (one.config, other.config) if known else (one.factors, other.factors)
    return sum(mine.get(key) != theirs.get(key) for key in {*mine, *theirs})


def _key(config: Mapping[str, Any], devices: int) -> str:
    drafter = dict(config.get("drafter") or {})
    drafter["model"] = PurePath(str(drafter["model"])).name if drafter.get("model") else None
    drafter.pop("model_digest", None)
    if drafter.get("acceptance"):
        drafter["acceptance"] = {**drafter["acceptance"], "source": None}
    matched = (config.get("kv_match") or {}).get("drafter")
    return json.dumps([drafter, config.get("layout"), matched, devices], sort_keys=True, default=str)


def _bare_key(first: pd.Series, devices: int, *, baseline: bool) -> str:
    """Return the same of an arm that no plan tells: by its cells."""
    label = "" if baseline else str(first["label"]).partition(" [")[0]
    told = [str(first[name]) for name in ("layout", "drafter", "k", "counterfactual")]
    return json.dumps([*told, label, devices])
