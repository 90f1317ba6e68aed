"""The slices of a cluster as one driver sees them: its nodes, what it set aside, and what others hold."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from orchestrator.errors import PlacementError
from orchestrator.labels import selector
from orchestrator.packing import Holding, free_nodes
from orchestrator.placement import Demand, Fit, Node, Slot, allowed, fit, infeasible, nodes_of
from orchestrator.plan import Cluster

SHUN_SECONDS = 30.0
"""How long a node is left alone that did not give what it seemed to have: others hold it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kept:
    """A slice without a block that nobody may get."""

    slot: Slot
    where: Fit
    until: float | None
    """`time.monotonic()` at which it is given back; None: at the sweep's end."""


class Slots:
    """Nodes and slices, beside the blocks that run."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.nodes: tuple[Node, ...] = ()
        """All living nodes."""
        self.suitable: tuple[Node, ...] = ()
        """Those of them with the labels that the blocks require."""
        self._kept: list[_Kept] = []
        self._shunned: dict[str, float] = {}
        self._fits: dict[int, bool] = {}

    def refresh(self) -> None:
        """Read the list of nodes again, and give back what was kept long enough."""
        now = time.monotonic()
        self.nodes = tuple(nodes_of(self._cluster))
        self.suitable = tuple(allowed(self.nodes, self._cluster))
        alive = {node.name for node in self.nodes}
        for kept in list(self._kept):
            if kept.where.node not in alive or (kept.until is not None and kept.until <= now):
                kept.slot.release()
                self._kept.remove(kept)
        self._shunned = {name: until for name, until in self._shunned.items() if until > now}
        self._fits.clear()

    @property
    def usable(self) -> list[Node]:
        """The suitable nodes, without those that others hold."""
        return [node for node in self.suitable if node.name not in self._shunned]

    @property
    def held_devices(self) -> int:
        """Devices set aside until the sweep's end."""
        return sum(kept.where.devices for kept in self._kept if kept.until is None)

    def holdings(self) -> list[Holding]:
        """Return what is kept without a block."""
        now = time.monotonic()
        return [
            Holding(where=kept.where)
            if kept.until is None
            else Holding(where=kept.where, until=max(0.0, kept.until - now))
            for kept in self._kept
        ]

    def fits(self, devices: int) -> bool:
        """Whether a node can hold a slice of so many devices, once no block runs on it."""
        if devices not in self._fits:
            demand = Demand.of(devices, self._cluster)
            forever = [Holding(where=kept.where) for kept in self._kept if kept.until is None]
            free = free_nodes(self.suitable, forever, exclusive=self._cluster.exclusive_node)
            pairs = zip(free, self.suitable, strict=True)
            self._fits[devices] = any(fit(demand, left, owned) is not None for left, owned in pairs)
        return self._fits[devices]

    def check(self, devices: Sequence[int]) -> None:
        """Refuse slices that no node can hold.

        Raises:
            PlacementError: names the slice, what the nodes have, and what to change.
        """
        for count in devices:
            if not self.fits(count):
                raise PlacementError(self.why_not(count))

    def why_not(self, devices: int) -> str:
        """Return why no node can hold a slice, what they offer, and what to do."""
        demand = Demand.of(devices, self._cluster)
        return infeasible(demand, self.nodes, self._cluster, aside=self.held_devices)

    def anywhere(self, demand: Demand) -> Fit:
        """Return how the demand goes onto the smallest node that can hold it, or one that is yet to come."""
        for node in sorted(self.suitable, key=lambda node: node.devices):
            where = fit(demand, node, node)
            if where is not None:
                return replace(where, node="")
        return Fit(
            node="",
            devices=demand.devices,
            engine_cores=demand.engine_cores,
            load_cores=demand.load_cores,
        )

    def reserve(self, where: Fit, *, name: str) -> Slot:
        """Ask Ray for a slice on the node that the packing chose."""
        return Slot(where, self._cluster, name=name)

    def ask(self, where: Fit, *, name: str) -> Slot:
        """Ask Ray for a slice on any suitable node, also one that an autoscaler has yet to add."""
        return Slot(where, self._cluster, name=name, labels=selector(self._cluster.require))

    def shun(self, node: str) -> None:
        """Leave a node alone for a while."""
        self._shunned[node] = time.monotonic() + SHUN_SECONDS

    def set_aside(self, slot: Slot, where: Fit, *, seconds: float | None = None) -> None:
        """Keep a slice reserved without a block: for so long, or until the sweep's end."""
        until = None if seconds is None else time.monotonic() + seconds
        self._kept.append(_Kept(slot=slot, where=where, until=until))
        self._fits.clear()

    def release(self) -> None:
        """Give back all that is kept."""
        for kept in self._kept:
            kept.slot.release()
        self._kept.clear()
