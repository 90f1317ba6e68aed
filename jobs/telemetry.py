"""What engine, host and GPUs were doing during a replay, sampled once a second."""

import logging
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Self

import psutil

from engines.base import Engine, Server
from engines.errors import EngineError
from jobs.gpu_sensors import SENSORS
from jobs.gpus import GpuMeter

log = logging.getLogger(__name__)

JOIN_SECONDS = 30.0
"""Longer than a control request may take."""
ENGINE_GAUGES = ("running", "waiting", "kv_usage", "generation_tokens", "preemptions")


class Sampler:
    """Samples while its `with` block runs; afterwards `rows` is complete.

    A row is one replica at one time. `time` is ns of CLOCK_MONOTONIC, taken before the engine was asked, and
    `sampled` the same clock when host and GPUs were read, which all replicas' rows of a sample share. Of the
    engine: `running`, `waiting`, `kv_usage`, `generation_tokens` and `preemptions`. Of the host: `host_cpu`
    (share of all cores, 0 to 1, since the sample before) and `host_memory_gib` (in use). Of each GPU, on
    engines that run on GPUs, what `jobs/gpu_sensors.py` lists, as `gpu<i>_<column>`. A value whose source is
    absent or did not answer is None, never zero.

    Host and GPUs are read first when the block is entered and last when it is left, so that every moment of
    the replay lies between two readings of the energy counters.
    """

    def __init__(self, engine: Engine, servers: Sequence[Server], interval: float = 1.0) -> None:
        self.rows: list[dict[str, Any]] = []
        self._engine = engine
        self._servers = tuple(servers)
        self._interval = interval
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="telemetry", daemon=True)
        self._busy: tuple[float, float] | None = None
        on_gpus = any(server.config.device == "gpu" for server in servers)
        self._gpus = GpuMeter() if on_gpus else None
        self._first: dict[str, Any] | None = None
        self._broken = ""

    @property
    def absent(self) -> tuple[str, ...]:
        """Names of the sources that this run should have and never had."""
        found = []
        if self._broken:
            found.append(self._broken)
        if self.rows and all(row["running"] is None for row in self.rows):
            found.append("engine gauges")
        if self._gpus is not None:
            found.extend(_absent_gpus(self._gpus, self.rows))
        return tuple(found)

    def __enter__(self) -> Self:
        self._first = self._host()
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._stop.set()
        self._thread.join(JOIN_SECONDS)
        if not self._thread.is_alive():
            # an engine that just failed or hangs is not asked again: only the energy's last reading matters
            self._sample(ask=kind is None)
        if self._gpus is not None:
            self._gpus.close()

    def _run(self) -> None:
        try:
            self._keep_sampling()
        except Exception as error:
            # What a replay measured is worth more than what was seen beside it, and the cell says what lacks.
            log.exception("telemetry ended early")
            self._broken = f"telemetry after {len(self.rows)} rows ({error!r})"

    def _keep_sampling(self) -> None:
        due = time.monotonic()
        while not self._stop.is_set():
            self._sample()
            due += self._interval
            late = time.monotonic() - due
            if late > 0:  # skip what was missed: two samples at once tell nothing
                due += self._interval * (late // self._interval + 1)
            self._stop.wait(due - time.monotonic())

    def _sample(self, *, ask: bool = True) -> None:
        host = self._first or self._host()
        self._first = None
        for replica, server in enumerate(self._servers):
            taken = time.monotonic_ns()
            gauges = self._gauges(server) if ask else dict.fromkeys(ENGINE_GAUGES)
            self.rows.append({"time": taken, "replica": replica, **gauges, **host})

    def _gauges(self, server: Server) -> dict[str, Any]:
        try:
            counters = self._engine.counters(server)
        except EngineError:
            return dict.fromkeys(ENGINE_GAUGES)
        return {name: getattr(counters, name) if counters.knows(name) else None for name in ENGINE_GAUGES}

    def _host(self) -> dict[str, Any]:
        sampled = time.monotonic_ns()
        gpus = self._gpus.read() if self._gpus is not None else {}
        times = psutil.cpu_times()
        total = (
            sum(times) - getattr(times, "guest", 0.0) - getattr(times, "guest_nice", 0.0)
        )  # in `user` already
        busy = total - times.idle - getattr(times, "iowait", 0.0)
        before, self._busy = self._busy, (busy, total)
        share = None
        if before is not None and total > before[1]:
            # the kernel's idle and iowait counters may step back a little
            share = min(1.0, max(0.0, (busy - before[0]) / (total - before[1])))
        memory = psutil.virtual_memory()
        return {
            "sampled": sampled,
            "host_cpu": share,
            "host_memory_gib": (memory.total - memory.available) / 2**30,
            **gpus,
        }


def _absent_gpus(meter: GpuMeter, rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Name the readings that a GPU never gave, each with NVML's reason."""
    columns = {name for row in rows for name in row if name.startswith("gpu")}
    if not columns:
        names = ", ".join(sensor.source for sensor in SENSORS)
        yield f"GPU {names} (NVML: {meter.why})"
        return
    read = {name for row in rows for name in columns if row.get(name) is not None}
    for index in range(len(columns) // len(SENSORS)):
        reasons: dict[str, list[str]] = {}
        for sensor in SENSORS:
            column = f"gpu{index}_{sensor.column}"
            if column not in read:
                reasons.setdefault(meter.failures.get(column, "no reading"), []).append(sensor.source)
        for reason, sources in reasons.items():
            yield f"GPU {index} {', '.join(sources)} (NVML: {reason})"
