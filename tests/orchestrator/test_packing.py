"""Packing: order, best fit, reservation, nodes of one's own, and how near its bound the makespan is."""

import math
import random
from collections.abc import Sequence

import pytest

from orchestrator.packing import Holding, Request, pack
from orchestrator.placement import Demand, Fit, Node

NODES = tuple(Node(name=name, devices=devices, cpus=64) for name, devices in (("a", 4), ("b", 4), ("c", 2)))


def request(index: int, devices: int, seconds: float | None = None) -> Request:
    demand = Demand(devices=devices, engine_cores=devices, load_cores=1)
    return Request(key=(index, 0), demand=demand, seconds=seconds)


def holding(node: str, devices: int, until: float = math.inf) -> Holding:
    return Holding(where=Fit(node=node, devices=devices, engine_cores=devices, load_cores=1), until=until)


def starts(requests: Sequence[Request], holdings: Sequence[Holding] = (), **options: bool) -> dict[int, str]:
    return {start.request.key[0]: start.where.node for start in pack(requests, NODES, holdings, **options)}


def test_the_largest_go_first_and_small_ones_to_small_nodes() -> None:
    assert starts([request(0, 1), request(1, 2), request(2, 4), request(3, 4)]) == {2: "a", 3: "b", 1: "c"}


def test_a_large_node_stays_open_where_a_small_one_has_room() -> None:
    assert starts([request(0, 1)]) == {0: "c"}
    assert starts([request(0, 1)], [holding("a", 3)]) == {0: "c"}
    assert starts([request(0, 1)], [holding("a", 3), holding("c", 2)]) == {0: "a"}


def test_among_equals_the_longest_and_the_untimed_go_first() -> None:
    full = [holding("a", 4), holding("b", 4)]
    assert starts([request(0, 2, 10), request(1, 2, 20)], full) == {1: "c"}
    assert starts([request(0, 2, 10), request(1, 2)], full) == {1: "c"}
    assert starts([request(0, 2), request(1, 2)], full) == {0: "c"}


def test_a_small_block_that_takes_long_does_not_come_last() -> None:
    larger = [request(index, 4, 10) for index in range(1, 9)] + [
        request(index, 2, 10) for index in range(9, 13)
    ]
    assert 0 in starts([request(0, 1, 100), *larger])
    assert 0 not in starts([request(0, 1, 10), *larger])
    assert 0 not in starts([request(0, 1), *larger]), "an unknown duration is no reason"


def test_a_waiting_large_block_gets_the_node_that_is_free_first() -> None:
    busy = [holding("a", 2, until=60), holding("b", 4, until=30), holding("c", 2, until=90)]
    # two devices of `a` are free, but `a` would be in the way of nobody: the large one waits for `b`
    assert starts([request(0, 4), request(1, 2)], busy) == {1: "a"}
    busy = [holding("a", 2, until=20), holding("b", 4, until=30), holding("c", 2, until=90)]
    assert starts([request(0, 4), request(1, 2)], busy) == {}
    # what is gone by then may use the gap
    assert starts([request(0, 4), request(1, 2, 15)], busy) == {1: "a"}
    assert starts([request(0, 4), request(1, 2, 25)], busy) == {}


def test_what_a_reserved_node_has_to_spare_may_be_used() -> None:
    nodes = (Node(name="n", devices=8, cpus=64),)
    busy = [holding("n", 4), holding("n", 2)]
    found = pack([request(0, 4), request(1, 2), request(2, 1)], nodes, busy)
    # once the older one (4) has gone there are 6: 4 are reserved, 2 to spare
    assert [start.request.key[0] for start in found] == [1]


def test_a_node_of_ones_own() -> None:
    assert starts([request(index, 1) for index in range(4)], exclusive=True) == {0: "c", 1: "a", 2: "b"}
    assert starts([request(0, 1)], [holding("c", 1)], exclusive=True) == {0: "a"}
    assert starts(
        [request(0, 4), request(1, 1, 5)], [holding("a", 1, 10), holding("b", 1, 9)], exclusive=True
    ) == {1: "c"}


def test_cores_count_too() -> None:
    nodes = (Node(name="n", devices=8, cpus=5),)
    assert len(pack([request(index, 1) for index in range(8)], nodes, ())) == 2
    shared = (Node(name="n", devices=2, cpus=2),)
    (start,) = pack([request(0, 2)], shared, ())
    assert start.where.load_cores == 0


def test_nothing_to_do() -> None:
    assert pack([], NODES, ()) == []
    assert pack([request(0, 8)], NODES, ()) == []
    assert pack([request(0, 1)], (), ()) == []


def test_no_stream_of_small_blocks_keeps_a_large_one_waiting() -> None:
    """A large block comes late (its node was lost); small ones never run out."""
    now, fresh = 0.0, 0
    running: list[tuple[float, int, Fit]] = []
    while True:
        waiting = [request(1000, 4, 30), *(request(fresh + index, 1, 10) for index in range(20))]
        if now < 25:
            waiting = waiting[1:]
        for start in pack(
            waiting, NODES, [Holding(where=where, until=end - now) for end, _, where in running]
        ):
            if start.request.key[0] == 1000:
                return
            running.append((now + 7 + fresh % 5, fresh, start.where))
            fresh += 1
        running.sort(key=lambda entry: entry[0])
        now = running.pop(0)[0]
        assert now < 60, "the large block starved"


def played(jobs: Sequence[tuple[int, float]]) -> float:
    """Return the makespan of jobs (devices, seconds) that last as long as expected."""
    waiting = {index: request(index, *job) for index, job in enumerate(jobs)}
    running: list[tuple[float, Fit]] = []
    now = 0.0
    while waiting or running:
        held = [Holding(where=where, until=end - now) for end, where in running]
        for start in pack(list(waiting.values()), NODES, held):
            del waiting[start.request.key[0]]
            running.append((now + start.request.duration, start.where))
        running.sort(key=lambda entry: entry[0])
        assert running, "blocks are left and nothing starts"
        now = running.pop(0)[0]
    return now


def bound(jobs: Sequence[tuple[int, float]]) -> float:
    """Return the least makespan that the sizes of the nodes allow."""
    work = (
        sum(devices * seconds for devices, seconds in jobs if devices >= size)
        / sum(node.devices for node in NODES if node.devices >= size)
        for size in {devices for devices, _ in jobs}
    )
    return max(*(seconds for _, seconds in jobs), *work)


@pytest.mark.parametrize("spread", [2.0, 4.0, 12.0])
@pytest.mark.parametrize("seed", range(4))
def test_mixed_plans_come_close_to_the_lower_bound(seed: int, spread: float) -> None:
    draws = random.Random(f"{seed}-{spread}")
    jobs = [(draws.choice((1, 2, 4)), 10 * spread ** draws.random()) for _ in range(28)]
    assert played(jobs) <= 1.15 * bound(jobs)
