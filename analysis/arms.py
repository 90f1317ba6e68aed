"""What an arm is beside its name: of which drafter it is one draft length, and how its drafts are accepted.

A *family* is one drafter of one layout, with everything equal but K. The plan tells it exactly; a table
without a plan (others' results) has a family for each drafter, pair and set of swept keys.
"""

import json
import re
from collections.abc import Mapping
from typing import Any

import pandas as pd

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


def arm_facts(cells: pd.DataFrame, plan: Mapping[str, Any] | None = None) -> pd.DataFrame:
    """Return one row an arm, with its digest as index.

    Columns: `label`, `pair`, `layout`, `drafter`, `k`, `family` (name of the drafter over its K, empty for
    baselines), `kind` (one of the constants above), `free` (proposals cost nothing), `synthetic`,
    `emulated`, `counterfactual`, `kv_of`.
    """
    drafters = {
        str(arm["digest"]): arm["config"]
        for arm in (plan or {}).get("arms", ())
        if "digest" in arm and "config" in arm
    }
    rows = []
    for arm, own in cells.groupby("arm", sort=False):
        first = own.iloc[0]
        config = drafters.get(str(arm))
        rows.append(
            {
                "arm": str(arm),
                **{name: first[name] for name in ("label", "pair", "layout", "drafter", "k")},
                "synthetic": bool(own["synthetic"].any()),
                "emulated": bool(own["emulated"].any()),
                "counterfactual": str(first["counterfactual"]),
                "kv_of": first["kv_of"],
                "free": first["drafter"] == FREE,
                "kind": _kind(own, config),
                "key": _key(first, config),
            }
        )
    facts = pd.DataFrame(rows, columns=_COLUMNS).set_index("arm")
    facts["family"] = _names(facts)
    return facts.drop(columns="key")


_COLUMNS = [
    "arm",
    "label",
    "pair",
    "layout",
    "drafter",
    "k",
    "synthetic",
    "emulated",
    "counterfactual",
    "kv_of",
    "free",
    "kind",
    "key",
]


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
        return json.dumps([first["pair"], first["drafter"], swept], sort_keys=True)
    drafter = dict(config["drafter"])
    acceptance = dict(drafter.get("acceptance") or {})
    if acceptance.get("positions") is not None:
        # positions are cut to K: their source, or else the first of them, is what they share
        source = acceptance.get("source") or {}
        acceptance["positions"] = source.get("name") or acceptance["positions"][0]
    return json.dumps([first["pair"], {**drafter, "k": None, "acceptance": acceptance}], sort_keys=True)


def _names(facts: pd.DataFrame) -> pd.Series:
    """Return a name a family: the label of its arms without K, numbered where two would be called alike."""
    names: dict[str, str] = {"": ""}
    for key, own in facts.groupby("key", sort=False):
        if not key:
            continue
        first = own.iloc[0]
        name = re.sub(rf"-k{first['k']}(?!\d)", "", str(first["label"]), count=1)
        if first["kind"] == MEASURED_POSITIONS:
            name = re.sub(r"-m[\d.]+-[0-9a-f]{4}", "-measured", name, count=1)
        taken = sum(name == other.partition(" #")[0] for other in names.values())
        names[str(key)] = f"{name} #{taken + 1}" if taken else name
    return facts["key"].map(names)
