"""Nodes, workers, load processes and drivers that are killed while a sweep runs on several nodes."""

import os
import signal
import subprocess
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import psutil
import pytest

from jobs.result import TREATMENT
from tests.cluster.conftest import Grid, Sweeps, line_of, lives, wait_until
from tests.cluster.leftovers import nothing_left
from tests.lateness import played

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]

WORDS = (
    "drafter=eagle3",
    "drafter.k=3",
    "load.concurrency=[2]",
    "design.blocks=3",
    "engine.flags.time_scale=0.1",
)
"""Three blocks, one a node, whose replays last long enough to be hit."""
_T = TypeVar("_T")


def wait_for(find: Callable[[], _T], driver: "subprocess.Popen[str]", sweeps: Sweeps) -> _T:
    """Return the first thing that `find` finds while the driver runs."""
    found: list[_T] = []

    def look() -> bool:
        if one := find():
            found.append(one)
        return bool(found) or driver.poll() is not None

    assert wait_until(look, seconds=240), sweeps.said()
    assert found, sweeps.said()
    return found[0]


def below(process: psutil.Process, *words: str) -> list[psutil.Process]:
    """Return the living processes below one whose command lines have all the words."""
    try:
        found = process.children(recursive=True)
    except psutil.Error:
        return []
    return [child for child in found if all(word in line_of(child) for word in words)]


def replays(grid: Grid) -> list[psutil.Process]:
    """Return the load processes that replay a treatment's cell right now; no warm-ups."""
    return [
        load
        for node in grid.members
        for block in grid.blocks_of(node)
        if below(block, "engines.emulator", "eagle3")
        for load in below(block, "jobs.replay")
        if "/replay " in line_of(load)
    ]


def busy(grid: Grid) -> list[tuple[Any, psutil.Process]]:
    """Return the nodes on which an engine runs, with the block's process."""
    return [
        (node, block)
        for node in grid.members
        for block in grid.blocks_of(node)
        if below(block, "engines.emulator")
    ]


def killed(processes: list[psutil.Process]) -> bool:
    """Kill the first of them that still lives; False when none does."""
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.kill()
            return True
    return False


def check_whole(sweeps: Sweeps) -> None:
    """Check that every treatment was measured, and once."""
    treatments = [result for result in sweeps.results() if result.role == TREATMENT]
    assert Counter(result.block for result in treatments) == {0: 1, 1: 1, 2: 1}
    for result in treatments:
        assert played(result), (result.cause, result.reason)


def test_a_load_process_a_worker_and_a_node_are_lost_and_everything_is_measured(
    tmp_path: Path, grid: Grid
) -> None:
    sweeps = Sweeps(tmp_path, common=grid.words)
    with nothing_left(grid.temporary, tmp_path / "results"):
        driver = sweeps.start(*WORDS)
        wait_for(lambda: killed(replays(grid)), driver, sweeps)

        _, worker = wait_for(lambda: busy(grid), driver, sweeps)[-1]
        engines = worker.children(recursive=True)
        worker.kill()
        assert wait_until(lambda: not any(map(lives, engines)), seconds=15), list(map(line_of, engines))

        node, worker = wait_for(lambda: busy(grid), driver, sweeps)[0]
        engines = [worker, *worker.children(recursive=True)]
        grid.remove_node(node)
        assert wait_until(lambda: not any(map(lives, engines)), seconds=30), list(map(line_of, engines))
        assert sweeps.ended(driver.wait(timeout=400)), sweeps.said()
    check_whole(sweeps)
    said = " ".join(sweeps.said().split())
    assert "failed (load_process: " in said, said
    assert said.count("the block's process was lost") + said.count("its node left the cluster") == 2, said


def test_a_killed_and_an_interrupted_driver_leave_nothing_and_the_same_words_finish(
    tmp_path: Path, grid: Grid
) -> None:
    sweeps = Sweeps(tmp_path, common=grid.words)
    while len(grid.members) < 3:
        grid.add_node()
    for ending, code in ((signal.SIGKILL, -9), (signal.SIGINT, 130)):
        done = len(sweeps.results())
        with nothing_left(grid.temporary, tmp_path / "results"):
            driver = sweeps.start(*WORDS)
            wait_for(lambda known=done: len(sweeps.results()) > known and busy(grid), driver, sweeps)
            os.kill(driver.pid, ending)
            assert driver.wait(timeout=60) == code, sweeps.said()
    before = sweeps.results()
    assert len(before) >= 2
    with nothing_left(grid.temporary, tmp_path / "results"):
        code, said = sweeps.run(*WORDS, timeout=400)
        assert sweeps.ended(code), said
    check_whole(sweeps)
    assert sweeps.lost(before) == []
