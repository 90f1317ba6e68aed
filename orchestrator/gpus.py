"""GPUs of this machine, as NVML lists them."""

from typing import Any

import pynvml


def list_gpus() -> list[dict[str, Any]]:
    """Return name, UUID, memory (GiB) and driver of each GPU; empty where there is no driver."""
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return []
    try:
        driver = pynvml.nvmlSystemGetDriverVersion()
        return [_gpu(index, driver) for index in range(pynvml.nvmlDeviceGetCount())]
    except pynvml.NVMLError:
        return []
    finally:
        pynvml.nvmlShutdown()


def _gpu(index: int, driver: str) -> dict[str, Any]:
    handle = pynvml.nvmlDeviceGetHandleByIndex(index)
    return {
        "index": index,
        "name": pynvml.nvmlDeviceGetName(handle),
        "uuid": pynvml.nvmlDeviceGetUUID(handle),
        "memory_gib": round(pynvml.nvmlDeviceGetMemoryInfo(handle).total / 2**30, 1),
        "driver": driver,
    }
