"""Packing: which waiting blocks start now, and on which node. Pure arithmetic, without Ray or a clock.

The order is largest first, then longest expected first. A block goes to the smallest node that can hold it,
and there where it leaves least over, so that large nodes stay open for large blocks. Small blocks fill what
a large one leaves; but once a large one waits for room, the node that will have it first is reserved: what
would still be there by then, and be in its way, is not started on it. So no stream of small blocks keeps a
large one waiting.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from orchestrator.placement import Demand, Fit, Node, fit


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One block that waits."""

    key: tuple[int, int]
    """Its place in the plan (block, segment): earlier ones first, all else being equal."""
    demand: Demand
    seconds: float | None = None
    """Expected duration; None while nothing like it was timed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """A part of a node that is taken."""

    where: Fit
    until: float = math.inf
    """Expected seconds from now to its end; infinite where nobody knows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """One block to start now."""

    request: Request
    where: Fit


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reservation:
    """A node that the first block which has to wait will get."""

    node: str
    at: float
    """Expected seconds from now until it has room."""
    spare: Node
    """What the node will have left over then."""


def pack(
    requests: Iterable[Request],
    nodes: Sequence[Node],
    holdings: Iterable[Holding],
    *,
    exclusive: bool = False,
) -> list[Start]:
    """Return what to start now.

    Args:
        requests: the waiting blocks.
        nodes: the nodes that may be used, with all they own.
        holdings: what of them is taken, oldest first.
        exclusive: whether a block wants a node of its own.
    """
    held = list(holdings)
    owned = {node.name: node for node in nodes}
    free = {name: _left(node, held, exclusive=exclusive) for name, node in owned.items()}
    starts: list[Start] = []
    reserved: _Reservation | None = None
    for request in sorted(requests, key=order):
        where = _best(request, free, owned, reserved)
        if where is not None:
            starts.append(Start(request=request, where=where))
            seconds = math.inf if request.seconds is None else request.seconds
            held.append(Holding(where=where, until=seconds))
            free[where.node] = _left(owned[where.node], held, exclusive=exclusive)
            if reserved is not None and reserved.node == where.node and seconds > reserved.at:
                reserved = replace(reserved, spare=_take(reserved.spare, where))
        elif reserved is None:
            reserved = _reserve(request, owned, held, exclusive=exclusive)
    return starts


def order(request: Request) -> tuple[int, float, tuple[int, int]]:
    """Return the sort key of a waiting block: largest first, then longest (unknown before known)."""
    seconds = math.inf if request.seconds is None else request.seconds
    return (-request.demand.devices, -seconds, request.key)


def free_nodes(nodes: Sequence[Node], holdings: Sequence[Holding], *, exclusive: bool = False) -> list[Node]:
    """Return what the nodes have left."""
    return [_left(node, holdings, exclusive=exclusive) for node in nodes]


def _best(
    request: Request, free: dict[str, Node], owned: dict[str, Node], reserved: _Reservation | None
) -> Fit | None:
    fits: list[tuple[float, float, str, Fit]] = []
    for name, node in free.items():
        found = fit(request.demand, node, owned[name])
        if found is None or (reserved is not None and _in_the_way(request, found, reserved)):
            continue
        fits.append((owned[name].devices, node.devices, name, found))
    return min(fits, key=lambda entry: entry[:3])[3] if fits else None


def _in_the_way(request: Request, where: Fit, reserved: _Reservation) -> bool:
    if where.node != reserved.node:
        return False
    if request.seconds is not None and request.seconds <= reserved.at < math.inf:
        return False  # gone before the node is needed
    left = _take(reserved.spare, where)
    return left.devices < 0 or left.cpus < 0


def _reserve(
    request: Request, owned: dict[str, Node], held: Sequence[Holding], *, exclusive: bool
) -> _Reservation | None:
    """Return the node that will have room for the request first; None where no node ever has."""
    found: list[tuple[float, int, float, str, _Reservation]] = []
    for name, node in owned.items():
        if fit(request.demand, node, node) is None:
            continue
        # the oldest of those whose end nobody knows is taken to end first: sorted() keeps their order
        mine = sorted((entry for entry in held if entry.where.node == name), key=lambda entry: entry.until)
        for gone in range(1, len(mine) + 1):
            left = _left(node, mine[gone:], exclusive=exclusive)
            where = fit(request.demand, left, node)
            if where is None:
                continue
            at = mine[gone - 1].until
            spare = _take(left, where)
            if exclusive:
                spare = replace(spare, devices=0.0, cpus=0.0)
            found.append((at, gone, node.devices, name, _Reservation(node=name, at=at, spare=spare)))
            break
    return min(found, key=lambda entry: entry[:4])[4] if found else None


def _left(node: Node, holdings: Iterable[Holding], *, exclusive: bool) -> Node:
    mine = [holding.where for holding in holdings if holding.where.node == node.name]
    if mine and exclusive:
        return replace(node, devices=0.0, cpus=0.0)
    for where in mine:
        node = _take(node, where)
    return node


def _take(node: Node, where: Fit) -> Node:
    return replace(
        node, devices=node.devices - where.devices, cpus=node.cpus - where.engine_cores - where.load_cores
    )
