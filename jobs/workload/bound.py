"""One conversation in tokens, with what the policies did to it."""

from collections.abc import Sequence
from dataclasses import dataclass

from jobs.workload.tokens import TokenConversation


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """A conversation in tokens, and what a reader of the workload must know about it."""

    conversation: TokenConversation
    needed: int
    """Longest prompt plus output, in tokens."""
    refusal: str | None = None
    """Why it cannot be used; None where it can."""
    cut_turns: int = 0
    """Turns that lost their oldest part to fit the context."""
    cut_tokens: int = 0
    """Prompt tokens lost that way, over all turns."""
    late_turns: int = 0
    """Turns left out by `max_turns`."""
    capped_turns: int = 0
    """Turns whose recorded output length was capped."""
    silent_gaps: int = 0
    """Turns after the first without a recorded gap."""
    gaps: int = 0
    """Turns after the first with one."""


def common_prefix(before: Sequence[int], after: Sequence[int]) -> int:
    """Return the length of the common prefix of two sequences of one kind."""
    # Slices compare at the speed of C; halving finds the first difference.
    low, high = 0, min(len(before), len(after))
    if before[:high] == after[:high]:
        return high
    while high - low > 1:
        middle = (low + high) // 2
        if before[low:middle] == after[low:middle]:
            low = middle
        else:
            high = middle
    return low
