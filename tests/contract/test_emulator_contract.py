"""The emulator keeps the engine contract."""

from dataclasses import replace

import pytest

from engines.acceptance import Acceptance
from engines.base import Engine
from engines.emulator.adapter import EmulatorEngine
from engines.errors import EngineMemoryError, EngineStartError
from engines.spec import Drafter, EngineConfig, Layout, Model
from tests.contract.engine_contract import EngineContract


class TestEmulatorContract(EngineContract):
    @pytest.fixture(scope="class")
    @classmethod
    def engine(cls) -> Engine:
        return EmulatorEngine()

    @pytest.fixture(scope="class")
    @classmethod
    def speculative(cls, engine: Engine) -> EngineConfig:
        return EngineConfig(
            engine="emulator",
            version=engine.version(None),
            model=Model(name="llama-3.1-8b", max_context=4096),
            drafter=Drafter(method="eagle3", k=3, acceptance=Acceptance(alpha=0.7)),
            device="emulated",
            flags={"gpu": "h100", "time_scale": 0.1},
        )

    @pytest.fixture(scope="class")
    @classmethod
    def refused(cls, speculative: EngineConfig) -> tuple[EngineConfig, str]:
        return replace(speculative, layout=Layout(tp=3)), "emulator_heads"

    @pytest.fixture(scope="class")
    @classmethod
    def broken(cls, speculative: EngineConfig) -> tuple[EngineConfig, type[EngineStartError]]:
        return replace(speculative, model=Model(name="llama-3.1-70b", max_context=4096)), EngineMemoryError
