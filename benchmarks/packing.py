"""How well a sweep of mixed blocks is packed over the nodes of a cluster, and what the driver costs a cell.

    python benchmarks/packing.py [--seconds 3.0] [--cells 50,5000] [--mlflow 50]

Everything is real, Ray's nodes and processes, pool, driver, ledger and report, except engines and load: a
block only sleeps as long as its engine starts and replays would take (`sleeping.py`).

Packing: 30 blocks of unequal length on 1, 2 or 4 devices, on nodes of 4, 4 and 2. Nothing is known about
their durations before, as in the first sweep of a study; the driver learns them as blocks end. The lower
bound is what the sizes of the nodes allow: the longest block, and for each size g the device time of slices
of at least g over the devices of nodes of at least g. `serial` is the order of `vllm bench sweep`: one block
after the other on the whole cluster. Both use the seconds that the blocks slept; placing them, starting their
processes and writing results counts against the packing. Ten nodes' processes on a small machine weigh more
beside blocks of a minute than a cluster's beside blocks of an hour: --seconds scales what is slept.

Driver: sweeps without any sleep, so that the driver is what everything waits for: wall time from the first
recorded cell to the last, over the cells; the time for the report at the end; and the driver's peak memory,
in a process of its own.
"""

import argparse
import json
import logging
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import Any

os.environ.setdefault("RAY_AUTH_MODE", "disabled")  # a cluster of this process, on this machine
os.environ.setdefault("RAY_enable_worker_prestart", "0")  # the workers that are needed, and no more
os.environ.setdefault("RAY_prestart_worker_first_driver", "0")

import ray
from ray.cluster_utils import Cluster as Nodes
from sleeping import SleepingRunner, arms_of, block_of, plan_of, workload

from jobs.result import CellResult
from orchestrator.driver import run_sweep
from orchestrator.plan import Arm, Block, Cluster, Plan
from orchestrator.tracking import NullRecorder, Recorder, recorder_for

NODES = (4, 4, 2)
"""Devices of each node."""
BLOCKS = {4: 8, 2: 10, 1: 12}
"""Devices of a slice -> how many blocks."""
LIMITS = {"makespan_over_lower_bound": 1.15}
RUNS = {50: (2, 5), 500: (5, 10), 5000: (20, 10)}
"""Cells -> (blocks, levels) of the plan that measures the driver; the rest is arms."""


def main() -> int:
    """Run both parts, print the tables and, last, one line of JSON."""
    parser = argparse.ArgumentParser(description="packing of mixed blocks, and the driver's cost")
    parser.add_argument(
        "--seconds", type=float, default=3.0, help="shortest replay; an engine start takes 1.5 times as long"
    )
    parser.add_argument("--cells", default="50,5000", help=f"sizes of the driver's sweeps: of {list(RUNS)}")
    parser.add_argument(
        "--mlflow", default="50", help="sizes that are run with MLflow on SQLite too; '' for none"
    )
    parser.add_argument("--driver", nargs=3, help=argparse.SUPPRESS, metavar=("CELLS", "ADDRESS", "TRACKING"))
    options = parser.parse_args()
    if options.driver:
        print(json.dumps(drive(int(options.driver[0]), options.driver[1], options.driver[2])))
        return 0
    nodes = start_nodes()
    try:
        figures = pack(nodes.address, options.seconds)
        for cells in sizes(options.cells):
            found = measure_driver(cells, nodes.address, "disabled")
            figures[f"driver_ms_per_cell_{cells}"] = round(found["ms_per_cell"], 2)
            figures[f"driver_peak_rss_mib_{cells}"] = round(found["peak_rss_mib"])
        for cells in sizes(options.mlflow):
            measure_driver(cells, nodes.address, "sqlite")
    finally:
        nodes.shutdown()  # type: ignore[no-untyped-call]
    names = (
        "makespan_over_lower_bound",
        "serial_over_lower_bound",
        "driver_ms_per_cell_50",
        "driver_ms_per_cell_5000",
        "driver_peak_rss_mib_5000",
    )
    print(json.dumps({name: figures.get(name) for name in names}))
    return 0 if figures["makespan_over_lower_bound"] <= LIMITS["makespan_over_lower_bound"] else 1


def sizes(text: str) -> list[int]:
    """Return the numbers of a list such as `50,5000`."""
    return [int(part) for part in text.split(",") if part]


def start_nodes() -> Nodes:
    """Start a head without devices, and the nodes."""
    nodes = Nodes(
        initialize_head=True, head_node_args={"num_cpus": 1, "num_gpus": 0, "include_dashboard": False}
    )
    for devices in NODES:
        nodes.add_node(num_cpus=2 * devices, num_gpus=0, resources={"engine_slot": devices})
    return nodes


def cluster_at(address: str) -> Cluster:
    """Return the cluster of a plan."""
    return Cluster(address=address, resource="engine_slot", slots=None, cpus_per_device=0.5, load_cpus=1.0)


class Watch:
    """A recorder that notes when each cell reaches the one behind it."""

    def __init__(self, behind: Recorder) -> None:
        self._behind = behind
        self.times: list[float] = []

    def __getattr__(self, name: str) -> Any:
        """Leave all else to the recorder behind."""
        return getattr(self._behind, name)

    def record(self, result: CellResult, directory: Path | None) -> None:
        """Note the time, and record."""
        self.times.append(time.monotonic())
        self._behind.record(result, directory)


def pack(address: str, seconds: float) -> dict[str, float]:
    """Run the mixed plan and print how it was packed."""
    plan = mixed_plan(address, seconds)
    watch = Watch(NullRecorder())
    ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
    try:
        with tempfile.TemporaryDirectory() as folder, redirect_stdout(sys.stderr):
            begun = time.monotonic()
            outcome = run_sweep(
                plan, workload(), Path(folder), recorder=watch, say=print, runner=SleepingRunner
            )
    finally:
        ray.shutdown()
    makespan = max(watch.times) - begun
    lengths = {block.index: slept_seconds(outcome.results, block) for block in plan.blocks}
    jobs = [(block.devices, lengths[block.index]) for block in plan.blocks]
    bound, parts = lower_bound(jobs)
    serial = sum(lengths.values())
    print(f"{len(jobs)} blocks on nodes of {', '.join(map(str, NODES))} devices")
    print(f"{'slice':>8}{'blocks':>8}{'shortest s':>12}{'longest s':>12}{'bound s':>10}")
    for size in sorted(BLOCKS, reverse=True):
        mine = [length for devices, length in jobs if devices == size]
        print(f"{size:>8}{len(mine):>8}{min(mine):>12.1f}{max(mine):>12.1f}{parts[size]:>10.1f}")
    print(f"{'':<24}{'seconds':>10}{'over bound':>12}{'must reach':>12}")
    limit = LIMITS["makespan_over_lower_bound"]
    print(f"{'lower bound':<24}{bound:>10.1f}{1:>12.3f}")
    print(f"{'makespan':<24}{makespan:>10.1f}{makespan / bound:>12.3f}{limit:>12.2f}")
    print(f"{'serial':<24}{serial:>10.1f}{serial / bound:>12.3f}")
    return {
        "makespan_over_lower_bound": round(makespan / bound, 4),
        "serial_over_lower_bound": round(serial / bound, 4),
    }


def mixed_plan(address: str, seconds: float) -> Plan:
    """Return blocks of three sizes and of unequal length: 1 to 5 treatments at 1 to 3 levels."""
    draws = random.Random("packing")
    flags = {"start_seconds": 1.5 * seconds, "replay_seconds": seconds}
    arms: list[Arm] = []
    blocks: list[Block] = []
    for devices, count in BLOCKS.items():
        baseline, *treatments = arms_of(devices, (1, 3, 5, 7, 9), (1, 4, 16), flags)
        arms += [baseline, *treatments]
        for _ in range(count):
            chosen = draws.sample(treatments, draws.randint(1, len(treatments)))
            blocks.append(block_of(len(blocks), (baseline, *chosen), draws.randint(1, 3)))
    return plan_of("packing", arms, blocks, cluster_at(address))


def slept_seconds(results: Sequence[CellResult], block: Block) -> float:
    """Return how long a block's process slept, as its cells tell."""
    mine = [result for result in results if result.block == block.index]
    return sum(result.seconds + (result.start_seconds or 0.0) for result in mine)


def lower_bound(jobs: Sequence[tuple[int, float]]) -> tuple[float, dict[int, float]]:
    """Return the least makespan that the sizes of the nodes allow, and what each size of slices asks for."""
    parts = {
        size: sum(devices * seconds for devices, seconds in jobs if devices >= size)
        / sum(devices for devices in NODES if devices >= size)
        for size in BLOCKS
    }
    return max(*(seconds for _, seconds in jobs), *parts.values()), parts


def measure_driver(cells: int, address: str, tracking: str) -> dict[str, float]:
    """Run a sweep of so many cells in a process of its own, and print what it took."""
    command = [sys.executable, __file__, "--driver", str(cells), address, tracking]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    print(
        f"driver, {cells} cells, MLflow {tracking}: {found['ms_per_cell']:.1f} ms a cell, then "
        f"{found['finish_s']:.1f} s for the report; {found['cpu_ms']:.1f} ms of CPU a cell in all; "
        f"peak {found['peak_rss_mib']:.0f} MiB"
    )
    return found


def drive(cells: int, address: str, tracking: str) -> dict[str, float]:
    """Run a sweep without sleep; return milliseconds a cell and peak memory of this process."""
    blocks, levels = RUNS[cells]
    arms = arms_of(
        1,
        range(1, cells // blocks // levels - 1),
        [2**power for power in range(levels)],
        {"start_seconds": 0.0, "replay_seconds": 0.0},
    )
    plan = plan_of("driver", arms, [block_of(index, arms) for index in range(blocks)], cluster_at(address))
    with tempfile.TemporaryDirectory() as folder, redirect_stdout(sys.stderr):
        if tracking != "disabled":
            plan = replace(plan, tracking={**plan.tracking, "uri": None})
        watch = Watch(recorder_for(plan, Path(folder)))
        unsaid: list[str] = []
        cpu = time.process_time()
        outcome = run_sweep(
            plan, workload(), Path(folder), recorder=watch, say=unsaid.append, runner=SleepingRunner
        )
        ended, cpu = time.monotonic(), time.process_time() - cpu
        assert outcome.new.done == cells, (outcome.new, cells)
    first, last = watch.times[0], watch.times[-1]
    return {
        "ms_per_cell": (last - first) / cells * 1000,
        "finish_s": ended - last,
        "cpu_ms": cpu / cells * 1000,
        "peak_rss_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


if __name__ == "__main__":
    raise SystemExit(main())
