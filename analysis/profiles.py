"""Profiles of decode steps that lie in a sweep's folder: where a step's time goes.

`specload profile` leaves `profiles/<arm>/<load>/profile.json`. Only traces tell verification and drafting
apart; estimates from step times do not.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from analysis.errors import ResultsError
from analysis.step_parts import DRAFTING, VERIFYING

TRACE = "trace"
"""Source of a profile that the engine's profiler took; others are estimates."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineStep:
    """One engine's mean step."""

    arm: str
    """Digest."""
    label: str
    k: int
    step_ms: float
    parts: Mapping[str, float]
    """Name of a part -> milliseconds; they add up to the step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """What one run of `specload profile` found."""

    source: str
    """`trace` or `estimate`."""
    concurrency: int
    """Requests held in decode."""
    context: int
    """KV length of each in tokens, as asked for."""
    emulated: bool
    baseline: EngineStep
    arms: tuple[EngineStep, ...]
    notes: tuple[str, ...]
    """What a reader must know."""


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


def profiles_of(directory: Path) -> tuple[Profile, ...]:
    """Read the profiles of a sweep's folder, in the order of their paths.

    Raises:
        ResultsError: a profile that cannot be read; the message names the file.
    """
    found = []
    for path in sorted(directory.glob("profiles/*/*/profile.json")):
        try:
            found.append(_profile(json.loads(path.read_text(encoding="utf-8"))))
        except (OSError, ValueError, TypeError, KeyError, IndexError, AttributeError) as error:
            message = f"{path} is damaged ({error}); take the profile again, or remove its folder"
            raise ResultsError(message) from error
    return tuple(found)


def step_profiles(directory: Path) -> tuple[StepProfile, ...]:
    """Return what verifying and drafting one token cost by the traces of a sweep's folder.

    Raises:
        ResultsError: a profile that cannot be read; the message names the file.
    """
    return tuple(step for profile in profiles_of(directory) for step in _costs(profile))


def _costs(profile: Profile) -> Iterator[StepProfile]:
    if profile.source != TRACE:
        return
    plain = profile.baseline.step_ms
    for engine in profile.arms:
        if engine.k > 0 and VERIFYING in engine.parts and DRAFTING in engine.parts:
            yield StepProfile(
                arm=engine.arm,
                k=engine.k,
                concurrency=profile.concurrency,
                verification=engine.parts[VERIFYING] / plain / engine.k,
                drafting=engine.parts[DRAFTING] / plain / engine.k,
            )


def _profile(content: Mapping[str, Any]) -> Profile:
    engines = [
        EngineStep(
            arm=str(engine["arm"]),
            label=str(engine["label"]),
            k=int(engine["k"]),
            step_ms=float(engine["step_ms"]),
            parts={str(part["name"]): float(part["ms"]) for part in engine["parts"]},
        )
        for engine in content["engines"]
    ]
    return Profile(
        source=str(content["source"]),
        concurrency=int(content["concurrency"]),
        context=int(content["contexts"][0]),
        emulated=any(arm["config"]["device"] == "emulated" for arm in content["arms"]),
        baseline=engines[0],
        arms=tuple(engines[1:]),
        notes=tuple(map(str, content["notes"])),
    )
