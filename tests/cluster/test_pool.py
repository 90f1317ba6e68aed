"""Blocks over the nodes of a cluster: who goes where, several at once, and nothing reserved afterwards."""

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import ray
from ray.cluster_utils import Cluster as Nodes
from ray.util.placement_group import placement_group_table

from benchmarks.sleeping import arms_of, block_of, plan_of, workload
from jobs.result import CellResult
from jobs.task import BlockTask, EngineReport, GpusHeld, Report
from orchestrator.driver import run_sweep
from orchestrator.errors import PlacementError
from orchestrator.pending import Segment, pending
from orchestrator.plan import Cluster, Plan
from orchestrator.planning import make_plan
from orchestrator.pool import BlockPool
from orchestrator.standing import GPUS_HELD, NODE_LOST, BlockEnded, PoolNote
from orchestrator.sweep import collect
from orchestrator.tracking import NullRecorder
from tests.cluster.conftest import SMALL, wait_until

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def nodes() -> Iterator[Nodes]:
    """A head without devices, four devices in zone a, and two in zone b."""
    cluster = Nodes(
        initialize_head=True, head_node_args={"num_cpus": 1, "num_gpus": 0, "include_dashboard": False}
    )
    for zone, devices in (("a", 4), ("b", 2)):
        add_node(cluster, zone, devices)
    ray.init(address=cluster.address, log_to_driver=False, logging_level=logging.ERROR)
    yield cluster
    ray.shutdown()
    cluster.shutdown()


def add_node(cluster: Nodes, zone: str, devices: int) -> Any:
    return cluster.add_node(
        num_cpus=2 * devices, num_gpus=0, resources={"engine_slot": devices}, labels={"zone": zone}
    )


@pytest.fixture(autouse=True)
def all_given_back(nodes: Nodes) -> Iterator[None]:
    yield

    def states() -> set[str]:
        return {group["state"] for group in placement_group_table().values()}

    assert wait_until(lambda: states() <= {"REMOVED"}, seconds=30), states()
    owned = ray.cluster_resources()["engine_slot"]
    assert wait_until(lambda: ray.available_resources().get("engine_slot") == owned, seconds=30)


class LocatedRunner:
    """Says on which node it is, sleeps, and ends; reports held devices where it is told to."""

    def run(self, task: BlockTask) -> Iterator[Report]:
        flags = task.runs[0].config.flags
        node = ray.get_runtime_context().get_node_id()
        yield EngineReport(run=task.runs[0].run, label=node, ready=True, seconds=0.0)
        time.sleep(flags["start_seconds"])
        if flags["replay_seconds"] < 0:
            yield GpusHeld(
                block=task.block, segment=task.segment, devices=("7",), message="1 GiB is still held"
            )


@dataclass
class Played:
    """What a pool said, in order."""

    where: dict[int, str] = field(default_factory=dict)
    """Block -> zone it ran in."""
    order: list[int] = field(default_factory=list)
    """Blocks in the order in which they were first heard of."""
    beside: list[set[int]] = field(default_factory=list)
    """Blocks that held a slice together, whenever something was said."""
    ended: list[BlockEnded] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def plan_for(
    nodes: Nodes, slices: Sequence[int], *, seconds: float = 0.5, held: bool = False, **keys: Any
) -> Plan:
    """Return a plan with one sleeping block for each slice of so many devices."""
    cluster = Cluster(
        address=nodes.address, resource="engine_slot", slots=None, cpus_per_device=0.5, load_cpus=1.0, **keys
    )
    flags = {"start_seconds": seconds, "replay_seconds": -1.0 if held else 0.0}
    arms = {devices: arms_of(devices, (), (1,), flags) for devices in slices}
    blocks = [block_of(index, arms[devices]) for index, devices in enumerate(slices)]
    return plan_of("pool", [arm for found in arms.values() for arm in found], blocks, cluster)


def play(
    plan: Plan,
    *,
    admit: Callable[[Segment], bool | None] | None = None,
    heard: Callable[[BlockPool, Report | BlockEnded | PoolNote], None] = lambda pool, report: None,
) -> Played:
    """Run every block of the plan and return what was said; `heard` is called at each report."""
    zones = {node["NodeID"]: node["Labels"].get("zone", "") for node in ray.nodes()}
    played = Played()
    with BlockPool(plan, workload(), runner=LocatedRunner) as pool:
        for report in pool.reports(pending(plan, []), admit=admit):
            # a process may take long to start, and says nothing until then: what counts is the slice
            played.beside.append({running.block for running in pool.snapshot().running})
            if isinstance(report, EngineReport):
                block = int(report.run[1:].partition("-")[0])
                zones |= {node["NodeID"]: node["Labels"].get("zone", "") for node in ray.nodes()}
                played.where[block] = zones[report.label]
                played.order.append(block)
            elif isinstance(report, BlockEnded):
                played.ended.append(report)
            elif isinstance(report, PoolNote):
                played.notes.append(report.message)
            heard(pool, report)
    return played


def test_mixed_sizes_run_at_once_the_largest_first(nodes: Nodes) -> None:
    played = play(plan_for(nodes, [1, 1, 2, 4]))
    assert played.beside[0] == {2, 3}, "the two largest did not start first, and at once"
    assert (played.where[3], played.where[2]) == ("a", "b")
    assert [ended.error for ended in played.ended] == [None] * 4


def test_labels_are_respected(nodes: Nodes) -> None:
    assert play(plan_for(nodes, [1, 1, 1], require={"zone": "!a"})).where == {0: "b", 1: "b", 2: "b"}
    assert play(plan_for(nodes, [1], require={"zone": "in(a, c)"})).where == {0: "a"}


def test_a_block_can_have_its_node_for_itself(nodes: Nodes) -> None:
    played = play(plan_for(nodes, [1, 1, 1, 1], exclusive_node=True))
    assert sorted(played.where) == [0, 1, 2, 3]
    for together in played.beside:
        zones = [played.where[block] for block in together]
        assert len(set(zones)) == len(zones), "two blocks were on one node"
    assert max(map(len, played.beside)) == 2, "one node was left empty"


def test_what_fits_nowhere_is_refused_before_anything_starts(nodes: Nodes) -> None:
    with pytest.raises(PlacementError, match=r"needs 8 engine_slot.*4 engine_slot and 8 CPU \[zone=a\]"):
        play(plan_for(nodes, [1, 8]))
    with pytest.raises(PlacementError, match=r"on one node with zone=b.*relax cluster\.require"):
        play(plan_for(nodes, [4], require={"zone": "b"}))


def test_a_block_waits_for_a_node_that_joins_and_is_lost_with_it(nodes: Nodes) -> None:
    joined: list[Any] = []

    def heard(pool: BlockPool, report: Report | BlockEnded | PoolNote) -> None:
        if isinstance(report, BlockEnded) and not joined:
            assert pool.snapshot().waiting == 1
            joined.append(add_node(nodes, "c", 8))
        elif isinstance(report, EngineReport) and joined:
            assert pool.snapshot().devices_in_use == 8
            nodes.remove_node(joined[0])

    # the small one goes on meanwhile; the large one would sleep for ever
    plan = plan_for(nodes, [1, 8], seconds=0.5, on_infeasible="wait")
    flags = {"start_seconds": 600.0, "replay_seconds": 0.0}
    large = arms_of(8, (), (1,), flags)
    plan = replace(plan, arms=(*plan.arms, *large), blocks=(plan.blocks[0], block_of(1, large)))
    played = play(plan, heard=heard)
    assert played.where[1] == "c"
    assert [note.partition(":")[0] for note in played.notes] == [
        "waiting for a node to join (cluster.on_infeasible=wait), while other blocks go on"
    ]
    assert [ended.cause for ended in played.ended] == [None, NODE_LOST]


def test_devices_that_are_held_are_set_aside_until_the_end(nodes: Nodes) -> None:
    owned = ray.cluster_resources()["engine_slot"]
    left: list[float] = []

    def heard(pool: BlockPool, report: Report | BlockEnded | PoolNote) -> None:
        if isinstance(report, BlockEnded):
            assert pool.snapshot().devices_held == 2
            assert pool.snapshot().devices_in_use == 0
            left.append(owned - ray.available_resources()["engine_slot"])

    played = play(plan_for(nodes, [2], held=True, require={"zone": "b"}), heard=heard)
    (ended,) = played.ended
    assert ended.cause == GPUS_HELD
    assert "1 GiB is still held" in (ended.error or "")
    assert played.notes == ["devices 7 are set aside until the sweep ends: 1 GiB is still held"]
    assert left == [2.0]


def test_a_block_can_be_refused_or_put_off_right_before_it_starts(nodes: Nodes) -> None:
    asked: list[int] = []

    def admit(segment: Segment) -> bool | None:
        asked.append(segment.block.index)
        answers = {0: True, 1: False, 2: None if asked.count(2) < 3 else True}
        return answers[segment.block.index]

    played = play(plan_for(nodes, [1, 1, 1]), admit=admit)
    assert played.order == [0, 2]
    assert sorted(asked) == [0, 1, 2, 2, 2]


def test_stopping_ends_everything_now(nodes: Nodes) -> None:
    plan = plan_for(nodes, [4, 4, 1], seconds=600)
    played = play(plan, heard=lambda pool, report: pool.stop())
    assert len(played.order) == 1
    assert played.ended == []


def span(plan: Plan, results: list[CellResult], block: int) -> tuple[float, float]:
    cells = [result for result in results if result.block == block]
    starts = [datetime.fromisoformat(cell.started).timestamp() for cell in cells]
    return min(starts), max(start + cell.seconds for start, cell in zip(starts, cells, strict=True))


def test_a_sweep_runs_on_several_nodes_at_once(nodes: Nodes, tmp_path: Path) -> None:
    words = ("drafter=eagle3", "drafter.k=3", "load.concurrency=[1]", "design.blocks=2", "tracking=disabled")
    planned = make_plan(collect([*SMALL, *words]))
    cluster = replace(
        planned.plan.cluster, address=nodes.address, slots=None, cpus_per_device=1.0, exclusive_node=True
    )
    plan = replace(planned.plan, cluster=cluster)
    said: list[str] = []
    outcome = run_sweep(plan, planned.workload, tmp_path, recorder=NullRecorder(), say=said.append)
    results = list(outcome.results)
    assert len(results) == 6
    (first_start, first_end), (second_start, second_end) = (span(plan, results, block) for block in range(2))
    assert max(first_start, second_start) < min(first_end, second_end), "the blocks ran one after the other"
