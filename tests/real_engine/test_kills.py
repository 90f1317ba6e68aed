"""Real vLLM with two tensor-parallel workers: whoever of the chain is killed, no process of it survives.

driver -> raylet -> Ray worker (actor) -> outer guard -> inner guard -> API server -> EngineCore -> workers
"""

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from engines.base import Site
from engines.errors import EngineDiedError
from engines.launch import RunningEngine, start_engine
from engines.ports import lease_port
from engines.spec import EngineConfig, Layout
from engines.vllm import VllmEngine
from orchestrator.status import read_status
from tests.cluster.conftest import Sweeps, engine_tree, line_of, lives, wait_until

pytestmark = [pytest.mark.real_engine, pytest.mark.kills, pytest.mark.timeout(1500)]

SECONDS = 15.0
"""After a kill nothing of an engine may survive for longer."""
RAY_SECONDS = 240.0
"""Ray's own agents notice a killed driver late: up to two minutes were seen."""


def of(tree: list[psutil.Process], word: str) -> psutil.Process:
    return next(process for process in tree if word in line_of(process))


def guards(running: RunningEngine) -> list[psutil.Process]:
    """Return the outer and the inner guard."""
    inner = psutil.Process(running.process.pid).parent()
    assert inner is not None
    outer = inner.parent()
    assert outer is not None
    return [outer, inner]


VICTIMS: dict[str, Callable[[RunningEngine], psutil.Process]] = {
    "outer guard": lambda running: guards(running)[0],
    "inner guard": lambda running: guards(running)[1],
    "API server": lambda running: psutil.Process(running.process.pid),
    "EngineCore": lambda running: of(running.process.tree(), "EngineCore"),
    "worker": lambda running: of(running.process.tree(), "VLLM::Worker"),
}


@pytest.mark.parametrize("victim", VICTIMS)
def test_an_engine_dies_as_a_whole(tiny: EngineConfig, tmp_path: Path, victim: str) -> None:
    config = replace(tiny, layout=Layout(tp=2))
    with (
        lease_port() as lease,
        start_engine(
            VllmEngine(),
            config,
            Site(port=lease.port, directory=tmp_path),
            ready_seconds=400.0,
        ) as running,
    ):
        whole = [*guards(running), *running.process.tree()]
        assert sum("VLLM::Worker" in line_of(process) for process in whole) == 2, list(map(line_of, whole))
        VICTIMS[victim](running).kill()
        assert wait_until(lambda: not any(map(lives, whole)), seconds=SECONDS), [
            (process.pid, line_of(process)) for process in whole if lives(process)
        ]
        with pytest.raises(EngineDiedError):
            running.check_service()


@pytest.fixture
def words(vllm_python: str, tiny_models: Path) -> tuple[str, ...]:
    return (
        "engine=vllm_cpu",
        f"engine.python={vllm_python}",
        "model=tiny",
        f"model.path={tiny_models / 'target'}",
        "layout=tp2",
        "cluster.slots=2",
        "cluster.cpus_per_device=0.5",
        "drafter=free",
        "drafter.k=3",
        "workload=builtin",
        "workload.max_output_tokens=200",
        "load.concurrency=[1]",
        "design.blocks=1",
        "tracking=disabled",
    )


class Chain:
    """A sweep whose engine is up: its driver, and every process of the engine."""

    def __init__(self, sweeps: Sweeps, words: tuple[str, ...]) -> None:
        self._sweeps = sweeps
        self.driver: subprocess.Popen[str] = sweeps.start(*words)
        self._watched = psutil.Process(self.driver.pid)

    def engine(self) -> list[psutil.Process]:
        """Wait until a cell is being measured on a whole engine, and return the engine's processes."""
        assert wait_until(lambda: self._measures() or self.driver.poll() is not None, seconds=500)
        assert self.driver.poll() is None, self._sweeps.said()
        return engine_tree(self._watched)

    def _measures(self) -> bool:
        plans = list((self._sweeps.folder / "results").glob("*/status.json"))
        measuring = any(step.load for path in plans for step in read_status(path.parent).running)
        return (
            measuring
            and sum("VLLM::Worker" in line_of(process) for process in engine_tree(self._watched)) == 2
        )

    def below(self, word: str) -> psutil.Process:
        return of(self._watched.children(recursive=True), word)


@pytest.fixture
def sweeps(tmp_path: Path) -> Iterator[Sweeps]:
    found = Sweeps(tmp_path, common=())
    yield found
    for process in found.started:
        process.kill()
        process.wait()


def test_no_kill_of_rays_processes_leaves_an_engine(sweeps: Sweeps, words: tuple[str, ...]) -> None:
    def gone(tree: list[psutil.Process], *, seconds: float = SECONDS) -> None:
        assert wait_until(lambda: not any(map(lives, tree)), seconds=seconds), [
            (process.pid, line_of(process)) for process in tree if lives(process)
        ]

    chain = Chain(sweeps, words)
    tree = chain.engine()
    chain.below("BlockRunner").kill()
    gone(tree)
    tree = chain.engine()  # of the block's next segment
    everything = psutil.Process(chain.driver.pid).children(recursive=True)
    of(everything, "raylet/raylet").kill()
    gone(tree)
    chain.driver.kill()
    chain.driver.wait()
    gone(everything, seconds=RAY_SECONDS)
    for ending in (signal.SIGINT, signal.SIGKILL):  # the first one ends the actor with `ray.kill`
        # a sweep of its own: the block of the first one is given up
        chain = Chain(sweeps, (*words, f"seed={int(ending)}"))
        tree = chain.engine()
        everything = psutil.Process(chain.driver.pid).children(recursive=True)
        os.kill(chain.driver.pid, ending)
        gone(tree)
        chain.driver.wait(timeout=60)
        gone(everything, seconds=RAY_SECONDS)
