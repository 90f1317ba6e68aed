"""Adapters whose engines are not here keep what needs no engine of the contract."""

from dataclasses import replace

import pytest

from engines.base import Engine
from engines.sglang import SglangEngine
from engines.spec import Drafter, EngineConfig, Layout, Model
from engines.strategy import Decode
from engines.trtllm import TrtllmEngine
from tests.contract.engine_contract import AdapterContract


def config(engine: str) -> EngineConfig:
    return EngineConfig(
        engine=engine,
        version="1",
        model=Model(name="m", path="some/model"),
        drafter=Drafter(method="eagle3", k=3, model="some/head"),
        python="/env/bin/python",
        decode=Decode(max_num_seqs=64),
    )


class TestSglang(AdapterContract):
    @pytest.fixture(scope="class")
    @classmethod
    def engine(cls) -> Engine:
        return SglangEngine()

    @pytest.fixture(scope="class")
    @classmethod
    def speculative(cls) -> EngineConfig:
        return replace(config("sglang"), flags={"mem_fraction_static": 0.85})

    @pytest.fixture(scope="class")
    @classmethod
    def refused(cls, speculative: EngineConfig) -> tuple[EngineConfig, str]:
        return replace(speculative, flags={}), "sglang_memory"


class TestTrtllm(AdapterContract):
    @pytest.fixture(scope="class")
    @classmethod
    def engine(cls) -> Engine:
        return TrtllmEngine()

    @pytest.fixture(scope="class")
    @classmethod
    def speculative(cls) -> EngineConfig:
        return config("trtllm")

    @pytest.fixture(scope="class")
    @classmethod
    def refused(cls, speculative: EngineConfig) -> tuple[EngineConfig, str]:
        return replace(speculative, layout=Layout(dp=2)), "trtllm_data_parallel"
