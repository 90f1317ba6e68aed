"""How long the rest of a sweep takes: what runs, and what waits for devices, started as they come free."""

import heapq
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What is left of one block."""

    devices: int
    """Devices of its slice."""
    seconds: float
    """Expected."""


def seconds_left(running: Iterable[Work], waiting: Iterable[Work], *, devices: int) -> float:
    """Return the seconds until the last block ends.

    Waiting blocks start in the pool's order, largest and longest first, whenever enough devices are free.
    Nodes are not told apart, so a slice that fits no single node's rest makes it a little longer.

    Args:
        running: what is left of the running blocks.
        waiting: the blocks that have no slice yet.
        devices: all devices that the sweep may use, those of running blocks included.
    """
    ends = [(work.seconds, work.devices) for work in running]
    heapq.heapify(ends)
    free = devices - sum(held for _, held in ends)
    queues: dict[int, list[float]] = {}
    """Slice size -> expected seconds, the longest last."""
    for work in sorted(waiting, key=lambda work: work.seconds):
        queues.setdefault(work.devices, []).append(work.seconds)
    now = 0.0
    while queues or ends:
        for size in sorted(queues, reverse=True):
            # what is larger than the whole cluster waits for more nodes, and is taken to start on an idle one
            while size in queues and (size <= free or not ends):
                heapq.heappush(ends, (now + queues[size].pop(), size))
                free -= size
                if not queues[size]:
                    del queues[size]
        now, freed = heapq.heappop(ends)
        free += freed
    return now
