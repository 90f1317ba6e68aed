"""K by load: ranges of running requests with the draft length that each is served with.

A load is what one engine sees: the requests it has in a step, over none of its copies. Engines spell such a
schedule in their own way, or have none; `Engine.by_batch_size` writes it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from engines.errors import EngineConfigError

DYNAMIC = "num_speculative_tokens_per_batch_size"
"""Key of `drafter.options` in vLLM's spelling, which the emulator shares: a list of [first, last, K]."""
ADAPTIVE = "adaptive_config"
"""Key of `drafter.options` for SGLang: the content of its file (`engines/sglang_adaptive.py`)."""
SCHEDULED = frozenset({DYNAMIC, ADAPTIVE})
"""Options that make K depend on the batch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KRange:
    """One draft length and the running requests it is for."""

    first: int
    """Fewest requests in a step."""
    last: int | None
    """Most; None for all above."""
    k: int
    """Draft length; 0: the drafter stays loaded and is not asked."""


OPEN_END = 1024
"""Written as the end of a range without one, where the engine carries the last draft length on."""


def largest_k(ranges: Sequence[KRange]) -> int:
    """Return the longest draft of a schedule.

    Raises:
        EngineConfigError: it drafts nothing, or its ranges do not go from 1 on without gaps to an open end.
    """
    ends: list[int | None] = [0, *(entry.last for entry in ranges)]
    follows = all(
        end is not None and entry.first == end + 1 for end, entry in zip(ends, ranges, strict=False)
    )
    k = max((entry.k for entry in ranges), default=0)
    if not ranges or ends[-1] is not None or not follows or k < 1:
        message = (
            "K by batch size goes from 1 request on, without gaps, to a last range without an end, and "
            f"drafts somewhere; this is {[(entry.first, entry.last, entry.k) for entry in ranges]}"
        )
        raise EngineConfigError(message)
    return k


def listed_problem(listed: Any, k: int) -> str | None:
    """Return why the value of `DYNAMIC` is no list of ranges of batch sizes up to K; None where it is one."""
    if not isinstance(listed, Sequence) or isinstance(listed, str) or not listed:
        return f"drafter.options.{DYNAMIC} is a list of [first, last, K]: [[1, 8, 3], [9, 64, 0]]"
    end = 0
    for entry in listed:
        if not isinstance(entry, Sequence) or len(entry) != 3 or any(type(part) is not int for part in entry):
            return f"drafter.options.{DYNAMIC} has {entry!r}; each range is [first, last, K]"
        first, last, own = entry
        if first <= end or last < first or (end == 0 and first != 1):
            return (
                f"drafter.options.{DYNAMIC} has {list(entry)}; ranges of batch sizes start at 1, ascend and "
                "do not overlap"
            )
        if not 0 <= own <= k:
            return f"drafter.options.{DYNAMIC} drafts up to {own}; set drafter.k to the largest K of it"
        end = last
    return None


def listed_k(listed: Sequence[Sequence[int]], size: int) -> int:
    """Return K at a batch size: that of its range, or of the last one before it."""
    found = 0
    for first, _, k in listed:
        if first > size:
            break
        found = k
    return found
