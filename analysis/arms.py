"""What an arm is beside its name: of which drafter it is one draft length, and how its drafts are accepted.

A *family* is one drafter of one layout, with everything equal but K. The plan tells it exactly; a table
without a plan (others' results) has a family for each drafter, pair and set of swept keys.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from analysis.banners import banner

REAL = "real"
LOADED = "loaded, never asked"
MATCHED = "baseline with matched KV"
MEASURED_POSITIONS = "synthetic, measured positions"
GEOMETRIC = "synthetic, geometric"
FLAT = "synthetic, minimum variance"
FORCED = "synthetic"
PERFECT = "perfect acceptance"
BASELINE = "baseline"
FREE = "free"
"""Method of the drafter whose proposals cost nothing."""

_ACCEPTED = 1e-6
"""A requested length so close to K + 1 accepts everything."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmFacts:
    """One arm."""

    arm: str
    """Digest."""
    label: str
    pair: str
    """What it shares with its baseline."""
    layout: str
    drafter: str
    """Method."""
    k: int
    """Draft length, tokens."""
    family: str
    """Name of the drafter over its K; empty for baselines and counterfactual arms."""
    kind: str
    """One of the constants above."""
    synthetic: bool
    """Whether acceptance was forced."""
    emulated: bool
    counterfactual: str
    """As in `jobs.result.CellResult`."""

    @property
    def free(self) -> bool:
        """Whether its proposals cost nothing."""
        return self.drafter == FREE


def arm_facts(cells: pd.DataFrame, plan: Mapping[str, Any] | None = None) -> dict[str, ArmFacts]:
    """Return the arms of a table of cells by digest, in order of appearance.

    Args:
        cells: rows of `cells_frame`.
        plan: content of `plan.json`, which tells what an acceptance is made of.
    """
    configs = {
        str(arm["digest"]): arm["config"]
        for arm in (plan or {}).get("arms", ())
        if "digest" in arm and "config" in arm
    }
    found: dict[str, ArmFacts] = {}
    keys: dict[str, str] = {}
    for arm, own in cells.groupby("arm", sort=False):
        digest, first = str(arm), own.iloc[0]
        config = configs.get(digest)
        keys[digest] = _key(first, config)
        found[digest] = ArmFacts(
            arm=digest,
            label=str(first["label"]),
            pair=str(first["pair"]),
            layout=str(first["layout"]),
            drafter=str(first["drafter"]),
            k=int(first["k"]),
            family="",
            kind=_kind(own, config),
            synthetic=bool(own["synthetic"].any()),
            emulated=bool(own["emulated"].any()),
            counterfactual=str(first["counterfactual"]),
        )
    names = _names(keys, found)
    return {arm: replace(facts, family=names[keys[arm]]) for arm, facts in found.items()}


def flags(facts: Iterable[ArmFacts], *, oversubscribed: bool) -> dict[str, object]:
    """Return the columns that tell how the figures of some arms came to be (words: `FLAGS`)."""
    own = list(facts)
    return {
        "synthetic": any(arm.synthetic for arm in own),
        "emulated": any(arm.emulated for arm in own),
        "oversubscribed": oversubscribed,
    }


FLAGS = {
    "synthetic": "whether acceptance was forced",
    "emulated": "whether an emulated engine made the figures",
    "oversubscribed": "whether client and engine shared a core",
}
"""Column of `flags` -> its definition."""


def flag_notes(frame: pd.DataFrame) -> tuple[str, ...]:
    """Return what the columns of `flags` oblige to say."""
    return tuple(banner(name) for name in FLAGS if bool(frame[name].any()))


def _kind(own: pd.DataFrame, config: Mapping[str, Any] | None) -> str:
    first = own.iloc[0]
    if first["counterfactual"]:
        return MATCHED if first["counterfactual"] == "kv_matched" else LOADED
    if first["k"] == 0 or not bool(own["synthetic"].any()):
        return REAL if first["k"] else BASELINE
    if own["spec/requested_mal"].max() >= first["k"] + 1 - _ACCEPTED:
        return PERFECT
    form = ((config or {}).get("drafter") or {}).get("acceptance") or {}
    forms = {
        MEASURED_POSITIONS: form.get("positions") is not None,
        GEOMETRIC: form.get("alpha") is not None or form.get("shape") == "geometric",
        FLAT: form.get("shape") is not None,
    }
    return next((name for name, holds in forms.items() if holds), FORCED)


def _key(first: pd.Series, config: Mapping[str, Any] | None) -> str:
    """Return what arms of one family have in common, as text."""
    if first["k"] == 0 or first["counterfactual"]:
        return ""
    if config is None:
        swept = {
            str(name): str(first[name])
            for name in first.index
            if str(name).startswith("factor:") and name != "factor:drafter.k"
        }
        forced = bool(first["synthetic"])  # else a real and a forced arm of one K would be the same
        return json.dumps([first["pair"], first["drafter"], forced, swept], sort_keys=True)
    drafter = dict(config["drafter"])
    acceptance = dict(drafter.get("acceptance") or {})
    if acceptance.get("positions") is not None:
        # positions are cut to K: their source, or else the first of them, is what they share
        source = acceptance.get("source") or {}
        acceptance["positions"] = source.get("name") or acceptance["positions"][0]
    return json.dumps([first["pair"], {**drafter, "k": None, "acceptance": acceptance}], sort_keys=True)


def _names(keys: Mapping[str, str], facts: Mapping[str, ArmFacts]) -> dict[str, str]:
    """Return a name a key: the label of its arms without K, numbered where two would be called alike."""
    names = {"": ""}
    taken: Counter[str] = Counter()
    for arm, key in keys.items():
        if key in names:
            continue
        name = re.sub(rf"-k{facts[arm].k}(?!\d)", "", facts[arm].label, count=1)
        if facts[arm].kind == MEASURED_POSITIONS:
            name = re.sub(r"-m[\d.]+-[0-9a-f]{4}", "-measured", name, count=1)
        taken[name] += 1
        names[key] = name if taken[name] == 1 else f"{name} #{taken[name]}"
    return names
