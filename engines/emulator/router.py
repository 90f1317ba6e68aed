"""Which data-parallel rank gets a request: the one that seems least loaded, not the one with its prefix.

As vLLM's own router does it, on counts that are refreshed ten times a second only; between refreshes it adds
what it sent itself, and does not see what ended. So a conversation changes its rank although its old one just
became free.
"""

from collections.abc import Sequence

from engines.emulator.scheduler import Scheduler

REFRESH_SECONDS = 0.1
"""Age at which the counts are read anew."""
WAITING_WEIGHT = 4
"""A queued request counts as much as so many running ones."""


class Router:
    """Least loaded by stale counts; ties go to the ranks in turn."""

    def __init__(self, ranks: Sequence[Scheduler], *, refresh_seconds: float = REFRESH_SECONDS) -> None:
        self._ranks = ranks
        self._refresh_seconds = refresh_seconds
        self._read: float | None = None
        self._scores: list[int] = []
        self._turn = 0

    def pick(self, now: float) -> int:
        """Return the index of the rank for a request that arrives at `now`."""
        if self._read is None or now - self._read >= self._refresh_seconds:
            self._scores = [WAITING_WEIGHT * len(rank.waiting) + len(rank.running) for rank in self._ranks]
            self._read = now
        order = ((self._turn + offset) % len(self._ranks) for offset in range(len(self._ranks)))
        chosen = min(order, key=self._scores.__getitem__)
        self._scores[chosen] += WAITING_WEIGHT
        self._turn += 1
        return chosen
