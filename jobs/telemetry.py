"""What engine and host were doing during a replay, sampled once a second."""

import threading
import time
from collections.abc import Sequence
from typing import Any, Self

import psutil

from engines.base import Engine, Server
from engines.errors import EngineError
from jobs.gpus import GpuMeter

JOIN_SECONDS = 30.0
"""Longer than a control request may take."""


class Sampler:
    """Samples while its `with` block runs; afterwards `rows` is complete.

    A row is one replica at one time: `time` (ns of CLOCK_MONOTONIC, taken before the engine was asked) and
    `replica`; of the engine `running`, `waiting`, `kv_usage`, `generation_tokens` and `preemptions`; of the
    host `host_cpu` (share of all cores, 0 to 1, since the sample before) and `host_memory_gib` (in use); on
    GPUs what `GpuMeter` reads, the same on each replica's row. A value whose source is absent is None; an
    engine that does not answer leaves no row.
    """

    def __init__(self, engine: Engine, servers: Sequence[Server], interval: float = 1.0) -> None:
        self.rows: list[dict[str, Any]] = []
        self.missed = 0
        """Samples that a replica did not answer."""
        self._engine = engine
        self._servers = tuple(servers)
        self._interval = interval
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="telemetry", daemon=True)
        self._busy: tuple[float, float] | None = None
        on_gpus = any(server.config.device == "gpu" for server in servers)
        self._gpus = GpuMeter() if on_gpus else None

    @property
    def absent(self) -> tuple[str, ...]:
        """Names of the sources that this run should have and has not."""
        found = []
        if self.missed and not self.rows:
            found.append("engine gauges")
        if self._gpus is not None and not self._gpus.available:
            found.append("GPU telemetry (NVML)")
        return tuple(found)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(JOIN_SECONDS)
        if self._gpus is not None:
            self._gpus.close()

    def _run(self) -> None:
        due = time.monotonic()
        while not self._stop.is_set():
            self._sample()
            due += self._interval
            late = time.monotonic() - due
            if late > 0:  # skip what was missed: two samples at once tell nothing
                due += self._interval * (late // self._interval + 1)
            self._stop.wait(due - time.monotonic())

    def _sample(self) -> None:
        host = self._host()
        for replica, server in enumerate(self._servers):
            taken = time.monotonic_ns()
            try:
                counters = self._engine.counters(server)
            except EngineError:
                self.missed += 1
                continue
            self.rows.append(
                {
                    "time": taken,
                    "replica": replica,
                    "running": counters.running,
                    "waiting": counters.waiting,
                    "kv_usage": counters.kv_usage,
                    "generation_tokens": counters.generation_tokens,
                    "preemptions": counters.preemptions,
                    **host,
                }
            )

    def _host(self) -> dict[str, float | None]:
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
            "host_cpu": share,
            "host_memory_gib": (memory.total - memory.available) / 2**30,
            **(self._gpus.read() if self._gpus is not None else {}),
        }
