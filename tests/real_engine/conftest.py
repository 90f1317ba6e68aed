"""The engine environment and the small models that `make engine-env models` builds."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from engines.spec import Drafter, EngineConfig, Model
from engines.vllm import VllmEngine

ROOT = Path(__file__).resolve().parents[2]
CPU_FLAGS = {
    "dtype": "float32",
    "enforce_eager": True,
    "block_size": 32,
    "max_num_seqs": 32,
    "max_num_batched_tokens": 2048,
    "kv_cache_memory_bytes": 268_435_456,
}


@pytest.fixture(scope="session", autouse=True)
def one_thread_each() -> Iterator[None]:
    """Let what runs in the engine's environment compute on one thread: tests run beside each other.

    Threads that wait for one another spin: two such processes on two cores take longer than one by one.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMP_NUM_THREADS", "1")
        yield


@pytest.fixture(scope="session")
def vllm_python() -> str:
    python = ROOT / ".venv-vllm" / "bin" / "python"
    if not python.exists():
        pytest.skip("no engine environment: run `make engine-env`")
    return str(python)


@pytest.fixture(scope="session")
def tiny_models() -> Path:
    folder = ROOT / ".cache" / "models" / "tiny"
    if not (folder / "target" / "config.json").exists():
        pytest.skip("no small models: run `make models`")
    return folder


@pytest.fixture(scope="session")
def tiny(vllm_python: str, tiny_models: Path) -> EngineConfig:
    """The tiny target without a drafter."""
    return EngineConfig(
        engine="vllm",
        version=VllmEngine().version(vllm_python),
        model=Model(name="tiny", path=str(tiny_models / "target"), max_context=2048),
        drafter=Drafter(),
        python=vllm_python,
        device="cpu",
        flags=CPU_FLAGS,
    )
