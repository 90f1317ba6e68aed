"""What vLLM would be started with: flags, GPUs, cores and environment."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engines.base import Command, Site
from engines.errors import EngineConfigError
from engines.spec import Drafter, EngineConfig, Layout, Model
from engines.vllm import VllmEngine
from engines.vllm_command import thread_binding


def config(**changes: Any) -> EngineConfig:
    plain = EngineConfig(
        engine="vllm",
        version="0.32.0",
        model=Model(name="served", path="some/model", max_context=8192),
        python="/env/bin/python",
        flags={"block_size": 16},
        seed=7,
    )
    return replace(plain, **changes)


def command(arm: EngineConfig, tmp_path: Path, **place: Any) -> Command:
    return VllmEngine().command(arm, Site(port=8100, directory=tmp_path, **place))


def value(argv: tuple[str, ...], flag: str) -> str:
    assert argv.count(flag) == 1, flag
    return argv[argv.index(flag) + 1]


def test_a_gpu_engine_gets_its_devices_and_layout(tmp_path: Path) -> None:
    started = command(config(layout=Layout(tp=2, dp=2)), tmp_path, devices=("2", "3", "GPU-ab", "7"))
    assert started.argv[:5] == ("/env/bin/python", "-m", "vllm.entrypoints.cli.main", "serve", "some/model")
    assert started.env["CUDA_VISIBLE_DEVICES"] == "2,3,GPU-ab,7"
    assert value(started.argv, "--tensor-parallel-size") == "2"
    assert value(started.argv, "--data-parallel-size") == "2"
    assert value(started.argv, "--distributed-executor-backend") == "mp"
    assert value(started.argv, "--api-server-count") == "1"
    assert value(started.argv, "--served-model-name") == "served"
    assert value(started.argv, "--host") == "127.0.0.1"
    assert value(started.argv, "--port") == "8100"
    assert value(started.argv, "--seed") == "7"
    assert value(started.argv, "--max-model-len") == "8192"
    assert value(started.argv, "--generation-config") == "vllm"
    assert "--enable-prompt-tokens-details" in started.argv
    assert "--no-async-scheduling" in started.argv
    assert started.env["VLLM_SERVER_DEV_MODE"] == "1"
    assert "VLLM_CPU_OMP_THREADS_BIND" not in started.env
    assert "VLLM_PLUGINS" not in started.env


def test_one_device_needs_no_executor(tmp_path: Path) -> None:
    assert "--distributed-executor-backend" not in command(config(), tmp_path, devices=("0",)).argv


def test_a_cpu_engine_sees_no_gpu_and_gets_its_cores(tmp_path: Path) -> None:
    started = command(config(device="cpu"), tmp_path, cpus=(0,))
    assert started.argv[1:5] == ("-m", "vllm.entrypoints.openai.api_server", "--model", "some/model")
    assert started.env["CUDA_VISIBLE_DEVICES"] == ""
    assert started.env["VLLM_CPU_OMP_THREADS_BIND"] == "0"
    assert started.env["VLLM_PLUGINS"] == "specload_synthetic"


@pytest.mark.parametrize(
    ("layout", "cpus", "binding"),
    [
        (Layout(), (), None),
        (Layout(), (3,), "3"),
        (Layout(), (0, 1), "0,1"),
        (Layout(tp=2), (), "nobind"),
        (Layout(tp=2), (0, 1), "0|1"),
        (Layout(dp=2), (4, 5, 6, 7), "4,5|6,7"),
        (Layout(tp=2, dp=2), (0, 1), "0|1|0|1"),
        (Layout(tp=2), (0,), "0|0"),
    ],
)
def test_cores_are_shared_out_by_rank(layout: Layout, cpus: tuple[int, ...], binding: str | None) -> None:
    assert thread_binding(config(layout=layout), cpus) == binding


def test_arms_of_a_pair_differ_in_the_speculative_config_only(tmp_path: Path) -> None:
    arm = config(drafter=Drafter(method="ngram", k=3))
    with_drafter, without = (command(each, tmp_path) for each in (arm, arm.baseline()))
    assert with_drafter.argv[: len(without.argv)] == without.argv
    flag, text, *reports = with_drafter.argv[len(without.argv) :]
    assert flag == "--speculative-config"
    assert reports == ["--per-request-spec-decode-metrics", "summary"]
    assert json.loads(text)["method"] == "ngram"
    assert with_drafter.env == without.env


def test_the_model_runner_is_pinned_and_can_be_chosen_for_all_arms(tmp_path: Path) -> None:
    assert command(config(), tmp_path).env["VLLM_USE_V2_MODEL_RUNNER"] == "0"
    chosen = config(env={"VLLM_USE_V2_MODEL_RUNNER": "1"})
    assert command(chosen, tmp_path).env["VLLM_USE_V2_MODEL_RUNNER"] == "1"


def test_folders_are_absolute_because_the_engine_works_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "draft").mkdir()
    (tmp_path / "target").mkdir()
    arm = config(
        model=Model(name="served", path="target"),
        drafter=Drafter(method="draft_model", k=2, model="draft"),
        python="env/bin/python",
    )
    started = command(arm, tmp_path)
    assert started.argv[0] == str(tmp_path / "env/bin/python")
    assert started.argv[4] == str(tmp_path / "target")
    assert json.loads(value(started.argv, "--speculative-config"))["model"] == str(tmp_path / "draft")
    assert started.env["HF_HUB_OFFLINE"] == "1"


@pytest.mark.parametrize("name", ["CUDA_VISIBLE_DEVICES", "RAY_ADDRESS", "RAY_JOB_ID"])
def test_the_placements_variables_cannot_be_set(tmp_path: Path, name: str) -> None:
    with pytest.raises(EngineConfigError, match=f"engine.env.{name}"):
        command(config(env={name: "0"}), tmp_path)


@pytest.mark.parametrize(
    ("changes", "key"),
    [({"model": Model(name="served")}, "model.path"), ({"python": None}, "engine.python")],
)
def test_what_is_missing_is_named(tmp_path: Path, changes: dict[str, Any], key: str) -> None:
    with pytest.raises(EngineConfigError, match=key):
        command(config(**changes), tmp_path)
