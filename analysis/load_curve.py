"""How one arm's step, its users' speed and its throughput go with the load: a curve through the levels tried.

A decode step has to read the weights, however few sequences it serves, and then does work for each of them;
whichever is longer decides (the roofline model; Williams, Waterman and Patterson, CACM 52(4), 2009), with a
knee that is as sharp as the engine's overlap is good:

    T(C) = [a^p + (b C)^p]^(1/p)          a: a step's floor, ms;  b: ms a conversation;  p >= 1: the knee

p = 1 is the straight line a + b C that simulators of speculative decoding use. With N(C), all other time for
each decoded token (prefill, queue), of the same form, and in a closed loop of C users (Little's law),

    user speed(C) = u / T(C)              u: tokens a step as the users' clock has them
    total(C) = m C f(C) u / T(C)          f = 1 / [1 + N(C) u / T(C)], decode share;  m: tokens of all kinds
                                          for a decoded one

a, b, p are least squares in the log over the levels; u and m, which load hardly moves, geometric means.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import least_squares

FIGURES = ("step", "speed", "odds", "total")
"""Rows of the logs that a curve is fitted to: step time (ms), user speed (tok/s), odds of the decode share
f / (1 - f), total throughput (tok/s)."""
STEP, SPEED, ODDS, TOTAL = range(4)
SHARPEST = 8.0
"""Largest p: a knee that cannot be told from a corner."""
EXACT = 1e-12
"""Tolerance of the least squares: few points, so it costs nothing."""
FREE_KNEE = 4
"""Levels from which p is fitted; with fewer the curve is a straight line."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TimeCurve:
    """A time that goes with the load."""

    floor: float
    """a: as the load goes to nothing, ms."""
    slope: float
    """b: what one more conversation adds in the end, ms."""
    knee: float
    """p: 1 is a straight line."""
    hat: np.ndarray
    """Change of the logs of the parameters with the log of each level's time (parameters x levels)."""
    spare: int
    """Levels less parameters."""

    def at(self, load: np.ndarray) -> np.ndarray:
        """Return the time at some loads, ms."""
        found: np.ndarray = np.exp(self._log(load))
        return found

    def influence(self, load: np.ndarray) -> np.ndarray:
        """Return how the log of the time at each load moves with the log of each level's (loads x levels)."""
        log = self._log(load)
        low, high = math.log(self.floor), math.log(self.slope) + np.log(load)
        share = np.exp(self.knee * (low - log))
        slopes = np.column_stack([share, 1.0 - share, share * low + (1.0 - share) * high - log])
        found: np.ndarray = slopes[:, : len(self.hat)] @ self.hat
        return found

    def _log(self, load: np.ndarray) -> np.ndarray:
        return _log_time(np.log([self.floor, self.slope, self.knee]), np.log(load))


def fit_time(levels: Sequence[float], times: Sequence[float]) -> TimeCurve | None:
    """Fit a curve to times, ms, by least squares in the log; None with fewer than two levels."""
    loads, logs = np.log(np.asarray(levels, dtype=float)), np.log(np.asarray(times, dtype=float))
    if len(loads) < 2:
        return None
    start = [float(logs.min()), float(logs.max() - loads.max()), 0.0]
    free = 3 if len(loads) >= FREE_KNEE else 2
    # a time that does not rise has no slope, one that goes with the load from the first level no floor
    lowest = [float(logs.min() - 6.0), float(logs.min() - loads.max() - 6.0), 0.0]
    highest = [float(logs.max() + 1.0), float(logs.max() - loads.min() + 1.0), math.log(SHARPEST)]

    def misses(parameters: np.ndarray) -> np.ndarray:
        whole = np.concatenate([parameters, np.zeros(3 - free)])
        return np.asarray(_log_time(whole, loads) - logs)

    found = least_squares(
        misses, start[:free], bounds=(lowest[:free], highest[:free]), xtol=EXACT, ftol=EXACT, gtol=EXACT
    )
    floor, slope, knee = (float(value) for value in np.exp(np.append(found.x, [0.0] * (3 - free))))
    used = np.asarray(found.jac)[:, found.active_mask == 0]
    hat = np.zeros((free, len(loads)))
    hat[found.active_mask == 0] = np.linalg.pinv(used)
    return TimeCurve(floor=floor, slope=slope, knee=knee, hat=hat, spare=max(0, len(loads) - free))


def _log_time(parameters: np.ndarray, log_load: np.ndarray) -> np.ndarray:
    floor, slope, knee = parameters
    p = math.exp(knee)
    found: np.ndarray = np.logaddexp(p * floor, p * (slope + log_load)) / p
    return found


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LoadCurve:
    """One arm against the load."""

    levels: np.ndarray
    """Loads it was fitted to, ascending."""
    logs: np.ndarray
    """Means of the logs of `FIGURES` at the levels (figures x levels); NaN where a figure is not known."""
    cells: np.ndarray
    """Cells behind each level's means."""
    step: TimeCurve
    """T."""
    other: TimeCurve | None
    """N; None where the decode share or the throughput of a level is not known."""

    @property
    def tokens(self) -> float:
        """u: tokens a step, as the users' clock has them."""
        return math.exp(float(np.mean(self.logs[SPEED] + self.logs[STEP]))) / 1000.0

    @property
    def mix(self) -> float:
        """m: tokens of all kinds for a decoded one."""
        share = -np.log1p(np.exp(-self.logs[ODDS]))
        return math.exp(float(np.mean(self.logs[TOTAL] - np.log(self.levels) - share - self.logs[SPEED])))

    def step_ms(self, load: np.ndarray) -> np.ndarray:
        """Return T at some loads."""
        return self.step.at(load)

    def user_speed(self, load: np.ndarray) -> np.ndarray:
        """Return user speed at some loads, tok/s."""
        found: np.ndarray = 1000.0 * self.tokens / self.step.at(load)
        return found

    def share(self, load: np.ndarray) -> np.ndarray:
        """Return the decode share f at some loads; NaN where it is not known."""
        if self.other is None:
            return np.full(len(load), np.nan)
        decode = self.step.at(load) / self.tokens
        found: np.ndarray = decode / (decode + self.other.at(load))
        return found

    def total(self, load: np.ndarray) -> np.ndarray:
        """Return total throughput at some loads, tok/s; NaN where its parts are not known."""
        found: np.ndarray = self.mix * load * self.share(load) * self.user_speed(load)
        return found

    def gradients(self, load: np.ndarray) -> dict[str, np.ndarray]:
        """Return how the log of each curve at each load moves with the logs (loads x figures x levels)."""
        count = len(self.levels)
        each = np.full((len(load), count), 1.0 / count)
        step = np.zeros((len(load), len(FIGURES), count))
        step[:, STEP] = self.step.influence(load)
        speed = -step
        speed[:, STEP] += each
        speed[:, SPEED] = each
        if self.other is None:
            return {"step": step, "speed": speed}
        inside = 1.0 / (1.0 + np.exp(-self.logs[ODDS]))
        rest = self.other.influence(load)
        other = np.zeros_like(step)
        other[:, SPEED], other[:, ODDS] = -rest, -rest
        total = speed - (1.0 - self.share(load))[:, None, None] * (other + speed)
        total[:, TOTAL] += each
        total[:, SPEED] -= each
        total[:, ODDS] -= each * (1.0 - inside)
        return {"step": step, "speed": speed, "total": total}

    def misfits(self) -> dict[str, np.ndarray]:
        """Return measured over fitted, less 1, at each level, by curve."""
        fitted = {"step": self.step_ms(self.levels), "speed": self.user_speed(self.levels)}
        if self.other is not None:
            fitted["total"] = self.total(self.levels)
        return {name: np.expm1(self.logs[FIGURES.index(name)] - np.log(own)) for name, own in fitted.items()}

    @property
    def worst(self) -> float:
        """The largest misfit of any curve at any level, with its sign."""
        return float(max(np.concatenate(list(self.misfits().values())), key=abs))


def fit_curve(levels: Sequence[float], logs: np.ndarray, cells: Sequence[int]) -> LoadCurve | None:
    """Fit one arm; None where step time and user speed are not known at two levels or more.

    Args:
        levels: ascending.
        logs: means of the logs of `FIGURES` at them (figures x levels).
        cells: behind each level's means.
    """
    known = np.isfinite(logs[[STEP, SPEED]]).all(axis=0)
    loads, own = np.asarray(levels, dtype=float)[known], logs[:, known]
    step = fit_time(loads.tolist(), np.exp(own[STEP]).tolist())
    if step is None:
        return None
    other = None
    if np.isfinite(own).all():
        other = fit_time(loads.tolist(), (1000.0 * np.exp(-own[SPEED] - own[ODDS])).tolist())
    return LoadCurve(levels=loads, logs=own, cells=np.asarray(cells)[known], step=step, other=other)
