import threading
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pynvml
import pytest

from engines.base import Engine, Server
from engines.counters import Counters
from engines.errors import EngineError
from engines.spec import EngineConfig, Model
from jobs import gpus
from jobs.errors import GpusHeldError
from jobs.gpus import GpuMeter
from jobs.telemetry import Sampler

COUNTERS = Counters(
    time=0.0,
    prompt_tokens=0,
    cached_prompt_tokens=0,
    computed_prompt_tokens=0,
    generation_tokens=7,
    drafts=0,
    draft_tokens=0,
    accepted_tokens=0,
    accepted_per_position=(),
    preemptions=1,
    prefix_queries=0,
    prefix_hits=0,
    step_intervals=0,
    step_seconds=0.0,
    first_tokens=0,
    running=3,
    waiting=2,
    kv_usage=0.25,
)


class Source:
    """Answers as the counters of an engine, and says when it was asked so often."""

    def __init__(self, asked: int, fails: bool = False) -> None:
        self.left = asked
        self.fails = fails
        self.done = threading.Event()

    def counters(self, server: Server) -> Counters:
        self.left -= 1
        if self.left <= 0:
            self.done.set()
        if self.fails:
            raise EngineError("gone")
        return replace(COUNTERS, running=server.pid or 0)


def server(pid: int, device: str = "cpu") -> Server:
    config = EngineConfig(engine="vllm", version="1", model=Model(name="m"), device=device)
    return Server(url="http://127.0.0.1:1", config=config, pid=pid)


def sampled(source: Source, *servers: Server) -> Sampler:
    with Sampler(cast("Engine", source), servers, interval=0.01) as sampler:
        assert source.done.wait(20)
    return sampler


def test_every_replica_has_a_row_at_every_sample() -> None:
    before = time.monotonic_ns()
    sampler = sampled(Source(6), server(11), server(12))
    assert sampler.absent == ()
    assert len(sampler.rows) >= 6
    assert [row["replica"] for row in sampler.rows[:4]] == [0, 1, 0, 1]
    assert [row["running"] for row in sampler.rows[:2]] == [11, 12]
    first = sampler.rows[0]
    assert (first["waiting"], first["kv_usage"], first["generation_tokens"], first["preemptions"]) == (
        2,
        0.25,
        7,
        1,
    )
    times = [row["time"] for row in sampler.rows]
    assert times == sorted(times)
    assert before <= times[0] <= times[-1] <= time.monotonic_ns()


def test_it_samples_no_more_once_the_block_has_ended() -> None:
    sampler = sampled(Source(2), server(1))
    count = len(sampler.rows)
    time.sleep(0.05)
    assert len(sampler.rows) == count


def test_the_hosts_first_share_is_unknown_and_later_ones_are_shares() -> None:
    sampler = sampled(Source(30), server(1))
    assert sampler.rows[0]["host_cpu"] is None
    later = [row["host_cpu"] for row in sampler.rows[1:] if row["host_cpu"] is not None]
    assert later
    assert all(0.0 <= share <= 1.0 for share in later)
    assert sampler.rows[0]["host_memory_gib"] > 0


def test_an_engine_that_does_not_answer_is_named_and_the_host_is_read_on() -> None:
    sampler = sampled(Source(3, fails=True), server(1))
    assert len(sampler.rows) >= 3
    assert {row["running"] for row in sampler.rows} == {None}
    assert sampler.rows[0]["host_memory_gib"] > 0
    assert sampler.absent == ("engine gauges",)


def test_the_host_is_read_before_and_after_whatever_happens_in_the_block() -> None:
    entered = time.monotonic_ns()
    sampler = Sampler(cast("Engine", Source(1)), [server(1), server(2)], interval=60.0)
    with sampler:
        inside = time.monotonic_ns()
    left = time.monotonic_ns()
    assert entered <= sampler.rows[0]["sampled"] <= inside
    assert inside <= sampler.rows[-1]["sampled"] <= left
    assert sampler.rows[-1]["running"] == 2  # the engine too
    assert sampler.rows[-2]["sampled"] == sampler.rows[-1]["sampled"]


def test_an_engine_that_failed_in_the_block_is_not_asked_again() -> None:
    source = Source(10**9)
    sampler = Sampler(cast("Engine", source), [server(1)], interval=60.0)
    with pytest.raises(EngineError), sampler:
        raise EngineError("hung")
    assert sampler.rows[-1]["running"] is None
    assert sampler.rows[-1]["host_memory_gib"] > 0


@pytest.mark.skipif(Path("/dev/nvidiactl").exists(), reason="this machine has a GPU")
def test_without_a_driver_each_source_of_an_engine_on_gpus_is_named() -> None:
    sampler = sampled(Source(1), server(1, device="gpu"))
    (absent,) = sampler.absent
    assert absent.startswith(
        "GPU energy counter, power, memory in use, SM clock, memory clock, temperature, throttle reasons "
        "(NVML: "
    )
    assert not [name for name in sampler.rows[0] if name.startswith("gpu")]


def test_an_engine_without_gpus_has_no_gpu_telemetry_to_miss() -> None:
    assert sampled(Source(1), server(1)).absent == ()


def by_uuid(uuid: str) -> int:
    if not uuid.startswith("GPU-"):
        raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_FOUND)
    return int(uuid[-1])


def energy(handle: int) -> int:
    if handle == 2:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)
    return 1_000_000


@pytest.fixture
def nvml(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A driver with three GPUs, of which GPU 2 tells no energy; returns the openings and closings."""
    calls: list[str] = []
    functions: dict[str, Any] = {
        "nvmlInit": lambda: calls.append("open"),
        "nvmlShutdown": lambda: calls.append("close"),
        "nvmlDeviceGetCount": lambda: 3,
        "nvmlDeviceGetHandleByIndex": lambda index: index,
        "nvmlDeviceGetHandleByUUID": by_uuid,
        "nvmlDeviceGetTotalEnergyConsumption": energy,
        "nvmlDeviceGetPowerUsage": lambda handle: 300_000 + handle,
        "nvmlDeviceGetMemoryInfo": lambda handle: SimpleNamespace(used=(handle + 1) * 2**30),
        "nvmlDeviceGetClockInfo": lambda handle, kind: (
            {pynvml.NVML_CLOCK_SM: 1980, pynvml.NVML_CLOCK_MEM: 2619}[kind] - handle
        ),
        "nvmlDeviceGetTemperatureV": lambda handle, sensor: 60 + handle,
        "nvmlDeviceGetCurrentClocksEventReasons": lambda handle: pynvml.nvmlClocksEventReasonSwPowerCap,
    }
    for name, function in functions.items():
        monkeypatch.setattr(pynvml, name, function)
    return calls


def test_each_visible_gpu_has_columns_of_its_own_in_plain_units(nvml: list[str]) -> None:
    meter = GpuMeter("0, GPU-1")
    readings = meter.read()
    assert {name: value for name, value in readings.items() if name.startswith("gpu1_")} == {
        "gpu1_energy_j": 1000.0,
        "gpu1_power_w": pytest.approx(300.001),
        "gpu1_memory_mib": 2048.0,
        "gpu1_sm_clock_mhz": 1979.0,
        "gpu1_memory_clock_mhz": 2618.0,
        "gpu1_temperature_c": 61.0,
        "gpu1_throttle_reasons": 4,
    }
    assert readings["gpu0_memory_mib"] == 1024.0
    assert len(readings) == 14
    assert meter.memory_mib() == 3072.0
    meter.close()
    meter.close()
    assert nvml == ["open", "close"]


def test_what_one_gpu_does_not_tell_is_absent_and_named_with_the_reason(nvml: list[str]) -> None:
    meter = GpuMeter("1,2")
    readings = meter.read()
    assert (readings["gpu0_energy_j"], readings["gpu1_energy_j"]) == (1000.0, None)
    assert readings["gpu1_memory_mib"] == 3 * 1024
    assert meter.failures == {"gpu1_energy_j": "Not Supported"}


def test_a_sampler_names_the_one_sensor_that_a_gpu_lacks(
    nvml: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1,2")
    sampler = sampled(Source(2), server(1, device="gpu"))
    assert sampler.absent == ("GPU 1 energy counter (NVML: Not Supported)",)
    assert sampler.rows[0]["gpu0_energy_j"] == 1000.0
    assert nvml == ["open", "close"]


def test_an_older_driver_is_asked_by_the_older_names(
    nvml: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def unknown(*_: object) -> int:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_FUNCTION_NOT_FOUND)

    monkeypatch.setattr(pynvml, "nvmlDeviceGetTemperatureV", unknown)
    monkeypatch.setattr(pynvml, "nvmlDeviceGetCurrentClocksEventReasons", unknown)
    monkeypatch.setattr(pynvml, "nvmlDeviceGetTemperature", lambda handle, sensor: 77)
    monkeypatch.setattr(pynvml, "nvmlDeviceGetCurrentClocksThrottleReasons", lambda handle: 64)
    meter = GpuMeter("0")
    readings = meter.read()
    assert (readings["gpu0_temperature_c"], readings["gpu0_throttle_reasons"]) == (77.0, 64)
    assert meter.failures == {}


@pytest.mark.parametrize(("visible", "memory"), [(None, 6144.0), ("", None), ("1", 2048.0), ("MIG-0", None)])
def test_the_visible_gpus_are_those_of_the_environment(
    nvml: list[str], monkeypatch: pytest.MonkeyPatch, visible: str | None, memory: float | None
) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    meter = GpuMeter()
    assert meter.available is (memory is not None)
    assert meter.memory_mib() == memory


@pytest.mark.parametrize(
    ("used", "seconds", "found", "pauses"),
    [([900, 500, 100], 10.0, 100.0, 2), ([900], 1.0, 900.0, 4), ([100], 10.0, 100.0, 0)],
)
def test_memory_is_waited_for(
    nvml: list[str],
    monkeypatch: pytest.MonkeyPatch,
    used: list[int],
    seconds: float,
    found: float,
    pauses: int,
) -> None:
    def memory(handle: int) -> SimpleNamespace:
        return SimpleNamespace(used=(used.pop(0) if len(used) > 1 else used[0]) * 2**20)

    monkeypatch.setattr(pynvml, "nvmlDeviceGetMemoryInfo", memory)
    slept: list[float] = []
    assert GpuMeter("0").wait_for_memory(200.0, seconds, sleep=slept.append) == found
    assert len(slept) == pauses


def test_without_gpus_there_is_no_memory_to_wait_for(nvml: list[str]) -> None:
    assert GpuMeter("").wait_for_memory(0.0, 10.0, sleep=pytest.fail) is None


def test_an_engine_is_refused_gpus_that_still_hold_an_earlier_ones_memory(
    nvml: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    used = {"mib": 100}
    monkeypatch.setattr(
        pynvml, "nvmlDeviceGetMemoryInfo", lambda handle: SimpleNamespace(used=used["mib"] * 2**20)
    )
    monkeypatch.setattr(gpus, "MEMORY_SECONDS", 0.3)
    memory = gpus.GpuMemory(["0"])
    memory.check()
    used["mib"] = 9000
    with pytest.raises(GpusHeldError, match="still hold 9000 MiB"):
        memory.check()
    used["mib"] = 300
    memory.check()


def test_there_is_nothing_to_check_without_gpus(nvml: list[str]) -> None:
    memory = gpus.GpuMemory([])
    memory.check()
    assert memory.level_mib is None
    assert nvml == []


def test_a_source_that_breaks_in_an_unknown_way_costs_no_replay_and_is_named(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Broken(Source):
        def counters(self, server: Server) -> Counters:
            if threading.current_thread().name == "telemetry":
                self.done.set()
                raise RuntimeError("a page of another form")
            return replace(COUNTERS)

    source = Broken(asked=1)
    with Sampler(cast("Engine", source), (server(1),), interval=0.01) as sampler:
        assert source.done.wait(10)
    assert sampler.absent[0] == "telemetry after 0 rows (RuntimeError('a page of another form'))"
    assert "telemetry ended early" in caplog.text
