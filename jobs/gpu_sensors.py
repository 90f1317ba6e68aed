"""What NVML tells of one GPU: a column, a unit and a call each."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pynvml

MIB = 2**20
THROTTLE_REASONS: dict[int, str] = {
    pynvml.nvmlClocksEventReasonSwPowerCap: "power cap",
    pynvml.nvmlClocksEventReasonHwSlowdown: "hardware slowdown",
    pynvml.nvmlClocksEventReasonSwThermalSlowdown: "software thermal slowdown",
    pynvml.nvmlClocksEventReasonHwThermalSlowdown: "hardware thermal slowdown",
    pynvml.nvmlClocksEventReasonHwPowerBrakeSlowdown: "power brake",
    pynvml.nvmlClocksThrottleReasonBoardLimit: "board limit",
    pynvml.nvmlClocksThrottleReasonReliability: "reliability limit",
}
"""Bit -> words. Idling, fixed application clocks, sync boost and display clocks lower a clock too, but are no
throttling: nothing kept the GPU from the clock it was told to run at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sensor:
    """One reading of a GPU."""

    column: str
    """End of the column's name, with the unit: `power_w` is the column `gpu<i>_power_w`."""
    source: str
    """What it is, in words, for the list of absent sources."""
    read: Callable[[Any], float]
    """From an NVML handle to the value; raises NVMLError where the GPU does not tell."""


def throttle_words(reasons: int) -> tuple[str, ...]:
    """Return the reasons of a bit mask that are throttling, in words."""
    return tuple(words for bit, words in THROTTLE_REASONS.items() if reasons & bit)


def _temperature(handle: Any) -> float:
    try:
        return float(pynvml.nvmlDeviceGetTemperatureV(handle, pynvml.NVML_TEMPERATURE_GPU))
    except pynvml.NVMLError_FunctionNotFound:  # a driver older than the call
        return float(pynvml.nvmlDeviceGetTemperature(handle, pynvml.NVML_TEMPERATURE_GPU))


def _reasons(handle: Any) -> float:
    try:
        return int(pynvml.nvmlDeviceGetCurrentClocksEventReasons(handle))
    except pynvml.NVMLError_FunctionNotFound:  # its name before driver 535
        return int(pynvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle))


# The calls are looked up when they are made: a function kept here would outlive NVML's own reloading.
SENSORS = (
    Sensor(
        column="energy_j",  # since the driver was loaded: only differences mean anything
        source="energy counter",
        read=lambda handle: pynvml.nvmlDeviceGetTotalEnergyConsumption(handle) * 1e-3,
    ),
    Sensor(
        column="power_w",
        source="power",
        read=lambda handle: pynvml.nvmlDeviceGetPowerUsage(handle) * 1e-3,
    ),
    Sensor(
        column="memory_mib",
        source="memory in use",
        read=lambda handle: float(pynvml.nvmlDeviceGetMemoryInfo(handle).used) / MIB,
    ),
    Sensor(
        column="sm_clock_mhz",
        source="SM clock",
        read=lambda handle: float(pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_SM)),
    ),
    Sensor(
        column="memory_clock_mhz",
        source="memory clock",
        read=lambda handle: float(pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_MEM)),
    ),
    Sensor(column="temperature_c", source="temperature", read=_temperature),
    Sensor(column="throttle_reasons", source="throttle reasons", read=_reasons),
)
"""Everything that is read of a GPU at every sample. `throttle_reasons` is NVML's bit mask."""
