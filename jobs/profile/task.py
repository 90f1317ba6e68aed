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
    timed: tuple[StepTime, ...]
    """One a context, without a profiler at work."""
    traced: StepTimes | None = None
    """Where its step goes, from the engine's own trace; None where it has no profiler."""
    after: StepTime | None = None
    """The first window again, after the trace: whether the machine was quiet; None without a trace."""

    @property
    def step_ms(self) -> float:
        """Mean step time in ms at the first context without a profiler at work, before and after a trace."""
        windows = [self.timed[0], *([self.after] if self.after else [])]
        return sum(window.step_ms for window in windows) / len(windows)

    @property
    def drift(self) -> float:
        """By how much the step was longer after the trace than before it, as a share; 0 without a trace."""
        return self.after.step_ms / self.timed[0].step_ms - 1.0 if self.after else 0.0

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
