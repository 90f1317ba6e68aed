"""Where a sweep's figures come from: identity facts, provenance, arms that rules refused, gates counted."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from jobs.result import CellResult

FACTS = ("engine", "engine_version", "model", "validity", "host", "cores", "devices", "workload", "seed")
"""Keys of a cell's identity worth a line in the provenance, where present."""
MOST_VALUES = 20
"""Distinct values of one fact that are kept."""


def identity_facts(cells: Iterable[CellResult]) -> tuple[tuple[str, tuple[Any, ...]], ...]:
    """Return the distinct values of the identity's facts: more than one where the sweep was not uniform."""
    cells = list(cells)
    found = []
    for key in FACTS:
        values: list[Any] = []
        for cell in cells:
            value = cell.identity.get(key)
            if value is not None and value not in values:
                values.append(value)
        if values:
            found.append((key, tuple(values[:MOST_VALUES])))
    return tuple(found)


def provenance(directory: Path) -> tuple[tuple[str, Any], ...]:
    """Return what `provenance.json` of a sweep says, by key."""
    path = directory / "provenance.json"
    if not path.is_file():
        return ()
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        return (("provenance.json", f"is damaged: {error}"),)
    return tuple(sorted(content.items())) if isinstance(content, dict) else (("provenance.json", content),)


def refused_arms(plan: Mapping[str, Any]) -> tuple[tuple[str, str, str], ...]:
    """Return name, rule and reason of every arm that was refused before anything started."""
    found = []
    for entry in plan.get("refused", ()):
        config = entry.get("arm", {}).get("config", {})
        drafter, layout = config.get("drafter", {}), config.get("layout", {})
        sizes = (
            "-".join(f"{key}{layout[key]}" for key in ("tp", "dp", "pp") if layout.get(key, 1) > 1) or "tp1"
        )
        matched = config.get("kv_match")
        told = f"{drafter.get('method', '?')}-k{drafter.get('k', '?')}"
        name = f"{sizes}/none-kv-matched-{matched.get('drafter', '?')}" if matched else f"{sizes}/{told}"
        found.append((name, str(entry.get("rule", "")), str(entry.get("reason", ""))))
    return tuple(found)


def gate_counts(cells: Iterable[CellResult]) -> tuple[tuple[str, int, int, int], ...]:
    """Return name, passed, failed and not checked."""
    counts: dict[str, Counter[bool | None]] = {}
    for cell in cells:
        for gate in cell.gates:
            counts.setdefault(gate.name, Counter())[gate.passed] += 1
    return tuple((name, found[True], found[False], found[None]) for name, found in sorted(counts.items()))
