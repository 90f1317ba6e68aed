"""Real vLLM on the CPU keeps the engine contract."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from engines.base import Engine
from engines.errors import EngineStartError, MissingModelError
from engines.launch import RunningEngine
from engines.spec import Drafter, EngineConfig, Layout
from engines.vllm import VllmEngine
from tests.contract.engine_contract import EngineContract, complete, random_prompt

pytestmark = [pytest.mark.real_engine, pytest.mark.timeout(900)]


class TestVllmContract(EngineContract):
    ready_seconds = 300.0

    @pytest.fixture(scope="class")
    @classmethod
    def engine(cls) -> Engine:
        return VllmEngine()

    @pytest.fixture(scope="class")
    @classmethod
    def speculative(cls, tiny: EngineConfig, tiny_models: Path) -> EngineConfig:
        return replace(tiny, drafter=Drafter(method="draft_model", k=3, model=str(tiny_models / "draft60")))

    @pytest.fixture(scope="class")
    @classmethod
    def refused(cls, speculative: EngineConfig) -> tuple[EngineConfig, str]:
        return replace(speculative, layout=Layout(tp=3)), "heads_divisible_by_tp"

    @pytest.fixture(scope="class")
    @classmethod
    def broken(
        cls, tiny: EngineConfig, tiny_models: Path, tmp_path_factory: pytest.TempPathFactory
    ) -> tuple[EngineConfig, type[EngineStartError]]:
        hollow = tmp_path_factory.mktemp("hollow") / "model"
        shutil.copytree(tiny_models / "target", hollow, ignore=shutil.ignore_patterns("*.safetensors"))
        return replace(tiny, model=replace(tiny.model, path=str(hollow))), MissingModelError

    def test_a_drafter_agrees_as_often_as_it_was_built_to(
        self, engine: Engine, running: RunningEngine
    ) -> None:
        before = engine.counters(running.server)
        for seed in range(4):
            complete(running, random_prompt(self.vocabulary, 40, 600 + seed), tokens=200)
        counted = engine.counters(running.server).since(before)
        assert 1 + counted.accepted_tokens / counted.drafts == pytest.approx(2.176, abs=0.15)
