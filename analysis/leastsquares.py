"""Least squares of figures on stratum and arm, the baseline being the arm that every stratum has.

    y = stratum + arm + e

Stratum effects are taken out by centring, so only a matrix of arms x arms is ever inverted: many figures, or
many simulated draws of one, are fitted at once as columns.
"""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True, kw_only=True)
class Solution:
    """Arms against the baseline in one set of strata."""

    estimates: np.ndarray
    """Contrast of each arm with the baseline (arms x figures)."""
    shares: np.ndarray
    """Covariance of the contrasts over the variance of a single value (arms x arms)."""
    pairs: np.ndarray
    """Strata in which each arm has a value."""
    residuals: np.ndarray
    """In the order of the values (values x figures); 0 where the value was left out."""
    used: np.ndarray
    """Which values counted: those of a stratum that has a baseline."""
    df: int
    """Degrees of freedom of the residuals."""


def solve(strata: np.ndarray, arms: np.ndarray, y: np.ndarray) -> Solution | None:
    """Fit one set of strata; None where no stratum has a baseline.

    Args:
        strata: number of each value's stratum, any whole numbers.
        arms: number of each value's arm, from 0 without gaps among the treatments; -1 for the baseline.
        y: values x figures, finite.
    """
    baseline = arms < 0
    used = np.isin(strata, strata[baseline])
    if not used.any():
        return None
    count = int(arms.max(initial=-1)) + 1
    places = np.unique(strata[used], return_inverse=True)[1]
    own, values = arms[used], y[used]
    in_stratum = np.zeros((len(own), int(places.max()) + 1))
    in_stratum[np.arange(len(own)), places] = 1.0
    of_arm = np.zeros((len(own), count))
    rows = np.flatnonzero(own >= 0)
    of_arm[rows, own[rows]] = 1.0
    sizes = in_stratum.sum(axis=0)
    incidence = in_stratum.T @ of_arm
    present = of_arm.any(axis=0)
    normal = of_arm.T @ of_arm - incidence.T @ (incidence / sizes[:, None])
    normal[~present, ~present] = 1.0  # an arm left without a value gets no estimate below
    shares = np.linalg.inv(normal)
    shares[~present] = np.nan
    shares[:, ~present] = np.nan
    centred = values - in_stratum @ ((in_stratum.T @ values) / sizes[:, None])
    right = of_arm.T @ centred
    estimates = np.full((count, y.shape[1]), np.nan)
    estimates[present] = shares[np.ix_(present, present)] @ right[present]
    shift = of_arm[:, present] @ estimates[present]
    left = centred - (shift - in_stratum @ ((in_stratum.T @ shift) / sizes[:, None]))
    residuals = np.zeros(y.shape)
    residuals[used] = left
    return Solution(
        estimates=estimates,
        shares=shares,
        pairs=(incidence > 0.0).sum(axis=0),
        residuals=residuals,
        used=used,
        df=len(own) - len(sizes) - int(present.sum()),
    )
