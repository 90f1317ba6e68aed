"""Where a block can run: its demand against the cluster's nodes, and the placement group of its slice."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import ray
from ray.util.placement_group import PlacementGroup, placement_group, remove_placement_group

from orchestrator.errors import PlacementError
from orchestrator.plan import Cluster


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """What one block needs on one node."""

    devices: int
    engine_cores: int
    load_cores: int

    @classmethod
    def of(cls, devices: int, cluster: Cluster) -> "Demand":
        """Return the demand of a slice of devices: with their cores, and the load process's."""
        return cls(
            devices=devices,
            engine_cores=max(1, math.ceil(devices * cluster.cpus_per_device)),
            load_cores=max(1, math.ceil(cluster.load_cpus)),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """What a node offers, or has left."""

    name: str
    devices: float
    cpus: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """How a block goes onto a node: cores it gets, fewer than it asked for where the node has too few."""

    node: str
    engine_cores: int
    load_cores: int
    """0 where client and engine will have to share cores: the cells are then `oversubscribed`."""


def nodes_of(cluster: Cluster) -> list[Node]:
    """Return the living nodes of the connected Ray cluster with all they own."""
    return [
        Node(
            name=node["NodeID"],
            devices=node["Resources"].get(cluster.resource, 0.0),
            cpus=node["Resources"].get("CPU", 0.0),
        )
        for node in ray.nodes()  # type: ignore[no-untyped-call]  # ray has no annotation there
        if node["Alive"]
    ]


def fit(demand: Demand, free: Sequence[Node], total: Sequence[Node]) -> Fit | None:
    """Return where a block fits now (the node it fills best), or None while it has to wait.

    A node that owns too few cores for engine and load process together runs them on shared cores.
    """
    owned = {node.name: node for node in total}
    fits: list[tuple[float, Fit]] = []
    for node in free:
        if node.devices < demand.devices:
            continue
        cores = demand.engine_cores + demand.load_cores
        if node.cpus >= cores:
            found = Fit(node=node.name, engine_cores=demand.engine_cores, load_cores=demand.load_cores)
        elif owned[node.name].cpus < cores and node.cpus >= demand.engine_cores:
            found = Fit(node=node.name, engine_cores=demand.engine_cores, load_cores=0)
        else:
            continue
        fits.append((node.devices - demand.devices, found))
    return min(fits, key=lambda entry: (entry[0], entry[1].node))[1] if fits else None


def check_feasible(demands: Sequence[Demand], total: Sequence[Node], cluster: Cluster) -> None:
    """Refuse what no node of the cluster can ever hold.

    Raises:
        PlacementError: names the demand, what the largest node has, and what to change.
    """
    for demand in demands:
        if fit(demand, total, total) is not None:
            continue
        offers = (
            ", ".join(f"{node.devices:g} {cluster.resource} and {node.cpus:g} CPU" for node in total)
            or "none"
        )
        message = (
            f"a block needs {demand.devices} {cluster.resource} and at least {demand.engine_cores} CPU on "
            f"one node, and no node has them (nodes offer: {offers}). Choose a smaller layout, lower "
            "cluster.cpus_per_device, or connect to a larger cluster with cluster.address. Engines that span "
            "nodes are not supported yet."
        )
        raise PlacementError(message)


def take(free: Sequence[Node], where: Fit, demand: Demand, *, sign: int = -1) -> list[Node]:
    """Return the free list after a block took its part (or, with sign=1, gave it back)."""
    changed = []
    for node in free:
        if node.name == where.node:
            cpus = node.cpus + sign * (where.engine_cores + where.load_cores)
            changed.append(Node(name=node.name, devices=node.devices + sign * demand.devices, cpus=cpus))
        else:
            changed.append(node)
    return changed


class Slot:
    """A placement group that holds one block's slice: a bundle for the engines, one for the load process."""

    def __init__(self, demand: Demand, where: Fit, cluster: Cluster, *, name: str) -> None:
        self.engine_bundle: Mapping[str, float] = {
            cluster.resource: float(demand.devices),
            "CPU": float(where.engine_cores),
        }
        bundles = [dict(self.engine_bundle)]
        if where.load_cores:
            bundles.append({"CPU": float(where.load_cores)})
        self.group: PlacementGroup = placement_group(bundles, strategy="STRICT_PACK", name=name)

    def wait(self, seconds: float) -> bool:
        """Wait until the cluster has reserved the slice; False after `seconds`."""
        return bool(self.group.wait(seconds))

    def release(self) -> None:
        """Give the slice back."""
        remove_placement_group(self.group)
