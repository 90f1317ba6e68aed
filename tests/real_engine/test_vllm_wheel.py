"""The wheel inside vLLM's environment: synthetic acceptance, the free drafter, the small models."""

import json
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from engines.acceptance import MINIMUM_VARIANCE, Acceptance, conditional_rates
from engines.base import Site
from engines.launch import start_engine
from engines.ports import lease_port
from engines.spec import Drafter, EngineConfig, Layout
from engines.vllm import VllmEngine
from jobs.gates.acceptance import acceptance_gates
from tests.contract.engine_contract import random_prompt

pytestmark = [pytest.mark.real_engine, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def draws(vllm_python: str) -> dict[str, Any]:
    script = Path(__file__).with_name("synthetic_draws.py")
    answer = subprocess.run([vllm_python, str(script)], capture_output=True, text=True, check=True)
    result: dict[str, Any] = json.loads(answer.stdout.splitlines()[-1])
    return result


@pytest.mark.parametrize("kernel", ["greedy", "random"])
@pytest.mark.parametrize(
    ("form", "acceptance"),
    [
        ("alpha", Acceptance(alpha=0.6912)),
        ("positions", Acceptance(positions=(0.9, 0.9, 0.3, 0.3, 0.1, 0.0, 0.0))),
        ("length", Acceptance(length=3.07, shape=MINIMUM_VARIANCE)),
    ],
)
def test_synthetic_kernels_accept_as_often_as_asked(
    draws: dict[str, Any], kernel: str, form: str, acceptance: Acceptance
) -> None:
    drawn = draws[f"{kernel} {form}"]
    # 20,000 requests: the standard error of a rate is at most .0035.
    assert drawn["rates"] == pytest.approx(acceptance.rates(7), abs=0.015)
    assert drawn["mal"] == pytest.approx(acceptance.mean_length(7), abs=0.06)
    assert drawn["last"]
    assert drawn["padding"]


def test_vllm_reads_rates_and_lengths_as_we_do(draws: dict[str, Any]) -> None:
    flat = Acceptance(length=3.07, shape=MINIMUM_VARIANCE).rates(7)
    assert draws["vllm"]["rates"] == pytest.approx(flat)
    assert draws["vllm"]["conditional"] == pytest.approx(conditional_rates(flat))


def test_in_a_mixed_batch_each_kernel_serves_its_own_requests(draws: dict[str, Any]) -> None:
    # Rates 1, 0: one draft each, then the target's token, of the greedy (8) or of the random kernel (5).
    assert draws["mixed"] == [[7, 8, -1], [7, 5, -1], [7, 8, -1]]


def test_real_acceptance_still_reaches_vllms_own_kernel(draws: dict[str, Any]) -> None:
    assert draws["real"] == [5, 6, 8, -1]


FORMS = [
    (Layout(), Acceptance(alpha=0.74)),
    (Layout(tp=2), Acceptance(length=3.07, shape=MINIMUM_VARIANCE)),
    (Layout(dp=2), Acceptance(positions=(0.9, 0.8, 0.8, 0.3, 0.1, 0.1, 0.0))),
]


@pytest.mark.parametrize(("layout", "acceptance"), FORMS, ids=["tp1-alpha", "tp2-flat", "dp2-positions"])
def test_a_free_drafter_is_accepted_as_often_as_asked(
    tiny: EngineConfig, tmp_path: Path, layout: Layout, acceptance: Acceptance
) -> None:
    drafter = Drafter(method="free", k=7, acceptance=acceptance)
    engine = VllmEngine()
    config = replace(tiny, drafter=drafter, layout=layout)
    forced = engine.forced_acceptance(config)
    assert forced is not None
    with lease_port() as lease:
        site = Site(port=lease.port, directory=tmp_path, cpus=(0, 1) if layout.devices > 1 else ())
        with start_engine(engine, config, site, ready_seconds=300) as running:
            before = engine.counters(running.server)
            with ThreadPoolExecutor(16) as pool:
                told = list(pool.map(lambda seed: _complete(running.server.url, seed), range(24)))
            counted = engine.counters(running.server).since(before)
    assert told == [400] * 24
    assert counted.generation_tokens == 9600
    # Every step but the last few of a request drafts K tokens: a cell's own MAL is its tokens per step.
    assert counted.draft_tokens == counted.drafts * 7
    mal = 1 + counted.accepted_tokens / counted.drafts
    gates = acceptance_gates(counted, {"spec/mal": mal}, forced)
    assert [(gate.name, gate.passed) for gate in gates] == [
        ("synthetic_acceptance", True),
        ("synthetic_positions", True),
    ], [gate.message for gate in gates]
    # Some 3,000 drafts: the standard error of the mean acceptance length is below .05.
    assert mal == pytest.approx(acceptance.mean_length(7), abs=0.2)


def _complete(url: str, seed: int) -> int:
    """Complete one request, every other one sampled, so that both kernels are met in one batch."""
    body = {
        "model": "tiny",
        "prompt": random_prompt(4000, 24, seed),
        "max_tokens": 400,
        "ignore_eos": True,
        "temperature": seed % 2,
        "seed": seed,
    }
    answer = httpx.post(f"{url}/v1/completions", json=body, timeout=120, trust_env=False)
    answer.raise_for_status()
    return int(answer.json()["usage"]["completion_tokens"])
