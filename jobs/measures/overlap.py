"""Overlap of the steady windows of a pair: whether both measured the same turns."""

from jobs.measures.work import Span
from jobs.replay.data import ReplayData

Turn = tuple[str, int, int]
"""(conversation, epoch, turn)."""


def turns_in(data: ReplayData, span: Span | None) -> frozenset[Turn]:
    """Return the turns whose first token arrived in `span`, which is when their prompt counts as work."""
    if span is None:
        return frozenset()
    start, end = span
    return frozenset(
        (request.conversation, request.epoch, request.turn)
        for request in data.succeeded
        if request.first is not None and start <= request.first < end
    )


def turn_overlap(mine: frozenset[Turn], theirs: frozenset[Turn]) -> float | None:
    """Return the Jaccard index: turns in both over turns in either; None where both windows are empty."""
    either = mine | theirs
    return len(mine & theirs) / len(either) if either else None
