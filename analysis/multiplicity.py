"""Critical values when several arms are compared with one baseline (Dunnett's many-to-one comparisons)."""

from functools import lru_cache

import numpy as np
from scipy import stats
from scipy.optimize import brentq
from scipy.special import ndtr

_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(80)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()
_LEVELS, _SHARES = np.polynomial.legendre.leggauss(80)
_LEVELS, _SHARES = (_LEVELS + 1.0) / 2.0, _SHARES / 2.0


def simultaneous_coverage(critical: float, comparisons: int, df: float, correlation: float) -> float:
    """Return the chance that all |t_i| stay below `critical`.

    The t_i share the residual variance (df degrees of freedom) and are equally correlated, as contrasts
    with one common baseline are. Conditional on the common normal part and on the variance they are
    independent; the two outer integrals are Gauss quadratures, so the value has no Monte Carlo noise.
    """
    scale = _scales(df)[:, None]
    common = np.sqrt(correlation) * _NODES[None, :]
    own = np.sqrt(1.0 - correlation)
    inside = ndtr((critical * scale - common) / own) - ndtr((-critical * scale - common) / own)
    return float(_SHARES @ (inside**comparisons) @ _WEIGHTS)


@lru_cache(maxsize=256)
def _scales(df: float) -> np.ndarray:
    """Return the nodes of the estimated over the true standard deviation."""
    nodes: np.ndarray = np.sqrt(stats.chi2.ppf(_LEVELS, df) / df)
    return nodes


@lru_cache(maxsize=4096)
def critical_value(comparisons: int, df: float, correlation: float, confidence: float = 0.95) -> float:
    """Return the two-sided critical value of `comparisons` contrasts with one baseline.

    With one comparison this is Student's t quantile.

    Args:
        comparisons: arms compared with the baseline, 1 or more.
        df: degrees of freedom of the pooled residual variance.
        correlation: of any two contrasts, 0 to below 1: n / (n + n0) for n values an arm, n0 of the baseline.
        confidence: simultaneous coverage.
    """
    single = float(stats.t.ppf((1.0 + confidence) / 2.0, df))
    if comparisons == 1:
        return single
    bound = float(
        stats.t.ppf(1.0 - (1.0 - confidence) / (2.0 * comparisons), df)
    )  # Bonferroni is never smaller
    return float(
        brentq(
            lambda value: simultaneous_coverage(value, comparisons, df, correlation) - confidence,
            single * 0.99,
            bound * 1.01,
            xtol=1e-6,
        )
    )
