"""Choosing conversations in one pass: memory is that of those that are kept."""

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, field

from jobs.workload.bound import Bound
from jobs.workload.rank import hashed_rank

_DIGITS = 13
"""Hex digits of a rank that decide about `sample`: 52 bits."""


@dataclass(slots=True, kw_only=True)
class Selection:
    """The conversations that fit and have the lowest hashed ranks.

    Whether a conversation is chosen depends on the seed, its id and the others' ids, not on their order.
    """

    seed: int
    sample: float | None
    """Share to use; None for all."""
    limit: int | None
    """Most conversations to keep; None for all."""
    seen: int = 0
    """Conversations offered."""
    sampled: int = 0
    """Conversations in the sample."""
    shortest: int | None = None
    """Least tokens that a refused conversation needs."""
    longest: int = 0
    """Most tokens that a refused conversation needs."""
    _kept: list[tuple[int, int, Bound]] = field(default_factory=list)
    """(minus the rank, place in the file, conversation): a heap with the worst rank on top under a limit."""
    _refused: list[tuple[int, str, str]] = field(default_factory=list)
    """(rank, id, reason)."""

    def wants(self, name: str) -> bool:
        """Count a conversation and return whether it may be among the chosen: only then is it bound."""
        self.seen += 1
        if self.sample is not None:
            draw = int(hashed_rank(self.seed, "sample", name)[:_DIGITS], 16) / 16**_DIGITS
            if draw >= self.sample:
                return False
        self.sampled += 1
        return self.limit is None or len(self._kept) < self.limit or self._rank(name) < -self._kept[0][0]

    def offer(self, bound: Bound) -> None:
        """Take a conversation that `wants` has let through, unless a policy refuses it."""
        name = bound.conversation.id
        rank = 0 if self.limit is None else self._rank(name)
        if bound.refusal is not None:
            self.refuse(name, bound.refusal)
            self.shortest = bound.needed if self.shortest is None else min(self.shortest, bound.needed)
            self.longest = max(self.longest, bound.needed)
            return
        entry = (-rank, self.seen, bound)
        if self.limit is None:
            self._kept.append(entry)
        elif len(self._kept) < self.limit:
            heapq.heappush(self._kept, entry)
        else:
            heapq.heappushpop(self._kept, entry)

    def refuse(self, name: str, reason: str) -> None:
        """Note that a conversation that `wants` has let through cannot be bound."""
        rank = 0 if self.limit is None else self._rank(name)
        self._refused.append((rank, name, reason))

    def kept(self) -> Iterator[Bound]:
        """Yield the chosen ones in the order of the file."""
        for _, _, bound in sorted(self._kept, key=lambda entry: entry[1]):
            yield bound

    @property
    def refused(self) -> tuple[tuple[str, str], ...]:
        """(id, reason) of those that would be among the chosen if they fitted."""
        full = self.limit is not None and len(self._kept) == self.limit
        worst = -self._kept[0][0] if full else None
        return tuple((name, why) for rank, name, why in self._refused if worst is None or rank < worst)

    def _rank(self, name: str) -> int:
        return int(hashed_rank(self.seed, "limit", name), 16)
