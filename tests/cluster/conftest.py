"""Sweeps as a user runs them: the command in a process of its own, real local Ray, the emulated engine."""

import json
import logging
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest
import ray
from ray.cluster_utils import Cluster as Nodes

from jobs.result import MEASURED, CellResult
from orchestrator.ledger import EARLIER, replaced_cell
from tests.lateness import ended

SPECLOAD = Path(sys.executable).with_name("specload")
SMALL = (
    "workload=short",
    "workload.limit=4",
    "engine.flags.gpu=a10",
    "+engine.flags.time_scale=0.02",
    "design.warmup_requests=1",
    "design.warmup_rounds_max=1",
)
"""A sweep whose cells take a second: the emulated hardware runs fifty times as fast as it would."""

BUSY_RUNS = 3
"""Most runs of a sweep that a busy machine keeps from measuring anything."""
MLFLOW_SERVER = {**os.environ, "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
"""Environment of a server without its eight processes for GenAI jobs."""


@dataclass
class Sweeps:
    """Starts sweeps in one folder and reads what they left."""

    folder: Path
    common: tuple[str, ...] = SMALL
    started: list["subprocess.Popen[str]"] = field(default_factory=list)

    def start(self, *words: str) -> "subprocess.Popen[str]":
        with (self.folder / f"out-{len(self.started)}.txt").open("w") as log:
            process = subprocess.Popen(
                [str(SPECLOAD), "sweep", *self.common, *words],
                cwd=self.folder,
                stdout=log,
                stderr=subprocess.STDOUT,
                text=True,
                env={**os.environ, "COLUMNS": "200"},
            )
        self.started.append(process)
        return process

    def run(self, *words: str, timeout: float = 300) -> tuple[int, str]:
        """Run a sweep to its end; return its exit code and all it printed."""
        process = self.start(*words)
        code = process.wait(timeout=timeout)
        return code, self.said()

    def run_whole(self, *words: str) -> str:
        """Run a sweep to its end, and return what it printed; anew where every cell was late."""
        for _ in range(BUSY_RUNS):
            code, said = self.run(*words)
            if code == 0 or not self.ended(code):
                break
            shutil.rmtree(self.folder / "results")
        assert code == 0, said
        return said

    def ended(self, code: int) -> bool:
        """Whether the latest sweep, with this exit code, ran to its end."""
        return ended(code, self.said(), self.results())

    def said(self) -> str:
        """Return what the latest sweep has printed."""
        return (self.folder / f"out-{len(self.started) - 1}.txt").read_text()

    @property
    def sweep(self) -> Path:
        (found,) = (path.parent for path in (self.folder / "results").glob("*/plan.json"))
        return found

    def results(self) -> list[CellResult]:
        found = [each for cells in (self.folder / "results").glob("*/cells") for each in results_in(cells)]
        return sorted(found, key=lambda result: result.started)

    def lost(self, before: Iterable[CellResult]) -> list[str]:
        """Return what was recorded and is no more."""
        return lost_cells(self.sweep / "cells", before)


def results_in(cells: Path) -> list[CellResult]:
    """Read the cells of a sweep that count, while it runs or later."""
    found = []
    for manifest in cells.glob("[!.]*/manifest.json"):
        with suppress(FileNotFoundError):  # a later try took its place in this moment
            text = manifest.with_name("result.json").read_text()
            found.append(CellResult.from_dict(json.loads(text)))
    return found


def lost_cells(cells: Path, before: Iterable[CellResult]) -> list[str]:
    """Return what is no more as it was: measured cells count on, others may lie beside those that do."""
    after = results_in(cells)
    beside = {replaced_cell(path.name) for path in cells.glob(f"{EARLIER}*")}
    return [
        result.cell
        for result in before
        if result not in after and (result.outcome == MEASURED or result.cell not in beside)
    ]


@pytest.fixture(scope="session", autouse=True)
def no_spare_workers() -> Iterator[None]:
    """Let the clusters of the tests start no worker that nobody asked for, as a local Ray of ours does."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_prestart_worker_first_driver", "0")
        yield


@pytest.fixture
def sweeps(tmp_path: Path) -> Iterator[Sweeps]:
    found = Sweeps(tmp_path)
    yield found
    for process in found.started:
        if process.poll() is None:
            process.kill()
            process.wait()


@dataclass
class Grid:
    """A Ray cluster of three nodes with a fake GPU each, and a head without any."""

    nodes: Nodes
    temporary: Path
    """TMPDIR of all its processes and of the drivers."""
    members: list[Any] = field(default_factory=list)

    def add_node(self) -> None:
        node = self.nodes.add_node(num_cpus=2, num_gpus=1, labels={"pool": "grid"})
        self.members.append(node)

    def remove_node(self, node: Any) -> None:
        """Kill a node's Ray at once, and with it what Ray started there."""
        self.members.remove(node)
        self.nodes.remove_node(node, allow_graceful=False)

    def blocks_of(self, node: Any) -> list[psutil.Process]:
        """Return the processes that run blocks on a node."""
        (raylet,) = node.all_processes["raylet"]
        below = psutil.Process(raylet.process.pid).children(recursive=True)
        return [process for process in below if lives(process) and "BlockRunner" in line_of(process)]

    @property
    def words(self) -> tuple[str, ...]:
        """What makes a sweep run here."""
        return (
            *SMALL,
            "cluster=auto",
            f"cluster.address={self.nodes.address}",
            "cluster.resource=GPU",
            "cluster.cpus_per_device=1",
            "+cluster.require.pool=grid",
            "timeouts.stop=5",
            "tracking=disabled",
        )


@pytest.fixture(scope="module")
def grid() -> Iterator[Grid]:
    folder = Path(tempfile.mkdtemp(prefix="slg-"))  # short: sockets lie in it
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", str(folder))
        nodes = Nodes(
            initialize_head=True, head_node_args={"num_cpus": 1, "num_gpus": 0, "include_dashboard": False}
        )
        try:
            found = Grid(nodes=nodes, temporary=folder)
            for _ in range(3):
                found.add_node()
            ray.init(address=nodes.address, log_to_driver=False, logging_level=logging.ERROR)
            yield found
        finally:
            ray.shutdown()
            nodes.shutdown()
            shutil.rmtree(folder, ignore_errors=True)


def wait_until(condition: Callable[[], bool], *, seconds: float) -> bool:
    """Poll `condition`; False when it still does not hold at the end."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True


def engine_tree(driver: psutil.Process) -> list[psutil.Process]:
    """Every living process below the driver that is part of an engine or a load process."""
    marks = ("engines.emulator", "engines/guard", "engines.guard", "jobs.replay", "vllm", "VLLM")
    found = []
    for process in driver.children(recursive=True):
        try:
            if any(mark in " ".join(process.cmdline()) for mark in marks):
                found.append(process)
        except psutil.Error:
            continue
    return found


def line_of(process: psutil.Process) -> str:
    """Return a process' command line, empty once it is gone."""
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


def lives(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False
