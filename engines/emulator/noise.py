"""Why two runs of one engine differ: a factor per engine start, a slow drift, and every step by itself."""

import math
from dataclasses import dataclass

from engines.emulator.draws import combine, log_normal, uniform


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseLevels:
    """Spreads of step time, as standard deviations of its logarithm; 0 switches a source off."""

    start: float = 0.01
    """Between engine starts: placement, clocks, memory layout."""
    drift: float = 0.004
    """Slow change while the engine runs: temperature, neighbours."""
    step: float = 0.02
    """From step to step."""

    def __post_init__(self) -> None:
        for name in ("start", "drift", "step"):
            if not 0 <= getattr(self, name) <= 0.5:
                message = f"{name} is {getattr(self, name)}; it is a relative spread: choose 0 to 0.5"
                raise ValueError(message)


class Noise:
    """Factors on the step time of one rank of one engine start."""

    PERIODS = (97.0, 31.0)
    """Seconds of the two sine waves that make the drift."""

    def __init__(self, levels: NoiseLevels, *, start: int, rank: int) -> None:
        self._levels = levels
        self._key = combine(start, rank)
        self._start = log_normal(combine(start), 0, levels.start)
        self._phases = [2.0 * math.pi * uniform(self._key, -index - 1) for index in range(len(self.PERIODS))]

    def factor(self, step: int, seconds: float) -> float:
        """Return the factor of step number `step`, `seconds` after the engine's start."""
        waves = sum(
            math.sin(2.0 * math.pi * seconds / period + phase)
            for period, phase in zip(self.PERIODS, self._phases, strict=True)
        )
        # Two unit sines have variance 1 together.
        return (
            self._start
            * math.exp(self._levels.drift * waves)
            * log_normal(self._key, step, self._levels.step)
        )
