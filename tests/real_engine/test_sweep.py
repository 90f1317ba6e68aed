"""A small sweep on real vLLM, killed in the middle: nothing survives, and the same words finish the rest."""

import os
import signal
from collections import Counter
from pathlib import Path

import psutil
import pytest

from jobs.result import CLOSING, OPENING, TREATMENT
from tests.cluster.conftest import Sweeps, engine_tree, lives, wait_until
from tests.lateness import broken, played

pytestmark = pytest.mark.real_engine


@pytest.fixture
def words(vllm_python: str, tiny_models: Path) -> tuple[str, ...]:
    return (
        "engine=vllm_cpu",
        f"engine.python={vllm_python}",
        "model=tiny",
        f"model.path={tiny_models / 'target'}",
        "drafter=free",
        "drafter.k=3",
        "workload=builtin",
        "workload.limit=4",
        "workload.max_output_tokens=16",
        "load.concurrency=[1,4]",
        "design.blocks=1",
        "design.warmup_requests=1",
        "name=real",
    )


def test_a_real_sweep_survives_the_death_of_its_driver(tmp_path: Path, words: tuple[str, ...]) -> None:
    sweeps = Sweeps(tmp_path, common=())
    driver = sweeps.start(*words)
    watched = psutil.Process(driver.pid)
    # killed while the second engine is being measured, or comes up
    assert wait_until(lambda: len(sweeps.results()) >= 2 or driver.poll() is not None, seconds=400)
    assert driver.poll() is None, sweeps.said()
    assert wait_until(lambda: len(engine_tree(watched)) >= 2, seconds=60)
    engines = engine_tree(watched)
    os.kill(driver.pid, signal.SIGKILL)
    driver.wait()
    assert wait_until(lambda: not any(map(lives, engines)), seconds=15), [p for p in engines if lives(p)]
    before = sweeps.results()

    code, said = sweeps.run(*words, timeout=900)
    assert code == 0, said
    results = sweeps.results()
    assert sweeps.lost(before) == []
    done = Counter((result.role, result.segment) for result in results)
    assert done[(TREATMENT, 0)] + done[(TREATMENT, 1)] == 2
    assert {(OPENING, 1), (CLOSING, 1)} <= set(done)
    for result in results:
        assert broken(result) == {}
        assert played(result)
        assert not result.emulated
        assert result.metrics["tokens/client_output"] == result.metrics["tokens/engine_output"]
        assert result.synthetic is (result.role == TREATMENT)
        told = [gate.message for gate in result.gates if gate.name == "drafts_identity"]
        assert [message.startswith("the answers tell of") for message in told] == [True] * result.synthetic

    again, said = sweeps.run(*words)
    assert again == 0
    assert "0 engine starts" in said
