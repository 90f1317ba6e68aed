"""How a block goes onto a node, which nodes are suitable, and what is refused within seconds."""

from typing import Any

import pytest

from orchestrator.errors import ConfigError
from orchestrator.labels import check_require, matches, selector
from orchestrator.placement import Demand, Node, allowed, fit, infeasible, offers
from orchestrator.plan import Cluster
from orchestrator.planning import cluster_for

CLUSTER = Cluster(
    address="head:6379",
    resource="GPU",
    slots=None,
    cpus_per_device=2.0,
    load_cpus=1.0,
    require={"accelerator": "H100", "zone": "in(a, b)"},
)
H100 = Node(
    name="n1", devices=8, cpus=32, labels={"ray.io/accelerator-type": "H100", "zone": "a"}, host="10.0.0.1"
)
A100 = Node(name="n2", devices=2, cpus=8, labels={"ray.io/accelerator-type": "A100", "ray.io/node-id": "n2"})


def demand(devices: int, cores: int | None = None) -> Demand:
    return Demand(devices=devices, engine_cores=cores or 2 * devices, load_cores=1)


def test_a_slice_brings_its_cores_and_those_of_the_load_process() -> None:
    assert Demand.of(4, CLUSTER) == Demand(devices=4, engine_cores=8, load_cores=1)
    found = fit(Demand.of(4, CLUSTER), H100, H100)
    assert found is not None
    assert (found.node, found.devices, found.engine_cores, found.load_cores) == ("n1", 4, 8, 1)


def test_too_few_cores_for_the_load_process_means_shared_cores_not_never() -> None:
    laptop = Node(name="laptop", devices=2, cpus=2)
    where = fit(demand(2, cores=2), laptop, laptop)
    assert where is not None
    assert (where.engine_cores, where.load_cores) == (2, 0)
    # but a node that is only busy right now is waited for
    assert fit(demand(1, cores=1), Node(name="laptop", devices=1, cpus=1), laptop) is None


@pytest.mark.parametrize(
    ("value", "label", "expected"),
    [
        ("H100", "H100", True),
        ("H100", "H200", False),
        ("H100", None, False),
        ("!H100", "H200", True),
        ("!H100", "H100", False),
        ("!H100", None, True),
        ("in(H100, H200)", "H200", True),
        ("in(H100,H200)", "A100", False),
        ("!in(H100,H200)", "A100", True),
    ],
)
def test_labels_match_as_ray_matches_them(value: str, label: str | None, expected: bool) -> None:
    labels = {} if label is None else {"gpu": label}
    assert matches({"gpu": value}, labels) is expected


def test_accelerator_stands_for_rays_own_label() -> None:
    assert selector(CLUSTER.require) == {"ray.io/accelerator-type": "H100", "zone": "in(a, b)"}
    assert allowed([A100, H100], CLUSTER) == [H100]


@pytest.mark.parametrize(
    "require", [{"gpu": "H100 H200"}, {"gpu": "in()"}, {"a/b/c": "x"}, {"": "x"}, {"g": ""}]
)
def test_a_label_that_ray_could_not_read_is_refused(require: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match=r"cluster\.require has .* in\(H100, H200\)"):
        check_require(require)


def test_a_refusal_says_what_the_nodes_offer_and_what_to_do() -> None:
    message = infeasible(demand(16), [H100, A100, A100], CLUSTER, aside=2)
    assert (
        "a block needs 16 GPU and at least 32 CPU on one node with accelerator=H100, zone=in(a, b)" in message
    )
    assert "8 GPU and 32 CPU [ray.io/accelerator-type=H100, zone=a]" in message
    assert "2 times 2 GPU and 8 CPU [ray.io/accelerator-type=A100], 2 of them set aside" in message
    assert "cluster.on_infeasible=wait" in message
    assert offers([], CLUSTER) == "none"


SETTINGS = {
    "address": None,
    "resource": None,
    "slots": None,
    "cpus_per_device": None,
    "load_cpus": 1.0,
    "require": {"accelerator": "H100"},
    "exclusive_node": True,
    "on_infeasible": "fail",
}


def test_the_keys_of_the_cluster_reach_the_plan() -> None:
    cluster = cluster_for({**SETTINGS, "address": "auto", "on_infeasible": "wait"}, "gpu")
    assert (cluster.require, cluster.exclusive_node, cluster.on_infeasible) == (
        {"accelerator": "H100"},
        True,
        "wait",
    )


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"on_infeasible": "maybe"}, "cluster.on_infeasible is 'maybe'; choose fail .* or wait"),
        ({"on_infeasible": "wait"}, "a local Ray never grows"),
        ({"require": {"accelerator": "H100 or H200"}}, r"cluster.require has accelerator: 'H100 or H200'"),
    ],
)
def test_keys_of_the_cluster_that_cannot_be(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        cluster_for({**SETTINGS, **changed}, "gpu")
