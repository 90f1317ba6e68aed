"""Blocks over the nodes of a cluster: several at once, and nothing reserved afterwards."""

import logging
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest
import ray
from ray.cluster_utils import Cluster as Nodes

from jobs.result import CellResult
from orchestrator.driver import run_sweep
from orchestrator.plan import Plan
from orchestrator.planning import make_plan
from orchestrator.sweep import collect
from orchestrator.tracking import NullRecorder
from tests.cluster.conftest import SMALL

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def nodes() -> Iterator[Nodes]:
    """A head without devices and two nodes with one each."""
    cluster = Nodes(
        initialize_head=True, head_node_args={"num_cpus": 1, "num_gpus": 0, "include_dashboard": False}
    )
    for _ in range(2):
        cluster.add_node(num_cpus=2, num_gpus=0, resources={"engine_slot": 1})
    ray.init(address=cluster.address, log_to_driver=False, logging_level=logging.ERROR)
    yield cluster
    ray.shutdown()
    cluster.shutdown()


def span(plan: Plan, results: list[CellResult], block: int) -> tuple[float, float]:
    cells = [result for result in results if result.block == block]
    starts = [datetime.fromisoformat(cell.started).timestamp() for cell in cells]
    return min(starts), max(start + cell.seconds for start, cell in zip(starts, cells, strict=True))


def test_blocks_run_on_several_nodes_at_once(nodes: Nodes, tmp_path: Path) -> None:
    points = collect(
        [
            *SMALL,
            "drafter=eagle3",
            "drafter.k=3",
            "load.concurrency=[1]",
            "design.blocks=2",
            "tracking=disabled",
        ]
    )
    planned = make_plan(points)
    cluster = replace(planned.plan.cluster, address=nodes.address, slots=None, cpus_per_device=1.0)
    plan = replace(planned.plan, cluster=cluster)
    said: list[str] = []
    outcome = run_sweep(plan, planned.workload, tmp_path, recorder=NullRecorder(), say=said.append)
    results = list(outcome.results)
    assert len(results) == 6
    (first_start, first_end), (second_start, second_end) = (span(plan, results, block) for block in range(2))
    assert max(first_start, second_start) < min(first_end, second_end), "the blocks ran one after the other"
    assert {group["state"] for group in ray.util.placement_group_table().values()} <= {"REMOVED"}
    assert ray.available_resources()["engine_slot"] == 2.0
