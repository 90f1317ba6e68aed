"""Profiles of decode steps that lie in a sweep's folder: what verifying and drafting one token cost.

`specload profile` leaves `profiles/<arm>/<load>/profile.json`. Only traces tell verification and drafting
apart; estimates from step times do not.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from analysis.errors import ResultsError

VERIFICATION, DRAFTING = "verification overhead", "drafting"
"""Names of the two parts in a profile."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepProfile:
    """One arm's traced step over its baseline's."""

    arm: str
    """Digest."""
    k: int
    concurrency: int
    """Requests held in decode."""
    verification: float
    """v: cost of verifying one draft token, in steps of the baseline."""
    drafting: float
    """d: cost of drafting one, in the same unit."""


def step_profiles(directory: Path) -> tuple[StepProfile, ...]:
    """Read the traced profiles of a sweep's folder, in the order of their paths.

    Raises:
        ResultsError: a profile that cannot be read; the message names the file.
    """
    found: list[StepProfile] = []
    for path in sorted(directory.glob("profiles/*/*/profile.json")):
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            found += _of(content)
        except (OSError, ValueError, TypeError, KeyError, IndexError) as error:
            message = f"{path} is damaged ({error}); take the profile again, or remove its folder"
            raise ResultsError(message) from error
    return tuple(found)


def _of(content: Mapping[str, Any]) -> list[StepProfile]:
    if content["source"] != "trace":
        return []
    baseline, *arms = content["engines"]
    plain = float(baseline["step_ms"])
    found = []
    for engine in arms:
        parts = {part["name"]: float(part["ms"]) for part in engine["parts"]}
        k = int(engine["k"])
        if k > 0 and VERIFICATION in parts and DRAFTING in parts:
            found.append(
                StepProfile(
                    arm=str(engine["arm"]),
                    k=k,
                    concurrency=int(content["concurrency"]),
                    verification=parts[VERIFICATION] / plain / k,
                    drafting=parts[DRAFTING] / plain / k,
                )
            )
    return found
