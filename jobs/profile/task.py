"""What a profile is told, and what it reports. Plain data: it crosses machines."""

from collections.abc import Sequence
from dataclasses import dataclass

from engines.spec import EngineConfig
from engines.trace_steps import StepTimes
from jobs.profile.window import StepTime


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileTask:
    """One profile: engines one after another on the same devices, each held in decode."""

    configs: tuple[EngineConfig, ...]
    """The baseline, the arms, and the arms with another draft length that an estimate needs."""
    prompts: tuple[Sequence[int], ...]
    """Token ids for each of the requests that are held, at least as many as the longest context."""
    contexts: tuple[int, ...]
    """KV lengths in tokens at which steps are timed; the first is the one that was asked for."""
    steps: int
    """Steps of a window."""
    repeats: int
    """Windows of each kind, in turn: the fastest one counts."""
    traced: bool
    """Whether the first context's steps are traced by the engine's profiler."""
    devices: int
    """Devices of the slice: those of one engine."""
    engine_cores: int
    load_cores: int
    resource: str
    """Ray resource that stands for a device."""
    seed: int
    ready_seconds: float
    stop_seconds: float
    patience: float
    """Longest wait for a window, in seconds."""

    @property
    def requests(self) -> int:
        """Requests held in decode: the concurrency."""
        return len(self.prompts)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileReady:
    """An engine is up."""

    label: str
    seconds: float
    """Time its start took."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineProfile:
    """What one engine showed."""

    arm: str
    """Digest of its configuration."""
    label: str
    k: int
    """Draft length; 0 for the baseline."""
    windows: tuple[tuple[StepTime, ...], ...]
    """For each context its windows without a profiler at work, one a repeat."""
    traces: tuple[StepTimes, ...] = ()
    """Where its step goes, from the engine's own traces, one a repeat; none where it has no profiler."""

    @property
    def timed(self) -> tuple[StepTime, ...]:
        """One a context: its fastest window, which the rest of the machine disturbed least."""
        return tuple(min(windows, key=lambda window: window.step_ms) for windows in self.windows)

    @property
    def traced(self) -> StepTimes | None:
        """The fastest trace, for the same reason; None where there is none."""
        return min(self.traces, key=lambda trace: trace.step_ms, default=None)

    @property
    def step_ms(self) -> float:
        """Mean step time in ms at the first context without a profiler at work."""
        return self.timed[0].step_ms

    @property
    def spread(self) -> float:
        """By how much the slowest window at the first context is longer than the fastest, as a share."""
        return max(window.step_ms for window in self.windows[0]) / self.step_ms - 1.0

    @property
    def inflation(self) -> float | None:
        """By how much the traced step is longer than one without the profiler, as a share; None untraced."""
        return None if self.traced is None else self.traced.step_ms / self.step_ms - 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileFailed:
    """The profile ends here."""

    message: str
    """What went wrong."""
    log_tail: str
    """Last lines of the engine's log."""
    fixable: bool = False
    """Whether other words can help: concurrency, context, steps."""


ProfileReport = ProfileReady | EngineProfile | ProfileFailed
