"""Curves over the draft length K: acceptance by one alpha, step time by a straight line, and how they miss.

    MAL(K)  = 1 + alpha + ... + alpha^K
    T(K)/t0 = 1 + c + s K

A curve is held against the points it was fitted to: one alpha is a model of a drafter that is as good at its
last position as at its first, which few are.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats
from scipy.optimize import isotonic_regression, minimize_scalar

from analysis.contrasts import t_quantile
from analysis.formulas import mean_acceptance_length

MISFIT = 0.02
"""A curve fits where no point is farther off than this, relative, or where chance explains the distance."""
SIGNIFICANT = 0.05
FITS, MISSES, UNTESTED = "fits", "does not fit", "no point to spare"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """One curve over K."""

    value: float
    """alpha, or s: the cost of one more draft token in plain steps."""
    low: float
    """95 % interval; NaN without a replicate. Where the curve does not fit, it is widened by the misfit."""
    high: float
    fixed: float = 0.0
    """c of a step curve, in plain steps."""
    fixed_low: float = math.nan
    fixed_high: float = math.nan
    fixed_is_zero: bool = False
    """c was taken to be 0, as fewer than three draft lengths cannot tell it from s."""
    misfit: Mapping[int, float]
    """K -> measured over fitted, less 1."""
    p: float = math.nan
    """Chance of so large a misfit if the curve were true; NaN where noise or a spare point is missing."""
    spare: int
    """Points less parameters."""

    @property
    def worst(self) -> float:
        """The largest misfit, with its sign."""
        return max(self.misfit.values(), key=abs, default=0.0)

    @property
    def word(self) -> str:
        """`FITS`, `MISSES` or `UNTESTED`."""
        if not self.spare:
            return UNTESTED
        by_chance = math.isfinite(self.p) and self.p > SIGNIFICANT
        return FITS if abs(self.worst) <= MISFIT or by_chance else MISSES


def fit_alpha(
    lengths: Mapping[int, float], errors: Mapping[int, float] | None = None, df: float = 0.0
) -> Fit:
    """Fit one alpha to mean acceptance lengths by draft length.

    Least squares in the log of the length.

    Args:
        lengths: K -> mean acceptance length.
        errors: K -> standard error of the log of the length; None where nothing was repeated.
        df: degrees of freedom behind the errors.
    """
    ks = sorted(lengths)
    y = np.log([lengths[k] for k in ks])
    scale = np.array([errors[k] for k in ks]) if errors else np.ones(len(ks))
    known = errors is not None and bool(np.all(scale > 0.0)) and df > 0
    if not known:
        scale = np.ones(len(ks))

    def distances(alpha: float) -> np.ndarray:
        fitted = np.log([mean_acceptance_length(alpha, k) for k in ks])
        return np.asarray((y - fitted) / scale)

    found = minimize_scalar(
        lambda alpha: float(np.sum(distances(alpha) ** 2)),
        bounds=(0.0, 1.0),
        method="bounded",
        options={"xatol": 1e-10},
    )
    alpha = float(found.x)
    residuals = distances(alpha)
    misfit = {k: float(math.expm1(value)) for k, value in zip(ks, residuals * scale, strict=True)}
    spare = len(ks) - 1
    if not known:
        return Fit(value=alpha, low=math.nan, high=math.nan, misfit=misfit, spare=spare)
    squares = float(residuals @ residuals)
    edge = 1e-6
    middle = min(max(alpha, edge), 1.0 - edge)
    slope = (distances(middle + edge) - distances(middle - edge)) / (2.0 * edge)
    error = _widened(squares, spare) / float(np.sqrt(slope @ slope))
    half = t_quantile(df) * error
    return Fit(
        value=alpha,
        low=max(0.0, alpha - half),
        high=min(1.0, alpha + half),
        misfit=misfit,
        p=_p(squares, spare, df),
        spare=spare,
    )


def fit_steps(ratios: Mapping[int, float], shares: np.ndarray, variance: float | None, df: int) -> Fit:
    """Fit T(K)/t0 = 1 + c + s K by generalised least squares.

    Args:
        ratios: K -> step time over the baseline's.
        shares: covariance of their logs over the variance of a cell, in the order of K: arms share a
            baseline, so their errors go together.
        variance: of ln step time of a cell; None without a replicate.
        df: its degrees of freedom.
    """
    ks = sorted(ratios)
    y = np.array([ratios[k] for k in ks])
    inverse = np.linalg.inv(shares * np.outer(y, y))
    x = np.array([[1.0, k] for k in ks]) if len(ks) > 2 else np.array([[float(k)] for k in ks])
    covariance = np.linalg.inv(x.T @ inverse @ x)
    parameters = covariance @ x.T @ inverse @ (y - 1.0)
    residuals = y - 1.0 - x @ parameters
    spare = len(ks) - x.shape[1]
    fitted = 1.0 + x @ parameters
    misfit = {k: float(value) for k, value in zip(ks, residuals / fitted, strict=True)}
    ends = np.full((x.shape[1], 2), math.nan)
    p = math.nan
    if variance is not None and variance > 0.0:
        squares = float(residuals @ inverse @ residuals) / variance
        half = t_quantile(df) * _widened(squares, spare) * np.sqrt(np.diag(covariance) * variance)
        ends = np.stack([parameters - half, parameters + half], axis=1)
        p = _p(squares, spare, df)
    fixed = x.shape[1] == 2
    return Fit(
        value=float(parameters[-1]),
        low=float(ends[-1, 0]),
        high=float(ends[-1, 1]),
        fixed=float(parameters[0]) if fixed else 0.0,
        fixed_low=float(ends[0, 0]) if fixed else math.nan,
        fixed_high=float(ends[0, 1]) if fixed else math.nan,
        fixed_is_zero=not fixed,
        misfit=misfit,
        p=p,
        spare=spare,
    )


def slope_weights(ratios: Mapping[int, float], shares: np.ndarray) -> np.ndarray:
    """Return what s of `fit_steps` makes of each ratio: s = weights @ (ratios - 1)."""
    ks = sorted(ratios)
    y = np.array([ratios[k] for k in ks])
    inverse = np.linalg.inv(shares * np.outer(y, y))
    x = np.array([[1.0, k] for k in ks]) if len(ks) > 2 else np.array([[float(k)] for k in ks])
    weights: np.ndarray = (np.linalg.inv(x.T @ inverse @ x) @ x.T @ inverse)[-1]
    return weights


def position_rates(lengths: Mapping[int, float]) -> tuple[float, ...]:
    """Return the unconditional acceptance by position that mean lengths by draft length imply.

    What each draft length adds, spread evenly where some were not measured, made non-increasing by isotonic
    regression (a position cannot be reached more often than the one before it) and kept within 0 and 1.
    """
    known = [(0, 1.0), *sorted(lengths.items())]
    increments: list[float] = []
    for (before, low), (after, high) in itertools.pairwise(known):
        increments += [(high - low) / (after - before)] * (after - before)
    if not increments:
        return ()
    fitted = isotonic_regression(increments, increasing=False).x
    return tuple(float(rate) for rate in np.clip(fitted, 0.0, 1.0))


def best_length(lengths: Mapping[int, float], s: float, c: float = 0.0) -> tuple[int, float]:
    """Return the K with the largest MAL(K) / (1 + c + s K), and that ratio; K = 0 is no speculation, at 1.

    Of equal ratios the smallest K is meant.
    """
    ratios = {0: 1.0, **{k: length / (1.0 + c + s * k) for k, length in sorted(lengths.items())}}
    best = max(ratios, key=lambda k: (ratios[k], -k))
    return best, ratios[best]


def pooled_error(values: Mapping[int, Sequence[float] | np.ndarray]) -> tuple[dict[int, float], int] | None:
    """Return the standard error of each K's mean from the spread within all of them, and its df.

    None where no K has two values.
    """
    df = sum(len(own) - 1 for own in values.values())
    if df < 1:
        return None
    squares = sum(float(np.sum((np.asarray(own) - np.mean(own)) ** 2)) for own in values.values())
    return {k: math.sqrt(squares / df / len(own)) for k, own in values.items()}, df


def _widened(squares: float, spare: int) -> float:
    """Return the factor by which a misfit widens an interval: 1 where the curve fits."""
    return max(1.0, math.sqrt(squares / spare)) if spare else 1.0


def _p(squares: float, spare: int, df: float) -> float:
    return float(stats.f.sf(squares / spare, spare, df)) if spare else math.nan
