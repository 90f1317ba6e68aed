"""Sweeps whose truth is known, made by a process that is not the model of the analysis.

Shared by `coverage.py` and `adaptive.py`. A block is time: its runs come one after another in the product's
own balanced order, each run is one engine, and its levels come in an order of their own. The log of a cell's
throughput is

    ln base(C) + ln ratio(arm, C) + block + slope x time + walk(time) + carry(run before) + start(run) + noise

with, in units of `noise` unless said otherwise: an effect of the block (10 %), a drift that is alike in every
block, a random walk over the whole block, what the run before leaves behind (an effect of each treatment, on
whatever comes next), an effect of the engine's start that all its levels share, and noise of a cell that may
have the tails of a t distribution and a variance that grows with C. Ratios are smooth curves over C that no
straight line fits.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq

from orchestrator.orders import balanced_orders

Curve = Callable[[np.ndarray], np.ndarray]
"""Level -> log ratio."""
BLOCK = 0.10
"""Standard deviation of a block's effect on the log of throughput."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Nature:
    """What disturbs a measurement. Sizes are multiples of the noise of a cell."""

    name: str
    noise: float = 0.02
    """Standard deviation of the log of one cell's throughput at the lowest level."""
    start: float = 0.0
    """Standard deviation of an engine start's effect."""
    slope: float = 0.0
    """Drift from the start of a block to its end, alike in all blocks."""
    walk: float = 0.0
    """Standard deviation of a random walk from the start of a block to its end."""
    carry: float = 0.0
    """Standard deviation, over the treatments, of what each leaves to the run after it."""
    interaction: float = 0.0
    """Standard deviation of a treatment's own effect in a block, alike at all its levels."""
    tails: float | None = None
    """Degrees of freedom of a cell's noise, scaled to its standard deviation; None: normal."""
    growth: float = 0.0
    """The noise of a cell grows with C to this power, from the lowest level."""


def falling(high: float, low: float, middle: float, steepness: float = 1.5) -> Curve:
    """Return a curve of ratios that falls from `high` to `low` around the level `middle` (a logistic)."""

    def curve(level: np.ndarray) -> np.ndarray:
        share = 1.0 / (1.0 + (np.asarray(level, dtype=float) / middle) ** -steepness)
        logs: np.ndarray = np.log(high) + (np.log(low) - np.log(high)) * share
        return logs

    return curve


def roofline(mal: float, k: int, cost: float, ridge: float, shift: float = 0.0) -> Curve:
    """Return MAL over the cost of a step whose drafts are free until C (K + 1) tokens fill the machine."""

    def curve(level: np.ndarray) -> np.ndarray:
        tokens = np.asarray(level, dtype=float)
        plain = (1.0 + (tokens / ridge) ** 3) ** (1.0 / 3.0)
        checked = (1.0 + (tokens * (k + 1) / ridge) ** 3) ** (1.0 / 3.0)
        logs: np.ndarray = np.log(mal) - np.log(checked / plain + cost * k) + shift
        return logs

    return curve


def humped(low: float, high: float, middle: float, width: float) -> Curve:
    """Return a curve that starts and ends at `low` and rises to `high` at `middle` (not monotone)."""

    def curve(level: np.ndarray) -> np.ndarray:
        away = np.log2(np.asarray(level, dtype=float) / middle) / width
        logs: np.ndarray = np.log(low) + (np.log(high) - np.log(low)) * np.exp(-0.5 * away**2)
        return logs

    return curve


def flat(ratio: float) -> Curve:
    """Return a ratio that is the same at every level."""
    return lambda level: np.full(np.shape(level), math.log(ratio))


def first_fall(curve: Curve, low: float, high: float) -> float | None:
    """Return the first level from `low` to `high` where the true curve falls through 1; None without one."""
    grid = np.exp(np.linspace(math.log(low), math.log(high), 4001))
    values = curve(grid)
    places = np.flatnonzero((values[:-1] >= 0.0) & (values[1:] < 0.0))
    if not len(places):
        return None
    left, right = grid[places[0]], grid[places[0] + 1]
    return float(brentq(lambda level: float(curve(np.array([level]))[0]), left, right))


@dataclass(frozen=True, slots=True, kw_only=True)
class Draws:
    """Many simulated sweeps of one design."""

    arms: np.ndarray
    """Number of each run's arm; -1 for the baseline."""
    blocks: np.ndarray
    """Number of each run's block."""
    closing: np.ndarray
    """Whether it is a closing baseline."""
    logs: np.ndarray
    """Log throughput: runs x levels x simulations."""


def simulate(
    nature: Nature, curves: Sequence[Curve], levels: Sequence[float], blocks: int, count: int, seed: int
) -> Draws:
    """Return `count` simulated sweeps with one treatment a curve, opened and closed by the baseline."""
    generator = np.random.default_rng(seed)
    orders = [order for _, order in balanced_orders(len(curves), blocks)]
    runs = [[-1, *order, -2] for order in orders]
    parts = [_block(nature, own, curves, levels, count, generator) for own in runs]
    own = np.array([arm for block in runs for arm in block])
    return Draws(
        arms=np.maximum(own, -1),
        blocks=np.repeat(np.arange(blocks), len(curves) + 2),
        closing=own == -2,
        logs=np.concatenate(_with_carry(nature, runs, parts, len(curves), generator)),
    )


def _block(
    nature: Nature,
    runs: Sequence[int],
    curves: Sequence[Curve],
    levels: Sequence[float],
    count: int,
    generator: np.random.Generator,
) -> np.ndarray:
    shape = (len(runs), len(levels), count)
    grid = np.asarray(levels, dtype=float)
    truth = np.array([curves[arm](grid) if arm >= 0 else np.zeros(len(grid)) for arm in runs])
    places = generator.permutation(len(levels))  # a block has one order of levels, the same in all its runs
    time = (np.arange(len(runs))[:, None] + (places[None, :] + 0.5) / len(levels)) / len(runs)
    logs: np.ndarray = (np.log(1000.0 * grid**0.7) + truth)[:, :, None] + generator.normal(0.0, BLOCK, count)
    sd = nature.noise
    logs += nature.slope * sd * (time - 0.5)[:, :, None]
    logs += nature.walk * sd * _walk(time, count, generator)
    logs += nature.start * sd * generator.standard_normal((len(runs), 1, count))
    own = np.array([arm >= 0 for arm in runs])[:, None, None]
    logs += nature.interaction * sd * own * generator.standard_normal((len(runs), 1, count))
    cell = generator.standard_normal(shape)
    if nature.tails is not None:
        cell = generator.standard_t(nature.tails, shape) / math.sqrt(nature.tails / (nature.tails - 2.0))
    logs += sd * ((grid / grid[0]) ** nature.growth)[None, :, None] * cell
    return logs


def _walk(time: np.ndarray, count: int, generator: np.random.Generator) -> np.ndarray:
    order = np.argsort(time, axis=None)
    steps = np.diff(time.ravel()[order], prepend=0.0)
    moves = generator.standard_normal((len(order), count)) * np.sqrt(steps)[:, None]
    path = np.empty((len(order), count))
    path[order] = np.cumsum(moves, axis=0)
    return path.reshape(*time.shape, count)


def _with_carry(
    nature: Nature,
    runs: Sequence[Sequence[int]],
    parts: Sequence[np.ndarray],
    arms: int,
    generator: np.random.Generator,
) -> list[np.ndarray]:
    """Add what each run leaves to the next: an effect of the arm before, the same in every block."""
    left = nature.carry * nature.noise * generator.standard_normal((arms, parts[0].shape[2]))
    found = []
    for block, logs in zip(runs, parts, strict=True):
        before = [None, *block[:-1]]
        effect = np.array([left[arm] if arm is not None and arm >= 0 else 0.0 * left[0] for arm in before])
        found.append(logs + effect[:, None, :])
    return found
