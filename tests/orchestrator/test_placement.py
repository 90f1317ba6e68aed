"""Which node a block goes to, and what is refused within seconds."""

import pytest

from orchestrator.errors import PlacementError
from orchestrator.placement import Demand, Node, check_feasible, fit, take
from orchestrator.plan import Cluster

CLUSTER = Cluster(address=None, resource="GPU", slots=None, cpus_per_device=2.0, load_cpus=1.0)
BIG = Node(name="big", devices=8, cpus=32)
SMALL = Node(name="small", devices=2, cpus=8)


def demand(devices: int, cores: int | None = None) -> Demand:
    return Demand(devices=devices, engine_cores=cores or 2 * devices, load_cores=1)


def test_a_block_goes_to_the_node_it_fills_best() -> None:
    where = fit(demand(2), [BIG, SMALL], [BIG, SMALL])
    assert where is not None
    assert where.node == "small"


def test_a_full_node_is_skipped_and_given_back() -> None:
    total = [BIG, SMALL]
    where = fit(demand(2), total, total)
    assert where is not None
    free = take(total, where, demand(2))
    other = fit(demand(2), free, total)
    assert other is not None
    assert other.node == "big"
    assert take(free, where, demand(2), sign=1) == total


def test_a_block_waits_while_its_node_is_busy() -> None:
    assert fit(demand(8), [Node(name="big", devices=6, cpus=28), SMALL], [BIG, SMALL]) is None


def test_too_few_cores_for_the_load_process_means_shared_cores_not_never() -> None:
    laptop = Node(name="laptop", devices=2, cpus=2)
    where = fit(demand(2, cores=2), [laptop], [laptop])
    assert where is not None
    assert (where.engine_cores, where.load_cores) == (2, 0)
    # but a node that is only busy right now is waited for
    assert fit(demand(1, cores=1), [Node(name="laptop", devices=1, cpus=1)], [laptop]) is None


@pytest.mark.parametrize("wanted", [demand(16), demand(2, cores=64)])
def test_impossible_demand_is_refused_with_what_the_nodes_offer(wanted: Demand) -> None:
    with pytest.raises(PlacementError, match=r"no node has them .nodes offer: 8 GPU and 32 CPU"):
        check_feasible([demand(2), wanted], [BIG, SMALL], CLUSTER)
