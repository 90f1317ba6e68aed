"""Gates on a pair: its arms differ in the drafter only, and did the same work."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from jobs.nouns import counted
from jobs.replay.data import ReplayData
from jobs.result import Gate

SHOWN_KEYS = 8
"""Differing keys that a message lists."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivered:
    """The work that a replay asked for and got: equal in both arms of a pair, or they did not do the same."""

    requests: int
    requested_prompt_tokens: int
    requested_output_tokens: int
    prompt_tokens: int
    output_tokens: int

    @classmethod
    def of(cls, data: ReplayData) -> Self:
        """Return the work of a replay."""
        return cls(
            requests=len(data.requests),
            requested_prompt_tokens=sum(r.expected_prompt_tokens for r in data.requests),
            requested_output_tokens=sum(r.expected_tokens for r in data.requests),
            prompt_tokens=sum(r.prompt_tokens or 0 for r in data.requests),
            output_tokens=sum(r.completion_tokens or 0 for r in data.requests),
        )


def pair_gates(
    *,
    resolved: Mapping[str, Any],
    baseline_resolved: Mapping[str, Any],
    drafter_keys: Sequence[str],
    delivered: Delivered,
    baseline_delivered: Delivered,
) -> tuple[Gate, ...]:
    """Return the gates of a cell against the baseline of its segment.

    Args:
        resolved: The engine's own resolved configuration, flat.
        baseline_resolved: The baseline engine's.
        drafter_keys: Prefixes of keys that may differ because the drafter does.
        delivered: Work of the cell.
        baseline_delivered: Work of the baseline.
    """
    return (
        _configuration(resolved, baseline_resolved, drafter_keys),
        _equal_work(delivered, baseline_delivered),
    )


def _configuration(
    resolved: Mapping[str, Any], baseline: Mapping[str, Any], drafter_keys: Sequence[str]
) -> Gate:
    if not resolved or not baseline:
        message = "not checked: the engine does not tell its resolved configuration"
        return Gate(name="configuration", passed=None, message=message)
    prefixes = tuple(drafter_keys)
    absent = "(absent)"
    differing = [
        key
        for key in sorted({*resolved, *baseline})
        if resolved.get(key, absent) != baseline.get(key, absent) and not key.startswith(prefixes)
    ]
    shown = [
        f"{key}: {resolved.get(key, absent)!r} against {baseline.get(key, absent)!r}" for key in differing
    ]
    if not differing:
        message = (
            f"the arms' resolved configurations ({counted(len(resolved), 'key')}) differ in the drafter only"
        )
    else:
        more = f" and {len(shown) - SHOWN_KEYS} more" if len(shown) > SHOWN_KEYS else ""
        message = f"the arms differ in more than the drafter: {'; '.join(shown[:SHOWN_KEYS])}{more}"
    return Gate(
        name="configuration", passed=not differing, message=message, value=float(len(differing)), limit=0.0
    )


def _equal_work(delivered: Delivered, baseline: Delivered) -> Gate:
    mine = delivered.prompt_tokens + delivered.output_tokens
    theirs = baseline.prompt_tokens + baseline.output_tokens
    message = (
        f"{counted(delivered.requests, 'request')} with {delivered.prompt_tokens} prompt and "
        f"{delivered.output_tokens} output tokens; the baseline {baseline.requests} with "
        f"{baseline.prompt_tokens} and {baseline.output_tokens}"
    )
    passed = delivered == baseline
    return Gate(name="equal_work", passed=passed, message=message, value=float(mine - theirs), limit=0.0)
