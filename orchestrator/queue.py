"""The blocks of a sweep that wait: for their turn, for the reservation of a slice, or for a node to come."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from jobs.nouns import are, counted
from orchestrator.errors import PlacementError
from orchestrator.packing import Holding, Request, pack
from orchestrator.pending import Segment
from orchestrator.placement import Demand, Fit
from orchestrator.plan import FAIL, WAIT, Plan
from orchestrator.slots import Slots
from orchestrator.standing import Placing, PoolNote

PLACE_SECONDS = 30.0
"""A slice that fits by our count and is not reserved after so long is held by others: try again later."""
HOPELESS_SECONDS = 30.0
"""How long blocks that fit no node any more wait for one to come back, once nothing else runs."""

Admit = Callable[[Segment], bool | None]
"""Asked before a segment starts: True starts it, False drops it, None leaves it waiting for now."""
Expected = Callable[[Segment], float | None]
"""Seconds that a segment will take; None where nothing like it was timed."""


class BlockQueue:
    """What waits, in front of the slots of a cluster."""

    def __init__(self, plan: Plan, slots: Slots, expected: Expected) -> None:
        self._plan = plan
        self._cluster = plan.cluster
        self._slots = slots
        self._expected = expected
        self._waiting: dict[tuple[int, int], Segment] = {}
        self._placing: list[Placing] = []
        self._admitted: set[tuple[int, int]] = set()
        self._said: set[str] = set()
        self._hopeless_since: float | None = None

    def __len__(self) -> int:
        return len(self._waiting) + len(self._placing)

    @property
    def placing(self) -> bool:
        """Whether a reservation that may come at any moment is pending."""
        return any(not placing.anywhere for placing in self._placing)

    def fill(self, segments: Sequence[Segment], *, strict: bool) -> None:
        """Take these segments; with `strict`, only if all of them can run.

        Raises:
            PlacementError: one fits no node, and `cluster.on_infeasible` is `fail`.
        """
        if strict and self._cluster.on_infeasible == FAIL:
            self._slots.check([segment.block.devices for segment in segments])
        self._waiting = {_key(segment): segment for segment in segments}
        self._admitted.clear()
        self._hopeless_since = None

    def clear(self) -> None:
        """Let go of everything."""
        self._waiting.clear()
        for placing in self._placing:
            placing.slot.release()
        self._placing.clear()

    def advance(self, admit: Admit, running: Sequence[Holding]) -> Iterator[PoolNote]:
        """Ask for the slices of what starts now, beside the blocks that are `running`.

        Raises:
            PlacementError: what is left fits no node any more, nothing runs, and no such node came back.
        """
        possible = {
            key: segment for key, segment in self._waiting.items() if self._slots.fits(segment.block.devices)
        }
        requests = [
            Request(
                key=key,
                demand=Demand.of(segment.block.devices, self._cluster),
                seconds=self._expected(segment),
            )
            for key, segment in possible.items()
        ]
        taken = self._taken(running)
        for start in pack(requests, self._slots.usable, taken, exclusive=self._cluster.exclusive_node):
            segment = possible[start.request.key]
            if self._leaves(segment, admit):
                slot = self._slots.reserve(start.where, name=self._name(segment))
                self._placing.append(Placing(segment=segment, where=start.where, slot=slot))
        if self._cluster.on_infeasible == WAIT:
            for key in sorted(self._waiting.keys() - possible.keys()):
                yield from self._ask(self._waiting[key], admit)
        self._give_up_the_hopeless(idle=not running and not self._placing)

    def placed(self, running: Sequence[Holding]) -> Iterator[Placing | PoolNote]:
        """Yield the segments whose slice is reserved by now; they are no longer in the queue."""
        for placing in list(self._placing):
            node = placing.slot.node()
            if node is not None:
                self._placing.remove(placing)
                if placing.anywhere and self._cluster.exclusive_node and self._is_taken(node, running):
                    self._back(placing)  # the node that came is another's: pack where a node is its own
                else:
                    yield replace(placing, where=replace(placing.where, node=node))
            elif not placing.anywhere and self._is_late(placing):
                self._placing.remove(placing)
                self._back(placing)
                yield from self._shun(placing.where)

    def _leaves(self, segment: Segment, admit: Admit) -> bool:
        """Whether the segment starts now; it stays in the queue where the answer is None."""
        key = _key(segment)
        answer = True if key in self._admitted else admit(segment)
        if answer is None:
            return False
        del self._waiting[key]
        if answer:
            self._admitted.add(key)
        return answer

    def _ask(self, segment: Segment, admit: Admit) -> Iterator[PoolNote]:
        if not self._leaves(segment, admit):
            return
        demand = Demand.of(segment.block.devices, self._cluster)
        where = self._slots.anywhere(demand)
        slot = self._slots.ask(where, name=self._name(segment))
        self._placing.append(Placing(segment=segment, where=where, slot=slot, anywhere=True))
        yield from self._note(
            "waiting for a node to join (cluster.on_infeasible=wait), while other blocks go on: "
            + self._slots.why_not(demand.devices)
        )

    def _is_late(self, placing: Placing) -> bool:
        gone = all(node.name != placing.where.node for node in self._slots.nodes)
        return gone or time.monotonic() - placing.since > PLACE_SECONDS

    def _shun(self, where: Fit) -> Iterator[PoolNote]:
        for node in self._slots.nodes:
            if node.name == where.node:
                self._slots.shun(node.name)
                yield from self._note(
                    f"node {node.host} seemed to have {where.devices} {self._cluster.resource} free and did "
                    "not give them: others hold them; it is tried again every half minute"
                )

    def _back(self, placing: Placing) -> None:
        placing.slot.release()
        self._waiting[_key(placing.segment)] = placing.segment

    def _taken(self, running: Sequence[Holding]) -> list[Holding]:
        pinned = [Holding(where=placing.where) for placing in self._placing if not placing.anywhere]
        return [*running, *self._slots.holdings(), *pinned]

    def _is_taken(self, node: str, running: Sequence[Holding]) -> bool:
        return any(holding.where.node == node for holding in self._taken(running))

    def _give_up_the_hopeless(self, *, idle: bool) -> None:
        hopeless = [
            segment.block.devices
            for segment in self._waiting.values()
            if not self._slots.fits(segment.block.devices)
        ]
        if not idle or len(hopeless) < len(self._waiting) or not hopeless:
            self._hopeless_since = None
            return
        now = time.monotonic()
        if self._hopeless_since is None:
            self._hopeless_since = now
        elif now - self._hopeless_since > HOPELESS_SECONDS:
            blocks = f"{counted(len(hopeless), 'block')} {are(len(hopeless))}"
            message = (
                f"{blocks} left and cannot run any more; what was measured is kept, and "
                f"the same words go on once a node has room: {self._slots.why_not(max(hopeless))}"
            )
            raise PlacementError(message)

    def _note(self, message: str) -> Iterator[PoolNote]:
        if message not in self._said:
            self._said.add(message)
            yield PoolNote(message=message)

    def _name(self, segment: Segment) -> str:
        return f"{self._plan.sweep}-b{segment.block.index}-s{segment.index}"


def _key(segment: Segment) -> tuple[int, int]:
    return segment.block.index, segment.index
