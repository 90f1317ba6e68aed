"""`specload doctor --gpu` on an emulated engine, and on GPUs that a patched NVML describes."""

from dataclasses import replace
from types import SimpleNamespace

import pynvml
import pytest

from engines.emulator.adapter import EmulatorEngine
from engines.series import Series
from engines.spec import Drafter, EngineConfig, Model
from engines.vllm_series import EMULATOR_SERIES, PROMPT_BY_SOURCE
from jobs.gpu_facts import GpuFacts, NodeGpus, Tenant, node_gpus
from orchestrator.commands.doctor import run
from orchestrator.doctor import MISSING, NOTE, OK
from orchestrator.engine_check import drafter_difference
from orchestrator.gpu_check import check_words
from orchestrator.gpu_devices import device_findings

QUICK = ("engine=emulator", "engine.flags.gpu=a10", "+engine.flags.time_scale=0.05")
GPU = GpuFacts(
    index=0,
    name="NVIDIA H100",
    uuid="GPU-1",
    total_mib=81_920.0,
    used_mib=4.0,
    mig=False,
    persistent=True,
    throttled=(),
    tenants=(),
    unreadable={},
)


def test_a_whole_engine_passes_with_and_without_its_drafter(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--gpu", *QUICK]) == 0
    lines = capsys.readouterr().out.splitlines()
    for series in EMULATOR_SERIES:
        assert [line for line in lines if line.startswith(f"{series.name}: ")] == [
            f"{series.name}: ok, found"
        ]
    for arm in ("tp1/none", "tp1/eagle3-k3"):
        said = {line.removeprefix(arm).partition(":")[0].strip() for line in lines if line.startswith(arm)}
        expected = {
            "start", "configuration", "stream", "usage on every chunk", "cached tokens in usage", "counters",
            "prefix cache", "cache salts", "cache reset", "KV capacity", "stop",
        }  # fmt: skip
        assert said == expected | ({"drafts in each answer"} if "eagle3" in arm else set())
    assert [line for line in lines if "confirmed, 0 tokens cached" in line]
    assert [line for line in lines if "mean acceptance length" in line]
    assert lines[-2].startswith("pair: ok")
    assert lines[-1] == "all that a measurement relies on is there"


def test_what_an_engine_lacks_is_named_with_what_it_costs(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    absent = (
        Series(name="vllm:absent_total", use="the answer", required=True),
        Series(name="vllm:other_total", use="a caveat"),
        Series(name="vllm:old_total", use="tokens", instead=PROMPT_BY_SOURCE.name),
        Series(name="vllm:draft_total", use="drafts", drafter=True),
    )
    options = {"ignore_eos": True, "temperature": 0, "stream_options": {"include_usage": True}}
    able = replace(EmulatorEngine.capabilities, request_options=options)
    monkeypatch.setattr(EmulatorEngine, "series", absent)
    monkeypatch.setattr(EmulatorEngine, "capabilities", able)
    monkeypatch.setattr(EmulatorEngine, "reset_cache", lambda self, server: False)
    assert run(["--gpu", *QUICK, "drafter=none"]) == 1
    said = dict(line.split(": ", 1) for line in capsys.readouterr().out.splitlines() if ": " in line)
    assert said["vllm:absent_total"].startswith("missing, missing; nothing can be measured without it: the")
    assert said["vllm:other_total"].startswith("note, missing; without it is not known: a caveat")
    assert said["vllm:old_total"] == f"note, {PROMPT_BY_SOURCE.name} takes its place"
    assert "vllm:draft_total" not in said
    assert said["tp1/none usage on every chunk"].startswith("missing, not there; tokens are spread evenly")
    assert said["tp1/none cache reset"].startswith("missing, not confirmed, 240 tokens cached after it")
    assert said["tp1/none stop"].startswith("ok")


def test_an_engine_that_does_not_start_is_a_finding(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--gpu", *QUICK, "+engine.flags.fail={at: oom_start}"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].startswith("tp1/none start: missing, out_of_memory; engine tp1/none ended during start")
    assert lines[-1] == "1 missing"


def test_without_a_gpu_an_engine_that_needs_one_is_not_started(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_driver() -> None:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_LIBRARY_NOT_FOUND)

    monkeypatch.setattr(pynvml, "nvmlInit", no_driver)
    assert run(["--gpu"]) == 1
    out = capsys.readouterr().out
    assert "GPUs: note, none" in out
    assert "engine vllm: missing, it needs a GPU" in out


def test_words_are_completed_by_what_the_engine_can_run() -> None:
    assert check_words([]) == ["engine=vllm", "model=smollm2", "drafter=ngram"]
    assert check_words(["engine=vllm_cpu", "drafter.k=5"]) == [
        "model=smollm2", "drafter=ngram", "engine=vllm_cpu", "drafter.k=5",
    ]  # fmt: skip
    assert check_words(["engine=emulator", "drafter=none"])[:1] == ["model=llama31_8b"]


def states(*gpus: GpuFacts) -> dict[str, str]:
    node = NodeGpus(driver="570.1", cuda="12.8", gpus=gpus)
    return {finding.what: finding.state for finding in device_findings(node)}


def test_a_free_gpu_that_tells_everything_passes() -> None:
    assert set(states(GPU).values()) == {OK}


@pytest.mark.parametrize(
    ("changes", "what", "state"),
    [
        ({"tenants": (Tenant(pid=7, name="python", mib=900.0),)}, "GPU 0 tenants", MISSING),
        ({"used_mib": 5000.0}, "GPU 0 tenants", MISSING),
        ({"tenants": None}, "GPU 0 tenants", NOTE),
        ({"used_mib": None}, "GPU 0", MISSING),
        ({"mig": True}, "GPU 0 MIG", MISSING),
        ({"persistent": False}, "GPU 0 persistence", NOTE),
        ({"throttled": ("power cap",)}, "GPU 0 clocks", NOTE),
        ({"unreadable": {"power": "Not Supported"}}, "GPU 0 sensors", NOTE),
    ],
)
def test_what_is_wrong_with_a_gpu_is_found(changes: dict[str, object], what: str, state: str) -> None:
    assert states(replace(GPU, **changes))[what] == state  # type: ignore[arg-type]  # fields by name


def test_facts_come_from_nvml_and_each_question_fails_on_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)

    answers = {
        "nvmlInit": lambda: None,
        "nvmlShutdown": lambda: None,
        "nvmlDeviceGetCount": lambda: 1,
        "nvmlSystemGetDriverVersion": lambda: "570.1",
        "nvmlSystemGetCudaDriverVersion": lambda: 12080,
        "nvmlDeviceGetHandleByIndex": lambda index: index,
        "nvmlDeviceGetName": lambda handle: "NVIDIA H100",
        "nvmlDeviceGetUUID": lambda handle: "GPU-1",
        "nvmlDeviceGetMemoryInfo": lambda handle: SimpleNamespace(total=80 * 2**30, used=3 * 2**20),
        "nvmlDeviceGetMigMode": refused,
        "nvmlDeviceGetPersistenceMode": lambda handle: pynvml.NVML_FEATURE_DISABLED,
        "nvmlDeviceGetComputeRunningProcesses": lambda handle: [
            SimpleNamespace(pid=2**22 + 1, usedGpuMemory=None)
        ],
        "nvmlDeviceGetTotalEnergyConsumption": refused,
        "nvmlDeviceGetPowerUsage": lambda handle: 300_000,
        "nvmlDeviceGetClockInfo": lambda handle, kind: 1980,
        "nvmlDeviceGetTemperatureV": lambda handle, sensor: 60,
        "nvmlDeviceGetCurrentClocksEventReasons": lambda handle: pynvml.nvmlClocksEventReasonSwPowerCap,
    }
    for name, answer in answers.items():
        monkeypatch.setattr(pynvml, name, answer)
    node = node_gpus()
    assert (node.driver, node.cuda) == ("570.1", "12.8")
    (gpu,) = node.gpus
    assert gpu == GpuFacts(
        index=0,
        name="NVIDIA H100",
        uuid="GPU-1",
        total_mib=81_920.0,
        used_mib=3.0,
        mig=None,
        persistent=False,
        throttled=("power cap",),
        tenants=(Tenant(pid=2**22 + 1, name="", mib=None),),
        unreadable={"energy counter": "Not Supported"},
    )


def test_a_pair_that_differs_in_more_than_the_drafter_is_named() -> None:
    engine = EmulatorEngine()
    config = EngineConfig(
        engine="emulator",
        version="1",
        model=Model(name="m"),
        device="emulated",
        drafter=Drafter(method="ngram", k=3),
    )
    plain = {"speculative_config.method": None, "scheduler_config.max_num_seqs": 32}
    assert drafter_difference(engine, config, plain, {**plain, "speculative_config.method": "x"}).state == OK
    found = drafter_difference(engine, config, plain, {**plain, "scheduler_config.max_num_seqs": 16})
    assert (found.state, found.detail) == (MISSING, "scheduler_config.max_num_seqs: 32 and 16")
