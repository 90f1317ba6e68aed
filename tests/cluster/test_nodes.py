"""Nodes, workers, load processes and drivers that are killed while a sweep runs on several nodes."""

import os
import signal
import subprocess
from collections import Counter
from pathlib import Path

import psutil
import pytest

from jobs.result import MEASURED, TREATMENT, CellResult
from tests.cluster.conftest import Grid, Sweeps, line_of, lives, wait_until
from tests.cluster.leftovers import nothing_left
from tests.lateness import LATENESS

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]

WORDS = (
    "drafter=eagle3",
    "drafter.k=3",
    "load.concurrency=[1,2]",
    "design.blocks=3",
    "engine.flags.time_scale=0.1",
)
"""Three blocks, one a node, whose replays last long enough to be hit."""


def whole(results: list[CellResult]) -> None:
    """Every treatment was measured, and once."""
    found = Counter((result.block, result.load) for result in results if result.role == TREATMENT)
    assert found == {(block, load): 1 for block in range(3) for load in ("c1", "c2")}, found
    for result in results:
        if result.role == TREATMENT:
            assert result.outcome == MEASURED or result.cause in LATENESS, (result.cause, result.reason)


def below(process: psutil.Process, *words: str) -> list[psutil.Process]:
    """Return the living processes below one whose command lines have all the words."""
    try:
        found = process.children(recursive=True)
    except psutil.Error:
        return []
    return [child for child in found if all(word in line_of(child) for word in words)]


def replays(grid: Grid, node: object) -> list[psutil.Process]:
    """Return the load processes that replay a treatment's cell on a node right now; no warm-ups."""
    return [
        load
        for block in grid.blocks_of(node)
        if below(block, "engines.emulator", "eagle3")
        for load in below(block, "jobs.replay")
        if "/replay " in line_of(load)
    ]


def busy(grid: Grid) -> list[object]:
    return [node for node in grid.members if grid.blocks_of(node)]


def waited_for(what: list[object], driver: "subprocess.Popen[str]", sweeps: Sweeps) -> None:
    assert what, f"never came (driver: {driver.poll()})\n{sweeps.said()}"


def test_a_load_process_a_worker_and_a_node_are_lost_and_everything_is_measured(
    tmp_path: Path, grid: Grid
) -> None:
    sweeps = Sweeps(tmp_path, common=grid.words)
    with nothing_left(grid.temporary, tmp_path / "results"):
        driver = sweeps.start(*WORDS)
        assert wait_until(lambda: len(busy(grid)) == 3 or driver.poll() is not None, seconds=180)
        assert driver.poll() is None, sweeps.said()
        first, second, third = grid.members

        found: list[psutil.Process] = []
        assert wait_until(
            lambda: bool(found.extend(replays(grid, first)) or found) or driver.poll() is not None,
            seconds=120,
        )
        assert driver.poll() is None, sweeps.said()
        found[0].kill()

        assert wait_until(lambda: bool(grid.blocks_of(second)) or driver.poll() is not None, seconds=120)
        (worker,) = grid.blocks_of(second)
        engines = worker.children(recursive=True)
        worker.kill()
        assert wait_until(lambda: not any(map(lives, engines)), seconds=15), list(map(line_of, engines))

        assert wait_until(lambda: bool(grid.blocks_of(third)) or driver.poll() is not None, seconds=120)
        (worker,) = grid.blocks_of(third)
        engines = [worker, *worker.children(recursive=True)]
        grid.remove_node(third)
        assert wait_until(lambda: not any(map(lives, engines)), seconds=30), list(map(line_of, engines))
        assert driver.wait(timeout=400) == 0, sweeps.said()
    whole(sweeps.results())
    said = " ".join(sweeps.said().split())
    assert "load_process" in said, said
    assert "process was lost" in said, said
    assert {result.segment for result in sweeps.results()} >= {0, 1}


def test_a_killed_and_an_interrupted_driver_leave_nothing_and_the_same_words_finish(
    tmp_path: Path, grid: Grid
) -> None:
    sweeps = Sweeps(tmp_path, common=grid.words)
    while len(grid.members) < 3:
        grid.add_node()
    for number, ending in enumerate((signal.SIGKILL, signal.SIGINT)):
        with nothing_left(grid.temporary, tmp_path / "results"):
            driver = sweeps.start(*WORDS)
            done = len(sweeps.results())
            assert wait_until(
                lambda d=driver, n=done: (
                    d.poll() is not None or (len(sweeps.results()) > n and len(busy(grid)) > 0)
                ),  # type: ignore[misc]  # lambda's defaults
                seconds=180,
            )
            assert driver.poll() is None, (number, sweeps.said())
            os.kill(driver.pid, ending)
            code = driver.wait(timeout=60)
            assert code == (-9 if ending == signal.SIGKILL else 130), sweeps.said()
    before = {result.cell for result in sweeps.results()}
    with nothing_left(grid.temporary, tmp_path / "results"):
        code, said = sweeps.run(*WORDS, timeout=400)
    assert code == 0, said
    whole(sweeps.results())
    assert before <= {result.cell for result in sweeps.results()}
