"""Planning sweeps over servers that somebody else runs."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from orchestrator.endpoints import one_at_a_time
from orchestrator.errors import ConfigError
from orchestrator.plan import Cluster, Plan
from orchestrator.planning import make_plan
from orchestrator.sweep import Point, collect
from tests.orchestrator.points import with_values

URLS = {"none": "http://127.0.0.1:1", "eagle3-k3": "http://127.0.0.1:2"}
ENDPOINT = {"engine.name": "endpoint", "engine.flags": {"urls": URLS}}


@pytest.fixture(scope="module")
def composed() -> Point:
    """The point of a study on an emulator that somebody else runs."""
    (point,) = collect(["drafter=eagle3", "workload.limit=6", "design.blocks=2", "name=study"])
    return point


def planned(point: Point, *changes: Mapping[str, Any]) -> Plan:
    return make_plan([with_values(point, {**ENDPOINT, **values}) for values in changes or ({},)]).plan


def test_a_plan_of_endpoints_runs_one_block_at_a_time_and_says_whose_they_are(composed: Point) -> None:
    plan = planned(composed)
    assert [arm.label for arm in plan.arms] == ["tp1/none", "tp1/eagle3-k3"]
    assert [arm.config.version for arm in plan.arms] == ["unknown"] * 2
    assert plan.cluster.exclusive_node
    assert any("somebody else runs the server" in note for note in plan.notes)
    assert plan == Plan.from_dict(plan.to_dict())


def test_an_arm_without_a_server_is_infeasible_with_the_key_to_set(composed: Point) -> None:
    plan = planned(composed, {}, {"drafter.k": 5})
    (refused,) = plan.refused
    assert refused.rule == "endpoint_settings"
    assert "+engine.flags.urls={eagle3-k5: URL}" in refused.reason


def test_a_slice_of_several_replicas_needs_as_many_servers(composed: Point) -> None:
    urls = {**URLS, "tp2/none": "http://h:3", "tp2/eagle3-k3": "http://h:4"}
    narrow: dict[str, Any] = {"engine.flags": {"urls": urls}}
    wide = {**narrow, "layout.tp": 2}
    with pytest.raises(ConfigError, match=r"tp1/none has 1 .* holds 2 servers of its size; list 2"):
        planned(composed, narrow, wide)
    assert len(planned(composed, *({**each, "design.share": "layout"} for each in (narrow, wide))).arms) == 4


def test_a_header_is_named_by_its_variable_and_never_by_its_value(
    composed: Point, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ENDPOINT_TOKEN", "an-open-secret-77")
    flags = {"urls": URLS, "headers": {"X-Secret": "ENDPOINT_TOKEN"}}
    plan = planned(composed, {"engine.flags": flags})
    assert "an-open-secret-77" not in repr(plan.to_dict())
    with pytest.raises(ConfigError, match="X-Secret"):
        planned(composed, {"engine.flags": {**flags, "headers": {"X-Secret": "an-open-secret-77"}}})


def test_nodes_of_a_cluster_would_meet_on_one_server() -> None:
    local = Cluster(address=None, resource="engine_slot", slots=8, cpus_per_device=0.01, load_cpus=1.0)
    assert one_at_a_time(local).exclusive_node
    with pytest.raises(ConfigError, match=r"leave cluster\.address out"):
        one_at_a_time(replace(local, address="auto"))
