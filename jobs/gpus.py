"""Readings of the GPUs that this process may use, through NVML."""

import os
import time
from collections.abc import Callable, Sequence
from typing import Any

import pynvml

from jobs.errors import GpusHeldError
from jobs.gpu_sensors import MIB, SENSORS

MEMORY_POLL_SECONDS = 0.25


MEMORY_SLACK_MIB = 256.0
"""What may stay in use on a freed GPU: contexts of the driver come and go."""
MEMORY_SECONDS = 60.0
"""Longest wait for memory that a stopped engine held."""


def list_gpus() -> list[dict[str, Any]]:
    """Return name, UUID, memory (GiB) and driver of each GPU here; empty where there is no driver."""
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return []
    try:
        driver = pynvml.nvmlSystemGetDriverVersion()
        return [_listed(index, driver) for index in range(pynvml.nvmlDeviceGetCount())]
    except pynvml.NVMLError:
        return []
    finally:
        pynvml.nvmlShutdown()


class GpuMemory:
    """The memory level of a block's GPUs, which every engine has to find again."""

    def __init__(self, device_names: Sequence[str]) -> None:
        """Read the level of the named GPUs; of none where the names are empty."""
        self._names = ",".join(device_names)
        self.level_mib = self._read()
        """Memory in use in MiB before any engine of the block; None without GPUs."""

    def check(self) -> None:
        """Wait until the GPUs are as empty as the block found them.

        Raises:
            GpusHeldError: what an earlier engine held has not come back.
        """
        if self.level_mib is None:
            return
        limit = self.level_mib + MEMORY_SLACK_MIB
        meter = GpuMeter(self._names)
        try:
            used = meter.wait_for_memory(limit, MEMORY_SECONDS)
        finally:
            meter.close()
        if used is not None and used > limit:
            message = (
                f"GPUs {self._names} still hold {used:.0f} MiB {MEMORY_SECONDS:.0f} s after the last engine "
                f"stopped; the block found them at {self.level_mib:.0f} MiB. Nothing can be measured on "
                "them: `nvidia-smi` names the processes that hold memory there"
            )
            raise GpusHeldError(message)

    def _read(self) -> float | None:
        if not self._names:
            return None
        meter = GpuMeter(self._names)
        try:
            return meter.memory_mib()
        finally:
            meter.close()


class GpuMeter:
    """Reads the visible GPUs; `available` is False where there is no driver or no GPU."""

    def __init__(self, visible: str | None = None) -> None:
        """Open the GPUs named in `visible` (as CUDA_VISIBLE_DEVICES does, whose value is the default)."""
        self.why = "no GPU is visible"
        """Why there is nothing to read, where `available` is False."""
        self.failures: dict[str, str] = {}
        """Column -> NVML's latest words on why it cannot be read."""
        self._handles: list[Any] = []
        self._open = False
        names = os.environ.get("CUDA_VISIBLE_DEVICES") if visible is None else visible
        try:
            pynvml.nvmlInit()
            self._open = True
            self._handles = [_handle(name) for name in _names(names)]
        except pynvml.NVMLError as error:
            self.why = str(error)
            self.close()

    @property
    def available(self) -> bool:
        """Whether there is anything to read."""
        return bool(self._handles)

    def read(self) -> dict[str, float | None]:
        """Return `gpu<i>_<column>` of every sensor and visible GPU, i being its place among the visible ones.

        None is what a GPU does not tell; `failures` has the reason.
        """
        return {
            f"gpu{index}_{sensor.column}": self._try(f"gpu{index}_{sensor.column}", sensor.read, handle)
            for index, handle in enumerate(self._handles)
            for sensor in SENSORS
        }

    def memory_mib(self) -> float | None:
        """Return the memory in use over all visible GPUs; None without GPUs, or where one does not tell."""
        try:
            used = [float(pynvml.nvmlDeviceGetMemoryInfo(handle).used) for handle in self._handles]
        except pynvml.NVMLError:
            return None
        return sum(used) / MIB if used else None

    def wait_for_memory(
        self, limit_mib: float, seconds: float, sleep: Callable[[float], None] = time.sleep
    ) -> float | None:
        """Wait, about `seconds` at most, until the GPUs use `limit_mib` or less; return what they use in MiB.

        Memory outlives the process that held it by moments: what starts too early finds less than there is.
        """
        for _ in range(max(1, round(seconds / MEMORY_POLL_SECONDS))):
            used = self.memory_mib()
            if used is None or used <= limit_mib:
                return used
            sleep(MEMORY_POLL_SECONDS)
        return self.memory_mib()

    def close(self) -> None:
        """Let NVML go."""
        self._handles = []
        if self._open:
            self._open = False
            pynvml.nvmlShutdown()

    def _try(self, column: str, read: Callable[[Any], float], handle: Any) -> float | None:
        try:
            return read(handle)
        except pynvml.NVMLError as error:
            self.failures[column] = str(error)
            return None


def _names(visible: str | None) -> list[str]:
    if visible is None:
        return [str(index) for index in range(pynvml.nvmlDeviceGetCount())]
    return [name.strip() for name in visible.split(",") if name.strip()]


def _handle(name: str) -> Any:
    if name.isdigit():
        return pynvml.nvmlDeviceGetHandleByIndex(int(name))
    return pynvml.nvmlDeviceGetHandleByUUID(name)


def _listed(index: int, driver: str) -> dict[str, Any]:
    handle = pynvml.nvmlDeviceGetHandleByIndex(index)
    return {
        "index": index,
        "name": pynvml.nvmlDeviceGetName(handle),
        "uuid": pynvml.nvmlDeviceGetUUID(handle),
        "memory_gib": round(pynvml.nvmlDeviceGetMemoryInfo(handle).total / 2**30, 1),
        "driver": driver,
    }
