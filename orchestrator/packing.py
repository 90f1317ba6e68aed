"""Packing: which waiting blocks start now, and on which node. Pure arithmetic, without Ray or a clock.

Largest first, then longest expected first. Where the duration of every waiting block is known, two other
orders are played through to the end beside it (most work first, longest first), and the one that ends soonest
decides: a small block that takes long must not be what a whole cluster waits for at last.

A block goes to the smallest node that can hold it, and there where it leaves least over, so that large nodes
stay open for large blocks. Smaller blocks fill what a larger one leaves; but once one has to wait for room,
the node that will have it first is reserved: what would still be there by then, and in its way, does not
start on it. So no stream of small blocks keeps a large one waiting.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from orchestrator.placement import Demand, Fit, Node, fit

LOOK_AHEAD = 48
"""Most waiting blocks whose orders are compared; with more of them, the order of the first hardly matters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One block that waits."""

    key: tuple[int, int]
    """Its place in the plan (block, segment): earlier ones first, all else being equal."""
    demand: Demand
    seconds: float | None = None
    """Expected duration; None while nothing like it was timed."""

    @property
    def duration(self) -> float:
        """The expected duration; infinite where nobody knows."""
        return math.inf if self.seconds is None else self.seconds


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
    requests: Sequence[Request],
    nodes: Sequence[Node],
    holdings: Sequence[Holding],
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
    free = max((node.devices for node in free_nodes(nodes, holdings, exclusive=exclusive)), default=0.0)
    if all(request.demand.devices > free for request in requests):
        return []
    known = 1 < len(requests) <= LOOK_AHEAD and all(request.seconds is not None for request in requests)
    orders = (largest_first, most_work_first, longest_first) if known else (largest_first,)
    best = min(
        (sorted(requests, key=order) for order in orders),
        key=lambda ordered: _makespan(ordered, nodes, holdings, exclusive=exclusive) if known else 0.0,
    )
    return _pack(best, nodes, holdings, exclusive=exclusive)


def largest_first(request: Request) -> tuple[float, float, tuple[int, int]]:
    """Sort key: the most devices, among equals the longest (an unknown duration before known ones)."""
    return (-request.demand.devices, -request.duration, request.key)


def most_work_first(request: Request) -> tuple[float, float, tuple[int, int]]:
    """Sort key: the most devices times seconds."""
    return (-request.demand.devices * request.duration, -request.demand.devices, request.key)


def longest_first(request: Request) -> tuple[float, float, tuple[int, int]]:
    """Sort key: the most seconds, among equals the most devices."""
    return (-request.duration, -request.demand.devices, request.key)


def _makespan(
    ordered: Sequence[Request], nodes: Sequence[Node], holdings: Sequence[Holding], *, exclusive: bool
) -> float:
    """Return the seconds until the last of the requests has ended, if they all last as long as expected."""
    waiting = list(ordered)
    held = sorted(holdings, key=lambda holding: holding.until)
    now = 0.0
    while True:
        starts = _pack(waiting, nodes, held, exclusive=exclusive)
        begun = {start.request.key for start in starts}
        waiting = [request for request in waiting if request.key not in begun]
        held += [Holding(where=start.where, until=start.request.duration) for start in starts]
        held.sort(key=lambda holding: holding.until)
        if not waiting:
            return now + max((holding.until for holding in held if holding.until < math.inf), default=0.0)
        if not held or held[0].until == math.inf:
            return math.inf
        step = held[0].until
        now += step
        held = [replace(holding, until=holding.until - step) for holding in held[1:]]


def _pack(
    ordered: Sequence[Request], nodes: Sequence[Node], holdings: Sequence[Holding], *, exclusive: bool
) -> list[Start]:
    held = list(holdings)
    owned = {node.name: node for node in nodes}
    free = {
        node.name: left
        for node, left in zip(nodes, free_nodes(nodes, held, exclusive=exclusive), strict=True)
    }
    largest = max((node.devices for node in free.values()), default=0.0)
    starts: list[Start] = []
    reserved: _Reservation | None = None
    for request in ordered:
        where = None if request.demand.devices > largest else _best(request, free, owned, reserved)
        if where is None:
            if reserved is None:
                reserved = _reserve(request, owned, held, exclusive=exclusive)
            continue
        starts.append(Start(request=request, where=where))
        held.append(Holding(where=where, until=request.duration))
        free[where.node] = _left(owned[where.node], held, exclusive=exclusive)
        largest = max(node.devices for node in free.values())
        if largest <= 0:
            break
        if reserved is not None and reserved.node == where.node and request.duration > reserved.at:
            reserved = replace(reserved, spare=_take(reserved.spare, where))
    return starts


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
    if request.duration <= reserved.at < math.inf:
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
