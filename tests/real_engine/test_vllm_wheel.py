"""The wheel inside vLLM's environment: synthetic acceptance, the free drafter, the small models."""

import json
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engines.acceptance import Acceptance
from engines.base import Site
from engines.launch import start_engine
from engines.ports import lease_port
from engines.spec import Drafter, EngineConfig, Layout
from engines.vllm import VllmEngine
from tests.contract.engine_contract import complete, random_prompt

pytestmark = [pytest.mark.real_engine, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def draws(vllm_python: str) -> dict[str, Any]:
    script = Path(__file__).with_name("synthetic_draws.py")
    answer = subprocess.run([vllm_python, str(script)], capture_output=True, text=True, check=True)
    result: dict[str, Any] = json.loads(answer.stdout.splitlines()[-1])
    return result


@pytest.mark.parametrize("kernel", ["greedy", "random"])
def test_synthetic_kernels_accept_as_often_as_asked(draws: dict[str, Any], kernel: str) -> None:
    drawn = draws[kernel]
    # 20,000 requests: the standard error of a rate is at most .0035.
    assert drawn["rates"] == pytest.approx([0.6912**position for position in range(1, 8)], abs=0.015)
    assert drawn["mal"] == pytest.approx(3.07, abs=0.06)
    assert drawn["last"]
    assert drawn["padding"]


def test_real_acceptance_still_reaches_vllms_own_kernel(draws: dict[str, Any]) -> None:
    assert draws["real"] == [5, 6, 8, -1]


@pytest.mark.parametrize("layout", [Layout(), Layout(tp=2), Layout(dp=2)], ids=lambda layout: layout.label)
def test_a_free_drafter_is_accepted_as_often_as_asked(
    tiny: EngineConfig, tmp_path: Path, layout: Layout
) -> None:
    drafter = Drafter(method="free", k=7, acceptance=Acceptance(alpha=0.74))
    engine = VllmEngine()
    config = replace(tiny, drafter=drafter, layout=layout)
    with lease_port() as lease:
        site = Site(port=lease.port, directory=tmp_path, cpus=(0, 1) if layout.devices > 1 else ())
        with start_engine(engine, config, site, ready_seconds=300) as running:
            before = engine.counters(running.server)
            answers = [complete(running, random_prompt(4000, 24, seed), tokens=400) for seed in range(4)]
            counted = engine.counters(running.server).since(before)
    assert [answer.completion_tokens for answer in answers] == [400] * 4
    assert counted.generation_tokens == 1600
    # About 450 steps: the standard error of the mean acceptance length is near .13.
    assert 1 + counted.accepted_tokens / counted.drafts == pytest.approx(3.5003, abs=0.5)
    # Every step but the last few of a request drafts K tokens: a cell's own MAL is its tokens per step.
    assert counted.draft_tokens == counted.drafts * 7
