"""Profiling on a node: each engine is started as a cell's is, held in decode, timed, and traced if it can be.

Steps are timed in the same engine with and without its profiler at work in turn: what that costs is known.
"""

from collections.abc import Iterator
from pathlib import Path

from engines.base import Engine
from engines.errors import EngineError
from engines.registry import engine_named
from engines.spec import EngineConfig
from engines.trace import read_events
from engines.trace_steps import StepTimes, mean_times, step_times
from engines.vllm_profile import ProfiledVllm
from jobs.cores import CoreLease, Cores
from jobs.errors import GpusHeldError, ProfileError
from jobs.fleet import Fleet, visible_devices
from jobs.gpus import GpuMemory
from jobs.lifeline import ends_with_raylet
from jobs.profile.hold import Hold, Holding
from jobs.profile.task import EngineProfile, ProfileFailed, ProfileReady, ProfileReport, ProfileTask
from jobs.profile.window import StepTime, Window, quiet
from jobs.scratch import scratch
from jobs.start import start_attempts

PROFILED = "vllm"
"""The engine whose profiler can be asked over HTTP and whose traces are understood."""
WARM_STEPS = 10
"""Steps of the first window, which shows how fast a context grows and is not counted."""
MARGIN_STEPS = 4
"""Steps after those that are traced: the profiler ends itself at the start of the next one."""


def can_trace(config: EngineConfig) -> bool:
    """Whether an engine has a profiler that is understood here."""
    return config.engine == PROFILED


class ProfileRunner:
    """Profiles engines. Knows nothing of Ray, like `jobs.block.BlockRunner`."""

    def run(self, task: ProfileTask) -> Iterator[ProfileReport]:
        """Yield what each engine shows, in the order of the task."""
        with (
            ends_with_raylet(),
            CoreLease(engine=task.engine_cores, load=task.load_cores) as lease,
            scratch("specload-profile-") as folder,
        ):
            names = visible_devices(task.resource, task.devices)
            memory = GpuMemory(names)
            for number, config in enumerate(task.configs):
                turn = _Turn(task, config, folder / f"engine-{number}", lease.cores, names)
                try:
                    yield from turn.reports(memory)
                except EngineError as error:
                    yield ProfileFailed(message=str(error), log_tail=error.log_tail)
                    return
                except GpusHeldError as error:
                    yield ProfileFailed(message=str(error), log_tail="")
                    return
                except ProfileError as error:
                    yield ProfileFailed(message=str(error), log_tail="", fixable=True)
                    return


class _Turn:
    """One engine's turn."""

    def __init__(
        self, task: ProfileTask, config: EngineConfig, folder: Path, cores: Cores, names: tuple[str, ...]
    ) -> None:
        self._task = task
        self._config = config
        folder.mkdir()
        self._profiler = ProfiledVllm(folder / "traces") if task.traced else None
        self._engine: Engine = self._profiler or engine_named(config.engine)
        self._fleet = Fleet(
            self._engine,
            config,
            name="profile",
            devices=config.layout.devices,
            device_names=names,
            cores=cores,
            folder=folder,
        )

    def reports(self, memory: GpuMemory) -> Iterator[ProfileReport]:
        """Start the engine, look at its steps, stop it."""
        task = self._task
        try:
            *_, ready = start_attempts(
                self._fleet, memory, ready_seconds=task.ready_seconds, stop_seconds=task.stop_seconds
            )
            yield ProfileReady(label=self._config.label, seconds=ready.seconds)
            warm = self._timed(task.contexts[0], WARM_STEPS, grows=0.0)
            grows = warm.lead_tokens + warm.tokens_per_step * task.steps / 2
            rounds: list[tuple[StepTime, ...]] = []
            traces: list[StepTimes] = []
            for _ in range(task.repeats):
                rounds.append(tuple(self._timed(at, task.steps, grows=grows) for at in task.contexts))
                if self._profiler is not None:
                    traces.append(self._traced(self._profiler, task.contexts[0], grows=grows))
            yield EngineProfile(
                arm=self._config.digest,
                label=self._config.label,
                k=self._config.drafter.k,
                windows=tuple(zip(*rounds, strict=True)),
                traces=tuple(traces),
            )
        finally:
            self._fleet.stop(grace=task.stop_seconds)
            self._fleet.remove_files()

    def _timed(self, context: int, steps: int, *, grows: float) -> StepTime:
        """Return the steps of one window around a context, which its answers reach halfway."""
        prompt = max(1, round(context - grows))
        window = self._window(prompt)
        with self._hold(prompt) as hold:
            window.open(hold)
            found = window.wait(hold, steps)
        quiet(self._fleet)
        return found

    def _traced(self, profiler: ProfiledVllm, context: int, *, grows: float) -> StepTimes:
        url = self._fleet.servers[0].url
        prompt = max(1, round(context - grows))
        window = self._window(prompt)
        with self._hold(prompt) as hold:
            window.open(hold)
            profiler.start_trace(url, steps=self._task.steps)
            window.wait(hold, self._task.steps + MARGIN_STEPS)
            traces = profiler.stop_trace(url)
        quiet(self._fleet)
        found = mean_times([step_times(read_events(trace)) for trace in traces])
        for trace in traces:  # or the next repeat would find them, too
            trace.unlink()
        return found

    def _hold(self, prompt: int) -> Hold:
        task = self._task
        return Hold(
            Holding(
                engine=self._engine,
                server=self._fleet.servers[0],
                prompts=[tokens[:prompt] for tokens in task.prompts],
                max_tokens=self._config.model.max_context - prompt,
                seed=task.seed,
            )
        )

    def _window(self, prompt: int) -> Window:
        task = self._task
        return Window(self._fleet, requests=task.requests, prompt=prompt, patience=task.patience)
