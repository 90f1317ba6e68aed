"""Which data-parallel rank gets a request: the least loaded one, wherever its prefix may be cached."""

from collections.abc import Sequence

from engines.emulator.scheduler import Scheduler


def least_loaded(ranks: Sequence[Scheduler], turn: int) -> int:
    """Return the index of the least loaded of `ranks`; `turn` rotates which of equal ones is first.

    A queued request counts four times a running one, as in vLLM's own router.
    """

    def score(index: int) -> int:
        return 4 * len(ranks[index].waiting) + len(ranks[index].running)

    return min(((turn + offset) % len(ranks) for offset in range(len(ranks))), key=score)
