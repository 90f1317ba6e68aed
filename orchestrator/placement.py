"""What a block needs, what the nodes of a cluster offer, and the placement group of a slice."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import ray
from ray.util.placement_group import (
    PlacementGroup,
    placement_group,
    placement_group_table,
    remove_placement_group,
)

from orchestrator.labels import RAY_NODE, matches, selector
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
    """Ray's id of the node."""
    devices: float
    cpus: float
    labels: Mapping[str, str] = field(default_factory=dict)
    """Ray's labels of the node."""
    host: str = ""
    """Its address, for people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """How a block goes onto a node: cores it gets, fewer than it asked for where the node has too few."""

    node: str
    devices: int
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
            labels=dict(node["Labels"]),
            host=node["NodeManagerAddress"],
        )
        for node in ray.nodes()  # type: ignore[no-untyped-call]  # ray has no annotation there
        if node["Alive"]
    ]


def allowed(nodes: Sequence[Node], cluster: Cluster) -> list[Node]:
    """Return the nodes that have the labels which `cluster.require` asks for."""
    wanted = selector(cluster.require)
    return [node for node in nodes if matches(wanted, node.labels)]


def fit(demand: Demand, free: Node, owned: Node) -> Fit | None:
    """Return how a block goes onto a node now, or None while it does not.

    A node that owns too few cores for engine and load process together runs them on shared cores.
    """
    if free.devices < demand.devices:
        return None
    cores = demand.engine_cores + demand.load_cores
    if free.cpus >= cores:
        load_cores = demand.load_cores
    elif owned.cpus < cores and free.cpus >= demand.engine_cores:
        load_cores = 0
    else:
        return None
    return Fit(
        node=owned.name, devices=demand.devices, engine_cores=demand.engine_cores, load_cores=load_cores
    )


def infeasible(demand: Demand, nodes: Sequence[Node], cluster: Cluster, *, aside: int = 0) -> str:
    """Return why no node can hold the demand, what they offer (`aside` of it set aside), and what to do."""
    labels = ", ".join(f"{key}={value}" for key, value in cluster.require.items())
    gone = f", {aside} of them set aside" if aside else ""
    return (
        f"a block needs {demand.devices} {cluster.resource} and at least {demand.engine_cores} CPU on one "
        f"node{' with ' + labels if labels else ''}, and no node has them (nodes offer: "
        f"{offers(nodes, cluster)}{gone}). Choose a smaller layout, lower cluster.cpus_per_device"
        f"{', relax cluster.require' if labels else ''}, or connect to a larger cluster with "
        "cluster.address; where an autoscaler adds nodes, cluster.on_infeasible=wait waits for them. "
        "Engines that span nodes are not supported yet."
    )


def offers(nodes: Sequence[Node], cluster: Cluster) -> str:
    """Return what the nodes offer: devices, cores, and the labels that a `require` could ask for."""
    counted: dict[str, int] = {}
    for node in nodes:
        labels = ", ".join(f"{key}={value}" for key, value in sorted(node.labels.items()) if key != RAY_NODE)
        text = f"{node.devices:g} {cluster.resource} and {node.cpus:g} CPU"
        text += f" [{labels}]" if labels else ""
        counted[text] = counted.get(text, 0) + 1
    texts = [text if count == 1 else f"{count} times {text}" for text, count in counted.items()]
    return "; ".join(texts) or "none"


class Slot:
    """A placement group that holds one block's slice: a bundle for the engines, one for the load process."""

    def __init__(
        self, where: Fit, cluster: Cluster, *, name: str, labels: Mapping[str, str] | None = None
    ) -> None:
        """Ask for the slice on the node of `where`; with `labels`, on any node that has them."""
        self.engine_bundle: Mapping[str, float] = {
            cluster.resource: float(where.devices),
            "CPU": float(where.engine_cores),
        }
        bundles = [dict(self.engine_bundle)]
        if where.load_cores:
            bundles.append({"CPU": float(where.load_cores)})
        wanted = {RAY_NODE: where.node} if labels is None else dict(labels)
        self.group: PlacementGroup = placement_group(
            bundles,
            strategy="STRICT_PACK",
            name=name,
            bundle_label_selector=[wanted] * len(bundles) if wanted else None,
        )

    def node(self) -> str | None:
        """Return the id of the node that has reserved the slice; None while it is not reserved."""
        table = placement_group_table(self.group)
        if table["state"] != "CREATED":
            return None
        return str(table["bundles_to_node_id"][0])

    def release(self) -> None:
        """Give the slice back."""
        remove_placement_group(self.group)
