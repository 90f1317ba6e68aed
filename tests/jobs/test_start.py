"""Starts of real emulated engines that fail: tried again where that can help."""

import pytest

from engines.emulator.adapter import EmulatorEngine
from engines.errors import EngineError
from engines.spec import EngineConfig, Model
from jobs.cores import Cores
from jobs.fleet import Fleet
from jobs.gpus import GpuMemory
from jobs.start import Attempt, start_attempts


@pytest.mark.parametrize(("fault", "attempts"), [("start", 2), ("oom_start", 1)])
def test_every_attempt_is_told_before_the_last_failure_is_raised(fault: str, attempts: int) -> None:
    config = EngineConfig(
        engine="emulator",
        version="1",
        model=Model(name="llama-3.1-8b", max_context=4096),
        device="emulated",
        flags={"gpu": "h100", "fail": {"at": fault}},
    )
    cores = Cores(engine=(), load=(), oversubscribed=True)
    fleet = Fleet(EmulatorEngine(), config, name="s", devices=1, device_names=(), cores=cores)
    told: list[Attempt] = []

    def follow() -> None:
        for attempt in start_attempts(fleet, GpuMemory(()), ready_seconds=30.0, stop_seconds=5.0):
            told.append(attempt)  # noqa: PERF402  what was told before the failure has to stay

    try:
        with pytest.raises(EngineError):
            follow()
    finally:
        fleet.stop(grace=5.0)
        fleet.remove_files()
    assert [attempt.error is not None for attempt in told] == [True] * attempts
