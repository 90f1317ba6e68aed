"""What NVML tells of each GPU of a node before anything runs on it. Every question can fail on its own."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import psutil
import pynvml

from jobs.gpu_sensors import MIB, SENSORS, throttle_words

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tenant:
    """A process that holds memory of a GPU."""

    pid: int
    name: str
    """Name of its program; empty where it cannot be seen (another container)."""
    mib: float | None
    """What it holds; None where the driver does not tell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuFacts:
    """One GPU. None is what it does not tell."""

    index: int
    name: str | None
    uuid: str | None
    total_mib: float | None
    used_mib: float | None
    mig: bool | None
    """Whether it is cut into slices."""
    persistent: bool | None
    """Whether the driver keeps it initialised without a client."""
    throttled: tuple[str, ...]
    """Why its clocks are held down right now, in words."""
    tenants: tuple[Tenant, ...] | None
    unreadable: Mapping[str, str]
    """What is sampled during a replay and cannot be read here -> NVML's words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeGpus:
    """The GPUs of a node."""

    driver: str | None
    """Version of the driver; None without one."""
    cuda: str | None
    """Newest CUDA version that the driver serves."""
    gpus: tuple[GpuFacts, ...]
    why: str = ""
    """Why there is nothing to see, in NVML's words."""


def node_gpus() -> NodeGpus:
    """Return the driver and the GPUs of this node; no GPU where there is no driver."""
    try:
        with _nvml():
            cuda = _try(pynvml.nvmlSystemGetCudaDriverVersion)
            return NodeGpus(
                driver=_try(pynvml.nvmlSystemGetDriverVersion),
                cuda=None if cuda is None else f"{cuda // 1000}.{cuda % 1000 // 10}",
                gpus=tuple(_facts(index) for index in range(pynvml.nvmlDeviceGetCount())),
            )
    except pynvml.NVMLError as error:
        return NodeGpus(driver=None, cuda=None, gpus=(), why=str(error))


@contextmanager
def _nvml() -> Iterator[None]:
    pynvml.nvmlInit()
    try:
        yield
    finally:
        pynvml.nvmlShutdown()


def _facts(index: int) -> GpuFacts:
    handle = pynvml.nvmlDeviceGetHandleByIndex(index)
    memory = _try(lambda: pynvml.nvmlDeviceGetMemoryInfo(handle))
    mig = _try(lambda: pynvml.nvmlDeviceGetMigMode(handle)[0])
    persistence = _try(lambda: pynvml.nvmlDeviceGetPersistenceMode(handle))
    readings, unreadable = _readings(handle)
    tenants = _try(lambda: pynvml.nvmlDeviceGetComputeRunningProcesses(handle))
    return GpuFacts(
        index=index,
        name=_try(lambda: str(pynvml.nvmlDeviceGetName(handle))),
        uuid=_try(lambda: str(pynvml.nvmlDeviceGetUUID(handle))),
        total_mib=None if memory is None else float(memory.total) / MIB,
        used_mib=None if memory is None else float(memory.used) / MIB,
        mig=None if mig is None else mig == pynvml.NVML_DEVICE_MIG_ENABLE,
        persistent=None if persistence is None else persistence == pynvml.NVML_FEATURE_ENABLED,
        throttled=throttle_words(int(readings.get("throttle_reasons", 0))),
        tenants=None if tenants is None else tuple(_tenant(process) for process in tenants),
        unreadable=unreadable,
    )


def _readings(handle: Any) -> tuple[dict[str, float], dict[str, str]]:
    """Return every sensor's reading by column, and NVML's words by source where there is none."""
    read: dict[str, float] = {}
    failed: dict[str, str] = {}
    for sensor in SENSORS:
        try:
            read[sensor.column] = sensor.read(handle)
        except pynvml.NVMLError as error:
            failed[sensor.source] = str(error)
    return read, failed


def _tenant(process: Any) -> Tenant:
    try:
        name = psutil.Process(process.pid).name()
    except psutil.Error:
        name = ""
    used = process.usedGpuMemory
    return Tenant(pid=int(process.pid), name=name, mib=None if used is None else float(used) / MIB)


def _try(ask: Callable[[], _T]) -> _T | None:
    try:
        return ask()
    except pynvml.NVMLError:
        return None
