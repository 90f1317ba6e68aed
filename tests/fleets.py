"""Fleets that run for as long as a test needs them."""

from collections.abc import Iterator
from contextlib import contextmanager

from engines.base import Engine
from engines.spec import EngineConfig
from jobs.cores import Cores
from jobs.fleet import Fleet

SHARED_CORES = Cores(engine=(), load=(), oversubscribed=True)


@contextmanager
def running(engine: Engine, config: EngineConfig, *, ready_seconds: float = 60.0) -> Iterator[Fleet]:
    """Start one engine that shares all cores with its client, and leave nothing of it behind."""
    devices = config.layout.devices
    fleet = Fleet(engine, config, name="test", devices=devices, device_names=(), cores=SHARED_CORES)
    try:
        fleet.start(ready_seconds=ready_seconds)
        yield fleet
    finally:
        fleet.stop(grace=20.0)
        fleet.remove_files()
