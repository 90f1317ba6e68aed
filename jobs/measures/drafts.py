"""Acceptance from the engine's accounts of single requests, as its answers end with them."""

from collections.abc import Sequence
from dataclasses import dataclass

from jobs.replay.job import RequestRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class Drafts:
    """Drafts of several requests together."""

    steps: int
    """Verification steps that had a draft."""
    drafted: int
    """Draft tokens proposed."""
    accepted: int
    """Draft tokens accepted."""
    unknown: int
    """Requests without an account."""


def drafts_of(requests: Sequence[RequestRecord]) -> Drafts:
    """Return the sum of the accounts of `requests`."""
    known = [request.speculation for request in requests if request.speculation is not None]
    return Drafts(
        steps=sum(each.steps for each in known),
        drafted=sum(each.drafted for each in known),
        accepted=sum(each.accepted for each in known),
        unknown=len(requests) - len(known),
    )


def mean_length(requests: Sequence[RequestRecord]) -> float | None:
    """Return 1 + accepted / steps over `requests`; None without a step that is known."""
    found = drafts_of(requests)
    return 1 + found.accepted / found.steps if found.steps else None
