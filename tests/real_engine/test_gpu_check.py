"""`specload doctor --gpu` on real vLLM on the CPU: all that a measurement relies on is there."""

from pathlib import Path

import pytest

from engines.vllm_series import VLLM_SERIES
from orchestrator.commands.doctor import run

pytestmark = [pytest.mark.real_engine, pytest.mark.timeout(900)]


def test_nothing_is_missing(vllm_python: str, tiny_models: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = (
        "engine=vllm_cpu",
        f"engine.python={vllm_python}",
        "model=tiny",
        f"model.path={tiny_models / 'target'}",
        "drafter=tiny_agree60",
        f"drafter.model={tiny_models / 'draft60'}",
        "engine.flags.kv_cache_memory_bytes=268435456",
        "timeouts.ready=400",
    )
    code = run(["--gpu", *words])
    out = capsys.readouterr().out
    assert code == 0, out
    lines = out.splitlines()
    found = {line.partition(": ")[0] for line in lines if line.endswith(": ok, found")}
    assert found == {series.name for series in VLLM_SERIES}
    arm = next(line.partition(" ")[0] for line in lines if line.startswith("tp1/draft"))
    (counters,) = [line for line in lines if line.startswith(f"{arm} counters: ")]
    assert counters.startswith(f"{arm} counters: ok, moved by what the client saw; ")
    assert counters.endswith(tuple("0123456789"))
    assert f"{arm} drafts in each answer: ok, there" in lines
    assert [line for line in lines if line.startswith("pair: ok")]
